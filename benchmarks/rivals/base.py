"""What all adapters have in common, so that one scorer judges rivals and our own models."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Array = NDArray[Any]
BLOCK_NUMBERS = 1 << 22  # numbers in one block of answers


class Package:
    """Something that another package brings.

    package : what pip installs
    """

    package: ClassVar[str]

    @classmethod
    def available(cls) -> bool:
        """Whether the package is installed; it is not imported."""
        return importlib.util.find_spec(cls.package) is not None

    @classmethod
    def missing(cls) -> str:
        """What the tables say in its place."""
        return f"not installed: pip install {cls.package}"


class Rival(Package, ABC):
    """A model of counts, rows x items, that completes a row from its other items.

    gives_shares : whether log_means are logarithms of means, or of scores that only rank
    """

    gives_shares: ClassVar[bool] = True

    @abstractmethod
    def fit(self, X: Any, *, validation: Any = None) -> Self:
        """Learn from rows; none of the rivals makes use of validation data while it learns."""

    @abstractmethod
    def block(self, context: csr_array, asked: Array) -> Array:
        """(cells, N) log means or scores, given rows without their asked items."""

    def log_means(self, X: Any, rows: Any, entities: Any) -> Iterator[tuple[slice, Array]]:
        """What `efemb.evaluation` asks of a model."""
        values = counts_of(X)
        size = max(1, BLOCK_NUMBERS // values.shape[1])
        for start in range(0, len(rows), size):
            cells = slice(start, min(start + size, len(rows)))
            asked = np.asarray(entities[cells])
            yield cells, self.block(without(values, np.asarray(rows[cells]), asked), asked)

    @cached_property
    def family(self) -> Any:
        """The family of the densities; ranks and shares do not depend on it."""
        from efemb.families import Poisson

        return Poisson()


def counts_of(X: Any) -> csr_array:
    """The counts of a Dataset or a sparse array."""
    return csr_array(getattr(X, "values", X))


def without(values: csr_array, rows: Array, asked: Array) -> csr_array:
    """The rows of the asked cells, each without its asked item."""
    context = values[rows]
    cell = np.repeat(np.arange(len(rows)), np.diff(context.indptr))
    context.data = np.where(context.indices == asked[cell], 0, context.data)
    context.eliminate_zeros()
    return context
