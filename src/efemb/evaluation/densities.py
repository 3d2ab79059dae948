"""Log-density of observations from their conditional means."""

from __future__ import annotations

import numpy as np

from efemb.families import Bernoulli, Categorical, Family
from efemb.links import Identity
from efemb.objective import expected_value, log_density
from efemb.types import Floats


def log_density_at(family: Family, x: Floats, log_mean: Floats, log_share: Floats) -> Floats | None:
    """log p(x) given the logarithm of its mean; a categorical family gives x units their share."""
    if isinstance(family, Categorical):
        return np.asarray(x * log_share)
    if family.exponential_mean:  # not through the mean, which may overflow
        return np.asarray(log_density(family, Identity(), x, log_mean))
    return log_density_of_mean(family, x, np.exp(log_mean))


def log_density_of_mean(family: Family, x: Floats, mean: Floats) -> Floats | None:
    """log p(x) given its mean; None if the family does not say which parameter a mean belongs to.

    `Family.predictor` says it; it is taken at its word only if it leads back to the mean.
    """
    if isinstance(family, Bernoulli):
        return _bernoulli(x, mean)
    inside = np.maximum(mean, np.finfo(np.float64).tiny) if family.support.low >= 0 else mean
    with np.errstate(all="ignore"):
        u = family.predictor(inside)
        back = expected_value(family, Identity(), u)
        if not np.allclose(back, inside, rtol=1e-6, atol=0.0):
            return None
    return np.asarray(log_density(family, Identity(), x, u))


def _bernoulli(x: Floats, mean: Floats) -> Floats:
    """x log m + (1 - x) log(1 - m); a mean that rounding took to 0 or 1 stays inside."""
    from scipy.special import xlog1py, xlogy

    inside = np.clip(mean, np.finfo(np.float64).tiny, 1.0 - np.finfo(np.float64).epsneg)
    return np.asarray(xlogy(x, inside) + xlog1py(1.0 - x, -inside))
