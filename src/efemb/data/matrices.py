"""The values of a Dataset as matrices, and the cells that they store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.data.array_checks import make_csr

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

FAR_FROM_ZERO = 0.5  # mean of a column, in standard deviations


def sparse(data: Dataset) -> Any:
    """The values as csr_array, NaN as zero."""
    return data.values if data.is_sparse else make_csr(np.nan_to_num(data.values))


def dense(data: Dataset) -> Floats:
    """The values as a float64 array."""
    values = data.values.toarray() if data.is_sparse else data.values
    return np.asarray(values, dtype=np.float64)


def far_from_zero(values: Floats) -> Bools:
    """Columns whose observed values have a mean of more than half a standard deviation."""
    observed = ~np.isnan(values)
    n = np.maximum(observed.sum(axis=0), 1)
    mean = np.where(observed, values, 0.0).sum(axis=0, dtype=np.float64) / n
    variance = np.where(observed, (values - mean) ** 2, 0.0).sum(axis=0) / n
    return np.asarray(np.abs(mean) > FAR_FROM_ZERO * np.sqrt(variance))


def stored_cells(matrix: Any) -> tuple[Ints, Ints]:
    """Row and entity of every stored entry of a csr_array."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.indices


def absent_cells(matrix: Any) -> tuple[Ints, Ints]:
    """An empty cell of each row; for such a cell a model sees the whole row.

    Rows without an empty cell are skipped.
    """
    row, entity = stored_cells(matrix)
    # Entities are in ascending order: before the first gap, the position equals the code.
    at_code = entity == np.arange(len(row)) - matrix.indptr[row]
    first = np.bincount(row, at_code, matrix.shape[0]).astype(np.int64)
    rows = np.flatnonzero(first < matrix.shape[1])
    return rows, first[rows]
