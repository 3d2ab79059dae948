"""Offsets of single cells during one step: added to u, and dL/du read back at those cells."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.model.contexts.bound.rows import RowBlock
from efemb.model.terms.base import Arrays, RowSide
from efemb.model.terms.cells import Offsets


class CellOffsets:
    """The offsets of the rows of a step, or of a piece of them.

    at_entries : (entries,) sum of the offsets of each stored entry
    slope : (cells,) dL/du at the cells of all parts, filled in the course of the step
    """

    def __init__(
        self, offsets: Offsets, ptr: Ints, ids: Ints, dtype: np.dtype[Any], drawn: Ints | None
    ) -> None:
        from efemb.kernels.rows import look_up

        self.offsets, self.ptr, self.ids, self.dtype, self.drawn = offsets, ptr, ids, dtype, drawn
        self.row, self.entity, values = offsets.flat()
        self.values = values.astype(dtype, copy=False)
        self.at_entries = np.zeros(len(ids), dtype=dtype)
        room = np.zeros(offsets.n_entities, dtype=dtype)
        for part in offsets.parts:
            values = part.values.astype(dtype, copy=False)
            look_up(ptr, ids, part.ptr, part.ids, values, room, self.at_entries)
        self.slope = np.zeros(len(self.row), dtype=dtype)

    @cached_property
    def by_entity(self) -> tuple[Ints, Ints, Floats, Floats]:
        """Edges, row and value of the cells sorted by entity, and room for their slopes."""
        edges, self._order = order_by_entity(self.entity, self.offsets.n_entities)
        values = self.values.take(self._order)
        return edges, self.row.take(self._order), values, np.zeros_like(values)

    def collect_tiles(self) -> None:
        """Take over the slopes that tiles have left in `by_entity`."""
        slope = self.by_entity[3]
        self.slope[self._order] = slope

    def of_drawn(self, rows: slice) -> tuple[Ints, Ints, Ints]:
        """Cells of drawn columns in some rows: their place here, column and row among these."""
        assert self.drawn is not None
        inside = (self.row >= rows.start) & (self.row < rows.stop)
        cells = np.flatnonzero(inside & (self.drawn[self.entity] >= 0))
        return cells, self.drawn[self.entity[cells]], self.row[cells] - rows.start

    def add_entries(self, slope: Floats) -> list[Floats]:
        """Add dL/du of the stored entries to their cells; returns that of each part."""
        from efemb.kernels.rows import look_up

        room = np.zeros(self.offsets.n_entities, dtype=self.dtype)
        for part, mine in zip(self.offsets.parts, self.offsets.split(self.slope), strict=True):
            look_up(part.ptr, part.ids, self.ptr, self.ids, slope, room, mine)
        return list(self.offsets.split(self.slope))


def order_by_entity(ids: Ints, n: int) -> tuple[Ints, Ints]:
    """Edges and order of entries: those of entity i are order[edges[i] : edges[i + 1]]."""
    from efemb.kernels.sparse import sort_by_column

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
        self.side, self.arrays, self.places, self.block = side, arrays, places, block
        self.drawn: Ints | None = None
        if drawn is not None:
            self.drawn = np.full(side.n_entities, -1, dtype=np.int64)
            self.drawn[drawn] = np.arange(len(drawn))

    def of_rows(self, rows: slice) -> CellOffsets:
        """The offsets of some consecutive rows."""
        offsets = self.side.offsets(self.arrays, self.places[rows])
        assert offsets is not None
        ptr = self.block.ptr[rows.start : rows.stop + 1]
        ids = self.block.ids[ptr[0] : ptr[-1]]
        return CellOffsets(offsets, ptr - ptr[0], ids, self.block.x.dtype, self.drawn)

    def pull_back(self, cells: CellOffsets, rows: slice, net: Floats) -> dict[str, Floats]:
        """Gradients of the arrays behind the offsets; `net` is dL/du of the stored entries."""
        slopes = cells.add_entries(net)
        return self.side.pull_back_cells(self.arrays, self.places[rows], slopes)
