"""The largest and smallest inner products of all pairs, against all of them in a list."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import efemb
from efemb.fitted import pairs as pairs_module_function
from fitted.toys import EFFECTS, GOODS, baskets, goods, random_model


def all_pairs(fitted: Any, direction: str = "given") -> dict[tuple[Any, Any], float]:
    """Every pair of different entities, number by number."""
    rho, alpha = fitted.parameters.rho, fitted.parameters.alpha
    labels = list(fitted.entities)
    found = {}
    for n, m in product(range(len(labels)), repeat=2):
        one, other = float(rho[n] @ alpha[m]), float(rho[m] @ alpha[n])
        if direction == "given" and n != m:
            found[labels[n], labels[m]] = one
        elif direction == "symmetric" and n < m:
            found[labels[n], labels[m]] = (one + other) / 2
    return found


def listed(table: efemb.Table) -> list[tuple[Any, Any]]:
    return list(zip(table["label"], table["given"], strict=True))


@pytest.mark.parametrize("block", [4, 100, 1 << 24])
@pytest.mark.parametrize("direction", ["given", "symmetric"])
@pytest.mark.parametrize("n", [1, 7, 30])
def test_both_ends(n: int, direction: Any, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setattr(sys.modules["efemb.fitted.extreme_pairs"], "BLOCK", block)
    for seed in range(3):
        fitted = random_model(seed)
        scores = all_pairs(fitted, direction)
        ordered = sorted(scores, key=lambda pair: -scores[pair])
        largest = fitted.pairs(n, end="largest", direction=direction)
        smallest = fitted.pairs(n, end="smallest", direction=direction)
        assert listed(largest) == ordered[:n]
        assert listed(smallest) == ordered[::-1][:n]
        assert_allclose(largest["score"], [scores[pair] for pair in ordered[:n]])
        both = listed(fitted.pairs(n, direction=direction))
        assert both == list(dict.fromkeys(ordered[:n] + ordered[::-1][:n]))


def test_known_pairs() -> None:
    found = goods().pairs(2)
    assert listed(found) == [
        ("tea", "sugar"),
        ("coffee", "sugar"),
        ("coffee", "tea"),
        ("tea", "coffee"),
    ]
    assert_allclose(found["score"], [2.5, 2.4, -3.5, -3.0])
    alike = stats.pearsonr(EFFECTS[0], EFFECTS[1]).statistic
    assert found["context_similarity"][2] == pytest.approx(alike)


def test_more_than_there_are() -> None:
    fitted = goods()
    assert len(fitted.pairs(1000)) == 30
    assert len(fitted.pairs(1000, direction="symmetric")) == 15
    assert len(fitted.pairs(1000, end="largest")) == 30
    assert len(fitted.pairs(5, where=["tea"])) == 0


def test_filters_hold_for_both() -> None:
    food = ["tea", "coffee", "milk", "sugar"]
    found = goods().pairs(100, where=food, exclude="milk")
    assert {label for pair in listed(found) for label in pair} == {"tea", "coffee", "sugar"}
    assert len(found) == 6


def test_support_and_lift() -> None:
    X, fitted = baskets(), random_model(3, 6, labels=GOODS)
    there = X > 0
    counts, together = there.sum(axis=0), there.T.astype(float) @ there
    scores = all_pairs(fitted)
    code = {label: i for i, label in enumerate(GOODS)}
    least = float(np.median(together))

    def supported(pair: tuple[Any, Any], end: str) -> bool:
        n, m = (code[one] for one in pair)
        return (together[n, m] if end == "largest" else counts[n] * counts[m] / 200) >= least

    for end, sign in (("largest", -1), ("smallest", 1)):
        kept = [pair for pair in scores if supported(pair, end)]
        expected = sorted(kept, key=lambda pair: sign * scores[pair])[:4]
        found = fitted.pairs(4, end=end, data=X, min_support=least)
        assert listed(found) == expected
        for row in found:
            n, m = code[row["label"]], code[row["given"]]
            assert row["count"] == counts[n]
            assert row["together"] == together[n, m]
            assert row["lift"] == pytest.approx(together[n, m] * 200 / (counts[n] * counts[m]))


def test_symmetric_support() -> None:
    X, fitted = baskets(), goods()
    together = (X > 0).T.astype(float) @ (X > 0)
    least = float(np.median(together))
    found = fitted.pairs(99, end="largest", direction="symmetric", data=X, min_support=least)
    assert len(found) == np.count_nonzero(np.triu(together >= least, 1))


def test_function_and_method_are_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    fitted = goods()
    assert pairs_module_function(fitted, 3, progress=True) == fitted.pairs(3)
    assert "Traceback" not in capsys.readouterr().err
