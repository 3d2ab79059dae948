"""The graph of observations that is defined by lists of context members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from efemb._typing import Floats, Ints
from efemb.model.contexts import BoundContext
from efemb.model.contexts.base import or_one
from efemb.model.contexts.bound.entities import Lists


@dataclass(frozen=True)
class Edges:
    """Members of some nodes: node `owner[e]` has `member[e]` in its context.

    A node is an entity (in every row) or, if rows depend on one another, a single cell.
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
class ObservationGraph:
    """All edges on `n_nodes` nodes, and the groups of nodes to draw together, in order."""

    parts: tuple[Edges, ...]
    n_nodes: int
    n_columns: int
    n_entities: int
    groups: tuple[Ints, ...]
    causal: bool  # one pass over the groups is an exact draw
    repeats: tuple[tuple[int, int], ...]  # runs of groups that are swept before the next run

    def schedule(self, sweeps: int) -> Iterator[int]:
        """Numbers of the groups in the order in which they are drawn."""
        for first, last in self.repeats:
            for _ in range(1 if self.causal else sweeps):
                yield from range(first, last)


def graph_of(bound: BoundContext) -> ObservationGraph | None:
    """The context as a graph; None if it does not consist of lists."""
    if bound.n_dims > 1:
        return None
    if bound.lists is not None:
        if not any(lists.reaches_other_rows for lists in bound.lists):
            parts = tuple(_entity_edges(lists, bound.n_entities) for lists in bound.lists)
            groups = color_groups(parts, bound.n_entities)
            size = (bound.n_entities, bound.n_rows, bound.n_entities)
            return ObservationGraph(parts, *size, groups, False, ((0, len(groups)),))
        size_of_data = (bound.n_rows, bound.n_entities)
        return _cell_graph(tuple(_cell_edges(lists, *size_of_data) for lists in bound.lists), bound)
    if bound.cell_lists is not None:
        lists = bound.cell_lists
        owner = lists.owner
        entities = (owner % bound.n_entities, lists.members % bound.n_entities)
        edges = Edges(owner, lists.members, *entities, lists.scale, lists.binary)
        return _cell_graph((edges,), bound)
    return None


def _entity_edges(lists: Lists, n_entities: int) -> Edges:
    right = lists.slot * n_entities + lists.members
    return Edges(lists.owner, lists.members, lists.owner, right, lists.scale, lists.binary)


def _cell_edges(lists: Lists, n_rows: int, n_entities: int) -> Edges:
    """The lists of every row; members in rows that do not exist are dropped."""
    row = np.repeat(np.arange(n_rows), len(lists.members))
    owner, member = np.tile(lists.owner, n_rows), np.tile(lists.members, n_rows)
    right = np.tile(lists.slot * n_entities + lists.members, n_rows)
    source = row + np.tile(lists.offset, n_rows)
    exists = (source >= 0) & (source < n_rows)
    cells = (row * n_entities + owner)[exists], (source * n_entities + member)[exists]
    return Edges(*cells, owner[exists], right[exists], lists.scale, lists.binary)


def _cell_graph(parts: tuple[Edges, ...], bound: BoundContext) -> ObservationGraph:
    """Row by row if contexts reach in one direction of time, else all cells together."""
    size, n_rows = bound.n_entities, bound.n_rows
    steps = np.concatenate([edges.member // size - edges.owner // size for edges in parts])
    n_cells = size * n_rows
    shape = (n_cells, 1, size)
    if (steps > 0).any() and (steps < 0).any():
        groups = color_groups(parts, n_cells)
        return ObservationGraph(parts, *shape, groups, False, ((0, len(groups)),))
    rows = np.arange(n_rows) if not (steps > 0).any() else np.arange(n_rows)[::-1]
    causal = not (steps == 0).any()
    if causal:
        columns: tuple[Ints, ...] = (np.arange(size),)
    else:
        within = tuple(_within_rows(edges, size) for edges in parts)
        columns = color_groups(within, size)
    groups = tuple(row * size + column for row in rows for column in columns)
    runs = [(i * len(columns), (i + 1) * len(columns)) for i in range(n_rows)]
    return ObservationGraph(parts, *shape, groups, causal, tuple(runs))


def _within_rows(edges: Edges, size: int) -> Edges:
    """Edges between entities of the same row, over all rows."""
    same = edges.owner // size == edges.member // size
    ends = (edges.owner[same] % size, edges.member[same] % size)
    return Edges(*ends, *ends, edges.scale, edges.binary)


def color_groups(edge_sets: Iterable[Edges], n_nodes: int) -> tuple[Ints, ...]:
    """Groups of nodes without an edge inside a group (greedy coloring).

    >>> line = Edges(np.array([0, 1]), np.array([1, 2]), *[np.array([0, 1])] * 2, "none", False)
    >>> [group.tolist() for group in color_groups([line], 3)]
    [[0, 2], [1]]
    """
    pairs = [(edges.owner, edges.member) for edges in edge_sets]
    owner, member = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
    both = (np.concatenate([owner, member]), np.concatenate([member, owner]))
    adjacent = csr_array((np.ones(len(both[0]), dtype=bool), both), shape=(n_nodes, n_nodes))
    ptr, indices = adjacent.indptr.tolist(), adjacent.indices
    color = np.full(n_nodes, -1, dtype=np.int64)
    for node in range(n_nodes):
        used_colors = set(color[indices[ptr[node] : ptr[node + 1]]].tolist())
        free = 0
        while free in used_colors:
            free += 1
        color[node] = free
    return tuple(np.flatnonzero(color == c) for c in range(int(color.max(initial=0)) + 1))


class GroupProducts:
    """Inner products of any group of nodes given the current values (nodes, columns)."""

    def __init__(self, graph: ObservationGraph, target: Floats, bag: Floats, dtype: Any) -> None:
        shape = (graph.n_nodes, graph.n_nodes)
        self.parts = []
        for edges in graph.parts:
            ends = (edges.owner, edges.member)
            weight = csr_array((edges.weights(target, bag).astype(dtype), ends), shape=shape)
            ones = csr_array((np.ones(len(edges.owner), dtype=dtype), ends), shape=shape)
            weights = [weight[nodes] for nodes in graph.groups]
            counts = [ones[nodes] for nodes in graph.groups] if edges.scale != "none" else []
            self.parts.append((edges, weights, counts))

    def __call__(self, group: int, x: Floats) -> Floats:
        """rho . s / d of the nodes of a group, by its number."""
        total: Any = 0.0
        for edges, weights, counts in self.parts:
            value = (x != 0).astype(x.dtype) if edges.binary else x
            sums = weights[group] @ value
            if edges.scale == "items":
                sums = sums / or_one(np.asarray(counts[group].sum(axis=1)))[:, None]
            elif edges.scale == "total":
                sums = sums / or_one(counts[group] @ value)
            total = total + sums
        return np.asarray(total)
