"""Rows x entities of numbers with their labels: the data of every estimator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efemb.data.array_checks import (
    check_dense,
    check_positions,
    check_recordings,
    check_row_values,
    check_sparse,
    is_sparse,
    transposed_hint,
)
from efemb.data.columns import CellTable, NamedColumns, check_cells
from efemb.data.containers import Opened, in_memory, open_container
from efemb.data.overview import dataset_overview
from efemb.data.readers.column_roles import entity_columns
from efemb.data.vocabulary import Vocabulary
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.table import import_package

# Row columns that have an argument and an attribute of their own.
THINNED = "rows_left_out"  # report entry: consecutive rows were not always consecutive before
_ROW_COLUMNS = {"row_labels": "row", "users": "user", "recordings": "recording"}


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Dataset:
    """Observations x_tn of rows t (trips, frames, users) and entities n (items, neurons).

    Parameters
    ----------
    values : array of shape (T, N) or (T, N, D), scipy sparse of shape (T, N), frame or container
        Dense: NaN is a missing value. Sparse: what is not stored is zero. Sparse values become a
        csr_array with sorted indices, without duplicates (they are summed) or stored zeros, and
        with 64-bit indices where 32 bits do not suffice. float32 and float64 are kept; other
        numbers become float64. Values that need no conversion are not copied: do not modify them.
        An AnnData or a DataArray of xarray brings its labels and coordinates along (`read_matrix`).
        Lazy tables are collected, streams (anything with ``__arrow_c_stream__``) read to their end.
    entities : Vocabulary or sequence of labels, optional
        One label per entity; by default the names of a frame's columns.
    positions : array of shape (N, p), optional
        Coordinates of the entities; finite and all different.
    row_labels, users : array of shape (T,), optional
        Label and user of each row: ``rows["row"]`` and ``rows["user"]``.
    recordings : array of shape (T,), optional
        Recording of each row, ``rows["recording"]``; the rows of one recording follow each other.
        Labels other than integers become the codes 0, 1, ...
    rows : mapping of str to array of shape (T,), optional
        Further columns, such as ``{"household": ..., "week": ...}``. A missing value
        (None, NaN, NaT) is kept as missing.
    features : mapping of str to array of shape (N,), optional
        Columns of the entities, such as ``{"brand": ...}``; missing values are kept.
    cells : mapping of str to CellTable, optional
        Values per group of rows and entity, such as prices by week:
        ``{"price": CellTable(prices, by="week", groups=weeks)}``.
    report : mapping, optional
        Counts of what a reader dropped or summed.

    Notes
    -----
    Every operation (rows and entities taken, splits, differences, alignment, hold-outs) carries
    all columns, tables and the report along.

    Examples
    --------
    >>> data = Dataset([[1, 0, 2], [0, 3, 0]], entities=["beer", "bread", "milk"])
    >>> data
    Dataset(2 rows x 3 entities, dense float64, entities 'beer', 'bread', 'milk')
    """

    values: Any
    entities: Vocabulary | None
    positions: NDArray[np.float64] | None
    rows: NamedColumns
    features: NamedColumns
    cells: dict[str, CellTable]
    report: dict[str, Any]

    def __init__(
        self,
        values: Any,
        *,
        entities: Vocabulary | Iterable[object] | None = None,
        positions: ArrayLike | None = None,
        row_labels: ArrayLike | None = None,
        users: ArrayLike | None = None,
        recordings: ArrayLike | None = None,
        rows: Mapping[str, ArrayLike] | None = None,
        features: Mapping[str, ArrayLike] | None = None,
        cells: Mapping[str, CellTable] | None = None,
        report: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(values, Dataset):
            raise InputTypeError("values is already a Dataset; use its take_rows and take_entities")
        values = in_memory(values)
        opened = values if isinstance(values, Opened) else open_container(values)
        if opened is not None:
            values = opened.values
            entities = opened.entities if entities is None else entities
            positions = opened.positions if positions is None else positions
            row_labels = opened.row_labels if row_labels is None else row_labels
            rows, features = (
                {**opened.rows, **(rows or {})},
                {**opened.features, **(features or {})},
            )
        elif entities is None:
            entities = entity_columns(values)
        matrix = check_sparse(values) if is_sparse(values) else check_dense(values)
        n_rows, n_entities = matrix.shape[:2]
        own = {"row_labels": row_labels, "users": users, "recordings": recordings}
        columns = _row_columns(rows or {}, own, n_rows)
        checked = {
            "values": matrix,
            "entities": _vocabulary(entities, n_entities, n_rows),
            "positions": check_positions(positions, n_entities, n_rows),
            "rows": columns,
            "features": NamedColumns(features or {}, n_entities, "features"),
            "cells": check_cells(cells or {}, columns, n_entities),
            "report": dict(report or {}),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def shape(self) -> tuple[int, ...]:
        """(T, N) or (T, N, D)."""
        return tuple(int(size) for size in self.values.shape)

    @property
    def n_rows(self) -> int:
        """T."""
        return self.shape[0]

    @property
    def n_entities(self) -> int:
        """N."""
        return self.shape[1]

    @property
    def n_dims(self) -> int:
        """D, the numbers per observation; 1 for (T, N) values."""
        return self.shape[2] if len(self.shape) == 3 else 1

    @property
    def row_labels(self) -> NDArray[Any] | None:
        """Label of each row: ``rows["row"]``, if there is one."""
        labels: NDArray[Any] | None = self.rows.get("row")
        return labels

    @property
    def users(self) -> NDArray[Any] | None:
        """User of each row: ``rows["user"]``, if there is one."""
        users: NDArray[Any] | None = self.rows.get("user")
        return users

    @property
    def recordings(self) -> NDArray[np.int64] | None:
        """Recording of each row: ``rows["recording"]``, if there is one."""
        recordings: NDArray[np.int64] | None = self.rows.get("recording")
        return recordings

    @property
    def is_sparse(self) -> bool:
        """Whether `values` is a csr_array."""
        return is_sparse(self.values)

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, index: Any) -> Dataset:
        """Select rows by integers, booleans or a slice, as scikit-learn's splitters do."""
        rows = only_rows(index, "data[...] selects rows; use take_entities to select columns")
        return self.take_rows(rows)

    def __array__(self, *_: Any, **__: Any) -> NDArray[Any]:
        raise InputTypeError("a Dataset is not an array: use its `values`")

    __iter__ = None  # anything with __getitem__ would pass for a list of numbers

    def take_rows(self, index: ArrayLike | slice) -> Dataset:
        """Select rows by integers, booleans or a slice, in that order.

        Counts of the labels, if any, are recomputed: the number of selected rows that hold each.

        Parameters
        ----------
        index : array of integers or booleans, or slice
            The rows; row columns are selected with them.

        Returns
        -------
        Dataset
        """
        rows = _places(index, self.n_rows, "rows")
        values = self.values[rows]
        entities = recount(self.entities, values)
        report = self.report
        if self._skips_rows(rows):
            report = {**report, THINNED: True}
        return self._replace(values, entities=entities, rows=self.rows.take(rows), report=report)

    @property
    def rows_left_out(self) -> bool:
        """Whether consecutive rows of a recording were not always consecutive in the original."""
        return bool(self.report.get(THINNED, False))

    def _skips_rows(self, rows: NDArray[np.int64]) -> bool:
        """Whether the selected rows are consecutive in the selection but not here."""
        if self.is_sparse:  # baskets and counts, whose contexts do not reach other rows
            return False
        gap = np.diff(rows) != 1
        if self.recordings is not None:
            gap &= np.diff(self.recordings[rows]) == 0
        return bool(gap.any())

    def take_entities(self, index: ArrayLike | slice) -> Dataset:
        """Select entities by integers, booleans or a slice, in that order.

        Parameters
        ----------
        index : array of integers or booleans, or slice
            The entities; labels, positions, features and cell tables are selected with them.

        Returns
        -------
        Dataset
        """
        columns = _places(index, self.n_entities, "entities")
        return self._replace(
            self.values[:, columns],
            entities=None if self.entities is None else self.entities.take(columns),
            positions=None if self.positions is None else self.positions[columns],
            features=self.features.take(columns),
            cells={name: table.take_entities(columns) for name, table in self.cells.items()},
        )

    def difference(self) -> Dataset:
        """x_t - x_(t-1) within each recording, never across recordings.

        The first row of every recording has no predecessor and is dropped (all rows are one
        recording if `recordings` is None). A difference with a missing value is missing.
        Row labels, users and all other columns are those of the later row.
        """
        follows = np.ones(self.n_rows, dtype=bool)
        follows[0] = False
        if self.recordings is not None:
            follows[1:] = self.recordings[1:] == self.recordings[:-1]
        later = np.flatnonzero(follows)
        if len(later) == 0:
            raise DataError(
                "difference needs a recording with at least two rows, and there is none"
            )
        return self._replace(
            self.values[later] - self.values[later - 1], rows=self.rows.take(later)
        )

    def split(
        self,
        test: float = 0.05,
        validation: float = 0.0,
        seed: int = 0,
        by: Literal["rows", "entries", "blocks", "time", "groups"] = "rows",
        column: str | None = None,
    ) -> tuple[Dataset, ...]:
        """(train, test) or, if `validation` > 0, (train, validation, test).

        Parameters
        ----------
        test, validation : float or int, default=0.05 and 0.0
            Fractions in [0, 1), or whole numbers of rows (entries, blocks, groups, times).
        seed : int, default=0
            Random seed; unused if `by="time"`.
        by : {"rows", "entries", "blocks", "time", "groups"}, default="rows"
            What stays together: single rows; single entries, so that every part has all rows;
            stretches of consecutive rows (for `Lagged`); the last rows, or times, for the test
            part; or all rows of a group. `efemb.data.split` explains each of them.
        column : str, optional
            Row column of the groups or times, such as "household" or "week".

        Returns
        -------
        tuple of Dataset
        """
        from efemb.data.partition import split

        return split(self, test=test, validation=validation, seed=seed, by=by, column=column)

    def filled_rows(self) -> NDArray[np.bool_]:
        """Whether each row holds any value that is neither zero nor missing."""
        if self.is_sparse:
            return np.asarray(np.diff(self.values.indptr) > 0)
        return np.asarray(np.nan_to_num(self.values.reshape(self.n_rows, -1)).any(axis=1))

    def _replace(self, values: Any, **changes: Any) -> Dataset:
        """The data with other values and fields; all other members are kept.

        `_place_entities` and the two `take_` methods define what changes with the rows or entities.
        """
        members = {member.name: getattr(self, member.name) for member in fields(self)}
        # A column that is passed by its own name replaces the existing one.
        replaced = {column for name, column in _ROW_COLUMNS.items() if name in changes}
        members["rows"] = {
            name: column for name, column in self.rows.items() if name not in replaced
        }
        return Dataset(**{**members, **changes, "values": values})

    def _place_entities(
        self, values: Any, entities: Vocabulary, index: NDArray[np.int64]
    ) -> Dataset:
        """The same rows with other entities; entity n of these data is `index[n]` of the new ones.

        Parameters
        ----------
        values : array or sparse matrix of T rows
            The values of the new entities.
        entities : Vocabulary
            The new entities.
        index : array of shape (N,)
            -1 for an entity that is dropped. Features and cells of new entities that these data
            lack are missing; positions are dropped unless all are known.
        """
        size = len(entities)
        kept = np.flatnonzero(index >= 0)
        positions = None
        if self.positions is not None and len(kept) == size:
            positions = self.positions[kept[np.argsort(index[kept])]]
        return self._replace(
            values,
            entities=entities,
            positions=positions,
            features=self.features.place(index, size),
            cells={name: table.place_entities(index, size) for name, table in self.cells.items()},
        )

    def _content(self) -> dict[str, Any]:
        """Everything that a fit depends on, as numbers and labels for checksums.

        That is everything except the labels of the entities and the report.
        """
        return {
            "values": self.values,
            "positions": self.positions,
            "rows": self.rows.content(),
            "features": self.features.content(),
            "cells": {name: table.content() for name, table in self.cells.items()},
        }

    def __repr__(self) -> str:
        sizes = f"{self.n_rows:,} rows x {self.n_entities:,} entities"
        parts = [sizes + (f" x {self.n_dims}" if len(self.shape) == 3 else "")]
        kind = f"sparse {self.values.nnz:,} non-zeros" if self.is_sparse else "dense"
        parts.append(f"{kind} {self.values.dtype}")
        if self.entities is not None:
            parts.append("entities " + repr(self.entities).partition(": ")[2][:-1])
        if self.positions is not None:
            parts.append(f"{self.positions.shape[1]}-d positions")
        if self.users is not None:
            parts.append("users")
        if self.recordings is not None:
            parts.append(f"{len(np.unique(self.recordings))} recordings")
        further = [name for name in self.rows if name not in _ROW_COLUMNS.values()]
        tables = [f"{name} by {table.by}" for name, table in self.cells.items()]
        named = {"row columns": further, "features": list(self.features), "cells": tables}
        parts += [f"{kind} {', '.join(names)}" for kind, names in named.items() if names]
        return f"Dataset({', '.join(parts)})"

    def _repr_html_(self) -> str:
        return dataset_overview(self).to_html()

    def to_pandas(self) -> Any:
        """The values as a pandas DataFrame: a column per entity, sparse if the values are.

        Returns
        -------
        pandas.DataFrame
            Named by the labels of entities and rows, if there are any.
        """
        if len(self.shape) == 3:
            raise ParameterError(
                f"a DataFrame has rows and columns, the values have shape {self.shape}: pass one "
                "component, Dataset(data.values[:, :, 0])"
            )
        pandas = import_package("pandas")
        labels = {"columns": None if self.entities is None else self.entities.labels}
        labels["index"] = self.row_labels
        if self.is_sparse:
            return pandas.DataFrame.sparse.from_spmatrix(self.values, **labels)
        return pandas.DataFrame(self.values.copy(), **labels)


def _row_columns(
    rows: Mapping[str, ArrayLike], own: Mapping[str, ArrayLike | None], n_rows: int
) -> NamedColumns:
    """All row columns, first those that have an argument of their own."""
    further = NamedColumns(rows, n_rows, "rows")
    passed = {name: values for name, values in own.items() if values is not None}
    twice = [name for name in passed if _ROW_COLUMNS[name] in further]
    if twice:
        raise ParameterError(
            f"{twice[0]}= and rows[{_ROW_COLUMNS[twice[0]]!r}] are the same column: pass one"
        )
    columns: dict[str, Any] = {
        _ROW_COLUMNS[name]: check_row_values(values, name, n_rows)
        for name, values in passed.items()
    }
    columns |= further
    if "recording" in columns:
        columns["recording"] = check_recordings(columns["recording"], n_rows)
    return NamedColumns(columns, n_rows, "rows")


def _vocabulary(
    entities: Vocabulary | Iterable[object] | None, n_entities: int, n_rows: int
) -> Vocabulary | None:
    if entities is None:
        return None
    if isinstance(entities, str):
        raise InputTypeError("entities must be a sequence of labels, not a single string")
    if not isinstance(entities, Iterable | Vocabulary):
        raise InputTypeError(f"entities must be a sequence of labels, not {entities!r:.60}")
    known = entities if isinstance(entities, Vocabulary) else Vocabulary(entities)
    if len(known) != n_entities:
        hint = transposed_hint(len(known), n_rows)
        raise DataError(f"there are {len(known)} labels for {n_entities} entities{hint}")
    return known


def recount(entities: Vocabulary | None, values: Any) -> Vocabulary | None:
    """The labels; their counts, if any, become the number of rows of `values` that hold each."""
    if entities is None or entities.counts is None or values.ndim != 2:
        return entities
    held = values.indices if is_sparse(values) else np.nonzero(np.nan_to_num(values))[1]
    return entities.with_counts(np.bincount(held, minlength=len(entities)))


def only_rows(index: Any, otherwise: str) -> Any:
    """The index of the rows; scikit-learn writes `[rows, ...]`, any other tuple is an error."""
    if not isinstance(index, tuple):
        return index
    if len(index) == 1 or (len(index) == 2 and index[1] is Ellipsis):
        return index[0]
    raise InputTypeError(otherwise)


def _places(index: ArrayLike | slice, size: int, name: str) -> NDArray[np.int64]:
    """`index` as non-negative integers."""
    if isinstance(index, slice):
        return np.arange(size, dtype=np.int64)[index]
    array = np.atleast_1d(np.asarray(index))
    if array.dtype == bool:
        if array.shape != (size,):
            raise DataError(f"the mask has shape {array.shape}, but there are {size} {name}")
        return np.flatnonzero(array)
    if array.size == 0:
        raise DataError(f"the selection has no {name}; at least one is needed")
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputTypeError(f"{name} are selected by integers, booleans or a slice")
    outside = array[(array < -size) | (array >= size)]
    if len(outside):
        raise DataError(f"index {outside[0]} is out of range: there are {size} {name}")
    return np.where(array < 0, array + size, array).astype(np.int64)
