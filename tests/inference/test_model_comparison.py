"""compare_models: what was planted is found, rotations and seeds are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.model.parameters import Parameters
from fitted.toys import model


def made(rho: Any, alpha: Any, labels: Any) -> Any:
    return model(rho, alpha, labels=labels)


def several(center: Any, labels: list[str], seed: int, size: float = 0.02) -> list[Any]:
    """Fits that differ a little, each in a rotation of its own."""
    rng = np.random.default_rng(seed)
    fits = []
    for _ in range(3):
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        rho, alpha = (side + size * rng.normal(size=side.shape) for side in center)
        fits.append(made(rho @ turn, alpha @ turn, labels))
    return fits


RNG = np.random.default_rng(0)
LABELS = [f"item {i}" for i in range(20)]
CENTER = RNG.normal(size=(20, 3)), RNG.normal(size=(20, 3))


def test_rotations_are_no_changes() -> None:
    turn = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    a, b = made(*CENTER, LABELS), made(*(side @ turn for side in CENTER), LABELS)
    both = efemb.compare_models(a, b, n=4)
    assert_allclose(both.neighbors["shared"], 1)
    assert_allclose(both.complements["shared"], 1)
    assert np.isnan(both.neighbors["seeds"]).all()
    assert set(both.neighbors["verdict"]) == {"unknown"}
    assert_allclose(both.vectors_a.vectors, both.vectors_b.vectors, atol=1e-8)
    assert "several fits" in repr(both)


def test_what_changed_is_told_from_seeds() -> None:
    moved = tuple(side.copy() for side in CENTER)
    for side in moved:
        side[3] = -CENTER[0][3] * 2
    both = efemb.compare_models(several(CENTER, LABELS, 0), several(moved, LABELS, 1), n=4)
    for table in (both.neighbors, both.complements):
        assert table["label"][0] == "item 3"
        assert table["verdict"][0] == "changed"
        assert table["change"][0] == pytest.approx(table["seeds"][0] - table["shared"][0])
    assert both.neighbors["gained"][0] != both.neighbors["lost"][0]
    same = efemb.compare_models(several(CENTER, LABELS, 0), several(CENTER, LABELS, 2), n=4)
    changed = [
        (same.neighbors["verdict"] == "changed").mean(),
        (same.complements["verdict"] == "changed").mean(),
    ]
    assert max(changed) <= 0.2
    assert "changed:" in repr(same)


def test_overlaps_are_those_of_the_loop() -> None:
    a, b = made(*CENTER, LABELS), made(CENTER[1], CENTER[0], LABELS[::-1])
    table = efemb.compare_models(a, b, n=3).neighbors
    for row in table:
        near = [set(m.similar(row["label"], 3)["label"]) for m in (a, b)]
        assert row["shared"] == pytest.approx(len(near[0] & near[1]) / 3)
        assert set(filter(None, row["gained"].split(", "))) == near[1] - near[0]
        assert set(filter(None, row["lost"].split(", "))) == near[0] - near[1]


def test_only_common_items_are_compared() -> None:
    b = made(CENTER[0][5:], CENTER[1][5:], [*LABELS[5:19], "new"])
    both = efemb.compare_models(made(*CENTER, LABELS), b, n=4)
    assert list(both.common) == LABELS[5:19]
    assert both.only_a == [*LABELS[:5], "item 19"]
    assert both.only_b == ["new"]
    assert_allclose(both.neighbors["shared"], 1)


def test_fixed_lists_have_no_complements() -> None:
    X = np.random.default_rng(0).normal(size=(60, 6))
    fits = [
        efemb.GaussianEmbedding(2, context=efemb.Neighbors(3), random_state=seed).fit(X)
        for seed in (0, 1)
    ]
    both = efemb.compare_models(*fits, n=2)
    assert both.complements is None
    assert len(both.neighbors) == 6


def test_bad_models() -> None:
    a = made(*CENTER, LABELS)
    with pytest.raises(DataError, match="0 items in common"):
        efemb.compare_models(a, made(*CENTER, [f"other {i}" for i in range(20)]))
    with pytest.raises(ParameterError, match="at most 19"):
        efemb.compare_models(a, a, n=20)
    with pytest.raises(InputTypeError, match="b must be a fitted embedding"):
        efemb.compare_models(a, "summer")
    smaller = replace(a, parameters=Parameters(*(side[:5] for side in CENTER)), vocabulary=None)
    with pytest.raises(DataError, match="same items"):
        efemb.compare_models([a, smaller], a)
