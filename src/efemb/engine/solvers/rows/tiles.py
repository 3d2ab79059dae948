"""Every cell of a block of rows by matrix products, stored entries in the same products."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.engine.solvers.rows.entries import Entries
from efemb.engine.solvers.rows.tiled_rows import TiledRows
from efemb.engine.solvers.rows.zero_stages import HIDDEN
from efemb.engine.threads import cut

if TYPE_CHECKING:
    from efemb.engine.solvers.rows.solver import RowsSolver

TILE_BYTES = 1 << 19  # inner products that stay near the core while they are used four times
STRIP_TILES = 8  # tiles that one thread works on before it hands in a gradient of the bag sums
MOST_STRIPS = 64  # about; longer strips where there would be more
TAPER = 4  # a strip has at most this part of the tiles that are left
PART_ROWS = 256  # of the strips' gradients, that one thread adds up at a time
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
    total, n_entities = entries.block.total, len(entries.vectors.target)
    dense = len(entries.block.ids) > DENSE * len(total) * n_entities
    value = entries.sum_bags() if dense else entries.sum_bags_and_slopes()
    work = _Tiles(solver, entries, zero_weight, column_weight, dense)
    solver.gather_ahead()
    longest = max(work.rows.pitch, work.rows.size)  # of what is kept for each entity of a tile
    work.lay_out(*_strips(n_entities, TILE_BYTES // (longest * total.itemsize)))
    value += sum(solver.pool.map(work.strips, work.shares_of_strips()))
    list(solver.pool.map(work.add_up, cut(len(total), PART_ROWS), work.g_rows.size))
    entries.gradient.intercept += work.column
    entries.spread_bags(work.own_slope)
    if dense and entries.side is not None:
        entries.slope[entries.by_entity.order] = work.slope
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
        self.rows = TiledRows(entries.sums / block.total[:, None], solver.pool)
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

    def lay_out(self, edges: Ints, bounds: Ints) -> None:
        """Edges of the tiles, and places of the first of each strip among them."""
        self.edges, self.bounds, n_strips = edges, bounds, len(bounds) - 1
        self.alone = self.fused and self.solver.pool.n == 1
        self.g_rows = self.rows.unset(min(2, n_strips) if self.alone else n_strips)

    def shares_of_strips(self) -> list[tuple[int, int]]:
        """First and last of those worked on at once.

        A single thread takes all: a call costs as much as a small tile.
        """
        n_strips = len(self.bounds) - 1
        return [(0, n_strips)] if self.solver.pool.n == 1 else list(pairwise(range(n_strips + 1)))

    def strips(self, some: tuple[int, int]) -> float:
        """Value of some strips; `g_rows` gets the gradient of the rows' vectors."""
        if self.fused:
            return self._in_one_kernel(*some)
        return sum(self._step_by_step(i) for i in range(*some))

    def _step_by_step(self, i: int) -> float:
        value, first, last = 0.0, self.bounds[i], self.bounds[i + 1]
        for start, stop in pairwise(self.edges[first : last + 1]):
            tile = slice(start, stop)
            rho = self.entries.vectors.target[tile]
            E = self.rows.inner_products(rho)
            value += self._slopes(tile, E)
            self._add_target(tile, self.rows.slopes_to_entities(E))
            fresh = start == self.edges[first]
            self.rows.slopes_to_rows(E, rho, self.g_rows[i], fresh=fresh)
        return value

    def _in_one_kernel(self, first: int, last: int) -> float:
        """The same without a return to Python, where threads would wait for each other."""
        from efemb.kernels.tiles import strips_of_cells

        room = self.rows.buffers(self.edges[1] - self.edges[0])
        given = (self.edges, self.bounds, self.given, room, self.g_rows)
        return strips_of_cells(first, last, *given, self.alone)

    def add_up(self, some: slice) -> None:
        """Gradient of the bag sums of some rows, from those of the strips."""
        from efemb.kernels.tiles import add_strips

        parts = self.g_rows[:1] if self.alone else self.g_rows
        total, out = self.entries.block.total, self.entries.g_sums
        add_strips(some.start, some.stop, parts, total, out)

    def _slopes(self, tile: slice, E: Floats) -> float:
        """Turn inner products into slopes; returns the value, without entries known before."""
        from efemb.kernels.rows import hide_cells, read_cells, write_cells

        entries, intercept = self.entries, self.entries.vectors.intercept
        places = (tile.start, tile.stop, *self.places)
        value = 0.0
        if self.dense:
            read_cells(E, *places, *self.shares, entries.itself, intercept, self.slope)
            value += self._slopes_of_entries(tile)
        hidden: Any = E.dtype.type(HIDDEN)
        hide_cells(E, *places, hidden)
        weights = (self.column_weight[tile], self.zero_weight)
        value += self.solver.slopes(E, intercept[tile], *weights, self.column[tile])
        write_cells(E, *places, *self.shares, self.slope, self.own_slope, self.column)
        return value

    def _slopes_of_entries(self, tile: slice) -> float:
        """Of those whose inner products were read; returns their value."""
        found = self.entries.by_entity
        here = slice(found.edges[tile.start], found.edges[tile.stop])
        assert self.weight is not None
        u = self.slope[here]
        if self.entries.side is not None:
            u = u + self.entries.side_offset[found.order[here]]
        given = (found.x[here], u, self.weight[here])
        value, self.slope[here] = self.entries.value_and_slopes(*given)
        return value

    def _add_target(self, tile: slice, part: Floats) -> None:
        """Less what entries left out; the first block finds nothing to add to."""
        from efemb.kernels.rows import add_without_own

        entries = self.entries
        own, bag = self.own_slope[tile], entries.vectors.bag[tile]
        add_without_own(part, own, bag, entries.first, entries.gradient.target[tile])


@lru_cache(maxsize=8)
def _strips(n_entities: int, most: int) -> tuple[Ints, Ints]:
    """Entities in tiles of about equal width, at least 64 and at most `most`, and those in strips.

    Strips get smaller towards the end, so that threads finish together; there are not many, since
    each has a gradient of the rows' vectors. Returns the edges of the tiles and, among them, the
    places of the first tile of each strip and of the end.
    """
    n_tiles = -(-n_entities // max(64, most))
    width = 12 * -(-n_entities // (12 * n_tiles))  # which products take without a remainder
    edges = np.append(np.arange(0, n_entities, width), n_entities)
    longest = max(STRIP_TILES, n_tiles // MOST_STRIPS)
    bounds = [0]
    while (left := len(edges) - 1 - bounds[-1]) > 0:
        bounds.append(bounds[-1] + min(longest, -(-left // TAPER)))
    return edges, np.array(bounds)
