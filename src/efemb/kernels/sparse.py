"""Kernels on rows of sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = Any


@njit(cache=True, nogil=True)
def gather_rows(ptr: Array, rows: Array) -> Array:
    """CSR pointer of the selected rows, and the places of their entries."""
    new_ptr = np.zeros(len(rows) + 1, np.int64)
    for i in range(len(rows)):
        new_ptr[i + 1] = new_ptr[i] + ptr[rows[i] + 1] - ptr[rows[i]]
    where = np.empty(new_ptr[-1], np.int64)
    for i in range(len(rows)):
        start = ptr[rows[i]]
        for k in range(new_ptr[i], new_ptr[i + 1]):
            where[k] = start + k - new_ptr[i]
    return new_ptr, where


@njit(cache=True, nogil=True, fastmath=True)
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


@njit(cache=True, nogil=True, fastmath=True)
def scatter_bags(ptr: Array, ids: Array, values: Array, sums: Array, out: Array) -> None:
    """out[id] += value * sums[t] over the entries of each row t: the transpose of bag_sums."""
    size = sums.shape[1]
    for t in range(len(ptr) - 1):
        for p in range(ptr[t], ptr[t + 1]):
            value = values[p]
            row = out[ids[p]]
            for k in range(size):
                row[k] += value * sums[t, k]
