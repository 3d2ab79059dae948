"""Factor analysis against conditioning of the full covariance matrix."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, norm
from sklearn.decomposition import FactorAnalysis as ScikitLearn
from sklearn.utils.estimator_checks import parametrize_with_checks

import efemb
from efemb.baselines import ExponentialFamilyPCA, FactorAnalysis, Popularity
from efemb.baselines.low_rank import predict_left_out


def signals(n_rows: int = 90, n_entities: int = 7, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, 2)) @ rng.normal(size=(2, n_entities)) + rng.normal(
        3.0, rng.uniform(0.2, 1.0, n_entities), (n_rows, n_entities)
    )


def conditioned(gap: Any, covariance: Any) -> tuple[Any, Any]:
    """Mean and variance of each number given the other observed ones, one dense solve a cell."""
    mean, variance = np.empty_like(gap), np.empty_like(gap)
    for t, row in enumerate(gap):
        for n in range(len(row)):
            seen = ~np.isnan(row)
            seen[n] = False
            between = covariance[n, seen]
            gain = np.linalg.solve(covariance[np.ix_(seen, seen)], between)
            mean[t, n] = gain @ row[seen]
            variance[t, n] = covariance[n, n] - gain @ between
    return mean, variance


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.floats(0.0, 1.0))
def test_any_pattern_of_missing_numbers(seed: int, size: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    loadings, noise = rng.normal(size=(6, size)), rng.uniform(0.05, 2.0, 6)
    gap = rng.normal(size=(5, 6))
    gap[rng.random(gap.shape) < share] = np.nan
    gap[3] = gap[1]  # two rows of one pattern
    expected = conditioned(gap, loadings @ loadings.T + np.diag(noise))
    done: list[int] = []
    found = predict_left_out(gap, loadings, noise, done.append)
    assert_allclose(found[0], expected[0], rtol=1e-7, atol=1e-9)
    assert_allclose(found[1], expected[1], rtol=1e-7)
    assert sum(done) == len(gap)


def test_an_entity_without_noise() -> None:
    """Numbers that the factors determine: 1 - h is too small to be divided by."""
    rng = np.random.default_rng(1)
    loadings, noise = rng.normal(size=(5, 2)), np.array([1e-12, 0.5, 0.3, 1e-12, 0.2])
    gap = rng.normal(size=(4, 5))
    gap[2, 1] = np.nan
    expected = conditioned(gap, loadings @ loadings.T + np.diag(noise))
    mean, variance = predict_left_out(gap, loadings, noise, lambda _: None)
    assert_allclose(mean, expected[0], rtol=1e-3, atol=1e-4)
    assert_allclose(variance, expected[1], rtol=1e-3)


@pytest.mark.parametrize("unit", [1e-13, 1e-6, 1e5])
def test_the_unit_of_the_data_changes_nothing_but_the_unit(unit: float) -> None:
    X = signals()
    plain, other = FactorAnalysis(2).fit(X), FactorAnalysis(2).fit(unit * X)
    assert_allclose(other.conditional(unit * X), unit * plain.conditional(X), rtol=1e-6)
    assert_allclose(other.score(unit * X) + np.log(unit), plain.score(X), rtol=1e-6)


def test_fit_is_scikit_learns_and_score_the_mean_log_density() -> None:
    X = signals()
    model = FactorAnalysis(2, tol=1e-8).fit(X)
    theirs = ScikitLearn(2, tol=1e-8, svd_method="lapack").fit(X)
    covariance = theirs.get_covariance()
    assert_allclose(
        model.components_.T @ model.components_ + np.diag(model.noise_variance_),
        covariance,
        rtol=1e-3,
    )
    new = signals(12, seed=5)
    new[4, 3] = np.nan
    own = model.components_.T @ model.components_ + np.diag(model.noise_variance_)
    mean, variance = conditioned(new - model.mean_, own)
    density = norm.logpdf(new, model.mean_ + mean, np.sqrt(variance))
    assert_allclose(model.conditional(new), model.mean_ + mean, rtol=1e-8)
    assert_allclose(model.log_densities(new), density, rtol=1e-8)
    assert_allclose(model.score(new), np.nanmean(density), rtol=1e-8)
    assert isinstance(model.family_, efemb.Gaussian)


@pytest.mark.parametrize(
    ("X", "error", "words"),
    [
        (
            np.where(np.arange(7) == 3, np.nan, signals()),
            efemb.DataError,
            "without an observed value: 1 .first: 3",
        ),
        (signals()[:, :, None], efemb.DataError, "one number per observation"),
        (signals()[:1], efemb.DataError, "at least 2 rows"),
    ],
)
def test_bad_input(X: Any, error: type[Exception], words: str) -> None:
    model = FactorAnalysis(2)
    with pytest.raises(error, match=words):
        model.fit(X)
    assert not hasattr(model, "components_")


def observed_log_likelihood(model: Any, X: Any) -> float:
    """Of every row, by the density of the numbers that it has."""
    covariance = model.components_.T @ model.components_ + np.diag(model.noise_variance_)
    total = 0.0
    for row in X:
        seen = ~np.isnan(row)
        part = multivariate_normal(model.mean_[seen], covariance[np.ix_(seen, seen)])
        total += float(part.logpdf(row[seen]))
    return total


@pytest.mark.slow
def test_missing_numbers_are_left_out_of_the_likelihood() -> None:
    X = signals(200)
    holes = X.copy()
    holes[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    steps = [FactorAnalysis(2, max_iter=n, tol=0.0).fit(holes) for n in (2, 4, 20, 400)]
    values = [observed_log_likelihood(model, holes) for model in steps]
    assert np.all(np.diff(values) > 0)
    best, rng = steps[-1], np.random.default_rng(2)
    for name in ("mean_", "components_", "noise_variance_"):  # nothing nearby is better
        for _ in range(5):
            other = copy.copy(best)
            array = getattr(best, name)
            setattr(other, name, array * (1 + 0.01 * rng.normal(size=array.shape)))
            assert observed_log_likelihood(other, holes) < values[-1]
    new = signals(300, seed=5)
    filled = FactorAnalysis(2).fit(np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes))
    ours, theirs = (((m.conditional(new) - new) ** 2).mean() for m in (best, filled))
    assert ours < theirs


def test_a_single_gap_is_nearly_the_fit_of_complete_data() -> None:
    X = signals(300)
    holes = X.copy()
    holes[0, 0] = np.nan
    whole, gap = FactorAnalysis(2, tol=1e-6).fit(X), FactorAnalysis(2, tol=1e-6).fit(holes)
    assert_allclose(gap.conditional(X), whole.conditional(X), atol=0.05)


@pytest.mark.parametrize("model", [FactorAnalysis(2), Popularity("gaussian")], ids=["FA", "mean"])
def test_an_entity_that_never_varied_may_vary_later(model: Any) -> None:
    X = signals()
    X[:, 4] = 2.0
    model.fit(X)
    new = signals(5, seed=2)
    assert_allclose(model.conditional(new)[:, 4], 2.0)
    variance = getattr(model, "noise_variance_", getattr(model, "variance_", None))
    assert variance is not None
    assert_allclose(variance[4], np.delete(variance, 4).mean())
    assert model.log_densities(new)[:, 4].min() > -100.0


def test_counts_have_log_means_and_real_numbers_densities() -> None:
    model = FactorAnalysis(2).fit(signals())
    with pytest.raises(efemb.ParameterError, match="counts or binary"):
        model.log_means(signals(), [0], [0])
    with pytest.raises(efemb.ParameterError, match="real data"):
        Popularity().fit([[1, 2], [3, 0]]).log_densities([[1, 2], [3, 0]])


@pytest.mark.quick_one_in(5)
@parametrize_with_checks(
    [
        Popularity(),
        FactorAnalysis(1),
        ExponentialFamilyPCA(1, family="gaussian", max_iter=20, random_state=0),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)
