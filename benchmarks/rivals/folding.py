"""Fold-in of rows into a Poisson factorisation: zeros count, the asked cell does not."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks.rivals.base import Rival, blocks

Array = NDArray[Any]
MOST_STEPS, CLOSE = 300, 1e-3


class Factorisation(Rival):
    """A model whose means are products of factors: E[x_tn] = theta_t . beta_n."""

    @abstractmethod
    def folded(self, values: csr_array, rows: Array, entities: Array) -> Array:
        """(cells, K) factor of each asked row, found without its asked item."""

    def log_means(self, X: Any, rows: Array, entities: Array) -> Iterator[tuple[slice, Array]]:
        for part, values, cells, asked in blocks(X, rows, entities):
            yield part, self.log_mean(self.folded(values, cells, asked))

    @abstractmethod
    def log_mean(self, theta: Array) -> Array:
        """(cells, N) log means of all items."""


def multiplicative(values: csr_array, rows: Array, entities: Array, columns: Array) -> Array:
    """Weights that maximise the Poisson likelihood of each row without its asked item.

    theta_k <- theta_k sum_n x_n h_nk / (theta . h_n) / sum_n h_nk; the cells of one row together.
    """
    theta = np.empty((len(rows), columns.shape[1]))
    total = columns.sum(axis=0)
    edges = np.flatnonzero(np.diff(rows, prepend=-1, append=-1))
    for start, stop in pairwise(edges):
        stored = slice(*values.indptr[rows[start] : rows[start] + 2])
        ids, x = values.indices[stored], values.data[stored].astype(np.float64)
        asked = entities[start:stop]
        counts = np.where(ids == asked[:, None], 0.0, x)
        theta[start:stop] = _one_row(counts, columns[ids], total - columns[asked])
    return np.asarray(theta)


def _one_row(counts: Array, items: Array, rest: Array) -> Array:
    """counts (cells, n), items (n, K), rest (cells, K): sum of the other columns."""
    rest = np.maximum(rest, 1e-12)
    theta = np.ones(rest.shape) * (counts.sum(axis=1) / rest.sum(axis=1))[:, None]
    for _ in range(MOST_STEPS):
        before = theta
        theta = theta * ((counts / np.maximum(theta @ items.T, 1e-30)) @ items) / rest
        change = np.abs(theta - before).sum(axis=1)
        if (change <= CLOSE * theta.sum(axis=1)).all():
            break
    return np.asarray(theta)
