"""Pseudo-counts and thinned contexts: every solver has the objective that the loops define."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime

import efemb
from efemb.engine.solvers.rows.solver import thin
from efemb.errors import InputTypeError, ParameterError
from efemb.model.factors import Factors
from efemb.model.score import log_sums
from engine import models

N, K = 5, 2
FAMILIES = {
    "p-emb": ("poisson", "identity"),
    "b-emb": ("bernoulli", "identity"),
    "ap-emb": ("poisson", "log"),
    "categorical": ("categorical", "identity"),
}


def rows(name: str) -> Any:
    """Counts with an empty row, a row of one item and equal rows."""
    X = np.random.default_rng(3).poisson(0.9, (7, N)).astype(float)
    X[1], X[2], X[4] = 0.0, [0, 3, 0, 0, 0], X[3]
    return (X > 0).astype(float) if name == "b-emb" else X


def spec_of(name: str, **context: Any) -> Any:
    family, link = FAMILIES[name]
    prior = efemb.LogNormal() if link == "log" else "normal"
    return models.Spec.resolve(
        context=efemb.Basket(**context), family=family, link=link, prior=prior
    )


def loop_value(name: str, X: Any, members: Any, kappa: float, scale: str, flat: Any) -> float:
    """The log-likelihood by its definition, cell by cell, up to log h(x)."""
    rho, alpha, b = flat[: N * K].reshape(N, K), flat[N * K : -N].reshape(N, K), flat[-N:]
    total = 0.0
    for t, x in enumerate(X):
        for n in range(N):
            context = np.where(members[t], x, 0.0)
            context[n] = 0.0
            divisor = (context.sum() if scale == "total" else (context > 0).sum()) + kappa
            u = rho @ (context @ alpha) / (divisor if divisor > 0 else 1.0) + b
            if name == "categorical":
                total += x[n] * (u[n] - float(log_sums(u[None])[0]))
            elif name == "b-emb":
                total += x[n] * u[n] - np.logaddexp(0.0, u[n])
            elif name == "ap-emb":
                total += x[n] * np.log(u[n]) - u[n]
            else:
                total += x[n] * u[n] - np.exp(u[n])
    return total


@pytest.mark.parametrize("thinned", [False, True])
@pytest.mark.parametrize(("scale", "kappa"), [("total", 2.5), ("items", 0.7), ("total", 0.0)])
@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_gradients_are_those_of_the_loops(
    name: str, scale: str, kappa: float, thinned: bool
) -> None:
    X = rows(name)
    spec = spec_of(name, scale=scale, pseudo_count=kappa, thinning=0.5 if thinned else 0.0)
    flat = np.abs(np.random.default_rng(1).normal(size=2 * N * K + N)) + 0.1
    vectors = Factors(flat[: N * K].reshape(N, K), flat[N * K : -N].reshape(N, K), flat[-N:])
    members = np.ones(X.shape, dtype=bool)
    if thinned:
        members = np.random.default_rng(2).random(X.shape) < 0.6
    for solver in ("rows",) if thinned or name == "categorical" else ("rows", "generic"):
        made = models.solver(solver, models.bind(X, spec), spec)
        if thinned:
            made.members = members[X != 0]
        value, slopes = made.value_and_gradient(vectors)
        found = np.concatenate([slopes.target.ravel(), slopes.bag.ravel(), slopes.intercept])
        arguments = (name, X, members, kappa, scale)
        wanted = approx_fprime(flat, lambda at, given=arguments: loop_value(*given, at), 1e-7)
        assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)
        base = 0.0
        if name != "categorical":
            base = float(spec.family.log_base_measure(X.ravel()).sum())
        assert value - base == pytest.approx(loop_value(*arguments, flat), rel=1e-8)


def test_only_a_fit_thins_contexts() -> None:
    spec = spec_of("p-emb", thinning=1.0)
    made = models.solver("rows", models.bind(rows("p-emb"), spec), spec)
    whole = made.value_and_gradient(models.vectors())[0]
    made.members = np.zeros(len(made.bound.stored.x), dtype=bool)
    assert made.value_and_gradient(models.vectors())[0] != whole
    assert made.value_and_gradient(models.vectors(), exact=True)[0] == whole


def test_thinned_sizes_are_spread_evenly_in_the_logarithm() -> None:
    ptr = 1000 * np.arange(2001)
    kept = np.add.reduceat(thin(ptr, 1.0, np.random.default_rng(0)), ptr[:-1])
    shares = np.histogram(np.log10(np.maximum(kept, 1)), bins=[0, 1, 2, 3])[0] / len(kept)
    assert_allclose(shares, 1 / 3, atol=0.04)
    whole = thin(ptr, 0.25, np.random.default_rng(0)).reshape(2000, 1000).all(axis=1)
    assert whole.mean() == pytest.approx(0.75, abs=0.03)


@pytest.mark.parametrize("rows_of_data", [300, 3000])  # one batch, and several
def test_thinned_fits_have_the_same_bits_for_any_number_of_threads(rows_of_data: int) -> None:
    simulated = efemb.simulation.simulate(
        "b-emb", n_rows=rows_of_data, n_entities=12, n_components=2, seed=0
    )
    models_of_threads = [
        efemb.BernoulliEmbedding(
            3,
            context=efemb.Basket(pseudo_count=2.0, thinning=0.5),
            max_iter=4,
            early_stopping=False,
            n_jobs=n,
            random_state=0,
        )
        for n in (1, 2)
    ]
    with pytest.warns(match="still improving"):
        one, two = (model.fit(simulated.data) for model in models_of_threads)
    assert np.array_equal(one.rho_, two.rho_)
    assert np.array_equal(one.alpha_, two.alpha_)


def test_predictions_scores_and_explanations_divide_alike() -> None:
    X = rows("p-emb")
    model = efemb.PoissonEmbedding(
        K, context=efemb.Basket(pseudo_count=1.5), random_state=0, early_stopping=False
    ).fit(X)
    x = X[0]
    sums = x[None] @ model.alpha_ - np.diag(x) @ model.alpha_  # each entity's context
    divisor = (x.sum() - x + 1.5)[:, None]
    u = np.einsum("nk,nk->n", model.rho_, sums / divisor) + model.intercept_
    assert_allclose(model.conditional(X)[0], np.exp(u), rtol=1e-5)
    assert_allclose(model.transform(X)[0], x @ model.alpha_ / (x.sum() + 1.5), rtol=1e-5)
    assert_allclose(model.transform(X)[1], 0.0)
    stored = np.flatnonzero(x)
    given = {int(n): float(x[n]) for n in stored[1:]}
    parts = model.explain(given, int(stored[0]))
    assert float(np.sum(parts["contribution"])) == pytest.approx(float(u[stored[0]]), rel=1e-4)


def test_bad_options_are_named() -> None:
    for wrong in ({"pseudo_count": -1.0}, {"thinning": 1.5}, {"thinning": -0.1}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            efemb.Basket(**wrong).check()
    with pytest.raises(InputTypeError, match="thinning"):
        efemb.Basket(thinning=True).check()  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="scale='none'"):
        efemb.Basket("none", pseudo_count=1.0).check()
    with pytest.raises(ParameterError, match="reverse"):
        efemb.PoissonEmbedding(2, context=efemb.Basket(pseudo_count=1.0), combine="reverse").fit(
            np.ones((3, 3))
        )
    with pytest.raises(ParameterError, match="solver='rows'"):
        efemb.PoissonEmbedding(2, context=efemb.Basket(thinning=0.5), solver="generic").fit(
            np.ones((30, 3))
        )
