"""PerEntity: each entity has its own vectors."""

from __future__ import annotations

from efemb.model.structures.base import Structure


class PerEntity(Structure):
    """Each entity has its own embedding and its own context vector (the paper)."""
