"""Kernels of the generic solver: scatter the gradient of each term."""

from __future__ import annotations

from typing import Any

from efemb.kernels.compiling import elementwise

Array = Any


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
