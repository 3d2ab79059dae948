"""Gibbs sweeps on a graph of observations: contexts that are lists of members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.model.contexts import BoundContext, CellLists, EntityLists
from efemb.model.contexts.base import or_one
from efemb.model.contexts.bound.entities import Lists


@dataclass(frozen=True)
class Edges:
    """Members of some nodes: node `owner[e]` has `member[e]` in its context.

    A node is an entity (in every row) or, where rows depend on one another, a single cell.
    left, right : (edges,) rows of rho and of alpha whose product is the weight of the edge
    """

    owner: Ints
    member: Ints
    left: Ints
    right: Ints
    scale: str
    binary: bool

    def weights(self, target: Floats, bag: Floats) -> Floats:
        """rho_n . alpha_m of every edge."""
        return np.asarray(np.einsum("ek,ek->e", target[self.left], bag[self.right]))


@dataclass(frozen=True)
class Graph:
    """All edges on `n_nodes` nodes, and the groups of nodes to draw together, in order."""

    parts: tuple[Edges, ...]
    n_nodes: int
    n_columns: int
    n_entities: int
    groups: tuple[Ints, ...]
    causal: bool  # one passage through the groups is an exact draw
    repeats: tuple[tuple[int, int], ...]  # runs of groups that are swept before the next run

    def passages(self, sweeps: int) -> Iterator[int]:
        """Numbers of the groups in the order in which they are drawn."""
        for first, last in self.repeats:
            for _ in range(1 if self.causal else sweeps):
                yield from range(first, last)


def graph_of(bound: BoundContext) -> Graph | None:
    """The context as a graph; None where it is of another kind."""
    if bound.n_dims > 1:
        return None
    if isinstance(bound, EntityLists):
        if all((part.offset == 0).all() for part in bound.lists):
            parts = tuple(_entity_edges(part, bound.n_entities) for part in bound.lists)
            groups = colour_groups(parts, bound.n_entities)
            size = (bound.n_entities, bound.n_rows, bound.n_entities)
            return Graph(parts, *size, groups, False, ((0, len(groups)),))
        parts = tuple(_cell_edges(part, bound.n_rows, bound.n_entities) for part in bound.lists)
        return _cell_graph(parts, bound)
    if isinstance(bound, CellLists):
        owner = np.repeat(np.arange(len(bound.indptr) - 1), np.diff(bound.indptr))
        entities = (owner % bound.n_entities, bound.indices % bound.n_entities)
        part = Edges(owner, bound.indices, *entities, bound.scale, bound.binary)
        return _cell_graph((part,), bound)
    return None


def _entity_edges(part: Lists, n_entities: int) -> Edges:
    right = part.slot * n_entities + part.members
    return Edges(part.owner, part.members, part.owner, right, part.scale, part.binary)


def _cell_edges(part: Lists, n_rows: int, n_entities: int) -> Edges:
    """The lists of every row; members in rows that do not exist are left out."""
    row = np.repeat(np.arange(n_rows), len(part.members))
    owner, member = np.tile(part.owner, n_rows), np.tile(part.members, n_rows)
    right = np.tile(part.slot * n_entities + part.members, n_rows)
    source = row + np.tile(part.offset, n_rows)
    kept = (source >= 0) & (source < n_rows)
    cells = (row * n_entities + owner)[kept], (source * n_entities + member)[kept]
    return Edges(*cells, owner[kept], right[kept], part.scale, part.binary)


def _cell_graph(parts: tuple[Edges, ...], bound: BoundContext) -> Graph:
    """Row by row where contexts look one way in time, else all cells together."""
    size, n_rows = bound.n_entities, bound.n_rows
    steps = np.concatenate([part.member // size - part.owner // size for part in parts])
    n_cells = size * n_rows
    shape = (n_cells, 1, size)
    if (steps > 0).any() and (steps < 0).any():
        groups = colour_groups(parts, n_cells)
        return Graph(parts, *shape, groups, False, ((0, len(groups)),))
    rows = np.arange(n_rows) if not (steps > 0).any() else np.arange(n_rows)[::-1]
    causal = not (steps == 0).any()
    if causal:
        columns: tuple[Ints, ...] = (np.arange(size),)
    else:
        within = tuple(_within_rows(part, size) for part in parts)
        columns = colour_groups(within, size)
    groups = tuple(row * size + column for row in rows for column in columns)
    runs = [(i * len(columns), (i + 1) * len(columns)) for i in range(n_rows)]
    return Graph(parts, *shape, groups, causal, tuple(runs))


def _within_rows(part: Edges, size: int) -> Edges:
    """Edges between entities of the same row, over all rows."""
    same = part.owner // size == part.member // size
    ends = (part.owner[same] % size, part.member[same] % size)
    return Edges(*ends, *ends, part.scale, part.binary)


def colour_groups(parts: Iterable[Edges], n_nodes: int) -> tuple[Ints, ...]:
    """Groups of nodes without an edge inside a group (greedy colouring).

    >>> line = Edges(np.array([0, 1]), np.array([1, 2]), *[np.array([0, 1])] * 2, "none", False)
    >>> [group.tolist() for group in colour_groups([line], 3)]
    [[0, 2], [1]]
    """
    from scipy.sparse import csr_array

    pairs = [(part.owner, part.member) for part in parts]
    one, two = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
    both = (np.concatenate([one, two]), np.concatenate([two, one]))
    near = csr_array((np.ones(len(both[0]), dtype=bool), both), shape=(n_nodes, n_nodes))
    ptr, indices = near.indptr.tolist(), near.indices
    colour = np.full(n_nodes, -1, dtype=np.int64)
    for node in range(n_nodes):
        taken = set(colour[indices[ptr[node] : ptr[node + 1]]].tolist())
        mine = 0
        while mine in taken:
            mine += 1
        colour[node] = mine
    return tuple(np.flatnonzero(colour == c) for c in range(int(colour.max(initial=0)) + 1))


class GroupProducts:
    """Inner products of any group of nodes given the present values (nodes, columns)."""

    def __init__(self, graph: Graph, target: Floats, bag: Floats, dtype: Any) -> None:
        from scipy.sparse import csr_array

        shape = (graph.n_nodes, graph.n_nodes)
        self.parts = []
        for part in graph.parts:
            ends = (part.owner, part.member)
            weight = csr_array((part.weights(target, bag).astype(dtype), ends), shape=shape)
            ones = csr_array((np.ones(len(part.owner), dtype=dtype), ends), shape=shape)
            cut = [weight[group] for group in graph.groups]
            counts = [ones[group] for group in graph.groups] if part.scale != "none" else []
            self.parts.append((part, cut, counts))

    def __call__(self, number: int, x: Floats) -> Floats:
        """rho . s / d of the nodes of group `number`."""
        total: Any = 0.0
        for part, weights, ones in self.parts:
            value = (x != 0).astype(x.dtype) if part.binary else x
            sums = weights[number] @ value
            if part.scale == "items":
                sums = sums / or_one(np.asarray(ones[number].sum(axis=1)))[:, None]
            elif part.scale == "total":
                sums = sums / or_one(ones[number] @ value)
            total = total + sums
        return np.asarray(total)
