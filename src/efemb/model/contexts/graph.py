"""Graph: the neighbors of an entity in any graph of entities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb.data.array_checks import make_csr
from efemb.errors import DataError
from efemb.model.contexts.base import Context
from efemb.model.contexts.bound.entities import EntityLists

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


class Graph(Context):
    """Row n of `adjacency` lists the context members of entity n, in the same row of the data.

    Parameters
    ----------
    adjacency : sparse or dense matrix (N, N)
        Non-zero entries are edges; their values are not used. The diagonal must be empty.
    scale, binary
        As in every context.
    """

    def __init__(self, adjacency: Any, scale: str = "none", binary: bool = False) -> None:
        self.adjacency = adjacency
        self.scale = scale
        self.binary = binary

    def bind(self, data: Dataset) -> EntityLists:
        """Check the graph against the data."""
        graph = make_csr(self.adjacency)
        graph.eliminate_zeros()
        graph.sort_indices()
        size = data.n_entities
        if graph.shape != (size, size):
            raise DataError(
                f"Graph.adjacency must be {size} x {size}, one row per entity; it is {graph.shape}"
            )
        loops = np.flatnonzero(graph.diagonal())
        if len(loops):
            raise DataError(
                f"Graph.adjacency has {len(loops)} loops, the first at entity {loops[0]}: "
                "an observation cannot be in its own context; set the diagonal to zero"
            )
        return EntityLists.from_neighbors(
            data, graph.indptr, graph.indices, scale=self.scale, binary=self.binary
        )
