"""Predictive distributions of counts: tail probabilities and quantiles of every cell."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from efemb._typing import Floats
from efemb.errors import InputTypeError, ParameterError, check_number
from efemb.model.contexts.base import BoundContext
from efemb.model.factors import Factors
from efemb.model.predict import check_predictable, row_blocks
from efemb.model.predictor import Predictor
from efemb.model.spec import Spec

LARGEST = 2.0**53  # whole numbers up to here are exact in double precision


def tail_probabilities(spec: Spec, bound: BoundContext, vectors: Factors, k: int) -> Floats:
    """P(x_tn >= k | context) of every cell, (T, N)."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)):
        raise InputTypeError(f"k must be an integer, got {k!r}")
    least = np.asarray(float(k))
    return _of_cells(spec, bound, vectors, lambda v: spec.family.tail(least, v))


def quantiles(spec: Spec, bound: BoundContext, vectors: Factors, q: float) -> Floats:
    """The smallest x with P(x_tn <= x | context) >= q of every cell, (T, N)."""
    level = check_number("q", q, above=0, below=1)
    return _of_cells(spec, bound, vectors, lambda v: invert_tail(spec.family.tail, v, level))


def invert_tail(tail: Callable[[Floats, Floats], Floats], v: Floats, q: float | Floats) -> Floats:
    """The smallest whole x with P(X >= x + 1) <= 1 - q, by bisection."""
    low, high = np.full(v.shape, -1.0), np.zeros(v.shape)  # P(X <= low) < q <= P(X <= high)
    while True:
        short = (tail(high + 1.0, v) > 1.0 - q) & (high < LARGEST)
        if not short.any():
            break
        low = np.where(short, high, low)
        high = np.where(short, 2.0 * high + 1.0, high)
    while (high - low > 1.0).any():
        middle = np.floor(0.5 * (low + high))
        enough = tail(middle + 1.0, v) <= 1.0 - q
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def _of_cells(
    spec: Spec, bound: BoundContext, vectors: Factors, compute: Callable[[Floats], Floats]
) -> Floats:
    """A number for every cell from the linked predictor, a block of rows at a time."""
    _check_counts(spec, bound)
    numbers = np.empty((bound.n_rows, bound.n_entities))
    for rows in row_blocks(bound):
        u = Predictor(vectors).cells(spec, bound, rows).astype(np.float64)
        numbers[rows] = compute(spec.link(u))
    return numbers


def _check_counts(spec: Spec, bound: BoundContext) -> None:
    """Reject models whose counts have no distribution of their own."""
    check_predictable(spec, bound)
    family = type(spec.family).__name__
    if not spec.family.support.integer or spec.one_of_all or bound.n_dims > 1:
        raise ParameterError(
            f"distributions of counts need a family of counts on rows x entities, not {family} "
            "with one of all entities or vectors: use conditional"
        )
    spec.check_means()
