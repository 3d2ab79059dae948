"""Priors of the vectors: log-penalties without constants and without a Jacobian."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import ClassVar

import numpy as np

from efemb._typing import Floats
from efemb.errors import ParameterError
from efemb.model.ingredient import Ingredient, positive_number


class Prior(Ingredient, ABC):
    """log p(theta) up to a constant, and its derivative in the unconstrained parameter.

    If `positive` is true, the vectors are positive and the unconstrained parameter is their
    logarithm: `gradient` is then d log p / d log theta.
    """

    positive: bool = False
    is_ridge: ClassVar[bool] = False  # -precision/2 sum theta^2, which steps can use in closed form
    not_inherited = ("shrinkage", "is_ridge")

    @property
    def shrinkage(self) -> float:
        """The precision of a quadratic penalty, which a step can include; 0 for other priors."""
        return 0.0

    @property
    def automatic(self) -> bool:
        """Whether the precision is chosen from the data."""
        return False

    def with_chosen_precision(self, precision: float) -> Prior:
        """The prior with this precision if it is chosen from the data, else unchanged."""
        return self

    @abstractmethod
    def log_density(self, theta: Floats) -> float:
        """Return log p(theta) summed over all numbers."""

    @abstractmethod
    def gradient(self, theta: Floats) -> Floats:
        """Return the derivative with respect to the unconstrained parameter."""

    def of_positive(self) -> Prior:
        """The same penalty on positive vectors if there is one, else the prior itself."""
        return self

    def tightened(self, precision: float) -> Prior:
        """The prior with at least this precision, if it is a penalty about 0."""
        return self

    def check(self) -> None:
        """Raise if an option is out of range."""


class QuadraticPrior(Prior):
    """-precision/2 sum theta^2, with a precision that may be left to the data."""

    def __init__(self, precision: float | str = 1.0) -> None:
        self.precision = precision

    @property
    def strength(self) -> float:
        """The precision, 1 where the data do not choose one; inherited, unlike `shrinkage`."""
        return 1.0 if isinstance(self.precision, str) else float(self.precision)

    def log_density(self, theta: Floats) -> float:
        """Return -precision/2 sum theta^2."""
        return -0.5 * self.strength * float(np.vdot(theta, theta))

    @property
    def automatic(self) -> bool:
        """Whether the precision is left to the data."""
        return isinstance(self.precision, str)

    def with_chosen_precision(self, precision: float) -> Prior:
        """The prior with this precision if it is chosen from the data, else unchanged."""
        return self._with(precision) if self.automatic else self

    def tightened(self, precision: float) -> Prior:
        """The prior with the larger of both precisions."""
        return self._with(max(self.strength, precision))

    def _with(self, precision: float) -> Prior:
        prior = copy(self)
        prior.precision = precision
        return prior

    def check(self) -> None:
        """Precision must be >= 0, or "auto"."""
        if self.precision != "auto":
            positive_number(self, "precision", zero=True)


class Normal(QuadraticPrior):
    """-precision/2 sum theta^2: the paper's lambda.

    Parameters
    ----------
    precision : float or "auto", default=1.0
        "auto" is chosen from the data by the solver "moments", and 1 elsewhere.

    Examples
    --------
    >>> Normal(2.0).log_density(np.array([1.0, 3.0]))
    -10.0
    """

    is_ridge = True

    @property
    def shrinkage(self) -> float:
        """The precision."""
        return self.strength

    def gradient(self, theta: Floats) -> Floats:
        """Return -precision theta."""
        return -self.strength * theta

    def of_positive(self) -> HalfNormal:
        """The half-normal prior of the same precision."""
        return HalfNormal(self.precision)


class LogNormal(Prior):
    """-precision/2 sum (log theta - center)^2 on positive vectors.

    Parameters
    ----------
    precision : float, default=1.0
        Strength of the penalty; 0 has none, but keeps the vectors positive.
    center : float, default=0.0
        Value of log theta that is not penalized.

    Examples
    --------
    >>> LogNormal(1.0).log_density(np.exp([0.0, 2.0]))
    -2.0
    """

    positive = True

    def __init__(self, precision: float = 1.0, center: float = 0.0) -> None:
        self.precision = precision
        self.center = center

    def log_density(self, theta: Floats) -> float:
        """Return -precision/2 sum (log theta - center)^2."""
        gap = np.log(theta) - self.center
        return -0.5 * self.precision * float(np.vdot(gap, gap))

    def gradient(self, theta: Floats) -> Floats:
        """Return -precision (log theta - center), the derivative in log theta."""
        return -self.precision * (np.log(theta) - self.center)

    def check(self) -> None:
        """Precision must be >= 0, the center finite."""
        positive_number(self, "precision", zero=True)
        if not np.isfinite(self.center):
            raise ParameterError(f"LogNormal.center must be finite, got {self.center!r}")


class HalfNormal(QuadraticPrior):
    """-precision/2 sum theta^2 on positive vectors.

    Parameters
    ----------
    precision : float or "auto", default=1.0
        "auto" is chosen from the data by the solver "moments", and 1 elsewhere.

    Examples
    --------
    >>> HalfNormal(2.0).gradient(np.array([1.0, 3.0]))  # in log theta
    array([ -2., -18.])
    """

    positive = True

    @property
    def shrinkage(self) -> float:
        """The precision."""
        return self.strength

    def gradient(self, theta: Floats) -> Floats:
        """Return -precision theta^2, the derivative in log theta."""
        return -self.strength * theta * theta


def resolve_pair(prior: object) -> tuple[Prior | None, Prior | None]:
    """A single prior for both kinds of vectors, or a pair (for rho, for alpha)."""
    if isinstance(prior, str) and prior == "auto":
        prior = Normal("auto")
    pair = prior if isinstance(prior, tuple) and len(prior) == 2 else (prior, prior)
    rho, alpha = (None if one is None else Prior.resolve(one) for one in pair)
    for one in (rho, alpha):
        if one is not None:
            one.check()
    return rho, alpha
