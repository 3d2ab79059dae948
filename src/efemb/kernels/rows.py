"""Kernels of the row solver: inner products of stored entries, and their gradient."""

from __future__ import annotations

from typing import Any

from numba import njit

Array = Any


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def entry_products(
    ptr: Array,
    ids: Array,
    own: Array,
    rest: Array,
    total: Array,
    sums: Array,
    bag_vectors: Array,
    vectors: Array,
    intercept: Array,
    as_zero: Array,
    as_entry: Array,
) -> None:
    """u of each stored entry, with the whole bag (as_zero) and without itself (as_entry)."""
    size = vectors.shape[1]
    for t in range(len(ptr) - 1):
        for p in range(ptr[t], ptr[t + 1]):
            n = ids[p]
            whole = vectors[n, 0] * 0
            itself = vectors[n, 0] * 0
            for k in range(size):
                whole += sums[t, k] * vectors[n, k]
                itself += bag_vectors[n, k] * vectors[n, k]
            as_zero[p] = whole / total[t] + intercept[n]
            as_entry[p] = (whole - own[p] * itself) / rest[p] + intercept[n]


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def entry_gradient(
    ptr: Array,
    ids: Array,
    own: Array,
    rest: Array,
    total: Array,
    sums: Array,
    bag_vectors: Array,
    vectors: Array,
    entry_slope: Array,
    zero_slope: Array,
    g_vectors: Array,
    g_bag: Array,
    g_intercept: Array,
    g_sums: Array,
) -> None:
    """Add the entries' own terms and take back what they added as zeros."""
    size = vectors.shape[1]
    for t in range(len(ptr) - 1):
        for p in range(ptr[t], ptr[t + 1]):
            n = ids[p]
            gain = entry_slope[p] / rest[p]
            both = gain - zero_slope[p] / total[t]
            mine = gain * own[p]
            g_intercept[n] += entry_slope[p] - zero_slope[p]
            for k in range(size):
                vector = vectors[n, k]
                g_vectors[n, k] += both * sums[t, k] - mine * bag_vectors[n, k]
                g_bag[n, k] -= mine * vector
                g_sums[t, k] += both * vector


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def left_out_vectors(
    ptr: Array, ids: Array, own: Array, rest: Array, sums: Array, bag_vectors: Array, out: Array
) -> None:
    """Context vector of each stored entry: its bag without itself, divided."""
    size = sums.shape[1]
    for t in range(len(ptr) - 1):
        for p in range(ptr[t], ptr[t + 1]):
            inverse = 1 / rest[p]
            for k in range(size):
                out[p, k] = (sums[t, k] - own[p] * bag_vectors[ids[p], k]) * inverse


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def spread_left_out(
    ptr: Array, ids: Array, own: Array, rest: Array, slopes: Array, g_sums: Array, g_bag: Array
) -> None:
    """Add d/d(left-out context vector) of each entry to its bag and to itself."""
    size = g_sums.shape[1]
    for t in range(len(ptr) - 1):
        for p in range(ptr[t], ptr[t + 1]):
            inverse = 1 / rest[p]
            mine = own[p] * inverse
            for k in range(size):
                g_sums[t, k] += slopes[p, k] * inverse
                g_bag[ids[p], k] -= slopes[p, k] * mine


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def take_own(
    slope: Array, vectors: Array, bag_vectors: Array, g_vectors: Array, g_bag: Array
) -> None:
    """Subtract slope[n] * alpha_n from the gradient of rho_n, and the other way round."""
    for n in range(len(slope)):
        own = slope[n]
        if own != 0:
            for k in range(vectors.shape[1]):
                g_vectors[n, k] -= own * bag_vectors[n, k]
                g_bag[n, k] -= own * vectors[n, k]


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def entry_values(
    ptr: Array,
    ids: Array,
    own: Array,
    rest: Array,
    sums: Array,
    vectors: Array,
    itself: Array,
    intercept: Array,
    u: Array,
) -> None:
    """u of each stored entry given its bag without itself; `itself` is rho_n . alpha_n."""
    size = vectors.shape[1]
    for t in range(len(ptr) - 1):
        for p in range(ptr[t], ptr[t + 1]):
            n = ids[p]
            whole = vectors[n, 0] * 0
            for k in range(size):
                whole += sums[t, k] * vectors[n, k]
            u[p] = (whole - own[p] * itself[n]) / rest[p] + intercept[n]


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def read_cells(
    E: Array,
    ptr: Array,
    ids: Array,
    own: Array,
    rest: Array,
    total: Array,
    itself: Array,
    intercept: Array,
    u: Array,
) -> None:
    """The same from E, which holds rho . z of every cell with the whole bag."""
    for t in range(len(ptr) - 1):
        for p in range(ptr[t], ptr[t + 1]):
            n = ids[p]
            u[p] = (E[t, n] * total[t] - own[p] * itself[n]) / rest[p] + intercept[n]


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def hide_cells(E: Array, first: int, last: int, ptr: Array, ids: Array, hidden: float) -> None:
    """Mark the stored entries in columns first..last of E: they are no zeros."""
    for t in range(len(ptr) - 1):
        for p in range(ptr[t], ptr[t + 1]):
            n = ids[p]
            if first <= n < last:
                E[t, n - first] = hidden


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def write_cells(
    E: Array,
    first: int,
    last: int,
    ptr: Array,
    ids: Array,
    own: Array,
    rest: Array,
    total: Array,
    slope: Array,
    own_slope: Array,
    g_intercept: Array,
) -> None:
    """Put the entries' slopes into their cells, scaled to the whole bag, and add up the rest."""
    for t in range(len(ptr) - 1):
        for p in range(ptr[t], ptr[t + 1]):
            n = ids[p]
            if first <= n < last:
                part = slope[p] / rest[p]
                E[t, n - first] = part * total[t]
                own_slope[n] += part * own[p]
                g_intercept[n] += slope[p]
