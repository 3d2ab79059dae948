"""The objective of one observation: its log-density, derivative and mean, from the predictor u."""

from __future__ import annotations

import numpy as np

from efemb._typing import Floats
from efemb.model.families.base import Family
from efemb.model.links import Link

CACHED_NUMBERS = 1 << 17  # fit into the cache, where they are used four times


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


def log_sums(values: Floats) -> Floats:
    """log sum_j exp(v_j) of each row, without overflow.

    >>> log_sums(np.log([[1.0, 3.0], [1e200, 1e200]])).round(4).tolist()
    [1.3863, 461.2102]
    """
    sums = np.empty(len(values), dtype=np.float64)
    step = max(1, CACHED_NUMBERS // max(values.shape[1], 1))
    for start in range(0, len(values), step):
        block = values[start : start + step]
        top = block.max(axis=1)
        with np.errstate(invalid="ignore"):  # if all means are 0, shares are undefined: NaN
            scaled = block - top[:, None]
        np.exp(scaled, out=scaled)
        sums[start : start + step] = top + np.log(scaled.sum(axis=1))
    return sums
