"""Categorical conditionals: which entity a unit of the row is (softmax over entities)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from efemb._typing import Floats
from efemb.model.families.base import Family, Interval, safe_exp


class Categorical(Family):
    """Each unit of x_tn is a draw of entity n: L = sum of x_tn [u_n - logsumexp_j u_j].

    The log-normalizer couples all entities, so the solvers treat this family separately; the
    elementwise methods below are those of the unnormalized weights exp(eta), whose shares
    are the probabilities.

    Examples
    --------
    >>> weight = Categorical().mean(np.log([1.0, 3.0]))
    >>> weight / weight.sum()
    array([0.25, 0.75])
    """

    support: ClassVar[Interval] = Interval(low=0, integer=True)
    links = ("identity",)
    normalized_score = True
    exponential_mean = True
    softmax = True
    word_kernel = True

    def statistic(self, x: Floats) -> Floats:
        """Return x."""
        return x

    def log_normalizer(self, eta: Floats) -> Floats:
        """Return logsumexp over the last axis."""
        top = eta.max(axis=-1, keepdims=True)
        return np.asarray(top + np.log(np.exp(eta - top).sum(axis=-1, keepdims=True)))

    def mean(self, eta: Floats) -> Floats:
        """Return the unnormalized weight exp(eta)."""
        return safe_exp(eta)

    def predictor(self, mean: Floats) -> Floats:
        """Return log(mean): only differences between entities matter."""
        return np.log(mean)

    def sample(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """Draw one entity for each row, as indicator vectors over the last axis."""
        noise = rng.gumbel(size=eta.shape)
        winner = np.argmax(eta + noise, axis=-1)
        return np.asarray(np.eye(eta.shape[-1])[winner])
