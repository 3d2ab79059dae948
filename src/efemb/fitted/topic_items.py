"""Topics: the entities that stand out in each dimension of the vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Floats
from efemb.errors import DataError, InputTypeError, ParameterError, check_integer, suggest
from efemb.fitted.nearest import largest
from efemb.fitted.rotation import varimax
from efemb.fitted.selection import Choice, Options, accepts
from efemb.fitted.vectors import entity_vectors
from efemb.table import Table, whole_numbers

if TYPE_CHECKING:
    from efemb.fitted.queries.base import HasFitted

VECTORS = {"context": "alpha", "embedding": "rho", "alpha": "alpha", "rho": "rho"}
BY = ("value", "magnitude")
ROTATIONS = ("varimax",)


@accepts(Options)
def topics(
    model: HasFitted,
    n: int = 10,
    *,
    topic: Any = None,
    vectors: Literal["context", "embedding", "alpha", "rho"] = "context",
    by: Literal["value", "magnitude"] = "value",
    rotate: Literal["varimax"] | None = None,
    progress: bool = False,
    **options: Unpack[Options],
) -> Table:
    """List the items that stand out in each dimension, as topic models list words.

    The method `topics` of fitted models calls it, and documents the parameters and the result.
    """
    for name, value, choices in (("vectors", vectors, tuple(VECTORS)), ("by", by, BY)):
        if value not in choices:
            raise ParameterError(f"{name}={value!r}; {suggest(value, choices)}")
    if rotate is not None and rotate not in ROTATIONS:
        raise ParameterError(f"rotate={rotate!r}; {suggest(rotate, ROTATIONS)}, or None")
    fitted, size = model.fitted(), check_integer("n", n)
    choice = Choice(fitted.entities, **options)
    table: Floats = entity_vectors(fitted, VECTORS[vectors]).astype(np.float64)
    if rotate is not None:
        with progress_bar("varimax", 0, progress) as advance:
            table = varimax(table, advance)
    dimensions = _dimensions(topic, table.shape[1])
    rows = np.arange(len(table)) if choice.rows is None else choice.rows
    listed = [rows[_rank_values(table[rows, k], size, by)] for k in dimensions]
    codes = np.concatenate(listed) if listed else rows[:0]
    dimension = np.repeat(dimensions, [len(items) for items in listed])
    columns = {"topic": dimension, "label": fitted.entities.labels[codes]}
    columns["value"] = table[codes, dimension]
    if choice.counts is not None:
        columns["count"] = whole_numbers(choice.counts[codes])
    kind = "context vectors" if VECTORS[vectors] == "alpha" else "embeddings"
    note = f"items with the largest values in each dimension of the {kind}"
    return Table(columns, note)


def _rank_values(values: Floats, size: int, by: str) -> Any:
    return largest(np.abs(values) if by == "magnitude" else values, size)


def _dimensions(topic: Any, k: int) -> Any:
    if topic is None:
        return np.arange(k)
    dimensions = np.atleast_1d(np.asarray(topic))
    if dimensions.ndim != 1 or (dimensions.size and dimensions.dtype.kind not in "iu"):
        raise InputTypeError(f"topic must be an integer or a list of integers, got {topic!r}")
    if dimensions.size == 0 or dimensions.min() < 0 or dimensions.max() >= k:
        raise DataError(f"topics are numbered from 0 to {k - 1}, got {topic!r}")
    return dimensions
