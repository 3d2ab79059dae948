"""Shares from scores that only rank: a power of the score, backed off to popularity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from efemb.types import Floats, Ints

# Standard deviation of the normal prior on log power and log weight, worth one entry: it only
# matters where a handful of entries would be explained best by an infinite power.
PRIOR_DEVIATION = 2.0
START_BACKOFF = 0.1  # of the mean sum of positive scores


@dataclass(frozen=True)
class Calibration:
    """m_j = max(score_j, 0)^power + weight * backoff_j, in proportion to the share of entity j.

    power, weight : > 0
    backoff : (N,) positive shares with a sum of 1: of the entities' popularity, or 1 / N
    """

    backoff: Floats
    power: float = 1.0
    weight: float = 1.0

    def log_means(self, scores: Floats) -> Floats:
        """log m_j, elementwise; scores : (..., N)."""
        positive = np.maximum(scores, 0.0, dtype=np.float64)
        return np.asarray(np.log(positive**self.power + self.weight * self.backoff))

    @classmethod
    def fit(cls, backoff: Floats, scores: Floats, entities: Ints) -> Calibration:
        """Maximise the mean log share of held-out entries.

        scores : (n, N), of all entities given the row of each held-out entry without it
        entities : (n,), the held-out entries
        """
        from scipy.optimize import minimize

        # The backoff sums to 1 and other scores count as 0, so only positive ones are needed.
        cell, _ = np.nonzero(scores > 0)
        positive = scores[scores > 0].astype(np.float64)
        if len(positive) == 0:
            return cls(backoff)
        own = np.maximum(scores[np.arange(len(entities)), entities], 0.0).astype(np.float64)
        # In units of the mean positive sum the start does not depend on the scale of the scores.
        start = np.log([1.0, START_BACKOFF * positive.sum() / len(entities)])

        def loss(point: Floats) -> float:
            power, weight = np.exp(point)
            total = np.bincount(cell, positive**power, len(entities)) + weight
            log_share = np.log(own**power + weight * backoff[entities]) - np.log(total)
            log_prior = -0.5 * np.sum(((point - start) / PRIOR_DEVIATION) ** 2)
            return -float(log_share.sum() + log_prior) / len(entities)

        simplex = start + 0.5 * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        options: Any = {"initial_simplex": simplex, "xatol": 0.01, "fatol": 1e-5}
        best = minimize(loss, start, method="Nelder-Mead", options=options).x
        return cls(backoff, *(float(value) for value in np.exp(best)))
