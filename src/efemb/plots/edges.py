"""Edges: the contexts of a model on fixed lists, entity by entity, with their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from efemb.errors import DataError
from efemb.query.weights import edge_weights
from efemb.types import Floats, Ints

if TYPE_CHECKING:
    from efemb.fitted import FittedEmbedding


class Edges:
    """Members of each entity's context in the same row, and rho_n . alpha_m of each.

    ptr : (N + 1,);  members, weights : (edges,), those of n are at ptr[n]:ptr[n + 1]
    """

    def __init__(self, fitted: FittedEmbedding) -> None:
        owner, member, offset, weight = edge_weights(fitted)
        order = np.argsort(owner, kind="stable")
        order = order[offset[order] == 0]
        if len(order) == 0:
            raise DataError("no context reaches another entity of the same row: nothing to draw")
        self.members, self.weights = member[order], weight[order]
        self.ptr = np.searchsorted(owner[order], np.arange(fitted.n_entities + 1))

    def of(self, entity: int) -> tuple[Ints, Floats]:
        """Members of one context and their weights."""
        mine = slice(self.ptr[entity], self.ptr[entity + 1])
        return self.members[mine], self.weights[mine]

    def strength(self) -> Floats:
        """Length (root of the sum of squares) of each entity's weights."""
        squares = np.append(0.0, np.cumsum(self.weights**2))
        return np.asarray(np.sqrt(np.maximum(np.diff(squares[self.ptr]), 0.0)))
