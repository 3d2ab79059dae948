"""Kernels of offsets of single cells: added to tiles of inner products, slopes read back.

Sparse rows lie one after the other, those of several parts of `n_rows` rows each; the ids of a row
ascend, so that a cursor for each row finds the cells of one tile after the other.
"""

from __future__ import annotations

from typing import Any

from efemb.kernels.jit import elementwise, kernel, summing

Array = Any


@kernel
def find_first(first: int, ptr: Array, ids: Array, cursor: Array) -> None:
    """Place of the first cell of each row whose id is `first` or more."""
    for v in range(len(ptr) - 1):
        low, high = ptr[v], ptr[v + 1]
        while low < high:
            middle = (low + high) // 2
            if ids[middle] < first:
                low = middle + 1
            else:
                high = middle
        cursor[v] = low


@kernel
def find_cells(ptr: Array, ids: Array, cell_ptr: Array, cell_ids: Array, place: Array) -> None:
    """Place of each entry among the cells of its row, -1 where it is none of them."""
    for t in range(len(ptr) - 1):
        for p in range(ptr[t], ptr[t + 1]):
            low, end = cell_ptr[t], cell_ptr[t + 1]
            left = end - low
            while left > 0:  # without branches, which would be guessed wrong half of the time
                half = (left + 1) // 2
                low += half if cell_ids[low + half - 1] < ids[p] else 0
                left -= half
            place[p] = low if low < end and cell_ids[low] == ids[p] else -1


@elementwise
def add_sparse(
    E: Array, first: int, last: int, n_rows: int, ptr: Array, ids: Array, values: Array,
    cursor: Array,
) -> None:  # fmt: skip
    """Add the cells of entities first..last; hidden cells stay hidden."""
    t = 0
    for v in range(len(ptr) - 1):
        p, end = cursor[v], ptr[v + 1]
        while p < end and ids[p] < last:
            E[ids[p] - first, t] += values[p]
            p += 1
        t = t + 1 if t + 1 < n_rows else 0


@kernel
def read_sparse(
    E: Array, first: int, last: int, n_rows: int, ptr: Array, ids: Array, slope: Array,
    cursor: Array,
) -> None:  # fmt: skip
    """Slopes of the cells of entities first..last; the cursors move on to those that follow."""
    t = 0
    for v in range(len(ptr) - 1):
        p, end = cursor[v], ptr[v + 1]
        while p < end and ids[p] < last:
            slope[p] = E[ids[p] - first, t]
            p += 1
        cursor[v] = p
        t = t + 1 if t + 1 < n_rows else 0


@elementwise
def add_groups(E: Array, first: int, last: int, table: Array, order: Array, edges: Array) -> None:
    """Add table[n, g] to the cells of entities first..last in the rows of group g."""
    for n in range(first, last):
        cells, values = E[n - first], table[n]
        for g in range(len(values)):
            value = values[g]
            if value != 0:
                for j in range(edges[g], edges[g + 1]):
                    cells[order[j]] += value


@summing
def _sum_of_rows(cells: Array, order: Array, start: int, stop: int) -> Any:
    total = cells[0] * 0
    for j in range(start, stop):
        total += cells[order[j]]
    return total


@kernel
def read_groups(E: Array, first: int, last: int, order: Array, edges: Array, slope: Array) -> None:
    """slope[n, g] = the slopes of entities first..last, summed over the rows of group g."""
    for n in range(first, last):
        for g in range(slope.shape[1]):
            slope[n, g] = _sum_of_rows(E[n - first], order, edges[g], edges[g + 1])


@elementwise
def add_to_rows(E: Array, place: Array, ptr: Array, ids: Array, offset: Array) -> None:
    """Add the offsets of row place[i] to E[i]."""
    for i in range(len(place)):
        for p in range(ptr[place[i]], ptr[place[i] + 1]):
            E[i, ids[p]] += offset[p]


@elementwise
def add_slopes_of_rows(E: Array, place: Array, ptr: Array, ids: Array, slope: Array) -> None:
    """slope[p] += the slopes of its cell in every E[i] of its row place[i]."""
    for i in range(len(place)):
        for p in range(ptr[place[i]], ptr[place[i] + 1]):
            slope[p] += E[i, ids[p]]
