"""Checks of the arrays of a `Dataset`; each error names the offending rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efemb.data.containers import check_array_like
from efemb.data.vocabulary import canonical_label
from efemb.errors import DataError, InputTypeError, MemoryEstimateError, ParameterError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_SHOWN = 5
# What the index arrays of each sparse format list, and what the indices refer to.
_LINES = {
    "csr": ("row", "column"),
    "csc": ("column", "row"),
    "bsr": ("row of blocks", "column of blocks"),
}


def list_first(places: NDArray[Any]) -> str:
    """The first few of `places` as text, and how many more there are.

    >>> list_first(np.arange(7))
    '0, 1, 2, 3, 4 and 2 more'
    """
    text = ", ".join(str(place) for place in places[:_SHOWN])
    return text if len(places) <= _SHOWN else f"{text} and {len(places) - _SHOWN:,} more"


def is_sparse(values: object) -> bool:
    """Whether `values` is a scipy sparse array or matrix; does not import scipy."""
    kind = type(values)  # a mock or a proxy has any attribute
    return hasattr(kind, "tocsr") and hasattr(kind, "nnz")


def too_large(name: str, error: MemoryError) -> MemoryEstimateError:
    """The error for values that cannot be brought into memory."""
    return MemoryEstimateError(
        f"{name} does not fit into memory ({str(error) or 'no memory left'}): pass fewer rows or "
        "columns, a sparse matrix, or a store of shards (efemb.shards.prepare)"
    )


def float_array(values: object, name: str) -> NDArray[Any]:
    """`values` as float32 or float64, NaN where masked; copied only if the type must change."""
    array = as_array(values, name)
    if array.dtype in (np.float32, np.float64):
        return array
    if array.dtype.kind not in "biufO":
        raise InputTypeError(f"{name} must be numbers, not {array.dtype}")
    target = np.float32 if array.dtype == np.float16 else np.float64
    array = _replace_na(array) if array.dtype == object else array
    try:
        return array.astype(target)
    except (TypeError, ValueError) as error:
        raise InputTypeError(
            f"{name} must be numbers: {_first_text(values, array, error)}"
        ) from error


def as_array(values: object, name: str) -> NDArray[Any]:
    """`values` as an array of any type, NaN where masked, or what is wrong with them."""
    check_array_like(values, name)
    try:
        return unmask(values)
    except ValueError as error:  # rows of different lengths
        raise DataError(f"{name} must be an array of numbers: {error}") from error
    except (TypeError, RuntimeError) as error:  # a tensor on another device, or with a gradient
        raise InputTypeError(f"{name} must be an array of numbers: {error}") from error
    except MemoryError as error:
        raise too_large(name, error) from error


def _first_text(values: Any, array: NDArray[Any], error: Exception) -> str:
    """The first entry that is not a number, and how to write it; the error if there is none."""
    names = list(getattr(values, "columns", ()))
    for place, cell in np.ndenumerate(array):
        try:
            np.float64(cell)
        except (TypeError, ValueError):
            from efemb.data.readers.dialect import explain_number

            text = explain_number(cell) or repr(cell)
            if len(place) < 2:
                return f"{text} in {place}"
            column = repr(names[place[1]]) if place[1] < len(names) else place[1]
            return f"column {column} has {text} in row {place[0]}"
    return str(error)


def _replace_na(array: NDArray[Any]) -> NDArray[Any]:
    """Objects with NaN in place of pandas' NA; does not import pandas."""
    is_gap = np.vectorize(lambda value: type(value).__name__ == "NAType", otypes=[bool])
    return np.where(is_gap(array), np.nan, array)


def generator(seed: object) -> np.random.Generator:
    """A random generator for a seed."""
    try:
        return np.random.default_rng(seed)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise ParameterError(f"seed={seed!r} must be a whole number >= 0") from error


def is_masked(values: object) -> bool:
    """Whether `values` is a masked array; does not import numpy.ma."""
    kind = type(values)  # columns of a frame are attributes of the instance
    return hasattr(kind, "filled") and hasattr(kind, "mask")


def unmask(values: Any) -> NDArray[Any]:
    """`values` as an array; masked values become NaN."""
    if not is_masked(values) or not np.any(values.mask):
        return np.asarray(values)
    dtype = np.float32 if values.dtype in (np.float16, np.float32) else np.float64
    return np.where(np.asarray(values.mask), np.nan, np.asarray(values)).astype(dtype)


def check_dense(values: object) -> NDArray[Any]:
    """Rows x entities (x D) of finite numbers or NaN (missing)."""
    array = float_array(values, "values")
    if array.ndim not in (2, 3):
        raise DataError(
            f"values must be rows x entities or rows x entities x D, not {array.ndim}-dimensional"
        )
    _check_size(array.shape)
    infinite = np.isinf(array)
    if infinite.any():
        rows, columns = np.nonzero(infinite if array.ndim == 2 else infinite.any(axis=2))
        raise DataError(
            f"values holds {len(rows):,} infinite entries, the first in row {rows[0]}, "
            f"entity {columns[0]}; NaN marks a missing value"
        )
    return array


def make_csr(values: Any, shape: Any = None) -> csr_array:
    """A csr_array of anything that SciPy takes; SciPy is imported here, on first use."""
    from scipy.sparse import csr_array

    return csr_array(values, shape=shape)


def check_sparse(values: Any) -> csr_array:
    """Rows x entities as csr_array: sorted, duplicates summed, no stored zeros, all finite."""
    if values.ndim != 2:
        raise DataError(f"sparse values must be 2-dimensional, not {values.ndim}-dimensional")
    _check_size(values.shape)
    check_indices(values)
    if values.dtype.kind in "biu":  # scipy would sum duplicates with overflow
        values = values.astype(np.float64)
    matrix = make_csr(values)
    if matrix.dtype not in (np.float32, np.float64):
        matrix = make_csr(
            (float_array(matrix.data, "values"), matrix.indices, matrix.indptr), shape=matrix.shape
        )
    _check_finite(matrix)
    tidy = matrix.has_canonical_format and bool(np.all(matrix.data != 0))
    if not tidy:
        matrix = matrix.copy()  # leave the caller's arrays unchanged
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    return matrix


def check_indices(values: Any) -> None:
    """Reject out-of-range indices, which scipy and kernels would use unchecked."""
    if values.format not in _LINES:  # scipy has checked them
        return
    line, column = _LINES[values.format]
    starts, indices = values.indptr, values.indices
    bad = np.flatnonzero((starts[1:] < starts[:-1]) | (starts[1:] > len(indices)))
    if starts[0] != 0 or len(bad):
        first = 0 if starts[0] != 0 else bad[0]
        raise DataError(
            f"sparse values: indptr must rise from 0 to {len(indices):,}, the number of entries; "
            f"that of {line} {first} does not"
        )
    size = values.shape[0 if values.format == "csc" else -1]
    size //= getattr(values, "blocksize", (1, 1))[-1]
    if len(indices) and (indices.min() < 0 or indices.max() >= size):
        wrong = int(np.flatnonzero((indices < 0) | (indices >= size))[0])
        first = int(np.searchsorted(starts, wrong, side="right")) - 1
        raise DataError(
            f"sparse values: {line} {first} has an entry in {column} {indices[wrong]}, but there "
            f"are {size:,}, numbered from 0"
        )


def _check_finite(matrix: csr_array) -> None:
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if len(bad):
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        raise DataError(
            f"sparse values holds {len(bad):,} NaN or infinite entries, the first in row {row}, "
            f"entity {matrix.indices[bad[0]]}; missing values need a dense array"
        )


def _check_size(shape: tuple[int, ...]) -> None:
    for size, name in zip(shape, ("rows", "entities", "numbers per entity"), strict=False):
        if size == 0:
            raise DataError(f"the data have no {name} (shape {shape}); at least one is needed")


def transposed_hint(size: int, n_rows: int) -> str:
    """A hint for errors about arrays with one element per row where one per column is needed."""
    if size != n_rows:
        return ""
    question = f"{n_rows:,} is the number of rows: are the values transposed?"
    return f"; {question} Then pass values.T (--transpose)"


def check_positions(
    positions: ArrayLike | None, n_entities: int, n_rows: int = -1
) -> NDArray[np.float64] | None:
    """Positions (N, p): finite and all different."""
    if positions is None:
        return None
    array = float_array(positions, "positions").astype(np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(f"positions must be entities x coordinates, not of shape {array.shape}")
    if len(array) != n_entities:
        hint = transposed_hint(len(array), n_rows) or "; pass one row per entity, in their order"
        raise DataError(
            f"positions has {len(array)} rows, but there are {n_entities} entities{hint}"
        )
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise DataError(f"positions of entities {list_first(bad)} are NaN or infinite")
    _, inverse, counts = np.unique(array, axis=0, return_inverse=True, return_counts=True)
    shared = np.flatnonzero(counts[inverse.ravel()] > 1)
    if len(shared):
        raise DataError(
            f"entities {list_first(shared)} share a position with another; neighbors need "
            "different positions: drop one of each (take_entities) or move them apart"
        )
    return array


def check_row_values(values: object, name: str, n_rows: int) -> NDArray[Any] | None:
    """A 1-d array with one value per row, or None."""
    if values is None:
        return None
    array = np.asarray(values)
    if array.shape != (n_rows,):
        raise DataError(f"{name} has shape {array.shape}, but there are {n_rows} rows")
    return array


def check_recordings(values: object, n_rows: int) -> NDArray[np.int64] | None:
    """Recording code of every row; the rows of a recording must be contiguous."""
    array = check_row_values(values, "recordings", n_rows)
    if array is None:
        return None
    if array.dtype == object:  # pandas' NA cannot be compared, so check for it first
        for label in dict.fromkeys(array):
            if is_missing_label(label):
                row = next(t for t, cell in enumerate(array) if cell is label)
                raise _recording_error(label, row)
    starts = np.flatnonzero(np.r_[True, array[1:] != array[:-1]])
    first_seen: dict[Any, int] = {}
    for start in starts:
        label = array[start].item() if isinstance(array[start], np.generic) else array[start]
        if is_missing_label(label):
            raise _recording_error(label, int(start))
        if label in first_seen:
            raise DataError(
                f"the rows of recording {label!r} are not contiguous: it starts in row "
                f"{first_seen[label]} and again in row {start}; sort the rows by recording"
            )
        first_seen[label] = int(start)
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    lengths = np.diff(np.r_[starts, n_rows])
    return np.repeat(np.arange(len(starts), dtype=np.int64), lengths)


def is_missing_label(label: object) -> bool:
    """Whether a label means that there is none: None, NaN, NaT, pandas' NA or empty text."""
    try:
        return canonical_label(label) is None
    except InputTypeError:  # not a label of an entity, but it distinguishes recordings
        return False


def _recording_error(label: object, row: int) -> DataError:
    shown = "NaN" if isinstance(label, float) else repr(label)
    return DataError(f"recordings is missing ({shown}) in row {row}")


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view of an array."""
    view = array.view()
    view.setflags(write=False)
    return view
