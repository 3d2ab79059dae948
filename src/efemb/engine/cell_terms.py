"""Every cell of a block of rows by matrix products, stored entries in the same products."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb.engine.blocks import cut
from efemb.engine.cells import RowVectors
from efemb.engine.entry_terms import Entries
from efemb.engine.zero_stages import HIDDEN
from efemb.types import Floats, Ints

if TYPE_CHECKING:
    from efemb.engine.rows import RowsSolver

TILE_BYTES = 1 << 19  # inner products that stay near the core while they are used four times
STRIP_TILES = 8  # tiles that one thread works on before it hands in a gradient of the bag sums
MOST_STRIPS = 64  # about; longer strips where there would be more
TAPER = 4  # a strip has at most this part of the tiles that are left
COMPONENTS = 32  # of the strips' gradients, that one thread adds up at a time
DENSE = 0.03  # share of stored cells from which on their inner products are read from the tiles


def cell_terms(
    solver: RowsSolver, entries: Entries, zero_weight: Floats, column_weight: Floats
) -> float:
    """Add the gradient of a block of rows with every zero exact; returns the value.

    Entities go in tiles: E = rho Z' of a tile and the rows, its slopes as zeros, and two products
    that carry them back. The slope of a stored entry, times total / rest, takes the place of its
    cell in E, so that those products carry the entries as well; only the part of an entry's own
    alpha is left, and that is one number an entity.
    """
    total, n_rows = entries.block.total, len(entries.block.total)
    n_entities = len(entries.vectors.target)
    dense = len(entries.block.ids) > DENSE * n_rows * n_entities
    value = entries.sum_bags() if dense else entries.sum_bags_and_slopes()
    work = _Tiles(solver, entries, zero_weight, column_weight, dense)
    solver.gather_ahead()
    longest = max(work.rows.pitch, work.rows.size)  # of what is kept for each entity of a tile
    strips = _strips(n_entities, TILE_BYTES // (longest * total.itemsize))
    parts = work.rows.unset(len(strips))
    value += sum(solver.pool.map(work.strip, list(zip(strips, parts, strict=True))))

    def add_up(some: slice) -> None:
        whole = parts[0, some, :n_rows]  # nothing is set beyond
        for part in parts[1:, some, :n_rows]:
            whole += part
        np.divide(whole.T, total[:, None], out=entries.g_sums[:, some])

    list(solver.pool.map(add_up, cut(work.rows.size, COMPONENTS), parts.size))
    entries.gradient.intercept += work.column
    entries.spread_bags(work.own_slope)
    return value


class _Tiles:
    """Works on tiles: all rows of a block and some entities.

    column, own_slope : for each entity the sum of its slopes, and what its entries left out
    """

    def __init__(
        self,
        solver: RowsSolver,
        entries: Entries,
        zero_weight: Floats,
        column_weight: Floats,
        dense: bool,
    ) -> None:
        self.solver, self.entries, self.dense = solver, entries, dense
        self.zero_weight, self.column_weight = zero_weight, column_weight
        block = entries.block
        self.rows = RowVectors(entries.sums / block.total[:, None], solver.pool)
        self.column, self.own_slope = (np.zeros_like(entries.vectors.intercept) for _ in range(2))
        found = entries.by_entity
        self.places, self.shares = (found.edges, found.row), (found.ratio, found.share)
        # Of entries sorted by entity; where they are read from the tiles, u at first.
        self.slope = np.empty_like(block.x) if dense else entries.slope.take(found.order)
        self.weight = entries.weight.take(found.order) if dense else None
        self.fused = solver.slopes.size is not None and not dense
        vectors, gradient = entries.vectors, entries.gradient
        self.given: Any = (
            vectors.target, self.rows.transposed, self.rows.width, HIDDEN,
            self.places, self.shares, self.slope,
            vectors.intercept, column_weight, zero_weight, solver.slopes.size,
            vectors.bag, entries.first, gradient.target, self.own_slope, self.column,
        )  # fmt: skip

    def strip(self, strip: tuple[Ints, Floats]) -> float:
        """Value of consecutive tiles; the array gets their gradient of the rows' vectors."""
        return self._in_one_kernel(*strip) if self.fused else self._step_by_step(*strip)

    def _step_by_step(self, edges: Ints, g_rows: Floats) -> float:
        value = 0.0
        for first, last in pairwise(edges):
            tile = slice(first, last)
            rho = self.entries.vectors.target[tile]
            E = self.rows.inner_products(rho)
            value += self._slopes(tile, E)
            self._add_target(tile, self.rows.slopes_to_entities(E))
            self.rows.slopes_to_rows(E, rho, g_rows, fresh=first == edges[0])
        return value

    def _in_one_kernel(self, edges: Ints, g_rows: Floats) -> float:
        """The same without a return to Python, where threads would wait for each other."""
        from efemb.kernels.cells import strip_of_cells

        room = self.rows.buffers(edges[1] - edges[0])
        arguments: Any = (edges, *self.given, *room, g_rows)
        return strip_of_cells(*arguments)

    def _slopes(self, tile: slice, E: Floats) -> float:
        """Turn inner products into slopes; returns the value, without entries known before."""
        from efemb.kernels.rows import hide_cells, read_cells, write_cells

        entries, intercept = self.entries, self.entries.vectors.intercept
        places = (tile.start, tile.stop, *self.places)
        value = 0.0
        if self.dense:
            read_cells(E, *places, *self.shares, entries.itself, intercept, self.slope)
            value += self._slopes_of_entries(tile)
        hide_cells(E, *places, E.dtype.type(HIDDEN))
        weights = (self.column_weight[tile], self.zero_weight)
        value += self.solver.slopes(E, intercept[tile], *weights, self.column[tile])
        write_cells(E, *places, *self.shares, self.slope, self.own_slope, self.column)
        return value

    def _slopes_of_entries(self, tile: slice) -> float:
        """Of those whose inner products were read; returns their value."""
        found = self.entries.by_entity
        here = slice(found.edges[tile.start], found.edges[tile.stop])
        assert self.weight is not None
        given = (found.x[here], self.slope[here], self.weight[here])
        value, self.slope[here] = self.entries.value_and_slopes(*given)
        return value

    def _add_target(self, tile: slice, part: Floats) -> None:
        """Less what entries left out; the first block finds nothing to add to."""
        from efemb.kernels.rows import add_without_own

        entries = self.entries
        own, bag = self.own_slope[tile], entries.vectors.bag[tile]
        add_without_own(part, own, bag, entries.first, entries.gradient.target[tile])


@lru_cache(maxsize=8)
def _strips(n_entities: int, most: int) -> tuple[Ints, ...]:
    """Entities in tiles of about equal width, at least 64 and at most `most`, and those in strips.

    A strip is the edges of its tiles. Strips get smaller towards the end, so that threads finish
    together; there are not many, since each has a gradient of the rows' vectors.
    """
    n_tiles = -(-n_entities // max(64, most))
    width = 12 * -(-n_entities // (12 * n_tiles))  # which products take without a remainder
    edges = np.append(np.arange(0, n_entities, width), n_entities)
    longest = max(STRIP_TILES, n_tiles // MOST_STRIPS)
    strips, first = [], 0
    while (left := len(edges) - 1 - first) > 0:
        size = min(longest, -(-left // TAPER))
        strips.append(edges[first : first + size + 1])
        first += size
    return tuple(strips)
