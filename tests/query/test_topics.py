"""Topics: sorted dimensions, and the varimax rotation against its definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from efemb.query.rotation import varimax
from query.toys import checkerboard, random_model


@pytest.mark.parametrize("by", ["value", "magnitude"])
@pytest.mark.parametrize("vectors", ["context", "embedding", "alpha", "rho"])
def test_each_dimension_is_sorted(vectors: Any, by: Any) -> None:
    fitted = random_model(0)
    p = fitted.parameters
    table = p.alpha if vectors in ("context", "alpha") else p.rho
    found = fitted.topics(4, vectors=vectors, by=by)
    assert found.columns == ["topic", "label", "value", "count"]
    rows = iter(found)
    for k in range(3):
        column = table[:, k] if by == "value" else abs(table[:, k])
        for n in sorted(range(9), key=lambda n, column=column: -column[n])[:4]:
            row = next(rows)
            assert (row["topic"], row["label"]) == (k, f"item {n}")
            assert row["value"] == table[n, k]
            assert row["count"] == fitted.entities.counts[n]
    assert next(rows, None) is None


def test_checkerboard_has_two_topics() -> None:
    found = checkerboard(8).topics(4, vectors="embedding")
    assert found["topic"].tolist() == [0] * 4 + [1] * 4
    assert found["label"].tolist() == [6, 4, 2, 0, 7, 5, 3, 1]


def test_some_topics_and_filters() -> None:
    fitted = random_model(1)
    everything = fitted.topics(99)
    for topic in (2, [2], np.array([0, 2])):
        wanted = np.atleast_1d(topic).tolist()
        found = fitted.topics(99, topic=topic)
        assert list(found) == [row for row in everything if row["topic"] in wanted]
    found = fitted.topics(2, topic=0, exclude=["item 3"], min_count=10)
    kept = [
        r for r in everything if r["topic"] == 0 and r["label"] != "item 3" and r["count"] >= 10
    ]
    assert list(found) == kept[:2]


def criterion(vectors: Any) -> float:
    """Sum over the dimensions of the variance of the squares."""
    return float(sum(np.var([x * x for x in column]) for column in vectors.T))


def by_planes(vectors: Any, sweeps: int = 60) -> Any:
    """Kaiser's own way: the best angle of each pair of dimensions in turn, here by trying many."""
    found = vectors.copy()
    angles = np.linspace(-np.pi / 4, np.pi / 4, 721)
    for _ in range(sweeps):
        for i in range(found.shape[1]):
            for j in range(i):
                pair = found[:, [i, j]]
                turns = [
                    np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in angles
                ]
                best = max(turns, key=lambda turn, pair=pair: criterion(pair @ turn))
                found[:, [i, j]] = pair @ best
    return found


@given(st.integers(0, 2**32), st.integers(1, 6))
def test_varimax_is_a_rotation_that_raises_its_criterion(seed: int, k: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(20, k))
    turned = varimax(vectors)
    assert_allclose(turned @ turned.T, vectors @ vectors.T, atol=1e-9)
    assert criterion(turned) >= criterion(vectors) - 1e-9
    squares = np.square(turned).sum(axis=0)
    assert (np.diff(squares) <= 1e-9).all()
    assert ((turned**3).sum(axis=0) >= -1e-9).all()


@pytest.mark.slow
def test_varimax_reaches_what_kaisers_planes_reach() -> None:
    vectors = np.random.default_rng(5).gamma(1.0, size=(15, 3))
    expected = criterion(by_planes(vectors, 12))
    assert criterion(varimax(vectors)) == pytest.approx(expected, rel=1e-4)


def test_varimax_undoes_a_rotation_of_simple_vectors() -> None:
    rng = np.random.default_rng(0)
    simple = np.zeros((60, 4))
    simple[np.arange(60), np.arange(60) % 4] = rng.uniform(1, 2, 60) * (2.0 + np.arange(60) % 4)
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    assert_allclose(varimax(simple @ turn), simple[:, ::-1], atol=1e-2)


def test_rotated_topics(capsys: pytest.CaptureFixture[str]) -> None:
    fitted = random_model(2, 30, 4)
    turned = varimax(fitted.parameters.alpha)
    found = fitted.topics(3, rotate="varimax", progress=True)
    assert "Traceback" not in capsys.readouterr().err
    for row in found:
        n = int(row["label"].split()[1])
        assert row["value"] == pytest.approx(turned[n, row["topic"]])
    first = [row["label"] for row in found if row["topic"] == 0]
    assert first == [f"item {n}" for n in np.argsort(-turned[:, 0])[:3]]
