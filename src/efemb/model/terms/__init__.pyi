"""Names of the package; `__init__.py` loads each of them when it is first used."""

from .available import Available
from .base import BoundCells, BoundTerm, CellTerm, Term, TermArray
from .cell_covariate import CellCovariate
from .cell_values import GroupTable, SparseRows
from .covariate import Covariate
from .history import History
from .item_pairs import ItemPairs
from .offset import Offset
from .row_vectors import RowVectors

__all__ = [
    "Available",
    "BoundCells",
    "BoundTerm",
    "CellCovariate",
    "CellTerm",
    "Covariate",
    "GroupTable",
    "History",
    "ItemPairs",
    "Offset",
    "RowVectors",
    "SparseRows",
    "Term",
    "TermArray",
]
