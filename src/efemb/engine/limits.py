"""Memory: estimate what a fit needs and refuse before it starts."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from efemb.errors import MemoryEstimateError
from efemb.model.contexts.base import BoundContext
from efemb.model.space import ParameterSpace

COPIES = {
    "rows": 5,
    "generic": 5,
    "moments": 30,
    "windows": 4,
}  # parameters, gradients, state, best so far


def available_memory() -> int | None:
    """Bytes that can be had, or None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def estimate(bound: BoundContext, space: ParameterSpace, solver: str, dtype: Any) -> int:
    """Bytes a fit needs beyond the data."""
    numbers = sum(int(np.prod(array.shape)) for array in space.layout)
    if space.positional:  # a product with every word for each place
        numbers += space.n_slots * space.k * space.n_entities
    size = int(np.dtype(dtype).itemsize)
    need = numbers * size * COPIES[solver]
    if solver == "moments" and bound.lists is not None:
        degree = sum(np.diff(edges.ptr) for edges in bound.lists) + 1
        need += int((np.asarray(degree, dtype=np.float64) ** 2).sum()) * size * 2
    return need


def check_memory(bound: BoundContext, space: ParameterSpace, solver: str, dtype: Any) -> None:
    """Raise `MemoryEstimateError` if the fit cannot fit."""
    free = available_memory()
    need = estimate(bound, space, solver, dtype)
    if free is not None and need > free:
        raise MemoryEstimateError(
            f"fitting {space.n_entities:,} entities with {space.k} components by solver "
            f"{solver!r} needs about {in_words(need)}, {in_words(free)} are free; use fewer "
            "components, a smaller context, dtype='float32' or solver='generic'"
        )


def in_words(n_bytes: int) -> str:
    """A figure with a unit that fits.

    >>> in_words(32_000_000)
    '32.0 MB'
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes / 1e3:.1f} kB"
