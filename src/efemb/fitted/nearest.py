"""Nearest vectors: unit rows, the largest inner products, and checks of arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from efemb._typing import Floats, Ints

# Numbers computed at a time: 64 MB in single precision.
BLOCK = 1 << 24
# Products looked through at a time: they stay in the cache of a core.
CACHED = 1 << 20
QUERIES = 1 << 10  # at a time
GROUPS = 8  # runs of rows in which the largest product is found first
ENOUGH = 20_000  # candidates worth a sort
WORTH_THREADS = 10**9  # multiplications


def unit_rows(vectors: Floats) -> Floats:
    """Rows divided by their length, read-only; zero rows stay zero."""
    unit = np.empty_like(vectors)
    step = max(1, (CACHED >> 2) // max(1, vectors.shape[1]))
    for start in range(0, len(vectors), step):
        block = vectors[start : start + step].astype(np.float64)
        if vectors.dtype == np.float64:  # squares of huge or tiny numbers leave the range
            largest_of = np.abs(block).max(axis=1, initial=0.0, keepdims=True)
            block /= np.where(largest_of > 0, largest_of, 1.0)
        length = np.sqrt(np.einsum("ij,ij->i", block, block))[:, None]
        length[length == 0] = 1.0
        np.divide(block, length, out=unit[start : start + step], casting="same_kind")
    unit.setflags(write=False)
    return unit


def largest(scores: Floats, n: int) -> Ints:
    """Indices of the `n` largest scores, best first, ties in order; -inf is never among them."""
    if n < len(scores):
        limit = np.partition(scores, len(scores) - n)[len(scores) - n]
        indices = np.flatnonzero((scores >= limit) & (scores > -np.inf))
    else:
        indices = np.flatnonzero(scores > -np.inf)
    return indices[np.argsort(-scores[indices], kind="stable")[:n]]


def largest_products(
    table: Floats,
    queries: Floats,
    n: int,
    rows: Ints | None = None,
    advance: Callable[[int], None] | None = None,
) -> tuple[Ints, Floats]:
    """The `n` rows of `table` (N, K) with the largest inner product with each query (B, K).

    Exact, by blocks of matrix products; only `rows` (ascending) are examined, and `advance` is
    called with the number of queries that are done.
    Returns indices in `table` and products, (B, n), the best first, ties in order; fewer columns
    if fewer rows are left.
    """
    size = len(table) if rows is None else len(rows)
    n = min(n, size)
    indices = np.empty((len(queries), n), dtype=np.int64)
    scores = np.empty((len(queries), n), dtype=table.dtype)
    work = len(queries) * size * table.shape[1]
    with _workers(_threads() if work > WORTH_THREADS else 1) as workers:
        for start in range(0, len(queries) if n else 0, QUERIES):
            block = slice(start, start + QUERIES)
            best = _search(table, queries[block], n, rows, workers)
            indices[block], scores[block] = best.places, best.scores
            if advance is not None:
                advance(len(best.places))
    return indices if rows is None else rows[indices], scores


def _threads() -> int:
    """Threads that BLAS would use."""
    from threadpoolctl import threadpool_info

    threads = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(threads, default=1)


@contextmanager
def _workers(threads: int) -> Iterator[_Workers]:
    """Threads for blocks of rows; BLAS is limited to one each, so that all of them select rows."""
    if threads == 1:
        yield _Workers(1, map)
        return
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        yield _Workers(threads, pool.map)


class _Workers(NamedTuple):
    """The number of threads, and their `map`."""

    n: int
    map: Callable[..., Iterable[_Best]]


def _search(table: Floats, queries: Floats, n: int, rows: Ints | None, workers: _Workers) -> _Best:
    """The best rows for some queries; the blocks are the same for any number of workers."""
    columns = np.ascontiguousarray(queries.T.astype(table.dtype, copy=False))
    size = len(table) if rows is None else len(rows)
    step = max(-(-CACHED // len(queries) // GROUPS) * GROUPS, n)
    starts = range(0, size, step)

    def look(own_starts: range) -> _Best:
        best = _Best(len(queries), n, table.dtype)
        products = np.empty((min(step, size), len(queries)), dtype=table.dtype)
        for start in own_starts:
            block_rows = slice(start, start + step)
            block = table[block_rows] if rows is None else table[rows[block_rows]]
            best.offer(np.matmul(block, columns, out=products[: len(block)]), start)
        best.settle()
        return best

    share = -(-len(starts) // workers.n)
    shares = [starts[i : i + share] for i in range(0, len(starts), share)]
    best, *others = workers.map(look, shares)
    for other in others:
        best.join(other)
    return best


class _Best:
    """The largest products of each query so far; better ones wait until a sort is worth it."""

    def __init__(self, n_queries: int, n: int, dtype: Any) -> None:
        self.n = n
        self.scores = np.full((n_queries, n), -np.inf, dtype=dtype)
        self.places = np.full((n_queries, n), -1, dtype=np.int64)
        self.waiting: list[tuple[Ints, Ints, Floats]] = []
        self.n_waiting = 0
        self.empty = True

    def offer(self, products: Floats, first: int) -> None:
        """Consider the products (rows, queries) of the rows from `first` on."""
        if self.empty:
            self.empty = False
            n = min(self.n, len(products))
            limit = np.partition(products, len(products) - n, axis=0)[-n]
            row, query = np.nonzero(products >= limit)
            self._wait(query, first + row, products[row, query])
            self.settle()
            return
        groups = GROUPS if len(products) % GROUPS == 0 else 1
        cube = products.reshape(groups, -1, products.shape[1])
        limit = self.scores[:, -1]
        group, query = np.nonzero(cube.max(axis=1) > limit)
        near = cube[group, :, query]
        which, inside = np.nonzero(near > limit[query, None])
        row = first + group[which] * cube.shape[1] + inside
        self._wait(query[which], row, near[which, inside])
        if self.n_waiting > ENOUGH:
            self.settle()

    def join(self, other: _Best) -> None:
        """Merge the results of another worker, which searched other rows."""
        query = np.repeat(np.arange(len(other.places)), self.n)
        valid = other.places.ravel() >= 0
        self._wait(query[valid], other.places.ravel()[valid], other.scores.ravel()[valid])
        self.settle()

    def _wait(self, query: Ints, row: Ints, score: Floats) -> None:
        if len(query):
            self.waiting.append((query, row, score))
            self.n_waiting += len(query)

    def settle(self) -> None:
        """Merge the waiting products into the best of each query."""
        if not self.waiting:
            return
        query, row, score = (np.concatenate(column) for column in zip(*self.waiting, strict=True))
        changed = np.flatnonzero(np.bincount(query))
        query = np.concatenate([np.repeat(changed, self.n), query])
        row = np.concatenate([self.places[changed].ravel(), row])
        score = np.concatenate([self.scores[changed].ravel(), score])
        order = np.lexsort((row, -score, query))
        first = np.searchsorted(query[order], changed)
        best = order[first[:, None] + np.arange(self.n)]
        self.scores[changed], self.places[changed] = score[best], row[best]
        self.waiting, self.n_waiting = [], 0
