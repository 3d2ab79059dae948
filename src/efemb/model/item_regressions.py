"""Regressions of items on other items, in closed form or sparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs
from scipy.sparse import csr_array, diags_array, vstack

from efemb._typing import Floats, Ints
from efemb.data.memory import available_memory, in_words
from efemb.errors import MemoryEstimateError

BYTES_PER_PAIR = 24  # Gram matrix (sparse at first), its inverse and the weights
BYTES_PER_SPARSE_PAIR = 60  # lists of neighbors and their weights, each in two orders
TILE = 1024
MOST_DENSE = 20_000  # items
LARGEST_CONDITION = 1e5  # of a Gram matrix that is inverted in single precision
PAIRS_AT_ONCE, BYTES_AT_ONCE = 1 << 22, 64
Weigh = Callable[[Floats, Ints, Ints], Floats]


def ridge_weights(
    present: Any, penalty: float, dropout: float = 0.0, *, fast: bool = False
) -> Floats:
    """B of `EASE`, (N, N) of float32, zeros on the diagonal; present : csr_array of zeros and ones.

    fast : use single precision, in half the time, if B is accurate to four digits in it
    """
    gram = (present.T @ present).astype(np.float64)
    ridge = penalty + dropout / (1.0 - dropout) * gram.diagonal()
    # No eigenvalue exceeds the largest row sum, or is below the ridge.
    largest = float(np.asarray(gram.sum(axis=1)).max() + ridge.max())
    single = fast and largest < LARGEST_CONDITION * float(ridge.min())
    dense = gram.astype(np.float32 if single else np.float64).toarray()
    dense.flat[:: len(dense) + 1] += ridge.astype(dense.dtype)
    return _regressions(dense)


def _regressions(gram: Floats) -> Floats:
    """B_mn = -P_mn / P_nn, B_nn = 0, P the inverse of a positive definite matrix (overwritten)."""
    routines: Any = get_lapack_funcs(("potrf", "potri"), (gram,))
    potrf, potri = routines
    # The transpose, which is the same matrix, has the memory layout that LAPACK overwrites.
    factor, _ = potrf(gram.T, lower=0, overwrite_a=1)
    inverse, _ = potri(factor, lower=0, overwrite_c=1)
    inverse = inverse.T  # rows by columns again; the lower triangle holds the inverse
    for start in range(0, len(inverse), TILE):
        rows = slice(start, start + TILE)
        inverse[:start, rows] = inverse[rows, :start].T
        tile = inverse[rows, rows]
        tile[...] = np.tril(tile) + np.tril(tile, -1).T
    weights = np.empty(inverse.shape, dtype=np.float32)
    np.multiply(inverse, -1.0 / inverse.diagonal(), out=weights, casting="same_kind")
    np.fill_diagonal(weights, 0.0)
    return weights


def sparse_ridge_weights(
    present: Any, penalty: float, n_neighbors: int, dropout: float = 0.0
) -> Any:
    """Sparse B >= 0: each item is regressed on the items that it occurs with most often.

    csr_array (N, N) of float32. As in SLIM, weights are not negative: the regressions are then
    well posed even if only the largest elements of the Gram matrix are kept for each item, and no
    array of N^2 numbers is needed.
    """
    # Imported here because only fits may use numba, not questions to a fitted model.
    from efemb.kernels.coordinate_descent import descend

    lines = np.asarray(present.sum(axis=0), dtype=np.float64).ravel()
    scale = 1.0 / np.sqrt(np.maximum(lines, 1.0))

    def cosine(together: Floats, left: Ints, right: Ints) -> Floats:
        return np.asarray(together * scale[left] * scale[right], dtype=np.float32)

    near = _find_strongest(present, cosine, n_neighbors)  # row n: the regressors of n
    row = np.repeat(np.arange(near.shape[0], dtype=near.indices.dtype), np.diff(near.indptr))
    near.data /= (scale[row] * scale[near.indices]).astype(np.float32)  # rows with both
    diagonal = (lines / (1.0 - dropout) + penalty).astype(np.float32)
    weights = np.zeros(near.nnz, dtype=np.float32)
    descend(near.indptr, near.indices, near.data, diagonal, weights)
    weighted = csr_array((weights, near.indices, near.indptr), shape=near.shape)
    weighted.eliminate_zeros()
    return csr_array(weighted.T)


def keep_strongest(weights: Floats, n_neighbors: int) -> Any:
    """The weights B_mn of largest magnitude of each item n, as csr_array; weights : dense B."""
    size = min(n_neighbors, len(weights))
    columns = []
    for start in range(0, len(weights), TILE):
        tile = weights[:, start : start + TILE].T  # line n: the weights for item n
        place = np.argpartition(-np.abs(tile), size - 1, axis=1)[:, :size]
        place.sort(axis=1)
        ptr = np.arange(len(tile) + 1) * size
        values = np.take_along_axis(tile, place, axis=1)
        shape = (len(tile), len(weights))
        columns.append(csr_array((values.ravel(), place.ravel(), ptr), shape=shape))
    strongest = csr_array(vstack(columns).T)
    strongest.eliminate_zeros()
    return strongest


def dense_size(n_items: int) -> int:
    """Bytes needed to compute a dense B."""
    return BYTES_PER_PAIR * n_items**2


def sparse_size(present: Any, n_neighbors: int) -> int:
    """Bytes needed to compute a sparse B; it keeps no more pairs than occur in rows."""
    sizes = np.diff(present.indptr).astype(np.int64)
    together = int(sizes @ sizes)
    n_pairs = min(int(present.shape[1]) * n_neighbors, together)
    return BYTES_PER_SPARSE_PAIR * n_pairs + BYTES_AT_ONCE * min(together, PAIRS_AT_ONCE)


def dense_fits(n_items: int) -> bool:
    """Whether an array of N^2 numbers for all pairs of items fits into memory."""
    free = available_memory()
    return n_items <= MOST_DENSE and (free is None or dense_size(n_items) <= 0.5 * free)


def check_memory(need: int, model: str, n_items: int, way_out: str) -> None:
    """Reject a model that does not fit, with an estimate and an alternative."""
    free = available_memory()
    if free is not None and need > free:
        raise MemoryEstimateError(
            f"{model} of {n_items:,} items needs about {in_words(need)}, but only {in_words(free)} "
            f"are free: {way_out}"
        )


def find_strongest_weights(
    present: Any, weigh: Weigh, n_neighbors: int | None = None, row_weight: Floats | None = None
) -> Any:
    """B as csr_array (N, N): for each item n its largest weights B_mn, B_nn = 0.

    present : csr_array of shape (T, N) of zeros and ones
    weigh : (C_mn, m, n) -> B_mn of pairs of items, C_mn the (weighted) number of rows with both
    n_neighbors : number of weights per item n; None keeps all pairs that occur together
    row_weight : (T,), of each row in C; 1 by default
    """
    return csr_array(_find_strongest(present, weigh, n_neighbors, row_weight).T)


def _find_strongest(
    present: Any, weigh: Weigh, n_neighbors: int | None, row_weight: Floats | None = None
) -> Any:
    """The transpose of B: row n has the largest weights B_mn of item n."""
    by_item = present.T if row_weight is None else present.T @ diags_array(row_weight)
    by_item = csr_array(by_item)
    lines = np.diff(present.indptr).astype(np.float64)
    rows = []
    for items in _blocks(np.asarray(present.T @ lines)):
        pairs = csr_array(by_item[items] @ present)
        pairs.sort_indices()
        target = np.repeat(items, np.diff(pairs.indptr))
        pairs.data = weigh(pairs.data, pairs.indices, target)
        pairs.data[pairs.indices == target] = 0.0
        rows.append(_largest(pairs, n_neighbors))
    return csr_array(vstack(rows))


def _blocks(n_pairs: Floats) -> list[Ints]:
    """Runs of items that have about PAIRS_AT_ONCE pairs of lines together; n_pairs : (N,)."""
    before = np.cumsum(n_pairs) - n_pairs
    edges = np.flatnonzero(np.diff(before // PAIRS_AT_ONCE)) + 1
    return np.split(np.arange(len(n_pairs)), edges)


def _largest(weights: Any, n_largest: int | None) -> Any:
    """The n largest numbers of every row of a csr_array, and the first of equal ones."""
    if n_largest is not None:
        from efemb.kernels.coordinate_descent import drop_smaller

        drop_smaller(weights.indptr, weights.data, n_largest)
    weights.eliminate_zeros()
    return weights
