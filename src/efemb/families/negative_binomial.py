"""Negative binomial conditionals for counts that vary more than a Poisson's."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from efemb.families.base import Family, Interval, safe_exp
from efemb.ingredient import positive_number
from efemb.types import Floats


class NegativeBinomial(Family):
    """x | u with mean e^u and variance e^u + e^(2u) / r: eta = u - log(r + e^u).

    Parameters
    ----------
    r : float
        Size (inverse dispersion), fixed; the Poisson is the limit of large r.
    """

    support: ClassVar[Interval] = Interval(low=0, integer=True)
    links = ("identity",)
    normalized_score = True
    exponential_mean = True

    def __init__(self, r: float = 1.0) -> None:
        self.r = r

    def statistic(self, x: Floats) -> Floats:
        """Return x."""
        return x

    def log_normalizer(self, eta: Floats) -> Floats:
        """Return -r log(1 - exp(eta)), eta < 0."""
        return -self.r * np.log(-np.expm1(eta))

    def mean(self, eta: Floats) -> Floats:
        """Return r exp(eta) / (1 - exp(eta))."""
        return -self.r * np.exp(eta) / np.expm1(eta)

    def log_base_measure(self, x: Floats) -> Floats:
        """Return log of Gamma(x + r) / (x! Gamma(r))."""
        from scipy.special import gammaln

        return np.asarray(gammaln(x + self.r) - gammaln(x + 1.0) - gammaln(self.r))

    def natural(self, v: Floats) -> Floats:
        """Return v - log(r + e^v), kept below 0 in finite precision."""
        floor = np.finfo(v.dtype).tiny ** 0.5
        return np.asarray(np.minimum(-np.log1p(self.r * np.exp(-np.clip(v, -80.0, 80.0))), -floor))

    def natural_derivative(self, v: Floats) -> Floats:
        """Return r / (r + e^v)."""
        return self.r / (self.r + safe_exp(v))

    def predictor(self, mean: Floats) -> Floats:
        """Return log(mean)."""
        return np.log(mean)

    def sample(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """Draw counts."""
        return rng.negative_binomial(self.r, -np.expm1(eta)).astype(np.float64)

    def check(self) -> None:
        """`r` must be positive."""
        positive_number(self, "r")
