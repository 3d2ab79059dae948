"""Links and priors: derivatives by finite differences, over the registries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.model.links import FLOOR, Link
from efemb.model.priors import HalfNormal, Normal, Prior, QuadraticPrior, resolve_pair

STEP = 1e-6
U = np.array([-40.0, -16.0, -14.9, -2.0, -0.3, 0.2, 1.0, 5.0, 40.0])


def grid(link: Link) -> Any:
    return np.abs(U) if link.needs_positive else U


@pytest.mark.parametrize("name", sorted(Link.choices()))
def test_link_derivative_is_the_slope(name: str) -> None:
    link = Link.resolve(name)
    u = grid(link)
    slope = (link(u + STEP) - link(u - STEP)) / (2 * STEP)
    assert_allclose(link.derivative(u), slope, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", sorted(Link.choices()))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_links_keep_the_precision_and_stay_finite(name: str, dtype: Any) -> None:
    link = Link.resolve(name)
    u = np.array([-1e4, -90.0, 0.0, 90.0, 1e4], dtype=dtype)
    for found in (link(u), link.derivative(u)):
        assert found.dtype == dtype
        assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("link", "formula"),
    [
        (efemb.model.links.Identity(), lambda u: u),
        (efemb.model.links.Log(), np.log),
        (efemb.model.links.Softplus(), lambda u: np.log(1 + np.exp(u))),
        (efemb.model.links.LogSoftplus(), lambda u: np.log(np.log(1 + np.exp(u)))),
    ],
)
def test_links_are_their_formulas(link: Link, formula: Any) -> None:
    u = np.array([0.01, 0.5, 3.0])
    assert_allclose(link(u), formula(u), rtol=1e-12)


def test_log_link_is_flat_below_its_floor() -> None:
    link = efemb.model.links.Log()
    below = np.array([-3.0, 0.0, FLOOR / 2])
    assert_allclose(link(below), np.log(1e-6))
    assert (link.derivative(below) == 0).all()
    assert link.derivative(np.array([2 * FLOOR]))[0] == pytest.approx(0.5 / FLOOR)


PRIORS: dict[str, Prior] = {
    "normal": efemb.Normal(0.7),
    "log-normal": efemb.LogNormal(0.7, -1.3),
    "half-normal": efemb.HalfNormal(0.7),
}


def test_every_registered_prior_is_tested() -> None:
    assert set(PRIORS) == set(Prior.choices())


@pytest.mark.parametrize("name", sorted(PRIORS))
def test_prior_gradient_is_the_slope_in_the_unconstrained_parameter(name: str) -> None:
    prior = PRIORS[name]
    raw = np.random.default_rng(0).normal(size=(3, 2))
    vectors = np.exp if prior.positive else np.array
    slope = np.empty_like(raw)
    for place in np.ndindex(raw.shape):
        nudge = np.zeros_like(raw)
        nudge[place] = STEP
        up, down = (prior.log_density(vectors(raw + h)) for h in (nudge, -nudge))
        slope[place] = (up - down) / (2 * STEP)
    assert_allclose(prior.gradient(vectors(raw)), slope, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("normal", -0.35 * (0.25 + 4.0)),
        ("half-normal", -0.35 * (0.25 + 4.0)),
        ("log-normal", -0.35 * ((np.log(0.5) + 1.3) ** 2 + (np.log(2.0) + 1.3) ** 2)),
    ],
)
def test_log_prior_has_no_constant_and_no_jacobian(name: str, expected: float) -> None:
    assert PRIORS[name].log_density(np.array([0.5, 2.0])) == pytest.approx(expected)


def test_one_prior_serves_both_and_a_pair_is_split() -> None:
    assert resolve_pair("normal") == (efemb.Normal(), efemb.Normal())
    assert resolve_pair(("normal", None)) == (efemb.Normal(), None)
    assert resolve_pair(None) == (None, None)


@pytest.mark.parametrize(
    "prior", [efemb.Normal(-1.0), efemb.LogNormal(np.inf), efemb.HalfNormal(-0.1)]
)
def test_a_precision_must_be_a_finite_number_from_zero_up(prior: Prior) -> None:
    with pytest.raises(efemb.ParameterError, match="precision"):
        resolve_pair(prior)


def test_a_center_must_be_a_finite_number() -> None:
    with pytest.raises(efemb.ParameterError, match="center"):
        efemb.LogNormal(1.0, np.nan).check()


@pytest.mark.parametrize("kind", [Normal, HalfNormal])
def test_subclasses_of_quadratic_priors_keep_their_penalty(kind: type[QuadraticPrior]) -> None:
    """Only what steps do in closed form is not inherited."""
    subclass = type("Own", (kind,), {})
    theta = np.array([0.5, 2.0])
    assert subclass(3.0).shrinkage == 0.0
    assert subclass(3.0).log_density(theta) == kind(3.0).log_density(theta) < 0
    np.testing.assert_array_equal(subclass(3.0).gradient(theta), kind(3.0).gradient(theta))
    assert subclass(3.0).tightened(5.0).log_density(theta) == kind(5.0).log_density(theta)
