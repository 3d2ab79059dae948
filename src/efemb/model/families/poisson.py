"""Poisson conditionals for counts (p-emb with the identity link, ap-emb with the log link)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from efemb._typing import Floats
from efemb.model.families.base import Family, Interval, safe_exp


class Poisson(Family):
    """x | eta ~ Poisson(exp(eta)), x = 0, 1, ...

    Examples
    --------
    >>> Poisson().mean(np.array([0.0, 1.0])).round(2)
    array([1.  , 2.72])
    """

    support: ClassVar[Interval] = Interval(low=0, integer=True)
    links = ("identity", "log", "softplus", "log-softplus")
    normalized_score = True
    exponential_mean = True
    takes_exposure = True
    linear_mean = True

    @property
    def kernel_size(self) -> float:
        """Infinite."""
        return float("inf")

    def statistic(self, x: Floats) -> Floats:
        """Return x."""
        return x

    def log_normalizer(self, eta: Floats) -> Floats:
        """Return exp(eta)."""
        return safe_exp(eta)

    def mean(self, eta: Floats) -> Floats:
        """Return exp(eta)."""
        return safe_exp(eta)

    def log_normalizer_and_mean(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return exp(eta) twice."""
        rate = safe_exp(eta)
        return rate, rate

    def log_base_measure(self, x: Floats) -> Floats:
        """Return -log x!."""
        from scipy.special import gammaln

        return np.asarray(-gammaln(x + 1.0))

    def tail(self, k: Floats, v: Floats) -> Floats:
        """Return P(x >= k), a regularized incomplete gamma function."""
        from scipy.special import gammainc

        return np.where(np.less_equal(k, 0), 1.0, gammainc(np.maximum(k, 1.0), safe_exp(v)))

    def variance_of_mean(self, mean: Floats) -> Floats:
        """Return the mean."""
        return mean

    def predictor(self, mean: Floats) -> Floats:
        """Return log(mean)."""
        return np.log(mean)

    def sample(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """Draw counts."""
        return rng.poisson(safe_exp(eta)).astype(np.float64)
