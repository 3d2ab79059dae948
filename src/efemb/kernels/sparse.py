"""Sums of vectors over the entries of sparse rows, and their transposes."""

from __future__ import annotations

from typing import Any

from efemb.kernels.jit import elementwise, kernel

Array = Any


@elementwise
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


@elementwise
def scatter_bags(ptr: Array, ids: Array, values: Array, sums: Array, out: Array) -> None:
    """out[id] += value * sums[t] over the entries of each row t: the transpose of bag_sums."""
    size = sums.shape[1]
    for t in range(len(ptr) - 1):
        for p in range(ptr[t], ptr[t + 1]):
            value = values[p]
            row = out[ids[p]]
            for k in range(size):
                row[k] += value * sums[t, k]


@elementwise
def add_bags(ptr: Array, ids: Array, values: Array, vectors: Array, out: Array) -> None:
    """out[t] += sum over the entries of row t of value * vectors[id]."""
    for t in range(len(ptr) - 1):
        for p in range(ptr[t], ptr[t + 1]):
            value = values[p]
            row = vectors[ids[p]]
            for k in range(vectors.shape[1]):
                out[t, k] += value * row[k]


@kernel
def sort_by_column(ids: Array, edges: Array, order: Array) -> None:
    """Places of the entries of column n: order[edges[n] : edges[n + 1]]; edges has 0s, n + 2."""
    for p in range(len(ids)):
        edges[ids[p] + 2] += 1
    for n in range(2, len(edges)):
        edges[n] += edges[n - 1]
    for p in range(len(ids)):
        n = ids[p] + 1
        order[edges[n]] = p
        edges[n] += 1


@elementwise
def column_sums(
    first: int,
    last: int,
    edges: Array,
    row: Array,
    values: Array,
    sums: Array,
    own: Array,
    others: Array,
    start: Array,
    fresh: bool,
    out: Array,
) -> None:
    """out[n] += start + value * sums[t] over the entries of column n, - own[n] * others[n].

    For columns first..last, whose entries are at edges[n]..edges[n + 1]. Rows of `out` have as many
    numbers as `start`; others[n] may have fewer. `fresh` overwrites `out` instead of adding to it.
    """
    size, n_others = len(start), min(len(start), others.shape[1])
    for n in range(first, last):
        total = out[n]
        for k in range(size):
            total[k] = start[k] if fresh else total[k] + start[k]
        for i in range(edges[n], edges[n + 1]):
            value, part = values[i], sums[row[i]]
            for k in range(size):
                total[k] += value * part[k]
        if n < len(own) and own[n] != 0:
            mine, other = own[n], others[n]
            for k in range(n_others):
                total[k] -= mine * other[k]


@elementwise
def scatter_targets(slope: Array, context: Array, index: Array, out: Array) -> None:
    """out[index[i]] += slope[i] * context[i]."""
    for i in range(len(index)):
        for k in range(context.shape[1]):
            out[index[i], k] += slope[i] * context[i, k]


@elementwise
def scatter_sums(
    slope: Array,
    vectors: Array,
    vector: Array,
    index: Array,
    scale: Array,
    sign: float,
    out: Array,
) -> None:
    """out[index[i]] += sign * slope[i] / scale[i] * vectors[vector[i]]."""
    for i in range(len(index)):
        factor = sign * slope[i] / scale[i]
        for k in range(vectors.shape[1]):
            out[index[i], k] += factor * vectors[vector[i], k]
