"""Family: an exponential family as its mathematics, in NumPy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.errors import InputTypeError, ParameterError
from efemb.model.ingredient import Ingredient

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


@dataclass(frozen=True)
class Interval:
    """Valid values of an observation."""

    low: float = -np.inf
    high: float = np.inf
    integer: bool = False

    def broken_by(self, x: Floats) -> Bools:
        """Mask of the values outside the interval (NaN is missing, not outside)."""
        with np.errstate(invalid="ignore"):
            bad = (x < self.low) | (x > self.high) | np.isinf(x)
            if self.integer:
                bad |= (x != np.floor(x)) & ~np.isnan(x)
        return np.asarray(bad)

    def __str__(self) -> str:
        """Words for error messages."""
        if self.integer and (self.low, self.high) == (0, 1):
            return "0 or 1"
        kind = "whole numbers" if self.integer else "numbers"
        low = "" if self.low == -np.inf else f" >= {self.low:g}"
        high = "" if self.high == np.inf else f"{' and' if low else ''} <= {self.high:g}"
        return f"{kind}{low}{high}"


class Family(Ingredient, ABC):
    """p(x | eta) = h(x) exp(eta t(x) - a(eta)), elementwise on arrays.

    A family needs three methods: `statistic`, `log_normalizer` and `mean`. The others have
    defaults that suit a family with t(x) = x and h = 1.
    """

    package = "efemb.model.families"
    support: ClassVar[Interval] = Interval()
    links: ClassVar[tuple[str, ...] | None] = None  # None: any link
    normalized_score: ClassVar[bool] = False  # score by m_n / sum of m_j (counts, binary)
    # Score and stop early by the log-density of all cells; shares of means are not informative.
    judged_by_density: ClassVar[bool] = False
    exponential_mean: ClassVar[bool] = False  # E[x] = exp(f(u))
    missing: ClassVar[bool] = False  # NaN means "not observed"
    softmax: ClassVar[bool] = False  # each unit is one of all entities, whose shares sum to 1
    logistic: ClassVar[bool] = False  # u is a log-odds
    mixes: ClassVar[bool] = False  # entities belong to different families
    takes_exposure: ClassVar[bool] = False  # a factor of the mean is an offset of u
    # For kernels and closed forms, which support these families but not their subclasses:
    quadratic: ClassVar[bool] = False  # log p is a quadratic in eta
    linear_mean: ClassVar[bool] = False  # a(eta) = exp(eta): under the log link, the mean u
    word_kernel: ClassVar[bool] = False  # the kernels of text have its gradient
    not_inherited = ("kernel_size", "quadratic", "linear_mean", "word_kernel")
    states: int = 1  # numbers of an observation that indicate its state
    scale: float = 1.0  # variance of the data, if a dispersion is to be learned
    variance: float = 1.0  # of the conditionals, if it is a parameter of the family

    @property
    def kernel_size(self) -> float | None:
        """Size r of the equivalent negative binomial, for the fused kernel of zeros.

        Infinite for the Poisson, 1 for the Bernoulli, None if there is no kernel.
        """
        return None

    @abstractmethod
    def statistic(self, x: Floats) -> Floats:
        """Return the sufficient statistic t(x)."""

    @abstractmethod
    def log_normalizer(self, eta: Floats) -> Floats:
        """Return a(eta)."""

    @abstractmethod
    def mean(self, eta: Floats) -> Floats:
        """Return E[t(x)] = a'(eta)."""

    def log_normalizer_and_mean(self, eta: Floats) -> tuple[Floats, Floats]:
        """Both at once, for families whose formulas share work."""
        return self.log_normalizer(eta), self.mean(eta)

    def value_and_slope(self, x: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Return log p(x) - log h(x) at the linked predictor v = f(u), and its derivative in v.

        eta t(x) - a(eta) and (t(x) - E[t(x)]) d eta / dv. Solvers, scores and inference only use
        this method: a density that is not of this form, such as one inflated at zero, overrides it.
        """
        eta, statistic = self.natural(v), self.statistic(x)
        normalizer, mean = self.log_normalizer_and_mean(eta)
        return eta * statistic - normalizer, (statistic - mean) * self.natural_derivative(v)

    def log_base_measure(self, x: Floats) -> Floats:
        """Return log h(x)."""
        return np.zeros_like(x)

    def expected_value(self, eta: Floats) -> Floats:
        """Return E[x]; the same as `mean` where t(x) = x."""
        return self.mean(eta)

    def natural(self, v: Floats) -> Floats:
        """Return eta from the linked inner product v = f(u); v itself by default."""
        return v

    def natural_derivative(self, v: Floats) -> Floats | float:
        """Return d eta / d v."""
        return 1.0

    def variance_of_mean(self, mean: Floats) -> Floats:
        """Return Var[x] as a function of E[x]."""
        raise ParameterError(f"{type(self).__name__} does not define `variance_of_mean`")

    def predictor(self, mean: Floats) -> Floats:
        """Return the v whose expected value is `mean`, the starting value of an intercept."""
        return mean

    def tail(self, k: Floats, v: Floats) -> Floats:
        """Return P(x >= k) of counts at the linked predictor v; k and v broadcast.

        Sums probabilities; families with a special function for the sum override it.
        """
        if not self.support.integer or self.softmax:
            raise ParameterError(f"{type(self).__name__} is not a family of counts")
        k, v = np.broadcast_arrays(np.asarray(k, dtype=np.float64), v)
        below, low = np.zeros(v.shape), self.support.low
        for x in np.arange(low, min(float(k.max(initial=low)), self.support.high + 1.0)):
            value, _ = self.value_and_slope(np.full_like(v, x), v)
            log_p = value + self.log_base_measure(np.full_like(v, x))
            below += np.where(x < k, np.exp(log_p), 0.0)
        return np.asarray(np.clip(1.0 - below, 0.0, 1.0))

    def exposures(self, n_entities: int) -> Floats | None:
        """Return the probability that each entity is on offer, None if all of them always are."""
        return None

    def sample(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """Draw observations."""
        raise ParameterError(f"{type(self).__name__} has no `sample`: define it to simulate data")

    def check(self) -> None:
        """Raise if an option is out of range."""

    def adapt(self, value: float, weight: float) -> Family:
        """Return the family with its dispersion refitted, given the log-likelihood it reached.

        Only families with a dispersion to learn override this.
        """
        return self

    def freeze(self, data: Dataset) -> Family:
        """Return the family with what it needs to know about the entities of the data."""
        return self

    def parts(self, data: Dataset) -> Iterator[tuple[Ints, Family]]:
        """Pairs of entities and the family of their values; here, all entities and this family."""
        yield np.arange(data.n_entities), self

    def scaled_to(self, scale: float) -> Family:
        """Return the family for data of this variance; overridden by families that learn."""
        return self

    @property
    def learns(self) -> bool:
        """Whether `adapt` (or `adapt_entities`, if entities vary) has anything to learn."""
        return False

    # Entities with parameters of their own, such as a variance for each neuron.

    @property
    def varies(self) -> bool:
        """Whether entities have their own parameters."""
        return False

    @property
    def n_entities(self) -> int | None:
        """Number of entities the family has parameters for, None if it takes any number."""
        return None

    def at(self, entities: Ints) -> Family:
        """Return the family of some entities, an integer array of any shape.

        Parameters of the result have that shape, so that its methods take arrays that broadcast
        against it. Returns the family itself if entities do not differ.
        """
        return self

    def grow(self, n_entities: int) -> Family:
        """Return the family for further entities, whose parameters are typical of the others."""
        return self

    def evidence(self, x: Floats, v: Floats) -> Floats:
        """Return the number of each cell whose sum by entity is the input of `adapt_entities`."""
        raise ParameterError(f"{type(self).__name__} has no parameters of entities to learn")

    def adapt_entities(self, total: Floats, weight: Floats) -> Family:
        """Return the family refitted, given sums of `evidence` and of weights by entity, (N,)."""
        return self


def extend_by_mean(values: Floats, size: int) -> Floats:
    """Parameters of more entities: new ones get the mean of the known ones."""
    return np.append(values, np.full(size - len(values), values.mean()))


def check_by_entity(owner: Family, option: str, values: Floats) -> None:
    """Reject entity parameters that are not positive numbers, one per entity."""
    name = f"{type(owner).__name__}.{option}"
    if values.ndim != 1 or values.dtype.kind not in "fiu":
        raise InputTypeError(f"{name} must hold one number per entity, got shape {values.shape}")
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise ParameterError(f"{name} must be finite and > 0, got {values[first]} (entity {first})")


def safe_exp(v: Floats) -> Floats:
    """exp(v) that stays finite: the exponent is capped well inside the range of the dtype."""
    return np.exp(np.minimum(v, 30.0 if v.dtype == np.float32 else 300.0))


class Density(Family):
    """A density not of the form h(x) exp(eta t(x) - a(eta)), such as mixtures and ordered answers.

    It needs two methods: `value_and_slope` and `expected_value`. Methods that need the exponential
    form itself (closed forms of zeros, matrix factorization baselines) do not accept it.
    """

    @abstractmethod
    def value_and_slope(self, x: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Return log p(x) at the linked predictor v = f(u), and its derivative in v."""

    @abstractmethod
    def expected_value(self, eta: Floats) -> Floats:
        """Return E[x] at v = eta."""

    def statistic(self, x: Floats) -> Floats:
        """Return x."""
        return x

    def log_normalizer(self, eta: Floats) -> Floats:
        """Raise an error, because there is none."""
        raise ParameterError(f"{type(self).__name__} is not an exponential family in eta")

    def mean(self, eta: Floats) -> Floats:
        """Raise an error, because there is no log-normalizer to differentiate."""
        raise ParameterError(f"{type(self).__name__} is not an exponential family in eta")
