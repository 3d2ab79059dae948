"""Every cell of a block of rows by matrix products, stored entries in the same products."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from efemb.contexts.row_bags import RowBlock
from efemb.engine.vectors import Vectors
from efemb.engine.zero_stages import HIDDEN
from efemb.objective import value_and_slope
from efemb.types import Floats, Ints

if TYPE_CHECKING:
    from efemb.engine.rows import RowsSolver

TILE_BYTES = 32 << 20


def cell_terms(
    solver: RowsSolver,
    block: RowBlock,
    vectors: Vectors,
    sums: Floats,
    weight: Floats,
    zero_weight: Floats,
    column_weight: Floats,
) -> tuple[float, Vectors, Floats]:
    """Value, gradient and the gradient of the bag sums, with every zero exact.

    With E = Z rho' a stored entry needs no inner product of its own: without itself it has
    u = (E total - own alpha_n . rho_n) / rest + b. Its slope, times total / rest, goes into its
    cell of E, so that the two products that carry the zeros back carry the entries as well; only
    the part of an entry's own alpha is left, and that is one number an entity.
    """
    from efemb.kernels.rows import take_own

    Z = sums / block.total[:, None]
    itself = np.einsum("nk,nk->n", vectors.target, vectors.bag[: len(vectors.target)])
    gradient = Vectors(
        np.empty_like(vectors.target), np.zeros_like(vectors.bag), np.zeros_like(vectors.intercept)
    )
    g_context = np.zeros_like(Z)
    part = solver.pool.buffer("slope part", g_context.shape, Z.dtype)
    own_slope = np.zeros_like(vectors.intercept)
    value = 0.0
    for tile, entries in _tiles(block, len(vectors.target), Z):
        E = solver.pool.buffer("tile", (len(Z), tile.stop - tile.start), Z.dtype)
        np.matmul(Z, vectors.target[tile].T, out=E)
        row, ids = block.row_of_entry[entries], block.ids[entries]
        cells = (row, ids - tile.start)
        whole = E[cells]
        E[cells] = HIDDEN
        column = gradient.intercept[tile]
        arrays = (vectors.intercept[tile], zero_weight, column_weight[tile], column)
        value += solver.slopes(E, *arrays)
        gain, slope = _entries(solver, block, entries, whole, itself, vectors.intercept, weight)
        value += gain
        rest = block.rest[entries]
        E[cells] = slope * block.total[row] / rest
        own_slope += np.bincount(ids, slope * block.own[entries] / rest, len(own_slope))
        gradient.intercept += np.bincount(ids, slope, len(own_slope)).astype(Z.dtype)
        np.matmul(E.T, Z, out=gradient.target[tile])
        g_context += np.matmul(E, vectors.target[tile], out=part)
    take_own(own_slope, vectors.target, vectors.bag, gradient.target, gradient.bag)
    g_context /= block.total[:, None]
    return value, gradient, g_context


def _entries(
    solver: RowsSolver,
    block: RowBlock,
    entries: Ints | slice,
    whole: Floats,
    itself: Floats,
    intercept: Floats,
    weight: Floats,
) -> tuple[float, Floats]:
    """Log-density (less the base measure) and slopes of stored entries, 0 where masked."""
    row, ids = block.row_of_entry[entries], block.ids[entries]
    left = whole * block.total[row] - block.own[entries] * itself[ids]
    u = left / block.rest[entries] + intercept[ids]
    gain, slope = value_and_slope(solver.family, solver.spec.link, block.filled[entries], u)
    entry_weight = weight[row] * block.seen[entries]
    return float(entry_weight @ gain), (entry_weight * slope).astype(u.dtype, copy=False)


def _tiles(block: RowBlock, n_entities: int, Z: Floats) -> list[tuple[slice, Ints | slice]]:
    """Column tiles that fit the cache, each with the places of its stored entries."""
    width = max(64, TILE_BYTES // (Z.itemsize * max(len(Z), 1)))
    if width >= n_entities:
        return [(slice(0, n_entities), slice(None))]
    tile_of = block.ids // width
    order = np.argsort(tile_of, kind="stable")
    starts = range(0, n_entities, width)
    edges = np.searchsorted(tile_of[order], np.arange(len(starts) + 1))
    return [
        (slice(start, min(start + width, n_entities)), order[edges[i] : edges[i + 1]])
        for i, start in enumerate(starts)
    ]
