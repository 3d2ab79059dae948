"""Gaussian conditionals for real numbers (g-emb, ng-emb)."""

from __future__ import annotations

import math
from copy import copy
from typing import ClassVar

import numpy as np

from efemb._typing import Floats
from efemb.errors import ParameterError
from efemb.model.families.base import Family, Interval
from efemb.model.ingredient import positive_number

LEAST = 1e-12  # part of the variance of the data that a learned one is at least


class Gaussian(Family):
    """x | eta ~ Normal(eta, sigma2): t(x) = x / sigma2, a = eta^2 / (2 sigma2).

    Parameters
    ----------
    sigma2 : float or "learned"
        Variance of the conditionals; "learned" maximises the likelihood over it as well.
    """

    support: ClassVar[Interval] = Interval()
    links = ("identity", "softplus")
    missing = True
    quadratic = True

    def __init__(self, sigma2: float | str = 1.0) -> None:
        self.sigma2 = sigma2

    @property
    def variance(self) -> float:  # type: ignore[override]
        """The variance in use; that of the data until a learned one is known."""
        return self.scale if isinstance(self.sigma2, str) else float(self.sigma2)

    def statistic(self, x: Floats) -> Floats:
        """Return x / sigma2."""
        return x / self.variance

    def log_normalizer(self, eta: Floats) -> Floats:
        """Return eta^2 / (2 sigma2)."""
        return eta * eta / (2.0 * self.variance)

    def mean(self, eta: Floats) -> Floats:
        """Return eta / sigma2."""
        return eta / self.variance

    def expected_value(self, eta: Floats) -> Floats:
        """Return eta."""
        return eta

    def variance_of_mean(self, mean: Floats) -> Floats:
        """Return sigma2."""
        return np.full_like(mean, self.variance)

    def log_base_measure(self, x: Floats) -> Floats:
        """Return -x^2 / (2 sigma2) - log(2 pi sigma2) / 2."""
        constant = 0.5 * math.log(2.0 * math.pi * self.variance)
        return -(x * x) / (2.0 * self.variance) - constant

    def sample(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """Draw from Normal(eta, sigma2)."""
        return rng.normal(eta, math.sqrt(self.variance))

    def check(self) -> None:
        """`sigma2` must be positive or "learned"."""
        if isinstance(self.sigma2, str):
            if self.sigma2 != "learned":
                raise ParameterError(
                    f'Gaussian.sigma2 must be > 0 or "learned", got {self.sigma2!r}'
                )
        else:
            positive_number(self, "sigma2")

    @property
    def learns(self) -> bool:
        """Whether sigma2 is still to be learned."""
        return self.sigma2 == "learned"

    def adapt(self, value: float, weight: float) -> Family:
        """Return the Gaussian of the best variance, the mean squared residual behind `value`."""
        if not weight > 0:  # nothing observed: any variance is as good
            return self
        variance = self.variance
        squares = -2.0 * variance * (value + 0.5 * weight * math.log(2.0 * math.pi * variance))
        adapted = copy(self)  # of the same class, with its other options
        adapted.sigma2 = max(squares / weight, LEAST * self.scale)
        return adapted

    def scaled_to(self, scale: float) -> Family:
        """Return the same family; a variance that is learned starts at the scale."""
        scaled = copy(self)
        scaled.scale = scale
        return scaled
