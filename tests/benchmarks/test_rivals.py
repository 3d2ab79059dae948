"""Rivals: one interface, judged by one scorer; each against a loop over its definition."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.peers import judged
from benchmarks.rivals import OURS, RIVALS, Rival
from benchmarks.rivals.base import mean_of_rows, without
from benchmarks.rivals.folding import multiplicative
from benchmarks.rivals.hpfrec import Hpfrec
from benchmarks.rivals.numpy_baskets import NumpyMovies
from benchmarks.rivals.popularity import Popularity
from benchmarks.rivals.sklearn_factor_analysis import FactorAnalysisRival
from scipy.sparse import csr_array

ALL = (*OURS, *RIVALS, NumpyMovies)
IDS = [one.name for one in ALL]


def trips(seed: int = 0, n_rows: int = 60, n_items: int = 12) -> csr_array:
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.4, (n_rows, n_items)).astype(np.float32)
    X[:, 0] += 1
    X[np.arange(n_rows), 1 + rng.integers(n_items - 1, size=n_rows)] += 1
    return csr_array(X)


@pytest.mark.parametrize("rival", ALL, ids=IDS)
@pytest.mark.filterwarnings("ignore")  # other people's deprecations
def test_fits_and_is_judged(rival: type[Rival]) -> None:
    if not rival.available():
        assert rival.missing().startswith("not installed: pip install ")
        pytest.skip(rival.missing())
    train, model = trips(), rival()
    held = csr_array((np.ones(1, np.float32), ([0], [3])), shape=train.shape)
    model.fit(train, 2, 0, held if rival is NumpyMovies else trips(1, 20))
    test = trips(2, 10)
    found = judged(model, test)
    assert 0.0 <= found["recall"] <= 1.0
    assert (found["score"] is not None) == rival.gives_shares
    if found["score"] is not None:
        assert -20.0 < found["score"] < 0.0
    cells = np.repeat(np.arange(10), np.diff(test.indptr))
    parts = list(model.log_means(test, cells, test.indices))
    assert sum(part.stop - part.start for part, _ in parts) == test.nnz
    assert all(np.isfinite(block).all() for _, block in parts)


def test_a_missing_package_is_told() -> None:
    class Nowhere(Popularity):
        package = "no_such_package_anywhere"

    assert not Nowhere.available()
    assert Nowhere.missing() == "not installed: pip install no_such_package_anywhere"


def test_popularity_by_hand() -> None:
    model = Popularity()
    model.fit(csr_array(np.array([[1.0, 3.0], [2.0, 2.0]])), 1, 0)
    found = judged(model, csr_array(np.array([[1.0, 2.0]])))
    assert found["score"] == pytest.approx((np.log(3 / 8) + 2 * np.log(5 / 8)) / 3, abs=1e-6)
    assert found["recall"] == 1.0


def test_asked_items_are_taken_out() -> None:
    X = csr_array(np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]]))
    found = without(X, np.array([0, 1, 1]), np.array([1, 0, 2]))
    assert found.toarray().tolist() == [[1, 0, 0], [0, 3, 4], [0, 3, 0]]
    assert X.nnz == 4
    vectors = np.array([[1.0], [3.0], [5.0]])
    assert mean_of_rows(found, vectors).ravel().tolist() == [1.0, 4.0, 3.0]


def test_multiplicative_updates_end_where_the_likelihood_is_flat() -> None:
    rng = np.random.default_rng(0)
    X, columns = trips(3, 5), rng.gamma(1.0, size=(12, 3))
    rows = np.repeat(np.arange(5), np.diff(X.indptr))
    theta = multiplicative(X, rows, X.indices, columns)
    for t, n, found in zip(rows, X.indices, theta, strict=True):
        x = X[[t]].toarray()[0].astype(float)
        others = np.arange(12) != n
        slope = ((x / (columns @ found) - 1)[:, None] * columns)[others].sum(axis=0)
        assert np.all(slope < 0.15)  # a maximum, or the border where a weight is zero
        assert abs(slope @ found) < 0.01 * found.sum()


def test_hpfrec_folds_in_by_coordinate_ascent() -> None:
    rng = np.random.default_rng(0)
    from scipy.special import psi

    model = Hpfrec()
    shape, rate = rng.gamma(2.0, size=(12, 3)) + 0.3, rng.gamma(2.0, size=(12, 3)) + 1.0
    model._learned(shape, rate)
    X = trips(4, 3)
    asked = X.indices[X.indptr[:-1]]
    theta = model.folded(X, np.arange(3), asked)
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
