"""Rows x entities of numbers with their labels: what every estimator is fitted to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efemb.data.array_checks import (
    checked_dense,
    checked_positions,
    checked_recordings,
    checked_rows,
    checked_sparse,
    is_sparse,
)
from efemb.data.vocabulary import Vocabulary, column_labels
from efemb.errors import DataError, InputTypeError


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Dataset:
    """Observations x_tn of rows t (trips, frames, users) and entities n (items, neurons).

    Parameters
    ----------
    values : array of shape (T, N) or (T, N, D), scipy sparse of shape (T, N), or data frame
        Dense: NaN is a missing value. Sparse: what is not stored is zero; kept as csr_array,
        sorted, duplicates summed, without stored zeros, with 64-bit indices where 32 are too few.
        float32 and float64 are kept, other numbers become float64. Not copied if already right:
        treat it as read-only.
    entities : Vocabulary or sequence of labels, optional
        One label per entity; by default the names of a frame's columns.
    positions : array of shape (N, p), optional
        Where the entities are; finite and all different.
    row_labels, users : array of shape (T,), optional
        Label and user of each row.
    recordings : array of shape (T,), optional
        Recording of each row; the rows of one recording follow each other. Labels other than
        integers become the codes 0, 1, ...
    report : mapping, optional
        What a reader dropped or summed.

    Examples
    --------
    >>> data = Dataset([[1, 0, 2], [0, 3, 0]], entities=["beer", "bread", "milk"])
    >>> data
    Dataset(2 rows x 3 entities, dense float64, entities 'beer', 'bread', 'milk')
    """

    values: Any
    entities: Vocabulary | None
    positions: NDArray[np.float64] | None
    row_labels: NDArray[Any] | None
    users: NDArray[Any] | None
    recordings: NDArray[np.int64] | None
    report: dict[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        values: Any,
        *,
        entities: Vocabulary | Iterable[object] | None = None,
        positions: ArrayLike | None = None,
        row_labels: ArrayLike | None = None,
        users: ArrayLike | None = None,
        recordings: ArrayLike | None = None,
        report: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(values, Dataset):
            raise InputTypeError("values is a Dataset already; use its take_rows, take_entities")
        entities = column_labels(values) if entities is None else entities
        kept = checked_sparse(values) if is_sparse(values) else checked_dense(values)
        n_rows, n_entities = kept.shape[:2]
        checked = {
            "values": kept,
            "entities": _vocabulary(entities, n_entities),
            "positions": checked_positions(positions, n_entities),
            "row_labels": checked_rows(row_labels, "row_labels", n_rows),
            "users": checked_rows(users, "users", n_rows),
            "recordings": checked_recordings(recordings, n_rows),
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
    def is_sparse(self) -> bool:
        """Whether `values` is a csr_array."""
        return is_sparse(self.values)

    @property
    def rows(self) -> dict[str, NDArray[Any]]:
        """Columns of the rows, by name."""
        return {} if self.users is None else {"user": self.users}

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, index: Any) -> Dataset:
        """Rows by integers, booleans or a slice, as scikit-learn's splitters ask for them."""
        rows = only_rows(index, "data[...] takes rows; columns are chosen by take_entities")
        return self.take_rows(rows)

    def __array__(self, *_: Any, **__: Any) -> NDArray[Any]:
        raise InputTypeError("a Dataset is no array: take its values")

    __iter__ = None  # else anything with __getitem__ passes for a list of numbers

    def take_rows(self, index: ArrayLike | slice) -> Dataset:
        """Dataset of the given rows (integers, booleans or a slice), in that order.

        Where the labels have counts, these are counted anew: how many of the rows hold each.
        """
        rows = _places(index, self.n_rows, "rows")
        values = self.values[rows]
        return Dataset(
            values,
            entities=counted(self.entities, values),
            positions=self.positions,
            row_labels=_at(self.row_labels, rows),
            users=_at(self.users, rows),
            recordings=_at(self.recordings, rows),
            report=self.report,
        )

    def take_entities(self, index: ArrayLike | slice) -> Dataset:
        """Dataset of the given entities (integers, booleans or a slice), in that order."""
        columns = _places(index, self.n_entities, "entities")
        return self._replace(
            self.values[:, columns],
            entities=None if self.entities is None else self.entities.take(columns),
            positions=_at(self.positions, columns),
        )

    def difference(self) -> Dataset:
        """x_t - x_(t-1) within each recording, never across recordings.

        The first row of every recording has no predecessor and is dropped (all rows are one
        recording where `recordings` is None). A difference with a missing value is missing.
        Row labels and users are those of the later row.
        """
        follows = np.ones(self.n_rows, dtype=bool)
        follows[0] = False
        if self.recordings is not None:
            follows[1:] = self.recordings[1:] == self.recordings[:-1]
        later = np.flatnonzero(follows)
        if len(later) == 0:
            raise DataError("difference needs a recording of at least two rows; there is none")
        return Dataset(
            self.values[later] - self.values[later - 1],
            entities=self.entities,
            positions=self.positions,
            row_labels=_at(self.row_labels, later),
            users=_at(self.users, later),
            recordings=_at(self.recordings, later),
            report=self.report,
        )

    def split(
        self,
        test: float = 0.05,
        validation: float = 0.0,
        seed: int = 0,
        by: Literal["rows", "entries"] = "rows",
    ) -> tuple[Dataset, ...]:
        """(train, test) or, if `validation` > 0, (train, validation, test); see `split`."""
        from efemb.data.partition import split

        return split(self, test=test, validation=validation, seed=seed, by=by)

    def filled_rows(self) -> NDArray[np.bool_]:
        """Which rows hold anything but zeros and gaps."""
        if self.is_sparse:
            return np.asarray(np.diff(self.values.indptr) > 0)
        return np.asarray(np.nan_to_num(self.values.reshape(self.n_rows, -1)).any(axis=1))

    def _replace(self, values: Any, **changes: Any) -> Dataset:
        """The same rows with other values."""
        kept = {
            "entities": self.entities,
            "positions": self.positions,
            "row_labels": self.row_labels,
            "users": self.users,
            "recordings": self.recordings,
            "report": self.report,
        }
        return Dataset(values, **{**kept, **changes})

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
        return f"Dataset({', '.join(parts)})"


def _vocabulary(
    entities: Vocabulary | Iterable[object] | None, n_entities: int
) -> Vocabulary | None:
    if entities is None:
        return None
    if isinstance(entities, str):
        raise InputTypeError("entities must be a sequence of labels, not one text")
    if not isinstance(entities, Iterable | Vocabulary):
        raise InputTypeError(f"entities must be a sequence of labels, not {entities!r:.60}")
    known = entities if isinstance(entities, Vocabulary) else Vocabulary(entities)
    if len(known) != n_entities:
        raise DataError(f"there are {len(known)} labels, but {n_entities} entities")
    return known


def counted(entities: Vocabulary | None, values: Any) -> Vocabulary | None:
    """The labels; those that have counts get the numbers of rows that hold them in `values`."""
    if entities is None or entities.counts is None or values.ndim != 2:
        return entities
    held = values.indices if is_sparse(values) else np.nonzero(np.nan_to_num(values))[1]
    return entities.with_counts(np.bincount(held, minlength=len(entities)))


def only_rows(index: Any, otherwise: str) -> Any:
    """The index of the rows; scikit-learn writes `[rows, ...]`, anything else is an error."""
    if not isinstance(index, tuple):
        return index
    if len(index) == 1 or (len(index) == 2 and index[1] is Ellipsis):
        return index[0]
    raise InputTypeError(otherwise)


def _at(array: Any, index: NDArray[np.int64]) -> Any:
    return None if array is None else array[index]


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
        raise DataError(f"no {name} are left; at least one is needed")
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputTypeError(f"{name} are chosen by integers, booleans or a slice")
    outside = array[(array < -size) | (array >= size)]
    if len(outside):
        raise DataError(f"there is no number {outside[0]} among {size} {name}")
    return np.where(array < 0, array + size, array).astype(np.int64)
