"""Sums of counts by (row, column), kept as small integers while batches stream in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Below this many pending lines sorting is not worth its while.
_PENDING = 1 << 22


def narrow(counts: NDArray[np.float64]) -> NDArray[Any]:
    """`counts` as float32 if that loses nothing."""
    with np.errstate(over="ignore"):
        small = counts.astype(np.float32)
    return small if np.array_equal(small, counts) else counts


class PairSums:
    """Grows by batches of (row, column, count); equal pairs are summed from time to time.

    Lines wait in lists until there are as many of them as summed pairs, so that all the sorting
    together costs O(lines log lines), and memory stays a few times that of the different pairs.
    """

    def __init__(self, pending: int = _PENDING) -> None:
        self._parts: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
        self._least = pending
        self._waiting = 0
        self._summed = 0
        self.lines = 0

    def add(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64], counts: NDArray[np.float64]
    ) -> None:
        """Add a batch of lines."""
        self._parts.append((rows.astype(np.int32), columns.astype(np.int32), narrow(counts)))
        self.lines += len(rows)
        self._waiting += len(rows)
        if self._waiting >= max(self._least, self._summed):
            self._compact()

    def finish(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[Any]]:
        """Rows, columns and sums of the different pairs, ordered by row, then column."""
        self._compact()
        return self._parts[0]

    def _compact(self) -> None:
        if not self._parts:
            empty = np.empty(0, np.int32)
            self._parts = [(empty, empty, np.empty(0, np.float32))]
        pairs = np.concatenate([_key(rows, columns) for rows, columns, _ in self._parts])
        counts = np.concatenate([part[2] for part in self._parts])
        self._parts = []
        # Stable: equal pairs are added in the order of the lines.
        order = np.argsort(pairs, kind="stable")
        pairs, counts = pairs[order], counts[order]
        del order
        starts = np.flatnonzero(np.r_[True, pairs[1:] != pairs[:-1]][: len(pairs)])
        if len(starts) < len(pairs):
            counts = narrow(np.add.reduceat(counts.astype(np.float64), starts))
            pairs = pairs[starts]
        rows = (pairs >> 32).astype(np.int32)
        self._parts = [(rows, (pairs & 0xFFFFFFFF).astype(np.int32), counts)]
        self._summed, self._waiting = len(rows), 0


def _key(rows: NDArray[np.int32], columns: NDArray[np.int32]) -> NDArray[np.int64]:
    return (rows.astype(np.int64) << 32) | columns
