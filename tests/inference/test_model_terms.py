"""Models with further terms in u: each is a column of every entity's regression."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import efemb
from efemb.engine.solvers.choice import make_solver
from efemb.engine.threads import workers
from efemb.inference import fold_in, laplace, report, stability
from efemb.inference.conditionals import ListConditionals
from efemb.inference.context_conditionals import ContextConditionals
from efemb.inference.row_conditionals import RowConditionals
from efemb.model.factors import Factors
from efemb.model.parameters import Parameters
from efemb.model.priors import Normal
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.model.terms import History, RowVectors
from efemb.model.terms.covariate import Covariate
from inference.samples import counts, fit, labeled

K, N, N_KNOWN = 2, 9, 6
X = counts(n_entities=N)
T = len(X)
RNG = np.random.default_rng(7)
ROWS = {"user": RNG.choice(["ann", "bob", "eve"], T), "heat": RNG.normal(15.0, 8.0, T)}
TERMS = (RowVectors("user", 2), History("user", kappa=3.0), Covariate("heat"))
FAMILIES = ("poisson", "bernoulli", efemb.NegativeBinomial(2.0))


def data_of(values: Any, rows: Any = None) -> efemb.Dataset:
    return labeled(values, rows=ROWS if rows is None else rows)


def model_of(family: Any, context: Any, data: efemb.Dataset, **options: Any) -> Any:
    """Spec, bound context, space and all vectors at a random point."""
    spec = Spec.resolve(context=context, family=family, terms=list(TERMS), **options)
    spec = spec.freeze_terms(data)
    bound = spec.context.bind(data)
    space = ParameterSpace(spec, data.n_entities, 1, 1, K)
    rng = np.random.default_rng(3)
    at = Parameters.from_named({a.name: rng.normal(0.0, 0.3, a.shape) for a in space.layout})
    return spec, bound, space, space.vectors(at)


def engine(spec: Spec, bound: Any, vectors: Factors, solver: str) -> tuple[float, Factors]:
    """Log-likelihood and its gradient in all vectors, by a solver."""
    with workers(1) as pool:
        made = make_solver(solver, bound, spec, pool, dtype=np.float64)
        value, gradient = made.value_and_gradient(vectors)
    return value, gradient


def values_of(family: Any) -> Any:
    return np.minimum(X, 1.0) if family == "bernoulli" else X


@pytest.mark.parametrize("scale", ["none", "items", "total"])
@pytest.mark.parametrize("family", FAMILIES, ids=["poisson", "bernoulli", "nb"])
def test_the_gradient_of_a_posterior_is_the_engines(family: Any, scale: str) -> None:
    """In rho, in the entity sides of the terms, and in the intercepts."""
    data = data_of(csr_array(values_of(family)))
    spec, bound, _, vectors = model_of(family, efemb.Basket(scale), data)
    _, expected = engine(spec, bound, vectors, "rows")
    every = np.arange(N)
    given = RowConditionals(spec, bound, vectors, every, np.ones(T))
    _, gradient, slope = given.evaluate(vectors.target, vectors.intercept, every)
    assert_allclose(gradient, expected.target, rtol=1e-8, atol=1e-9)
    assert_allclose(slope, expected.intercept, rtol=1e-8, atol=1e-9)
    for n in (0, 4):
        _, one, b = given.design(n).evaluate(spec, vectors.target[n], vectors.intercept[n])
        assert_allclose(one, expected.target[n], rtol=1e-8, atol=1e-9)
        assert b == pytest.approx(expected.intercept[n], rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("scale", ["none", "items", "total"])
@pytest.mark.parametrize("family", FAMILIES, ids=["poisson", "bernoulli", "nb"])
def test_the_gradient_in_context_vectors_is_the_engines(family: Any, scale: str) -> None:
    data = data_of(csr_array(values_of(family)))
    spec, bound, _, vectors = model_of(family, efemb.Basket(scale), data)
    _, expected = engine(spec, bound, vectors, "rows")
    members = np.array([1, 5, 8])
    given = ContextConditionals(spec, bound, vectors, members, np.ones(T))
    alpha = vectors.bag[members, :K]
    _, gradient, _ = given.evaluate(alpha, np.zeros(3), np.arange(3))
    assert_allclose(gradient, expected.bag[members, :K], rtol=1e-8, atol=1e-9)


def test_lists_take_terms() -> None:
    values = RNG.gamma(2.0, size=(T, N))
    values[3, 2] = np.nan
    data = data_of(values)
    spec, bound, _, vectors = model_of("gaussian", efemb.Neighbors(3), data)
    _, expected = engine(spec, bound, vectors, "generic")
    entities = np.array([5, 2])
    given = ListConditionals(spec, bound, vectors, entities, np.ones(T))
    target, intercept = vectors.target[entities], vectors.intercept[entities]
    _, gradient, slope = given.evaluate(target, intercept, np.arange(2))
    assert_allclose(gradient, expected.target[entities], rtol=1e-8)
    assert_allclose(slope, expected.intercept[entities], rtol=1e-8)


def fitted_model(family: Any, data: efemb.Dataset, **options: Any) -> Any:
    settings: dict[str, Any] = {
        "context": "basket",
        "family": family,
        "dtype": "float64",
        "random_state": 0,
        "max_iter": 30,
        "terms": list(TERMS),
    }
    return fit(efemb.Embedding(K, **{**settings, **options}), data)


def test_covariances_by_finite_differences_of_the_engines_gradient() -> None:
    """Whatever the coefficients of the terms and the intercept: they are unknown as well."""
    data = data_of(csr_array(X))
    model = fitted_model("poisson", data, prior=Normal(2.0))
    spec, bound, vectors = model._bind(data)
    n, h, width = 4, 1e-5, vectors.target.shape[1]
    information = np.diag([2.0] * K + [1.0] * (width - K) + [0.0])
    for column in range(width + 1):
        ends = []
        for step in (-h, h):
            moved = replace(
                vectors, target=vectors.target.copy(), intercept=vectors.intercept.copy()
            )
            if column < width:
                moved.target[n, column] += step
            else:
                moved.intercept[n] += step
            _, slopes = engine(spec, bound, moved, "rows")
            ends.append(np.append(slopes.target[n], slopes.intercept[n]))
        information[:, column] += (ends[0] - ends[1]) / (2 * h)
    expected = np.linalg.inv(information)[:K, :K]
    result = laplace(model, data)
    assert_allclose(result.covariance("e"), expected, rtol=1e-4)
    assert_allclose(result.interval("e", "a").value, model.rho_[4] @ model.alpha_[0], rtol=1e-9)


@pytest.mark.parametrize("family", ["poisson", "categorical"])
def test_new_entities_learn_their_entity_side(family: str) -> None:
    """The posterior of everything that is new is flat where it was solved."""
    data = data_of(csr_array(X))
    model = fitted_model(family, data.take_entities(slice(0, N_KNOWN)))
    grown = fold_in(model, data, context_too=False, prior="model", tol=1e-10)
    spec, bound, vectors = grown._bind(data)
    _, slopes = engine(spec, bound, vectors, "rows")
    new = np.arange(N_KNOWN, N)
    flat = slopes.target[new] - vectors.target[new]  # all priors are standard normal
    assert np.abs(flat).max() < 1e-3
    if family == "poisson":
        assert np.abs(slopes.intercept[new]).max() < 1e-3
    known = model.fitted().parameters.terms
    for name, array in grown.parameters.terms.items():
        assert_allclose(array[: len(known[name])], known[name], rtol=1e-12)
    assert np.abs(vectors.target[new, K:]).max() > 0.01


def test_new_context_vectors_know_the_terms() -> None:
    data = data_of(csr_array(X))
    model = fitted_model("poisson", data.take_entities(slice(0, N_KNOWN)))
    grown = fold_in(model, data, prior="model", tol=1e-8, sweeps=30)
    spec, bound, vectors = grown._bind(data)
    _, slopes = engine(spec, bound, vectors, "rows")
    new = np.arange(N_KNOWN, N)
    assert np.abs(slopes.bag[new, :K] - vectors.bag[new, :K]).max() < 0.05


def test_a_planted_response_of_a_new_entity_is_found() -> None:
    rng = np.random.default_rng(1)
    heat = rng.normal(size=3000)
    rate = np.full((3000, N), 0.4)
    rate[:, -1] = np.exp(-1.0 + 0.8 * heat)
    values = csr_array(rng.poisson(rate).astype(float))
    data = efemb.Dataset(values, entities=list("abcdefghi"), rows={"heat": heat})
    model = fitted_model(
        "poisson", data.take_entities(slice(0, 8)), terms=[Covariate("heat", center=0.0, scale=1.0)]
    )
    grown = fold_in(model, data, prior="model")
    assert grown.parameters.terms["heat.coefficients"][8, 0] == pytest.approx(0.8, abs=0.05)


def test_reports_and_stability_take_terms() -> None:
    data = data_of(X)
    fits = [fitted_model("poisson", data, random_state=seed) for seed in (0, 1)]
    assert "dispersion" in report(fits[0], data)
    assert 0.0 <= stability(fits, n=3).overlap <= 1.0


class Unowned(Covariate):
    """A covariate whose coefficients are not said to be one row per entity."""

    entity_array = None


def test_terms_without_a_vector_per_entity_are_refused() -> None:
    data = data_of(csr_array(X))
    model = fitted_model("poisson", data.take_entities(slice(0, N_KNOWN)), terms=[Unowned("heat")])
    with pytest.raises(efemb.ParameterError, match=r"Unowned\(.*heat.* no vector of its own"):
        fold_in(model, data)
    with pytest.raises(efemb.ParameterError, match=r"Unowned\(.*heat.* no vector of its own"):
        laplace(model, data.take_entities(slice(0, N_KNOWN)))


def test_simulated_rows_have_no_columns_for_terms() -> None:
    spec = Spec.resolve(context="basket", family="poisson", terms=[RowVectors("user", 2)])
    with pytest.raises(
        efemb.ParameterError, match=r"the term RowVectors\('user', n_components=2\) needs"
    ):
        efemb.simulation.simulate(spec, n_rows=5, n_entities=4, n_components=2)
