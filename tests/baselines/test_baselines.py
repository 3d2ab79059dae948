"""Baselines: each against its definition in plain loops, and all through the common interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import digamma
from sklearn.base import clone

import efemb
from efemb.baselines import (
    EASE,
    HPF,
    ExponentialFamilyPCA,
    FactorAnalysis,
    ItemKNN,
    ItemSkipGram,
    Popularity,
    RP3beta,
    Rules,
    WeightedMF,
    base,
    ef_pca,
    hpf,
    item2vec,
    item_item,
    weighted_mf,
)
from efemb.baselines.base import CountModel, Model
from efemb.data.matrices import sparse
from efemb.evaluation import leave_one_out

# How far a fit got is not what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
THETA, BETA = RNG.gamma(1.0, 1.0, (60, 2)), RNG.gamma(0.7, 0.8, (9, 2))
X = RNG.poisson(THETA @ BETA.T).astype(float)
X[0] = 0.0
X[1] = [0, 3, 0, 0, 0, 0, 0, 0, 0]
REAL = RNG.normal(size=(80, 2)) @ RNG.normal(size=(2, 7)) + 0.3 * RNG.normal(size=(80, 7))
COUNTS: dict[str, Any] = {
    "popularity": Popularity(),
    "HPF": HPF(2, random_state=0),
    "Poisson PCA": ExponentialFamilyPCA(2, random_state=0, dtype="float64"),
    "positive Poisson PCA": ExponentialFamilyPCA(2, positive=True, random_state=0),
    "weighted": WeightedMF(2, random_state=0),
    "item2vec": ItemSkipGram(2, random_state=0, max_iter=2),
    "EASE": EASE(2.0),
    "EDLAE": EASE(2.0, dropout=0.2, backoff="popularity"),
    "item-kNN": ItemKNN(3),
    "RP3beta": RP3beta(n_neighbors=3),
    "rules": Rules(),
}
REALS: dict[str, Any] = {
    "popularity": Popularity(),
    "factor analysis": FactorAnalysis(2),
    "Gaussian PCA": ExponentialFamilyPCA(2, family="gaussian", random_state=0),
}


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    return {name: clone(model).fit(X) for name, model in COUNTS.items()}


def blocks(model: Any, data: Any, rows: Any, entities: Any) -> Any:
    found = np.full((len(rows), X.shape[1]), np.nan)
    for part, means in model.log_means(data, np.asarray(rows), np.asarray(entities)):
        found[part] = means
    return found


# -- the common interface ------------------------------------------------------------------------


@pytest.mark.parametrize("name", COUNTS)
def test_score_is_the_share_of_left_out_means(name: str, fitted: dict[str, Any]) -> None:
    model = fitted[name]
    assert isinstance(model, CountModel)
    rows, entities = np.nonzero(X)
    known = np.count_nonzero(X, axis=1)[rows] > 1
    rows, entities = rows[known], entities[known]
    means = np.exp(blocks(model, X, rows, entities))
    share = np.log(means[np.arange(len(rows)), entities] / means.sum(axis=1))
    units = X[rows, entities]
    assert_allclose(model.score(X), units @ share / units.sum(), rtol=1e-6)
    judged = leave_one_out(model, X).normalized_log_likelihood().value
    assert_allclose(judged, model.score(X), rtol=1e-6)


@pytest.mark.parametrize("name", COUNTS)
def test_conditional_is_the_own_mean(name: str, fitted: dict[str, Any]) -> None:
    model = fitted[name]
    some = X[:6]
    rows, entities = (part.ravel() for part in np.indices(some.shape))
    means = np.exp(blocks(model, some, rows, entities))
    own = means[np.arange(len(rows)), entities].reshape(some.shape)
    if isinstance(model.family_, efemb.Categorical):  # only shares mean anything
        own /= own.sum(axis=1, keepdims=True)
    assert_allclose(model.conditional(some), own, rtol=1e-6)


@pytest.mark.parametrize("name", COUNTS)
def test_dense_data_become_sparse_once_for_all_blocks(
    name: str, fitted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, calls = fitted[name], []

    def counted(data: Any) -> Any:
        calls.append(data)
        return sparse(data)

    for module in (base, ef_pca, hpf, item2vec, item_item, weighted_mf):
        monkeypatch.setattr(module, "sparse", counted, raising=False)
    monkeypatch.setattr(base, "CHUNK_NUMBERS", 1)  # the smallest blocks: 64 cells
    assert X.size > 2 * 64
    assert_allclose(model.conditional(X), model.conditional(csr_array(X)), rtol=1e-12)
    assert len(calls) == 2


@pytest.mark.parametrize("name", COUNTS)
def test_a_left_out_entry_does_not_matter(name: str, fitted: dict[str, Any]) -> None:
    changed = X.copy()
    changed[5, 3] = 7.0
    cells = np.array([5]), np.array([3])
    first, second = (blocks(fitted[name], data, *cells) for data in (X, changed))
    assert_allclose(first, second, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", COUNTS)
def test_seeds_formats_and_copies(name: str, fitted: dict[str, Any]) -> None:
    again = clone(COUNTS[name]).fit(csr_array(X))
    assert_allclose(again.score(X), fitted[name].score(X), rtol=1e-6)
    labeled = efemb.Dataset(csr_array(X), entities=list("abcdefghi"))
    model = clone(COUNTS[name]).fit(labeled)
    assert list(model.vocabulary_.labels) == list("abcdefghi")
    assert clone(model).get_params() == COUNTS[name].get_params()


@pytest.mark.parametrize(
    "name", [name for name in COUNTS if "random_state" in COUNTS[name].get_params()]
)
def test_the_seed_alone_decides_the_bits(name: str) -> None:
    first = clone(COUNTS[name]).fit(X)
    assert np.array_equal(first.beta_, clone(first).fit(csr_array(X)).beta_)
    other = clone(first).set_params(random_state=2).fit(X)
    assert not np.array_equal(first.beta_, other.beta_)


@pytest.mark.parametrize("name", ["EASE", "EDLAE", "item-kNN", "RP3beta", "rules"])
def test_a_huge_count_is_one_presence(name: str, fitted: dict[str, Any]) -> None:
    heavy = X.copy()
    heavy[tuple(np.argwhere(X > 0)[7])] = 1e5
    other = clone(COUNTS[name]).fit(heavy)
    assert not np.any(np.asarray((fitted[name].weights_ != other.weights_).sum()))
    assert fitted[name].score(X[2:9]) == other.score(X[2:9])


@pytest.mark.parametrize("name", COUNTS)
def test_bad_input(name: str, fitted: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="features"):
        fitted[name].score(X[:, :4])
    with pytest.raises(efemb.EfembError):
        fitted[name].log_means(X, [0], [99])
    with pytest.raises(efemb.DataError):
        clone(COUNTS[name]).set_params().fit(np.where(X > 0, np.inf, X))
    with pytest.raises(efemb.DataError, match="two or more"):
        fitted[name].score(X[:2])


@pytest.mark.parametrize("name", REALS)
def test_real_data(name: str) -> None:
    model = clone(REALS[name]).fit(REAL)
    assert isinstance(model, Model)
    found = model.conditional(REAL)
    assert found.shape == REAL.shape
    changed = REAL.copy()
    changed[4, 2] = 50.0
    assert_allclose(model.conditional(changed)[4, 2], found[4, 2], rtol=1e-5, atol=1e-7)
    hidden = REAL.copy()
    hidden[4, 2] = np.nan
    assert_allclose(model.conditional(hidden)[4, 2], found[4, 2], rtol=1e-5, atol=1e-7)
    assert np.isfinite(model.score(REAL))


# -- each against its definition -----------------------------------------------------------------


def test_popularity_is_the_share_of_units() -> None:
    # What never occurs counts as half a unit.
    units = np.maximum(X.sum(axis=0), 0.5)
    share = np.log(units / units.sum())
    known = np.count_nonzero(X, axis=1) > 1
    assert_allclose(Popularity().fit(X).score(X), (X[known] @ share).sum() / X[known].sum())


def test_factor_analysis_is_gaussian_conditioning() -> None:
    model = FactorAnalysis(2).fit(REAL)
    covariance = model.components_.T @ model.components_ + np.diag(model.noise_variance_)
    data = REAL[:12].copy()
    data[3, [0, 5]] = np.nan
    data[4, 6] = np.nan
    expected = np.empty_like(data)
    for t, row in enumerate(data):
        for n in range(len(row)):
            seen = ~np.isnan(row)
            seen[n] = False
            gain = np.linalg.solve(covariance[np.ix_(seen, seen)], row[seen] - model.mean_[seen])
            expected[t, n] = model.mean_[n] + covariance[n, seen] @ gain
    assert_allclose(model.conditional(data), expected, rtol=1e-8)


def test_hpf_folds_in_by_the_published_updates() -> None:
    model = HPF(2, random_state=0).fit(X)
    beta, geometric = model.beta_, model.geometric_beta_
    row, left = 7, int(np.flatnonzero(X[7])[0])
    kept = np.arange(X.shape[1]) != left
    xi, log_theta = model.a_prime + 2 * model.a, np.ones(2)
    rate_top = model.a_prime / model.b_prime
    expected_xi = xi / rate_top
    theta = np.ones(2)
    for _ in range(4000):
        shape = np.full(2, model.a)
        for n in np.flatnonzero(X[row] * kept):
            phi = log_theta * geometric[n]
            shape += X[row, n] * phi / phi.sum()
        rate = expected_xi + beta[kept].sum(axis=0)
        theta, log_theta = shape / rate, np.exp(digamma(shape)) / rate
        expected_xi = xi / (rate_top + theta.sum())
    found = np.exp(blocks(model, X, [row], [left])[0])
    assert_allclose(found, beta @ theta, rtol=1e-5)


@pytest.mark.parametrize("family", ["poisson", "bernoulli"])
def test_pca_folds_in_by_penalized_maximum_likelihood(family: str) -> None:
    data = X if family == "poisson" else (X > 0).astype(float)
    model = ExponentialFamilyPCA(2, family=family, random_state=0, dtype="float64").fit(data)
    row, left = 9, int(np.flatnonzero(data[9])[0])
    kept = np.arange(data.shape[1]) != left
    beta = model.beta_[kept]

    def loss(theta: Any) -> float:
        u = beta @ theta + model.intercept_[kept]
        normalizer = np.exp(u) if family == "poisson" else np.logaddexp(0.0, u)
        return float(normalizer.sum() - data[row, kept] @ u + 0.5 * model.penalty * theta @ theta)

    best = minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-9}).x
    u = model.beta_ @ best + model.intercept_
    mean = np.exp(u) if family == "poisson" else 1.0 / (1.0 + np.exp(-u))
    assert_allclose(np.exp(blocks(model, data, [row], [left])[0]), mean, rtol=1e-4)


def test_pca_has_found_a_maximum() -> None:
    model = ExponentialFamilyPCA(2, random_state=0, dtype="float64", max_iter=3000, tol=0.0)
    model.fit(X)
    u = model.theta_ @ model.beta_.T
    residual = X - np.exp(u)
    assert_allclose(residual @ model.beta_, model.penalty * model.theta_, atol=2e-2)
    assert_allclose(residual.T @ model.theta_, model.penalty * model.beta_, atol=2e-2)


def test_positive_pca_is_positive() -> None:
    model = ExponentialFamilyPCA(2, positive=True, random_state=0).fit(X)
    assert model.beta_.min() >= 0
    assert model.theta_.min() >= 0


def test_weighted_factors_are_weighted_least_squares() -> None:
    model = WeightedMF(2, zero_weight=0.3, penalty=0.5, random_state=0).fit(X)
    row, left = 11, int(np.flatnonzero(X[11])[0])
    weight = 0.3 + X[row]
    weight[left] = 0.0
    design = np.vstack([np.sqrt(weight)[:, None] * model.beta_, np.sqrt(0.5) * np.eye(2)])
    wanted = np.concatenate([np.sqrt(weight) * (X[row] > 0), np.zeros(2)])
    theta = np.linalg.lstsq(design, wanted, rcond=None)[0]
    expected = np.maximum(model.beta_ @ theta, 0.01)
    assert_allclose(np.exp(blocks(model, X, [row], [left])[0]), expected, rtol=1e-8)


def test_weighted_sweeps_lower_the_loss() -> None:
    def loss(model: Any) -> float:
        gap = (X > 0) - model.theta_ @ model.beta_.T
        size = (model.theta_**2).sum() + (model.beta_**2).sum()
        return float(((model.zero_weight + X) * gap**2).sum() + model.penalty * size)

    found = [loss(WeightedMF(2, max_iter=n, tol=0.0, random_state=0).fit(X)) for n in (1, 3, 10)]
    assert found[0] > found[1] > found[2]


def test_item2vec_averages_the_rest_of_the_row() -> None:
    model = ItemSkipGram(3, random_state=1, max_iter=2).fit(X)
    row, left = 13, int(np.flatnonzero(X[13])[0])
    others = [n for n in np.flatnonzero(X[row]) if n != left]
    u = model.beta_ @ model.embedding_[others].mean(axis=0) + model.log_noise_
    assert_allclose(blocks(model, X, [row], [left])[0], u, rtol=1e-10)


def test_items_that_training_never_saw_are_rare_not_impossible() -> None:
    train = np.tile([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]], (20, 1))
    model = ItemSkipGram(2, random_state=0, max_iter=1).fit(train)
    assert model.log_noise_[2] > model.log_noise_[0] - 5
    assert model.score([[1.0, 1.0, 1.0]]) > -6


def test_real_data_of_which_nothing_is_observed() -> None:
    nothing = np.full((3, 7), np.nan)
    with pytest.raises(efemb.DataError, match="nothing to score"):
        Popularity("gaussian").fit(REAL).score(nothing)
    model = efemb.GaussianEmbedding(2, context=efemb.Neighbors(2), tol=10.0, random_state=0)
    with pytest.raises(efemb.DataError, match="nothing to score"):
        model.fit(REAL).score(nothing)
    unseen = REAL.copy()
    unseen[:, 3] = np.nan
    with pytest.raises(efemb.DataError, match="entity 3 has no observed value"):
        Popularity().fit(unseen)


@pytest.mark.parametrize("name", ["HPF", "Poisson PCA", "weighted"])
def test_validation_without_entries_is_refused(name: str) -> None:
    for empty in (np.zeros_like(X), csr_array(X.shape)):
        with pytest.raises(efemb.DataError, match="validation is empty"):
            clone(COUNTS[name]).fit(X, validation=empty)


def test_factors_of_many_rows_are_those_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few numbers may be held at a time."""
    model = clone(COUNTS["weighted"]).fit(X)
    rows, items = np.nonzero(X)
    whole = model._factors(csr_array(X), rows, items)
    monkeypatch.setattr(weighted_mf, "CHUNK_NUMBERS", 1)
    assert_allclose(model._factors(csr_array(X), rows, items), whole, rtol=1e-10)


def test_tiny_shapes_give_numbers() -> None:
    train = np.where(np.arange(9) == 4, 0.0, X)  # an item that never occurs in training
    model = HPF(2, c=1e-3, random_state=0).fit(train)
    assert np.isfinite(model.score(X + (np.arange(9) == 4)))
