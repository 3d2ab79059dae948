"""Exact prediction of each number of a row from the others, under Gaussian factors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from efemb.types import Bools, Floats

# Below this share of the noise in an entity's variance given the rest, the difference 1 - h has
# lost half of its digits, and the entity is left out by a solution of its own.
DOUBTFUL = 1e-8


def gaussian_left_out(
    gap: Floats, loadings: Floats, noise: Floats, advance: Callable[[int], None]
) -> tuple[Floats, Floats]:
    """E[gap_n | the other observed numbers of the row] and its variance, both (T, N).

    gap (T, N): numbers less their means, NaN where missing (predicted from all that are observed);
    loadings (N, K), noise (N,): gap = loadings z + Normal(0, noise), z ~ Normal(0, I).
    """
    mean, variance = np.empty_like(gap), np.empty_like(gap)
    seen = ~np.isnan(gap)
    _, first, pattern = np.unique(
        np.packbits(seen, axis=1), axis=0, return_index=True, return_inverse=True
    )
    order = np.argsort(pattern.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(pattern.ravel()))
    for which, rows in enumerate(np.split(order, ends[:-1])):
        mask = seen[first[which]]
        mean[rows], variance[rows] = _one_pattern(gap[rows], mask, loadings, noise)
        advance(len(rows))
    return mean, variance


def _one_pattern(
    gap: Floats, seen: Bools, loadings: Floats, noise: Floats
) -> tuple[Floats, Floats]:
    """Rows that lack the same cells; x_n - E[x_n | rest] = (x_n - fit_n) / (1 - h_n)."""
    covariance, factor = _posterior(gap, seen, loadings, noise)
    spread = np.einsum("nk,nk->n", loadings @ covariance, loadings)
    fit = factor @ loadings.T
    rest = np.where(seen, 1.0 - spread / noise, 1.0)
    safe = np.maximum(rest, DOUBTFUL)
    mean = np.where(seen, gap - (gap - fit) / safe, fit)
    variance = np.where(seen, noise / safe, noise + spread)
    for n in np.flatnonzero(rest < DOUBTFUL):
        others = seen.copy()
        others[n] = False
        own, alone = _posterior(gap, others, loadings, noise)
        mean[:, n] = alone @ loadings[n]
        variance[n] = noise[n] + loadings[n] @ own @ loadings[n]
    return mean, np.broadcast_to(variance, mean.shape)


def _posterior(gap: Floats, seen: Bools, loadings: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Covariance (K, K) and means (rows, K) of the factors given the numbers at `seen`."""
    W = loadings[seen]
    weighted = W / noise[seen, None]
    covariance = np.linalg.inv(np.eye(W.shape[1]) + weighted.T @ W)
    return covariance, gap[:, seen] @ weighted @ covariance
