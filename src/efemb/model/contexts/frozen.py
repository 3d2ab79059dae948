"""Kept: the member lists that a fit found, which are used for all later data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from efemb.errors import DataError
from efemb.model.contexts.base import Context

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset
    from efemb.model.contexts.bound.entities import EntityLists


class Kept(Context):
    """A fixed context as a fit bound it; prints like the context that it comes from.

    Parameters
    ----------
    of : Context
        The rule that chose the lists.
    lists : tuple
        Fields of each `Lists`, as tuples.
    """

    listed = False
    is_frozen = True

    def __init__(self, of: Context, lists: tuple[tuple[Any, ...], ...]) -> None:
        self.of = of
        self.lists = lists

    def __repr__(self) -> str:
        """The repr of the context that it comes from."""
        return repr(self.of)

    @property
    def scale(self) -> str:  # type: ignore[override]
        """The scale of the context that it comes from."""
        return self.of.scale

    @property
    def binary(self) -> bool:  # type: ignore[override]
        """That of the context that it comes from."""
        return bool(getattr(self.of, "binary", False))

    @property
    def reaches_other_rows(self) -> bool:
        """That of the context that it comes from."""
        return self.of.reaches_other_rows

    def check(self) -> None:
        """Check the context that it comes from."""
        self.of.check()

    def as_written(self) -> Context:
        """The context it comes from."""
        return self.of

    def bind(self, data: Dataset) -> EntityLists:
        """The same lists on other rows."""
        from efemb.model.contexts.bound.entities import EntityLists, Lists

        lists = tuple(Lists(*part) for part in self.lists)
        size = len(lists[0].ptr) - 1
        if data.n_entities != size:
            raise DataError(
                f"the context {self!r} was chosen for {size} entities, the data have "
                f"{data.n_entities}: fit again"
            )
        return EntityLists(data, lists)
