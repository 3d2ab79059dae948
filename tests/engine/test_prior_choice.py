"""Priors that are left to the data: the evidence, the ridge on weights, and what defaults reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

import efemb
from efemb import Gaussian, Neighbors, Normal
from efemb.baselines import NeighborRidge
from efemb.engine.solvers.moments.evidence import (
    DISTANCE_POWER,
    GRID,
    PRIOR_ROWS,
    PRIOR_SHARE,
    distance_factors,
    measure_evidence,
    pool_evidence,
    ridge_weights,
)
from efemb.errors import InputTypeError, ParameterError
from efemb.model.contexts.neighbors import nearest
from efemb.model.parameters import Parameters

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def recording(n_rows: int = 120, n: int = 20, seed: int = 0, noise: float = 0.5) -> tuple[Any, Any]:
    """Smooth activity on a line, with a mean of its own for each cell."""
    rng = np.random.default_rng(seed)
    places = np.sort(rng.uniform(0, 10, n))[:, None]
    kernel = np.exp(-((places - places.T) ** 2))
    activity = rng.normal(size=(n_rows, n)) @ np.linalg.cholesky(kernel + 1e-6 * np.eye(n)).T
    return activity + noise * rng.normal(size=(n_rows, n)) + rng.normal(3.0, 2.0, n), places


def test_the_evidence_is_the_marginal_likelihood() -> None:
    rng = np.random.default_rng(1)
    Z, factor = rng.normal(size=(30, 4)), np.array([0.5, 1.0, 2.0, 4.0])
    x = Z @ np.array([0.8, -0.5, 0.2, 0.0]) + 0.7 * rng.normal(size=30)
    found = measure_evidence(Z.T @ Z, Z.T @ x, x @ x, 30.0, factor)
    assert found.size == pytest.approx(np.trace(Z.T @ Z) / 4)
    scores = []
    # The weak prior of the variance is two more rows, whose squares add up to this.
    more = PRIOR_ROWS * PRIOR_SHARE * (x @ x) / 30
    for ridge, variance in zip(found.size * GRID, found.variance, strict=True):
        covariance = np.eye(30) + (Z / factor) @ Z.T / ridge
        best = (x @ np.linalg.solve(covariance, x) + more) / (30 + PRIOR_ROWS)
        assert variance == pytest.approx(best)
        density = multivariate_normal(np.zeros(30), best * covariance).logpdf(x)
        scores.append(density - 0.5 * PRIOR_ROWS * np.log(best) - 0.5 * more / best)
    assert_allclose(np.diff(found.log_evidence), np.diff(scores), rtol=1e-6, atol=1e-8)


def test_noise_is_shrunk_away_and_signal_is_not() -> None:
    rng = np.random.default_rng(2)
    Z, ones = rng.normal(size=(50, 5)), np.ones(5)
    noise = rng.normal(size=(50, 40))
    signal = Z.sum(axis=1, keepdims=True) + 0.1 * rng.normal(size=(50, 40))
    for values, shrunk in ((noise, True), (signal, False)):
        evidence = [measure_evidence(Z.T @ Z, Z.T @ x, x @ x, 50.0, ones) for x in values.T]
        probability = pool_evidence(np.stack([one.log_evidence for one in evidence]))
        assert_allclose(probability.sum(axis=1), 1.0)
        ridge = np.exp(probability @ np.log(GRID))
        assert (ridge > 5.0).all() if shrunk else (ridge < 0.1).all()


def test_an_entity_without_members_or_values_has_no_ridge() -> None:
    none = np.zeros((0, 0)), np.zeros(0)
    found = measure_evidence(*none, 4.0, 2.0, np.zeros(0))
    assert (found.size, found.variance[0]) == (0.0, 2.0)
    assert measure_evidence(np.zeros((2, 2)), np.zeros(2), 0.0, 0.0, np.ones(2)).size == 0.0
    assert ridge_weights(np.zeros((2, 2)), np.zeros(2), np.array([0.0]))[0].tolist() == [0.0, 0.0]


def test_factors_grow_with_distance() -> None:
    distance = np.array([1.0, 2.0, 3.0])
    assert_allclose(distance_factors(distance, 3), (distance / 2.0) ** DISTANCE_POWER)
    assert distance_factors(None, 3).tolist() == [1.0, 1.0, 1.0]
    assert distance_factors(np.zeros(3), 3).tolist() == [1.0, 1.0, 1.0]


def test_long_vectors_with_a_ridge_are_a_ridge_regression() -> None:
    X, places = recording()
    options: dict[str, Any] = {"prior": Normal(1e-4), "early_stopping": False, "dtype": "float64"}
    model = efemb.GaussianEmbedding(
        30, context=Neighbors(6), weight_ridge=5.0, max_iter=5, random_state=0, **options
    ).fit(X, positions=places)
    members = nearest(places, 6)
    distance = np.abs(places[members, 0] - places)
    means, factor = X.mean(axis=0), (distance / distance.mean()) ** DISTANCE_POWER
    factor = np.maximum(factor, 0.05**DISTANCE_POWER)
    for n in (0, 7):
        Z, x = X[:, members[n]] - means[members[n]], X[:, n] - means[n]
        weights = np.linalg.solve(Z.T @ Z + 5.0 * np.diag(factor[n]), Z.T @ x)
        assert_allclose(model.conditional(X)[:, n], means[n] + Z @ weights, rtol=1e-3, atol=1e-3)


def test_the_objective_has_the_ridge_in_it() -> None:
    X, places = recording(40, 8)
    model = efemb.GaussianEmbedding(
        2, context=Neighbors(3), family=Gaussian(2.0), prior=Normal(3.0), weight_ridge=4.0
    )
    rng = np.random.default_rng(0)
    at = Parameters(rng.normal(size=(8, 2)), rng.normal(size=(8, 2)), rng.normal(size=8))
    value, gradient = model.objective(X, at, positions=places)
    members, means = nearest(places, 3), X.mean(axis=0)
    distance = np.abs(places[members, 0] - places)
    factor = np.maximum(distance / distance.mean(), 0.05) ** DISTANCE_POWER
    weights = np.einsum("nk,nck->nc", at.rho, at.alpha[members])
    u = np.einsum("tnc,nc->tn", X[:, members] - means[members], weights) + at.intercept
    density = -0.5 * (X - u) ** 2 / 2.0 - 0.5 * np.log(2 * np.pi * 2.0)
    prior = -1.5 * (at.rho**2).sum() - 1.5 * (at.alpha**2).sum()
    assert value == pytest.approx(
        density.sum() + prior - (factor * weights**2).sum() * 4.0 / (2 * 2.0)
    )
    step = 1e-5
    for array, slope in ((at.rho, gradient.rho), (at.alpha, gradient.alpha)):
        array[1, 0] += step
        high = model.objective(X, at, positions=places)[0]
        array[1, 0] -= 2 * step
        low = model.objective(X, at, positions=places)[0]
        array[1, 0] += step
        assert slope[1, 0] == pytest.approx((high - low) / (2 * step), rel=1e-5)


SHAPES = {
    "few rows": (14, 20, 0.5),
    "many rows": (2000, 12, 0.5),
    "few cells": (100, 3, 0.5),
    "mostly noise": (60, 20, 20.0),
    "hardly noise": (60, 20, 0.01),
}


@pytest.mark.quick_one_in(5)
@pytest.mark.parametrize("unit", [1.0, 1000.0, 1e-3])
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("shape", SHAPES)
def test_defaults_are_not_worse_than_the_mean(shape: str, missing: float, unit: float) -> None:
    rows, cells, noise = SHAPES[shape]
    ratios = []
    for seed in range(3):
        X, places = recording(rows + 400, cells, seed, noise)
        X *= unit
        if missing:
            X[np.random.default_rng(seed).random(X.shape) < missing] = np.nan
        train, test = X[:rows], X[rows:]
        model = efemb.GaussianEmbedding(random_state=0).fit(train, positions=places)
        plain = np.nanmean((np.nanmean(train, axis=0) - test) ** 2)
        ratios.append(np.nanmean((model.conditional(test) - test) ** 2) / plain)
    assert np.mean(ratios) <= 1.005


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("c", [5, 15])
def test_defaults_are_not_worse_than_a_tuned_ridge(seed: int, c: int) -> None:
    X, places = recording(300, 40, seed)
    train, held, test = X[:80], X[80:100], X[100:]
    context = Neighbors(c, positions=places)
    model = efemb.GaussianEmbedding(20, context=context, random_state=0)
    model.fit(train, validation=held)
    rival = NeighborRidge(context).fit(train, validation=held)
    ours, theirs = (((m.conditional(test) - test) ** 2).mean(axis=1) for m in (model, rival))
    assert (ours - theirs).mean() <= (ours - theirs).std() / np.sqrt(len(test))


def test_what_was_chosen_is_reported_and_kept(tmp_path: Any) -> None:
    X, places = recording()
    model = efemb.GaussianEmbedding(8, random_state=0).fit(X, positions=places)
    precision = model.fitted().spec.prior_rho.precision
    assert model.report_["prior"] == repr(Normal(precision))
    assert model.report_["weight_ridge"] > 0
    assert isinstance(model.family_.sigma2, float)
    model.save(tmp_path / "model")
    loaded = efemb.load(tmp_path / "model")
    assert np.array_equal(loaded.conditional(X), model.conditional(X))
    ridge, saved = model.fitted().lists[0].ridge, loaded.lists[0].ridge
    assert np.array_equal(ridge, saved)
    again = efemb.GaussianEmbedding.from_fitted(loaded).partial_fit(X)
    assert np.array_equal(again.fitted().lists[0].ridge, ridge)
    assert again.fitted().spec.prior_rho == model.fitted().spec.prior_rho


def test_any_number_of_threads_gives_the_same_bits() -> None:
    X, places = recording(60, 600)
    one, two = (
        efemb.GaussianEmbedding(5, random_state=0, n_jobs=jobs, max_iter=3).fit(X, positions=places)
        for jobs in (1, 2)
    )
    assert np.array_equal(one.rho_, two.rho_)


def test_the_paper_keeps_its_settings() -> None:
    X, places = recording(60, 60)
    model = efemb.GaussianEmbedding.paper(5, random_state=0).fit(X, positions=places)
    spec = model.fitted().spec
    assert (spec.prior_rho, spec.family.sigma2, spec.weight_ridge) == (Normal(10.0), 1.0, None)
    assert model.fitted().lists[0].center is None
    assert "prior" not in model.report_


def test_a_prior_of_ones_own_has_no_ridge_unless_asked() -> None:
    X, places = recording(60)
    plain = efemb.GaussianEmbedding(5, prior=Normal(2.0), random_state=0).fit(X, positions=places)
    assert plain.fitted().lists[0].ridge is None
    assert plain.fitted().spec.prior_rho == Normal(2.0)


def test_other_solvers_take_precision_one() -> None:
    X, places = recording(60, 6)
    model = efemb.GaussianEmbedding(2, solver="generic", random_state=0, max_iter=3)
    model.fit(X, positions=places)
    assert model.fitted().spec.prior_rho == Normal(1.0)
    assert model.report_["prior"] == "Normal()"
    with pytest.raises(ParameterError, match="needs Gram matrices"):
        efemb.GaussianEmbedding(2, solver="generic", weight_ridge=3.0).fit(X, positions=places)


@pytest.mark.parametrize(
    ("value", "error"), [(-1.0, ParameterError), (np.inf, ParameterError), ("a", InputTypeError)]
)
def test_bad_ridges(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"weight_ridge.* must be"):
        efemb.GaussianEmbedding(2, weight_ridge=value).fit(np.eye(4))


def test_positive_vectors_have_a_half_normal_prior() -> None:
    X, places = recording(60)
    model = efemb.NonnegativeGaussianEmbedding(5, random_state=0).fit(X, positions=places)
    assert model.report_["prior"].startswith("HalfNormal(")
    assert (model.rho_ > 0).all()
