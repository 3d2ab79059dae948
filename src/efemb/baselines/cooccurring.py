"""Sparse weights between items that occur together, the strongest few of each item."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.model.predictor import CHUNK_NUMBERS

Weigh = Callable[[Floats, Ints, Ints], Floats]


def strongest_weights(
    present: Any, weigh: Weigh, n_neighbors: int | None = None, row_weight: Floats | None = None
) -> Any:
    """B as csr_array (N, N): for each item n its largest weights B_mn, B_nn = 0.

    present : csr_array (T, N) of zeros and ones
    weigh : (C_mn, m, n) -> B_mn of pairs of items, C_mn the (weighted) number of rows with both
    n_neighbors : how many are kept per item n; None is all pairs that occur together
    row_weight : (T,), of each row in C; 1 by default
    """
    from scipy.sparse import csr_array, diags_array, vstack

    by_item = present.T if row_weight is None else present.T @ diags_array(row_weight)
    by_item = csr_array(by_item)
    lines = np.diff(present.indptr).astype(np.float64)
    columns = []
    for items in _blocks(np.asarray(present.T @ lines)):
        pairs = csr_array(by_item[items] @ present)
        pairs.sort_indices()
        target = np.repeat(items, np.diff(pairs.indptr))
        pairs.data = weigh(pairs.data, pairs.indices, target)
        pairs.data[pairs.indices == target] = 0.0
        columns.append(_largest(pairs, n_neighbors))
    return csr_array(vstack(columns).T)


def _blocks(n_pairs: Floats) -> list[Ints]:
    """Runs of items that have about CHUNK_NUMBERS pairs of lines together; n_pairs : (N,)."""
    before = np.cumsum(n_pairs) - n_pairs
    edges = np.flatnonzero(np.diff(before // CHUNK_NUMBERS)) + 1
    return np.split(np.arange(len(n_pairs)), edges)


def _largest(weights: Any, n_largest: int | None) -> Any:
    """The n largest numbers of every row of a csr_array; of equal ones the first."""
    if n_largest is not None:
        row = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
        order = np.lexsort((-weights.data, row))
        place = np.arange(len(order)) - weights.indptr[row]  # in its row, the largest first
        weights.data[order[place >= n_largest]] = 0.0
    weights.eliminate_zeros()
    return weights
