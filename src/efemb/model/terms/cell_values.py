"""Offsets of cells: what terms add to u of single cells, sparse or by group of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.data.array_checks import make_csr
from efemb.model.contexts.base import gather_rows


class CellValues(ABC):
    """Numbers added to u of cells of some rows; `values` are what a term computes them by."""

    values: Floats

    @abstractmethod
    def add_to(self, u: Floats) -> None:
        """Add to u of every cell, (rows, N), in place."""

    @abstractmethod
    def at(self, row: Ints, ids: Ints) -> Floats:
        """The numbers that are added to given cells."""

    @abstractmethod
    def gather(self, cells: Floats) -> Floats:
        """The transpose of `add_to`: numbers of all cells, (rows, N), summed for each value."""

    @abstractmethod
    def sum_rows_of_cells(self) -> Floats:
        """What is added to all cells of each row together, (rows,)."""

    @abstractmethod
    def gather_row_slopes(self, slopes: Floats, n_entities: int) -> Floats:
        """`gather` of a number of each row, (rows,), which all of its cells share."""

    @abstractmethod
    def gather_columns(self, entities: Ints, place: Ints, columns: Floats) -> Floats:
        """`gather` of numbers that are 0 but for those of some entities, (entities, rows).

        place : (N,) of each entity among these, -1 for none
        """

    @abstractmethod
    def slice_rows(self, rows: slice) -> CellValues:
        """Some consecutive rows."""

    @abstractmethod
    def misfit(self, n_rows: int, n_entities: int) -> str:
        """What does not match these numbers of rows and entities; empty if everything does."""


@dataclass(frozen=True, eq=False)
class SparseRows(CellValues):
    """Values of some cells of some rows (CSR); the ids of a row ascend.

    ptr : (rows + 1,);  ids, values : entity and value of each cell, those of row t at
    ptr[t]..ptr[t + 1]
    """

    ptr: Ints
    ids: Ints
    values: Floats

    @cached_property
    def cuts(self) -> dict[bytes, Ints]:
        """How many cells of each row lie before the edges of tiles, as solvers have counted."""
        return {}

    @cached_property
    def row(self) -> Ints:
        """Row of each cell."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))

    @cached_property
    def sums(self) -> Floats:
        """Sum of the values of each row."""
        return self.sum_rows_of_cells()

    def take(self, rows: Ints) -> SparseRows:
        """Some of the rows, in that order."""
        if len(rows) < 2:  # a question, which does without SciPy
            return self._gather_rows(rows)
        chosen = self._matrix[rows]
        return SparseRows(chosen.indptr, chosen.indices, chosen.data)

    def _gather_rows(self, rows: Ints) -> SparseRows:
        """Some of the rows, in that order, by NumPy alone."""
        ptr, where = gather_rows(self.ptr, rows)
        return SparseRows(ptr, self.ids.take(where), self.values.take(where))

    def sum_rows(self, weights: SparseRows) -> SparseRows:
        """Weighted sums of these rows: each row of `weights` names rows by its ids."""
        if len(weights.ptr) == 2:  # a question, which does without SciPy
            entries = self._gather_rows(weights.ids)
            ids, place = np.unique(entries.ids, return_inverse=True)
            each = weights.values[entries.row] * entries.values
            total: Any = np.bincount(place, each, len(ids))
            return SparseRows(np.array([0, len(ids)]), ids, total)
        every = self._matrix
        ids, ptr = (array.astype(every.indices.dtype) for array in (weights.ids, weights.ptr))
        shape = (len(ptr) - 1, every.shape[0])
        sums: Any = make_csr((weights.values, ids, ptr), shape=shape) @ every
        sums.sort_indices()
        return SparseRows(sums.indptr, sums.indices, sums.data)

    @cached_property
    def _matrix(self) -> Any:
        """All rows as csr_array; made once, since SciPy copies what has two kinds of integers."""
        largest = max(int(self.ptr[-1]), len(self.ptr))
        kind = np.int32 if largest < np.iinfo(np.int32).max else np.int64
        cells = (self.values, self.ids.astype(kind, copy=False), self.ptr.astype(kind))
        return make_csr(cells, shape=(len(self.ptr) - 1, 1 + int(self.ids.max(initial=0))))

    def add_to(self, u: Floats) -> None:
        """Add to u of every cell."""
        u[self.row, self.ids] += self.values

    def at(self, row: Ints, ids: Ints) -> Floats:
        """Value of any cells, 0 where there is none."""
        values = np.zeros(len(row), dtype=self.values.dtype)
        if len(self.ids) == 0 or len(row) == 0:
            return values
        size = np.int64(1 + max(int(self.ids.max()), int(ids.max())))
        mine, asked = self.row * size + self.ids, row * size + ids  # mine is sorted
        place = np.minimum(np.searchsorted(mine, asked), len(mine) - 1)
        known = mine[place] == asked
        values[known] = self.values[place[known]]
        return values

    def gather(self, cells: Floats) -> Floats:
        """The numbers of the stored cells."""
        return np.asarray(cells[self.row, self.ids])

    def sum_rows_of_cells(self) -> Floats:
        """Sums of its values."""
        return np.asarray(np.bincount(self.row, self.values, len(self.ptr) - 1))

    def gather_row_slopes(self, slopes: Floats, n_entities: int) -> Floats:
        """The number of the row of each of its cells."""
        return np.asarray(slopes[self.row])

    def gather_columns(self, entities: Ints, place: Ints, columns: Floats) -> Floats:
        """The numbers of its cells among those of some entities, 0 of the others."""
        column = place[self.ids]
        known = np.flatnonzero(column >= 0)
        values = np.zeros(len(self.ids), dtype=columns.dtype)
        values[known] = columns[column[known], self.row[known]]
        return values

    def slice_rows(self, rows: slice) -> SparseRows:
        """Some consecutive rows."""
        cells = slice(self.ptr[rows.start], self.ptr[rows.stop])
        ptr = self.ptr[rows.start : rows.stop + 1] - cells.start
        return SparseRows(ptr, self.ids[cells], self.values[cells])

    def misfit(self, n_rows: int, n_entities: int) -> str:
        """What does not match: pointers, numbers of values, ids or their order."""
        shapes = (len(self.ptr), len(self.ids), len(self.values))
        if shapes != (n_rows + 1, self.ptr[-1], self.ptr[-1]):
            return f"must give {n_rows + 1} pointers and one value per id"
        if not ((self.ids >= 0) & (self.ids < n_entities)).all():
            return "has ids that are not entities"
        ascend = (np.diff(self.row * n_entities + self.ids) > 0).all()
        return "" if ascend else "must give the ids of a row in ascending order, each once"


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows as references to rows of a table, some with changed cells; none is copied.

    table : the cells;  code : (rows,) row of the table
    changed : cells that differ;  cells : the places of these among the cells of the row
    place : (rows,) row of `changed`, -1 for a row without changes
    factor : (rows,) number that the cells of each row are multiplied by, None for 1
    """

    table: SparseRows
    code: Ints
    changed: SparseRows
    cells: Ints
    place: Ints
    factor: Floats | None = None

    @classmethod
    def of(cls, rows: SparseRows) -> TableRows:
        """Each row of a table once, without changes."""
        n = len(rows.ptr) - 1
        unchanged = SparseRows(np.zeros(1, np.int64), rows.ids[:0], rows.values[:0])
        return cls(rows, np.arange(n), unchanged, rows.ids[:0], np.full(n, -1))

    @cached_property
    def rows(self) -> SparseRows:
        """The rows themselves."""
        rows, known = self.table.take(self.code), np.flatnonzero(self.place >= 0)
        own = replace(self.changed, ids=self.cells).take(self.place[known])
        values = rows.values.copy()
        values[rows.ptr[known][own.row] + own.ids] = own.values
        if self.factor is not None:
            values = values * self.factor[rows.row]
        return SparseRows(rows.ptr, rows.ids, values)

    @cached_property
    def sums(self) -> Floats:
        """Sum of the cells of each row, which are not made for it."""
        total, known = self.table.sums[self.code], np.flatnonzero(self.place >= 0)
        own = replace(self.changed, ids=self.cells).take(self.place[known])
        before = self.table.values[self.table.ptr[self.code[known]][own.row] + own.ids]
        total[known] += np.bincount(own.row, own.values - before, len(known))
        return total if self.factor is None else total * self.factor

    def slice_rows(self, rows: slice) -> TableRows:
        """Some consecutive rows."""
        factor = None if self.factor is None else self.factor[rows]
        return replace(self, code=self.code[rows], place=self.place[rows], factor=factor)


@dataclass(frozen=True, eq=False)
class ScaledRows(CellValues):
    """A number, values (1,), times known weights of cells."""

    values: Floats
    weights: TableRows

    @property
    def products(self) -> SparseRows:
        """The numbers that are added."""
        rows = self.weights.rows
        values = rows.values.astype(self.values.dtype, copy=False) * self.values[0]
        return SparseRows(rows.ptr, rows.ids, values)

    def add_to(self, u: Floats) -> None:
        """Add to u of every cell."""
        self.products.add_to(u)

    def at(self, row: Ints, ids: Ints) -> Floats:
        """The numbers that are added to given cells, 0 for those without a weight."""
        return self.products.at(row, ids)

    def weigh(self, slopes: Floats) -> Floats:
        """The sum of numbers of its cells, in the order of their rows, times their weights."""
        total = slopes.astype(np.float64) @ self.weights.rows.values.astype(np.float64)
        return np.array([total], dtype=self.values.dtype)

    def gather(self, cells: Floats) -> Floats:
        """Sum over its cells."""
        return self.weigh(self.weights.rows.gather(cells))

    def sum_rows_of_cells(self) -> Floats:
        """The number times sums of weights."""
        return np.asarray(self.values[0] * self.weights.sums)

    def gather_row_slopes(self, slopes: Floats, n_entities: int) -> Floats:
        """Sum over rows, weighted by their sums of weights."""
        return np.array([slopes @ self.weights.sums], dtype=self.values.dtype)

    def gather_columns(self, entities: Ints, place: Ints, columns: Floats) -> Floats:
        """Sum over its cells among those of some entities."""
        return self.weigh(self.weights.rows.gather_columns(entities, place, columns))

    def slice_rows(self, rows: slice) -> ScaledRows:
        """Some consecutive rows."""
        return ScaledRows(self.values, self.weights.slice_rows(rows))

    def misfit(self, n_rows: int, n_entities: int) -> str:
        """What does not match: the number of values, or the rows."""
        if self.values.shape != (1,):
            return "must give one number that weights are multiplied by"
        return self.weights.rows.misfit(n_rows, n_entities)


@dataclass(frozen=True, eq=False)
class GroupTable(CellValues):
    """A value for each entity in each group of rows.

    code : (rows,) group of each row, -1 for none;  values : (groups, N)
    """

    code: Ints
    values: Floats

    def add_to(self, u: Floats) -> None:
        """Add to u of every cell."""
        known = np.flatnonzero(self.code >= 0)
        u[known] += self.values[self.code[known]]

    def at(self, row: Ints, ids: Ints) -> Floats:
        """Value of any cells, 0 in rows of no group."""
        code = self.code[row]
        known, values = np.flatnonzero(code >= 0), np.zeros(len(row), dtype=self.values.dtype)
        values[known] = self.values[code[known], ids[known]]
        return values

    def gather(self, cells: Floats) -> Floats:
        """Sums over the rows of each group."""
        members = self.code == np.arange(len(self.values))[:, None]
        return np.asarray(members.astype(cells.dtype) @ cells)

    def sum_rows_of_cells(self) -> Floats:
        """Sums of the values of the group of each row."""
        total = np.append(self.values.sum(axis=1, dtype=np.float64), 0.0)
        return np.asarray(total[self.code])

    def gather_row_slopes(self, slopes: Floats, n_entities: int) -> Floats:
        """Sums over the rows of each group, the same for every entity."""
        known = self.code >= 0
        total = np.bincount(self.code[known], slopes[known], len(self.values))
        return np.repeat(total[:, None], n_entities, axis=1).astype(self.values.dtype)

    def gather_columns(self, entities: Ints, place: Ints, columns: Floats) -> Floats:
        """Sums over the rows of each group, of some entities."""
        sums = np.zeros(self.values.shape, dtype=columns.dtype)
        sums[:, entities] = self.gather(columns.T)
        return sums

    def slice_rows(self, rows: slice) -> GroupTable:
        """Some consecutive rows, with all groups."""
        return GroupTable(self.code[rows], self.values)

    def misfit(self, n_rows: int, n_entities: int) -> str:
        """What does not match: the number of codes, or of columns."""
        shapes = (len(self.code), self.values.shape[1:])
        if shapes == (n_rows, (n_entities,)):
            return ""
        return f"must give {n_rows} codes and a column per entity, {n_entities}"


@dataclass(frozen=True, eq=False)
class Offsets:
    """Numbers that the terms of a model add to u of single cells of some rows, by term."""

    parts: tuple[CellValues, ...]
    n_rows: int
    n_entities: int

    @cached_property
    def sparse(self) -> dict[int, SparseRows]:
        """The parts that are sparse rows, by their number."""
        return {i: part for i, part in enumerate(self.parts) if isinstance(part, SparseRows)}

    @cached_property
    def scaled(self) -> dict[int, ScaledRows]:
        """The parts that are a number times known weights, by their number."""
        return {i: part for i, part in enumerate(self.parts) if isinstance(part, ScaledRows)}

    @cached_property
    def tables(self) -> dict[int, GroupTable]:
        """The parts that are tables by group of rows, by their number."""
        return {i: part for i, part in enumerate(self.parts) if isinstance(part, GroupTable)}

    def slice_rows(self, rows: slice) -> Offsets:
        """The offsets of some consecutive rows."""
        parts = tuple(part.slice_rows(rows) for part in self.parts)
        return Offsets(parts, rows.stop - rows.start, self.n_entities)

    def add_to(self, u: Floats) -> None:
        """Add to u of every cell, (rows, N), in place."""
        for part in self.parts:
            part.add_to(u)

    def at(self, row: Ints, ids: Ints) -> Floats:
        """Sum of the offsets of any cells."""
        return np.asarray(sum(part.at(row, ids) for part in self.parts))

    def sum_rows(self) -> Floats:
        """Sums of the offsets of all cells of each row, (rows,)."""
        return np.asarray(sum(part.sum_rows_of_cells() for part in self.parts))

    def gather(self, cells: Floats) -> list[Floats]:
        """For each part, numbers of all cells, (rows, N), summed for each of its values."""
        return [part.gather(cells) for part in self.parts]

    def of_entities(self, entities: Ints) -> Floats:
        """Offsets of some entities in every row, (rows, entities)."""
        row = np.repeat(np.arange(self.n_rows), len(entities))
        return self.at(row, np.tile(entities, self.n_rows)).reshape(self.n_rows, -1)
