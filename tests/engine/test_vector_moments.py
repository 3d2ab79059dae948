"""Observations of several numbers by Gram matrices: the objective of the generic solver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.engine.solvers.choice import choose_solver
from efemb.model.factors import Factors
from efemb.model.spec import Spec
from engine import models

T, N, D, K = 40, 5, 3, 2
X = np.random.default_rng(0).normal(size=(T, N, D))
GAPS = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
CONTEXTS: dict[str, Any] = {
    "neighbors": efemb.Neighbors(2),
    "lags": efemb.Lagged((1, 2)),
    "graph": efemb.Graph(np.triu(np.ones((N, N)), 1), weights=True),
    "sum": efemb.Neighbors(2) + efemb.Lagged((1,)),
}


def solvers(context: Any, values: Any, **options: Any) -> list[Any]:
    spec = Spec.resolve(
        context=context, family=efemb.Gaussian(0.7), link="identity", prior="normal", **options
    )
    data = efemb.Dataset(values, positions=np.arange(N, dtype=float)[:, None])
    bound = context.bind(data)
    assert choose_solver("auto", bound, spec) == "moments"
    weight = np.linspace(0.5, 1.5, T)
    return [models.solver(name, bound, spec, row_weight=weight) for name in ("moments", "generic")]


def vectors(n_slots: int) -> Factors:
    rng = np.random.default_rng(2)
    sizes = ((N * D, K), (n_slots * N * D, K), (N * D,))
    return Factors(*(rng.normal(size=size) for size in sizes))


@pytest.mark.parametrize("values", [X, GAPS], ids=["complete", "missing"])
@pytest.mark.parametrize("name", CONTEXTS)
def test_value_and_gradient_are_those_of_single_observations(name: str, values: Any) -> None:
    moments, generic = solvers(CONTEXTS[name], values)
    at = vectors(generic.bound.n_slots)
    (value, slopes), (wanted, others) = (one.value_and_gradient(at) for one in (moments, generic))
    assert_allclose(value, wanted, rtol=1e-9)
    for array in ("target", "bag", "intercept"):
        assert_allclose(getattr(slopes, array), getattr(others, array), rtol=1e-7, atol=1e-8)
    assert_allclose(moments.total_weight, generic.total_weight)


@pytest.mark.parametrize(
    "options",
    [{"context": efemb.Neighbors(2, scale="items")}, {"family": efemb.Gaussian("per-entity")}],
    ids=["scale", "variances"],
)
def test_what_numbers_by_themselves_would_change_stays_generic(options: dict[str, Any]) -> None:
    settings = {"context": efemb.Neighbors(2), "family": efemb.Gaussian(0.7), **options}
    spec = Spec.resolve(link="identity", prior="normal", **settings)
    bound = settings["context"].bind(efemb.Dataset(X))
    assert choose_solver("auto", bound, spec) == "generic"


def test_a_fit_finds_what_made_the_data() -> None:
    """Each number follows other numbers of the neighbor; lists and vectors keep their shapes."""
    rng = np.random.default_rng(3)
    data = rng.normal(size=(600, 4, 2))
    data[:, 1] = data[:, 0, ::-1] + 0.1 * rng.normal(size=(600, 2))
    model = efemb.GaussianEmbedding(4, context=efemb.Neighbors(1), random_state=0)
    model.fit(data, positions=np.array([[0.0], [1.0], [5.0], [6.0]]))
    assert model.solver_ == "moments"
    assert model.rho_.shape == (4, 4, 2)  # entities, K, numbers
    predicted = model.conditional(data)
    assert predicted.shape == data.shape
    error = ((predicted - data) ** 2).mean(axis=(0, 2))
    assert (error[:2] < 0.05).all()
    assert (error[2:] > 0.8).all()
    with pytest.raises(efemb.ParameterError, match="scalar data"):
        efemb.GaussianEmbedding(2, weight_ridge=1.0).fit(data)
