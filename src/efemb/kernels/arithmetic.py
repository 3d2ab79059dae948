"""Logistic and exponential function inside kernels, for either precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from efemb.kernels.zero_terms import exp32, exp32_within


def logistic(u: Any) -> Any:
    """1 / (1 + exp(-u)), fast in float32."""
    raise NotImplementedError  # kernels use the function below


@overload(logistic, inline="always")
def _logistic(u: Any) -> Any:
    one = np.float32(1.0)

    def single(u: Any) -> Any:
        return one / (one + exp32(-u))

    def double(u: Any) -> Any:
        return 1.0 / (1.0 + math.exp(-u))

    return single if u == types.float32 else double


def exponential(u: Any) -> Any:
    """exp(u), fast in float32."""
    raise NotImplementedError  # kernels use the function below


@overload(exponential, inline="always")
def _exponential(u: Any) -> Any:
    def single(u: Any) -> Any:
        return exp32(u)

    def double(u: Any) -> Any:
        return math.exp(u)

    return single if u == types.float32 else double


def positive_exponential(u: Any) -> Any:
    """exp(u) of u clipped to -80..80: never 0, never infinite."""
    raise NotImplementedError  # kernels use the function below


@overload(positive_exponential, inline="always")
def _positive_exponential(u: Any) -> Any:
    low, high = np.float32(-80.0), np.float32(80.0)

    def single(u: Any) -> Any:
        return exp32_within(min(max(u, low), high))

    def double(u: Any) -> Any:
        return math.exp(min(max(u, -80.0), 80.0))

    return single if u == types.float32 else double
