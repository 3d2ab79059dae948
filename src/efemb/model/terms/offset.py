"""Offset: a known number that is added to u, such as the logarithm of an exposure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.data.array_checks import is_sparse
from efemb.errors import DataError, check_name
from efemb.model.ingredient import row_column
from efemb.model.terms.base import BoundCells, CellTerm, TermArray
from efemb.model.terms.cell_table import (
    KnownCells,
    RowsOfTable,
    cell_table,
    find_table,
    store_table,
)

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


class Offset(CellTerm):
    """u_tn += z_tn: numbers that are known, with no coefficient to learn.

    Parameters
    ----------
    column : str
        A cell table of the data (``Dataset(cells={...})``) with a number for each entity in each
        group of rows, or a row column with a number for each row. A missing value adds 0.
    table : mapping, optional
        The table of the training data, as a fit stores it in its model: for questions, and for
        data that bring no table of their own.

    Examples
    --------
    >>> import efemb
    >>> weeks = efemb.data.CellTable([[0.0, 0.7], [0.0, 0.0]], by="week", groups=[1, 2])
    >>> trips = efemb.Dataset(
    ...     [[1, 2], [1, 1], [2, 1]], rows={"week": [1, 2, 2]}, cells={"shelf": weeks}
    ... )
    >>> term = Offset("shelf").freeze(trips)
    >>> term.bind(trips).cells({}, np.arange(3)).at(np.array([0, 1]), np.array([1, 1])).tolist()
    [0.7, 0.0]
    """

    learns_from_columns = True
    from_fit = ("table",)

    def __init__(self, column: str, table: Mapping[str, Any] | None = None) -> None:
        self.column = column
        self.table = table

    @property
    def label(self) -> str:
        """Offset of the column, which may have a coefficient in another term."""
        return f"offset of {self.column}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The row column, or the one that groups the rows of the table."""
        by_row = self.table is None or self.table["by"] is None
        return (self.column,) if by_row else (str(self.table["by"]),)  # type: ignore[index]

    def check(self) -> None:
        """The column is a name."""
        check_name("Offset.column", self.column)

    def freeze(self, data: Dataset) -> Offset:
        """The table of the training data; of a row column, that it is one."""
        if self.table is not None:
            return self
        if self.column in data.rows:
            self._numbers(data)
            return type(self)(self.column, {"by": None})
        return type(self)(self.column, store_table(cell_table(data, self.column, self)))

    def arrays(self, n_entities: int) -> tuple[TermArray, ...]:
        """Nothing is learned."""
        return ()

    def bind(self, data: Dataset) -> BoundCells:
        """The numbers of the rows, or of their groups; 0 where missing."""
        assert self.table is not None
        if self.table["by"] is None:
            values, code = np.unique(np.nan_to_num(self._numbers(data)), return_inverse=True)
            every = np.broadcast_to(values[:, None], (len(values), data.n_entities))
            return KnownCells(RowsOfTable(every, code))
        table = find_table(data, self.column, self.table, self)
        values = table.values if is_sparse(table.values) else np.nan_to_num(table.values)
        return KnownCells(RowsOfTable(values, table.codes(data.rows[table.by])))

    def _numbers(self, data: Dataset) -> Floats:
        try:
            return row_column(data, self.column, self).astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"{self!r} needs numbers, but the column holds other values ({error})"
            ) from error
