"""How many members of each observation's context are observed."""

from __future__ import annotations

import numpy as np

from efemb.contexts.base import BoundContext, dense_rows
from efemb.contexts.entity_lists import EntityLists, Lists
from efemb.types import Ints


def context_sizes(bound: BoundContext | None) -> Ints | None:
    """(T, N) numbers of observed members; None for contexts that are not fixed for each entity."""
    if not isinstance(bound, EntityLists):
        return None
    found = np.zeros((bound.n_rows, bound.n_entities), dtype=np.int64)
    for part in bound.lists:
        found += _sizes(bound, part)
    return found


def _sizes(bound: EntityLists, part: Lists) -> Ints:
    from scipy.sparse import csr_array

    rows, shape = np.arange(bound.n_rows), (bound.n_entities, bound.n_entities)
    seen = np.asarray(~np.isnan(dense_rows(bound.data, rows)).any(axis=2))
    found = np.zeros(seen.shape, dtype=np.int64)
    for offset in np.unique(part.offset):
        mine = part.offset == offset
        source, inside = bound.source_rows(rows, int(offset))
        there = (seen[source] & inside[:, None]).astype(np.int64)
        edges = (part.owner[mine], part.members[mine])
        found += (csr_array((np.ones(int(mine.sum()), np.int64), edges), shape=shape) @ there.T).T
    return found
