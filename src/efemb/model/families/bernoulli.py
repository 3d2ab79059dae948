"""Bernoulli conditionals for 0/1 data (b-emb)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from efemb._typing import Floats
from efemb.model.families.base import Family, Interval
from efemb.model.links import logistic


class Bernoulli(Family):
    """x | eta ~ Bernoulli(1 / (1 + exp(-eta))), x in {0, 1}.

    Examples
    --------
    >>> Bernoulli().mean(np.array([0.0, 2.0])).round(2)
    array([0.5 , 0.88])
    """

    support: ClassVar[Interval] = Interval(low=0, high=1, integer=True)
    links = ("identity",)
    normalized_score = True
    logistic = True
    word_kernel = True

    @property
    def kernel_size(self) -> float:
        """1."""
        return 1.0

    def statistic(self, x: Floats) -> Floats:
        """Return x."""
        return x

    def log_normalizer(self, eta: Floats) -> Floats:
        """Return log(1 + exp(eta))."""
        return np.logaddexp(eta, np.zeros_like(eta))

    def mean(self, eta: Floats) -> Floats:
        """Return the logistic function of eta."""
        return logistic(eta)

    def variance_of_mean(self, mean: Floats) -> Floats:
        """Return m (1 - m)."""
        return mean * (1.0 - mean)

    def predictor(self, mean: Floats) -> Floats:
        """Return the log-odds of `mean`."""
        inside = np.clip(mean, 1e-7, 1.0 - 1e-7)
        return np.asarray(np.log(inside) - np.log1p(-inside))

    def sample(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """Draw zeros and ones."""
        return (rng.random(eta.shape) < self.mean(eta)).astype(np.float64)
