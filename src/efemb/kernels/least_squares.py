"""Weighted least squares of many rows against the same columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = Any


@njit(cache=True, nogil=True, error_model="numpy")
def weighted_rows(
    ptr: Array,
    ids: Array,
    weight: Array,
    columns: Array,
    gram: Array,
    rows: Array,
    left_out: Array,
    out: Array,
) -> None:
    """argmin over v of sum_n w_n (p_n - v . c_n)^2 + penalty |v|^2 of some rows of a sparse matrix.

    Stored cells have p = 1 and w = 1 + weight, the others p = 0 and w = 1; cell left_out[i] of the
    i-th row (-1: none) has w = 0. `gram` is the sum of all c c' plus the penalty.
    """
    size = columns.shape[1]
    right = np.empty(size, columns.dtype)
    for i in range(len(rows)):
        left = gram.copy()
        right[:] = 0
        skipped = left_out[i]
        if skipped >= 0:
            for a in range(size):
                for b in range(size):
                    left[a, b] -= columns[skipped, a] * columns[skipped, b]
        for p in range(ptr[rows[i]], ptr[rows[i] + 1]):
            n = ids[p]
            if n != skipped:
                for a in range(size):
                    part = weight[p] * columns[n, a]
                    right[a] += columns[n, a] + part
                    for b in range(size):
                        left[a, b] += part * columns[n, b]
        out[i] = np.linalg.solve(left, right)
