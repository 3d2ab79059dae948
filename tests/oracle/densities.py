"""Log-densities by scipy.stats and their slopes in u by hand."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from oracle.model import Array, Model

FLOOR = 1e-6


def natural(link: str, u: float) -> float:
    """eta = f(u)."""
    if link == "log":
        return math.log(max(u, FLOOR))
    if link == "softplus":
        return math.log1p(math.exp(u))
    if link == "log-softplus":
        return math.log(math.log1p(math.exp(u)))
    assert link == "identity", link
    return u


def natural_slope(link: str, u: float) -> float:
    """f'(u)."""
    if link == "log":
        return 1.0 / u if u > FLOOR else 0.0
    if link == "softplus":
        return 1.0 / (1.0 + math.exp(-u))
    if link == "log-softplus":
        return 1.0 / (1.0 + math.exp(-u)) / math.log1p(math.exp(u))
    return 1.0


def conditional_mean(model: Model, u: float) -> float:
    """E[x] for the predictor u."""
    eta = natural(model.link, u)
    if model.family == "gaussian":
        return eta
    if model.family == "bernoulli":
        return 1.0 / (1.0 + math.exp(-eta))
    # The negative binomial is declared by its mean e^u, not by its natural parameter.
    return math.exp(eta)


def log_densities(model: Model, x: Array, u: Array, sigma2: float) -> Array:
    """log p(x | u) of each number."""
    mean = np.array([conditional_mean(model, float(one)) for one in u])
    if model.family == "gaussian":
        return np.asarray(stats.norm.logpdf(x, loc=mean, scale=math.sqrt(sigma2)))
    if model.family == "poisson":
        return np.asarray(stats.poisson.logpmf(x, mean))
    if model.family == "bernoulli":
        return np.asarray(stats.bernoulli.logpmf(x, mean))
    assert model.family == "negative-binomial", model.family
    return np.asarray(stats.nbinom.logpmf(x, model.r, model.r / (model.r + mean)))


def slope(model: Model, x: float, u: float, sigma2: float) -> float:
    """d log p(x | u) / du."""
    mean = conditional_mean(model, u)
    if model.family == "negative-binomial":
        return (x - mean) * model.r / (model.r + mean)
    residual = (x - mean) / sigma2 if model.family == "gaussian" else x - mean
    return residual * natural_slope(model.link, u)
