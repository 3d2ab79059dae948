"""Regressions of items on a few others: non-negative weights by coordinate descent."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb.kernels.jit import kernel

Array = Any
SWEEPS = 30
SMALL_CHANGE = 1e-4


@kernel
def descend(
    ptr: Array, ids: Array, target: Array, gram_ptr: Array, gram_ids: Array, gram: Array,
    diagonal: Array, weights: Array,
) -> None:  # fmt: skip
    """Fill weights: for each item n, argmin over b >= 0 of b' G b / 2 - b' g.

    Its candidates are ids[ptr[n]:ptr[n + 1]], with `target` the numbers g; G are their rows of the
    sparse symmetric `gram` (zero where nothing is stored) and of `diagonal`.
    """
    place = np.full(len(ptr) - 1, -1, np.int64)
    for n in range(len(ptr) - 1):
        first, size = ptr[n], ptr[n + 1] - ptr[n]
        block = np.zeros((size, size), gram.dtype)
        for i in range(size):
            place[ids[first + i]] = i
        for i in range(size):
            m = ids[first + i]
            for p in range(gram_ptr[m], gram_ptr[m + 1]):
                j = place[gram_ids[p]]
                if j >= 0:
                    block[i, j] = gram[p]
            block[i, i] = 0.0
        b = weights[first : first + size]
        for _ in range(SWEEPS):
            change = b[:0].sum()
            for i in range(size):
                rest = target[first + i]
                for j in range(size):
                    rest -= block[i, j] * b[j]
                moved = max(rest / diagonal[ids[first + i]], target[first] * 0)
                change = max(change, abs(moved - b[i]))
                b[i] = moved
            if change < SMALL_CHANGE:
                break
        for i in range(size):
            place[ids[first + i]] = -1
