"""sample_weight after the fit: a row of weight 3 is three rows, a row of weight 0 is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.inference import fold_in, laplace
from inference import samples

WEIGHT = np.random.default_rng(5).integers(0, 4, 160)
BASKETS: dict[str, dict[str, Any]] = {
    "poisson": {},
    "bernoulli": {"family": "bernoulli"},
    "additive": {"link": "log", "prior": efemb.HalfNormal(1.0)},
    "fewer zeros": {"zeros": efemb.All(0.3)},
    "categorical": {"family": "categorical"},
}


def repeated(X: Any) -> Any:
    return np.repeat(X, WEIGHT[: len(X)], axis=0)


def basket(name: str) -> tuple[Any, Any]:
    options = {"family": "poisson", **BASKETS[name]}
    return samples.basket_model(**options), samples.counts(binary=options["family"] == "bernoulli")


def neurons(**options: Any) -> tuple[Any, Any]:
    X = samples.signals(160)
    X[3, 1] = X[7, 8] = np.nan
    settings = {"context": efemb.Neighbors(3), "dtype": "float64", "random_state": 0, **options}
    model = efemb.GaussianEmbedding(2, **settings)
    return samples.fit(model, samples.known(samples.labeled(X))), X


@pytest.mark.parametrize(
    ("name", "refit"),
    [
        *((name, refit) for name in ("poisson", "bernoulli", "neurons") for refit in (False, True)),
        ("fewer zeros", False),
        ("additive", True),  # a fit that was stopped is at no maximum of the weighted rows
    ],
)
def test_covariances_of_weighted_rows_are_those_of_repeated_ones(name: str, refit: bool) -> None:
    model, X = neurons() if name == "neurons" else basket(name)
    X = X[:, : samples.N_KNOWN]
    one = laplace(model, samples.labeled(X), refit=refit, sample_weight=WEIGHT)
    other = laplace(model, samples.labeled(repeated(X)), refit=refit)
    for n in ("a", "e"):
        assert_allclose(one.covariance(n), other.covariance(n), rtol=1e-4, atol=2e-6)
        assert_allclose(one.embedding(n), other.embedding(n), rtol=1e-3, atol=1e-4)


def test_a_sandwich_takes_the_weighted_scores() -> None:
    """Twice the weight is twice the information and four times the meat: nothing changes."""
    model, X = neurons(prior=efemb.Normal(1e-12))
    data = samples.labeled(X[:, : samples.N_KNOWN])
    once = laplace(model, data, sandwich=True)
    twice = laplace(model, data, sandwich=True, sample_weight=np.full(len(X), 2.0))
    assert_allclose(twice.covariance("a"), once.covariance("a"), rtol=1e-6)


@pytest.mark.parametrize("name", BASKETS)
def test_entities_are_folded_in_with_weighted_rows(name: str) -> None:
    model, X = basket(name)
    options = {"tol": 1e-7, "sweeps": 2, "prior": "model"}
    one = fold_in(model, samples.labeled(X), sample_weight=WEIGHT, **options)
    other = fold_in(model, samples.labeled(repeated(X)), **options)
    for left, right in zip(one.parameters.arrays(), other.parameters.arrays(), strict=True):
        assert_allclose(left, right, rtol=0.01, atol=0.003)


def test_neurons_are_folded_in_with_weighted_rows() -> None:
    """Also their neighbors are those of weighted correlations."""
    model, X = neurons()
    one = fold_in(model, samples.labeled(X), sample_weight=WEIGHT, tol=1e-9)
    other = fold_in(model, samples.labeled(repeated(X)), tol=1e-9)
    for left, right in zip(one.lists, other.lists, strict=True):
        np.testing.assert_array_equal(left.members, right.members)
    for left, right in zip(one.parameters.arrays(), other.parameters.arrays(), strict=True):
        assert_allclose(left, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("weight", [[1.0], np.full(160, -1.0), np.zeros(160), "heavy"])
def test_weights_that_are_none(weight: Any) -> None:
    model, X = basket("poisson")
    with pytest.raises((efemb.DataError, efemb.InputTypeError), match="sample_weight"):
        fold_in(model, samples.labeled(X), sample_weight=weight)
    with pytest.raises((efemb.DataError, efemb.InputTypeError), match="sample_weight"):
        laplace(model, samples.labeled(X[:, : samples.N_KNOWN]), sample_weight=weight)
