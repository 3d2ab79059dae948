"""Member lists in CSR form, checked before they are used as indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb._typing import Ints
from efemb.errors import DataError, InputTypeError


def checked_lists(
    ptr: Any, members: Any, n_lists: int, *, names: tuple[str, str], one: str, size: str
) -> tuple[Ints, Ints]:
    """Check lists of members in 0 ... n_lists - 1, one list for each of these, none in its own.

    names : of the two arrays;  one : owner of a list, such as "entity";  size : n_lists in words
    """
    starts, index = (
        _integers(array, name) for array, name in zip((ptr, members), names, strict=True)
    )
    if starts.shape != (n_lists + 1,) or starts[0] != 0 or starts[-1] != len(index):
        span = f"{len(starts)} entries" + (
            f" from {starts[0]} to {starts[-1]}" if len(starts) else ""
        )
        raise DataError(
            f"{names[0]} must have {n_lists + 1} entries ({size} + 1) from 0 to {len(index)}, the "
            f"length of {names[1]}; got {span}"
        )
    falls = np.flatnonzero(np.diff(starts) < 0)
    if len(falls):
        raise DataError(f"{names[0]} must not decrease, but does at {one} {falls[0]}")
    owner = np.repeat(np.arange(n_lists), np.diff(starts))
    outside = np.flatnonzero((index < 0) | (index >= n_lists))
    if len(outside):
        raise DataError(
            f"{names[1]} must lie in 0 ... {n_lists - 1}; the list of {one} {owner[outside[0]]} "
            f"has {index[outside[0]]}"
        )
    itself = np.flatnonzero(owner == index)
    if len(itself):
        raise DataError(f"{one} {index[itself[0]]} is in its own context: leave it out of its list")
    return starts, index


def _integers(array: Any, name: str) -> Ints:
    """A vector of integers; an empty list is one, too."""
    values = np.asarray(array)
    if values.ndim != 1:
        raise InputTypeError(f"{name} must have one dimension, got shape {values.shape}")
    if values.dtype.kind not in "iu" and len(values):
        raise InputTypeError(f"{name} must be integers, got {values.dtype}")
    return np.asarray(values, dtype=np.int64)
