"""The paper's bank of GLMs: with alpha fixed, each rho_n is a regression on the context sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

import efemb
from model.objective.build import adjacency
from oracle import tiny
from oracle.model import Array, Part

N_ROWS, K = 60, 2
PRECISION, SIGMA2, ZERO_WEIGHT = 0.7, 0.6, 0.4
AROUND = [[1, 2], [0, 2, 4], [1, 3], [4], [3, 0]]

Regression = tuple[Array, float]


def _ridge(z: Array, y: Array, w: Array, intercept: bool) -> Regression:
    # -1/(2 sigma2) |y - z c|^2 - precision/2 |c|^2, times -2 sigma2.
    fit = Ridge(alpha=PRECISION * SIGMA2, fit_intercept=intercept, solver="cholesky")
    fit.fit(z, y, sample_weight=w)
    return fit.coef_, float(fit.intercept_)


def _poisson(z: Array, y: Array, w: Array, intercept: bool) -> Regression:
    # scikit-learn divides the deviance, and so our penalty, by the sum of the weights.
    strength = PRECISION / w.sum()
    fit = PoissonRegressor(
        alpha=strength, fit_intercept=intercept, solver="newton-cholesky", tol=1e-12, max_iter=1000
    )
    fit.fit(z, y, sample_weight=w)
    return fit.coef_, float(fit.intercept_)


def _logistic(z: Array, y: Array, w: Array, intercept: bool) -> Regression:
    fit = LogisticRegression(
        C=1 / PRECISION, fit_intercept=intercept, solver="newton-cholesky", tol=1e-12, max_iter=1000
    )
    fit.fit(z, y, sample_weight=w)
    return fit.coef_[0], float(np.ravel(fit.intercept_)[0])


REGRESSIONS: dict[str, Callable[[Array, Array, Array, bool], Regression]] = {
    "gaussian": _ridge,
    "poisson": _poisson,
    "bernoulli": _logistic,
}


def _data(family: str, rng: np.random.Generator) -> Array:
    counts = rng.poisson(0.9, size=(N_ROWS, tiny.N_ENTITIES)).astype(float)
    if family == "bernoulli":
        return (counts > 0).astype(float)
    if family == "gaussian":
        return np.where(counts > 0, rng.normal(size=counts.shape) ** 2, 0.0)
    return counts


def _context_sums(part: Part, x: Array, alpha: Array, n: int) -> Array:
    """s_tn / d_tn of entity n in every row, by the definition."""
    z = np.zeros((len(x), K))
    for t in range(len(x)):
        if part.kind == "basket":
            around = [m for m in range(x.shape[1]) if m != n and x[t, m] != 0]
        else:
            around = list(part.neighbors[n]) if part.neighbors is not None else []
        d = {"none": 1.0, "items": float(len(around)), "total": sum(x[t, m] for m in around)}
        for m in around:
            z[t] += alpha[m] * x[t, m] / (d[part.scale] or 1.0)
    return z


def _maximize(est: Any, x: Array, alpha: Array, intercept: bool) -> tuple[Array, Array]:
    """Climb the objective in rho and the intercepts only."""
    size = tiny.N_ENTITIES * K

    def descent(theta: Array) -> tuple[float, Array]:
        b = theta[size:] if intercept else None
        rho = theta[:size].reshape(-1, K)
        value, slopes = est.objective(x, efemb.model.parameters.Parameters(rho, alpha, b))
        pieces = [slopes.rho.ravel(), slopes.intercept] if intercept else [slopes.rho.ravel()]
        return -value, -np.concatenate(pieces)

    start = np.zeros(size + (tiny.N_ENTITIES if intercept else 0))
    options = {"maxiter": 2000, "maxcor": 40, "ftol": 1e-16, "gtol": 1e-9}
    theta = minimize(descent, start, jac=True, method="L-BFGS-B", options=options).x
    return theta[:size].reshape(-1, K), theta[size:]


@pytest.mark.slow
@pytest.mark.parametrize("weight", [1.0, ZERO_WEIGHT])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("scale", ["none", "items", "total"])
@pytest.mark.parametrize("kind", ["basket", "graph"])
@pytest.mark.parametrize("family", sorted(REGRESSIONS))
def test_rho_is_a_regression_on_the_context_sums(
    family: str, kind: str, scale: str, intercept: bool, weight: float
) -> None:
    rng = np.random.default_rng(11)
    x = _data(family, rng)
    alpha = 0.5 * rng.normal(size=(tiny.N_ENTITIES, K))
    part = Part(kind, scale, neighbors=AROUND if kind == "graph" else None)
    graph = efemb.Graph(adjacency(AROUND), scale=scale)
    est = efemb.Embedding(
        K,
        context=efemb.Basket(scale=scale) if kind == "basket" else graph,
        family=efemb.Gaussian(SIGMA2) if family == "gaussian" else family,
        prior=efemb.Normal(PRECISION),
        zeros=efemb.All(weight),
        intercept=intercept,
    )
    rho, b = _maximize(est, x, alpha, intercept)
    for n in range(tiny.N_ENTITIES):
        z = _context_sums(part, x, alpha, n)
        w = np.where(x[:, n] == 0, weight, 1.0)
        coefficients, constant = REGRESSIONS[family](z, x[:, n], w, intercept)
        np.testing.assert_allclose(rho[n], coefficients, rtol=1e-5, atol=1e-6)
        if intercept:
            assert b[n] == pytest.approx(constant, rel=1e-5, abs=1e-6)
