"""Structures: which row of rho and of alpha an entity uses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from efemb.errors import DataError, ParameterError
from efemb.ingredient import Ingredient
from efemb.types import Floats, Ints


class Structure(Ingredient, ABC):
    """Index maps from entities to rows of the two parameter arrays; None means one row each."""

    tied: bool = False

    @abstractmethod
    def maps(self, n_entities: int) -> tuple[Ints | None, Ints | None]:
        """Return (rho_of, alpha_of)."""


class PerEntity(Structure):
    """Each entity has its own embedding and its own context vector (the paper)."""

    def maps(self, n_entities: int) -> tuple[Ints | None, Ints | None]:
        """Return (None, None)."""
        return None, None


class Tied(Structure):
    """rho = alpha: one vector an entity, penalised once, its gradient the sum of both roles."""

    tied = True

    def maps(self, n_entities: int) -> tuple[Ints | None, Ints | None]:
        """Return (None, None)."""
        return None, None


class Shared(Structure):
    """Entities with the same number in `rho_of` (`alpha_of`) share an embedding (context vector).

    Parameters
    ----------
    rho_of, alpha_of : integer arrays of length N, optional
        Rows used by each entity; None gives each entity its own.
    """

    def __init__(self, rho_of: Any = None, alpha_of: Any = None) -> None:
        self.rho_of = rho_of
        self.alpha_of = alpha_of

    def maps(self, n_entities: int) -> tuple[Ints | None, Ints | None]:
        """Return the two checked maps."""
        return (
            _checked(self.rho_of, "rho_of", n_entities),
            _checked(self.alpha_of, "alpha_of", n_entities),
        )


def _checked(index: Any, option: str, n_entities: int) -> Ints | None:
    if index is None:
        return None
    found = np.asarray(index)
    if found.shape != (n_entities,):
        raise DataError(
            f"Shared.{option} must hold one integer for each of the {n_entities} entities, "
            f"got shape {found.shape}"
        )
    if not np.issubdtype(found.dtype, np.integer) or found.min() < 0:
        raise ParameterError(f"Shared.{option} must hold integers >= 0")
    return found.astype(np.int64)


def sum_rows(values: Floats, index: Ints, n_rows: int) -> Floats:
    """Add the rows of `values` that share an index: the transpose of `rows[index]`."""
    total = np.zeros((n_rows, *values.shape[1:]), dtype=values.dtype)
    np.add.at(total, index, values)
    return total
