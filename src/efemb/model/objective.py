"""The objective of one observation: log-density and its derivative in the linear predictor u."""

from __future__ import annotations

import numpy as np

from efemb._typing import Floats
from efemb.model.families.base import Family
from efemb.model.links import Link


def natural_parameter(family: Family, link: Link, u: Floats) -> Floats:
    """eta = natural(f(u))."""
    return family.natural(link(u))


def log_density(family: Family, link: Link, x: Floats, u: Floats) -> Floats:
    """log p(x | u), base measure included."""
    return family.value_and_slope(x, link(u))[0] + family.log_base_measure(x)


def residual(family: Family, link: Link, x: Floats, u: Floats) -> Floats:
    """d log p / du."""
    return np.asarray(value_and_slope(family, link, x, u)[1])


def value_and_slope(family: Family, link: Link, x: Floats, u: Floats) -> tuple[Floats, Floats]:
    """log p(x | u) without the base measure, and its derivative in u."""
    value, slope = family.value_and_slope(x, link(u))
    return value, slope if link.is_identity else slope * link.derivative(u)


def expected_value(family: Family, link: Link, u: Floats) -> Floats:
    """E[x | u]."""
    return family.expected_value(natural_parameter(family, link, u))
