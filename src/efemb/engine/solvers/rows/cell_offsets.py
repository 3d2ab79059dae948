"""Offsets of single cells during one step: added to u, and dL/du read back at those cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.engine.threads import Workers
from efemb.kernels.offsets import (
    change_dealt,
    collect_cells,
    count_cells,
    cut_rows,
    deal_cells,
    find_cells,
    find_in_table,
)
from efemb.kernels.sparse import sort_by_column
from efemb.model.contexts.bound.rows import RowBlock
from efemb.model.terms.base import Arrays, RowSide
from efemb.model.terms.cell_values import GroupTable, Offsets, ScaledRows, SparseRows, TableRows

MOST_UNUSED = 64  # rows of a table per row in use
LANES = 8  # cells that `kernels.offsets` moves at a time


@dataclass(frozen=True)
class CellList:
    """The cells of one part, as rows of a table, for tiles.

    table : SparseRows from which ptr, ids and values come, in the types of the kernels
    rows : its rows, some of which have cells that differ;  stale : rows where this matters
    scaled : whether a common factor is learned, instead of each value
    slope : of each cell; if scaled, the sum of slope times value over all cells
    """

    table: SparseRows
    ptr: Ints
    ids: Ints
    values: Floats
    rows: TableRows
    stale: Bools
    factor: float
    scaled: bool
    slope: Floats

    @classmethod
    def of(cls, part: ScaledRows | SparseRows, stale: Bools | None, dtype: Any) -> CellList:
        """Make the list of a part, in the precision of the tiles."""
        scaled = isinstance(part, ScaledRows)
        rows = part.weights if isinstance(part, ScaledRows) else TableRows.of(part)
        factor = float(part.values[0]) if scaled else 1.0
        unused = len(rows.table.ptr) > MOST_UNUSED * max(len(rows.code), 1)
        if stale is None or unused or rows.factor is not None:
            rows, stale = TableRows.of(rows.rows), np.zeros(len(rows.code), dtype=bool)
        table = rows.table
        ptr, ids = table.ptr.astype(np.int64, copy=False), table.ids.astype(np.int32, copy=False)
        slope = np.zeros(1) if scaled else np.zeros(len(ids), dtype)
        values = table.values.astype(dtype, copy=False)
        return cls(table, ptr, ids, values, rows, stale, factor, scaled, slope)

    def cut(self, edges: Ints) -> Ints:
        """Number of cells of each row of the table before each tile (computed once)."""
        key = edges.tobytes()
        if key not in self.table.cuts:
            starts = np.empty((len(self.ptr) - 1, len(edges)), np.int32)
            cut_rows(edges, self.ptr, self.ids, starts)
            self.table.cuts[key] = starts
        return self.table.cuts[key]

    def deal(self, edges: Ints, pitch: int, begin: Ints, where: Ints, dealt: Floats) -> Ints:
        """Copy the cells to their tiles, from `begin` on; return where they end."""
        rows, end = (edges, self.cut(edges), self.rows.code), begin.copy()
        deal_cells(rows, pitch, end, self.ptr, self.ids, self.values, where, dealt)
        stale = np.flatnonzero(self.stale)
        if len(stale):
            change_dealt(rows, end, self.ptr, self.ids, stale, _changes(self.rows), dealt)
        return end

    def collect(self, edges: Ints, begin: Ints, dealt: Floats) -> None:
        """Fill `slope` from the slopes that kernels stored by tile."""
        rows = (edges, self.cut(edges), self.rows.code)
        collect_cells(rows, begin.copy(), self.ptr, dealt, self.slope)


def _arrays(rows: SparseRows) -> tuple[Ints, Ints, Floats]:
    return rows.ptr, rows.ids, rows.values


def _changes(rows: TableRows) -> tuple[Ints, Ints, Floats, Ints, Ints]:
    return *_arrays(rows.changed), rows.cells, rows.place


@dataclass(frozen=True)
class TileOffsets:
    """The offsets of tiles: lists of cells and tables by group of rows, with their slopes.

    table, table_slope : (N, groups of all tables)
    order, edges : the rows of group g are order[edges[g] : edges[g + 1]]
    """

    lists: tuple[CellList, ...]
    dtype: Any
    table: Floats
    order: Ints
    edges: Ints
    table_slope: Floats

    @classmethod
    def of(cls, offsets: Offsets | None, stale: Mapping[int, Bools], dtype: Any) -> TileOffsets:
        """Convert offsets (None has no parts); `stale` of each scaled part, see `CellList`."""
        tables = [] if offsets is None else list(offsets.tables.values())
        lists = [
            CellList.of(part, stale.get(number), dtype)
            for number, part in enumerate(() if offsets is None else offsets.parts)
            if isinstance(part, ScaledRows | SparseRows)
        ]
        n_entities = 0 if offsets is None else offsets.n_entities
        order, edges = _stack_groups(tables)
        table = np.empty((n_entities, len(edges) - 1), dtype=dtype)
        if tables:
            np.concatenate([part.values.T for part in tables], axis=1, out=table)
        return cls(tuple(lists), dtype, table, order, edges, np.zeros_like(table))

    def deal(
        self, edges: Ints, pitch: int, pool: Workers
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Arguments of kernels: the cells of the lists by tile (see `add_lists`), and the tables.

        They are in buffers of the pool, valid until the next call.
        """
        sizes = np.zeros(len(edges) - 1, np.int64)
        for part in self.lists:
            count_cells(part.cut(edges), part.rows.code, sizes)
        # Space behind the cells of each tile, because kernels copy LANES cells at a time.
        ends = np.cumsum(sizes + LANES)
        cuts = np.empty((len(self.lists) + 1, len(sizes)), np.int64)
        cuts[0] = ends - LANES - sizes
        room = int(ends[-1]) if self.lists else 0
        where: Any = pool.buffer("where", (room,), np.dtype(np.int32))
        dealt = pool.buffer("dealt", (room,), self.dtype)
        for i, part in enumerate(self.lists):
            cuts[i + 1] = part.deal(edges, pitch, cuts[i], where, dealt)
        factor = np.array([part.factor for part in self.lists], self.dtype)
        scaled = np.array([part.scaled for part in self.lists], bool)
        slope = np.empty(0 if scaled.all() else room, self.dtype)
        total = np.zeros((len(factor), len(sizes)))
        tables = (self.table, self.order, self.edges, self.table_slope)
        return (cuts, factor, scaled, where, dealt, slope, total), tables

    def collect(self, edges: Ints, lists: tuple[Any, ...]) -> None:
        """Fill the slopes of the lists from those that kernels stored by tile."""
        cuts, _, _, _, _, slope, total = lists
        for i, part in enumerate(self.lists):
            if part.scaled:
                part.slope[0] = total[i].sum()
            else:
                part.collect(edges, cuts[i], slope)


def _stack_groups(tables: list[GroupTable]) -> tuple[Ints, Ints]:
    """Rows sorted by group, for all tables one after the other, and the edges of the groups."""
    orders, edges = [np.zeros(0, np.int64)], [np.zeros(1, np.int64)]
    for part in tables:
        order = np.argsort(part.code, kind="stable")
        first = np.searchsorted(part.code[order], np.arange(len(part.values) + 1))
        edges.append(edges[-1][-1] + first[1:] - first[0])
        orders.append(order[first[0] :])
    return np.concatenate(orders), np.concatenate(edges)


class CellOffsets:
    """The offsets of a piece of the rows of a step.

    at_entries : (entries,) sum of the offsets of each stored entry
    tiles : for kernels on tiles, which store their slopes there
    """

    def __init__(
        self, offsets: Offsets, ptr: Ints, ids: Ints, dtype: Any, drawn: Ints | None
    ) -> None:
        self.offsets, self.ptr, self.ids, self.drawn = offsets, ptr, ids, drawn
        self.at_entries = np.zeros(len(ids), dtype=dtype)
        # Place of each entry among the cells of each sparse part, -1 for none.
        self.places: dict[int, Ints] = {}
        for number, part in offsets.sparse.items():
            place = self.places[number] = np.empty(len(ids), dtype=np.int64)
            last = np.empty(offsets.n_entities, dtype=np.int64)
            find_cells(ptr, ids, part.ptr, part.ids, last, place)
            known = np.flatnonzero(place >= 0)
            self.at_entries[known] += part.values[place[known]].astype(dtype, copy=False)
        # Weight of each entry in each scaled part, 0 for none.
        self.weights: dict[int, Floats] = {}
        stale = {number: self._weigh_entries(number) for number in offsets.scaled}
        for table in offsets.tables.values():
            self.at_entries += table.at(self.row, ids).astype(dtype, copy=False)
        self.tiles = TileOffsets.of(offsets, stale, dtype)
        self.of_rows: dict[int, list[Floats]] = {}

    def _weigh_entries(self, number: int) -> Bools:
        """Fill `weights`; return a mask of the rows that have changed cells besides entries."""
        part = self.offsets.scaled[number]
        rows, weight = part.weights, np.empty_like(self.at_entries)
        stale = np.empty(len(rows.code), dtype=bool)
        arguments = (_arrays(rows.table), rows.code, _changes(rows))
        find_in_table(self.ptr, self.ids, *arguments, weight, stale)
        if rows.factor is not None:
            weight *= rows.factor[self.row].astype(weight.dtype)
        self.at_entries += part.values[0].astype(weight.dtype) * weight
        self.weights[number] = weight
        return stale

    @cached_property
    def row(self) -> Ints:
        """Row of each stored entry."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))

    # -- every column of some rows, and drawn ones ----------------------------------------------

    def add_to(self, rows: slice, cells: Floats) -> None:
        """Add to the cells of some rows, (rows, N), in place."""
        self.offsets.slice_rows(rows).add_to(cells)

    def keep_slopes(self, rows: slice, cells: Floats) -> None:
        """Store the slopes of the cells of some rows as zeros, (rows, N)."""
        self.of_rows[rows.start] = self.offsets.slice_rows(rows).gather(cells)

    def keep_slopes_of_rows(self, rows: slice, slopes: Floats) -> None:
        """Store the slopes of zeros that all cells of a row share, (rows,)."""
        n = self.offsets.n_entities
        parts = self.offsets.slice_rows(rows).parts
        self.of_rows[rows.start] = [part.gather_row_slopes(slopes, n) for part in parts]

    def add_drawn(self, rows: slice, E: Floats) -> None:
        """Add to the inner products E of drawn entities and some rows."""
        assert self.drawn is not None
        piece, place = self.offsets.slice_rows(rows), self._place_of_drawn
        scaled = [part.products for part in piece.scaled.values()]
        for part in (*piece.sparse.values(), *scaled):
            column = place[part.ids]
            drawn_cells = np.flatnonzero(column >= 0)
            E[column[drawn_cells], part.row[drawn_cells]] += part.values[drawn_cells]
        for table in piece.tables.values():
            known = np.flatnonzero(table.code >= 0)
            E[: len(self.drawn), known] += table.values[table.code[known]][:, self.drawn].T

    def read_drawn(self, rows: slice, E: Floats) -> None:
        """Store the slopes E of drawn entities and some rows."""
        assert self.drawn is not None
        columns = E[: len(self.drawn), : rows.stop - rows.start]
        self.of_rows[rows.start] = [
            part.gather_columns(self.drawn, self._place_of_drawn, columns)
            for part in self.offsets.slice_rows(rows).parts
        ]

    @cached_property
    def _place_of_drawn(self) -> Ints:
        """Place of each entity among the drawn ones, -1 for none."""
        place = np.full(self.offsets.n_entities, -1, dtype=np.int64)
        place[self.drawn] = np.arange(len(self.drawn)) if self.drawn is not None else -1
        return place

    # -- the end of a step ----------------------------------------------------------------------

    def gradients(self, net: Floats) -> list[Floats]:
        """dL/do of each part; `net` is dL/du of the stored entries."""
        slopes: dict[int, Floats] = {}
        numbers = sorted(self.offsets.sparse.keys() | self.offsets.scaled.keys())
        for number, cells in zip(numbers, self.tiles.lists, strict=True):
            slope, drawn = cells.slope, self._slopes_of_drawn(number)
            if cells.scaled:
                total = float(slope[0]) + float(net.astype(np.float64) @ self.weights[number])
                total += float(sum(part[0] for part in drawn))
                slopes[number] = np.array([total], dtype=net.dtype)
                continue
            place = self.places[number]
            known = np.flatnonzero(place >= 0)
            np.add.at(slope, place[known], net[known])
            slopes[number] = slope + np.concatenate(drawn) if drawn else slope
        first = 0
        for number, table in self.offsets.tables.items():
            slope = self.tiles.table_slope[:, first : first + len(table.values)].T.copy()
            first += len(table.values)
            known = np.flatnonzero(table.code[self.row] >= 0)
            np.add.at(slope, (table.code[self.row[known]], self.ids[known]), net[known])
            drawn = self._slopes_of_drawn(number)
            slopes[number] = slope + sum(drawn) if drawn else slope
        return [slopes[number] for number in range(len(self.offsets.parts))]

    def _slopes_of_drawn(self, number: int) -> list[Floats]:
        """Slopes of the drawn columns of a part, in the order of the rows."""
        return [self.of_rows[start][number] for start in sorted(self.of_rows)]


def order_by_entity(ids: Ints, n: int) -> tuple[Ints, Ints]:
    """Edges and order of entries: those of entity i are order[edges[i] : edges[i + 1]]."""
    edges, order = np.zeros(n + 2, dtype=np.int64), np.empty(len(ids), dtype=np.int64)
    sort_by_column(ids, edges, order)
    return edges[: n + 1], order


class StepOffsets:
    """Makes the offsets of the rows of a step, piece by piece to save memory.

    side, arrays : of the terms;  places : rows of the data;  block : the same rows, with all
    entities;  drawn : entities whose zeros are visited, None for all of them
    """

    def __init__(
        self, side: RowSide, arrays: Arrays, places: Ints, block: RowBlock, drawn: Ints | None
    ) -> None:
        self.side, self.arrays, self.places = side, arrays, places
        self.block, self.drawn = block, drawn

    def of_rows(self, rows: slice) -> CellOffsets:
        """The offsets of some consecutive rows."""
        offsets = self.side.offsets(self.arrays, self.places[rows])
        assert offsets is not None
        ptr = self.block.ptr[rows.start : rows.stop + 1]
        ids = self.block.ids[ptr[0] : ptr[-1]]
        return CellOffsets(offsets, ptr - ptr[0], ids, self.block.x.dtype, self.drawn)

    def pull_back(self, cells: CellOffsets, rows: slice, net: Floats) -> dict[str, Floats]:
        """Gradients of the arrays behind the offsets; `net` is dL/du of the stored entries."""
        gradients = cells.gradients(net)
        return self.side.pull_back_cells(self.arrays, self.places[rows], gradients)
