"""Kernels of the row solver: inner products of stored entries, and their gradient."""

from __future__ import annotations

from typing import Any

from efemb.kernels.jit import elementwise, kernel, summing
from efemb.kernels.simd import prefetch_columns

Array = Any
AHEAD = 12  # entries between a prefetch and its use


@summing
def entry_products(
    ptr: Array,
    ids: Array,
    own: Array,
    rest: Array,
    total: Array,
    sums: Array,
    vectors: Array,
    itself: Array,
    intercept: Array,
    size: int,
    as_zero: Array,
    as_entry: Array,
) -> None:
    """u of each stored entry, with the whole bag (as_zero) and without itself (as_entry).

    `itself` is rho_n . alpha_n;  the first `size` columns belong to bags, others are ignored.
    """
    for t in range(len(ptr) - 1):
        bag = sums[t]
        for p in range(ptr[t], ptr[t + 1]):
            n = ids[p]
            vector = vectors[n]
            whole = bag[0] * 0
            for k in range(size):
                whole += bag[k] * vector[k]
            as_zero[p] = whole / total[t] + intercept[n]
            as_entry[p] = (whole - own[p] * itself[n]) / rest[p] + intercept[n]


@summing
def side_products(ptr: Array, ids: Array, side: Array, vectors: Array, out: Array) -> None:
    """side_t . the last columns of the vector of each stored entry."""
    start = vectors.shape[1] - side.shape[1]
    for t in range(len(ptr) - 1):
        columns = side[t]
        for p in range(ptr[t], ptr[t + 1]):
            vector = vectors[ids[p], start:]
            total = columns[0] * 0
            for k in range(len(columns)):
                total += columns[k] * vector[k]
            out[p] = total


@elementwise
def add_side_to_vectors(
    first: int, last: int, edges: Array, row: Array, ratio: Array, slope: Array, side: Array,
    out: Array, start: int,
) -> None:  # fmt: skip
    """Add slope * (1 - ratio) * side_t of the entries of entities first..last to their vectors.

    The columns begin at `start`, and the rows of `out` with the entity `first`.
    """
    size = side.shape[1]
    for n in range(first, last):
        mine = out[n - first, start : start + size]
        for i in range(edges[n], edges[n + 1]):
            factor, columns = slope[i] * (1 - ratio[i]), side[row[i]]
            for k in range(size):
                mine[k] += factor * columns[k]


@elementwise
def add_vectors_to_side(
    first: int, last: int, ptr: Array, ids: Array, slope: Array, vectors: Array, out: Array
) -> None:
    """Add slope * last columns of the vectors of the entries of rows first..last to the rows."""
    start = vectors.shape[1] - out.shape[1]
    for t in range(first, last):
        total = out[t]
        for p in range(ptr[t], ptr[t + 1]):
            prefetch_columns(vectors, ids[min(p + AHEAD, len(ids) - 1)], start)
            factor, vector = slope[p], vectors[ids[p], start:]
            for k in range(len(total)):
                total[k] += factor * vector[k]


@elementwise
def left_out_vectors(
    ptr: Array, ids: Array, own: Array, rest: Array, sums: Array, bag_vectors: Array, out: Array
) -> None:
    """Context vector of each stored entry: its bag without itself, over its divisor."""
    size = sums.shape[1]
    for t in range(len(ptr) - 1):
        for p in range(ptr[t], ptr[t + 1]):
            inverse = 1 / rest[p]
            for k in range(size):
                out[p, k] = (sums[t, k] - own[p] * bag_vectors[ids[p], k]) * inverse


@elementwise
def spread_left_out(
    ptr: Array, ids: Array, own: Array, rest: Array, slopes: Array, g_sums: Array, g_bag: Array
) -> None:
    """Add the gradient in `left_out_vectors` to the sums and to the own vectors of the entries."""
    size = g_sums.shape[1]
    for t in range(len(ptr) - 1):
        for p in range(ptr[t], ptr[t + 1]):
            inverse = 1 / rest[p]
            mine = own[p] * inverse
            for k in range(size):
                g_sums[t, k] += slopes[p, k] * inverse
                g_bag[ids[p], k] -= slopes[p, k] * mine


@elementwise
def read_cells(
    E: Array,
    first: int,
    last: int,
    edges: Array,
    row: Array,
    ratio: Array,
    share: Array,
    itself: Array,
    intercept: Array,
    u: Array,
) -> None:
    """u of the entries of entities first..last, from E, which holds rho . z of the whole bags."""
    for n in range(first, last):
        for i in range(edges[n], edges[n + 1]):
            u[i] = E[n - first, row[i]] * ratio[i] - share[i] * itself[n] + intercept[n]


@kernel
def hide_cells(E: Array, first: int, last: int, edges: Array, row: Array, hidden: float) -> None:
    """Mark the stored entries of entities first..last, because they are not zeros."""
    for n in range(first, last):
        for i in range(edges[n], edges[n + 1]):
            E[n - first, row[i]] = hidden


@elementwise
def write_cells(
    E: Array,
    first: int,
    last: int,
    edges: Array,
    row: Array,
    ratio: Array,
    share: Array,
    slope: Array,
    own_slope: Array,
    g_intercept: Array,
) -> None:
    """Write the slopes of entries, scaled to the whole bag, to their cells; sum their own parts."""
    for n in range(first, last):
        own, total = own_slope[n], g_intercept[n]
        for i in range(edges[n], edges[n + 1]):
            E[n - first, row[i]] = slope[i] * ratio[i]
            own += slope[i] * share[i]
            total += slope[i]
        own_slope[n], g_intercept[n] = own, total


@elementwise
def add_without_own(part: Array, own: Array, vectors: Array, fresh: bool, out: Array) -> None:
    """out[n] (+)= part[n] - own[n] * vectors[n]; vectors may have fewer columns."""
    size = vectors.shape[1]
    for n in range(len(own)):
        mine, gathered, vector, total = own[n], part[n], vectors[n], out[n]
        for k in range(size):
            more = gathered[k] - mine * vector[k]
            total[k] = more if fresh else total[k] + more
        for k in range(size, out.shape[1]):
            total[k] = gathered[k] if fresh else total[k] + gathered[k]
