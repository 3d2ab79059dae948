"""Blocks: run fixed pieces of work in threads and add the results up in a fixed order."""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from efemb.errors import InputTypeError, ParameterError
from efemb.types import Floats

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def n_threads(n_jobs: int | None) -> int:
    """Number of threads: None is 1, -1 is every core, as in scikit-learn."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)):
        raise InputTypeError(f"n_jobs must be an integer or None, got {n_jobs!r}")
    if n_jobs == 0:
        raise ParameterError("n_jobs must not be 0; -1 uses every core")
    return max(1, (os.cpu_count() or 1) + 1 + n_jobs) if n_jobs < 0 else int(n_jobs)


def cut(n: int, size: int) -> list[slice]:
    """Cut n rows into slices of `size`, the last up to half longer, whatever the threads.

    >>> cut(1100, 512)
    [slice(0, 512, None), slice(512, 1100, None)]
    """
    edges = [*range(0, max(n - size // 2, 1), size), n]
    return [slice(a, b) for a, b in pairwise(edges)]


class Workers:
    """A pool of threads, each running its piece with single-threaded BLAS.

    The pieces do not depend on the number of threads and results come back in their order, so
    sums over them have the same bits for any `n_jobs`.
    """

    def __init__(self, n_jobs: int | None = 1) -> None:
        self.n = n_threads(n_jobs)
        self._pool = ThreadPoolExecutor(self.n) if self.n > 1 else None
        self._local = threading.local()

    def map(self, work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> Iterator[Result]:
        """Results in the order of the pieces."""
        if self._pool is None or len(pieces) == 1:
            return map(work, pieces)
        return iter(self._pool.map(work, pieces))

    def ahead(self, work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> Iterator[Result]:
        """Results in the order of the pieces, of which only a few are worked on ahead of time."""
        if self._pool is None:
            yield from map(work, pieces)
            return
        waiting: deque[Future[Result]] = deque()
        for piece in pieces:
            waiting.append(self._pool.submit(work, piece))
            if len(waiting) > 2 * self.n:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def begin(self, work: Callable[[Piece], Result], piece: Piece) -> Callable[[], Result]:
        """Work on a piece meanwhile, if there are threads; the result is that of calling."""
        if self._pool is None:
            return lambda: work(piece)
        return self._pool.submit(work, piece).result

    def buffer(self, name: str, shape: tuple[int, ...], dtype: Any) -> Floats:
        """An uninitialised array of this thread, reused between calls."""
        store: dict[str, Floats] = self._local.__dict__
        size = math.prod(shape)
        kept = store.get(name)
        if kept is None or kept.size < size or kept.dtype != dtype:
            kept = store[name] = np.empty(size, dtype=dtype)
        return kept[:size].reshape(shape)

    def close(self) -> None:
        """Stop the threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


@cache
def _blas() -> Any:
    """The BLAS libraries in use; SciPy's and numba's are loaded first, since the search is slow."""
    import scipy.linalg.cython_lapack  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def workers(n_jobs: int | None) -> Iterator[Workers]:
    """A pool for one fit, with BLAS held at one thread inside."""
    pool = Workers(n_jobs)
    try:
        with _blas().limit(limits=1, user_api="blas"):
            yield pool
    finally:
        pool.close()
