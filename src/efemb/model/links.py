"""Links map the inner product u to the natural parameter eta; GLMs name links by the mean instead.

`identity` on a Poisson gives a multiplicative mean (p-emb), `log` an additive one (ap-emb).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from efemb._typing import Floats
from efemb.model.ingredient import Ingredient

FLOOR = 1e-6


class Link(Ingredient, ABC):
    """eta = f(u), applied to arrays."""

    needs_positive: bool = False
    # For kernels and closed forms, which support these links but not their subclasses:
    is_identity: bool = False
    is_log: bool = False
    not_inherited = ("is_identity", "is_log")

    @abstractmethod
    def __call__(self, u: Floats) -> Floats:
        """Return f(u)."""

    @abstractmethod
    def derivative(self, u: Floats) -> Floats:
        """Return f'(u)."""


class Identity(Link):
    """f(u) = u."""

    is_identity = True

    def __call__(self, u: Floats) -> Floats:
        """Return u itself."""
        return u

    def derivative(self, u: Floats) -> Floats:
        """Return ones."""
        return np.ones_like(u)


class Log(Link):
    """f(u) = log(max(u, 1e-6)); the derivative is 0 below the floor. Needs positive vectors."""

    needs_positive = True
    is_log = True

    def __call__(self, u: Floats) -> Floats:
        """Return the logarithm of the floored u."""
        return np.log(np.maximum(u, FLOOR))

    def derivative(self, u: Floats) -> Floats:
        """Return 1/u above the floor, else 0."""
        return np.where(u > FLOOR, 1.0 / np.maximum(u, FLOOR), 0.0).astype(u.dtype, copy=False)


class Softplus(Link):
    """f(u) = log(1 + exp(u)): a Gaussian mean above 0, a Poisson mean of 1 + e^u."""

    def __call__(self, u: Floats) -> Floats:
        """Return log(1 + exp(u)) without overflow."""
        return np.logaddexp(u, np.zeros_like(u))

    def derivative(self, u: Floats) -> Floats:
        """Return the logistic function of u."""
        return logistic(u)


class LogSoftplus(Link):
    """f(u) = log log(1 + exp(u)): the mean of a Poisson is softplus(u), with signed vectors."""

    def __call__(self, u: Floats) -> Floats:
        """Return log softplus(u); for very negative u that is u."""
        low = u < -15.0
        safe = np.where(low, 0.0, u)
        return np.where(low, u, np.log(np.logaddexp(safe, 0.0))).astype(u.dtype, copy=False)

    def derivative(self, u: Floats) -> Floats:
        """Return logistic(u) / softplus(u); for very negative u that is 1."""
        low = u < -15.0
        safe = np.where(low, 0.0, u)
        slope = logistic(safe) / np.logaddexp(safe, 0.0)
        return np.where(low, 1.0, slope).astype(u.dtype, copy=False)


def logistic(u: Floats) -> Floats:
    """1 / (1 + exp(-u)) without overflow."""
    small = np.exp(-np.abs(u))
    return np.where(u >= 0, 1.0, small) / (1.0 + small)
