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
from efemb.engine.vectors import Vectors
from efemb.families import Bernoulli, Family, Gaussian, NegativeBinomial, Poisson
from efemb.links import Identity, Link, Log
from efemb.objective import log_density, residual
from efemb.types import Floats, Ints

TILE_BYTES = 2 << 20  # a tile of inner products should stay in the second-level cache


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


class ZeroStage(ABC):
    """A way to add up the zeros of a block."""

    samples: bool = False

    @abstractmethod
    def __call__(
        self,
        Z: Floats,
        vectors: Vectors,
        row_weight: Floats,
        columns: Columns,
        gradient: Vectors,
        g_Z: Floats,
        pool: Workers,
    ) -> float:
        """Add the gradient, fill g_Z and return the log-density."""


class MatrixStage(ZeroStage):
    """Any family: inner products, slopes and gradients as matrix products, tile by tile."""

    samples = True

    def __init__(self, family: Family, link: Link, dtype: Any) -> None:
        self.family, self.link = family, link
        self.kernel = _fused(family, link) if dtype == np.float32 else None
        self.size = float(getattr(family, "r", 1.0))

    def __call__(
        self,
        Z: Floats,
        vectors: Vectors,
        row_weight: Floats,
        columns: Columns,
        gradient: Vectors,
        g_Z: Floats,
        pool: Workers,
    ) -> float:
        """Three products a tile: Z rho', slopes' Z, slopes rho."""
        drawn = columns.index
        target = vectors.target if drawn is None else vectors.target[drawn]
        intercept = vectors.intercept if drawn is None else vectors.intercept[drawn]
        n_rows, n_columns = len(Z), len(target)
        width = max(64, TILE_BYTES // (Z.itemsize * max(n_rows, 1)))
        column = np.zeros(n_columns, dtype=Z.dtype)
        g_Z[:] = 0
        part = pool.buffer("g_Z part", g_Z.shape, Z.dtype)
        value = 0.0
        for start in range(0, n_columns, width):
            tile = slice(start, min(start + width, n_columns))
            size = tile.stop - start
            E = pool.buffer("tile", (n_rows, size), Z.dtype)
            np.matmul(Z, target[tile].T, out=E)
            value += self._slopes(E, intercept[tile], row_weight, columns.weight[tile], column[tile])
            if drawn is None:
                g = pool.buffer("g_target", (size, Z.shape[1]), Z.dtype)
                gradient.target[tile] += np.matmul(E.T, Z, out=g)
            else:
                gradient.target[drawn[tile]] += E.T @ Z
            g_Z += np.matmul(E, target[tile], out=part)
        if drawn is None:
            gradient.intercept += column
        else:
            gradient.intercept[drawn] += column
        return value

    def _slopes(
        self, E: Floats, intercept: Floats, row_weight: Floats, weight: Floats, column: Floats
    ) -> float:
        if self.kernel is not None:
            return float(self.kernel(E, intercept, row_weight, weight, column, self.size))
        E += intercept
        zero = np.zeros_like(E)
        both = row_weight[:, None] * weight
        value = float((both * log_density(self.family, self.link, zero, E)).sum())
        E[:] = both * residual(self.family, self.link, zero, E)
        column += E.sum(axis=0)
        return value


class AdditiveStage(ZeroStage):
    """Poisson with the log link: the means add up, so their sum over entities is closed."""

    def __call__(
        self,
        Z: Floats,
        vectors: Vectors,
        row_weight: Floats,
        columns: Columns,
        gradient: Vectors,
        g_Z: Floats,
        pool: Workers,
    ) -> float:
        """Sum of -u over all cells is -(sum of rho) . Z - (sum of intercepts)."""
        every = vectors.target.sum(axis=0)
        weighted = row_weight @ Z
        gradient.target -= weighted
        gradient.intercept -= row_weight.sum()
        g_Z[:] = -row_weight[:, None] * every
        intercepts = float(vectors.intercept.sum(dtype=np.float64))
        return -float(weighted @ every) - float(row_weight.sum()) * intercepts


class QuadraticStage(ZeroStage):
    """Gaussian with the identity link: squares add up to a K x K form."""

    def __init__(self, family: Gaussian) -> None:
        self.family = family

    def __call__(
        self,
        Z: Floats,
        vectors: Vectors,
        row_weight: Floats,
        columns: Columns,
        gradient: Vectors,
        g_Z: Floats,
        pool: Workers,
    ) -> float:
        """Sum of u^2 over all cells, through M = sum of rho rho' and the cross terms."""
        rho, b = vectors.target, vectors.intercept
        inverse = 1.0 / self.family.variance
        weighted = row_weight[:, None] * Z
        outer, first, weight = weighted.T @ Z, weighted.sum(axis=0), row_weight.sum()
        cross, squares = b @ rho, float(b @ b)
        moment = rho.T @ rho
        gradient.target -= inverse * (rho @ outer + b[:, None] * first)
        gradient.intercept -= inverse * (rho @ first + b * weight)
        g_Z[:] = -inverse * (weighted @ moment + row_weight[:, None] * cross)
        total = float((moment * outer).sum()) + 2.0 * float(cross @ first) + squares * float(weight)
        constant = float(self.family.log_base_measure(np.zeros(1))[0])
        return -0.5 * inverse * total + constant * float(weight) * len(rho)


def choose_stage(family: Family, link: Link, dtype: Any, *, sampled: bool) -> ZeroStage:
    """The cheapest exact stage; sampling needs the one that can skip entities."""
    if not sampled and type(family) is Poisson and type(link) is Log:
        return AdditiveStage()
    if not sampled and type(family) is Gaussian and type(link) is Identity:
        return QuadraticStage(family)
    return MatrixStage(family, link, dtype)


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
