"""Huffman: the tree of a hierarchical softmax, with short paths to frequent words."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from efemb._typing import Floats, Ints


@dataclass(frozen=True)
class Huffman:
    """Path of every entity from the root: inner nodes and the turns (0 or 1) taken there.

    starts : (N + 1,) where each entity's path starts;  nodes, turns : the paths one after the other
    odds : (N,) log-odds of turn 1 at each of the N - 1 nodes according to the counts; the last
        number belongs to no node
    """

    starts: Ints
    nodes: Ints
    turns: Ints
    odds: Floats

    @classmethod
    def of(cls, counts: Floats) -> Huffman:
        """Build the tree; entities that never occur have a count of one half.

        >>> tree = Huffman.of(np.array([4.0, 2.0, 1.0]))
        >>> [tree.nodes[a:b].tolist() for a, b in zip(tree.starts, tree.starts[1:])]
        [[1], [1, 0], [1, 0]]
        """
        n = len(counts)
        weight = np.maximum(np.asarray(counts, dtype=np.float64), 0.5).tolist()
        heap = [(w, i) for i, w in enumerate(weight)]
        heapq.heapify(heap)
        parent, turn = np.zeros(2 * n - 1, np.int64), np.zeros(2 * n - 1, np.int8)
        odds = np.zeros(n)
        for node in range(n - 1):
            (left, i), (right, j) = heapq.heappop(heap), heapq.heappop(heap)
            parent[i] = parent[j] = n + node
            turn[i] = 1
            odds[node] = np.log(left / right)
            heapq.heappush(heap, (left + right, n + node))
        return cls._paths(n, parent, turn, odds)

    @classmethod
    def _paths(cls, n: int, parent: Ints, turn: Ints, odds: Floats) -> Huffman:
        depth = np.zeros(2 * n - 1, np.int64)
        for i in range(2 * n - 3, -1, -1):  # parents have larger numbers
            depth[i] = depth[parent[i]] + 1
        starts = np.concatenate([[0], np.cumsum(depth[:n])])
        nodes, turns = np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int8)
        node: Ints = np.arange(n)
        remaining = depth[:n].copy()
        at = starts[1:] - 1
        while len(node):
            nodes[at], turns[at] = parent[node] - n, turn[node]
            up = remaining > 1
            node, at, remaining = parent[node][up], at[up] - 1, remaining[up] - 1
        return cls(starts, nodes, turns, odds)

    def log_probability(self, u: Floats, entities: Ints) -> Floats:
        """log p of one entity for each row of u, the inner products with all nodes (rows, N)."""
        sizes = np.diff(self.starts)[entities]
        row = np.repeat(np.arange(len(entities)), sizes)
        first = np.repeat(self.starts[entities] - np.cumsum(sizes) + sizes, sizes)
        positions = np.arange(len(row)) + first
        sign = 2.0 * self.turns[positions] - 1.0
        terms = -np.logaddexp(0.0, -sign * u[row, self.nodes[positions]])
        return np.asarray(np.bincount(row, terms, len(entities)), np.float64)

    def probabilities(self, u: Floats) -> Floats:
        """p of every entity for each row of u, (rows, N)."""
        yes, no = -np.logaddexp(0.0, -u), -np.logaddexp(0.0, u)
        share = np.empty_like(yes)
        for row in range(len(u)):
            terms = np.where(self.turns == 1, yes[row, self.nodes], no[row, self.nodes])
            share[row] = np.add.reduceat(terms, self.starts[:-1])
        return np.exp(share)
