"""Offsets of cells: what terms add to u of single cells, as sparse rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from efemb._typing import Floats, Ints
from efemb.model.contexts.base import gather_rows


@dataclass(frozen=True)
class SparseRows:
    """Values of some cells of some rows (CSR); a cell occurs once at most.

    ptr : (rows + 1,);  ids, values : entity and value of each cell, those of row t at
    ptr[t]..ptr[t + 1]
    """

    ptr: Ints
    ids: Ints
    values: Floats

    @cached_property
    def row(self) -> Ints:
        """Row of each cell."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))

    def take(self, rows: Ints) -> SparseRows:
        """Some of the rows, in that order."""
        ptr, where = gather_rows(self.ptr, rows)
        return SparseRows(ptr, self.ids.take(where), self.values.take(where))

    def part(self, rows: slice) -> SparseRows:
        """Some consecutive rows."""
        cells = slice(self.ptr[rows.start], self.ptr[rows.stop])
        ptr = self.ptr[rows.start : rows.stop + 1] - cells.start
        return SparseRows(ptr, self.ids[cells], self.values[cells])

    def at(self, row: Ints, ids: Ints, n_entities: int) -> Floats:
        """Value of any cells, 0 where there is none."""
        values = np.zeros(len(row), dtype=self.values.dtype)
        if len(self.ids) == 0 or len(row) == 0:
            return values
        mine = self.row * np.int64(n_entities) + self.ids
        order = np.argsort(mine, kind="stable")
        asked = row * np.int64(n_entities) + ids
        place = np.minimum(np.searchsorted(mine, asked, sorter=order), len(order) - 1)
        place = order[place]
        known = mine[place] == asked
        values[known] = self.values[place[known]]
        return values


@dataclass(frozen=True)
class Offsets:
    """What the terms of a model add to u of single cells of some rows; a part for each term."""

    parts: tuple[SparseRows, ...]
    n_rows: int
    n_entities: int

    def add_to(self, u: Floats) -> None:
        """Add to u of every cell, (rows, N), in place."""
        for part in self.parts:
            u[part.row, part.ids] += part.values

    def at(self, row: Ints, ids: Ints) -> Floats:
        """Sum of the offsets of any cells."""
        return np.asarray(sum(part.at(row, ids, self.n_entities) for part in self.parts))

    def column(self, entity: int) -> Floats:
        """Offset of one entity in every row."""
        total = np.zeros(self.n_rows)
        for part in self.parts:
            mine = part.ids == entity
            total[part.row[mine]] += part.values[mine]
        return total

    def gather(self, cells: Floats) -> list[Floats]:
        """Numbers of all cells, (rows, N), at the cells of each part."""
        return [cells[part.row, part.ids] for part in self.parts]

    def flat(self) -> tuple[Ints, Ints, Floats]:
        """Row, entity and value of the cells of all parts, one part after the other."""
        if len(self.parts) == 1:
            part = self.parts[0]
            return part.row, part.ids, part.values
        row, ids, values = zip(*((p.row, p.ids, p.values) for p in self.parts), strict=True)
        return np.concatenate(row), np.concatenate(ids), np.concatenate(values)

    def split(self, flat: Floats) -> Iterator[Floats]:
        """Numbers of the cells of all parts, part by part."""
        edges = np.cumsum([0, *(len(part.ids) for part in self.parts)])
        for start, stop in pairwise(edges.tolist()):
            yield flat[start:stop]

    def part(self, rows: slice) -> Offsets:
        """The offsets of some consecutive rows."""
        if rows.start == 0 and rows.stop == self.n_rows:
            return self
        parts = tuple(part.part(rows) for part in self.parts)
        return Offsets(parts, rows.stop - rows.start, self.n_entities)
