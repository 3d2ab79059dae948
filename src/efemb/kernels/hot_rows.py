"""Copies of some rows of a table for a thread; several threads run these kernels at once."""

from __future__ import annotations

from typing import Any

from efemb.kernels.jit import kernel
from efemb.kernels.simd import prefetch

Array = Any
AHEAD = 16  # rows between a prefetch and its use; rows may be in the cache of another core


@kernel
def borrow(table: Array, hot: Array, first: int, base: Array) -> None:
    """Copy the hot rows to the rows from `first` on, and to `base`."""
    for i in range(len(hot)):
        prefetch(table, hot[min(i + AHEAD, len(hot) - 1)])
        row = hot[i]
        for k in range(table.shape[1]):
            value = table[row, k]
            base[i, k] = value
            table[first + i, k] = value


@kernel
def give_back(table: Array, hot: Array, first: int, base: Array) -> None:
    """Add the changes of the copies, relative to `base`, to the hot rows."""
    for i in range(len(hot)):
        prefetch(table, hot[min(i + AHEAD, len(hot) - 1)])
        row = hot[i]
        for k in range(table.shape[1]):
            table[row, k] += table[first + i, k] - base[i, k]


@kernel
def rename(rows: Array, places: Array) -> None:
    """Replace each row by its place."""
    for i in range(len(rows)):
        rows[i] = places[rows[i]]
