"""Entities of row contexts (baskets): all rows are cases, and zeros of a row share its context."""

from __future__ import annotations

from copy import copy

import numpy as np

from efemb._typing import Floats, Ints
from efemb.inference.design import Conditionals, Design, Inverse, typical_curvature
from efemb.model.contexts.bound.rows import RowBags, RowBlock
from efemb.model.factors import Factors
from efemb.model.objective import value_and_slope
from efemb.model.predictor import Predictor, row_side
from efemb.model.spec import Spec

ROWS_AT_ONCE = 2048
BLOCK_NUMBERS = 1 << 18  # inner products at a time: they stay in the cache
LEAST = 1e-20  # zeros of no weight: their cells still carry the slopes of entries


class RowConditionals(Conditionals):
    """u_tn = rho_n . (S_t - own alpha_n) / rest + b_n where x_tn is stored, else rho_n . S_t / D_t.

    Parameters
    ----------
    spec, bound : the model and the context of every observation
    factors : all vectors, of which only those of the contexts matter
    entities : which are predicted
    row_weight : (rows,)
    """

    def __init__(
        self, spec: Spec, bound: RowBags, factors: Factors, entities: Ints, row_weight: Floats
    ) -> None:
        bag, side = factors.bag, row_side(spec, bound)
        self.spec, self.n, self.k = spec, len(entities), bag.shape[1]
        self.k_context = self.k if side is None else self.k - side.width
        self.dtype, self.alpha, self.n_rows = bag.dtype, bag[entities], bound.n_rows
        lookup = np.full(bound.n_entities, -1, dtype=np.int64)
        lookup[entities] = np.arange(len(entities))
        block = bound.block(np.arange(bound.n_rows))
        self.cases = _cases(block, bag)
        if side is not None:
            columns = side.columns(factors.terms, np.arange(bound.n_rows))
            self.cases[:, self.k_context : -1] = columns
        self._keep_entries(block, lookup[block.ids], row_weight)
        self._weigh_entities(block, bound.n_entities, entities)
        seen_row = block.row_of_entry[block.seen]
        positives = np.bincount(seen_row, minlength=len(block.total)).astype(np.float64)
        self._weigh(spec.zeros.weigh_rows(row_weight, positives))

    def subset(self, places: Ints) -> RowConditionals:
        """Some of the entities, on the same rows."""
        lookup = np.full(self.n, -1, dtype=np.int64)
        lookup[places] = np.arange(len(places))
        mine = lookup[self.place] >= 0
        found = copy(self)
        found.n, found.alpha = len(places), self.alpha[places]
        found.column_weight, found.noise = self.column_weight[places], self.noise[places]
        found.place = lookup[self.place[mine]]
        for name in ("row", "seen", "x", "own", "rest", "total"):
            setattr(found, name, getattr(self, name)[mine])
        return found

    def thinned(self, every: int) -> RowConditionals:
        """Of the rows without any of the entities only every so many-th, with so much weight."""
        holds = np.zeros(len(self.cases), dtype=bool)
        holds[self.row] = True
        others = np.flatnonzero(~holds)
        kept = others[::every]
        rows = np.sort(np.concatenate([np.flatnonzero(holds), kept]))
        weight = self.zero_weight.copy()
        weight[kept] *= len(others) / max(len(kept), 1)
        found = copy(self)
        found.cases = self.cases[rows]
        found.row = np.searchsorted(rows, self.row)
        found._weigh(weight[rows])
        return found

    def _weigh(self, zero_weight: Floats) -> None:
        self.zero_weight = np.maximum(zero_weight, LEAST).astype(self.dtype)
        self.weighted = self.cases
        if not (self.zero_weight == 1).all():
            self.weighted = self.cases * self.zero_weight[:, None]

    def _keep_entries(self, block: RowBlock, place: Ints, row_weight: Floats) -> None:
        """Stored entries of the entities: row, entity, weight, value, what it takes out, divisors.

        `seen` is the weight of what is observed, 0 where an entry is masked.
        """
        mine = place >= 0
        self.row, self.place = block.row_of_entry[mine], place[mine]
        self.seen = (block.seen[mine] * row_weight[self.row]).astype(self.dtype)
        arrays = (block.filled, block.own, block.rest)
        self.x, self.own, self.rest = (array[mine].astype(self.dtype) for array in arrays)
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
        """One matrix product to the cells and one back; entries ride in their cells."""
        vectors, b = rho.astype(self.dtype), intercept.astype(self.dtype)
        predictor = Predictor(Factors(vectors, self.alpha[which], b))
        lookup = np.full(self.n, -1, dtype=np.int64)
        lookup[which] = np.arange(len(which))
        where = lookup[self.place]
        mine = np.flatnonzero(where >= 0)
        sums = _Sums(self, predictor, which)
        size = max(64, BLOCK_NUMBERS // max(len(which), 1))
        edges = np.arange(0, len(self.cases) + size, size)
        first = np.searchsorted(self.row[mine], edges)
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far is not taken
            for i, start in enumerate(edges[:-1]):
                entries = mine[first[i] : first[i + 1]]
                sums.add(slice(start, start + size), entries, where[entries])
            return sums.finished()

    def design(self, place: int) -> Design:
        """Every row; in those that hold the entity, its own context."""
        mine = np.flatnonzero(self.place == place)
        row, x = self.row[mine], np.zeros(len(self.cases), self.dtype)
        contexts, weight = self.cases[:, :-1].copy(), self.zero_weight * self.column_weight[place]
        own = self.own[mine, None] * self.alpha[place, : self.k_context]
        left = self.total[mine, None] * contexts[row, : self.k_context] - own
        contexts[row, : self.k_context] = left / self.rest[mine, None]
        x[row], weight[row] = self.x[mine], self.seen[mine]
        return Design(contexts, x, weight)

    def inverse(self, rho: Floats, intercept: Floats, prior: Floats) -> Inverse:
        """In the eigenvectors of the centred contexts, which all entities share."""
        mass = float(self.zero_weight.sum(dtype=np.float64))
        gram = (self.cases.T @ self.weighted).astype(np.float64)
        centre = gram[:-1, -1] / mass
        spread, basis = np.linalg.eigh(gram[:-1, :-1] - mass * np.outer(centre, centre))
        total = np.asarray(np.bincount(self.place, self.x, self.n), np.float64)
        bend = typical_curvature(self.spec.family, self.spec.link, total, self.n_rows)
        bend = (bend * self.column_weight)[:, None]
        scale = 1.0 / (bend * np.maximum(spread, 0.0) + prior[:, : self.k].mean(axis=1)[:, None])
        last = 1.0 / (bend[:, 0] * mass + prior[:, -1])

        def apply(gradient: Floats, which: Ints) -> Floats:
            if not self.spec.intercept:
                return np.asarray((gradient @ basis * scale[which]) @ basis.T)
            move, rest = np.empty_like(gradient), gradient[:, -1:]
            move[:, :-1] = ((gradient[:, :-1] - rest * centre) @ basis * scale[which]) @ basis.T
            move[:, -1] = rest[:, 0] * last[which] - move[:, :-1] @ centre
            return move

        return apply


class _Sums:
    """Values and gradients of some entities, added up block by block."""

    def __init__(self, given: RowConditionals, predictor: Predictor, which: Ints) -> None:
        self.given, self.predictor, self.which = given, predictor, which
        self.target = predictor.affine_target()
        self.family, self.link = given.spec.family, given.spec.link
        # The slope and the value of a zero are -mean; its sum is a column of the product.
        self.exponential = self.family.linear_mean and self.link.is_identity
        self.column = given.column_weight[which]
        self.even = bool((self.column == 1).all())
        self.value, self.own = np.zeros(len(which)), np.zeros(len(which))
        self.gradient = np.zeros(self.target.shape)

    def add(self, rows: slice, entries: Ints, column: Ints) -> None:
        """Every cell as a zero, then the stored entries in the cells where they belong."""
        given, n = self.given, len(self.which)
        row = given.row[entries]
        E: Floats = given.cases[rows] @ self.target.T
        cells = (row - rows.start, column)
        as_zero = E[cells]
        E = self._zeros(E, given.zero_weight[rows])
        rest, own, total = given.rest[entries], given.own[entries], given.total[entries]
        side = given.cases[row, given.k_context : -1]
        beside = np.einsum("ek,ek->e", side, self.target[column, given.k_context : -1])
        u = self.predictor.leave_bag(as_zero, total, own, rest, column, beside)
        gain, slope = value_and_slope(self.family, self.link, given.x[entries], u)
        gain, slope = gain * given.seen[entries], slope * given.seen[entries]
        once, part = given.zero_weight[row], total / rest
        taken = slope  # `finished` adds the slopes of all cells, entries included
        if not self.exponential:
            loss, _ = value_and_slope(self.family, self.link, np.zeros_like(as_zero), as_zero)
            taken = loss * once * self.column[column]
        self.value += np.bincount(column, gain - taken, n)
        self.own += np.bincount(column, slope * own / rest, n)
        E[cells] = slope * part / once
        self.gradient += E.T @ given.weighted[rows]
        # The divisors of the context do not touch what is beside it, nor the intercept.
        undivided = slope * (1.0 - part)
        if side.shape[1]:
            np.add.at(self.gradient[:, given.k_context : -1], column, undivided[:, None] * side)
        self.gradient[:, -1] += np.bincount(column, undivided, n)

    def _zeros(self, E: Floats, weight: Floats) -> Floats:
        """Slopes of the cells as zeros, without the weights of the rows."""
        if self.exponential:
            np.exp(E, out=E)
            np.negative(E, out=E)
        else:
            value, E = value_and_slope(self.family, self.link, np.zeros_like(E), E)
            self.value += (weight @ value) * self.column
        return E if self.even else E * self.column

    def finished(self) -> tuple[Floats, Floats, Floats]:
        """Log-likelihoods, gradients in the vectors and in the intercepts."""
        if self.exponential:
            self.value += self.gradient[:, -1]
        self.gradient[:, :-1] -= self.own[:, None] * self.given.alpha[self.which]
        return self.value, self.gradient[:, :-1], self.gradient[:, -1]


def _cases(block: RowBlock, bag: Floats) -> Floats:
    """Scaled sum of the whole bag of each row, and a 1."""
    from efemb.kernels.sparse import bag_sums

    values, total = block.bag_values.astype(bag.dtype), block.total.astype(bag.dtype)
    cases = np.empty((len(total), bag.shape[1] + 1), dtype=bag.dtype)
    cases[:, -1] = 1.0
    sums = np.empty((ROWS_AT_ONCE, bag.shape[1]), dtype=bag.dtype)  # stays near the core
    for start in range(0, len(total), ROWS_AT_ONCE):
        rows = slice(start, min(start + ROWS_AT_ONCE, len(total)))
        part = sums[: rows.stop - rows.start]
        bag_sums(block.bag_ptr[rows.start : rows.stop + 1], block.bag_ids, values, bag, part)
        np.divide(part, total[rows, None], out=cases[rows, :-1])
    return cases
