"""How large the weights of a model may be, so that draws do not feed on one another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from efemb._typing import Floats
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.simulation.graphs import Graph

GAIN = 0.7  # largest multiplier of a deviation from the mean in one sweep
AVERAGED = 2.0  # standard deviation of rho_n . alpha_m where the context is a weighted average
# Where means are exponentials of counts, no single weight may be larger than this.
LARGEST_WEIGHT = {"none": 0.3, "items": 1.0}


def explosive(spec: Spec) -> bool:
    """Whether a large observation multiplies the means of others."""
    support = spec.family.support
    return support.low == 0 and support.high == np.inf and not spec.link.needs_positive


def row_factor(space: ParameterSpace, response: Floats, rho: Floats, alpha: Floats) -> float:
    """Factor of the weights rho_n . alpha_m of a model on rows."""
    spec = space.spec
    counts = spec.family.support.low == 0
    context = spec.context
    if counts and (context.scale == "total" or (context.scale == "items" and context.binary)):
        return AVERAGED
    weights = _Weights(space, rho, alpha)
    size = space.n_entities * space.n_dims
    gain = largest_gain(lambda v: response * weights(v), size)
    members = float(space.n_entities) if context.scale == "items" and not counts else 1.0
    factor = (0.5 * GAIN if explosive(spec) else GAIN) * members / max(gain, 1e-12)
    if context.scale == "items" and counts:
        factor = AVERAGED
    if explosive(spec):
        limit = LARGEST_WEIGHT.get(context.scale, LARGEST_WEIGHT["none"])
        factor = min(factor, limit / weights.largest())
    return factor


class _Weights:
    """v -> W v with W = rho alpha', all slots added up, without the diagonal."""

    def __init__(self, space: ParameterSpace, rho: Floats, alpha: Floats) -> None:
        vectors = space.vectors(Parameters(rho, alpha, None))
        self.target = vectors.target
        self.bag = vectors.bag.reshape(space.n_slots, -1, vectors.bag.shape[1]).sum(axis=0)
        self.own = np.einsum("nk,nk->n", self.target, self.bag)

    def __call__(self, v: Floats) -> Floats:
        return np.asarray(self.target @ (self.bag.T @ v) - self.own * v)

    def largest(self) -> float:
        """Largest absolute weight."""
        blocks = range(0, len(self.target), 1000)
        return max(float(np.abs(self.target[i : i + 1000] @ self.bag.T).max()) for i in blocks)


def graph_factor(
    space: ParameterSpace, graph: Graph, response: Floats, rho: Floats, alpha: Floats
) -> float:
    """Factor of the weights of a model on a graph."""
    vectors = space.vectors(Parameters(rho, alpha, None))
    # Weights of different rows may add up in any way, and so may those of an exponential.
    careful = graph.n_columns == 1 or explosive(space.spec)
    total, largest = _entity_weights(graph, vectors, absolute=careful)
    gain = largest_gain(lambda v: response * (total @ v), graph.n_entities)
    factor = GAIN / max(gain, 1e-12)
    if explosive(space.spec):
        factor = min(factor, LARGEST_WEIGHT["none"] / max(largest, 1e-12))
    return factor


def _entity_weights(graph: Graph, vectors: Any, *, absolute: bool) -> tuple[Any, float]:
    """Weights between entities, averaged where the context is, and the largest of them."""
    from scipy.sparse import csr_array

    size = graph.n_entities
    total: Any = csr_array((size, size))
    largest = 0.0
    for part in graph.parts:
        weight = part.weights(vectors.target, vectors.bag)
        if part.scale != "none":
            weight = weight / np.bincount(part.owner, minlength=graph.n_nodes)[part.owner]
        weight = np.abs(weight) if absolute else weight
        largest = max(largest, float(np.abs(weight).max(initial=0.0)))
        # Cells are counted once for each row.
        weight = weight * size / graph.n_nodes
        ends = (part.owner % size, part.member % size)
        total = total + csr_array((weight, ends), shape=(size, size))
    return total, largest


def largest_gain(product: Callable[[Floats], Floats], size: int) -> float:
    """Growth of a vector under repeated products: about the spectral radius.

    >>> round(largest_gain(lambda v: 0.5 * v, 3), 6)
    0.5
    """
    v: Floats = np.random.default_rng(0).normal(size=size)
    growth = []
    for _ in range(40):
        v = product(v / np.linalg.norm(v))
        norm = float(np.linalg.norm(v))
        if norm == 0.0:
            break
        growth.append(norm)
    # A vector that dies out says nothing about a rate: its first growth bounds it.
    return float(np.exp(np.mean(np.log(growth[-20:])))) if growth else 0.0
