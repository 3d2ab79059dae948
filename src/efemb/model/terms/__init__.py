"""Terms: what is added to the linear predictor beside the context; one per file."""

from __future__ import annotations

import importlib
import pkgutil

from efemb.model.terms.available import Available
from efemb.model.terms.base import BoundCells, BoundTerm, CellTerm, Term, TermArray
from efemb.model.terms.cell_covariate import CellCovariate
from efemb.model.terms.cells import GroupTable, SparseRows
from efemb.model.terms.history import History
from efemb.model.terms.offset import Offset
from efemb.model.terms.row_vectors import RowVectors

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "Available",
    "BoundCells",
    "BoundTerm",
    "CellCovariate",
    "CellTerm",
    "GroupTable",
    "History",
    "Offset",
    "RowVectors",
    "SparseRows",
    "Term",
    "TermArray",
]
