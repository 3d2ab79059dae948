"""Kernels of the optimizers: one pass over parameters and state, in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb.kernels.arithmetic import positive_exponential
from efemb.kernels.jit import elementwise, use_wide_vectors

Array = Any


@elementwise
def adagrad(
    theta: Array,
    gradient: Array,
    pitch: int,
    squares: Array,
    step: float,
    epsilon: float,
    scale: float,
    shrink: float,
) -> None:
    """theta += step g / sqrt(sum of g^2 + epsilon), g = scale gradient - shrink theta.

    The gradient is flat; its rows begin `pitch` places apart.
    """
    for i in range(theta.shape[0]):
        row, total = theta[i], squares[i]
        slope = gradient[i * pitch : i * pitch + len(row)]
        for k in range(len(row)):
            g = scale * slope[k] - shrink * row[k]
            total[k] += g * g
            row[k] += step * g / np.sqrt(total[k] + epsilon)


@elementwise
def adagrad_positive(
    theta: Array,
    vectors: Array,
    gradient: Array,
    pitch: int,
    squares: Array,
    step: float,
    epsilon: float,
    scale: float,
    shrink: float,
) -> None:
    """`adagrad` for theta = log v: g = v (scale gradient - shrink v), and v is updated, too."""
    use_wide_vectors()
    for i in range(theta.shape[0]):
        row, v, total = theta[i], vectors[i], squares[i]
        slope = gradient[i * pitch : i * pitch + len(row)]
        for k in range(len(row)):
            g = v[k] * (scale * slope[k] - shrink * v[k])
            total[k] += g * g
            row[k] += step * g / np.sqrt(total[k] + epsilon)
            v[k] = positive_exponential(row[k])


@elementwise
def adagrad_rows(
    theta: Array,
    rows: Array,
    gradient: Array,
    squares: Array,
    waited: Array,
    step: float,
    epsilon: float,
    scale: float,
    shrink: float,
) -> None:
    """`adagrad` for some rows only, each shrunk for all steps since its last visit."""
    for i in range(len(rows)):
        row = rows[i]
        decay = shrink * waited[i]
        for k in range(theta.shape[1]):
            g = scale * gradient[i, k] - decay * theta[row, k]
            squares[row, k] += g * g
            theta[row, k] += step * g / np.sqrt(squares[row, k] + epsilon)


@elementwise
def adam(
    theta: Array,
    gradient: Array,
    mean: Array,
    squares: Array,
    step: float,
    epsilon: float,
    beta1: float,
    beta2: float,
    scale: float,
    shrink: float,
) -> None:
    """Adam with the bias correction folded into `step`, g = scale gradient - shrink theta."""
    for i in range(theta.size):
        g = scale * gradient[i] - shrink * theta[i]
        mean[i] += (1 - beta1) * (g - mean[i])
        squares[i] += (1 - beta2) * (g * g - squares[i])
        theta[i] += step * mean[i] / (np.sqrt(squares[i]) + epsilon)
