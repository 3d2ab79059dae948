"""Rows of a Poisson model with additive means (log link), zeros in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb.kernels.jit import elementwise
from efemb.kernels.row_entries import entry_products
from efemb.kernels.sparse import add_bags, bag_sums

Array = Any


@elementwise
def _close_rows(
    first: int, last: int, total: Array, row_weight: Array, every: Array, sums: Array,
    g_sums: Array, weighted: Array,
) -> Any:  # fmt: skip
    """Gradient of the bags with all cells as zeros, sum of weight * Z, and two row weights."""
    filled = empty = 0.0
    for t in range(first, last):
        scale, some = row_weight[t] / total[t], False
        for k in range(len(every)):
            some |= sums[t, k] != 0
            weighted[k] += scale * sums[t, k]
            g_sums[t, k] = -scale * every[k]
        if some:
            filled += row_weight[t]
        else:
            empty += row_weight[t]
    return filled, empty


@elementwise
def _add_side(
    first: int, last: int, total: Array, side: Array, sums: Array
) -> None:  # fmt: skip
    """Add the columns of terms; they are divided by the total later, like bags."""
    size = side.shape[1]
    start = sums.shape[1] - size
    for t in range(first, last):
        for k in range(size):
            sums[t, start + k] = side[t, k] * total[t]


@elementwise
def _add_term_part(
    first: int, last: int, term_part: Array, as_zero: Array, as_entry: Array
) -> None:
    """Add the contribution of terms to u of some entries."""
    for p in range(first, last):
        as_zero[p] += term_part[p]
        as_entry[p] += term_part[p]


@elementwise
def additive_rows(
    first: int, last: int, bags: Any, places: Any, x: Array, total: Array, side: Array,
    term_part: Array, vectors: Any, every: Array, weight: Array, row_weight: Array,
    back_weight: Array, floor: Any,
    sums: Array, g_sums: Array, as_zero: Array, as_entry: Array,
    factor: Array, own_part: Array, net: Array, slopes: Array, weighted: Array,
) -> Any:  # fmt: skip
    """Value of the entries of rows first..last, and their contribution to each gradient.

    An entry's mean is max(u, floor): log-density x log(mean) - mean, slope (x - mean) / u above the
    floor. Its contribution as a zero is subtracted: -mean, slope -1. `side` are the columns of
    terms next to the sums of the bags, and `term_part` their contribution to u of the entries; each
    is empty if there is none.
    """
    bag_ptr, bag_ids, bag_values, bag = bags
    ptr, ids, own, rest = places
    mine = slice(first, last)
    bag_sums(bag_ptr[first : last + 1], bag_ids, bag_values, bag, sums[mine])
    here = ptr[first : last + 1]
    shape = (here, ids, own, rest, total[mine], sums[mine])
    entry_products(*shape, *vectors, bag.shape[1], as_zero, as_entry)
    if len(side):
        _add_side(first, last, total, side, sums)
    if len(term_part):
        _add_term_part(ptr[first], ptr[last], term_part, as_zero, as_entry)
    filled, empty = _close_rows(first, last, total, row_weight, every, sums, g_sums, weighted)
    value = 0.0
    for t in range(first, last):
        for p in range(ptr[t], ptr[t + 1]):
            mean, zero_mean = max(as_entry[p], floor), max(as_zero[p], floor)
            value += weight[p] * (x[p] * np.log(mean) - mean) + back_weight[p] * zero_mean
            slope = weight[p] * (x[p] - mean) / mean if as_entry[p] > floor else 0 * mean
            zero_slope = -back_weight[p] if as_zero[p] > floor else 0 * mean
            slopes[p] = slope
            gain = slope / rest[p]
            own_part[p] = gain * own[p]
            net[p] = slope - zero_slope
            factor[p] = gain - zero_slope / total[t]
    add_bags(here, ids, factor, vectors[0], g_sums[mine])
    return value, filled, empty
