"""Workers: threads for pieces of work of fixed size, with results in the order of the pieces."""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

import numpy as np

from efemb._typing import Floats
from efemb.errors import InputTypeError, ParameterError

LINE_BYTES = 64  # of the cache
MOST_THREADS = 64
WORTH_A_THREAD = 1 << 19  # numbers: half a millisecond of work; waking a thread takes a tenth

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def n_threads(n_jobs: int | None) -> int:
    """Number of threads: None is 1, -1 is every core, as in scikit-learn.

    The number is bounded, because more threads than cores would only take memory.
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)):
        raise InputTypeError(f"n_jobs must be an integer or None, got {n_jobs!r}")
    if n_jobs == 0:
        raise ParameterError("n_jobs must not be 0; -1 uses every core")
    cores = os.cpu_count() or 1
    return max(1, cores + 1 + n_jobs) if n_jobs < 0 else min(int(n_jobs), max(cores, MOST_THREADS))


def cut(n: int, size: int) -> list[slice]:
    """Cut n rows into slices of `size`, the last up to half longer, for any number of threads.

    >>> cut(1100, 512)
    [slice(0, 512, None), slice(512, 1100, None)]
    """
    edges = [*range(0, max(n - size // 2, 1), size), n]
    return [slice(a, b) for a, b in pairwise(edges)]


def aligned(shape: tuple[int, ...], dtype: Any) -> Floats:
    """An uninitialized array that begins at a cache line."""
    size, each = math.prod(shape), np.dtype(dtype).itemsize
    room = np.empty(size + LINE_BYTES // each, dtype=dtype)
    start = -room.ctypes.data % LINE_BYTES // each
    return room[start : start + size].reshape(shape)


class _Shared(Generic[Piece, Result]):
    """Pieces of work that several threads take, one after the other."""

    def __init__(self, work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> None:
        self.work, self.pieces = work, pieces
        self.results: dict[int, Result] = {}
        self.failed: dict[int, BaseException] = {}
        self.remaining = iter(range(len(pieces)))  # no two threads get the same index
        self.done: SimpleQueue[int] = SimpleQueue()

    def help(self) -> None:
        """Work on the remaining pieces, unless there was an error."""
        for index in self.remaining:
            try:
                self.results[index] = self.work(self.pieces[index])
            except BaseException as error:
                self.failed[index] = error
                for dropped in self.remaining:
                    self.done.put(dropped)
            self.done.put(index)

    def lead(self) -> list[Result]:
        """Work as well, then wait for pieces in progress; returns results in their order."""
        self.help()
        for _ in self.pieces:
            self.done.get()
        if self.failed:
            raise self.failed[min(self.failed)]
        return [self.results[index] for index in range(len(self.pieces))]


@dataclass(frozen=True)
class Tuning:
    """Sizes of the pieces of work. They affect results only by rounding, and are never saved.

    block_rows, stage_rows : rows whose cells, or only entries, are processed at a time
    part_rows : rows of a block that one thread processes at a time
    softmax_rows : rows whose softmax over all entities is in memory at a time
    tile_bytes : inner products that stay in the cache while they are used four times
    strip_tiles : tiles after which a thread delivers a gradient of the bag sums
    most_strips : approximate maximum number of strips, which are longer otherwise
    strip_rows : rows of the gradients of strips that one thread sums at a time
    dense : share of stored cells above which their inner products are read from the tiles
    block_numbers : numbers that the generic solver holds for the terms of one block
    """

    block_rows: int = 1024
    stage_rows: int = 8192
    part_rows: int = 512
    softmax_rows: int = 512
    tile_bytes: int = 1 << 19
    strip_tiles: int = 8
    most_strips: int = 64
    strip_rows: int = 256
    dense: float = 0.03
    block_numbers: int = 1 << 21


class Workers:
    """A pool of threads, each running its piece with single-threaded BLAS.

    The pieces do not depend on the number of threads and results are returned in their order, so
    sums over them have the same bits for any `n_jobs`. Steps are short (milliseconds), so threads
    wait on a plain queue, and the thread that calls `map` works too.
    """

    def __init__(self, n_jobs: int | None = 1, tuning: Tuning | None = None) -> None:
        self.n, self.tuning = n_threads(n_jobs), tuning or Tuning()
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._local = threading.local()
        self._threads = [
            threading.Thread(target=_serve, args=(self._tasks,), daemon=True)
            for _ in range(self.n if self.n > 1 else 0)
        ]
        for thread in self._threads:
            thread.start()

    def map(
        self, work: Callable[[Piece], Result], pieces: Sequence[Piece], size: float = np.inf
    ) -> Iterator[Result]:
        """Results in the order of the pieces; `size` is the number of values they process."""
        if self.n == 1 or len(pieces) <= 1 or size < WORTH_A_THREAD:
            return map(work, pieces)
        shared = _Shared(work, pieces)
        for _ in range(min(self.n, len(pieces)) - 1):
            self._tasks.put(shared.help)
        return iter(shared.lead())

    def ahead(self, work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> Iterator[Result]:
        """Results in the order of the pieces, with only a few of them computed ahead of time."""
        if self.n == 1:
            yield from map(work, pieces)
            return
        waiting: deque[Callable[[], Result]] = deque()
        for piece in pieces:
            waiting.append(self.begin(work, piece))
            if len(waiting) > 2 * self.n:
                yield waiting.popleft()()
        while waiting:
            yield waiting.popleft()()

    def begin(self, work: Callable[[Piece], Result], piece: Piece) -> Callable[[], Result]:
        """Start a piece in the background, if there are threads; calling the result returns it."""
        if self.n == 1:
            return lambda: work(piece)
        future: Future[Result] = Future()

        def task() -> None:
            try:
                future.set_result(work(piece))
            except BaseException as error:
                future.set_exception(error)

        self._tasks.put(task)
        return future.result

    def buffer(self, name: str, shape: tuple[int, ...], dtype: Any) -> Floats:
        """An array of this thread, reused between calls: zeros at first, later arbitrary values."""
        store: dict[str, Floats] = self._local.__dict__
        size = math.prod(shape)
        array = store.get(name)
        if array is None or array.size < size or array.dtype != dtype:
            array = store[name] = aligned((size,), dtype)
            array[:] = 0
        return array[:size].reshape(shape)

    def close(self) -> None:
        """Stop the threads."""
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()


def _serve(tasks: SimpleQueue[Callable[[], None] | None]) -> None:
    while (task := tasks.get()) is not None:
        task()
        del task  # it may hold arrays as large as a shard


@cache
def _blas() -> Any:
    """The BLAS libraries in use; SciPy's and numba's are loaded first, since the search is slow."""
    import scipy.linalg.cython_lapack  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class _OneBlasThread:
    """Limits BLAS to one thread from the first of several fits until the last has ended."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = _blas().limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


one_blas_thread = _OneBlasThread()


@contextmanager
def workers(n_jobs: int | None, tuning: Tuning | None = None) -> Iterator[Workers]:
    """A pool for one fit, inside which BLAS is limited to one thread."""
    pool = Workers(n_jobs, tuning)
    try:
        with one_blas_thread:
            yield pool
    finally:
        pool.close()
