"""EASE against constrained ridge regressions, and what all item-item models share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import efemb
from efemb.baselines import EASE, item_item
from efemb.engine.solvers.moments.solver import MomentsSolver
from efemb.engine.threads import Workers
from efemb.model import item_regressions
from efemb.model.spec import Spec

RNG = np.random.default_rng(0)
KINDS = RNG.gamma(0.7, 0.8, (2, 9))
X = RNG.poisson(RNG.gamma(1.0, 1.0, (80, 2)) @ KINDS).astype(float)
X[0] = 0.0
X[1] = [0, 3, 0, 0, 0, 0, 0, 0, 0]
TEST = RNG.poisson(RNG.gamma(1.0, 1.0, (20, 2)) @ KINDS).astype(float)


def regressions(data: Any, penalty: float, dropout: float = 0.0) -> Any:
    """Each item's presence regressed on that of all others, as stacked least squares."""
    present = (data > 0).astype(float)
    size = present.shape[1]
    ridge = penalty + dropout / (1.0 - dropout) * present.sum(axis=0)
    weights = np.zeros((size, size))
    for n in range(size):
        others = [m for m in range(size) if m != n]
        design = np.vstack([present[:, others], np.diag(np.sqrt(ridge[others]))])
        target = np.concatenate([present[:, n], np.zeros(size - 1)])
        weights[others, n] = np.linalg.lstsq(design, target, rcond=None)[0]
    return weights


def means(model: Any, data: Any, rows: Any, entities: Any) -> Any:
    blocks = model.log_means(data, np.asarray(rows), np.asarray(entities))
    return np.exp(np.concatenate([block for _, block in blocks]))


def left_out_scores(weights: Any, data: Any, rows: Any, entities: Any) -> Any:
    """Sums of weights over the other items of each cell's row, in plain loops."""
    scores = np.zeros((len(rows), data.shape[1]))
    for cell, (t, n) in enumerate(zip(rows, entities, strict=True)):
        for m in np.flatnonzero(data[t]):
            if m != n:
                scores[cell] += weights[m]
    return scores


@pytest.mark.parametrize("tile", [4, 1024])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_weights_are_ridge_regressions_without_oneself(
    dropout: float, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(item_regressions, "TILE", tile)
    model = EASE(2.5, dropout=dropout).fit(X)
    assert_allclose(model.weights_, regressions(X, 2.5, dropout), atol=1e-6)
    assert not model.weights_.diagonal().any()


def test_weights_are_a_gaussian_embedding_with_identity_context_vectors() -> None:
    """With alpha = I, the `moments` solver's closed form for rho gives B_mn = rho_nm."""
    present = (X > 0).astype(float)
    context = efemb.Neighbors(X.shape[1] - 1, scale="none")
    spec = Spec.resolve(
        context=context, family=efemb.Gaussian(1.0), prior=efemb.Normal(2.5), intercept=False
    )
    solver = MomentsSolver(context.bind(efemb.Dataset(present)), spec, Workers(1))
    rho, _ = solver.best_targets(np.eye(X.shape[1]))
    assert_allclose(EASE(2.5).fit(X).weights_, rho.T, atol=1e-6)


@pytest.mark.parametrize("backoff", ["uniform", "popularity"])
def test_shares_are_powers_of_scores_and_a_backoff(backoff: str) -> None:
    model = EASE(2.0, backoff=backoff).fit(X)
    rows, entities = (index.ravel() for index in np.indices(TEST.shape))
    scores = left_out_scores(regressions(X, 2.0), TEST, rows, entities)
    shares = np.full(9, 1.0)
    if backoff == "popularity":
        shares = np.count_nonzero(X, axis=0).astype(float)
    shares /= shares.sum()
    expected = np.maximum(scores, 0.0) ** model.power_ + model.backoff_weight_ * shares
    assert_allclose(means(model, TEST, rows, entities), expected, rtol=1e-4, atol=1e-7)


def test_uniform_backoff_ranks_as_the_scores() -> None:
    model = EASE(2.0).fit(X)
    rows, entities = TEST.nonzero()
    scores = left_out_scores(regressions(X, 2.0), TEST, rows, entities)
    for score, mean in zip(scores, means(model, TEST, rows, entities), strict=True):
        order = np.argsort(score)
        assert (np.diff(mean[order]) >= 0).all()
        # strictly, where scores are positive and not merely rounded differently
        apart = (np.diff(score[order]) > 1e-5) & (score[order][1:] > 1e-5)
        assert (np.diff(mean[order])[apart] > 0).all()


def entry_likelihood(model: Any, data: Any, power: float, weight: float) -> float:
    """Mean log share of the entries of rows with two or more, at any power and weight."""
    total, count = 0.0, 0
    for t, row in enumerate(data):
        items = np.flatnonzero(row)
        for n in items if len(items) > 1 else ():
            score = left_out_scores(model.weights_, data, [t], [n])[0]
            share = np.maximum(score, 0.0) ** power + weight / len(row)
            total, count = total + np.log(share[n] / share.sum()), count + 1
    return total / count


def test_validation_rows_calibrate() -> None:
    model = EASE(2.0).fit(X, validation=TEST)
    best = entry_likelihood(model, TEST, model.power_, model.backoff_weight_)
    for factor in (0.25, 4.0):  # the prior is weak: one entry in about a hundred
        assert entry_likelihood(model, TEST, factor * model.power_, model.backoff_weight_) < best
        assert entry_likelihood(model, TEST, model.power_, factor * model.backoff_weight_) < best


def test_rows_set_aside_calibrate_where_there_is_no_validation() -> None:
    filled = np.flatnonzero(np.count_nonzero(X, axis=1) >= 2)
    apart = filled[5::10]
    model = EASE(2.0).fit(np.delete(X, apart, axis=0), validation=X[apart])
    again = EASE(2.0).fit(X)
    assert_allclose(again.power_, model.power_)
    assert_allclose(again.backoff_weight_, model.backoff_weight_)
    entries = np.zeros_like(X)
    entries[0, 3] = 2.0  # of a training row: no other rows
    assert_allclose(EASE(2.0).fit(X, validation=entries).power_, model.power_)


def test_few_cells_calibrate_like_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few numbers may be held at a time, at least 64 cells are used."""
    many = EASE(2.0).fit(np.tile(X, (5, 1)))
    monkeypatch.setattr(item_item, "CHUNK_NUMBERS", 1)
    few = EASE(2.0).fit(np.tile(X, (5, 1)))
    assert_allclose(many.weights_, few.weights_)
    assert_allclose(few.score(TEST), many.score(TEST), atol=0.1)
    assert few.power_ != many.power_


def test_rows_of_one_item_have_no_pairs() -> None:
    model = EASE(1.0, backoff="popularity").fit(np.eye(4)[[0, 0, 1, 2, 3]])
    assert not model.weights_.any()
    shares = model.conditional([[1, 1, 0, 0]])
    assert_allclose(shares, [[0.4, 0.2, 0.2, 0.2]])


def test_equal_rows_give_equal_shares() -> None:
    model = EASE(1.0).fit(np.ones((30, 4)))
    off_diagonal = model.weights_[~np.eye(4, dtype=bool)]
    assert_allclose(off_diagonal, 30 / 91, rtol=1e-6)  # 3 regressors: 30 / (3 x 30 + 1)
    assert np.isfinite([model.power_, model.backoff_weight_]).all()
    rest = means(model, np.ones((1, 4)), [0], [0])[0]
    assert rest[0] > rest[1] == rest[2] == rest[3]  # it has three items that point at it


def test_unseen_items_and_sparse_input() -> None:
    train = np.where(np.arange(9) == 4, 0.0, X)
    model = EASE(2.0).fit(csr_array(train))
    assert not model.weights_[4].any()
    assert not model.weights_[:, 4].any()
    assert np.isfinite(model.score(TEST + (np.arange(9) == 4)))


def test_too_many_items_for_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_regressions, "available_memory", lambda: 24 * 9**2 - 1)
    with pytest.raises(efemb.MemoryEstimateError, match=r"EASE of 9 items.*ItemKNN"):
        EASE().fit(X)
    monkeypatch.setattr(item_regressions, "available_memory", lambda: None)
    EASE().fit(X)


def test_sparse_pairs_are_non_negative_least_squares() -> None:
    """With all items as candidates nothing of the Gram matrix is missing."""
    from scipy.optimize import nnls

    present = (X > 0).astype(float)
    size, penalty = present.shape[1], 3.0
    found = item_regressions.sparse_ridge_weights(csr_array(present), penalty, size).toarray()
    for n in range(size):
        others = [m for m in range(size) if m != n]
        design = np.vstack([present[:, others], np.sqrt(penalty) * np.eye(size - 1)])
        target = np.concatenate([present[:, n], np.zeros(size - 1)])
        assert_allclose(found[others, n], nnls(design, target)[0], atol=2e-3)
        assert found[n, n] == 0.0


def test_sparse_pairs_keep_as_many_as_asked() -> None:
    found = item_regressions.sparse_ridge_weights(csr_array((X > 0).astype(float)), 3.0, 2)
    assert (np.diff(csr_array(found.T).indptr) <= 2).all()
    assert found.data.min() > 0


def test_single_precision_keeps_the_weights() -> None:
    present = csr_array((RNG.random((3000, 60)) < 0.1).astype(float))
    gram = (present.T @ present).toarray() + 100.0 * np.eye(60)
    inverse = np.linalg.inv(gram)
    wanted = -inverse / inverse.diagonal()
    np.fill_diagonal(wanted, 0.0)
    assert_allclose(item_regressions.ridge_weights(present, 100.0, fast=True), wanted, atol=1e-5)
    exact = item_regressions.ridge_weights(
        present, 1e-3, fast=True
    )  # ill-conditioned: in double precision
    inverse = np.linalg.inv(gram - (100.0 - 1e-3) * np.eye(60))
    assert_allclose(exact[0, 1], -inverse[0, 1] / inverse[1, 1], rtol=1e-6)
