"""Kernels for offsets of single cells: added to tiles of inner products, slopes read back.

Cells of sparse rows are first sorted by tile ("dealt"). A cell that several parts have is added in
the order of the parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb.kernels.jit import elementwise, inlined, kernel, summing
from efemb.kernels.simd import CACHE_LINE, prefetch_place

Array = Any
U = np.uint64
LANES = 8  # cells that are moved at a time, about as many as a row has in a tile
AHEAD = 8  # rows between a prefetch and its use


@kernel
def cut_rows(edges: Array, ptr: Array, ids: Array, starts: Array) -> None:
    """starts[v, j] = number of cells of row v before tile j, whose entities begin at edges[j].

    The ids of a row ascend, so that its cells in a tile are contiguous.
    """
    n_edges = len(edges)
    for v in range(len(ptr) - 1):
        j = 0
        for p in range(ptr[v], ptr[v + 1]):
            while j < n_edges and edges[j] <= ids[p]:
                starts[v, j] = p - ptr[v]
                j += 1
        while j < n_edges:
            starts[v, j] = ptr[v + 1] - ptr[v]
            j += 1


@kernel
def count_cells(starts: Array, code: Array, sizes: Array) -> None:
    """Add to sizes[j] the number of cells in tile j of the rows `code` of a table."""
    for t in range(len(code)):
        row = starts[code[t]]
        for j in range(len(sizes)):
            sizes[j] += row[j + 1] - row[j]


@inlined
def _take(array: Array, p: Any) -> Any:
    """Read LANES numbers from place p on; an unsigned place needs no check for negative numbers."""
    return (
        array[p], array[p + U(1)], array[p + U(2)], array[p + U(3)],
        array[p + U(4)], array[p + U(5)], array[p + U(6)], array[p + U(7)],
    )  # fmt: skip


@inlined
def _put(array: Array, p: Any, numbers: Any) -> None:
    """Write LANES numbers from place p on."""
    array[p], array[p + U(1)], array[p + U(2)], array[p + U(3)] = numbers[:4]
    array[p + U(4)], array[p + U(5)], array[p + U(6)], array[p + U(7)] = numbers[4:]


@inlined
def _places(ids: Any, pitch: Any, shift: Any) -> Any:
    """id * pitch + shift of LANES ids."""
    return (
        ids[0] * pitch + shift, ids[1] * pitch + shift, ids[2] * pitch + shift,
        ids[3] * pitch + shift, ids[4] * pitch + shift, ids[5] * pitch + shift,
        ids[6] * pitch + shift, ids[7] * pitch + shift,
    )  # fmt: skip


@elementwise
def deal_cells(
    rows: Any, pitch: int, begin: Array,
    ptr: Array, ids: Array, values: Array, where: Array, dealt: Array,
) -> None:  # fmt: skip
    """Sort cells by tile, so that they are added to a tile without unpredictable branches.

    rows : edges of the tiles, `starts` of `cut_rows` for a table, and the row of the table for each
        row. Fills `where`, the place of each cell in a tile whose rows are `pitch` apart, and
        `dealt`, its value, and moves `begin` to the ends. LANES cells are copied at a time; the
        surplus is overwritten by the next cells.
    """
    edges, starts, code = rows
    last = len(ids) - LANES
    for t in range(len(code)):
        start, row = ptr[code[t]], starts[code[t]]
        for j in range(len(begin)):
            p, stop, i = start + row[j], start + row[j + 1], begin[j]
            begin[j] = i + stop - p
            shift = t - edges[j] * pitch
            while p < stop:
                if p <= last:
                    _put(where, U(i), _places(_take(ids, U(p)), pitch, shift))
                    _put(dealt, U(i), _take(values, U(p)))
                    p, i = p + LANES, i + LANES
                else:
                    where[i], dealt[i] = ids[p] * pitch + shift, values[p]
                    p, i = p + 1, i + 1


@kernel
def change_dealt(
    rows: Any, end: Array, ptr: Array, ids: Array, some: Array, changes: Any, dealt: Array
) -> None:
    """Correct the values of cells that differ from those of the table, after `deal_cells`.

    The rows ascend; the cells of tile j end at end[j].
    """
    edges, starts, code = rows
    own_ptr, _, own_values, own_cells, place = changes
    width, t = edges[1] - edges[0], len(code)
    cursor = end.copy()
    for i in range(len(some) - 1, -1, -1):
        while t > some[i]:
            t -= 1
            row = starts[code[t]]
            for j in range(len(cursor)):
                cursor[j] -= row[j + 1] - row[j]
        for q in range(own_ptr[place[t]], own_ptr[place[t] + 1]):
            cell = own_cells[q]
            j = ids[ptr[code[t]] + cell] // width
            dealt[cursor[j] + cell - starts[code[t], j]] = own_values[q]


@elementwise
def collect_cells(rows: Any, begin: Array, ptr: Array, dealt: Array, values: Array) -> None:
    """The transpose of `deal_cells`: values of the cells in the order of their rows."""
    _, starts, code = rows
    last = len(values) - LANES
    for t in range(len(code)):
        start, row = ptr[code[t]], starts[code[t]]
        for j in range(len(begin)):
            p, stop, i = start + row[j], start + row[j + 1], begin[j]
            begin[j] = i + stop - p
            while p < stop:
                if p <= last:
                    _put(values, U(p), _take(dealt, U(i)))
                    p, i = p + LANES, i + LANES
                else:
                    values[p] = dealt[i]
                    p, i = p + 1, i + 1


@kernel
def find_cells(
    ptr: Array, ids: Array, cell_ptr: Array, cell_ids: Array, last: Array, place: Array
) -> None:
    """Place of each entry among the cells of its row, -1 if it is not one of them.

    `last` is a buffer with a number per entity: the place where it was seen last.
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


@kernel
def find_in_table(
    ptr: Array, ids: Array, table: Any, code: Array, changes: Any, weight: Array, stale: Array
) -> None:
    """Value of each entry among the cells of its row of a table, 0 if it is not one of them.

    stale[t] : whether row t has changed cells that are not entries.
    """
    table_ptr, table_ids, values = table
    own_ptr, own_ids, own_values, _, place = changes
    for t in range(len(code)):
        coming = place[min(t + AHEAD, len(code) - 1)]  # rows come in any order, from far apart
        if coming >= 0:
            for q in range(own_ptr[coming], own_ptr[coming + 1], CACHE_LINE):
                prefetch_place(own_ids, q)
                prefetch_place(own_values, q)
        start, end = table_ptr[code[t]], table_ptr[code[t] + 1]
        first, last = (own_ptr[place[t]], own_ptr[place[t] + 1]) if place[t] >= 0 else (0, 0)
        q, n_met, previous = first, 0, -1
        for p in range(ptr[t], ptr[t + 1]):
            n = ids[p]
            q = q if n > previous else first  # entries may come in any order
            previous = n
            while q < last and own_ids[q] < n:
                q += 1
            if q < last and own_ids[q] == n:
                weight[p] = own_values[q]
                n_met += 1
                continue
            cell = start + np.searchsorted(table_ids[start:end], n)
            weight[p] = values[cell] if cell < end and table_ids[cell] == n else 0
        stale[t] = n_met < last - first


@elementwise
def _add_dealt(flat: Array, start: int, stop: int, where: Array, dealt: Array, factor: Any) -> None:
    for i in range(start, stop):
        flat[where[i]] += factor * dealt[i]


@kernel
def _read_dealt(flat: Array, start: int, stop: int, where: Array, slope: Array) -> None:
    for i in range(start, stop):
        slope[i] = flat[where[i]]


@summing
def _weigh_dealt(flat: Array, start: int, stop: int, where: Array, dealt: Array) -> Any:
    total = 0.0
    for i in range(start, stop):
        total += np.float64(flat[where[i]]) * dealt[i]
    return total


@kernel
def add_lists(flat: Array, tile: int, lists: Any) -> None:
    """Add the cells of a tile; hidden cells stay hidden.

    The cells of list i are at cuts[i, tile] : cuts[i + 1, tile]; they are multiplied by its factor.
    """
    cuts, factor, _, where, dealt, _, _ = lists
    for i in range(len(factor)):
        _add_dealt(flat, cuts[i, tile], cuts[i + 1, tile], where, dealt, factor[i])


@kernel
def read_lists(flat: Array, tile: int, lists: Any) -> None:
    """Read the slopes of the cells of a tile; for `scaled` lists, the sum of slope * value."""
    cuts, _, scaled, where, dealt, slope, total = lists
    for i in range(len(scaled)):
        start, stop = cuts[i, tile], cuts[i + 1, tile]
        if scaled[i]:
            total[i, tile] = _weigh_dealt(flat, start, stop, where, dealt)
        else:
            _read_dealt(flat, start, stop, where, slope)


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
