"""Design: one entity as the target of a generalised linear model on its contexts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.model.families.base import Family
from efemb.model.links import FLOOR, Link
from efemb.model.objective import residual, value_and_slope
from efemb.model.predictor import affine
from efemb.model.spec import Spec

Inverse = Callable[[Floats, Ints], Floats]  # (gradients (m, p), which (m,)) -> steps (m, p)
ROWS_AT_ONCE = 4096
DIFFERENCE = 1e-5


@dataclass(frozen=True)
class Design:
    """u_t = rho . z_t + b for the observations x_t of one entity.

    contexts : (T, K) scaled context sums z, and the row side of further terms beside them
    x, weight : (T,)
    """

    contexts: Floats
    x: Floats
    weight: Floats

    def evaluate(self, spec: Spec, rho: Floats, intercept: float) -> tuple[float, Floats, float]:
        """Log-likelihood (without base measures) and its gradient in rho and the intercept."""
        u = affine(self.contexts, rho, intercept)
        value, slope = value_and_slope(spec.family, spec.link, self.x, u)
        slope = self.weight * slope
        return float(self.weight @ value), slope @ self.contexts, float(slope.sum())

    def information(self, spec: Spec, rho: Floats, intercept: float) -> Floats:
        """-d2 L / d(rho, b)2 = sum of w c (z, 1)(z, 1)', (K + 1, K + 1) in float64."""
        total: Any = 0.0
        for rows, x, u, weight in self._blocks(rho, intercept):
            each = weight * curvature(spec.family, spec.link, x, u)
            total = total + (rows * each[:, None]).T @ rows
        return np.asarray(total)

    def score_moments(self, spec: Spec, rho: Floats, intercept: float) -> Floats:
        """Sum over the rows of the outer products of their scores, (K + 1, K + 1)."""
        total: Any = 0.0
        for rows, x, u, weight in self._blocks(rho, intercept):
            each = weight * residual(spec.family, spec.link, x, u)
            total = total + (rows * (each**2)[:, None]).T @ rows
        return np.asarray(total)

    def _blocks(
        self, rho: Floats, intercept: float
    ) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
        """Some rows at a time in float64: (z, 1), x, u, weight."""
        vector = rho.astype(np.float64)
        for start in range(0, len(self.x), ROWS_AT_ONCE):
            block = slice(start, start + ROWS_AT_ONCE)
            rows = np.ones((len(self.x[block]), len(vector) + 1))
            rows[:, :-1] = self.contexts[block]
            x, weight = self.x[block].astype(np.float64), self.weight[block].astype(np.float64)
            yield rows, x, affine(rows[:, :-1], vector, intercept), weight


def curvature(family: Family, link: Link, x: Floats, u: Floats) -> Floats:
    """-d2 log p / du2 by central differences of the slope, in float64.

    With the identity link and eta = u it is the variance of t(x).

    >>> from efemb import Bernoulli
    >>> from efemb.model.links import Identity
    >>> curvature(Bernoulli(), Identity(), np.zeros(1), np.zeros(1)).round(6)
    array([0.25])
    """
    # Where u must be positive, its size is all there is to compare with.
    size = np.maximum(np.abs(u), FLOOR) if link.needs_positive else 1.0 + np.abs(u)
    h = DIFFERENCE * size
    rise = residual(family, link, x, u - h) - residual(family, link, x, u + h)
    return np.asarray(rise / (2.0 * h))


def typical_curvature(family: Family, link: Link, total: Floats, n_rows: int) -> Floats:
    """Curvature of a zero of each entity where its mean is that of the data."""
    mean = total.astype(np.float64) / max(n_rows, 1)
    if family.support.low == 0:
        mean = np.maximum(mean, 0.1 / max(n_rows, 1))
    return np.abs(curvature(family, link, np.zeros(len(mean)), family.predictor(mean)))


class Conditionals(ABC):
    """The models of some entities given contexts that are known.

    n : how many entities;  k : length of their vectors, entity sides of further terms included
    noise : (n,) what the noise of sampled zeros takes off their intercepts
    dtype : of values and gradients
    """

    spec: Spec
    n: int
    k: int
    noise: Floats
    dtype: np.dtype[np.floating]

    @abstractmethod
    def evaluate(
        self, rho: Floats, intercept: Floats, which: Ints
    ) -> tuple[Floats, Floats, Floats]:
        """Log-likelihoods of some entities, and gradients in their vectors and intercepts.

        The noise is off the intercepts already.
        """

    @abstractmethod
    def design(self, place: int) -> Design:
        """The rows of one entity."""

    @abstractmethod
    def inverse(self, rho: Floats, intercept: Floats, prior: Floats) -> Inverse:
        """Roughly the inverse of each entity's information plus a diagonal `prior` (n, p)."""
