"""Available: what a store does not carry cannot be bought there, and is not a zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb.data.array_checks import is_sparse
from efemb.data.columns import CellTable
from efemb.errors import DataError, ParameterError, check_name
from efemb.model.families.base import Family
from efemb.model.links import Link
from efemb.model.terms.base import BoundCells, TermArray
from efemb.model.terms.cell_table import (
    KnownCells,
    RowsOfTable,
    TableTerm,
    cell_table,
    find_table,
    store_table,
)

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

# Subtracted from u, so that the mean and its gradient are 0 in either precision.
PENALTY = 1000.0


class Available(TableTerm):
    """Entities that are not available in a group of rows have a mean of 0 there.

    Their cells add nothing to the objective, neither as zeros in training nor in the denominator of
    a softmax, and they get no share in predictions.

    Parameters
    ----------
    table : str, default="available"
        Name of a cell table of the data, ``Dataset(cells={"available": CellTable(...)})``, with 0
        where an entity is not available in a group of rows (a store, a week) and any other number
        where it is. Missing values count as available, and so does everything in rows without a
        group. ``CellTable.total(trips, by="store")`` has units sold by store.
    stored : mapping, optional
        The table of the training data, as a fit stores it in its model: for questions, and for
        data that bring no table of their own.

    Examples
    --------
    >>> import efemb
    >>> carried = efemb.data.CellTable([[1, 1], [1, 0]], by="store", groups=["a", "b"])
    >>> trips = efemb.Dataset(
    ...     [[1, 2], [1, 0], [2, 0]], rows={"store": ["a", "b", "b"]}, cells={"available": carried}
    ... )
    >>> term = Available("available").freeze(trips)
    >>> term.bind(trips).cells({}, np.arange(3)).at(np.array([0, 1]), np.array([1, 1])).tolist()
    [-0.0, -1000.0]
    """

    from_fit = ("stored",)

    def __init__(self, table: str = "available", stored: Mapping[str, Any] | None = None) -> None:
        self.table = table
        self.stored = stored

    def check(self) -> None:
        """The table is a name."""
        check_name("Available.table", self.table)

    def check_model(self, family: Family, link: Link) -> None:
        """A very low predictor must mean a mean of 0."""
        if family.softmax:
            return
        low = np.array([-PENALTY])
        if not abs(float(family.expected_value(family.natural(link(low)))[0])) < 1e-30:
            raise ParameterError(
                f"{self!r} needs a family whose mean can be 0, not {family.name()} with link "
                f"{link.name()!r}: mark such observations as missing (NaN) instead"
            )

    def freeze(self, data: Dataset) -> Available:
        """The table of the training data, which must agree with what was bought."""
        if self.stored is not None:
            return self
        table = cell_table(data, self.table, self)
        self._check_sold(data, table)
        return type(self)(self.table, store_table(table))

    def _check_sold(self, data: Dataset, table: CellTable) -> None:
        """Raise an error if something was bought that was not available."""
        row, entity = data.values.nonzero()[:2]
        rows_of_table = RowsOfTable(_absent(table), table.codes(data.rows[table.by]))
        code = rows_of_table.code[row]
        wrong = np.flatnonzero((code >= 0) & rows_of_table.values[code, entity])
        if len(wrong):
            first = wrong[0]
            name = entity[first] if data.entities is None else data.entities[int(entity[first])]
            raise DataError(
                f"row {row[first]} holds entity {name!r}, which the table {self.table!r} says is "
                f"not available in its {table.by} {data.rows[table.by][row[first]]!r} "
                f"({len(wrong):,} such entries): what is bought is available, correct the table"
            )

    def arrays(self, n_entities: int) -> tuple[TermArray, ...]:
        """Nothing is learned."""
        return ()

    def bind(self, data: Dataset) -> BoundCells:
        """The groups of the rows, and what they lack."""
        assert self.stored is not None
        table = find_table(data, self.table, self.stored, self)
        absent = _absent(table)
        new = data.n_entities - absent.shape[1]  # entities that were added after the fit
        absent = np.pad(absent, ((0, 0), (0, max(new, 0))))
        return KnownCells(RowsOfTable(absent, table.codes(data.rows[table.by])), -PENALTY)


def _absent(table: CellTable) -> Any:
    """Which entities are not available, (groups, N)."""
    values = table.values.toarray() if is_sparse(table.values) else table.values
    return values == 0
