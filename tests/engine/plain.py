"""The basket objective as plain loops, a weight for every cell; gradients by differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from efemb.model.factors import Factors

Array = Any
Density = Callable[[float, float], float]
STEP = 1e-5


def poisson(x: float, u: float) -> float:
    return float(stats.poisson.logpmf(x, np.exp(u)))


def additive_poisson(x: float, u: float) -> float:
    return float(stats.poisson.logpmf(x, max(u, 1e-6)))


def bernoulli(x: float, u: float) -> float:
    return float(stats.bernoulli.logpmf(x, 1 / (1 + np.exp(-u))))


def gaussian(x: float, u: float) -> float:
    return float(stats.norm.logpdf(x, u, np.sqrt(0.7)))


def negative_binomial(x: float, u: float) -> float:
    return float(stats.nbinom.logpmf(x, 1.5, 1.5 / (1.5 + np.exp(u))))


def context(x: Array, n: int, alpha: Array, scale: str) -> Array:
    """Scaled sum of the row's other members; x holds 0 where a cell is masked."""
    total, divisor = np.zeros(alpha.shape[1]), 0.0
    for m, value in enumerate(x):
        if m != n and value != 0:
            total += value * alpha[m]
            divisor += {"none": 0.0, "items": 1.0, "total": value}[scale]
    return total / (divisor or 1.0)


def value(X: Array, W: Array, vectors: Factors, scale: str, density: Density) -> float:
    """Sum of W log p over all cells; cells that are NaN are neither zero, target nor context."""
    seen = np.nan_to_num(X)
    found = 0.0
    for t in range(X.shape[0]):
        for n in range(X.shape[1]):
            if np.isnan(X[t, n]) or W[t, n] == 0:
                continue
            s = context(seen[t], n, vectors.bag, scale)
            u = float(vectors.target[n] @ s + vectors.intercept[n])
            found += W[t, n] * density(X[t, n], u)
    return found


def gradient(X: Array, W: Array, vectors: Factors, scale: str, density: Density) -> Factors:
    """Central differences of `value`."""
    slopes = Factors.zeros_like(vectors)
    for name in ("target", "bag", "intercept"):
        theta, slope = getattr(vectors, name), getattr(slopes, name)
        for place in np.ndindex(theta.shape):
            kept = theta[place]
            sides = []
            for nudge in (STEP, -STEP):
                theta[place] = kept + nudge
                sides.append(value(X, W, vectors, scale, density))
            theta[place] = kept
            slope[place] = (sides[0] - sides[1]) / (2 * STEP)
    return slopes


def flat(vectors: Factors, n: int) -> Array:
    """A gradient as one vector over n entities, also one that covers only some of them."""
    parts = []
    for array in (vectors.target, vectors.bag, vectors.intercept):
        full = array
        if vectors.rows is not None:
            full = np.zeros((n, *array.shape[1:]))
            full[vectors.rows] = array
        parts.append(full.ravel())
    return np.concatenate(parts)
