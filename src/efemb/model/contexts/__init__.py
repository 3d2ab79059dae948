"""Contexts: which other observations an observation depends on; one a file."""

from __future__ import annotations

import importlib
import pkgutil

from efemb.model.contexts.base import BoundContext, Context, ContextSum
from efemb.model.contexts.basket import Basket
from efemb.model.contexts.bound.cells import CellLists
from efemb.model.contexts.bound.entities import EntityLists
from efemb.model.contexts.bound.rows import RowBags
from efemb.model.contexts.explicit import Explicit
from efemb.model.contexts.graph import Graph
from efemb.model.contexts.lagged import Lagged
from efemb.model.contexts.neighbors import Neighbors
from efemb.model.contexts.window import Window, WindowBags

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
