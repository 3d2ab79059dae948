"""Fitting simulated data finds the parameters that made them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import efemb

MODELS: dict[str, Any] = {
    "g-emb": efemb.GaussianEmbedding,
    "ng-emb": efemb.NonnegativeGaussianEmbedding,
    "p-emb": efemb.PoissonEmbedding,
    "ap-emb": efemb.AdditivePoissonEmbedding,
    "b-emb": efemb.BernoulliEmbedding,
    "categorical": efemb.CategoricalEmbedding,
}
CORRELATION = {"ap-emb": 0.5, "categorical": 0.7}


def fitted(model: str, data: efemb.Dataset) -> Any:
    if model == "negative-binomial":
        estimator: Any = efemb.Embedding(4, family="negative-binomial", random_state=0)
    else:
        estimator = MODELS[model](4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(data)


def baseline(train: Any, test: Any) -> float:
    """Popularity for counts, the mean and variance of each entity for real numbers."""
    if train.is_sparse:
        units = np.asarray(train.values.sum(axis=0)).ravel()
        sums = np.asarray(test.values.sum(axis=0)).ravel()
        return float(sums @ np.log(np.maximum(units, 0.5) / units.sum()) / sums.sum())
    mean, variance = train.values.mean(axis=0), train.values.var(axis=0)
    gap = (test.values - mean) ** 2 / variance
    return float(-0.5 * (np.log(2 * np.pi * variance) + gap).mean())


def products(parameters: efemb.model.parameters.Parameters) -> np.ndarray:
    """rho_n . alpha_m without what an average context cannot tell: a constant for each n."""
    weights = parameters.rho @ parameters.alpha.T
    np.fill_diagonal(weights, np.nan)
    return weights - np.nanmean(weights, axis=1, keepdims=True)


@pytest.mark.slow
@pytest.mark.parametrize("model", [*MODELS, "negative-binomial"])
def test_parameters_are_recovered(model: str) -> None:
    truth = efemb.simulation.simulate(model, n_rows=4000, n_entities=40, n_components=4, seed=1)
    train, test = truth.data.split(test=0.1, seed=0)
    found = fitted(model, train)
    assert found.score(test) > baseline(train, test) + 0.02
    # The model itself predicts its data about as well as the fit does.
    known = efemb.fitted.FittedEmbedding(truth.parameters, truth.spec, lists=found.fitted().lists)
    assert known.score(test) > baseline(train, test) + 0.02
    true, fit = products(truth.parameters), products(found.parameters_)
    context = ~np.isnan(true)
    if not truth.data.is_sparse:
        (part,) = found.fitted().lists
        context[:] = False
        context[part.owner, part.members] = True
    correlation = np.corrcoef(true[context], fit[context])[0, 1]
    assert correlation > CORRELATION.get(model, 0.85)


def test_names_are_the_presets() -> None:
    for name, preset in MODELS.items():
        spec = efemb.simulation.simulate(
            name, n_rows=3, n_entities=4, n_components=1, sweeps=1
        ).spec
        # Data are drawn with known numbers where the presets leave them to the data.
        known = {"family": spec.family, "prior": (spec.prior_rho, spec.prior_alpha)}
        real = issubclass(preset, efemb.GaussianEmbedding)
        assert spec == preset(**(known if real else {}))._spec()


@pytest.mark.slow
def test_past_only_contexts_are_drawn_exactly() -> None:
    truth = efemb.simulation.simulate(
        "g-emb",
        n_rows=20_000,
        n_entities=4,
        n_components=2,
        context=efemb.Lagged((-1,)),
        intercept=False,
        seed=3,
    )
    assert truth.sampler == "sequential"
    weights = np.einsum("nk,nk->n", truth.parameters.rho, truth.parameters.alpha)
    x = truth.data.values
    slopes = (x[1:] * x[:-1]).sum(axis=0) / (x[:-1] ** 2).sum(axis=0)
    np.testing.assert_allclose(slopes, weights, atol=0.03)
    assert np.std(x[1:] - weights * x[:-1]) == pytest.approx(1.0, abs=0.02)


def test_symmetric_gaussian_graph_has_the_exact_covariance() -> None:
    size = 6
    ring = np.zeros((size, size))
    ring[np.arange(size), (np.arange(size) + 1) % size] = 1.0
    truth = efemb.simulation.simulate(
        "g-emb",
        n_rows=40_000,
        n_entities=size,
        n_components=2,
        context=efemb.Graph(ring + ring.T),
        intercept=False,
        sweeps=30,
        seed=0,
    )
    weights = (truth.parameters.rho @ truth.parameters.alpha.T) * (ring + ring.T)
    # Conditionals with symmetric weights W are those of a normal of precision I - W.
    covariance = np.linalg.inv(np.eye(size) - weights)
    np.testing.assert_allclose(np.cov(truth.data.values.T), covariance, atol=0.08)
