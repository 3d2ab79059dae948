"""What every adapter of a rival on counts has in common, so that one scorer judges them all."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Array = NDArray[Any]
BLOCK_NUMBERS = 1 << 22  # numbers of one block of answers


class Rival(ABC):
    """A model of counts, rows x items, that completes a row from its other items.

    name : what the tables call it;  package : what pip installs, "" where nothing is needed
    gives_shares : whether log_means are logarithms of means, or scores that only rank
    """

    name: ClassVar[str]
    package: ClassVar[str] = ""
    gives_shares: ClassVar[bool] = True

    @classmethod
    def available(cls) -> bool:
        """Whether its package is installed; it is not imported."""
        return not cls.package or importlib.util.find_spec(cls.package) is not None

    @classmethod
    def missing(cls) -> str:
        """What the tables say in its place."""
        return f"not installed: pip install {cls.package}"

    @abstractmethod
    def fit(self, train: csr_array, k: int, seed: int, validation: csr_array | None = None) -> None:
        """Learn from rows; `validation`, entries of these rows or other rows, may end it."""

    @abstractmethod
    def log_means(self, X: Any, rows: Array, entities: Array) -> Iterator[tuple[slice, Array]]:
        """What `efemb.evaluation` asks of a model: (cells, N) log means or scores, in blocks."""

    @cached_property
    def family(self) -> Any:
        """The family under which densities are told; ranks and shares do not depend on it."""
        from efemb.model.families import Poisson

        return Poisson()


class Completer(Rival):
    """A rival that takes rows from which the asked items were taken out, like any other rows."""

    @abstractmethod
    def block(self, context: csr_array, asked: Array) -> Array:
        """(cells, N) log means or scores, given such rows."""

    def log_means(self, X: Any, rows: Array, entities: Array) -> Iterator[tuple[slice, Array]]:
        for part, values, cells, asked in blocks(X, rows, entities):
            yield part, self.block(without(values, cells, asked), asked)


def blocks(X: Any, rows: Array, entities: Array) -> Iterator[tuple[slice, csr_array, Array, Array]]:
    """Cells so few at a time that their answers fit: part, counts, rows and items of its cells."""
    values = csr_array(getattr(X, "values", X))
    size = max(1, BLOCK_NUMBERS // values.shape[1])
    for start in range(0, len(rows), size):
        part = slice(start, min(start + size, len(rows)))
        yield part, values, np.asarray(rows[part]), np.asarray(entities[part])


def without(values: csr_array, rows: Array, asked: Array) -> csr_array:
    """The rows of the asked cells, each without its asked item."""
    taken = values[rows]
    cell = np.repeat(np.arange(len(rows)), np.diff(taken.indptr))
    taken.data = np.where(taken.indices == asked[cell], 0, taken.data)
    taken.eliminate_zeros()
    return taken


def mean_of_rows(context: csr_array, vectors: Array) -> Array:
    """Mean vector of the items of each row, counts left aside."""
    items = np.maximum(np.diff(context.indptr), 1)[:, None]
    ones = csr_array(
        (np.ones(context.nnz, vectors.dtype), context.indices, context.indptr), context.shape
    )
    return np.asarray(ones @ vectors) / items
