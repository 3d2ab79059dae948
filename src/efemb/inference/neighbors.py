"""Neighbours of new entities among the known ones."""

from __future__ import annotations

import numpy as np

from efemb.contexts.entity_lists import Lists
from efemb.contexts.neighbors import Neighbors, nearest
from efemb.data.aligning import positions_with_new
from efemb.data.dataset import Dataset
from efemb.errors import ParameterError
from efemb.fitted import FittedEmbedding
from efemb.types import Floats, Ints


def grown_lists(
    fitted: FittedEmbedding, data: Dataset, new: Ints, positions: Floats | None, weight: Floats
) -> tuple[Lists, ...]:
    """The lists of the model, and for each new entity its nearest known ones.

    data : with known entities first;  new : the others;  positions : of all, or None
    weight : of the rows
    """
    context, lists = fitted.spec.context, fitted.lists
    assert lists is not None
    if type(context) is not Neighbors:
        raise ParameterError(
            f"the context of new entities is not known to {context!r}: fold_in takes Neighbors; "
            "fit again with the larger context"
        )
    (known,) = lists
    k = int(np.diff(known.ptr).max(initial=0))
    if positions is None:
        near = _correlated(data, new, k, weight)
    else:
        near = list(nearest(positions[: new[0]], k, positions[new]))
    members = [known.members, *near]
    degree = np.concatenate([np.diff(known.ptr), [len(one) for one in members[1:]]])
    every = np.concatenate(members)
    none = np.zeros(len(every), dtype=np.int64)
    ptr = np.concatenate([[0], np.cumsum(degree)]).astype(np.int64)
    return (Lists(ptr, every, none, none, known.scale, known.binary),)


def _correlated(data: Dataset, new: Ints, k: int, weight: Floats) -> list[Ints]:
    """The known entities most correlated with each new one."""
    # Among so many neighbours at least k are known.
    wide = min(k + len(new) - 1, data.n_entities - 1)
    found = Neighbors(max(wide, 1)).bind_weighted(data, weight).lists[0]
    every = (found.members[found.ptr[n] : found.ptr[n + 1]] for n in new.tolist())
    return [near[near < new[0]][:k] for near in every]


def grown_positions(fitted: FittedEmbedding, data: Dataset, moved: Dataset) -> Floats | None:
    """Positions of all entities; None where neighbours are found by correlation.

    data : as given;  moved : the same with known entities first
    """
    context = fitted.spec.context
    known = context.positions if isinstance(context, Neighbors) else None
    known = fitted.positions if known is None else np.asarray(known)
    if known is None:
        return None
    return positions_with_new(data, moved, fitted.vocabulary, known)
