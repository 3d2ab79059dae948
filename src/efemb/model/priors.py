"""Priors of the vectors: log-penalties without constants and without a Jacobian."""

from __future__ import annotations

from abc import ABC, abstractmethod
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

    def settled(self, precision: float) -> Prior:
        """The prior with this precision if it is chosen from the data, else unchanged."""
        return self

    @abstractmethod
    def log_density(self, theta: Floats) -> float:
        """Return log p(theta) summed over all numbers."""

    @abstractmethod
    def gradient(self, theta: Floats) -> Floats:
        """Return the derivative with respect to the unconstrained parameter."""

    def of_positive(self) -> Prior:
        """The same penalty on positive vectors, where there is one; else the prior itself."""
        return self

    def tightened(self, precision: float) -> Prior:
        """The prior with at least this precision, if it is a penalty about 0."""
        return self

    def check(self) -> None:
        """Raise if an option is out of range."""


class Normal(Prior):
    """-precision/2 sum theta^2: the paper's lambda.

    Parameters
    ----------
    precision : float or "auto", default=1.0
        "auto" is chosen from the data by the solver "moments", and 1 elsewhere.
    """

    is_ridge = True

    def __init__(self, precision: float | str = 1.0) -> None:
        self.precision = precision

    def log_density(self, theta: Floats) -> float:
        """Return -precision/2 sum theta^2."""
        return -0.5 * self.shrinkage * float(np.vdot(theta, theta))

    @property
    def shrinkage(self) -> float:
        """The precision."""
        return 1.0 if isinstance(self.precision, str) else float(self.precision)

    @property
    def automatic(self) -> bool:
        """Whether the precision is left to the data."""
        return isinstance(self.precision, str)

    def settled(self, precision: float) -> Prior:
        """The prior with this precision if it is chosen from the data, else unchanged."""
        return Normal(precision) if self.automatic else self

    def gradient(self, theta: Floats) -> Floats:
        """Return -precision theta."""
        return -self.shrinkage * theta

    def of_positive(self) -> HalfNormal:
        """With the same precision."""
        return HalfNormal(self.precision)

    def tightened(self, precision: float) -> Normal:
        """The prior with the larger of both precisions."""
        return Normal(max(self.shrinkage, precision))

    def check(self) -> None:
        """Precision must be >= 0, or "auto"."""
        if self.precision != "auto":
            positive_number(self, "precision", zero=True)


class LogNormal(Prior):
    """-precision/2 sum (log theta - center)^2 on positive vectors.

    Parameters
    ----------
    precision : float, default=1.0
        Strength of the penalty; 0 has none, but keeps the vectors positive.
    center : float, default=0.0
        Value of log theta that is not penalized.
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


class HalfNormal(Prior):
    """-precision/2 sum theta^2 on positive vectors.

    Parameters
    ----------
    precision : float or "auto", default=1.0
        "auto" is chosen from the data by the solver "moments", and 1 elsewhere.
    """

    positive = True

    def __init__(self, precision: float | str = 1.0) -> None:
        self.precision = precision

    def log_density(self, theta: Floats) -> float:
        """Return -precision/2 sum theta^2."""
        return -0.5 * self.shrinkage * float(np.vdot(theta, theta))

    @property
    def shrinkage(self) -> float:
        """The precision."""
        return 1.0 if isinstance(self.precision, str) else float(self.precision)

    @property
    def automatic(self) -> bool:
        """Whether the precision is left to the data."""
        return isinstance(self.precision, str)

    def settled(self, precision: float) -> Prior:
        """The prior with this precision if it is chosen from the data, else unchanged."""
        return HalfNormal(precision) if self.automatic else self

    def gradient(self, theta: Floats) -> Floats:
        """Return -precision theta^2, the derivative in log theta."""
        return -self.shrinkage * theta * theta

    def tightened(self, precision: float) -> HalfNormal:
        """With the larger of both precisions."""
        return HalfNormal(max(self.shrinkage, precision))

    def check(self) -> None:
        """Precision must be >= 0, or "auto"."""
        if self.precision != "auto":
            positive_number(self, "precision", zero=True)


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
