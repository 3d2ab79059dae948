"""Columns of rows and of entities, and tables of groups by entity, which accompany the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efemb.data.array_checks import (
    check_indices,
    float_array,
    is_missing_label,
    is_sparse,
    make_csr,
    read_only,
)
from efemb.data.vocabulary import Vocabulary, canonical_label, shorten
from efemb.errors import DataError, InputTypeError, suggest

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


def label_key(value: object) -> Any:
    """The key of a label, equal for a number and its text; None if the label is missing."""
    try:
        label = canonical_label(value)
    except InputTypeError:  # not a label of an entity, yet it distinguishes one row from another
        return value
    return None if label is None else str(label)


def distinct_labels(labels: Iterable[Any], known: Iterable[Any] = ()) -> list[Any]:
    """The labels that are neither known nor missing, each once, in the order of their first.

    >>> distinct_labels(["b", 3, "3", None, "a"], known=["a"])
    ['b', 3]
    """
    skipped = {None, *map(label_key, known)}
    first: dict[Any, Any] = {}
    for label in dict.fromkeys(labels):
        first.setdefault(label_key(label), label)
    return [label for key, label in first.items() if key not in skipped]


def label_codes(labels: Iterable[Any], known: Iterable[Any]) -> NDArray[np.int64]:
    """Place of each label among the known ones, -1 for any other.

    >>> label_codes(["b", 3, None, "3"], known=[3, "b"]).tolist()
    [1, 0, -1, 0]
    """
    code_of_key: dict[Any, int] = {}
    for code, label in enumerate(known):
        code_of_key.setdefault(label_key(label), code)
    values = list(labels)
    code_of = {value: code_of_key.get(label_key(value), -1) for value in dict.fromkeys(values)}
    return np.fromiter(map(code_of.__getitem__, values), np.int64, len(values))


class NamedColumns(Mapping[str, NDArray[Any]]):
    """Immutable columns with one value per row (or per entity), by name.

    A missing value (None, NaN, NaT, pandas' NA, empty text) is kept as it is; its meaning depends
    on the use of the column.

    Parameters
    ----------
    columns : mapping of str to array of shape (size,)
    size : int
        T for columns of rows, N for columns of entities.
    unit : {"rows", "features"}
        What the columns describe, for messages.

    Examples
    --------
    >>> columns = NamedColumns({"week": [1, 1, 2], "store": ["a", "b", None]}, 3, "rows")
    >>> columns
    NamedColumns(3 rows: week, store)
    >>> columns.take(np.array([2, 0]))["week"].tolist()
    [2, 1]
    """

    __slots__ = ("_arrays", "_size", "_unit")

    def __init__(
        self, columns: Mapping[str, ArrayLike], size: int, unit: Literal["rows", "features"]
    ) -> None:
        if not isinstance(columns, Mapping):
            raise InputTypeError(
                f"{unit} must map names to columns, such as {{'week': [1, 1, 2]}}, not "
                f"{type(columns).__name__}"
            )
        self._unit, self._size = unit, size
        self._arrays = {name: self._check(name, values) for name, values in columns.items()}

    def _check(self, name: object, values: Any) -> NDArray[Any]:
        if not isinstance(name, str) or not name:
            raise InputTypeError(f"{self._unit}: the name of a column is text, not {name!r}")
        array = np.asarray(values)
        if array.shape != (self._size,):
            raise DataError(
                f"{self._unit}[{name!r}] has shape {array.shape}, but there are {self._size:,} "
                f"{self._counted}"
            )
        return read_only(array)

    @property
    def _counted(self) -> str:
        return "rows" if self._unit == "rows" else "entities"

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedColumns, (self._arrays, self._size, self._unit)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The column of a name.

        Raises
        ------
        DataError
            If there is no such column; the message lists the columns there are.
        """
        if name not in self._arrays:
            hint = suggest(name, self._arrays) if self._arrays else "there are none"
            raise DataError(f"the data have no column {name!r} of {self._unit}; {hint}")
        return self._arrays[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The column of a name, or `default` if there is none."""
        return self._arrays.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def take(self, index: NDArray[np.int64]) -> NamedColumns:
        """The columns of the rows (entities) at `index`, in that order."""
        arrays = {name: array[index] for name, array in self._arrays.items()}
        return NamedColumns(arrays, len(index), self._unit)

    def place(self, index: NDArray[np.int64], size: int) -> NamedColumns:
        """Columns of `size` values: value j goes to `index[j]`, or is dropped if that is -1.

        Positions that receive no value are missing: NaN in a column of numbers (integers and
        booleans become float64), NaT in a column of times, None in any other.
        """
        arrays = {name: _place_values(array, index, size) for name, array in self._arrays.items()}
        return NamedColumns(arrays, size, self._unit)

    def content(self) -> dict[str, Any]:
        """The columns as arrays of numbers and lists of labels, for a checksum."""
        return {name: _plain(array) for name, array in self._arrays.items()}

    def __repr__(self) -> str:
        return f"NamedColumns({self._size:,} {self._counted}: {', '.join(self) or 'no columns'})"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class CellTable:
    """A value per group of rows and entity, such as the price of each item in each week.

    The cell of row t and entity n is ``values[g, n]``, where g is the index of ``rows[by][t]``
    among `groups`.

    Parameters
    ----------
    values : array or scipy sparse matrix of shape (G, N)
        Dense: NaN is a missing value. Sparse: cells that are not stored are zero.
    by : str
        Name of the row column that gives the group of each row, such as "week".
    groups : Vocabulary or sequence of labels
        The G values of this column that the table describes, in the order of its rows.

    Examples
    --------
    >>> price = CellTable([[1.99, 0.5], [1.79, 0.5]], by="week", groups=[1, 2])
    >>> price
    CellTable(2 groups by 'week' x 2 entities, dense float64)
    >>> price.codes(np.array([2, 2, 1])).tolist()
    [1, 1, 0]
    """

    values: Any
    by: str
    groups: Vocabulary

    def __init__(self, values: Any, *, by: str, groups: Vocabulary | Iterable[object]) -> None:
        if not isinstance(by, str) or not by:
            raise InputTypeError(f"by={by!r} must be the name of a row column, such as 'week'")
        if isinstance(groups, str) or not isinstance(groups, Iterable | Vocabulary):
            raise InputTypeError(f"groups must be a sequence of labels, not {groups!r:.60}")
        labels = groups if isinstance(groups, Vocabulary) else Vocabulary(groups)
        table = _check_table(values)
        if table.shape[0] != len(labels):
            raise DataError(
                f"the table has {table.shape[0]:,} rows, but there are {len(labels):,} groups"
            )
        for name, value in {"values": table, "by": by, "groups": labels}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def total(cls, data: Dataset, by: str) -> CellTable:
        """Sum the values of `data` by group of rows: the units of each item sold in each store.

        Parameters
        ----------
        data : Dataset
            Scalar values; missing ones count 0.
        by : str
            Name of a row column. Rows whose value is missing are in no group.

        Returns
        -------
        CellTable
            Dense, groups in the order of their first rows.

        Examples
        --------
        >>> from efemb.data import CellTable, Dataset
        >>> trips = Dataset([[1, 0], [2, 0], [1, 3]], rows={"store": ["b", "b", "a"]})
        >>> CellTable.total(trips, by="store").values.tolist()
        [[3.0, 0.0], [1.0, 3.0]]
        """
        column = data.rows[by].tolist()
        groups = distinct_labels(column)
        if not groups:
            raise DataError(f"the row column {by!r} is missing in every row")
        code = label_codes(column, groups)
        rows = np.flatnonzero(code >= 0)
        member = make_csr(
            (np.ones(len(rows)), (code[rows], rows)), shape=(len(groups), data.n_rows)
        )
        values = data.values if data.is_sparse else np.nan_to_num(data.values)
        sums = member @ values
        return cls(sums.toarray() if is_sparse(sums) else sums, by=by, groups=groups)

    @property
    def n_entities(self) -> int:
        """N."""
        return int(self.values.shape[1])

    def codes(self, column: NDArray[Any]) -> NDArray[np.int64]:
        """Group of each row, given its value of the column `by`; -1 if that is missing.

        Raises
        ------
        DataError
            If a value is not among the groups; the message names it.
        """
        # NumPy would turn times in nanoseconds into numbers.
        values = list(column) if column.dtype.kind in "mM" else column.tolist()
        try:
            code_of = {value: self._code(value) for value in dict.fromkeys(values)}
        except TypeError as error:
            raise InputTypeError(f"{self.by} must hold labels: {error}") from error
        return np.fromiter(map(code_of.__getitem__, values), np.int64, len(values))

    def _code(self, value: Any) -> int:
        if is_missing_label(value):
            return -1
        if value not in self.groups:
            examples = ", ".join(shorten(group) for group in list(self.groups)[:5])
            raise DataError(
                f"a row has {self.by}={shorten(value)}, which the table does not describe; it has "
                f"{len(self.groups):,} groups: {examples}{', ...' if len(self.groups) > 5 else ''}"
            )
        return self.groups.index_of(value)

    def take_entities(self, index: NDArray[np.int64]) -> CellTable:
        """The table of the entities at `index`, in that order."""
        return CellTable(self.values[:, index], by=self.by, groups=self.groups)

    def place_entities(self, index: NDArray[np.int64], size: int) -> CellTable:
        """A table of `size` entities: column j goes to `index[j]`, or is dropped if that is -1.

        Columns that receive no value are missing (NaN) in a dense table, zero in a sparse one.
        """
        kept_columns = np.flatnonzero(index >= 0)
        if is_sparse(self.values):
            cells = self.values[:, kept_columns].tocoo()
            indices = (cells.row, index[kept_columns][cells.col])
            shape = (len(self.groups), size)
            return CellTable(make_csr((cells.data, indices), shape), by=self.by, groups=self.groups)
        values = np.full((len(self.groups), size), np.nan, dtype=self.values.dtype)
        values[:, index[kept_columns]] = self.values[:, kept_columns]
        return CellTable(values, by=self.by, groups=self.groups)

    def content(self) -> list[Any]:
        """The table as arrays and labels, for a checksum."""
        return [self.by, list(self.groups), self.values]

    def __repr__(self) -> str:
        kind = f"sparse {self.values.nnz:,} values" if is_sparse(self.values) else "dense"
        sizes = f"{len(self.groups):,} groups by {self.by!r} x {self.n_entities:,} entities"
        return f"CellTable({sizes}, {kind} {self.values.dtype})"


def check_cells(
    cells: Mapping[str, CellTable], rows: NamedColumns, n_entities: int
) -> dict[str, CellTable]:
    """Check the tables of a `Dataset`, which need its entities and one of its row columns."""
    if not isinstance(cells, Mapping):
        raise InputTypeError(
            f"cells must map names to CellTables, such as {{'price': CellTable(...)}}, not "
            f"{type(cells).__name__}"
        )
    for name, table in cells.items():
        if not isinstance(name, str) or not isinstance(table, CellTable):
            raise InputTypeError(
                f"cells[{name!r}] must be a CellTable, not {type(table).__name__}: pass "
                "CellTable(values, by=..., groups=...)"
            )
        if table.n_entities != n_entities:
            raise DataError(
                f"cells[{name!r}] has {table.n_entities:,} entities, but there are {n_entities:,}"
            )
        try:
            table.codes(rows[table.by])
        except DataError as error:
            raise DataError(f"cells[{name!r}]: {error}") from None
    return dict(cells)


def _check_table(values: Any) -> Any:
    """`values` as groups x entities of floats: csr_array if sparse."""
    if is_sparse(values):
        if values.ndim != 2:
            raise DataError(f"a table must be groups x entities, not {values.ndim}-dimensional")
        check_indices(values)
        table = make_csr(values)
        stored = float_array(table.data, "the table")
        if not np.isfinite(stored).all():
            raise DataError("a sparse table must be finite; missing values need a dense one")
        return make_csr((stored, table.indices, table.indptr), shape=table.shape)
    array = float_array(values, "the table")
    if array.ndim != 2:
        raise DataError(f"a table must be groups x entities, not {array.ndim}-dimensional")
    if np.isinf(array).any():
        raise DataError("a table must not be infinite; NaN marks a missing value")
    return read_only(array)


def _place_values(array: NDArray[Any], index: NDArray[np.int64], size: int) -> NDArray[Any]:
    kept = np.flatnonzero(index >= 0)
    placed = (
        np.empty(size, array.dtype) if len(kept) == size else _missing_column(array.dtype, size)
    )
    placed[index[kept]] = array[kept]
    return placed


def _missing_column(dtype: np.dtype[Any], size: int) -> NDArray[Any]:
    """A column of missing values that can hold values of a type as well."""
    if dtype.kind in "biu":
        return np.full(size, np.nan)
    if dtype.kind in "fc":
        return np.full(size, np.nan, dtype)
    return np.full(size, "NaT", dtype) if dtype.kind in "mM" else np.full(size, None, object)


def _plain(array: NDArray[Any]) -> Any:
    """A column as numbers, or as a list of labels."""
    if array.dtype.kind in "biuf":
        return array
    if array.dtype.kind in "mM":
        return array.astype(np.int64)
    return [_plain_value(value) for value in array.tolist()]


def _plain_value(value: object) -> Any:
    try:
        return canonical_label(value)
    except InputTypeError:  # not a label, yet it distinguishes one row from another
        return repr(value)
