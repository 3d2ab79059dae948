"""Factor analysis of data with missing values, by expectation-maximization on what is observed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from efemb._typing import Bools, Floats

LEAST_NOISE = 1e-6  # part of an entity's variance
RIDGE = 1e-9  # keeps the regression of an entity with few observations regular


@dataclass
class Factors:
    """x_t = mean + W' z_t + noise: mean (N,), loadings W' (N, K), noise variances (N,)."""

    mean: Floats
    loadings: Floats
    noise: Floats
    n_iter: int = 0


def fit_observed(
    values: Floats,
    k: int,
    *,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
    advance: Callable[[int], None],
) -> Factors:
    """Maximize the likelihood of the observed values; NaN marks the others.

    Stops where the log-likelihood of all rows rises by less than `tol`.
    """
    seen = ~np.isnan(values)
    filled = np.where(seen, values, 0.0)
    factors, least = _start(filled, seen, k, rng)
    before = -np.inf
    for step in range(1, max_iter + 1):
        z, covariance, likelihood = _expect(filled, seen, factors)
        factors.n_iter = step
        if likelihood - before < tol:
            break
        before = likelihood
        _maximize(filled, seen, z, covariance, factors, least)
        advance(1)
    return factors


def _start(filled: Floats, seen: Bools, k: int, rng: np.random.Generator) -> tuple[Factors, Floats]:
    """Principal components of the data with means in the gaps, and the least noise."""
    count = np.maximum(seen.sum(axis=0), 1)
    mean = filled.sum(axis=0) / count
    gap = np.where(seen, filled - mean, 0.0)
    variance = (gap**2).sum(axis=0) / count
    least = LEAST_NOISE * np.where(variance > 0, variance, max(float(variance.mean()), 1e-300))
    _, size, basis = np.linalg.svd(gap, full_matrices=False)
    loadings = np.zeros((filled.shape[1], k))
    known = min(k, len(size))
    loadings[:, :known] = basis[:known].T * (size[:known] / np.sqrt(len(filled)))
    loadings += 1e-3 * np.sqrt(variance)[:, None] * rng.normal(size=loadings.shape)
    noise = np.maximum(variance - (loadings**2).sum(axis=1), np.maximum(0.1 * variance, least))
    return Factors(mean, loadings, noise), least


def _expect(filled: Floats, seen: Bools, factors: Factors) -> tuple[Floats, Floats, float]:
    """Means (T, K) and covariances (T, K, K) of the factors, and the log-likelihood."""
    loadings, noise = factors.loadings, factors.noise
    k = loadings.shape[1]
    outer = (loadings[:, :, None] * loadings[:, None, :] / noise[:, None, None]).reshape(-1, k * k)
    precision = (seen @ outer).reshape(-1, k, k) + np.eye(k)
    gap = np.where(seen, filled - factors.mean, 0.0)
    along = (gap / noise) @ loadings
    covariance = np.linalg.inv(precision)
    z = np.einsum("tkl,tl->tk", covariance, along)
    sign, log_det = np.linalg.slogdet(precision)
    assert (sign > 0).all()  # the identity is in it
    constant = seen @ np.log(2.0 * np.pi * noise)
    quadratic = (gap**2 / noise).sum(axis=1) - (along * z).sum(axis=1)
    return z, covariance, -0.5 * float((quadratic + log_det + constant).sum())


def _maximize(
    filled: Floats, seen: Bools, z: Floats, covariance: Floats, factors: Factors, least: Floats
) -> None:
    """Regress every entity on the factors of the rows in which it is observed, in place."""
    k = z.shape[1]
    moments = (covariance + z[:, :, None] * z[:, None, :]).reshape(-1, k * k)
    count = seen.sum(axis=0).astype(np.float64)
    gram = np.empty((len(count), k + 1, k + 1))
    gram[:, :k, :k] = (seen.T @ moments).reshape(-1, k, k)
    gram[:, :k, k] = gram[:, k, :k] = seen.T @ z
    gram[:, k, k] = count
    cross = np.concatenate([filled.T @ z, filled.sum(axis=0)[:, None]], axis=1)
    regular = gram + RIDGE * np.maximum(count, 1.0)[:, None, None] * np.eye(k + 1)
    solution = np.linalg.solve(regular, cross[:, :, None])[:, :, 0]
    factors.loadings, factors.mean = solution[:, :k], solution[:, k]
    left = (filled**2).sum(axis=0) - 2.0 * np.einsum("nk,nk->n", solution, cross)
    left += np.einsum("nk,nkl,nl->n", solution, gram, solution)
    factors.noise = np.maximum(left / np.maximum(count, 1.0), least)
