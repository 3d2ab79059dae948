"""Fused float32 passes over a block of inner products whose observations are all zero.

On entry E[n, t] (in `softmax` E[t, n]) holds rho_n . z_t; on exit the slope w (t(0) - E[t]) of each
term with respect to it. The sums of an entity's slopes are added to `column`; the sum of weighted
log-densities is returned. Of a row of E only as many places are used as rows have weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from efemb.kernels.jit import elementwise, inlined, kernel, summing, use_wide_vectors

Array = Any
F = np.float32
TINY = F(1e-30)
LOW, HIGH = F(-80.0), F(30.0)  # a weighted exp(-80) is not yet a denormal, which would be slow


@intrinsic
def _float_of_bits(typing_context: Any, bits: Any) -> Any:
    """Reinterpret 32 bits as a float."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), build


@intrinsic
def _bits_of_float(typing_context: Any, x: Any) -> Any:
    """Reinterpret a float as 32 bits."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), build


@inlined
def exp32_within(x: Any) -> Any:
    """exp of a float32 in -87..88 to 4e-7, in operations that vectorize.

    2^n times a polynomial (minimax on -log(2)/2..log(2)/2, relative error 8e-8) of the rest r. A
    sum with 1.5 * 2^23 has the nearest integer in its last bits. Not for `summing` kernels: in
    another order n would be no integer.
    """
    shifted = x * F(1.44269504) + F(12582912.0)
    n = shifted - F(12582912.0)
    r = x - n * F(0.69314718)  # exact if the product is fused with the sum
    p = F(8.2976479665e-3)
    p = p * r + F(4.1915431435e-2)
    p = p * r + F(1.6667575091e-1)
    p = p * r + F(4.9998894413e-1)
    p = p * r + F(9.9999969181e-1)
    y = p * r + F(1.0000000717)
    power = types.int32(_bits_of_float(shifted) << types.int32(23))  # the exponent of 2^n
    return _float_of_bits(types.int32(_bits_of_float(y) + power))


@inlined
def exp32(x: Any) -> Any:
    """exp of a float32, clipped to -80..30, to 4e-7."""
    return exp32_within(min(max(x, LOW), HIGH))


@inlined
def log32(x: Any) -> Any:
    """Logarithm of a float32 >= 1 to 2e-7, in operations that vectorize."""
    bits: Any = _bits_of_float(x)
    exponent = (bits >> types.int32(23)) - types.int32(127)
    m = _float_of_bits(types.int32((bits & types.int32(0x007FFFFF)) | types.int32(0x3F800000)))
    high = m > F(1.41421356)
    z = (m * F(0.5) if high else m) - F(1.0)
    e = F(exponent) + (F(1.0) if high else F(0.0))
    p = F(7.0376836292e-2)
    p = p * z - F(1.1514610310e-1)
    p = p * z + F(1.1676998740e-1)
    p = p * z - F(1.2420140846e-1)
    p = p * z + F(1.4249322787e-1)
    p = p * z - F(1.6668057665e-1)
    p = p * z + F(2.0000714765e-1)
    p = p * z - F(2.4999993993e-1)
    p = p * z + F(3.3333331174e-1)
    square = z * z
    return z + p * z * square - F(0.5) * square + e * F(0.693147181)


@summing
def _sum_row(E: Array, i: int, length: int) -> Any:
    total = F(0.0)
    for j in range(length):
        total += E[i, j]
    return total


@elementwise
def _poisson(E: Array, n: int, b: Any, w: Any, row_weight: Array) -> None:
    """Slope -w exp(u)."""
    use_wide_vectors()
    for t in range(len(row_weight)):
        E[n, t] = -w * row_weight[t] * exp32(E[n, t] + b)


@elementwise
def _negative_binomial(
    E: Array, n: int, b: Any, w: Any, row_weight: Array, size: Any, value: Array
) -> None:
    """Slope -w r e^u / (r + e^u); log-density -r log(1 + e^u / r)."""
    use_wide_vectors()
    w *= size
    for t in range(len(row_weight)):
        both = w * row_weight[t]
        odds = exp32(E[n, t] + b) / size
        E[n, t] = -both * odds / (F(1.0) + odds)
        above = F(1.0) + odds
        rounded = above - F(1.0)  # the odds after rounding, of which the logarithm is taken
        gain = odds / max(rounded, TINY)
        value[t] -= both * (log32(above) * gain if rounded > F(0.0) else odds)


@kernel
def zero_slopes(
    E: Array, intercept: Array, weight: Array, row_weight: Array, size: float, column: Array
) -> float:
    """Negative binomial of a size; 1 is Bernoulli, infinity Poisson, whose value is its slope."""
    poisson = np.isinf(size)
    values = np.zeros(0 if poisson else len(row_weight), np.float32)
    value = 0.0
    for n in range(len(intercept)):
        if poisson:
            _poisson(E, n, intercept[n], weight[n], row_weight)
        else:
            _negative_binomial(E, n, intercept[n], weight[n], row_weight, F(size), values)
        total = _sum_row(E, n, len(row_weight))
        column[n] += total
        value += total
    return value if poisson else float(values.sum())


@elementwise
def _shift_row(E: Array, i: int, intercept: Array) -> Any:
    """Add the intercepts to a row; return its largest number."""
    top = E[i, 0] + intercept[0]
    for j in range(E.shape[1]):
        u = E[i, j] + intercept[j]
        E[i, j] = u
        top = u if u > top else top
    return top


@elementwise
def _exp_row(E: Array, i: int, top: Any) -> None:
    use_wide_vectors()
    for j in range(E.shape[1]):
        E[i, j] = exp32(E[i, j] - top)


@elementwise
def _scale_row(E: Array, i: int, factor: Any, column: Array) -> None:
    for j in range(E.shape[1]):
        slope = factor * E[i, j]
        E[i, j] = slope
        column[j] += slope


@kernel
def softmax(E: Array, intercept: Array, weight: Array, column: Array, normalizer: Array) -> None:
    """Slope -weight[i] softmax(u)_j; `normalizer` gets logsumexp_j u_j of each row."""
    for i in range(E.shape[0]):
        top = _shift_row(E, i, intercept)
        _exp_row(E, i, top)
        total = _sum_row(E, i, E.shape[1])
        normalizer[i] = top + np.log(total)
        _scale_row(E, i, -weight[i] / total, column)
