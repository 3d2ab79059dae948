"""Copies of some rows of a table, made, named and given back; threads run these side by side."""

from __future__ import annotations

from typing import Any

from efemb.kernels.compiling import kernel
from efemb.kernels.vectors import prefetch

Array = Any
AHEAD = 16  # rows between a prefetch and its use: another core may have written them last


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
    """Add to the hot rows what their copies gained since they were like `base`."""
    for i in range(len(hot)):
        prefetch(table, hot[min(i + AHEAD, len(hot) - 1)])
        row = hot[i]
        for k in range(table.shape[1]):
            table[row, k] += table[first + i, k] - base[i, k]


@kernel
def rename(rows: Array, places: Array) -> None:
    """Put the place of each row instead of the row."""
    for i in range(len(rows)):
        rows[i] = places[rows[i]]
