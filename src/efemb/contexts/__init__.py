"""Contexts: which other observations an observation depends on; one a file."""

from __future__ import annotations

import importlib
import pkgutil

from efemb.contexts.base import BoundContext, Context, ContextSum
from efemb.contexts.basket import Basket
from efemb.contexts.cells import CellLists
from efemb.contexts.entity_lists import EntityLists
from efemb.contexts.explicit import Explicit
from efemb.contexts.graph import Graph
from efemb.contexts.lagged import Lagged
from efemb.contexts.neighbors import Neighbors
from efemb.contexts.row_bags import RowBags
from efemb.contexts.window import Window, WindowBags

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

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
