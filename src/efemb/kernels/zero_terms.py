"""Fused float32 passes over a block of inner products whose observations are all zero.

On entry E holds rho . z; on exit the slope w (t(0) - E[t]) d eta/du of each term. `column` gets the
slopes' column sums. The return value is the sum of the weighted log-densities.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

Array = Any
F = np.float32
# No reassociation: it would merge the two-step range reduction of `exp32` and cost five digits.
FAST = {"contract", "nnan", "ninf", "nsz", "arcp"}
LOW, HIGH = F(-87.0), F(30.0)
CHUNK = 16


@intrinsic
def _float_of_bits(typing_context: Any, bits: Any) -> Any:
    """Reinterpret 32 bits as a float."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), build


@njit(inline="always")
def exp32(x: Any) -> Any:
    """exp of a float32 in [-87, 30] to 1e-7, in operations that vectorise."""
    x = min(max(x, LOW), HIGH)
    biased = types.int32(x * F(1.44269504) + F(127.5))
    n = F(biased) - F(127.0)
    r = x - n * F(0.693359375)
    r = r - n * F(-2.12194440e-4)
    p = F(1.9875691500e-4)
    p = p * r + F(1.3981999507e-3)
    p = p * r + F(8.3334519073e-3)
    p = p * r + F(4.1665795894e-2)
    p = p * r + F(1.6666665459e-1)
    p = p * r + F(5.0000001201e-1)
    y = p * r * r + r + F(1.0)
    return y * _float_of_bits(types.int32(biased << types.int32(23)))  # type: ignore[call-arg]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def poisson(
    E: Array, intercept: Array, row_weight: Array, weight: Array, column: Array, r: float
) -> float:
    """Slope -w exp(u); log-density -exp(u)."""
    for i in range(E.shape[0]):
        w = row_weight[i]
        for j in range(E.shape[1]):
            slope = -w * weight[j] * exp32(E[i, j] + intercept[j])
            E[i, j] = slope
            column[j] += slope
    total = 0.0
    for j in range(E.shape[1]):
        total += column[j]
    return total


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def bernoulli(
    E: Array, intercept: Array, row_weight: Array, weight: Array, column: Array, r: float
) -> float:
    """Slope -w / (1 + exp(-u)); log-density -log(1 + exp(u))."""
    total = 0.0
    for i in range(E.shape[0]):
        w = row_weight[i]
        logs = 0.0
        for start in range(0, E.shape[1], CHUNK):
            stop = min(start + CHUNK, E.shape[1])
            logs += _log_terms(E, intercept, weight, i, start, stop, 1.0)
            for j in range(start, stop):
                odds = exp32(E[i, j] + intercept[j])
                slope = -w * weight[j] * odds / (F(1.0) + odds)
                E[i, j] = slope
                column[j] += slope
        total -= w * logs
    return total


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def negative_binomial(
    E: Array, intercept: Array, row_weight: Array, weight: Array, column: Array, r: float
) -> float:
    """Slope -w r e^u / (r + e^u); log-density -r log(1 + e^u / r)."""
    total = 0.0
    size = F(r)
    for i in range(E.shape[0]):
        w = row_weight[i]
        logs = 0.0
        for start in range(0, E.shape[1], CHUNK):
            stop = min(start + CHUNK, E.shape[1])
            logs += _log_terms(E, intercept, weight, i, start, stop, r)
            for j in range(start, stop):
                rate = exp32(E[i, j] + intercept[j])
                slope = -w * weight[j] * size * rate / (size + rate)
                E[i, j] = slope
                column[j] += slope
        total -= w * r * logs
    return total


@njit(inline="always")
def _log_terms(
    E: Array, intercept: Array, weight: Array, i: int, start: int, stop: int, r: float
) -> float:
    """Sum of weight * log(1 + e^u / r): one logarithm of a product where the weights agree."""
    first = weight[start]
    same = True
    product = 1.0
    for j in range(start, stop):
        same &= weight[j] == first
        product *= 1.0 + float(exp32(E[i, j] + intercept[j])) / r
    if same:
        return float(float(first) * np.log(product))
    logs = 0.0
    for j in range(start, stop):
        logs += weight[j] * np.log(1.0 + float(exp32(E[i, j] + intercept[j])) / r)
    return float(logs)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def softmax(E: Array, intercept: Array, weight: Array, column: Array, normalizer: Array) -> None:
    """Slope -weight[i] softmax(u)_j; `normalizer` gets logsumexp_j u_j of each row."""
    for i in range(E.shape[0]):
        top = F(-np.inf)
        for j in range(E.shape[1]):
            E[i, j] += intercept[j]
            top = max(top, E[i, j])
        total = 0.0
        for j in range(E.shape[1]):
            E[i, j] = exp32(E[i, j] - top)
        for j in range(E.shape[1]):
            total += E[i, j]
        normalizer[i] = top + np.log(total)
        share = F(-weight[i] / total)
        for j in range(E.shape[1]):
            slope = share * E[i, j]
            E[i, j] = slope
            column[j] += slope
