"""Which entries of data can be asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb.data.dataset import Dataset
from efemb.errors import DataError
from efemb.types import Floats, Ints


def stored_entries(data: Dataset) -> tuple[Any, Ints]:
    """The non-zero entries of scalar data as a csr_array, and the row of each; NaN is none."""
    from scipy.sparse import csr_array

    matrix = data.values if data.is_sparse else csr_array(np.nan_to_num(data.values))
    return matrix, np.repeat(np.arange(data.n_rows), np.diff(matrix.indptr))


def missing_unless_stored(data: Dataset) -> Floats:
    """Sparse data as a dense array, NaN where nothing is stored."""
    stored, row = stored_entries(data)
    found = np.full(data.shape, np.nan)
    found[row, stored.indices] = stored.data
    return found


def refuse_overlap(both: Any) -> None:
    """Held-out entries must not be in X: they would be evidence for themselves or others."""
    rows, entities = both.nonzero()[:2]
    if len(rows):
        raise DataError(
            f"{len(rows):,} held-out entries are still in X, the first in row {rows[0]}, entity "
            f"{entities[0]}; take them out first (split(by='entries') does)"
        )
