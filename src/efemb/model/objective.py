"""The objective of one observation: log-density and its derivative in the inner product u."""

from __future__ import annotations

import numpy as np

from efemb._typing import Floats
from efemb.model.families.base import Family
from efemb.model.links import Link


def natural_parameter(family: Family, link: Link, u: Floats) -> Floats:
    """eta = natural(f(u))."""
    return family.natural(link(u))


def log_density(family: Family, link: Link, x: Floats, u: Floats) -> Floats:
    """eta t(x) - a(eta) + log h(x)."""
    eta = natural_parameter(family, link, u)
    return eta * family.statistic(x) - family.log_normalizer(eta) + family.log_base_measure(x)


def residual(family: Family, link: Link, x: Floats, u: Floats) -> Floats:
    """d log p / du = (t(x) - E[t(x)]) d eta / du."""
    v = link(u)
    gap = family.statistic(x) - family.mean(family.natural(v))
    return np.asarray(gap * family.natural_derivative(v) * link.derivative(u))


def value_and_slope(family: Family, link: Link, x: Floats, u: Floats) -> tuple[Floats, Floats]:
    """eta t(x) - a(eta), without the base measure, and its derivative in u, in one go."""
    v = link(u)
    eta, statistic = family.natural(v), family.statistic(x)
    normalizer, mean = family.log_normalizer_and_mean(eta)
    slope = (statistic - mean) * family.natural_derivative(v)
    if not link.is_identity:
        slope = slope * link.derivative(u)
    return eta * statistic - normalizer, slope


def expected_value(family: Family, link: Link, u: Floats) -> Floats:
    """E[x | u]."""
    return family.expected_value(natural_parameter(family, link, u))
