"""Lagged: past and future rows of an entity and of its neighbors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import InputTypeError, ParameterError
from efemb.model.contexts.base import Context
from efemb.model.contexts.bound.entities import EntityLists, Lists

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


class Lagged(Context):
    """Members `offset` rows away, never across recordings.

    Consecutive rows of a recording count as consecutive in time: hold out whole recordings, or
    stretches that are recordings of their own, not single rows (`split`, cross-validation).

    Parameters
    ----------
    offsets : sequence of int, default=(-1,)
        Row offsets, negative for the past; 0 is not a lag.
    of : Context, optional
        A context that is fixed for each entity (`Neighbors`, `Graph`): its members are seen at
        each offset, with the scale of `Lagged` itself. By default only the entity itself.
    include_self : bool, default=True
        Whether the entity's own past and future belong to its context.
    shared : bool, default=False
        Use a single context vector per entity for all offsets, instead of one per offset.
    scale : {"items", "total", "none"}, default="none"
        Divide the context sum by the number of observed members, by the sum of their values, or
        by 1.
    binary : bool, default=False
        Count a member as 1 where it is not zero, whatever its value.

    Examples
    --------
    >>> import numpy as np
    >>> import efemb
    >>> wave = np.sin(np.arange(80)[:, None] / 3.0 + np.arange(3))
    >>> context = efemb.Neighbors(2) + Lagged([-1, -2])
    >>> model = efemb.GaussianEmbedding(2, context=context, random_state=0).fit(wave)
    >>> model.alpha_.shape  # at the same time, and at each of two lags
    (9, 2)
    """

    def __init__(
        self,
        offsets: Any = (-1,),
        of: Context | None = None,
        include_self: bool = True,
        shared: bool = False,
        scale: str = "none",
        binary: bool = False,
    ) -> None:
        self.offsets = offsets
        self.of = of
        self.include_self = include_self
        self.shared = shared
        self.scale = scale
        self.binary = binary

    @property
    def reaches_other_rows(self) -> bool:
        """True: members are in other rows."""
        return True

    def bind(self, data: Dataset) -> EntityLists:
        """Repeat the member lists at every offset."""
        return self.bind_weighted(data, None)

    def bind_weighted(self, data: Dataset, weight: Floats | None) -> EntityLists:
        """Repeat the member lists of weighted rows at every offset."""
        offsets = self._checked_offsets()
        ptr, members = self._members(data, weight)
        sizes = np.diff(ptr)
        owner = np.repeat(np.arange(data.n_entities), sizes)
        edges = np.argsort(np.tile(owner, len(offsets)), kind="stable")
        lag = np.repeat(np.arange(len(offsets)), len(members))[edges]
        part = Lists(
            ptr=ptr * len(offsets),
            members=np.tile(members, len(offsets))[edges],
            offset=offsets[lag],
            slot=np.zeros_like(lag) if self.shared else lag,
            scale=self.scale,
            binary=self.binary,
        )
        return EntityLists(data, (part,), private=not self.shared)

    def _checked_offsets(self) -> Ints:
        offsets = np.atleast_1d(np.asarray(self.offsets))
        if offsets.ndim != 1 or not np.issubdtype(offsets.dtype, np.integer):
            raise InputTypeError(f"Lagged.offsets must be integers, got {self.offsets!r}")
        if len(offsets) == 0 or (offsets == 0).any() or len(set(offsets.tolist())) < len(offsets):
            raise ParameterError(
                f"Lagged.offsets must be different and not 0, got {self.offsets!r}; "
                "add the simultaneous members with a plus sign: Neighbors(k) + Lagged(...)"
            )
        return offsets.astype(np.int64)

    def _members(self, data: Dataset, weight: Floats | None) -> tuple[Ints, Ints]:
        """Members of each entity at one offset, the entity itself first."""
        size = data.n_entities
        lists: list[Ints] = [np.empty(0, dtype=np.int64) for _ in range(size)]
        if self.of is not None:
            bound = self.of.bind_weighted(data, weight)
            if bound.lists is None or len(bound.lists) != 1:
                raise ParameterError("Lagged.of must be a fixed context: Neighbors or Graph")
            part = bound.lists[0]
            self._check_part(part)
            lists = np.split(part.members, part.ptr[1:-1])
        elif not self.include_self:
            raise ParameterError("Lagged needs of= or include_self=True, else it is empty")
        if self.include_self:
            lists = [np.concatenate([[n], members]) for n, members in enumerate(lists)]
        ptr = np.concatenate([[0], np.cumsum([len(members) for members in lists])])
        return ptr.astype(np.int64), np.concatenate(lists).astype(np.int64)

    def _check_part(self, part: Lists) -> None:
        """Reject options of the other context that would have no effect."""
        if part.offset.any():
            raise ParameterError("Lagged.of must have no offsets: give all of them to one Lagged")
        if part.scale not in ("none", self.scale) or (part.binary and not self.binary):
            raise ParameterError(
                f"Lagged scales and counts the members of {self.of!r} itself: pass "
                f"scale={part.scale!r} and binary={part.binary} to Lagged"
            )
