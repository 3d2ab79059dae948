"""Cells of a block of rows: stored entries and zeros, their slopes, and the gradient."""

from __future__ import annotations

from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.engine.solvers.rows.cell_offsets import CellOffsets, TileOffsets, order_by_entity
from efemb.engine.solvers.rows.zero_stages import HIDDEN, RowWork, TiledRows, ZeroStage
from efemb.engine.threads import cut
from efemb.kernels.offsets import add_groups, add_lists, read_groups, read_lists
from efemb.kernels.row_entries import (
    add_side_to_vectors,
    add_vectors_to_side,
    add_without_own,
    entry_products,
    hide_cells,
    read_cells,
    side_products,
    write_cells,
)
from efemb.kernels.sparse import bag_sums, column_sums
from efemb.kernels.tiles import add_strips, strips_of_cells
from efemb.model.contexts.bound.rows import ByEntity, RowBlock
from efemb.model.factors import Factors
from efemb.model.objective import value_and_slope

if TYPE_CHECKING:
    from efemb.engine.solvers.rows.solver import RowsSolver

TAPER = 4  # a strip has at most one in so many of the remaining tiles
NO_OFFSETS = {np.dtype(kind): TileOffsets.of(None, {}, kind) for kind in ("f4", "f8")}


class Entries:
    """Working arrays of a block of rows.

    Threads divide the rows to compute sums and slopes, and the entities to compute gradients. So
    each number is written by one thread, in an order that does not depend on their number.

    sums, g_sums : sums of the bags, (rows, K), followed by the row side of the terms, and the
        gradient with respect to them
    u, slope : of each stored entry given its bag without itself, and the weighted slope there
    itself : rho_n . alpha_n;  first : whether the gradient of the vectors is still unset
    side : (rows, k) row side of the model's terms, whose entity side are the last k columns of the
        target vectors; g_side : the gradient with respect to it
    cells : offsets of single cells, None if no term has any
    net : slope of each stored entry, minus its slope as a zero
    """

    def __init__(
        self,
        solver: RowsSolver,
        block: RowBlock,
        vectors: Factors,
        weight: Floats,
        itself: Floats,
        gradient: Factors,
        first: bool,
        side: Floats | None = None,
        cells: CellOffsets | None = None,
    ) -> None:
        self.solver, self.block, self.vectors, self.side = solver, block, vectors, side
        self.cells = cells
        self.itself, self.gradient, self.first = itself, gradient, first
        shape = (len(block.total), vectors.target.shape[1])
        self.sums = np.empty(shape, dtype=solver.dtype)
        self.g_sums = np.empty_like(self.sums)
        self.u, self.slope, self.as_zero = (np.empty_like(block.x) for _ in range(3))
        self.net = self.slope
        self.weight = weight[block.row_of_entry] * block.seen
        if block.entry_weight is not None:
            self.weight *= block.entry_weight

    # -- rows -----------------------------------------------------------------------------------

    def sum_bags(self) -> float:
        """Fill `sums`."""
        list(self.solver.pool.map(self.sum_bags_of, self.parts()))
        return 0.0

    def sum_bags_and_slopes(self) -> float:
        """Fill `sums`, `u` and `slope`; return the value of the entries."""

        def work(rows: slice) -> float:
            self.sum_bags_of(rows)
            return self.products_and_slopes(rows)

        size = 2 * len(self.u) * self.sums.shape[1]
        return sum(self.solver.pool.map(work, self.parts(), size))

    def parts(self) -> list[slice]:
        """The pieces of rows that threads process."""
        return cut(len(self.sums), self.solver.pool.tuning.part_rows)

    def sum_bags_of(self, rows: slice) -> None:
        """Fill `sums` of some rows."""
        block = self.block
        ptr = block.bag_ptr[rows.start : rows.stop + 1]
        bag_sums(ptr, block.bag_ids, block.bag_values, self.vectors.bag, self.sums[rows])
        if self.side is not None:  # divided by the total later, as bags are
            width = self.side.shape[1]
            self.sums[rows, -width:] = self.side[rows] * block.total[rows, None]

    def products_and_slopes(self, rows: slice) -> float:
        """Fill `as_zero`, `u` and `slope` of some rows; return the value of their entries."""
        block, vectors = self.block, self.vectors
        ptr = block.ptr[rows.start : rows.stop + 1]
        shape = (ptr, block.ids, block.own, block.rest, block.total[rows], self.sums[rows])
        arrays = (vectors.target, self.itself, vectors.intercept, vectors.n_bag)
        entry_products(*(shape + arrays), self.as_zero, self.u)
        here = self.of_rows(rows)
        if self.term_part is not None:
            self.u[here] += self.term_part[here]
            self.as_zero[here] += self.term_part[here]
        arguments = (block.filled[here], self.u[here], self.weight[here], block.ids[here])
        value, self.slope[here] = self.value_and_slopes(*arguments)
        return value

    def value_and_slopes(
        self, x: Floats, u: Floats, weight: Floats, ids: Ints
    ) -> tuple[float, Floats]:
        """Weighted log-density of some entries, and the slope of each."""
        gain, slope = value_and_slope(self.solver.family.at(ids), self.solver.spec.link, x, u)
        return float(weight @ gain), weight * slope

    # -- terms ------------------------------------------------------------------------------------

    @cached_property
    def excess(self) -> Floats:
        """1 - total / rest of each stored entry.

        An entry leaves its bag, which multiplies the rest of the context by total / rest. Columns
        of terms are part of the same products, but entries do not leave them: this factor
        corrects for it.
        """
        block = self.block
        return np.asarray(1 - block.total[block.row_of_entry] / block.rest)

    @cached_property
    def term_part(self) -> Floats | None:
        """The contribution of terms to u of each stored entry, None without terms."""
        return self._term_part(1.0)

    @cached_property
    def missing_term_part(self) -> Floats | None:
        """The contribution that is missing if the products include the columns of terms."""
        return self._term_part(self.excess)

    def _term_part(self, factor: Floats | float) -> Floats | None:
        """The columns of terms, times a factor, and the offsets of cells."""
        cells = None if self.cells is None else self.cells.at_entries
        if self.side is None:
            return cells
        columns = np.empty_like(self.u)
        side_products(self.block.ptr, self.block.ids, self.side, self.vectors.target, columns)
        columns = factor * columns
        return columns if cells is None else columns + cells

    def g_side(self) -> Floats:
        """Gradient of the row side of the terms.

        Products with the slopes include the factor total / rest, see `excess`.
        """
        assert self.side is not None
        g_side = np.asarray(self.g_sums[:, self.vectors.n_bag :] * self.block.total[:, None])
        block, slope, pool = self.block, self.slope * self.excess, self.solver.pool

        def of_rows(rows: slice) -> None:
            where = (rows.start, rows.stop, block.ptr, block.ids)
            add_vectors_to_side(*where, slope, self.vectors.target, g_side)

        list(pool.map(of_rows, self.parts(), slope.size * g_side.shape[1]))
        return g_side

    def spread_side(self) -> None:
        """Correct the gradient of the entity side of the terms in the same way."""
        by_entity, side, first = self.by_entity, self.side, self.vectors.n_bag
        assert side is not None
        slope, target = self.slope.take(by_entity.order), self.gradient.target

        def of_entities(a: int, b: int, edges: Ints, row: Ints) -> None:
            add_side_to_vectors(a, b, edges, row, by_entity.ratio, slope, side, target[a:b], first)

        self._share_entities(of_entities, by_entity.edges, by_entity.row)

    def of_rows(self, rows: slice) -> slice:
        """Slice of the entries of some rows."""
        return slice(self.block.ptr[rows.start], self.block.ptr[rows.stop])

    # -- entities -------------------------------------------------------------------------------

    @cached_property
    def by_entity(self) -> ByEntity:
        """The entries sorted by entity."""
        return self.block.by_entity or sorted_by_entity(self.block, len(self.vectors.target))

    def spread_bags(self, own: Floats) -> None:
        """Add g_sums - own * rho to the gradient of the context vectors (entries leave bags)."""
        block = self.block
        if block.bag_ids is block.ids:
            edges, row, values = self.by_entity.edges, self.by_entity.row, self.by_entity.own
        else:
            edges, order = order_by_entity(block.bag_ids, len(self.vectors.bag))
            row = np.repeat(np.arange(len(block.total)), np.diff(block.bag_ptr)).take(order)
            values = block.bag_values.take(order)
        arrays = (values, self.g_sums, own, self.vectors.target)
        start = np.zeros(self.vectors.n_bag, self.sums.dtype)
        self._add_columns(edges, row, *arrays, start, self.gradient.bag)

    def spread_entries(self, factor: Floats, own: Floats, shift: Floats | None) -> None:
        """Add factor * sums - own * alpha + shift to the gradient of the target vectors."""
        by_entity = self.by_entity
        arrays = (factor.take(by_entity.order), self.sums, own, self.vectors.bag)
        start = np.zeros(self.sums.shape[1], self.sums.dtype) if shift is None else shift
        self._add_columns(by_entity.edges, by_entity.row, *arrays, start, self.gradient.target)

    def _add_columns(self, edges: Ints, row: Ints, *given: Any) -> None:
        *arrays, out = given
        self._share_entities(column_sums, edges, row, *arrays, self.first, out)

    def _share_entities(self, work: Any, edges: Ints, row: Ints, *given: Any) -> None:
        """Divide the entities among threads, with about equal numbers of entries."""
        n, pool = len(edges) - 1, self.solver.pool
        # The bits do not depend on which thread adds up an entity.
        n_parts = pool.n
        shares = np.arange(1, n_parts) * len(row) // n_parts
        ends = [0, *np.searchsorted(edges, shares), n]
        size = (n + len(row)) * self.sums.shape[1]
        parts = list(pairwise(ends))
        list(pool.map(lambda ab: work(*ab, edges, row, *given), parts, size))


def sorted_by_entity(block: RowBlock, n_entities: int) -> ByEntity:
    """The stored entries of a block sorted by entity."""
    return ByEntity(block, *order_by_entity(block.ids, n_entities))


def entry_terms(
    entries: Entries, stage: ZeroStage, zero_weight: Floats, column_weight: Floats
) -> float:
    """Add the gradient of a block of rows: all cells by a zero stage, then the entries."""
    block, gradient = entries.block, entries.gradient
    back_weight = zero_weight[block.row_of_entry] * column_weight[block.ids]
    factor, own, net = (np.empty_like(block.x) for _ in range(3))
    work = RowWork(entries, zero_weight, back_weight, factor, own, net)
    value, zeros = 0.0, stage.nothing()
    entries.solver.gather_ahead()
    for more, part in entries.solver.pool.map(partial(stage.rows, work), entries.parts()):
        value += more
        zeros = tuple(total + one for total, one in zip(zeros, part, strict=True))
    own_slope, slope = (
        np.bincount(block.ids, one, len(gradient.target)).astype(entries.sums.dtype)
        for one in (own, net)
    )
    entries.net = net
    gradient.add_intercepts(slope)
    entries.spread_entries(factor, own_slope, stage.shift(zeros))
    entries.spread_bags(own_slope)
    if entries.side is not None:
        entries.spread_side()
    stage.add(zeros, gradient)
    return value


def cell_terms(
    solver: RowsSolver, entries: Entries, zero_weight: Floats, column_weight: Floats
) -> float:
    """Add the gradient of a block of rows with every zero exact; returns the value.

    Entities are processed in tiles: E = rho Z' of a tile and the rows, the slopes of all cells as
    zeros, and two products that carry the slopes back. The slope of a stored entry, times
    total / rest, replaces that of its cell in E, so that these products include the entries. Only
    the part of their own alpha remains, one number per entity.
    """
    total, n_entities = entries.block.total, len(entries.vectors.target)
    tuning = solver.pool.tuning
    dense = len(entries.block.ids) > tuning.dense * len(total) * n_entities
    value = entries.sum_bags() if dense else entries.sum_bags_and_slopes()
    work = _Tiles(solver, entries, zero_weight, column_weight, dense)
    solver.gather_ahead()
    longest = max(work.rows.pitch, entries.vectors.n_bag)  # numbers of a tile per entity
    most = tuning.tile_bytes // (longest * total.itemsize)
    work.lay_out(*cut_strips(n_entities, most, tuning.strip_tiles, tuning.most_strips))
    value += sum(solver.pool.map(work.strips, work.shares_of_strips()))
    list(solver.pool.map(work.add_up, cut(len(total), tuning.strip_rows), work.g_rows.size))
    work.offsets.collect(work.edges, work.dealt[0])
    entries.gradient.add_intercepts(work.column)
    entries.spread_bags(work.own_slope)
    if dense and entries.missing_term_part is not None:
        entries.slope[entries.by_entity.order] = work.slope
    return value


class _Tiles:
    """Computes tiles: all rows of a block and some entities.

    column, own_slope : for each entity, the sum of its slopes, and the factor of its own vectors
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
        by_entity = entries.by_entity
        self.places, self.shares = (
            (by_entity.edges, by_entity.row),
            (by_entity.ratio, by_entity.share),
        )
        # Of entries sorted by entity. If `dense`, u is read from the tiles into it first.
        self.slope = np.empty_like(block.x) if dense else entries.slope.take(by_entity.order)
        self.weight = entries.weight.take(by_entity.order) if dense else None
        self.fused = solver.slopes.size is not None and not dense
        vectors, gradient = entries.vectors, entries.gradient
        cells = entries.cells
        no_side = np.empty((0, 0), entries.sums.dtype)
        self.side = no_side if entries.side is None else entries.side
        self.offsets = NO_OFFSETS[block.x.dtype] if cells is None else cells.tiles
        self.kernel_arguments: Any = (
            vectors.target, self.rows.transposed, self.rows.width, HIDDEN,
            self.places, self.shares, self.slope,
            vectors.intercept, column_weight, zero_weight, solver.slopes.size,
            vectors.bag, entries.first, gradient.target, self.own_slope, self.column, self.side,
        )  # fmt: skip

    def lay_out(self, edges: Ints, bounds: Ints) -> None:
        """Set the edges of the tiles, and the number of the first tile of each strip."""
        self.edges, self.bounds, n_strips = edges, bounds, len(bounds) - 1
        self.dealt = self.offsets.deal(edges, self.rows.pitch, self.solver.pool)
        self.alone = self.fused and self.solver.pool.n == 1
        self.g_rows = self.rows.unset(min(2, n_strips) if self.alone else n_strips)

    def shares_of_strips(self) -> list[tuple[int, int]]:
        """First and last strip of each call of a kernel.

        A single thread makes one call, because a call costs as much as a small tile.
        """
        n_strips = len(self.bounds) - 1
        return [(0, n_strips)] if self.solver.pool.n == 1 else list(pairwise(range(n_strips + 1)))

    def strips(self, span: tuple[int, int]) -> float:
        """Value of some strips; `g_rows` gets the gradient of the rows' vectors."""
        if self.fused:
            return self._in_one_kernel(*span)
        return sum(self._step_by_step(i) for i in range(*span))

    def _step_by_step(self, i: int) -> float:
        value, first, last = 0.0, self.bounds[i], self.bounds[i + 1]
        for number in range(first, last):
            tile = slice(self.edges[number], self.edges[number + 1])
            rho = self.entries.vectors.target[tile]
            E = self.rows.inner_products(rho)
            value += self._slopes(tile, number, E)
            self._add_target(tile, self.rows.slopes_to_entities(E))
            self.rows.slopes_to_rows(E, rho, self.g_rows[i], fresh=number == first)
        return value

    def _in_one_kernel(self, first: int, last: int) -> float:
        """The same in a kernel, because threads would wait for each other in Python."""
        room = self.rows.buffers(self.edges[1] - self.edges[0])
        arguments = (
            self.edges,
            self.bounds,
            (*self.kernel_arguments, self.dealt),
            room,
            self.g_rows,
        )
        return strips_of_cells(first, last, *arguments, self.alone)

    def add_up(self, rows: slice) -> None:
        """Gradient of the bag sums of some rows, from those of the strips."""
        parts = self.g_rows[:1] if self.alone else self.g_rows
        total, out = self.entries.block.total, self.entries.g_sums
        add_strips(rows.start, rows.stop, parts, total, out)

    def _slopes(self, tile: slice, number: int, E: Floats) -> float:
        """Turn inner products into slopes; return the value, without entries known before."""
        entries, intercept = self.entries, self.entries.vectors.intercept
        places = (tile.start, tile.stop, *self.places)
        value = 0.0
        if self.dense:
            read_cells(E, *places, *self.shares, entries.itself, intercept, self.slope)
            value += self._slopes_of_entries(tile)
        hidden: Any = E.dtype.type(HIDDEN)
        hide_cells(E, *places, hidden)
        if self.entries.cells is not None:
            self._add_offsets(tile, number, E)
        weights = (self.column_weight[tile], self.zero_weight)
        arguments = (intercept[tile], *weights, self.column[tile], np.arange(tile.start, tile.stop))
        value += self.solver.slopes(E, *arguments)
        if self.entries.cells is not None:
            self._read_offsets(tile, number, E)
        write_cells(E, *places, *self.shares, self.slope, self.own_slope, self.column)
        return value

    def _add_offsets(self, tile: slice, number: int, E: Floats) -> None:
        """Add the offsets of the cells of a tile to u."""
        lists, (table, order, edges, _) = self.dealt
        add_lists(E.reshape(-1), number, lists)
        add_groups(E, tile.start, tile.stop, table, order, edges)

    def _read_offsets(self, tile: slice, number: int, E: Floats) -> None:
        """Store the slopes of the cells of a tile that have offsets."""
        lists, (_, order, edges, table_slope) = self.dealt
        read_lists(E.reshape(-1), number, lists)
        read_groups(E, tile.start, tile.stop, order, edges, table_slope)

    def _slopes_of_entries(self, tile: slice) -> float:
        """Fill the slopes of the entries whose inner products were read; return their value."""
        by_entity = self.entries.by_entity
        here = slice(by_entity.edges[tile.start], by_entity.edges[tile.stop])
        assert self.weight is not None
        u = self.slope[here]
        if self.entries.missing_term_part is not None:
            u = u + self.entries.missing_term_part[by_entity.order[here]]
        ids = self.entries.block.ids[by_entity.order[here]]
        arguments = (by_entity.x[here], u, self.weight[here], ids)
        value, self.slope[here] = self.entries.value_and_slopes(*arguments)
        return value

    def _add_target(self, tile: slice, part: Floats) -> None:
        """Add the gradient of a tile, less the own parts; the first block overwrites the sums."""
        entries, edges = self.entries, (tile.start, tile.stop, *self.places)
        if len(self.side):
            slopes = (self.shares[0], self.slope, self.side, part)
            add_side_to_vectors(*edges, *slopes, entries.vectors.n_bag)
        own, bag = self.own_slope[tile], entries.vectors.bag[tile]
        add_without_own(part, own, bag, entries.first, entries.gradient.target[tile])


@lru_cache(maxsize=8)
def cut_strips(n_entities: int, most: int, strip_tiles: int, most_strips: int) -> tuple[Ints, Ints]:
    """Cut the entities into tiles of at least 64 and at most `most`, and the tiles into strips.

    Strips get shorter toward the end, so that threads finish together. There are only a few, since
    each has a gradient of the rows' vectors. Returns the edges of the tiles, and the number of the
    first tile of each strip and of all tiles.
    """
    n_tiles = -(-n_entities // max(64, most))
    width = 12 * -(-n_entities // (12 * n_tiles))  # a multiple of what kernels compute at once
    edges = np.append(np.arange(0, n_entities, width), n_entities)
    longest = max(strip_tiles, n_tiles // most_strips)
    bounds = [0]
    while (left := len(edges) - 1 - bounds[-1]) > 0:
        bounds.append(bounds[-1] + min(longest, -(-left // TAPER)))
    return edges, np.array(bounds)
