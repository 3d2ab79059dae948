"""RowBlock: some rows as sparse arrays, the shape in which solvers see bags and entries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from efemb._typing import Bools, Floats, Ints


@dataclass(frozen=True)
class RowBlock:
    """Some rows as sparse arrays: their bags, and the stored entries to be predicted.

    An entry with x = NaN is masked: neither zero, target nor context.

    bag_ptr, bag_ids, bag_values : the bag of each row (CSR)
    ptr, ids, x : the stored entries of each row (CSR)
    own : context value that an entry takes out of the bag (0: nothing)
    total : divisor of the whole bag, one a row
    rest : divisor of the bag without the entry
    row : place of each row among the rows asked for
    excluded : entity a row must not predict, or -1 (reverse conditional only)
    by_entity : the stored entries sorted by entity, where a solver wants them
    """

    bag_ptr: Ints
    bag_ids: Ints
    bag_values: Floats
    ptr: Ints
    ids: Ints
    x: Floats
    own: Floats
    total: Floats
    rest: Floats
    row: Ints
    excluded: Ints | None = None
    by_entity: ByEntity | None = None

    @cached_property
    def row_of_entry(self) -> Ints:
        """Row of each stored entry."""
        return np.repeat(np.arange(len(self.total)), np.diff(self.ptr))

    def bag_matrix(self, n_context: int) -> Any:
        """The rows' bags as a csr_array (rows, context vectors)."""
        from scipy.sparse import csr_array

        arrays = (self.bag_values, self.bag_ids, self.bag_ptr)
        return csr_array(arrays, shape=(len(self.total), n_context))

    @cached_property
    def members(self) -> Floats:
        """How many members the bag of each row has; what is masked or missing is none."""
        row = np.repeat(np.arange(len(self.total)), np.diff(self.bag_ptr))
        members = np.bincount(row, self.bag_values != 0, len(self.total))
        return np.asarray(members, np.float64)

    @cached_property
    def seen(self) -> Bools:
        """Which entries are observed, not masked."""
        return ~np.isnan(self.x)

    @cached_property
    def filled(self) -> Floats:
        """Values, 0 where masked."""
        return np.where(self.seen, self.x, 0).astype(self.x.dtype, copy=False)


@dataclass(frozen=True)
class ByEntity:
    """The stored entries of a block sorted by entity: those of n lie at edges[n]..edges[n + 1].

    order : their places in the block;  row, x : their rows and values
    ratio : divisor of the whole bag / that without the entry;  share : own / the latter
    """

    block: RowBlock
    edges: Ints
    order: Ints

    @cached_property
    def row(self) -> Ints:
        return self.block.row_of_entry.take(self.order)

    @cached_property
    def x(self) -> Floats:
        return self.block.filled.take(self.order)

    @cached_property
    def own(self) -> Floats:
        return self.block.own.take(self.order)

    @cached_property
    def _rest(self) -> Floats:
        return self.block.rest.take(self.order)

    @cached_property
    def ratio(self) -> Floats:
        return np.asarray(self.block.total.take(self.row) / self._rest)

    @cached_property
    def share(self) -> Floats:
        return np.asarray(self.own / self._rest)
