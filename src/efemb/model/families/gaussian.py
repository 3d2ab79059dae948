"""Gaussian conditionals for real numbers (g-emb, ng-emb)."""

from __future__ import annotations

import math
from copy import copy
from typing import Any, ClassVar

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import ParameterError
from efemb.model.families.base import Family, Interval, check_by_entity, extend_by_mean
from efemb.model.ingredient import positive_number

LEARNED, PER_ENTITY = "learned", "per-entity"
LEAST = 1e-12  # minimum of a learned variance, relative to the variance of the data


class Gaussian(Family):
    """x | eta ~ Normal(eta, sigma2): t(x) = x / sigma2, a = eta^2 / (2 sigma2).

    Parameters
    ----------
    sigma2 : float, "learned", "per-entity" or array of shape (N,), default=1.0
        Variance of the conditionals. "learned" maximizes the likelihood over it as well.
        "per-entity" learns one for each entity; the variance of all entities counts as one further
        observation of each, so that even a constant entity has one. An array holds known variances.

    Examples
    --------
    >>> import efemb
    >>> X = np.random.default_rng(0).normal(size=(200, 4)) * [1.0, 1.0, 3.0, 3.0]
    >>> family = Gaussian("per-entity")
    >>> model = efemb.GaussianEmbedding(1, family=family, random_state=0).fit(X)
    >>> np.sqrt(model.family_.sigma2).round().tolist()
    [1.0, 1.0, 3.0, 3.0]
    """

    support: ClassVar[Interval] = Interval()
    links = ("identity", "softplus")
    missing = True
    quadratic = True

    def __init__(self, sigma2: Any = 1.0) -> None:
        self.sigma2 = sigma2

    @property
    def variance(self) -> float:  # type: ignore[override]
        """The variance in use, or its mean; that of the data until one has been learned."""
        if isinstance(self.sigma2, str):
            return self.scale
        return float(self.sigma2.mean() if isinstance(self.sigma2, np.ndarray) else self.sigma2)

    @property
    def _variance(self) -> Any:
        """The variance as a number, or as an array that broadcasts against those of entities."""
        return self.sigma2 if isinstance(self.sigma2, np.ndarray) else self.variance

    @property
    def varies(self) -> bool:
        """Whether each entity has its own variance."""
        return isinstance(self.sigma2, np.ndarray) or self.sigma2 == PER_ENTITY

    @property
    def n_entities(self) -> int | None:
        """Number of variances."""
        return len(self.sigma2) if isinstance(self.sigma2, np.ndarray) else None

    def at(self, entities: Ints) -> Family:
        """Return the Gaussian with the variances of these entities."""
        if not isinstance(self.sigma2, np.ndarray):
            return self
        return self._with(self.sigma2[entities])

    def grow(self, n_entities: int) -> Family:
        """Return the Gaussian for further entities, of mean variance."""
        if not isinstance(self.sigma2, np.ndarray):
            return self
        return self._with(extend_by_mean(self.sigma2, n_entities))

    def statistic(self, x: Floats) -> Floats:
        """Return x / sigma2."""
        return self._like(x / self._variance, x)

    def log_normalizer(self, eta: Floats) -> Floats:
        """Return eta^2 / (2 sigma2)."""
        return self._like(eta * eta / (2.0 * self._variance), eta)

    def mean(self, eta: Floats) -> Floats:
        """Return eta / sigma2."""
        return self._like(eta / self._variance, eta)

    def expected_value(self, eta: Floats) -> Floats:
        """Return eta."""
        return eta

    def variance_of_mean(self, mean: Floats) -> Floats:
        """Return sigma2."""
        return np.full_like(mean, self._variance)

    def log_base_measure(self, x: Floats) -> Floats:
        """Return -x^2 / (2 sigma2) - log(2 pi sigma2) / 2."""
        variance = self._variance
        log = np.log if isinstance(variance, np.ndarray) else math.log
        constant = 0.5 * log(2.0 * math.pi * variance)
        return self._like(-(x * x) / (2.0 * self._variance) - constant, x)

    def sample(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """Draw from Normal(eta, sigma2)."""
        return rng.normal(eta, np.sqrt(self._variance))

    def _like(self, result: Floats, like: Floats) -> Floats:
        """The result in the precision of `like`; arrays of variances have another one."""
        return np.asarray(result, dtype=np.result_type(like))

    def check(self) -> None:
        """`sigma2` must be positive, "learned" or "per-entity"."""
        if isinstance(self.sigma2, str):
            if self.sigma2 not in (LEARNED, PER_ENTITY):
                raise ParameterError(
                    f'Gaussian.sigma2 must be > 0, "learned" or "per-entity", got {self.sigma2!r}'
                )
        elif isinstance(self.sigma2, np.ndarray):
            check_by_entity(self, "sigma2", self.sigma2)
        else:
            positive_number(self, "sigma2")

    @property
    def learns(self) -> bool:
        """Whether sigma2 is still to be learned."""
        return isinstance(self.sigma2, str)

    def adapt(self, value: float, weight: float) -> Family:
        """Return the Gaussian with the best variance: the mean squared residual behind `value`."""
        if not weight > 0:  # nothing was observed, so any variance will do
            return self
        variance = self.variance
        squares = -2.0 * variance * (value + 0.5 * weight * math.log(2.0 * math.pi * variance))
        return self._with(max(squares / weight, LEAST * self.scale))

    def evidence(self, x: Floats, v: Floats) -> Floats:
        """Return the squared residual."""
        return (x - v) ** 2

    def adapt_entities(self, total: Floats, weight: Floats) -> Family:
        """Return the Gaussian whose variances are mean squared residuals, slightly pooled."""
        if not weight.sum() > 0:
            return self
        pooled = max(float(total.sum() / weight.sum()), LEAST * self.scale)
        return self._with((np.maximum(total, 0.0) + pooled) / (weight + 1.0))

    def _with(self, sigma2: Any) -> Family:
        """A copy with this variance."""
        adapted = copy(self)
        adapted.sigma2 = sigma2
        return adapted

    def scaled_to(self, scale: float) -> Family:
        """Return the same family; a variance that is learned starts at the scale."""
        scaled = copy(self)
        scaled.scale = scale
        return scaled
