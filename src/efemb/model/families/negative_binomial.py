"""Negative binomial conditionals for counts that vary more than Poisson counts."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from efemb._typing import Floats
from efemb.model.families.base import Family, Interval, safe_exp
from efemb.model.ingredient import positive_number
from efemb.model.links import logistic

HALF = float(np.log(0.5))


class NegativeBinomial(Family):
    """x | u with mean e^u and variance e^u + e^(2u) / r: eta = u - log(r + e^u).

    Parameters
    ----------
    r : float, default=1.0
        Size (inverse dispersion), fixed; the Poisson is the limit of large r.

    Examples
    --------
    >>> NegativeBinomial(2.0).variance_of_mean(np.array([1.0, 10.0]))
    array([ 1.5, 60. ])
    """

    support: ClassVar[Interval] = Interval(low=0, integer=True)
    links = ("identity",)
    normalized_score = True
    exponential_mean = True

    def __init__(self, r: float = 1.0) -> None:
        self.r = r

    @property
    def kernel_size(self) -> float:
        """r."""
        return float(self.r)

    def statistic(self, x: Floats) -> Floats:
        """Return x."""
        return x

    def log_normalizer(self, eta: Floats) -> Floats:
        """Return -r log(1 - exp(eta)), eta < 0."""
        # Two ways to write 1 - exp(eta), each accurate where the other one loses digits: far
        # below 0 (as for large r) and near 0.
        far, near = np.minimum(eta, HALF), np.maximum(eta, HALF)
        log = np.where(eta < HALF, np.log1p(-np.exp(far)), np.log(-np.expm1(near)))
        return np.asarray(-self.r * log.astype(eta.dtype, copy=False))

    def mean(self, eta: Floats) -> Floats:
        """Return r exp(eta) / (1 - exp(eta))."""
        return -self.r * np.exp(eta) / np.expm1(eta)

    def log_base_measure(self, x: Floats) -> Floats:
        """Return log of Gamma(x + r) / (x! Gamma(r)) = -log(x B(x, r)), 0 at x = 0."""
        from scipy.special import betaln

        positive = np.where(x > 0, x, 1.0)  # differences of gammas cancel for large r
        return np.where(x > 0, -np.log(positive) - betaln(positive, self.r), 0.0)

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

    def tail(self, k: Floats, v: Floats) -> Floats:
        """Return P(x >= k), a regularized incomplete beta function."""
        from scipy.special import betainc

        share = logistic(v - np.log(self.r))
        return np.where(np.less_equal(k, 0), 1.0, betainc(np.maximum(k, 1.0), self.r, share))

    def variance_of_mean(self, mean: Floats) -> Floats:
        """Return m + m^2 / r."""
        return mean + mean * mean / float(self.r)

    def sample(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """Draw counts."""
        return rng.negative_binomial(self.r, -np.expm1(eta)).astype(np.float64)

    def check(self) -> None:
        """`r` must be positive."""
        positive_number(self, "r")
