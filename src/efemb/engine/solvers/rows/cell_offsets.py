"""Offsets of single cells during one step: added to u, and dL/du read back at those cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.kernels.offsets import collect_cells, cut_rows, deal_cells, find_cells, share_out
from efemb.kernels.sparse import sort_by_column
from efemb.model.contexts.bound.rows import RowBlock
from efemb.model.terms.base import Arrays, RowSide
from efemb.model.terms.cell_values import GroupTable, Offsets, SparseRows

MOST_UNUSED = 64  # rows of a table that are cut for each that is used


@dataclass(frozen=True)
class TileOffsets:
    """What tiles add: sparse rows, tables by group of rows, and the slopes that they leave.

    parts : the sparse ones;  ptr, ids, values, slope : their rows, one part after the other
    n_rows : of a part
    table, table_slope : (N, groups of all tables)
    order, edges : the rows of group g are order[edges[g] : edges[g + 1]]
    """

    parts: tuple[SparseRows, ...]
    ptr: Ints
    ids: Ints
    values: Floats
    slope: Floats
    n_rows: int
    table: Floats
    order: Ints
    edges: Ints
    table_slope: Floats

    @classmethod
    def of(cls, offsets: Offsets | None, dtype: Any) -> TileOffsets:
        """The parts side by side; None has none."""
        sparse = [] if offsets is None else list(offsets.sparse.values())
        tables = [] if offsets is None else list(offsets.tables.values())
        ptr, ids, values = _stack_rows(sparse, dtype)
        n_entities = 0 if offsets is None else offsets.n_entities
        order, edges = _stack_groups(tables)
        table = np.empty((n_entities, len(edges) - 1), dtype=dtype)
        if tables:
            np.concatenate([part.values.T for part in tables], axis=1, out=table)
        slopes = (np.zeros(len(ids), dtype), np.zeros_like(table))
        n_rows = 0 if offsets is None else offsets.n_rows
        rows = (tuple(sparse), ptr, ids, values, slopes[0], n_rows)
        return cls(*rows, table, order, edges, slopes[1])

    def deal(self, edges: Ints, pitch: int) -> tuple[tuple[Any, ...], Ints]:
        """What kernels see: the sparse cells tile by tile (see `deal_cells`), and the tables.

        Beside it, cells of each row before each tile.
        """
        begin, end = (np.zeros(len(edges) - 1, np.int64) for _ in range(2))
        where, dealt = np.zeros(0, np.int32), np.zeros(0, self.values.dtype)
        starts = np.zeros((0, len(edges)), np.int32)
        if len(self.ids):
            starts = np.concatenate([_cut(part, edges) for part in self.parts])
            room = share_out(starts, begin, end)
            where, dealt = np.empty(room, np.int32), np.empty(room, self.values.dtype)
            cells = (self.ptr, self.ids, self.values)
            deal_cells(edges, self.n_rows, pitch, starts, begin.copy(), *cells, where, dealt)
        tables = (self.table, self.order, self.edges, self.table_slope)
        return (begin, end, where, dealt, np.empty_like(dealt), *tables), starts

    def collect(self, dealt: tuple[Any, ...], starts: Ints) -> None:
        """Fill `slope` with what kernels left tile by tile."""
        if len(self.ids):
            collect_cells(starts, dealt[0].copy(), self.ptr, dealt[4], self.slope)


def _cut(part: SparseRows, edges: Ints) -> Ints:
    """Cells of each row before each tile; a table is cut once, unless few of its rows are used."""
    if part.origin is not None:
        table, rows = part.origin
        if len(table.ptr) <= MOST_UNUSED * len(rows):
            key = edges.tobytes()
            if key not in table.cuts:
                table.cuts[key] = _cut(replace(table, origin=None), edges)
            return table.cuts[key].take(rows, axis=0)
    starts = np.empty((len(part.ptr) - 1, len(edges)), np.int32)
    cut_rows(edges, part.ptr, part.ids, starts)
    return starts


def _stack_rows(parts: list[SparseRows], dtype: Any) -> tuple[Ints, Ints, Floats]:
    """Pointers, ids and values of all parts, one after the other."""
    sizes = np.cumsum([0, *(len(part.ids) for part in parts)])
    pointers = [part.ptr[1:] + size for part, size in zip(parts, sizes, strict=False)]
    ptr = np.concatenate([np.zeros(1, np.int64), *pointers]).astype(np.int64, copy=False)
    if len(parts) == 1:
        part = parts[0]
        return ptr, part.ids.astype(np.int32, copy=False), part.values.astype(dtype, copy=False)
    ids = np.concatenate([np.zeros(0, np.int32), *(part.ids for part in parts)])
    values = np.concatenate([np.zeros(0, dtype), *(part.values for part in parts)])
    return ptr, ids.astype(np.int32), values.astype(dtype)


def _stack_groups(tables: list[GroupTable]) -> tuple[Ints, Ints]:
    """Rows of the groups of all tables, one after the other."""
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
    tiles : for kernels on tiles, which leave their slopes there
    """

    def __init__(
        self, offsets: Offsets, ptr: Ints, ids: Ints, dtype: Any, drawn: Ints | None
    ) -> None:
        self.offsets, self.ptr, self.ids, self.drawn = offsets, ptr, ids, drawn
        self.tiles = TileOffsets.of(offsets, dtype)
        self.at_entries = np.zeros(len(ids), dtype=dtype)
        # Of entries among the cells of each sparse part, -1 for none.
        self.places: dict[int, Ints] = {}
        for number, part in offsets.sparse.items():
            place = self.places[number] = np.empty(len(ids), dtype=np.int64)
            last = np.empty(offsets.n_entities, dtype=np.int64)
            find_cells(ptr, ids, part.ptr, part.ids, last, place)
            known = np.flatnonzero(place >= 0)
            self.at_entries[known] += part.values[place[known]].astype(dtype, copy=False)
        for table in offsets.tables.values():
            self.at_entries += table.at(self.row, ids).astype(dtype, copy=False)
        self.of_rows: dict[int, list[Floats]] = {}

    @cached_property
    def row(self) -> Ints:
        """Row of each stored entry."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))

    # -- every column of some rows, and drawn ones ----------------------------------------------

    def add_to(self, rows: slice, cells: Floats) -> None:
        """Add to the cells of some rows, (rows, N), in place."""
        self.offsets.slice_rows(rows).add_to(cells)

    def keep_slopes(self, rows: slice, cells: Floats) -> None:
        """Keep the slopes of the cells of some rows as zeros, (rows, N)."""
        self.of_rows[rows.start] = self.offsets.slice_rows(rows).gather(cells)

    def add_drawn(self, rows: slice, E: Floats) -> None:
        """Add to inner products of the drawn columns with some rows."""
        assert self.drawn is not None
        piece, place = self.offsets.slice_rows(rows), self._place_of_drawn
        for part in piece.sparse.values():
            column = place[part.ids]
            mine = np.flatnonzero(column >= 0)
            E[column[mine], part.row[mine]] += part.values[mine]
        for table in piece.tables.values():
            known = np.flatnonzero(table.code >= 0)
            E[: len(self.drawn), known] += table.values[table.code[known]][:, self.drawn].T

    def read_drawn(self, rows: slice, E: Floats) -> None:
        """Keep the slopes of the drawn columns with some rows."""
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
        first = 0
        for number, part in self.offsets.sparse.items():
            slope = self.tiles.slope[first : first + len(part.ids)]
            first += len(part.ids)
            place = self.places[number]
            known = np.flatnonzero(place >= 0)
            np.add.at(slope, place[known], net[known])
            drawn = self._slopes_of_drawn(number)
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
    """Makes the offsets of the rows of a step, piece by piece: those of all may be many.

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
