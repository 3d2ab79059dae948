"""Evidence: choice of the ridge of each entity from its Gram matrix, without held-out rows.

With weights w_m ~ Normal(0, sigma2 / (ridge_n r_m)), the observations of an entity are normal, and
their likelihood with the weights integrated out and the best sigma2 is a function of ridge_n alone.
Its best value is large if the members predict little, and small if they predict much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from efemb._typing import Floats

# Ridges that are tried, relative to the mean square of the members over all rows.
GRID = np.geomspace(1e-7, 1e3, 81)
# Weights of members shrink with the square of their distance, in units of the mean distance.
# The best of 0, 1, 2 and 3 on validation frames of two recordings; on recordings where distance is
# irrelevant, within 0.1% of the best.
DISTANCE_POWER = 2.0
NEAREST = 0.05  # minimum distance in units of the mean, so that every member is penalized
EM_STEPS, RAREST = 50, 1e-6
NOTHING = 5.0  # entities
# Weak prior of the variance, for entities with few rows that many members fit exactly: as if there
# were this number of further rows, whose squared residuals are this share of the squares.
PRIOR_ROWS, PRIOR_SHARE = 2.0, 0.1
EXACT = 1e-10  # share of the squares that may be rounding error


def distance_factors(distance: Floats | None, n_edges: int) -> Floats:
    """Relative penalty of the weight of each member, (edges,)."""
    mean = 0.0 if distance is None or n_edges == 0 else float(distance.mean())
    if distance is None or not mean > 0:
        return np.ones(n_edges)
    return np.asarray(np.maximum(distance / mean, NEAREST) ** DISTANCE_POWER)


@dataclass(frozen=True)
class Evidence:
    """The evidence of one entity, for each ridge of the grid.

    size : mean square of the members over all rows, the unit of the ridges; 0 if there are no
        weights to shrink
    log_evidence : (grid,) likelihood with the weights integrated out, at the best variance
    variance : (grid,) the best variance
    """

    size: float
    log_evidence: Floats
    variance: Floats


def measure_evidence(
    gram: Floats, cross: Floats, square: float, weight: float, factor: Floats
) -> Evidence:
    """The evidence of one entity for every ridge.

    Parameters
    ----------
    gram, cross : arrays (c, c) and (c,)
        Sums over the rows of z z' and x z, about the means if there is an intercept.
    square : float
        Sum of x^2, likewise.
    weight : float
        Total weight of the rows in which x is observed.
    factor : array (c,)
        Relative penalties r_m of the members.
    """
    size = float(np.trace(gram)) / max(len(cross), 1)
    if len(cross) == 0 or not size > 0 or not square > 0 or not weight > 0:
        variance = max(square, 0.0) / weight if weight > 0 else 0.0
        return Evidence(0.0, np.zeros(len(GRID)), np.full(len(GRID), variance))
    root = 1.0 / np.sqrt(factor)
    spread, basis = np.linalg.eigh(gram * root * root[:, None])
    spread = np.maximum(spread, 0.0)
    along = basis.T @ (cross * root)
    ridge = size * GRID
    left = square - (along[:, None] ** 2 / (spread[:, None] + ridge)).sum(axis=0)
    left = np.maximum(left, EXACT * square) + PRIOR_ROWS * PRIOR_SHARE * square / weight
    weight += PRIOR_ROWS
    log_evidence = -0.5 * weight * np.log(left)
    log_evidence -= 0.5 * np.log1p(spread[:, None] / ridge).sum(axis=0)
    return Evidence(size, log_evidence, left / weight)


def pool_evidence(log_evidence: Floats) -> Floats:
    """Probability of each ridge of the grid for each entity, (N, grid), by empirical Bayes.

    The prior over the grid is learned from all entities by EM. So chance is not mistaken for a
    signal if members do not help, and a few entities that are predicted exactly do not determine
    the ridges of the others. The largest ridge has a prior weight of `NOTHING` entities.
    """
    likelihood = np.exp(log_evidence - log_evidence.max(axis=1, keepdims=True))
    share: Floats = np.full(log_evidence.shape[1], 1.0 / log_evidence.shape[1])
    for _ in range(EM_STEPS):
        posterior = likelihood * share
        posterior /= posterior.sum(axis=1, keepdims=True)
        share = posterior.sum(axis=0)
        share[-1] += NOTHING
        share = np.maximum(share / share.sum(), RAREST)
    return np.asarray(posterior)


def ridge_weights(gram: Floats, cross: Floats, ridges: Floats) -> Floats:
    """Weights of a ridge regression for each of several ridges, (ridges, c)."""
    spread, basis = np.linalg.eigh(gram)
    spread = np.maximum(spread, 0.0)
    least = EXACT * max(float(spread[-1]), 1e-300) if len(spread) else 0.0
    along = basis.T @ cross
    return np.asarray((along / np.maximum(spread + ridges[:, None], least)) @ basis.T)
