"""PerEntity: each entity has its own vectors."""

from __future__ import annotations

from efemb._typing import Floats
from efemb.model.structures.base import Structure


class PerEntity(Structure):
    """Each entity has its own embedding and its own context vector (the paper)."""

    def sizes(self, n_entities: int) -> tuple[int, int]:
        """One row each."""
        return n_entities, n_entities

    def spread(self, rho: Floats, alpha: Floats, n_entities: int) -> tuple[Floats, Floats]:
        """The arrays themselves."""
        return rho, alpha

    def collect(self, rho: Floats, alpha: Floats, n_entities: int) -> tuple[Floats, Floats]:
        """The gradients themselves."""
        return rho, alpha
