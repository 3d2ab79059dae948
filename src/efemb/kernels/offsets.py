"""Kernels of offsets of single cells: added to tiles of inner products, slopes read back.

Sparse rows lie one after the other, those of several parts of `n_rows` rows each. Cells are sorted
by tile first; those that several parts have stay in the order of the parts.
"""

from __future__ import annotations

from typing import Any

from efemb.kernels.jit import elementwise, kernel, summing

Array = Any


@kernel
def deal_cells(
    edges: Array, n_rows: int, pitch: int, ptr: Array, ids: Array, values: Array,
    tile: Array, first: Array, where: Array, source: Array, dealt: Array,
) -> None:  # fmt: skip
    """Sort cells by tile, in which they then lie side by side: no branch is guessed wrong there.

    The cells of tile j, of entities edges[j]..edges[j + 1], are first[j]..first[j + 1]; `where` is
    their place in a tile whose rows are `pitch` apart, `source` that in `values`, and `dealt` the
    value. `tile` is room for N numbers, `first` has two zeros more than there are tiles.
    """
    for j in range(len(edges) - 1):
        for n in range(edges[j], edges[j + 1]):
            tile[n] = j
    for p in range(len(ids)):
        first[tile[ids[p]] + 2] += 1
    for j in range(2, len(first)):
        first[j] += first[j - 1]
    t = 0
    for v in range(len(ptr) - 1):
        for p in range(ptr[v], ptr[v + 1]):
            n = ids[p]
            j = tile[n]
            i = first[j + 1]
            first[j + 1] = i + 1
            where[i] = (n - edges[j]) * pitch + t
            source[i] = p
            dealt[i] = values[p]
        t = t + 1 if t + 1 < n_rows else 0


@kernel
def find_cells(
    ptr: Array, ids: Array, cell_ptr: Array, cell_ids: Array, last: Array, place: Array
) -> None:
    """Place of each entry among the cells of its row, -1 where it is none of them.

    `last` is room for a number of each entity: where it was seen last, in this row or another.
    """
    for n in range(len(last)):
        last[n] = -1
    for t in range(len(ptr) - 1):
        start = cell_ptr[t]
        for p in range(start, cell_ptr[t + 1]):
            last[cell_ids[p]] = p
        for p in range(ptr[t], ptr[t + 1]):
            seen = last[ids[p]]
            place[p] = seen if seen >= start else -1


@elementwise
def add_dealt(flat: Array, start: int, stop: int, where: Array, dealt: Array) -> None:
    """Add the cells start..stop of a tile; hidden cells stay hidden."""
    for i in range(start, stop):
        flat[where[i]] += dealt[i]


@kernel
def read_dealt(
    flat: Array, start: int, stop: int, where: Array, source: Array, slope: Array
) -> None:
    """Slopes of the cells start..stop of a tile."""
    for i in range(start, stop):
        slope[source[i]] = flat[where[i]]


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
