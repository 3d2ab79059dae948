"""Explicit: any context for each observation, given as index lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from efemb.model.contexts.base import Context
from efemb.model.contexts.bound.cells import CellLists

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


class Explicit(Context):
    """Cells are numbered row by row, c = t N + n; the members of c are other cells.

    Parameters
    ----------
    indptr : integer array (T N + 1,)
    indices : integer array
        Members of cell c are `indices[indptr[c]:indptr[c + 1]]`.
    scale, binary
        As in every context.
    """

    def __init__(
        self, indptr: Any, indices: Any, scale: str = "none", binary: bool = False
    ) -> None:
        self.indptr = indptr
        self.indices = indices
        self.scale = scale
        self.binary = binary

    @property
    def reaches_other_rows(self) -> bool:
        """Members may be any cells of the data that the lists were made for."""
        return True

    def bind(self, data: Dataset) -> CellLists:
        """Check the lists against the data."""
        return CellLists(data, self.indptr, self.indices, scale=self.scale, binary=self.binary)
