"""Kernels of hierarchical Poisson factorization: one pass over the stored counts, and fold-in."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from efemb.kernels.jit import elementwise, kernel, summing

Array = Any
LEAST = 1e-150


@kernel
def exp_digamma(x: float) -> float:
    """exp(digamma(x)), x > 0: Stirling's series at z = x + 6, less 1/x + ... + 1/(x + 5).

    Bounded away from 0, to which it would be rounded for x < 0.0015, because shares divide by it.
    """
    z = x + 6.0
    inverse = 1.0 / z
    w = inverse * inverse
    series = 1 / 240 - w * (1 / 132 - w * (691 / 32760 - w / 12))
    series = w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w * series)))
    # The six terms in one fraction: x (x + 5), (x + 1)(x + 4) and (x + 2)(x + 3) differ by
    # constants.
    y = x * (x + 5.0)
    steps = (2.0 * x + 5.0) * ((3.0 * y + 20.0) * y + 24.0) / (y * (y + 4.0) * (y + 6.0))
    return max(z * math.exp(-0.5 * inverse - series - steps), LEAST)


@kernel
def gamma_posterior(
    sums: Array, shape: float, top: Array, total: Array, taken: Array, mean: Array, log_mean: Array
) -> None:
    """Mean and exp(E[log]) of factors with shape `shape` + sums and rate top + total - taken.

    sums, taken, mean, log_mean (rows, K); top (rows,): rates of the prior; total (K,).
    """
    for t in range(sums.shape[0]):
        for k in range(sums.shape[1]):
            alpha = shape + sums[t, k]
            rate = top[t] + total[k] - taken[t, k]
            mean[t, k] = alpha / rate
            log_mean[t, k] = exp_digamma(alpha) / rate


@summing
def share_counts(
    ptr: Array, ids: Array, x: Array, row: Array, column: Array, by_row: Array, by_column: Array
) -> None:
    """Share each count among the components in proportion to row[t, k] column[n, k], and add up.

    by_row[t, k] = sum over n of x_tn phi_tnk, by_column[n, k] = sum over t of it.
    """
    size = row.shape[1]
    by_column[:] = 0.0
    for t in range(len(ptr) - 1):
        mine, sums = row[t], by_row[t]
        for k in range(size):
            sums[k] = 0.0
        for p in range(ptr[t], ptr[t + 1]):
            other, back = column[ids[p]], by_column[ids[p]]
            total = 0.0
            for k in range(size):
                total += mine[k] * other[k]
            each = x[p] / total
            for k in range(size):
                sums[k] += each * other[k]
                back[k] += each * mine[k]
        for k in range(size):
            sums[k] *= mine[k]
    for n in range(column.shape[0]):
        for k in range(size):
            by_column[n, k] *= column[n, k]


@summing
def log_products(ptr: Array, ids: Array, row: Array, column: Array, out: Array) -> None:
    """out[p] = log(row[t] . column[n]) of each stored entry."""
    size = row.shape[1]
    for t in range(len(ptr) - 1):
        for p in range(ptr[t], ptr[t + 1]):
            total = 0.0
            for k in range(size):
                total += row[t, k] * column[ids[p], k]
            out[p] = math.log(total)


@elementwise
def fold_in_row(row: Any, prior: Any, tol: float, max_iter: int, theta: Array) -> int:
    """Coordinate ascent for one row, without one cell at a time.

    row: counts (n,); exp(E[log beta]) of their entities (n, K); place of each left-out cell among
    them, or -1, (m,); E[beta] of the left-out cells (m, K); sum of E[beta] over all entities (K,).
    Every cell starts at the same point. The bound has several maxima, and a start at the solution
    of the whole row would often lead to the one that contains the left-out count.
    """
    counts, others, own, left_out, total = row
    shape, top_shape, top_rate = prior
    m, size = theta.shape
    place = np.arange(m)
    xi = np.full(m, top_shape / top_rate)
    current = np.ones((m, size))
    theta[:] = 0.0
    active = m
    for _ in range(max_iter):
        shares = np.dot(current[:active], others.T)
        for j in range(active):
            for p in range(len(counts)):
                shares[j, p] = counts[p] / shares[j, p]
            if own[place[j]] >= 0:
                shares[j, own[place[j]]] = 0.0
        sums = np.dot(shares, others)
        j = 0
        while j < active:
            i = place[j]
            change = largest = activity = 0.0
            for k in range(size):
                alpha = shape + current[j, k] * sums[j, k]
                rate = xi[j] + total[k] - left_out[i, k]
                value = alpha / rate
                change = max(change, abs(value - theta[i, k]))
                largest = max(largest, value)
                activity += value
                theta[i, k] = value
                current[j, k] = exp_digamma(alpha) / rate
            xi[j] = top_shape / (top_rate + activity)
            if change > tol * largest:
                j += 1
                continue
            active -= 1  # converged: the last one takes its place
            place[j], xi[j] = place[active], xi[active]
            current[j], sums[j] = current[active], sums[active]
        if active == 0:
            break
    return int(active)


@elementwise
def fold_in(
    ptr: Array,
    ids: Array,
    x: Array,
    rows: Array,
    entities: Array,
    mean: Array,
    log_mean: Array,
    total: Array,
    shape: float,
    top_shape: float,
    top_rate: float,
    tol: float,
    max_iter: int,
    theta: Array,
) -> int:
    """theta[i] = posterior mean of the factor of row rows[i], given all its cells but entities[i].

    ptr, ids, x: the rows (CSR); mean, log_mean (N, K): E[beta] and exp(E[log beta]); total (K,):
    sum of the means. Neighboring cells of a row are solved together. Returns the number of cells
    that had not converged after max_iter rounds.
    """
    unfinished = 0
    start = 0
    while start < len(rows):
        stop = start + 1
        while stop < len(rows) and rows[stop] == rows[start]:
            stop += 1
        first, last = ptr[rows[start]], ptr[rows[start] + 1]
        others = np.empty((last - first, mean.shape[1]))
        for p in range(first, last):
            others[p - first] = log_mean[ids[p]]
        own = np.full(stop - start, -1)
        for i in range(start, stop):
            for p in range(first, last):
                if ids[p] == entities[i]:
                    own[i - start] = p - first
        row = (x[first:last], others, own, mean[entities[start:stop]], total)
        prior = (shape, top_shape, top_rate)
        unfinished += fold_in_row(row, prior, tol, max_iter, theta[start:stop])
        start = stop
    return unfinished
