"""Families: mean, density and derivatives against numerical calculus and scipy.stats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

import efemb
from efemb.model.families import Density, Family, Interval
from efemb.model.objective import log_density, residual

U = np.linspace(-3.0, 2.5, 23)
COUNTS = np.arange(0.0, 400.0)
STEP = 1e-6


class Case(NamedTuple):
    """A family with options, and the distribution it claims to be, as a function of u."""

    family: Family
    frozen: Callable[[float], Any]


class Inflated:
    """Zero with probability 1 - p, else a draw of a distribution of scipy.stats."""

    def __init__(self, p: float, counts: Any) -> None:
        self.p, self.counts = p, counts

    def logpmf(self, x: Any) -> Any:
        return np.log(self.p * self.counts.pmf(x) + (1 - self.p) * (x == 0))

    def mean(self) -> Any:
        return self.p * self.counts.mean()

    def var(self) -> Any:
        return self.p * (self.counts.var() + self.counts.mean() ** 2) - self.mean() ** 2

    def std(self) -> Any:
        return np.sqrt(self.var())


CASES = {
    "gaussian": Case(efemb.Gaussian(0.7), lambda u: stats.norm(u, np.sqrt(0.7))),
    "poisson": Case(efemb.Poisson(), lambda u: stats.poisson(np.exp(u))),
    "bernoulli": Case(efemb.Bernoulli(), lambda u: stats.bernoulli(1 / (1 + np.exp(-u)))),
    "negative-binomial": Case(
        efemb.NegativeBinomial(1.5), lambda u: stats.nbinom(1.5, 1.5 / (1.5 + np.exp(u)))
    ),
    "zero-inflated": Case(
        efemb.ZeroInflated("poisson", 0.7), lambda u: Inflated(0.7, stats.poisson(np.exp(u)))
    ),
}
NAMES = sorted(CASES)
EXPONENTIAL = [name for name in NAMES if not isinstance(CASES[name].family, Density)]


def density(name: str, x: Any, u: float) -> Any:
    """Log-density of the family with the identity link."""
    x = np.asarray(x, dtype=np.float64)
    return log_density(CASES[name].family, efemb.model.links.Identity(), x, np.full_like(x, u))


def test_every_registered_family_has_an_oracle() -> None:
    # The softmax couples entities and has tests of its own below; others have their own files.
    assert {*CASES, "categorical", "mixed", "nominal"} == set(Family.choices())


@pytest.mark.parametrize("name", EXPONENTIAL)
def test_mean_is_the_derivative_of_the_log_normalizer(name: str) -> None:
    family = CASES[name].family
    eta = family.natural(U)
    slope = (family.log_normalizer(eta + STEP) - family.log_normalizer(eta - STEP)) / (2 * STEP)
    assert_allclose(family.mean(eta), slope, rtol=1e-6)


@pytest.mark.parametrize("name", EXPONENTIAL)
def test_both_at_once_are_the_two_apart(name: str) -> None:
    family = CASES[name].family
    eta = family.natural(U)
    normalizer, mean = family.log_normalizer_and_mean(eta)
    assert_allclose(normalizer, family.log_normalizer(eta), rtol=1e-14)
    assert_allclose(mean, family.mean(eta), rtol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_natural_derivative_is_the_slope_of_natural(name: str) -> None:
    family = CASES[name].family
    slope = (family.natural(U + STEP) - family.natural(U - STEP)) / (2 * STEP)
    assert_allclose(family.natural_derivative(U) * np.ones_like(U), slope, rtol=1e-6)


@pytest.mark.parametrize("u", [-2.0, 0.3, 1.7])
@pytest.mark.parametrize("name", NAMES)
def test_log_density_is_the_one_of_scipy(name: str, u: float) -> None:
    frozen = CASES[name].frozen(u)
    if name == "gaussian":
        x: Any = np.linspace(-4, 4, 9)
        expected = frozen.logpdf(x)
    else:
        x = np.arange(2.0) if name == "bernoulli" else np.arange(12.0)
        expected = frozen.logpmf(x)
    assert_allclose(density(name, x, u), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("u", [-1.0, 0.8])
@pytest.mark.parametrize("name", NAMES)
def test_density_has_total_one_and_the_expected_value_as_mean(name: str, u: float) -> None:
    family = CASES[name].family
    expected = family.expected_value(family.natural(np.array([u])))[0]
    if name == "gaussian":
        total, _ = integrate.quad(lambda x: np.exp(density(name, x, u)), -30, 30)
        mean, _ = integrate.quad(lambda x: x * np.exp(density(name, x, u)), -30, 30)
    else:
        x = np.arange(2.0) if name == "bernoulli" else COUNTS
        share = np.exp(density(name, x, u))
        total, mean = share.sum(), share @ x
    assert total == pytest.approx(1.0, abs=1e-9)
    assert mean == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_residual_is_the_derivative_of_the_log_density(name: str) -> None:
    family, link = CASES[name].family, efemb.model.links.Identity()
    x = np.full_like(U, 1.0)
    up, down = (log_density(family, link, x, U + h) for h in (STEP, -STEP))
    assert_allclose(residual(family, link, x, U), (up - down) / (2 * STEP), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_predictor_inverts_the_expected_value(name: str) -> None:
    family = CASES[name].family
    mean = np.array([0.05, 0.4, 0.9])
    back = family.expected_value(family.natural(family.predictor(mean)))
    assert_allclose(back, mean, rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_draws_have_the_mean_and_variance_of_scipy(name: str) -> None:
    family, frozen = CASES[name].family, CASES[name].frozen(0.4)
    n = 20_000
    drawn = family.sample(family.natural(np.full(n, 0.4)), np.random.default_rng(0))
    assert abs(drawn.mean() - frozen.mean()) < 5 * frozen.std() / np.sqrt(n)
    assert drawn.var() == pytest.approx(frozen.var(), rel=0.1)
    assert not family.support.broken_by(drawn).any()


@pytest.mark.parametrize("name", NAMES)
def test_variance_is_that_of_scipy(name: str) -> None:
    family, frozen = CASES[name].family, CASES[name].frozen(0.4)
    variance = family.variance_of_mean(np.array([frozen.mean()]))
    assert_allclose(variance, frozen.var(), rtol=1e-9)


@pytest.mark.parametrize("k", [0, 1, 2, 5])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "gaussian"])
def test_tails_are_sums_of_probabilities(name: str, k: int) -> None:
    family, u = CASES[name].family, np.array([-2.0, 0.1, 1.3])
    x = np.arange(2.0) if name == "bernoulli" else COUNTS
    expected = [np.exp(density(name, x, one))[x >= k].sum() for one in u]
    assert_allclose(family.tail(np.float64(k), u), expected, rtol=1e-7, atol=1e-12)
    assert_allclose(Family.tail(family, np.float64(k), u), expected, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_extreme_predictors_stay_finite(name: str, dtype: Any) -> None:
    family, link = CASES[name].family, efemb.model.links.Identity()
    u = np.array([-1e4, -200.0, 200.0, 1e4], dtype=dtype)
    x = np.ones_like(u)
    assert np.isfinite(log_density(family, link, x, u)).all()
    assert np.isfinite(residual(family, link, x, u)).all()


@pytest.mark.parametrize(("dtype", "r"), [("float32", 1e7), ("float64", 1e7), ("float64", 1e14)])
def test_a_negative_binomial_of_large_r_is_a_poisson(dtype: str, r: float) -> None:
    x, u = (one.ravel().astype(dtype) for one in np.meshgrid(np.arange(12.0), U))
    found = log_density(efemb.NegativeBinomial(r), efemb.model.links.Identity(), x, u)
    plain = stats.poisson(np.exp(u.astype(float))).logpmf(x)
    # 1 / r is how far the two are apart: about (x + e^u)^2 / (2 r).
    assert_allclose(found, plain, rtol=1e-5 if dtype == "float32" else 0.0, atol=1e-4 + 500 / r)


@pytest.mark.parametrize("r", [0.01, 0.7, 40.0])
def test_a_negative_binomial_of_any_mean_is_that_of_scipy(r: float) -> None:
    x, u = np.meshgrid(np.array([0.0, 1.0, 7.0, 300.0]), np.linspace(-8.0, 12.0, 30))
    found = log_density(efemb.NegativeBinomial(r), efemb.model.links.Identity(), x, u)
    assert_allclose(found, stats.nbinom(r, r / (r + np.exp(u))).logpmf(x), rtol=1e-8, atol=1e-8)


def test_categorical_shares_are_the_derivative_of_the_log_normalizer() -> None:
    family = efemb.Categorical()
    eta = np.array([0.3, -1.2, 2.0, 0.0])
    weight = family.mean(eta)
    for j in range(len(eta)):
        nudge = STEP * np.eye(len(eta))[j]
        up, down = family.log_normalizer(eta + nudge), family.log_normalizer(eta - nudge)
        assert weight[j] / weight.sum() == pytest.approx(float((up - down)[0]) / (2 * STEP))


def test_categorical_probabilities_add_up_to_one_and_draws_follow_them() -> None:
    family = efemb.Categorical()
    eta = np.array([0.3, -1.2, 2.0, 0.0])
    share = np.exp(eta - family.log_normalizer(eta))
    assert share.sum() == pytest.approx(1.0)
    drawn = family.sample(np.tile(eta, (8000, 1)), np.random.default_rng(0))
    assert (drawn.sum(axis=1) == 1).all()
    assert stats.chisquare(drawn.sum(axis=0), 8000 * share).pvalue > 1e-4


def test_learned_variance_is_the_mean_squared_residual() -> None:
    rng = np.random.default_rng(0)
    x, u = rng.normal(size=50), rng.normal(size=50)
    weight = rng.uniform(0.5, 2.0, 50)
    family = efemb.Gaussian("learned")
    reached = float(weight @ log_density(family, efemb.model.links.Identity(), x, u))
    fitted = family.adapt(reached, float(weight.sum()))
    assert isinstance(fitted, efemb.Gaussian)
    assert fitted.variance == pytest.approx(np.average((x - u) ** 2, weights=weight))
    assert not fitted.learns


@pytest.mark.parametrize(
    ("interval", "inside", "outside"),
    [
        (Interval(), [-1e30, 0.5, 7], [np.inf, -np.inf]),
        (Interval(low=0, integer=True), [0, 3, 1e6], [-1, 0.5, np.inf]),
        (Interval(low=0, high=1, integer=True), [0, 1], [2, 0.5, -1]),
    ],
)
def test_interval_knows_its_members(
    interval: Interval, inside: list[float], outside: list[float]
) -> None:
    assert not interval.broken_by(np.array([*inside, np.nan])).any(), "NaN is missing, not outside"
    assert interval.broken_by(np.array(outside)).all()


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: efemb.Gaussian(0.0), efemb.ParameterError),
        (lambda: efemb.Gaussian(-1.0), efemb.ParameterError),
        (lambda: efemb.Gaussian(np.nan), efemb.ParameterError),
        (lambda: efemb.Gaussian("unknown"), efemb.ParameterError),
        (lambda: efemb.Gaussian(None), efemb.InputTypeError),
        (lambda: efemb.NegativeBinomial(0), efemb.ParameterError),
        (lambda: efemb.NegativeBinomial(True), efemb.InputTypeError),
    ],
)
def test_bad_options_are_refused(make: Callable[[], Family], kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"sigma2|NegativeBinomial\.r"):
        make().check()
