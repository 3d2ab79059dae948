"""Scoring of stored entries given their contexts, by matrix products; NumPy only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb.contexts.terms import summing_dtype
from efemb.families.base import Family
from efemb.links import FLOOR, Link, Log
from efemb.objective import expected_value, log_density
from efemb.tree import Huffman
from efemb.types import Bools, Floats, Ints

if TYPE_CHECKING:
    from efemb.contexts.row_block import RowBlock

CHUNK_NUMBERS = 1 << 22
FEW = 0.1  # of the entities: more are better treated like all of them
CACHED_NUMBERS = 1 << 17  # stay in the cache while they are used four times


@dataclass(frozen=True)
class Entries:
    """Entries to be predicted, each with the bag of its row, less itself.

    bags : csr_array (rows, context vectors);  row, ids, x : (n,) entry;  own, rest : (n,) what it
    takes out of the bag and the divisor of what is left;  empty : (n,) nothing is left
    """

    bags: Any
    row: Ints
    ids: Ints
    x: Floats
    own: Floats
    rest: Floats
    empty: Bools

    @classmethod
    def leave_one_out(cls, block: RowBlock, n_context: int) -> Entries:
        """Every stored entry given the rest of its row."""
        bags = block.bag_matrix(n_context)
        row = block.row_of_entry
        seen = ~np.isnan(block.x)
        others = block.members[row] - (block.own != 0)
        return cls(
            bags,
            row[seen],
            block.ids[seen],
            block.x[seen],
            block.own[seen],
            block.rest[seen],
            others[seen] == 0,
        )

    @classmethod
    def held_out(cls, block: RowBlock, n_context: int, row: Ints, ids: Ints, x: Floats) -> Entries:
        """Entries that are not in the rows' bags."""
        bags = block.bag_matrix(n_context)
        empty = np.bincount(block.row_of_entry, block.own != 0, len(block.total)) == 0
        none = np.zeros(len(row))
        return cls(bags, row, ids, x, none, block.total[row], empty[row])

    @classmethod
    def of_cells(cls, block: RowBlock, n_context: int, row: Ints, ids: Ints) -> Entries:
        """Any cells given the rest of their rows; x is 0 where nothing is stored."""
        stored = block.row_of_entry * n_context + block.ids
        order = np.argsort(stored, kind="stable")
        cell = row * n_context + ids
        place = np.searchsorted(stored, cell, sorter=order)
        place = order[np.minimum(place, max(len(order) - 1, 0))] if len(order) else place
        known = stored[place] == cell if len(order) else np.zeros(len(cell), dtype=bool)
        x, own, rest = np.zeros(len(cell)), np.zeros(len(cell)), block.total[row].astype(float)
        for array, values in ((x, block.x), (own, block.own), (rest, block.rest)):
            array[known] = values[place[known]]
        left = np.bincount(block.row_of_entry, block.own != 0, len(block.total))[row] - (own != 0)
        return cls(block.bag_matrix(n_context), row, ids, x, own, rest, left == 0)

    def known(self) -> Entries:
        """The entries whose context is not empty."""
        return self.take(~self.empty)

    def take(self, keep: Any) -> Entries:
        """Some of the entries, with all bags."""
        arrays = (self.row, self.ids, self.x, self.own, self.rest, self.empty)
        return Entries(self.bags, *(array[keep] for array in arrays))

    def contexts(self, bag: Floats, part: slice = slice(None)) -> Floats:
        """Scaled context sum of each entry."""
        return self._left_out(self._sums(bag), bag, part)

    def _sums(self, bag: Floats) -> Floats:
        """Sums of whole bags."""
        dtype = summing_dtype(self.bags.data, bag.dtype) if self.own.any() else bag.dtype
        return np.asarray(self.bags.astype(dtype) @ bag)

    def _left_out(self, sums: Floats, bag: Floats, part: slice) -> Floats:
        own = self.own[part].astype(sums.dtype)[:, None]
        rest = self.rest[part].astype(sums.dtype)[:, None]
        left = (sums[self.row[part]] - own * bag[self.ids[part]]) / rest
        return np.asarray(left.astype(bag.dtype, copy=False))

    def blocks(self, bag: Floats, width: int) -> Iterator[tuple[slice, Floats]]:
        """Contexts block by block, so that rows x `width` numbers stay small."""
        sums = self._sums(bag)
        size = max(64, CHUNK_NUMBERS // max(width, 1))
        for start in range(0, len(self.row), size):
            part = slice(start, min(start + size, len(self.row)))
            yield part, self._left_out(sums, bag, part)


def normalized_log_likelihood(
    family: Family, link: Link, entries: Entries, target: Floats, bag: Floats, intercept: Floats
) -> Floats:
    """log(m_n / sum_j m_j) of each entry, m the conditional means of all entities (float64)."""
    if family.exponential_mean and type(link) is Log:
        low = np.flatnonzero(intercept < FLOOR)
        if len(low) <= FEW * len(target):
            return _additive_log_shares(entries, target, bag, intercept, low)
    found = np.empty(len(entries.row))
    # Entries that take nothing out of their bag share the context, and so the sum, of their row.
    shared = not entries.own.any()
    _, first, context = np.unique(entries.row, return_index=True, return_inverse=True)
    if not shared:
        first = context = np.arange(len(found))
    for part, Z in entries.take(first).blocks(bag, len(target)):
        u = Z @ target.T
        u += intercept
        mine = np.flatnonzero((context >= part.start) & (context < part.stop)) if shared else part
        found[mine] = _log_share(family, link, u, context[mine] - part.start, entries.ids[mine])
    return found


def _additive_log_shares(
    entries: Entries, target: Floats, bag: Floats, intercept: Floats, low: Ints
) -> Floats:
    """The same of means max(u_j, FLOOR) of positive vectors, whose sum needs no pass over j.

    Only entities whose intercept is below the floor, `low`, can be there themselves.
    """
    found = np.empty(len(entries.row))
    every, plain = target.sum(axis=0, dtype=np.float64), intercept.sum(dtype=np.float64)
    low_target, low_intercept = target[low].T, intercept[low]
    for part, Z in entries.blocks(bag, max(len(low), bag.shape[1])):
        ids = entries.ids[part]
        mine = np.einsum("ik,ik->i", Z, target[ids]) + intercept[ids]
        raised = np.maximum(FLOOR - (Z @ low_target + low_intercept), 0.0)
        total = Z @ every + plain + raised.sum(axis=1, dtype=np.float64)
        found[part] = np.log(np.maximum(mine, FLOOR)) - np.log(total)
    return found


def _log_share(family: Family, link: Link, u: Floats, place: Ints, ids: Ints) -> Floats:
    """log(m_id / sum_j m_j) of entries in rows `place` of the inner products u (overwritten)."""
    v = log_expected_value(family, link, u)
    return np.asarray(v[place, ids] - log_sums(v)[place])


def log_sums(values: Floats) -> Floats:
    """log sum_j exp(v_j) of each row, without overflow.

    >>> log_sums(np.log([[1.0, 3.0], [1e200, 1e200]])).round(4).tolist()
    [1.3863, 461.2102]
    """
    found = np.empty(len(values), dtype=np.float64)
    step = max(1, CACHED_NUMBERS // max(values.shape[1], 1))
    for start in range(0, len(values), step):
        some = values[start : start + step]
        top = some.max(axis=1)
        with np.errstate(invalid="ignore"):  # all means 0: no share is defined, NaN says so
            scaled = some - top[:, None]
        np.exp(scaled, out=scaled)
        found[start : start + step] = top + np.log(scaled.sum(axis=1))
    return found


def log_expected_value(family: Family, link: Link, u: Floats) -> Floats:
    """log E[x] at inner products u; of a categorical family, up to a constant."""
    if family.exponential_mean:
        return np.asarray(link(u))
    return np.asarray(np.log(np.maximum(expected_value(family, link, u), np.finfo(u.dtype).tiny)))


def tree_log_likelihood(
    tree: Huffman, entries: Entries, target: Floats, bag: Floats, intercept: Floats
) -> Floats:
    """log p of each entry down a tree, `target` and `intercept` being those of its nodes."""
    found = np.empty(len(entries.row))
    for part, Z in entries.blocks(bag, len(target)):
        found[part] = tree.log_probability(Z @ target.T + intercept, entries.ids[part])
    return found


def entry_log_density(
    family: Family, link: Link, entries: Entries, target: Floats, bag: Floats, intercept: Floats
) -> Floats:
    """Conditional log-density of each entry."""
    found = np.empty(len(entries.row))
    for part, Z in entries.blocks(bag, bag.shape[1]):
        ids = entries.ids[part]
        u = np.einsum("ik,ik->i", Z, target[ids]) + intercept[ids]
        found[part] = log_density(family, link, entries.x[part].astype(np.float64), u)
    return found
