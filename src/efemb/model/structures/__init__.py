"""Structures: maps from parameters to the vectors that entities use; one a file."""

from __future__ import annotations

import importlib
import pkgutil

from efemb.model.structures.base import Structure, StructureArray, sum_rows
from efemb.model.structures.featured import Featured
from efemb.model.structures.grouped import Grouped
from efemb.model.structures.per_entity import PerEntity
from efemb.model.structures.shared import Shared
from efemb.model.structures.tied import Tied
from efemb.model.structures.tree import Tree

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "Featured",
    "Grouped",
    "PerEntity",
    "Shared",
    "Structure",
    "StructureArray",
    "Tied",
    "Tree",
    "sum_rows",
]
