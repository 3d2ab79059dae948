"""A density that is not t(x) eta - a(eta): zero inflation, written outside the package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import efemb
from efemb.engine.solvers.choice import make_solver
from efemb.engine.threads import workers
from efemb.model.factors import Factors
from efemb.model.links import Identity
from efemb.model.objective import log_density, residual
from efemb.model.predict import mean_log_density
from efemb.model.spec import Spec

Array = Any


class ZeroInflatedPoisson(efemb.Poisson):
    """x = 0 with probability 1 - p, else Poisson(exp(v))."""

    def __init__(self, p: float = 0.7) -> None:
        self.p = p

    def value_and_slope(self, x: Array, v: Array) -> tuple[Array, Array]:
        rate = np.exp(v)
        zero = 1 - self.p + self.p * np.exp(-rate)
        value = np.where(x == 0, np.log(zero), np.log(self.p) + x * v - rate)
        share = np.where(x == 0, self.p * np.exp(-rate) / zero, 1.0)
        return value, share * (x - rate)


def test_the_density_is_the_mixture() -> None:
    x, u = np.arange(6.0), np.linspace(-1.0, 1.5, 6)
    expected = 0.7 * stats.poisson.pmf(x, np.exp(u)) + np.where(x == 0, 0.3, 0.0)
    family = ZeroInflatedPoisson()
    assert_allclose(log_density(family, Identity(), x, u), np.log(expected), rtol=1e-12)
    h = 1e-6
    ends = [log_density(family, Identity(), x, u + step) for step in (h, -h)]
    assert_allclose(residual(family, Identity(), x, u), (ends[0] - ends[1]) / (2 * h), rtol=1e-6)


def test_kernels_of_the_poisson_are_not_those_of_a_subclass() -> None:
    assert efemb.Poisson().kernel_size == np.inf
    assert ZeroInflatedPoisson().kernel_size is None
    assert not ZeroInflatedPoisson.linear_mean


@pytest.mark.parametrize("scale", ["none", "items", "total"])
def test_solvers_agree(scale: str) -> None:
    rng = np.random.default_rng(0)
    data = efemb.Dataset(rng.poisson(0.8, (20, 6)).astype(float))
    spec = Spec.resolve(context=efemb.Basket(scale), family=ZeroInflatedPoisson())
    bound = spec.context.bind(data)
    factors = Factors(*(rng.normal(0, 0.4, (6, 3)) for _ in range(2)), rng.normal(size=6))
    with workers(1) as pool:
        values = [
            make_solver(name, bound, spec, pool, dtype=np.float64).value_and_gradient(factors)
            for name in ("rows", "generic")
        ]
    (value, gradient), (other, same) = values
    assert value == pytest.approx(other, rel=1e-10)
    assert_allclose(gradient.target, same.target, rtol=1e-8, atol=1e-10)
    assert_allclose(gradient.bag, same.bag, rtol=1e-8, atol=1e-10)


@pytest.mark.slow
def test_it_fits_data_with_too_many_zeros_better() -> None:
    rng = np.random.default_rng(1)
    counts = rng.poisson(3.0, (400, 5)) * (rng.random((400, 5)) < 0.5)
    train, test = efemb.Dataset(counts.astype(float)).split(test=0.3, seed=0)
    scores = {}
    for family in (ZeroInflatedPoisson(0.5), efemb.Poisson()):
        model = efemb.Embedding(1, family=family, random_state=0, dtype="float64").fit(train)
        scores[type(family).__name__] = mean_log_density(*model.fitted()._bind(test), None)
    assert scores["ZeroInflatedPoisson"] > scores["Poisson"]
