"""Statistics: what a fit must know about all rows before training; sums over shards.

Nothing here depends on the assignment of rows to shards, so that a shard is trained as a part of
the whole and not as a small data set of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from efemb._typing import Floats
from efemb.engine.threads import cut
from efemb.model.contexts.base import BoundContext, or_one

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

BLOCK_ROWS = 64  # rows whose copies fit into the cache
OUTWEIGHS = 3e4  # times the rest of its row: subtracting it leaves three digits of the rest


@dataclass(frozen=True)
class ValueMoments:
    """Moments of the values of every number, an entity's or one of its D.

    n_rows : rows of the data
    observed : array (N, D), number of rows in which each number is observed
    total, squares : arrays (N, D), sums of the values and of their squares
    largest : the largest absolute value
    """

    n_rows: int
    observed: Floats
    total: Floats
    squares: Floats
    largest: float

    @classmethod
    def of(cls, data: Dataset) -> ValueMoments:
        """Measure a data set, or a shard of one."""
        if data.is_sparse:
            column, stored = data.values.indices, np.nan_to_num(data.values.data).astype(np.float64)
            total: Any = np.bincount(column, stored, data.n_entities)[:, None]
            squares: Any = np.bincount(column, stored**2, data.n_entities)[:, None]
            observed: Floats = np.full((data.n_entities, 1), float(data.n_rows))
            largest = float(np.abs(stored).max(initial=0.0))
            return cls(data.n_rows, observed, total, squares, largest)
        shape, largest = (data.n_entities, data.n_dims), 0.0
        total, squares, observed = (np.zeros(shape) for _ in range(3))
        for rows in cut(data.n_rows, BLOCK_ROWS):
            values = np.array(data.values[rows], dtype=np.float64).reshape(-1, *shape)
            missing = np.isnan(values)
            values[missing] = 0.0
            total += values.sum(axis=0)
            squares += np.einsum("tnd,tnd->nd", values, values)
            observed += len(values) - missing.sum(axis=0)
            largest = max(largest, float(values.max()), -float(values.min()))
        return cls(data.n_rows, observed, total, squares, largest)

    def __add__(self, other: ValueMoments) -> ValueMoments:
        """The moments of both shards together."""
        return ValueMoments(
            self.n_rows + other.n_rows,
            self.observed + other.observed,
            self.total + other.total,
            self.squares + other.squares,
            max(self.largest, other.largest),
        )

    @property
    def mean(self) -> Floats:
        """Mean of each number over the rows in which it is observed."""
        return self.total / np.maximum(self.observed, 1.0)

    @property
    def mean_square(self) -> Floats:
        """Mean of its squares."""
        return self.squares / np.maximum(self.observed, 1.0)


def has_outweighing_entry(data: Dataset) -> bool:
    """Whether an entry is far larger than all others of its row, or than 1 if it is alone.

    The rounding error that an entry leaves if it is alone is divided by 1. A data set has such an
    entry if any of its shards has.
    """
    if data.n_dims > 1:  # those sums are computed in double precision anyway
        return False
    stored = data.values
    if not data.is_sparse:  # dense values may have a third axis of length 1
        stored = csr_array(np.nan_to_num(stored.reshape(data.n_rows, data.n_entities)))
    size = np.abs(stored.data.astype(np.float64))
    if len(size) == 0 or size.max() <= OUTWEIGHS * min(size.min(), 1.0):
        return False
    row = np.repeat(np.arange(data.n_rows), np.diff(stored.indptr))
    rest = np.bincount(row, size, data.n_rows)[row] - size
    return bool((size > OUTWEIGHS * or_one(rest)).any())


@dataclass(frozen=True)
class Statistics:
    """Statistics of the training rows: starting values, and the popularity of entities.

    n_rows : rows
    total : array (N * D,), sums of the values, weighted by row
    weight : array (N * D,), total weight of the rows in which each number is observed
    context_total, context_weight : weighted sum of the sums of scaled contexts, and its weight
    popularity : array (N,), number of rows with each entity, None unless rows are contexts; for
        words, their counts in the text of the vocabulary
    n_members : effective number of members of contexts that are fixed for each entity (its
        inverse if a scale divides by it), else None
    is_text : whether rows are the tokens of a text
    """

    n_rows: int
    total: Floats
    weight: Floats
    context_total: float
    context_weight: float
    popularity: Floats | None = None
    n_members: float | None = None
    is_text: bool = False

    @classmethod
    def of(cls, bound: BoundContext, row_weight: Floats) -> Statistics:
        """Measure bound data, or a shard of them."""
        popularity = count_entities(bound) if bound.shares_rows else None
        return cls(
            bound.n_rows,
            *_column_totals(bound, row_weight),
            *_context_totals(bound, row_weight),
            popularity=popularity,
            n_members=_n_members(bound),
            is_text=bound.is_text,
        )

    def __add__(self, other: Statistics) -> Statistics:
        """The statistics of both shards together; fixed contexts and word counts are the same."""
        popularity = self.popularity
        if popularity is not None and other.popularity is not None and not self.is_text:
            popularity = popularity + other.popularity
        return replace(
            self,
            n_rows=self.n_rows + other.n_rows,
            total=self.total + other.total,
            weight=self.weight + other.weight,
            context_total=self.context_total + other.context_total,
            context_weight=self.context_weight + other.context_weight,
            popularity=popularity,
        )

    @property
    def mean(self) -> Floats:
        """Weighted mean of each number over the rows in which it is observed (N * D,)."""
        return self.total / np.where(self.weight > 0, self.weight, 1.0)

    @property
    def context_size(self) -> float:
        """Weighted mean of the sum of a scaled context."""
        return max(self.context_total / self.context_weight, 1e-6)


def count_entities(bound: Any) -> Floats:
    """Number of rows with each entity, if rows are contexts; for words, their own counts."""
    if bound.is_text:
        return np.asarray(bound.word_counts)
    return np.asarray(bound.stored.count_entities(bound.n_entities), dtype=np.float64)


def _column_totals(bound: Any, row_weight: Floats) -> tuple[Floats, Floats]:
    """Weighted sums of each number, and the weights of the rows in which it is observed."""
    if bound.is_text:
        n_tokens = bound.n_rows if bound.exposure is None else float(bound.exposure.sum())
        return bound.own_counts, np.full(bound.n_entities, max(n_tokens, 1.0))
    data = bound.data
    if data.is_sparse:
        total = np.asarray(data.values.T @ row_weight, dtype=np.float64).ravel()
        return total, np.full(len(total), float(row_weight.sum()))
    flat = data.values.reshape(data.n_rows, -1)
    total, weight = np.zeros((2, flat.shape[1]))
    for rows in cut(len(flat), BLOCK_ROWS):
        block, mass = flat[rows].astype(np.float64), row_weight[rows]
        observed = ~np.isnan(block)
        total += mass @ np.where(observed, block, 0.0)
        weight += mass @ observed
    return total, weight


def _context_totals(bound: Any, row_weight: Floats) -> tuple[float, float]:
    """Weighted sum of the sums of scaled contexts, and its weight; for text, those of all words."""
    n_rows = float(bound.n_rows)
    if not bound.shares_rows or bound.scale == "total":
        return n_rows, n_rows
    if bound.is_text:
        return n_rows * (1.0 if bound.scale == "items" else 2.0 * bound.reach), n_rows
    stored = bound.stored
    size = np.diff(stored.ptr)
    total = np.add.reduceat(np.append(stored.own, 0.0), stored.ptr[:-1]) * (size > 0)
    scaled = total / np.maximum(size, 1) if bound.scale == "items" else total
    return float(row_weight @ scaled), float(row_weight.sum())


def _n_members(bound: BoundContext) -> float | None:
    """Effective number of members, for contexts that are fixed for each entity."""
    if bound.lists is None:
        return None
    degree = max(1.0, sum(len(edges.members) for edges in bound.lists) / bound.n_entities)
    return 1.0 / degree if any(edges.scale != "none" for edges in bound.lists) else degree


def centered(bound: BoundContext, data: Dataset, weight: Floats | None = None) -> BoundContext:
    """The same contexts with the members of fixed lists measured from their weighted means."""
    if bound.lists is None or bound.n_dims > 1:
        return bound
    return bound.about(column_means(data, weight))


def column_means(data: Dataset, weight: Floats | None = None) -> Floats:
    """Weighted mean of every entity over the rows in which it is observed, (N,) of scalar data."""
    if weight is not None:
        data = data.take_rows(weight > 0)
        weight = weight[weight > 0]
    dense = data.values.toarray() if data.is_sparse else data.values
    flat = np.asarray(dense, dtype=np.float64).reshape(data.n_rows, data.n_entities)
    observed = ~np.isnan(flat)
    mass = np.ones(data.n_rows) if weight is None else weight
    total = mass @ np.where(observed, flat, 0.0)
    return np.asarray(total / np.maximum(mass @ observed, np.finfo(float).tiny))
