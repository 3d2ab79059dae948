"""Zero stages: the terms of a block of rows as if every cell were zero.

Each stage adds to the gradient of the target vectors and intercepts, fills the gradient of the
scaled bag sums Z, and returns the weighted log-density. Stored entries are put right afterwards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from efemb.engine.blocks import Workers
from efemb.families import Bernoulli, Family, Gaussian, NegativeBinomial, Poisson
from efemb.links import FLOOR, Identity, Link, Log
from efemb.objective import log_density, residual
from efemb.types import Floats, Ints
from efemb.vectors import Vectors


@dataclass(frozen=True)
class Columns:
    """Entities whose zeros are visited: all of them, or a weighted draw."""

    index: Ints | None
    weight: Floats

    def full_weight(self, n_entities: int) -> Floats:
        """Weight of every entity, 0 where it was not drawn."""
        if self.index is None:
            return self.weight
        full = np.zeros(n_entities, dtype=self.weight.dtype)
        full[self.index] = self.weight
        return full


@dataclass(frozen=True)
class ZeroBlock:
    """Rows as scaled bag sums Z, to be treated as if every visited cell were zero.

    gradient, g_context : where a stage adds the gradient of the vectors and writes that of Z
    """

    Z: Floats
    vectors: Vectors
    row_weight: Floats
    columns: Columns
    gradient: Vectors
    g_context: Floats
    pool: Workers


class ZeroStage(ABC):
    """A way to add up the zeros of a block."""

    @abstractmethod
    def __call__(self, block: ZeroBlock) -> float:
        """Add the gradient, fill g_context and return the log-density."""


# Finite, since the kernels are compiled for finite numbers; its exponential is 0.
HIDDEN = np.float32(-1e30)


class ZeroSlopes:
    """Turns a block of inner products into slopes of zero observations, in place."""

    def __init__(self, family: Family, link: Link, dtype: Any) -> None:
        self.family, self.link = family, link
        self.kernel = _fused(family, link) if dtype == np.float32 else None
        self.size = float(getattr(family, "r", 1.0))

    def __call__(
        self, E: Floats, intercept: Floats, row_weight: Floats, weight: Floats, column: Floats
    ) -> float:
        """Fill E with slopes and `column` with their column sums; returns the log-density.

        Cells that hold HIDDEN are no observations: their slope and log-density are 0.
        """
        if self.kernel is not None:
            return float(self.kernel(E, intercept, row_weight, weight, column, self.size))
        hidden = E == HIDDEN
        E[hidden] = 0.0
        E += intercept
        zero = np.zeros_like(E)
        both = np.where(hidden, 0.0, row_weight[:, None] * weight)
        value = float((both * log_density(self.family, self.link, zero, E)).sum())
        E[:] = both * residual(self.family, self.link, zero, E)
        column += E.sum(axis=0)
        return value


class SampledStage(ZeroStage):
    """Any family on drawn columns: three matrix products of rows x drawn x K."""

    def __init__(self, family: Family, link: Link, dtype: Any) -> None:
        self.slopes = ZeroSlopes(family, link, dtype)

    def __call__(self, block: ZeroBlock) -> float:
        """Z rho', slopes' Z, slopes rho."""
        Z, vectors, columns, gradient = block.Z, block.vectors, block.columns, block.gradient
        drawn = columns.index
        assert drawn is not None
        target, intercept = vectors.target[drawn], vectors.intercept[drawn]
        column = np.zeros(len(drawn), dtype=Z.dtype)
        E = block.pool.buffer("tile", (len(Z), len(drawn)), Z.dtype)
        np.matmul(Z, target.T, out=E)
        value = self.slopes(E, intercept, block.row_weight, columns.weight, column)
        gradient.target[drawn] += E.T @ Z
        gradient.intercept[drawn] += column
        np.matmul(E, target, out=block.g_context)
        return value


class AdditiveStage(ZeroStage):
    """Poisson with the log link: the means add up, so their sum over entities is closed."""

    def __call__(self, block: ZeroBlock) -> float:
        """Sum of -u over all cells is -(sum of rho) . Z - (sum of intercepts).

        Only an empty bag without an intercept lies below the floor of the link.
        """
        Z, vectors, row_weight, gradient = block.Z, block.vectors, block.row_weight, block.gradient
        every = vectors.target.sum(axis=0)
        weighted = row_weight @ Z
        gradient.target -= weighted
        block.g_context[:] = -row_weight[:, None] * every
        empty = float(row_weight[~Z.any(axis=1)].sum())
        filled = float(row_weight.sum()) - empty
        above = vectors.intercept > FLOOR
        gradient.intercept -= filled + empty * above
        plain = float(vectors.intercept.sum(dtype=np.float64))
        floored = float(np.maximum(vectors.intercept, FLOOR).sum(dtype=np.float64))
        return -float(weighted @ every) - filled * plain - empty * floored


class QuadraticStage(ZeroStage):
    """Gaussian with the identity link: squares add up to a K x K form."""

    def __init__(self, family: Gaussian) -> None:
        self.family = family

    def __call__(self, block: ZeroBlock) -> float:
        """Sum of u^2 over all cells, through M = sum of rho rho' and the cross terms."""
        Z, row_weight, gradient = block.Z, block.row_weight, block.gradient
        rho, b = block.vectors.target, block.vectors.intercept
        inverse = 1.0 / self.family.variance
        weighted = row_weight[:, None] * Z
        outer, first, weight = weighted.T @ Z, weighted.sum(axis=0), row_weight.sum()
        cross, squares = b @ rho, float(b @ b)
        moment = rho.T @ rho
        gradient.target -= inverse * (rho @ outer + b[:, None] * first)
        gradient.intercept -= inverse * (rho @ first + b * weight)
        block.g_context[:] = -inverse * (weighted @ moment + row_weight[:, None] * cross)
        total = float((moment * outer).sum()) + 2.0 * float(cross @ first) + squares * float(weight)
        constant = float(self.family.log_base_measure(np.zeros(1))[0])
        return -0.5 * inverse * total + constant * float(weight) * len(rho)


def closed_form(family: Family, link: Link) -> ZeroStage | None:
    """The stage that needs no pass over the cells, where there is one."""
    if type(family) is Poisson and type(link) is Log:
        return AdditiveStage()
    if type(family) is Gaussian and type(link) is Identity:
        return QuadraticStage(family)
    return None


def _fused(family: Family, link: Link) -> Callable[..., float] | None:
    from efemb.kernels import zero_terms

    if type(link) is not Identity:
        return None
    kernels: dict[type, Callable[..., float]] = {
        Poisson: zero_terms.poisson,
        Bernoulli: zero_terms.bernoulli,
        NegativeBinomial: zero_terms.negative_binomial,
    }
    return kernels.get(type(family))
