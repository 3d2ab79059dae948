"""Memory: estimate what a fit needs, and refuse it before it starts if it does not fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from efemb.data.memory import available_memory, in_words
from efemb.errors import MemoryEstimateError
from efemb.model.contexts.base import BoundContext
from efemb.model.space import ParameterSpace

COPIES = {
    "rows": 5,
    "generic": 5,
    "moments": 30,
    "windows": 4,
}  # parameters, gradients, state, best so far


@contextmanager
def typed_memory_errors() -> Iterator[None]:
    """Turn a MemoryError, possible despite the estimate, into an error that says what to do."""
    try:
        yield
    except MemoryError as error:
        free = available_memory()
        remaining = "" if free is None else f", {in_words(free)} are free"
        raise MemoryEstimateError(
            f"the fit ran out of memory ({error}{remaining}); use fewer components, a smaller "
            "context, fewer rows or entities, or float32 data, or fit from shards (efemb.shards)"
        ) from error


def check_columns(n_entities: int, n_components: int = 0) -> None:
    """Raise `MemoryEstimateError` if not even the vectors fit, before anything is allocated."""
    free = available_memory()
    # Vectors, context vectors and their gradients in float32, and a few numbers per entity.
    need = n_entities * (4 * 4 * n_components + 32)
    if free is not None and need > free:
        vectors = f" with {n_components} components" if n_components else ""
        fewer = "use fewer components, or " if n_components else ""
        raise MemoryEstimateError(
            f"a model of {n_entities:,} entities{vectors} needs at least {in_words(need)}, "
            f"{in_words(free)} are free; {fewer}drop the entities that never occur"
        )


def data_size(data: Any) -> int:
    """Bytes of the values of a `Dataset`; 0 for text, which stays on disk if it is large."""
    values = getattr(data, "values", None)
    if values is None or callable(values):
        return 0
    stored = (
        (values,) if hasattr(values, "nbytes") else (values.data, values.indices, values.indptr)
    )
    return sum(int(array.nbytes) for array in stored)


def estimate(bound: BoundContext, space: ParameterSpace, solver: str, dtype: Any) -> int:
    """Bytes a fit needs: parameters and their copies, moments, and a second copy of the data.

    The hold-out and the order of a solver need this copy; the data are already in memory.
    """
    numbers = sum(int(np.prod(array.shape)) for array in space.layout)
    if space.positional:  # a product with every word for each position
        numbers += space.n_slots * space.k * space.n_entities
    size = int(np.dtype(dtype).itemsize)
    need = numbers * size * COPIES[solver]
    if solver == "moments" and bound.lists is not None:
        degree = sum(np.diff(edges.ptr) for edges in bound.lists) + 1
        need += int((np.asarray(degree, dtype=np.float64) ** 2).sum()) * size * 2
    return need + data_size(bound.data)


def _smaller(solver: str) -> str:
    """Further ways to save memory with a solver, for messages."""
    if solver == "windows":
        return "fewer words (a larger min_count) or dtype='float32'"
    return "a smaller context, dtype='float32' or solver='generic'"


def check_memory(bound: BoundContext, space: ParameterSpace, solver: str, dtype: Any) -> int:
    """Bytes that a fit needs; raises `MemoryEstimateError` if they are not available."""
    free = available_memory()
    need = estimate(bound, space, solver, dtype)
    if free is not None and need > free:
        raise MemoryEstimateError(
            f"fitting {space.n_entities:,} entities with {space.k} components by solver "
            f"{solver!r} needs about {in_words(need)}, {in_words(free)} are free; use fewer "
            f"components, {_smaller(solver)}" + space.spec.structure.save_memory(solver)
        )
    return need
