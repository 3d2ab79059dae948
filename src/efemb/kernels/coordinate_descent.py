"""Regressions of items on a few others: the choice of regressors, and non-negative weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb.kernels.jit import kernel

Array = Any
SWEEPS = 30
SMALL_CHANGE = 1e-4


@kernel
def drop_smaller(ptr: Array, values: Array, n_largest: int) -> None:
    """Set all but the n largest values of each row to 0; of equal values the first stay."""
    for row in range(len(ptr) - 1):
        own = values[ptr[row] : ptr[row + 1]]
        size = len(own)
        if size <= n_largest:
            continue
        least = np.partition(own, size - n_largest)[size - n_largest]
        ties = n_largest
        for i in range(size):
            if own[i] > least:
                ties -= 1
        for i in range(size):
            if own[i] < least:
                own[i] = 0
            elif own[i] == least:
                if ties > 0:
                    ties -= 1
                else:
                    own[i] = 0


@kernel
def descend(ptr: Array, ids: Array, together: Array, diagonal: Array, weights: Array) -> None:
    """Fill weights: for each item n, argmin over b >= 0 of b' G b / 2 - b' g.

    The candidates of n are ids[ptr[n]:ptr[n + 1]], and g their values of `together`. G_ij is the
    value of j in the list of i, or of i in the list of j, and 0 if neither is a candidate of the
    other, so that an item needs only the lists of its candidates. G_ii is `diagonal`.
    """
    nothing = weights[:0].sum()  # zero in the precision of the arrays
    place = np.full(len(ptr) - 1, -1, np.int32)
    most = 0
    for n in range(len(ptr) - 1):
        most = max(most, ptr[n + 1] - ptr[n])
    gram = np.zeros((most, most), together.dtype)
    rest = np.zeros(most, together.dtype)  # g - G b without the diagonal
    for n in range(len(ptr) - 1):
        first, size = ptr[n], ptr[n + 1] - ptr[n]
        for i in range(size):
            place[ids[first + i]] = i
            gram[i, :size] = 0
        for i in range(size):
            m = ids[first + i]
            for p in range(ptr[m], ptr[m + 1]):
                j = place[ids[p]]
                if j >= 0:
                    gram[i, j] = gram[j, i] = together[p]
        b = weights[first : first + size]
        rest[:size] = together[first : first + size]
        for _ in range(SWEEPS):
            change = nothing
            for i in range(size):
                moved = max(rest[i] / diagonal[ids[first + i]], nothing)
                step = moved - b[i]
                if step != 0:
                    change = max(change, abs(step))
                    b[i] = moved
                    for j in range(size):
                        rest[j] -= gram[i, j] * step
            if change < SMALL_CHANGE:
                break
        for i in range(size):
            place[ids[first + i]] = -1
