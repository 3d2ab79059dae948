"""A table of the data by group of rows and entity, as terms see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.data.array_checks import is_sparse
from efemb.data.columns import CellTable
from efemb.errors import DataError
from efemb.model.ingredient import Ingredient, row_column
from efemb.model.terms.base import Arrays, BoundCells, CellTerm
from efemb.model.terms.cell_values import CellValues, GroupTable, SparseRows

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

Stored = Mapping[str, Any]


class TableTerm(CellTerm):
    """A term of one cell table of the data, which a fit stores in the option `from_fit`."""

    table: str

    @property
    def stored_table(self) -> Stored | None:
        """The table of the training data, None before a fit."""
        return getattr(self, self.from_fit[0])  # type: ignore[no-any-return]

    @property
    def label(self) -> str:
        """The table."""
        return self.table

    @property
    def columns(self) -> tuple[str, ...]:
        """The row column that groups the rows of the table."""
        return () if self.stored_table is None else (str(self.stored_table["by"]),)

    @property
    def tables(self) -> tuple[str, ...]:
        """The table."""
        return (self.table,)

    def change_table(
        self, row: Mapping[str, Any] | None, codes: Ints, numbers: Floats
    ) -> CellTable:
        """The table with other numbers for some entities."""
        assert self.stored_table is not None
        return change_columns(self.stored_table, self.table, row, codes, numbers)


def cell_table(data: Dataset, name: str, asked_by: Ingredient) -> CellTable:
    """A cell table of the data, or an error that lists the tables."""
    if name not in data.cells:
        known = ", ".join(map(repr, data.cells)) or "none"
        raise DataError(
            f"{asked_by!r} needs the cell table {name!r}, which the data lack (tables: {known}): "
            f"pass Dataset(values, rows=..., cells={{{name!r}: CellTable(...)}})"
        )
    return data.cells[name]


def store_table(table: CellTable) -> dict[str, Any]:
    """A table as options of a term, which files can hold."""
    return {"values": table.values, "by": table.by, "groups": list(table.groups)}


def find_table(data: Dataset, name: str, stored: Stored, asked_by: Ingredient) -> CellTable:
    """The table of the data, where they have one, else the stored one."""
    if name in data.cells:
        return data.cells[name]
    row_column(data, stored["by"], asked_by)
    return CellTable(stored["values"], by=stored["by"], groups=stored["groups"])


def change_columns(
    stored: Stored,
    name: str,
    row: Mapping[str, Any] | None,
    codes: Ints,
    numbers: Floats,
    missing: Floats | None = None,
) -> CellTable:
    """A stored table with other numbers for some entities, in one group of rows or in all.

    row : column `by` of the row whose group is changed, the result has this group only; None: all
    missing : (N,) what missing values count as; numbers are then factors, else new values
    """
    by, groups = str(stored["by"]), list(stored["groups"])
    values = stored["values"]
    if row is not None:
        if row.get(by) is None:
            raise DataError(f"a change of {name!r} needs the {by} whose {name} changes: pass {by}=")
        label = row[by]
        table = CellTable(values, by=by, groups=groups)
        values, groups = values[table.codes(np.array([label], dtype=object))], [label]
    changed = values.toarray() if is_sparse(values) else np.array(values)
    if missing is None:
        changed[:, codes] = numbers
    else:
        gaps = np.isnan(changed)
        changed[gaps] = np.broadcast_to(missing, changed.shape)[gaps]
        changed[:, codes] *= numbers
    return CellTable(changed, by=by, groups=groups)


@dataclass(frozen=True)
class RowsOfTable:
    """The rows of a data set by the rows of a table.

    values : (G, N), or sparse;  code : (rows,) group of each row, -1 for none
    """

    values: Any
    code: Ints

    def of(self, rows: Ints) -> tuple[Ints, Any]:
        """Code of some rows among the groups that they have, and the values of these groups."""
        present, code = np.unique(self.code[rows], return_inverse=True)
        none = int(len(present) > 0 and present[0] < 0)
        return code - none, self.values[present[none:]]

    def column(self, entity: int) -> Floats:
        """Value of an entity in every row, 0 in rows of no group."""
        values = self.values[:, [entity]]
        dense = np.asarray(values.toarray() if is_sparse(values) else values)[:, 0]
        return np.where(self.code >= 0, dense[self.code], 0.0)

    def offsets(self, rows: Ints, coefficient: Floats) -> CellValues:
        """Values times coefficients of the entities, at the cells of some rows."""
        code, values = self.of(rows)
        if not is_sparse(values):
            return GroupTable(code, values.astype(coefficient.dtype, copy=False) * coefficient)
        table = sparse_rows(values)
        padded = SparseRows(np.append(table.ptr, table.ptr[-1]), table.ids, table.values)
        rows_of_table = padded.take(np.where(code < 0, len(table.ptr) - 1, code))
        weight = coefficient[rows_of_table.ids]
        return SparseRows(rows_of_table.ptr, rows_of_table.ids, rows_of_table.values * weight)

    def collect(self, rows: Ints, gradient: Floats, n_entities: int) -> Floats:
        """Gradient of the coefficients from that of `offsets`: its transpose."""
        _, values = self.of(rows)
        if not is_sparse(values):
            z = values.astype(gradient.dtype, copy=False)
            return np.asarray(np.einsum("gn,gn->n", z, gradient))
        cells: Any = self.offsets(rows, np.ones(n_entities, dtype=gradient.dtype))
        total = np.bincount(cells.ids, cells.values * gradient, n_entities)
        return np.asarray(total, dtype=gradient.dtype)


class KnownCells(BoundCells):
    """Numbers of a table, times a factor that is not learned."""

    def __init__(self, rows: RowsOfTable, factor: float = 1.0) -> None:
        self.rows, self.factor = rows, factor

    def cells(self, arrays: Arrays, rows: Ints) -> CellValues:
        """The numbers times the factor."""
        return self.rows.offsets(rows, np.full(self.rows.values.shape[1], self.factor))

    def pull_back_cells(self, arrays: Arrays, rows: Ints, gradient: Floats) -> dict[str, Floats]:
        """No gradients, because the numbers are data."""
        return {}


def sparse_rows(table: Any) -> SparseRows:
    """A csr_array with sorted ids, as arrays."""
    table.sort_indices()
    return SparseRows(table.indptr.astype(np.int64), table.indices, table.data)
