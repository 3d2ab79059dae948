"""Names of the package; `__init__.py` loads each of them when it is first used."""

from .base import BoundContext, Context, ContextSum
from .basket import Basket
from .bound.cells import CellLists
from .bound.entities import EntityLists
from .bound.rows import RowBags
from .explicit import Explicit
from .graph import Graph
from .lagged import Lagged
from .neighbors import Neighbors
from .window import Window, WindowBags

__all__ = [
    "Basket",
    "BoundContext",
    "CellLists",
    "Context",
    "ContextSum",
    "EntityLists",
    "Explicit",
    "Graph",
    "Lagged",
    "Neighbors",
    "RowBags",
    "Window",
    "WindowBags",
]
