"""Names of the package; `__init__.py` loads each of them when it is first used."""

from .base import Structure, StructureArray, sum_rows
from .dynamic import Dynamic
from .featured import Featured
from .grouped import Grouped
from .per_entity import PerEntity
from .shared import Shared
from .tied import Tied
from .tree import Tree

__all__ = [
    "Dynamic",
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
