"""ItemKNN, RP3beta and Rules against their definitions in plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array, issparse, random_array

from efemb.baselines import ItemKNN, RP3beta, Rules, item_item

RNG = np.random.default_rng(3)
X = RNG.poisson(RNG.gamma(1.0, 1.0, (50, 2)) @ RNG.gamma(0.7, 0.8, (2, 8))).astype(float)
X[0] = 0.0
X[1] = [0, 3, 0, 0, 0, 0, 0, 0]
X[:, 7] = 0.0  # never bought
PRESENT = X > 0
N = X.shape[1]


def pairs() -> Any:
    """(m, n, rows that hold both) of different items."""
    for m in range(N):
        for n in range(N):
            if m != n:
                yield m, n, [t for t in range(len(X)) if PRESENT[t, m] and PRESENT[t, n]]


def largest_of_each_row(weights: Any, size: int) -> Any:
    kept = np.zeros_like(weights)
    for row, numbers in enumerate(weights):
        for place in sorted(range(N), key=lambda n: (-numbers[n], n))[:size]:
            kept[row, place] = numbers[place]
    return kept


def cosines(shrinkage: float) -> Any:
    weights = np.zeros((N, N))
    for m, n, rows in pairs():
        lengths = np.sqrt(PRESENT[:, m].sum() * PRESENT[:, n].sum())
        weights[m, n] = len(rows) / (lengths + shrinkage) if rows else 0.0
    return weights


def walks(alpha: float, beta: float) -> Any:
    weights = np.zeros((N, N))
    for m, n, rows in pairs():
        for t in rows:
            steps = (1 / PRESENT[:, m].sum()) ** alpha * (1 / PRESENT[t].sum()) ** alpha
            weights[m, n] += steps / PRESENT[:, n].sum() ** beta
    return weights


@pytest.fixture(params=[1, 1 << 22], ids=["an item per block", "one block"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_item, "CHUNK_NUMBERS", request.param)


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("shrinkage", [0.0, 4.0])
@pytest.mark.usefixtures("blocks")
def test_neighbors_are_the_largest_cosines(size: int, shrinkage: float) -> None:
    model = ItemKNN(size, shrinkage=shrinkage).fit(X)
    assert issparse(model.weights_)
    assert_allclose(model.weights_.toarray(), largest_of_each_row(cosines(shrinkage).T, size).T)


@pytest.mark.parametrize("size", [2, 100])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (0.7, 0.4)])
@pytest.mark.usefixtures("blocks")
def test_walks_go_from_item_to_row_to_item(alpha: float, beta: float, size: int) -> None:
    model = RP3beta(alpha, beta, n_neighbors=size).fit(csr_array(X))
    assert_allclose(model.weights_.toarray(), largest_of_each_row(walks(alpha, beta), size))


@pytest.mark.usefixtures("blocks")
def test_rules_are_smoothed_confidences_averaged_over_the_row() -> None:
    model = Rules(2.0).fit(X)
    lines = PRESENT.sum(axis=0)
    share = np.maximum(lines, 0.5) / np.maximum(lines, 0.5).sum()
    test = RNG.poisson(0.8, (7, N)).astype(float)
    rows, entities = (index.ravel() for index in np.indices(test.shape))
    (_, found), *_ = model.log_means(test, rows, entities)
    for means, t, target in zip(np.exp(found), rows, entities, strict=True):
        context = [m for m in np.flatnonzero(test[t]) if m != target]
        score = np.zeros(N)
        for m in context:
            both = (PRESENT[:, [m]] & PRESENT).sum(axis=0).astype(float)
            both[m] = 0.0  # an item says nothing about itself
            score += (both + 2.0 * share) / (lines[m] + 2.0) / len(context)
        assert_allclose(means, score**model.power_ + model.backoff_weight_ / N)


@pytest.mark.parametrize("model", [ItemKNN(2), RP3beta(n_neighbors=2), Rules()])
def test_rows_of_one_item_and_equal_rows(model: Any) -> None:
    alone = model.set_params(backoff="popularity").fit(np.eye(4)[[0, 0, 1, 2, 3]])
    assert alone.weights_.nnz == 0
    assert_allclose(alone.conditional([[0, 0, 0, 0]]), [[0.4, 0.2, 0.2, 0.2]])
    equal = model.set_params(backoff="uniform").fit(np.ones((30, 4)))
    assert np.isfinite(equal.score(np.ones((2, 4))))


@pytest.mark.slow
def test_many_items_stay_sparse() -> None:
    """A dense matrix of 50,000 x 50,000 items would take 20 GB."""
    wide = random_array((300, 50_000), density=2e-4, rng=np.random.default_rng(0), format="csr")
    wide.data[:] = 1.0
    for model in (ItemKNN(5), RP3beta(n_neighbors=5), Rules()):
        weights = model.fit(wide).weights_
        assert weights.shape == (50_000, 50_000)
        assert 0 < weights.nnz < 100 * wide.nnz
