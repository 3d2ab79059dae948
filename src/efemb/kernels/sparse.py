"""Kernels on rows of sparse matrices."""

from __future__ import annotations

from typing import Any

from numba import njit

Array = Any


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def bag_sums(ptr: Array, ids: Array, values: Array, vectors: Array, out: Array) -> None:
    """out[t] = sum over the entries of row t of value * vectors[id]."""
    size = vectors.shape[1]
    for t in range(len(ptr) - 1):
        for k in range(size):
            out[t, k] = 0.0
        for p in range(ptr[t], ptr[t + 1]):
            value = values[p]
            row = vectors[ids[p]]
            for k in range(size):
                out[t, k] += value * row[k]


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def scatter_bags(ptr: Array, ids: Array, values: Array, sums: Array, out: Array) -> None:
    """out[id] += value * sums[t] over the entries of each row t: the transpose of bag_sums."""
    size = sums.shape[1]
    for t in range(len(ptr) - 1):
        for p in range(ptr[t], ptr[t + 1]):
            value = values[p]
            row = out[ids[p]]
            for k in range(size):
                row[k] += value * sums[t, k]
