"""Rivals: one interface, judged by one scorer; each against a loop over its definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.rivals.base import without
from benchmarks.rivals.hpfrec import Hpfrec
from benchmarks.rivals.sklearn_factor_analysis import FactorAnalysisRival
from scipy.sparse import csr_array

from benchmarks import rivals
from efemb.evaluation import leave_one_out

RIVALS = [
    ("ImplicitALS", {"factors": 2, "regularization": 1.0, "alpha": 2.0}),
    ("Hpfrec", {"factors": 2}),
]


def trips(seed: int = 0, n_rows: int = 60, n_items: int = 12) -> csr_array:
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.4, (n_rows, n_items)).astype(np.float32)
    X[:, 0] += 1
    X[np.arange(n_rows), 1 + rng.integers(n_items - 1, size=n_rows)] += 1
    return csr_array(X)


@pytest.mark.parametrize(("name", "setting"), RIVALS, ids=[name for name, _ in RIVALS])
@pytest.mark.filterwarnings("ignore")  # other people's deprecations
def test_fits_and_is_judged(name: str, setting: dict[str, Any]) -> None:
    rival = getattr(rivals, name)
    if not rival.available():
        assert rival.missing().startswith("not installed: pip install ")
        pytest.skip(rival.missing())
    test, model = trips(2, 10), rival(**setting).fit(trips())
    assert 0.0 <= leave_one_out(model, test).recall(10).value <= 1.0
    cells = np.repeat(np.arange(10), np.diff(test.indptr))
    blocks = list(model.log_means(test, cells, test.indices))
    assert sum(block.stop - block.start for block, _ in blocks) == test.nnz
    assert all(np.isfinite(block).all() for _, block in blocks)


def test_a_missing_package_is_reported() -> None:
    class Nowhere(rivals.Package):
        package = "no_such_package_anywhere"

    assert not Nowhere.available()
    assert Nowhere.missing() == "not installed: pip install no_such_package_anywhere"


def test_asked_items_are_taken_out() -> None:
    X = csr_array(np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]]))
    found = without(X, np.array([0, 1, 1]), np.array([1, 0, 2]))
    assert found.toarray().tolist() == [[1, 0, 0], [0, 3, 4], [0, 3, 0]]
    assert X.nnz == 4


def test_hpfrec_folds_in_by_coordinate_ascent() -> None:
    rng = np.random.default_rng(0)
    from scipy.special import psi

    model = Hpfrec(3)
    shape, rate = rng.gamma(2.0, size=(12, 3)) + 0.3, rng.gamma(2.0, size=(12, 3)) + 1.0
    model.set_factors(shape, rate)
    X = trips(4, 3)
    asked = X.indices[X.indptr[:-1]]
    theta = model.fold_in(without(X, np.arange(3), asked), asked)
    for t in range(3):
        x = X[[t]].toarray()[0].astype(float)
        x[asked[t]] = 0
        others = np.arange(12) != asked[t]
        mean, geometric = shape / rate, np.exp(psi(shape)) / rate
        current, xi = np.ones(3), (0.3 + 3 * 0.3) / 0.3
        for _ in range(2000):
            share = 0.3 + current * ((x / (geometric @ current)) @ geometric)
            by = xi + mean[others].sum(axis=0)
            value, current = share / by, np.exp(psi(share)) / by
            xi = (0.3 + 3 * 0.3) / (0.3 + value.sum())
        np.testing.assert_allclose(theta[t], value, rtol=0.05, atol=0.01)


def test_factor_analysis_conditional_is_that_of_its_gaussian() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 5)) + rng.normal(size=(80, 5))
    rival = FactorAnalysisRival()
    rival.fit(X, 2, seed=0)
    covariance, mean = rival.model.get_covariance(), rival.model.mean_
    found = rival.conditional(X[:4])
    for n in range(5):
        rest = np.arange(5) != n
        weights = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[rest, n])
        expected = mean[n] + (X[:4][:, rest] - mean[rest]) @ weights
        np.testing.assert_allclose(found[:, n], expected)
