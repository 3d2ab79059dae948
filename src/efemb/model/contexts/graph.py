"""Graph: the neighbors of an entity in a given graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.data.array_checks import make_csr
from efemb.errors import DataError
from efemb.model.contexts.base import Context
from efemb.model.contexts.bound.entities import EntityLists
from efemb.model.ingredient import flag

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


class Graph(Context):
    """Row n of `adjacency` lists the context members of entity n, in the same row of the data.

    Parameters
    ----------
    adjacency : sparse or dense matrix (N, N)
        Non-zero entries are edges. The diagonal must be empty.
    scale : {"items", "total", "none"}, default="none"
        Divide the context sum by the number of observed members, by the sum of their values, or
        by 1.
    binary : bool, default=False
        Count a member as 1 where it is not zero, whatever its value.
    weights : bool, default=False
        Whether members are weighted by their edges: sum of w_nm x_m alpha_m, divided by the sum
        of w_nm with scale "items" and of w_nm x_m with "total", which require weights >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> import efemb
    >>> chain = np.eye(4, k=1) + np.eye(4, k=-1)
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> model = efemb.GaussianEmbedding(2, context=Graph(chain), random_state=0).fit(X)
    >>> model.conditional(X).shape
    (60, 4)
    """

    def __init__(
        self, adjacency: Any, scale: str = "none", binary: bool = False, weights: bool = False
    ) -> None:
        self.adjacency = adjacency
        self.scale = scale
        self.binary = binary
        self.weights = weights

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
            data,
            graph.indptr,
            graph.indices,
            scale=self.scale,
            binary=self.binary,
            weight=self._weights(graph.data) if self.weights else None,
        )

    def check(self) -> None:
        """`weights` must be True or False."""
        super().check()
        flag("Graph.weights", self.weights)

    def _weights(self, values: Any) -> Floats:
        weight = np.asarray(values, dtype=np.float64)
        if not np.isfinite(weight).all():
            raise DataError("Graph.adjacency holds NaN or infinite weights")
        if self.scale != "none" and weight.min(initial=0.0) < 0:
            raise DataError(
                f"scale={self.scale!r} divides by the sum of the weights, but Graph.adjacency has "
                f"{weight.min():g}: use weights >= 0, or scale='none'"
            )
        return weight
