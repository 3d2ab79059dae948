"""Exponential-family PCA against finite differences, scipy's minimizer and ridge regression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.optimize import check_grad, minimize
from scipy.sparse import csr_array

import efemb
from efemb.baselines import ExponentialFamilyPCA, low_rank
from efemb.baselines.low_rank import FactorSearch
from efemb.model.families import Family

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(RNG.gamma(1.0, 1.0, (40, 2)) @ RNG.gamma(0.7, 0.8, (2, 8))).astype(float)
COUNTS[0] = 0.0
REAL = RNG.normal(size=(50, 2)) @ RNG.normal(size=(2, 6)) + 0.4 * RNG.normal(size=(50, 6)) + 1.0


def data_of(family: str) -> Any:
    if family == "gaussian":
        return REAL
    return COUNTS if family == "poisson" else (COUNTS > 0).astype(float)


def normalizer(family: str, u: Any) -> Any:
    if family == "gaussian":
        return 0.5 * u * u
    return np.exp(u) if family == "poisson" else np.logaddexp(0.0, u)


def mean(family: str, u: Any) -> Any:
    if family == "gaussian":
        return u
    return np.exp(u) if family == "poisson" else 1.0 / (1.0 + np.exp(-u))


def log_means(model: Any, X: Any, rows: Any, entities: Any) -> Any:
    return np.concatenate([means for _, means in model.log_means(X, rows, entities)])


@pytest.mark.parametrize("family", ["poisson", "bernoulli", "gaussian"])
@pytest.mark.parametrize("intercept", [False, True], ids=["no intercept", "intercept"])
@pytest.mark.parametrize("positive", [False, True], ids=["signed", "positive"])
def test_objective_and_gradient(family: str, intercept: bool, positive: bool) -> None:
    X = data_of(family)[:9].copy()
    masked = np.zeros(X.shape, dtype=bool)
    masked[2, 3] = masked[5, 0] = masked[5, 1] = True
    X[masked] = 0.0
    stored = X if family == "gaussian" else csr_array(X)
    options = {"penalty": 1.3, "positive": positive, "has_intercept": intercept, "dtype": "float64"}
    rng = np.random.default_rng(2)
    search = FactorSearch(stored, csr_array(masked), Family.resolve(family), 2, rng, **options)
    search.block = 4  # several blocks
    start = search.search.x + 0.1 * rng.normal(size=search.search.x.shape)
    theta, beta, offset = search.vectors(start)
    u = theta @ beta.T + offset
    terms = np.where(masked, 0.0, X * u - normalizer(family, u))
    expected = terms.sum() - 0.65 * ((theta**2).sum() + (beta**2).sum())
    assert_allclose(search._evaluate(start)[0], expected, rtol=1e-9)
    value, slope = (lambda x, i=i: search._evaluate(x)[i] for i in (0, 1))
    size = np.abs(slope(start)).max()
    assert check_grad(value, slope, start) < 1e-5 * max(size, 1.0) * np.sqrt(start.size)


def recovered(model: Any, row: Any, left: int, family: str) -> Any:
    """theta of a row without one cell, by a general minimizer."""
    kept = np.arange(len(row)) != left
    beta, offset, x = model.beta_[kept], model.intercept_[kept], row[kept]

    def loss(theta: Any) -> tuple[float, Any]:
        u = beta @ theta + offset
        value = normalizer(family, u).sum() - x @ u + 0.5 * model.penalty * theta @ theta
        return float(value), (mean(family, u) - x) @ beta + model.penalty * theta

    bounds = [(0.0, None)] * beta.shape[1] if model.positive else None
    options = {"ftol": 1e-15, "gtol": 1e-11, "maxiter": 10_000}
    start = np.full(beta.shape[1], 0.1)
    return minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x


@pytest.mark.parametrize("family", ["poisson", "bernoulli"])
@pytest.mark.parametrize("positive", [False, True], ids=["signed", "positive"])
@pytest.mark.parametrize("steps", [60, 1], ids=["chords", "Newton"])
def test_every_cell_is_left_out_of_its_own_fold_in(
    family: str, positive: bool, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(low_rank, "CHORD_STEPS", steps)
    X = data_of(family)
    options = {"family": family, "positive": positive, "penalty": 0.5, "intercept": positive}
    model = ExponentialFamilyPCA(3, random_state=0, max_iter=60, dtype="float64", **options)
    model.fit(X)
    rows, entities = (part.ravel() for part in np.indices((5, X.shape[1])))
    found = log_means(model, X, rows, entities)
    for got, t, n in zip(found, rows, entities, strict=True):
        u = model.beta_ @ recovered(model, X[t], n, family) + model.intercept_
        assert_allclose(np.exp(got), mean(family, u), rtol=1e-4)


@pytest.mark.parametrize("intercept", [False, True], ids=["no intercept", "intercept"])
def test_gaussian_cells_are_ridge_regressions(intercept: bool) -> None:
    X = REAL.copy()
    X[3, 2] = X[3, 4] = X[7, 0] = np.nan
    model = ExponentialFamilyPCA(
        2, family="gaussian", penalty=2.0, intercept=intercept, random_state=0
    ).fit(X)
    found = model.conditional(X)
    for t in (3, 7, 8):
        for n in range(X.shape[1]):
            seen = ~np.isnan(X[t])
            seen[n] = False
            beta = model.beta_[seen]
            gap = X[t, seen] - model.intercept_[seen]
            theta = np.linalg.solve(beta.T @ beta + 2.0 * np.eye(2), beta.T @ gap)
            assert_allclose(found[t, n], model.beta_[n] @ theta + model.intercept_[n], rtol=1e-7)
    # Missing numbers are not learned from: whatever would have been there.
    residual = np.where(np.isnan(X), 0.0, X - model.theta_ @ model.beta_.T - model.intercept_)
    assert_allclose(residual @ model.beta_, 2.0 * model.theta_, atol=0.2)
    assert model.family_.variance < np.nanvar(X)


def test_positive_means_are_at_least_one_without_an_intercept() -> None:
    model = ExponentialFamilyPCA(2, positive=True, penalty=1.0, random_state=0).fit(COUNTS)
    assert model.conditional(COUNTS[:5]).min() >= 1.0
    found = log_means(model, COUNTS, np.arange(5), np.arange(5))
    assert found.min() >= 0.0


@pytest.mark.parametrize("kind", ["entries", "rows"])
@pytest.mark.parametrize("family", ["poisson", "gaussian"])
def test_stops_on_validation(kind: str, family: str) -> None:
    X = data_of(family)
    train, held = X[:30], X[30:]
    if kind == "entries":
        out = np.zeros(X.shape, dtype=bool)
        out[np.arange(1, 40, 2), np.arange(20) % X.shape[1]] = True
        none = np.nan if family == "gaussian" else 0.0
        train, held = np.where(out, none, X), np.where(out, np.maximum(X, 1.0), none)
    model = ExponentialFamilyPCA(2, family=family, penalty=0.5, random_state=0, dtype="float64")
    model.fit(train, validation=held)
    scores = [look["score"] for look in model.history_]
    assert model.best_iter_ == model.history_[int(np.argmax(scores))]["iteration"]
    if kind == "rows":
        best = -np.mean((model.conditional(held) - held) ** 2)
        assert_allclose(best if family == "gaussian" else model.score(held), max(scores), rtol=1e-7)
    elif family == "gaussian":
        best = -np.mean((model.conditional(train)[out] - held[out]) ** 2)
        assert_allclose(best, max(scores), rtol=1e-7)
    else:
        assert_allclose(entry_score(model, held), max(scores), rtol=1e-7)


def entry_score(model: Any, held: Any) -> float:
    """Held-out entries with the vectors that their rows were given without them."""
    total = 0.0
    for t, n in zip(*held.nonzero(), strict=True):
        means = [np.exp(model.theta_[t] @ beta) for beta in model.beta_]
        total += held[t, n] * np.log(means[n] / sum(means))
    return total / held.sum()


def test_rows_that_can_be_scored_stop_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where only one of them is looked at, and the first has a single item."""
    monkeypatch.setattr("efemb.baselines.ef_pca.LOOK", 1)
    held = np.zeros((5, 8))
    held[0, 1] = 1.0
    held[3, [1, 2]] = 1.0
    ExponentialFamilyPCA(2, random_state=0, max_iter=3).fit(COUNTS, validation=held)


def test_families_know_the_variance_of_a_mean() -> None:
    mean = np.array([0.2, 0.5, 0.9])
    np.testing.assert_allclose(efemb.Poisson().variance_of_mean(mean), stats.poisson(mean).var())
    coin = stats.bernoulli(mean)
    np.testing.assert_allclose(efemb.Bernoulli().variance_of_mean(mean), coin.var())
    np.testing.assert_allclose(efemb.Gaussian(2.5).variance_of_mean(mean), 2.5)
    with pytest.raises(efemb.ParameterError, match="variance_of_mean"):
        efemb.Categorical().variance_of_mean(mean)
