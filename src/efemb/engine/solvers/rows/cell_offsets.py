"""Offsets of single cells during one step: added to u, and dL/du read back at those cells."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from efemb._typing import Floats, Ints
from efemb.kernels.offsets import find_cells
from efemb.kernels.sparse import sort_by_column
from efemb.model.contexts.bound.rows import RowBlock
from efemb.model.terms.base import Arrays, RowSide
from efemb.model.terms.cells import GroupTable, Offsets, SparseRows


class TileOffsets(NamedTuple):
    """What kernels on tiles see: sparse rows, then tables by group of rows, and their slopes.

    ptr, ids, values, slope : the rows of all sparse parts, one part after the other
    n_rows : of a part
    table, table_slope : (N, groups of all tables)
    order, edges : the rows of group g are order[edges[g] : edges[g + 1]]
    """

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
        parts = () if offsets is None else offsets.parts
        sparse = [part for part in parts if isinstance(part, SparseRows)]
        tables = [part for part in parts if isinstance(part, GroupTable)]
        ptr, ids, values = _stack_rows(sparse, dtype)
        n_entities = 0 if offsets is None else offsets.n_entities
        order, edges = _stack_groups(tables)
        table = np.empty((n_entities, len(edges) - 1), dtype=dtype)
        if tables:
            np.concatenate([part.values.T for part in tables], axis=1, out=table)
        slopes = (np.zeros(len(ids), dtype), np.zeros_like(table))
        n_rows = 0 if offsets is None else offsets.n_rows
        return cls(ptr, ids, values, slopes[0], n_rows, table, order, edges, slopes[1])


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
        self.offsets, self.ids, self.drawn = offsets, ids, drawn
        self.row = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        self.tiles = TileOffsets.of(offsets, dtype)
        self.at_entries = np.zeros(len(ids), dtype=dtype)
        self.places: list[Ints] = []  # of entries among the cells of sparse parts, -1 for none
        for part in offsets.parts:
            if isinstance(part, SparseRows):
                place = np.empty(len(ids), dtype=np.int64)
                find_cells(ptr, ids, part.ptr, part.ids, place)
                self.places.append(place)
                known = np.flatnonzero(place >= 0)
                self.at_entries[known] += part.values[place[known]].astype(dtype, copy=False)
            else:
                self.at_entries += part.at(self.row, ids).astype(dtype, copy=False)
        self.of_rows: dict[int, list[Floats]] = {}

    # -- drawn columns --------------------------------------------------------------------------

    def add_drawn(self, rows: slice, E: Floats) -> None:
        """Add to inner products of the drawn columns with some rows."""
        assert self.drawn is not None
        for part in self._parts_of(rows):
            if isinstance(part, SparseRows):
                column = self._column[part.ids]
                mine = np.flatnonzero(column >= 0)
                E[column[mine], part.row[mine]] += part.values[mine]
            else:
                known = np.flatnonzero(part.code >= 0)
                values = part.values[part.code[known]][:, self.drawn]
                E[: len(self.drawn), known] += values.T

    def read_drawn(self, rows: slice, E: Floats) -> None:
        """Keep the slopes of the drawn columns with some rows."""
        assert self.drawn is not None
        n_rows = rows.stop - rows.start
        cells = np.zeros((n_rows, self.offsets.n_entities), dtype=E.dtype)
        cells[:, self.drawn] = E[: len(self.drawn), :n_rows].T
        self.of_rows[rows.start] = [part.gather(cells) for part in self._parts_of(rows)]

    @property
    def _column(self) -> Ints:
        """Place of each entity among the drawn ones, -1 for none."""
        column = np.full(self.offsets.n_entities, -1, dtype=np.int64)
        column[self.drawn] = np.arange(len(self.drawn)) if self.drawn is not None else -1
        return column

    def _parts_of(self, rows: slice) -> list[SparseRows | GroupTable]:
        """The parts of some consecutive rows."""
        parts: list[SparseRows | GroupTable] = []
        for part in self.offsets.parts:
            if isinstance(part, SparseRows):
                cells = slice(part.ptr[rows.start], part.ptr[rows.stop])
                ptr = part.ptr[rows.start : rows.stop + 1] - cells.start
                parts.append(SparseRows(ptr, part.ids[cells], part.values[cells]))
            elif isinstance(part, GroupTable):
                parts.append(GroupTable(part.code[rows], part.values))
        return parts

    # -- the end of a step ----------------------------------------------------------------------

    def gradients(self, net: Floats) -> list[Floats]:
        """dL/do of each part; `net` is dL/du of the stored entries."""
        gradients, first, group, places = [], 0, 0, iter(self.places)
        for number, part in enumerate(self.offsets.parts):
            if isinstance(part, SparseRows):
                slope = self.tiles.slope[first : first + len(part.ids)]
                first += len(part.ids)
                place = next(places)
                known = np.flatnonzero(place >= 0)
                np.add.at(slope, place[known], net[known])
            else:
                assert isinstance(part, GroupTable)
                slope = self.tiles.table_slope[:, group : group + len(part.values)].T.copy()
                group += len(part.values)
                known = np.flatnonzero(part.code[self.row] >= 0)
                cells = (part.code[self.row[known]], self.ids[known])
                np.add.at(slope, cells, net[known])
            if self.of_rows:
                of_rows = [self.of_rows[start][number] for start in sorted(self.of_rows)]
                drawn = np.concatenate(of_rows) if isinstance(part, SparseRows) else sum(of_rows)
                slope = slope + drawn
            gradients.append(slope)
        return gradients


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
