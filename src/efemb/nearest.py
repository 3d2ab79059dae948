"""Nearest vectors: unit rows, the largest scores, and the checks of what was asked."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb.errors import InputTypeError, ParameterError, suggest
from efemb.types import Floats, Ints

# Numbers computed at a time: 64 MB in single precision.
BLOCK = 1 << 24


def unit_rows(vectors: Floats) -> Floats:
    """Rows divided by their length, read-only; zero rows stay zero."""
    unit = np.empty_like(vectors)
    step = max(1, BLOCK // max(1, vectors.shape[1]))
    for start in range(0, len(vectors), step):
        block = vectors[start : start + step].astype(np.float64)
        # By the largest number first: squares of huge or tiny ones leave the range of floats.
        largest_of = np.abs(block).max(axis=1, initial=0.0, keepdims=True)
        np.divide(block, largest_of, out=block, where=largest_of > 0)
        length = np.sqrt(np.einsum("ij,ij->i", block, block))[:, None]
        unit[start : start + step] = np.divide(block, length, out=block, where=length > 0)
    unit.setflags(write=False)
    return unit


def largest(scores: Floats, n: int) -> Ints:
    """Places of the `n` largest scores, best first, ties in order; -inf is never among them."""
    if n < len(scores):
        limit = np.partition(scores, len(scores) - n)[len(scores) - n]
        places = np.flatnonzero((scores >= limit) & (scores > -np.inf))
    else:
        places = np.flatnonzero(scores > -np.inf)
    return places[np.argsort(-scores[places], kind="stable")[:n]]


def checked_number(n: Any) -> int:
    """How many results: an integer >= 1."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise InputTypeError(f"n must be an integer, got {n!r}")
    if n < 1:
        raise ParameterError(f"n must be at least 1, got {n}")
    return int(n)


def checked_method(method: Any) -> None:
    """Refuse what is neither add nor mul."""
    if method not in ("add", "mul"):
        raise ParameterError(f"method={method!r} is unknown; {suggest(method, ['add', 'mul'])}")
