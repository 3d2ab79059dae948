"""Entities of row contexts (baskets): all rows are cases; zeros of a row share a context."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.inference.conditionals import Conditionals, Design, Inverse, typical_curvature
from efemb.kernels.sparse import bag_sums
from efemb.model.contexts.bound.rows import RowBags, RowBlock
from efemb.model.factors import Factors
from efemb.model.objective import value_and_slope
from efemb.model.predictor import Predictor, row_side
from efemb.model.spec import Spec
from efemb.model.terms.base import RowSide

ROWS_AT_ONCE = 2048
BLOCK_NUMBERS = 1 << 18  # inner products at a time, to fit into the cache
OFFSETS_AT_ONCE = 1 << 25  # stored numbers of rows x entities
LEAST = 1e-20  # weight of zeros without weight: their cells still carry the slopes of entries


class RowConditionals(Conditionals):
    """u_tn = rho_n . (S_t - own alpha_n) / rest + b_n where x_tn is stored, else rho_n . S_t / D_t.

    Parameters
    ----------
    spec, bound : the model and the context of every observation
    factors : all vectors, of which only those of the contexts matter
    entities : the predicted ones
    row_weight : (rows,)
    """

    def __init__(
        self, spec: Spec, bound: RowBags, factors: Factors, entities: Ints, row_weight: Floats
    ) -> None:
        bag, side = factors.bag, row_side(spec, bound)
        self.spec, self.n, self.k = spec, len(entities), factors.target.shape[1]
        self.k_context = bag.shape[1]
        self.dtype, self.alpha, self.n_rows = bag.dtype, bag[entities], bound.n_rows
        lookup = np.full(bound.n_entities, -1, dtype=np.int64)
        lookup[entities] = np.arange(len(entities))
        block = bound.block(np.arange(bound.n_rows))
        self.cases = _make_cases(block, bag, self.k)
        if side is not None:
            columns = side.columns(factors.terms, np.arange(bound.n_rows))
            self.cases[:, self.k_context : -1] = columns
        self._store_offsets(side, factors, entities)
        self._store_entries(block, lookup[block.ids], row_weight)
        self._weigh_entities(block, bound.n_entities, entities)
        seen_row = block.row_of_entry[block.seen]
        positives = np.bincount(seen_row, minlength=len(block.total)).astype(np.float64)
        self._weigh(spec.zeros.weigh_rows(row_weight, positives))

    def _store_offsets(self, side: RowSide | None, factors: Factors, entities: Ints) -> None:
        """Store what offsets of cells are computed from; for many entities they are not stored."""
        self.side = side if side is not None and side.has_cells else None
        self.arrays, self.codes, self.data_rows = factors.terms, entities, np.arange(self.n_rows)
        self._offsets: Floats | None = None

    def offsets(self, rows: slice, which: Ints) -> Floats | None:
        """Offsets of some entities in some rows, None if terms have none."""
        if self.side is None:
            return None
        if len(self.data_rows) * self.n > OFFSETS_AT_ONCE:
            return self._make_offsets(self.data_rows[rows], self.codes[which])
        if self._offsets is None:
            size = len(self.data_rows)
            pieces = [slice(a, a + ROWS_AT_ONCE) for a in range(0, size, ROWS_AT_ONCE)]
            blocks = [self._make_offsets(self.data_rows[piece], self.codes) for piece in pieces]
            self._offsets = np.concatenate(blocks)
        return np.asarray(self._offsets[rows][:, which])

    def _make_offsets(self, rows: Ints, codes: Ints) -> Floats:
        assert self.side is not None
        offsets = self.side.offsets(self.arrays, rows)
        assert offsets is not None
        return offsets.of_entities(codes).astype(self.dtype)

    def subset(self, chosen: Ints) -> RowConditionals:
        """Some of the entities, on the same rows."""
        index = np.full(self.n, -1, dtype=np.int64)
        index[chosen] = np.arange(len(chosen))
        entries = index[self.column] >= 0
        smaller = copy(self)
        smaller.n, smaller.alpha = len(chosen), self.alpha[chosen]
        smaller.column_weight, smaller.noise = self.column_weight[chosen], self.noise[chosen]
        smaller.column = index[self.column[entries]]
        smaller.codes, smaller._offsets = self.codes[chosen], None
        for name in ("row", "seen", "x", "own", "rest", "total"):
            setattr(smaller, name, getattr(self, name)[entries])
        return smaller

    def thinned(self, every: int) -> RowConditionals:
        """Keep every `every`-th of the rows without any of the entities, with more weight."""
        holds = np.zeros(len(self.cases), dtype=bool)
        holds[self.row] = True
        without = np.flatnonzero(~holds)
        drawn = without[::every]
        rows = np.sort(np.concatenate([np.flatnonzero(holds), drawn]))
        weight = self.zero_weight.copy()
        weight[drawn] *= len(without) / max(len(drawn), 1)
        thinned = copy(self)
        thinned.cases = self.cases[rows]
        thinned.data_rows, thinned._offsets = self.data_rows[rows], None
        thinned.row = np.searchsorted(rows, self.row)
        thinned._weigh(weight[rows])
        return thinned

    def _weigh(self, zero_weight: Floats) -> None:
        self.zero_weight = np.maximum(zero_weight, LEAST).astype(self.dtype)
        self.weighted = self.cases
        if not (self.zero_weight == 1).all():
            self.weighted = self.cases * self.zero_weight[:, None]

    def _store_entries(self, block: RowBlock, column: Ints, row_weight: Floats) -> None:
        """Stored entries of the entities: row, entity, weight, value, own part, divisors.

        `seen` is the weight of observed entries, 0 for masked ones.
        """
        entries = column >= 0
        self.row, self.column = block.row_of_entry[entries], column[entries]
        self.seen = (block.seen[entries] * row_weight[self.row]).astype(self.dtype)
        arrays = (block.filled, block.own, block.rest)
        self.x, self.own, self.rest = (array[entries].astype(self.dtype) for array in arrays)
        self.total = block.total.astype(self.dtype)[self.row]

    def _weigh_entities(self, block: RowBlock, n_entities: int, entities: Ints) -> None:
        """Factor of the weight of a zero of each entity, and the noise of its intercept."""
        popularity = np.bincount(block.ids[block.seen], minlength=n_entities).astype(np.float64)
        weight, noise = (
            self.spec.zeros.entity_weights(popularity),
            self.spec.noise_offset(popularity),
        )
        self.column_weight = weight[entities].astype(self.dtype)
        self.noise = np.zeros(len(entities)) if noise is None else noise[entities]

    def evaluate(
        self, rho: Floats, intercept: Floats, which: Ints
    ) -> tuple[Floats, Floats, Floats]:
        """One matrix product to the cells and one back; entries are handled in their cells."""
        vectors, b = rho.astype(self.dtype), intercept.astype(self.dtype)
        predictor = Predictor(Factors(vectors, self.alpha[which], b))
        index = np.full(self.n, -1, dtype=np.int64)
        index[which] = np.arange(len(which))
        column = index[self.column]
        active = np.flatnonzero(column >= 0)
        sums = _Sums(self, predictor, which)
        size = max(64, BLOCK_NUMBERS // max(len(which), 1))
        edges = np.arange(0, len(self.cases) + size, size)
        first = np.searchsorted(self.row[active], edges)
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far is not taken
            for i, start in enumerate(edges[:-1]):
                entries = active[first[i] : first[i + 1]]
                sums.add(slice(start, start + size), entries, column[entries])
            return sums.finish()

    def design(self, i: int) -> Design:
        """Every row, with the entity's own context in rows that contain it."""
        entries = np.flatnonzero(self.column == i)
        row, x = self.row[entries], np.zeros(len(self.cases), self.dtype)
        contexts, weight = self.cases[:, :-1].copy(), self.zero_weight * self.column_weight[i]
        own = self.own[entries, None] * self.alpha[i, : self.k_context]
        remaining = self.total[entries, None] * contexts[row, : self.k_context] - own
        contexts[row, : self.k_context] = remaining / self.rest[entries, None]
        x[row], weight[row] = self.x[entries], self.seen[entries]
        offset: Floats | None = None
        if self.side is not None:
            every = [slice(a, a + ROWS_AT_ONCE) for a in range(0, len(x), ROWS_AT_ONCE)]
            blocks: Any = [self.offsets(rows, np.array([i])) for rows in every]
            offset = np.concatenate(blocks)[:, 0]
        return Design(contexts, x, weight, offset, entity=int(self.codes[i]))

    def inverse(self, rho: Floats, intercept: Floats, prior: Floats) -> Inverse:
        """Computed in the eigenvectors of the centered contexts, which all entities share."""
        mass = float(self.zero_weight.sum(dtype=np.float64))
        gram = (self.cases.T @ self.weighted).astype(np.float64)
        center = gram[:-1, -1] / mass
        spread, basis = np.linalg.eigh(gram[:-1, :-1] - mass * np.outer(center, center))
        total = np.asarray(np.bincount(self.column, self.x, self.n), np.float64)
        bend = typical_curvature(
            self.spec.family.at(self.codes), self.spec.link, total, self.n_rows
        )
        bend = (bend * self.column_weight)[:, None]
        scale = 1.0 / (bend * np.maximum(spread, 0.0) + prior[:, : self.k].mean(axis=1)[:, None])
        last = 1.0 / (bend[:, 0] * mass + prior[:, -1])

        def apply(gradient: Floats, which: Ints) -> Floats:
            if not self.spec.intercept:
                return np.asarray((gradient @ basis * scale[which]) @ basis.T)
            move, rest = np.empty_like(gradient), gradient[:, -1:]
            move[:, :-1] = ((gradient[:, :-1] - rest * center) @ basis * scale[which]) @ basis.T
            move[:, -1] = rest[:, 0] * last[which] - move[:, :-1] @ center
            return move

        return apply


class _Sums:
    """Values and gradients of some entities, added up block by block."""

    def __init__(self, conditionals: RowConditionals, predictor: Predictor, which: Ints) -> None:
        self.conditionals, self.predictor, self.which = conditionals, predictor, which
        self.target = predictor.affine_target()
        self.family, self.link = conditionals.spec.family, conditionals.spec.link
        self.codes = conditionals.codes[which]
        # The slope and the value of a zero are -mean; its sum is a column of the product.
        self.exponential = self.family.linear_mean and self.link.is_identity
        self.column = conditionals.column_weight[which]
        self.even = bool((self.column == 1).all())
        self.value, self.own = np.zeros(len(which)), np.zeros(len(which))
        self.gradient = np.zeros(self.target.shape)

    def add(self, rows: slice, entries: Ints, column: Ints) -> None:
        """Add every cell as a zero, then the stored entries in their cells."""
        c, n = self.conditionals, len(self.which)
        row = c.row[entries]
        E: Floats = c.cases[rows] @ self.target.T
        cells = (row - rows.start, column)
        offset: Floats | float = 0.0
        offsets = c.offsets(rows, self.which)
        if offsets is not None:
            E += offsets
            offset = offsets[cells]
        as_zero = E[cells]
        E = self._zeros(E, c.zero_weight[rows])
        rest, own, total = c.rest[entries], c.own[entries], c.total[entries]
        side = c.cases[row, c.k_context : -1]
        added = np.einsum("ek,ek->e", side, self.target[column, c.k_context : -1]) + offset
        u = self.predictor.leave_bag(as_zero, total, own, rest, column, added)
        family = self.family.at(self.codes[column])
        gain, slope = value_and_slope(family, self.link, c.x[entries], u)
        gain, slope = gain * c.seen[entries], slope * c.seen[entries]
        zero_weight, ratio = c.zero_weight[row], total / rest
        slopes = slope  # `finish` adds the slopes of all cells, entries included
        if not self.exponential:
            loss, _ = value_and_slope(family, self.link, np.zeros_like(as_zero), as_zero)
            slopes = loss * zero_weight * self.column[column]
        self.value += np.bincount(column, gain - slopes, n)
        self.own += np.bincount(column, slope * own / rest, n)
        E[cells] = slope * ratio / zero_weight
        self.gradient += E.T @ c.weighted[rows]
        # The divisors of the context affect neither the terms nor the intercept.
        undivided = slope * (1.0 - ratio)
        if side.shape[1]:
            np.add.at(self.gradient[:, c.k_context : -1], column, undivided[:, None] * side)
        self.gradient[:, -1] += np.bincount(column, undivided, n)

    def _zeros(self, E: Floats, weight: Floats) -> Floats:
        """Slopes of the cells as zeros, without the weights of the rows."""
        if self.exponential:
            np.exp(E, out=E)
            np.negative(E, out=E)
        else:
            family = self.family.at(self.codes)
            value, E = value_and_slope(family, self.link, np.zeros_like(E), E)
            self.value += (weight @ value) * self.column
        return E if self.even else E * self.column

    def finish(self) -> tuple[Floats, Floats, Floats]:
        """Log-likelihoods, gradients in the vectors and in the intercepts."""
        if self.exponential:
            self.value += self.gradient[:, -1]
        c = self.conditionals
        self.gradient[:, : c.k_context] -= self.own[:, None] * c.alpha[self.which]
        return self.value, self.gradient[:, :-1], self.gradient[:, -1]


def _make_cases(block: RowBlock, bag: Floats, width: int) -> Floats:
    """Scaled sum of the whole bag of each row, room for the row side of terms, and a 1."""
    values, total = block.bag_values.astype(bag.dtype), block.total.astype(bag.dtype)
    cases = np.empty((len(total), width + 1), dtype=bag.dtype)
    cases[:, -1] = 1.0
    sums = np.empty((ROWS_AT_ONCE, bag.shape[1]), dtype=bag.dtype)  # fits into the cache
    for start in range(0, len(total), ROWS_AT_ONCE):
        rows = slice(start, min(start + ROWS_AT_ONCE, len(total)))
        block_sums = sums[: rows.stop - rows.start]
        ptr = block.bag_ptr[rows.start : rows.stop + 1]
        bag_sums(ptr, block.bag_ids, values, bag, block_sums)
        np.divide(block_sums, total[rows, None], out=cases[rows, : bag.shape[1]])
    return cases
