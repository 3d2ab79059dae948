"""WeightedMF against dense weighted least squares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.base import clone

import efemb
from efemb.baselines import ItemSkipGram, WeightedMF

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.poisson(RNG.gamma(1.0, 1.0, (30, 2)) @ RNG.gamma(0.7, 0.8, (2, 9))).astype(float)
X[0] = 0.0
ZERO, PENALTY = 0.3, 0.7


def regression(vectors: Any, row: Any, seen: Any) -> Any:
    """Weighted ridge regression of presence on the vectors, by stacked least squares."""
    weight = np.where(row > 0, ZERO + row, ZERO) * seen
    size = vectors.shape[1]
    design = np.vstack([np.sqrt(weight)[:, None] * vectors, np.sqrt(PENALTY) * np.eye(size)])
    target = np.concatenate([np.sqrt(weight) * (row > 0), np.zeros(size)])
    return np.linalg.lstsq(design, target, rcond=None)[0]


def fitted(data: Any = X, validation: Any = None, **options: Any) -> WeightedMF:
    settings = {"zero_weight": ZERO, "penalty": PENALTY, "random_state": 0, **options}
    return WeightedMF(3, **settings).fit(data, validation=validation)


def test_every_cell_is_left_out_of_its_own_regression() -> None:
    model = fitted()
    rows, entities = (part.ravel() for part in np.indices((6, X.shape[1])))
    found = np.concatenate([means for _, means in model.log_means(X, rows, entities)])
    for got, t, n in zip(found, rows, entities, strict=True):
        theta = regression(model.beta_, X[t], np.arange(X.shape[1]) != n)
        assert_allclose(np.exp(got), np.maximum(model.beta_ @ theta, model.floor), rtol=1e-8)


@pytest.mark.parametrize("held_out", [False, True], ids=["all", "some held out"])
def test_a_sweep_is_one_regression_a_row(held_out: bool) -> None:
    held = np.zeros_like(X)
    if held_out:
        held[[3, 3, 8], [1, 2, 5]] = 2.0
    train = np.where(held > 0, 0.0, X)
    model = fitted(csr_array(train), csr_array(held) if held_out else None, max_iter=4)
    for t in range(len(X)):
        assert_allclose(model.theta_[t], regression(model.beta_, train[t], held[t] == 0), atol=1e-9)
    if held_out:
        share = np.maximum(model.theta_ @ model.beta_.T, model.floor)
        log_share = np.log(share / share.sum(axis=1, keepdims=True))
        best = max(look["score"] for look in model.history_)
        assert_allclose((held * log_share).sum() / held.sum(), best, rtol=1e-9)


def test_columns_are_regressions_too() -> None:
    model = fitted(tol=0.0, max_iter=3000, n_iter_no_change=50)
    for n in range(X.shape[1]):
        expected = regression(model.theta_, X[:, n], np.ones(len(X)))
        assert_allclose(model.beta_[n], expected, atol=1e-5)


def test_score_without_validation_is_minus_the_loss() -> None:
    model = fitted()
    u = model.theta_ @ model.beta_.T
    weight = np.where(X > 0, ZERO + X, ZERO)
    size = (model.theta_**2).sum() + (model.beta_**2).sum()
    loss = (weight * ((X > 0) - u) ** 2).sum() + PENALTY * size
    best = max(look["score"] for look in model.history_)
    assert_allclose(best, -loss / X.sum(), rtol=1e-9)


def test_rows_of_very_different_length_and_other_rows() -> None:
    """Blocks hold rows of like length; a row that is longer than a block stands alone."""
    rng = np.random.default_rng(3)
    wide = (rng.random((40, 60)) < rng.uniform(0.02, 0.9, (40, 1))).astype(float)
    model = fitted(wide, wide[:10], max_iter=5)
    for t in range(40):
        assert_allclose(model.theta_[t], regression(model.beta_, wide[t], np.ones(60)), atol=1e-9)
    assert_allclose(model.score(wide[:10]), max(look["score"] for look in model.history_))


def test_items_need_company() -> None:
    with pytest.raises(efemb.DataError, match="only one entity"):
        ItemSkipGram(2).fit(np.eye(4))


def test_items_of_one_kind_of_basket_find_each_other() -> None:
    """Two kinds of baskets that share no item."""
    rng = np.random.default_rng(0)
    rows = np.zeros((400, 12))
    for t in range(400):
        rows[t, rng.choice(6, 3, replace=False) + 6 * (t % 2)] = rng.integers(1, 4)
    model = ItemSkipGram(4, max_iter=20, random_state=0).fit(rows)
    (_, means), *_ = model.log_means(
        rows, [0, 1], [int(np.flatnonzero(rows[t])[0]) for t in (0, 1)]
    )
    assert means[0, :6].min() > means[0, 6:].max()
    assert means[1, 6:].min() > means[1, :6].max()
    again = clone(model).fit(csr_array(rows))
    assert np.array_equal(model.embedding_, again.embedding_)
