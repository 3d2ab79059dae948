"""Basket: the other non-zero entities of the same row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from efemb.model.contexts.base import Context
from efemb.model.contexts.bound.rows import RowBags

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


class Basket(Context):
    """The other non-zero entities of the row: items of a trip, movies of a user.

    Parameters
    ----------
    scale : {"total", "items", "none"}
        Divide the context sum by the sum of the members' values, by their number, or by 1.
    binary : bool
        Count a member as 1, whatever its value.
    """

    unnamed = 0.0
    rest_of_row = True

    def __init__(self, scale: str = "total", binary: bool = False) -> None:
        self.scale = scale
        self.binary = binary

    def bind(self, data: Dataset) -> RowBags:
        """Each row is one bag; an observation takes itself out of it."""
        return RowBags(data, scale=self.scale, binary=self.binary)
