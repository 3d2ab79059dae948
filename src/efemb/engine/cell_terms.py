"""Every cell of a block of rows by matrix products, stored entries in the same products."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from efemb.contexts.row_bags import RowBlock
from efemb.engine.zero_stages import HIDDEN
from efemb.objective import value_and_slope
from efemb.types import Floats
from efemb.vectors import Vectors

if TYPE_CHECKING:
    from efemb.engine.rows import RowsSolver

TILE_BYTES = 2 << 20  # inner products that stay near the core while they are used four times


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

    Entities go in tiles: E = Z rho' of the rows and a tile, its slopes as zeros, and two products
    that carry them back. The slope of a stored entry, times total / rest, takes the place of its
    cell in E, so that those products carry the entries as well; only the part of an entry's own
    alpha is left, and that is one number an entity.
    """
    from efemb.kernels.rows import entry_values, hide_cells, read_cells, take_own, write_cells

    Z = sums / block.total[:, None]
    itself = np.einsum("nk,nk->n", vectors.target, vectors.bag[: len(vectors.target)])
    gradient = Vectors(
        np.empty_like(vectors.target), np.zeros_like(vectors.bag), np.zeros_like(vectors.intercept)
    )
    g_context = np.zeros_like(Z)
    part = solver.pool.buffer("slope part", g_context.shape, Z.dtype)
    own_slope = np.zeros_like(vectors.intercept)
    entries = (block.ptr, block.ids, block.own, block.rest)
    u = np.empty_like(block.x)
    tiles = _tiles(len(vectors.target), Z)
    E = _products(solver, Z, vectors, tiles[0])
    if len(tiles) == 1:  # all inner products are there to be read
        read_cells(E, *entries, block.total, itself, vectors.intercept, u)
    else:
        entry_values(*entries, sums, vectors.target, itself, vectors.intercept, u)
    entry_weight = weight[block.row_of_entry] * block.seen
    gain, slope = value_and_slope(solver.family, solver.spec.link, block.filled, u)
    slope = (entry_weight * slope).astype(Z.dtype, copy=False)
    value = float(entry_weight @ gain)
    for tile in tiles:
        where = (tile.start, tile.stop)
        if tile is not tiles[0]:
            E = _products(solver, Z, vectors, tile)
        hide_cells(E, *where, block.ptr, block.ids, Z.dtype.type(HIDDEN))
        arrays = (vectors.intercept[tile], zero_weight, column_weight[tile])
        value += solver.slopes(E, *arrays, gradient.intercept[tile])
        write_cells(E, *where, *entries, block.total, slope, own_slope, gradient.intercept)
        np.matmul(E.T, Z, out=gradient.target[tile])
        g_context += np.matmul(E, vectors.target[tile], out=part)
    take_own(own_slope, vectors.target, vectors.bag, gradient.target, gradient.bag)
    g_context /= block.total[:, None]
    return value, gradient, g_context


def _products(solver: RowsSolver, Z: Floats, vectors: Vectors, tile: slice) -> Floats:
    E = solver.pool.buffer("tile", (len(Z), tile.stop - tile.start), Z.dtype)
    return np.matmul(Z, vectors.target[tile].T, out=E)


def _tiles(n_entities: int, Z: Floats) -> list[slice]:
    """Columns in pieces whose inner products with the rows stay small."""
    width = max(64, TILE_BYTES // (Z.itemsize * max(len(Z), 1)))
    return [slice(a, min(a + width, n_entities)) for a in range(0, n_entities, width)]
