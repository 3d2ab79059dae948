"""Zero-inflated counts: an entity is either not on offer, or on offer and maybe not chosen."""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import InputTypeError, ParameterError
from efemb.model.families.base import Density, Family, Interval, check_by_entity, extend_by_mean
from efemb.model.ingredient import positive_number
from efemb.model.links import logistic

PER_ENTITY = "per-entity"
NEWTON_STEPS = 30
LARGEST_LOGIT = 12.0


class ZeroInflated(Density):
    """x = 0 with probability 1 - p_n, else x | v as in a family of counts (Liu and Blei, 2017).

    A zero counts by the probability that it comes from the count distribution,
    r = p f(0) / (1 - p + p f(0)): its gradient is that of the family times r. So zeros weigh less
    if the entity may not have been on offer; by how much is learned from the data.

    Only counts above 1 distinguish the exposure p_n from a low rate; if there are few, the prior
    decides. Since E[x] = p_n E[x | exposed], shares of means cannot show the benefit of a constant
    exposure: `score` and early stopping use the log-density of all cells.

    Parameters
    ----------
    family : str or Family, default="poisson"
        Counts of entities on offer: ``"poisson"`` or ``NegativeBinomial(r)``.
    exposure : "per-entity", float or array of shape (N,), default="per-entity"
        Probability p_n in (0, 1]. "per-entity" learns one for each entity by expectation
        maximization between passes; numbers are known exposures.
    prior_mean, prior_sd : float, default=2.0 and 1.0
        Normal prior of the log-odds of a learned p_n.

    Examples
    --------
    >>> import efemb
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.poisson(3.0, (300, 4)) * (rng.random((300, 4)) < [0.9, 0.3, 0.6, 0.6])
    >>> family = ZeroInflated("poisson")
    >>> model = efemb.Embedding(1, family=family, context="basket", random_state=0).fit(counts)
    >>> model.family_.exposure.round(1).tolist()
    [0.9, 0.3, 0.6, 0.6]
    >>> model.exposure(1)["exposure"].round(1).tolist()
    [0.3]
    """

    support: ClassVar[Interval] = Interval(low=0, integer=True)
    links = ("identity",)
    normalized_score = True
    judged_by_density = True

    def __init__(
        self,
        family: Any = "poisson",
        exposure: Any = PER_ENTITY,
        prior_mean: float = 2.0,
        prior_sd: float = 1.0,
    ) -> None:
        self.family = family
        self.exposure = exposure
        self.prior_mean = prior_mean
        self.prior_sd = prior_sd

    @property
    def _counts(self) -> Family:
        return Family.resolve(self.family)

    def _share(self, dtype: Any) -> Any:
        """p of one or several entities, in the given precision."""
        if isinstance(self.exposure, str):
            return np.dtype(dtype).type(logistic(np.asarray(float(self.prior_mean))))
        return np.asarray(self.exposure, dtype=dtype)

    # -- density -----------------------------------------------------------------------------------

    def value_and_slope(self, x: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Return log p(x) without the base measure of the counts, and its derivative in v."""
        family, p = self._counts, self._share(v.dtype)
        value, slope = family.value_and_slope(x, v)
        zero = p * np.exp(value)  # at x = 0, where log h of counts is 0
        unexposed = 1.0 - p + zero
        is_zero = x == 0
        with np.errstate(divide="ignore", invalid="ignore"):
            mixed = np.where(is_zero, np.log(unexposed), np.log(p) + value)
            responsible = np.where(is_zero & (unexposed > 0), zero / unexposed, 1.0)
            # With p = 1 and a probability that underflows, only the counts remain.
            mixed = np.where(is_zero & ~(unexposed > 0), np.log(p) + value, mixed)
        return mixed.astype(v.dtype), (responsible * slope).astype(v.dtype)

    def log_base_measure(self, x: Floats) -> Floats:
        """Return the base measure of the counts."""
        return self._counts.log_base_measure(x)

    def expected_value(self, eta: Floats) -> Floats:
        """Return p times the mean of the counts."""
        family = self._counts
        exposed = family.expected_value(family.natural(eta))
        return np.asarray(self._share(eta.dtype) * exposed)

    def variance_of_mean(self, mean: Floats) -> Floats:
        """Return p (V + m^2 / p^2) - m^2, V the variance of counts of mean m / p."""
        p = self._share(mean.dtype)
        exposed = mean / p
        return np.asarray(p * (self._counts.variance_of_mean(exposed) + exposed**2) - mean**2)

    def tail(self, k: Floats, v: Floats) -> Floats:
        """Return P(x >= k)."""
        exposed = self._share(np.float64) * self._counts.tail(k, v)
        return np.where(np.less_equal(k, 0), 1.0, exposed)

    def predictor(self, mean: Floats) -> Floats:
        """Return the predictor of counts of mean m / p."""
        return self._counts.predictor(mean / self._share(mean.dtype))

    def sample(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """Draw counts, and zeros for entities that are not exposed."""
        family = self._counts
        draws = family.sample(family.natural(eta), rng)
        return np.asarray(draws * (rng.random(eta.shape) < self._share(eta.dtype)))

    # -- exposures ---------------------------------------------------------------------------------

    @property
    def varies(self) -> bool:
        """Whether each entity has its own exposure."""
        return isinstance(self.exposure, (str, np.ndarray))

    @property
    def learns(self) -> bool:
        """Whether exposures are still to be learned."""
        return isinstance(self.exposure, str)

    @property
    def n_entities(self) -> int | None:
        """Number of exposures."""
        return len(self.exposure) if isinstance(self.exposure, np.ndarray) else None

    def exposures(self, n_entities: int) -> Floats:
        """Return p_n of every entity."""
        return np.broadcast_to(self._share(np.float64), (n_entities,))

    def at(self, entities: Ints) -> Family:
        """Return the family with the exposures of these entities."""
        if not isinstance(self.exposure, np.ndarray):
            return self
        return self._with(self.exposure[entities])

    def grow(self, n_entities: int) -> Family:
        """Return the family for further entities, of mean exposure."""
        if not isinstance(self.exposure, np.ndarray):
            return self
        return self._with(extend_by_mean(self.exposure, n_entities))

    def evidence(self, x: Floats, v: Floats) -> Floats:
        """Return the probability that the entity was exposed, 1 where x > 0."""
        value, _ = self._counts.value_and_slope(np.zeros_like(v), v)
        p = self._share(v.dtype)
        zero = p * np.exp(value)
        with np.errstate(invalid="ignore", divide="ignore"):
            responsible = np.where(zero + 1.0 - p > 0, zero / (zero + 1.0 - p), 1.0)
        return np.asarray(np.where(x > 0, 1.0, responsible).astype(v.dtype))

    def adapt_entities(self, total: Floats, weight: Floats) -> Family:
        """Return the family with the most probable exposures given the responsibilities.

        Solves total - weight p(z) = (z - prior_mean) / prior_sd^2 for the log-odds z, whose left
        side falls and whose right side rises, by Newton steps inside a bracket.
        """
        precision = 1.0 / float(self.prior_sd) ** 2
        z = np.full(len(total), float(self.prior_mean))
        low, high = np.full_like(z, -LARGEST_LOGIT), np.full_like(z, LARGEST_LOGIT)
        for _ in range(NEWTON_STEPS):
            p = logistic(z)
            gap = total - weight * p - precision * (z - self.prior_mean)
            low, high = np.where(gap > 0, z, low), np.where(gap > 0, high, z)
            step = z + gap / (weight * p * (1.0 - p) + precision)
            z = np.where((step > low) & (step < high), step, 0.5 * (low + high))
        return self._with(logistic(z))

    def _with(self, exposure: Floats) -> ZeroInflated:
        family = copy(self)
        family.exposure = exposure
        return family

    def check(self) -> None:
        """Check the counts, the exposures and their prior."""
        family = self._counts
        family.check()
        if not (family.exponential_mean and not family.softmax and family.support.integer):
            raise ParameterError(
                f"ZeroInflated takes families of counts ('poisson', NegativeBinomial(r)), got "
                f"{self.family!r}"
            )
        positive_number(self, "prior_sd")
        if isinstance(self.prior_mean, (bool, str)) or not np.isfinite(self.prior_mean):
            raise InputTypeError(
                f"ZeroInflated.prior_mean must be a finite number, got {self.prior_mean!r}"
            )
        self._check_exposure()

    def _check_exposure(self) -> None:
        if isinstance(self.exposure, str):
            if self.exposure != PER_ENTITY:
                raise ParameterError(
                    "ZeroInflated.exposure must be 'per-entity', a number in (0, 1] or an array of "
                    f"them, got {self.exposure!r}"
                )
            return
        if isinstance(self.exposure, np.ndarray):
            check_by_entity(self, "exposure", self.exposure)
        else:
            positive_number(self, "exposure")
        if np.max(self.exposure) > 1:
            raise ParameterError(
                f"ZeroInflated.exposure must be a probability <= 1, got {np.max(self.exposure)}"
            )
