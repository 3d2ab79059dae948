"""Kernels of offsets of single cells: added to tiles of inner products, slopes read back.

Sparse rows lie one after the other, those of several parts of `n_rows` rows each. Cells are dealt
to tiles first; those that several parts have stay in the order of the parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb.kernels.jit import elementwise, inlined, kernel, summing

Array = Any
U = np.uint64
LANES = 8  # cells that are moved at a time: a row has about as many in a tile


@kernel
def cut_rows(edges: Array, ptr: Array, ids: Array, starts: Array) -> None:
    """starts[v, j] = how many cells of row v come before tile j, whose entities begin at edges[j].

    The ids of a row ascend: those of a tile lie side by side.
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
def share_out(starts: Array, begin: Array, end: Array) -> int:
    """Where the cells of each tile begin and end, if they lie side by side; returns the room.

    There is room for LANES more behind those of a tile, so that they can be moved LANES at a time.
    """
    n_tiles = len(begin)
    for j in range(n_tiles):
        end[j] = 0
    for v in range(starts.shape[0]):
        for j in range(n_tiles):
            end[j] += starts[v, j + 1] - starts[v, j]
    room = 0
    for j in range(n_tiles):
        begin[j] = room
        end[j] += room
        room = end[j] + LANES
    return room


@inlined
def _take(array: Array, p: Any) -> Any:
    """LANES numbers from place p on; places without a sign are not looked at twice."""
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
    edges: Array, n_rows: int, pitch: int, starts: Array, begin: Array,
    ptr: Array, ids: Array, values: Array, where: Array, dealt: Array,
) -> None:  # fmt: skip
    """Lay cells side by side tile by tile: no branch is guessed wrong when they are added there.

    `where` is their place in a tile whose rows are `pitch` apart, and `dealt` the value. `begin` is
    moved to the ends. Cells go LANES at a time; what is too much is written over by those that
    follow.
    """
    t, last = 0, len(ids) - LANES
    for v in range(starts.shape[0]):
        start, row = ptr[v], starts[v]
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
        t = t + 1 if t + 1 < n_rows else 0


@elementwise
def collect_cells(starts: Array, begin: Array, ptr: Array, dealt: Array, values: Array) -> None:
    """The transpose of `deal_cells`: values of the cells in the order of their rows."""
    last = len(values) - LANES
    for v in range(starts.shape[0]):
        start, row = ptr[v], starts[v]
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
def read_dealt(flat: Array, start: int, stop: int, where: Array, slope: Array) -> None:
    """Slopes of the cells start..stop of a tile."""
    for i in range(start, stop):
        slope[i] = flat[where[i]]


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
