"""Kept: the member lists that a fit found, so that data seen later do not choose others."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from efemb.contexts.base import BoundContext, Context, ContextSum, SumOfBound
from efemb.contexts.entity_lists import EntityLists, Lists
from efemb.errors import DataError

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


class Kept(Context):
    """A fixed context as it was bound in a fit; it reads like the context it comes from.

    Parameters
    ----------
    of : Context
        The rule that chose the lists.
    lists : tuple
        Fields of `Lists`, one tuple for each of them.
    """

    listed = False

    def __init__(self, of: Context, lists: tuple[tuple[Any, ...], ...]) -> None:
        self.of = of
        self.lists = lists

    def __repr__(self) -> str:
        """The context it comes from."""
        return repr(self.of)

    @property
    def scale(self) -> str:  # type: ignore[override]
        """As in the context it comes from."""
        return self.of.scale

    @property
    def binary(self) -> bool:  # type: ignore[override]
        """As in the context it comes from."""
        return bool(getattr(self.of, "binary", False))

    def check(self) -> None:
        """Check the context it comes from."""
        self.of.check()

    def bind(self, data: Dataset) -> EntityLists:
        """The same lists on other rows."""
        lists = tuple(Lists(*part) for part in self.lists)
        size = len(lists[0].ptr) - 1
        if data.n_entities != size:
            raise DataError(
                f"the context {self!r} was chosen for {size} entities, the data have "
                f"{data.n_entities}: fit again"
            )
        return EntityLists(data, lists)


def kept(context: Context, bound: BoundContext) -> Context:
    """A sum of different kinds with the lists found in its parts; others are bound by `lists`."""
    if not (isinstance(bound, SumOfBound) and isinstance(context, ContextSum)):
        return context
    return ContextSum(_kept_part(context.left, bound.left), _kept_part(context.right, bound.right))


def _kept_part(context: Context, bound: BoundContext) -> Context:
    if not isinstance(bound, EntityLists) or isinstance(context, Kept):
        return kept(context, bound)
    names = [one.name for one in fields(Lists)]
    return Kept(context, tuple(tuple(getattr(part, n) for n in names) for part in bound.lists))


def as_written(context: Context) -> Context:
    """`context` without what `kept` added: the rule that a new fit follows."""
    if isinstance(context, Kept):
        return context.of
    if isinstance(context, ContextSum):
        return ContextSum(as_written(context.left), as_written(context.right))
    return context
