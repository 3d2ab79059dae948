"""Zero stages: the objective of some rows without a visit of every cell.

All cells are treated as zeros, then the stored entries are corrected. Each stage fills the gradient
of the bags and returns a few sums over the rows, from which the gradient of the target vectors and
intercepts is computed once per step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from efemb._typing import Floats, Ints
from efemb.engine.random import RoundKey, generator
from efemb.engine.threads import Workers
from efemb.kernels.additive import additive_rows
from efemb.kernels.products import BLOCK, ROW_BYTES, inner_products, multiply
from efemb.kernels.sparse import add_bags
from efemb.kernels.tiles import transpose
from efemb.kernels.zero_terms import zero_slopes
from efemb.model.factors import Factors
from efemb.model.families import Family, Gaussian
from efemb.model.links import FLOOR, Link
from efemb.model.objective import value_and_slope
from efemb.model.predictor import Predictor, add_intercepts
from efemb.model.zeros import (
    Zeros,
    inclusion_probabilities,
    probabilities,
)

if TYPE_CHECKING:
    from efemb.engine.solvers.rows.cell_offsets import CellOffsets
    from efemb.engine.solvers.rows.entries import Entries


@dataclass(frozen=True)
class Columns:
    """Entities whose zeros are visited: all of them, or a weighted draw."""

    index: Ints | None
    weight: Floats

    def full_weight(self, n_entities: int) -> Floats:
        """Weight of every entity, 0 where it was not drawn."""
        if self.index is None:
            return self.weight
        full = np.zeros(n_entities, dtype=self.weight.dtype)
        full[self.index] = self.weight
        return full


NO_COLUMNS = Columns(np.empty(0, dtype=np.int64), np.empty(0))


class ZeroStage(ABC):
    """A way to compute the objective of some rows, for the vectors of one step."""

    @abstractmethod
    def nothing(self) -> tuple[Floats, ...]:
        """Zeros in the shapes of the arrays that `rows` returns."""

    @abstractmethod
    def rows(self, work: RowWork, rows: slice) -> tuple[float, tuple[Floats, ...]]:
        """Fill the arrays of `work` for these rows; return the value, and arrays to be summed."""

    def shift(self, total: tuple[Floats, ...]) -> Floats | None:
        """The part of the gradient that is the same for all target vectors, from the sums."""
        return None

    @abstractmethod
    def add(self, total: tuple[Floats, ...], gradient: Factors) -> None:
        """Add the rest of the gradient, from the sums."""


@dataclass(frozen=True)
class RowWork:
    """Arrays for a stage, which fills `factor`, `own` and `net` and the sums of `entries`.

    factor, own, net : for each stored entry, the factors of the sum of its bag, of its own vectors
        and of 1 in the gradient
    zero_weight, back_weight : weight of the zeros of each row, and of each entry as a zero
    """

    entries: Entries
    zero_weight: Floats
    back_weight: Floats
    factor: Floats
    own: Floats
    net: Floats


class SteppedStage(ZeroStage):
    """Any family: whole rows as zeros, then each entry, minus its contribution as a zero."""

    @abstractmethod
    def zeros(
        self, work: RowWork, rows: slice, Z: Floats, g_context: Floats
    ) -> tuple[float, tuple[Floats, ...]]:
        """Log-density of all cells as zeros; fill the gradient of the scaled bag sums Z."""

    def rows(self, work: RowWork, rows: slice) -> tuple[float, tuple[Floats, ...]]:
        """In NumPy, one operation after the other."""
        entries, block, solver = work.entries, work.entries.block, work.entries.solver
        entries.sum_bags_of(rows)
        value = entries.products_and_slopes(rows)
        total, g_sums = block.total[rows, None], entries.g_sums[rows]
        more, part = self.zeros(work, rows, entries.sums[rows] / total, g_sums)
        g_sums /= total
        here = entries.of_rows(rows)
        as_zero, back_weight = entries.as_zero[here], work.back_weight[here]
        link, zero = solver.spec.link, np.zeros_like(as_zero)
        ids = block.ids[here]
        loss, zero_slope = value_and_slope(solver.family.at(ids), link, zero, as_zero)
        value += more - float(back_weight @ (loss + solver.base_of_zeros(ids)))
        zero_slope *= back_weight
        gain = entries.slope[here] / block.rest[here]
        work.own[here] = gain * block.own[here]
        work.net[here] = entries.slope[here] - zero_slope
        work.factor[here] = gain - zero_slope / block.total[block.row_of_entry[here]]
        ptr = block.ptr[rows.start : rows.stop + 1]
        add_bags(ptr, block.ids, work.factor, entries.vectors.target, g_sums)
        return value, part


# Finite, because the kernels are compiled for finite numbers; they clip it to -80.
HIDDEN = np.float32(-1e30)


class ZeroSlopes:
    """Turns a block of inner products into slopes of zero observations, in place.

    size : of the equivalent negative binomial, None if there is no kernel for the family
    """

    def __init__(self, family: Family, link: Link, dtype: Any) -> None:
        self.family, self.link = family, link
        self.size = family.kernel_size if dtype == np.float32 and link.is_identity else None

    def __call__(
        self,
        E: Floats,
        intercept: Floats,
        weight: Floats,
        row_weight: Floats,
        column: Floats,
        entities: Ints,
    ) -> float:
        """Fill E[n, t] with slopes and add their sums to `column`; returns the log-density.

        Cells that hold HIDDEN are not observations: their slope and log-density are 0. E may be
        larger than the numbers of intercepts and row weights; the rest of it is ignored.
        """
        if self.size is not None:
            return zero_slopes(E, intercept, weight, row_weight, self.size, column)
        cells = E[: len(intercept), : len(row_weight)]
        hidden = cells == HIDDEN
        u = add_intercepts(np.where(hidden, 0.0, cells).T, intercept).T
        zero = np.zeros_like(u)
        both = np.where(hidden, 0.0, weight[:, None] * row_weight)
        family = self.family.at(entities[:, None])
        gain, slope = value_and_slope(family, self.link, zero, u)
        value = float((both * (gain + family.log_base_measure(zero))).sum())
        cells[:] = both * slope
        column += cells.sum(axis=1)
        return value


class SampledStage(SteppedStage):
    """Any family on drawn columns: three matrix products of rows x drawn x K."""

    def __init__(
        self, slopes: ZeroSlopes, vectors: Factors, columns: Columns, pool: Workers
    ) -> None:
        assert columns.index is not None
        self.slopes, self.pool = slopes, pool
        self.drawn, self.weight = columns.index, columns.weight
        self.target, self.intercept = vectors.target[self.drawn], vectors.intercept[self.drawn]

    def nothing(self) -> tuple[Floats, ...]:
        """Gradient of the drawn vectors and intercepts."""
        return np.zeros_like(self.target), np.zeros_like(self.intercept)

    def zeros(
        self, work: RowWork, rows: slice, Z: Floats, g_context: Floats
    ) -> tuple[float, tuple[Floats, ...]]:
        """Inner products, their slopes, and the products that carry slopes back."""
        column = np.zeros_like(self.intercept)
        tiled = TiledRows(Z, self.pool)
        E = tiled.inner_products(self.target)
        cells = work.entries.cells
        if cells is not None:
            cells.add_drawn(rows, E)
        row_weight = work.zero_weight[rows]
        value = self.slopes(E, self.intercept, self.weight, row_weight, column, self.drawn)
        if cells is not None:
            cells.read_drawn(rows, E)
        (g_rows,) = tiled.unset()
        tiled.slopes_to_rows(E, self.target, g_rows)
        transpose(g_rows[:, : len(Z)], g_context)
        g_drawn = tiled.slopes_to_entities(E)[: len(self.target), : Z.shape[1]]
        return value, (g_drawn.copy(), column)

    def add(self, total: tuple[Floats, ...], gradient: Factors) -> None:
        """Add the gradient of the drawn entities."""
        gradient.target[self.drawn] += total[0]
        gradient.add_intercepts(total[1], self.drawn)


class ListedStage(ZeroStage):
    """Any family, if all zeros to be visited are stored entries of their rows (of value 0)."""

    def nothing(self) -> tuple[Floats, ...]:
        """No sums over all rows."""
        return ()

    def rows(self, work: RowWork, rows: slice) -> tuple[float, tuple[Floats, ...]]:
        """Visit the entries only, in NumPy."""
        entries, block = work.entries, work.entries.block
        entries.sum_bags_of(rows)
        value, here = entries.products_and_slopes(rows), entries.of_rows(rows)
        zeros = block.filled[here] == 0
        zero_weight = entries.weight[here][zeros].astype(np.float64)
        base = entries.solver.base_of_zeros(block.ids[here][zeros])
        value += float(np.sum(base * zero_weight))
        gain = entries.slope[here] / block.rest[here]
        work.own[here] = gain * block.own[here]
        work.net[here], work.factor[here] = entries.slope[here], gain
        g_sums, ptr = entries.g_sums[rows], block.ptr[rows.start : rows.stop + 1]
        g_sums[:] = 0.0
        add_bags(ptr, block.ids, work.factor, entries.vectors.target, g_sums)
        return value, ()

    def add(self, total: tuple[Floats, ...], gradient: Factors) -> None:
        """There is nothing else to add."""


class AdditiveStage(ZeroStage):
    """Poisson with the log link: means are sums, so their sum over entities has a closed form.

    Sum of -u over all cells is -(sum of rho) . Z - (sum of intercepts). Only an empty bag without
    an intercept lies below the floor of the link.
    """

    def __init__(self, vectors: Factors) -> None:
        ones, self.parts = np.ones_like(vectors.intercept), vectors.column_parts
        # Faster than a sum. Columns of terms are multiplied separately, as in `QuadraticStage`.
        columns = [np.ascontiguousarray(vectors.target[:, part]) for part in self.parts]
        self.every = np.concatenate([ones @ each for each in columns])
        self.intercept, self.above = vectors.intercept, vectors.intercept > FLOOR
        self.plain = float(vectors.intercept.sum(dtype=np.float64))
        self.floored = float(np.maximum(vectors.intercept, FLOOR).sum(dtype=np.float64))

    def nothing(self) -> tuple[Floats, ...]:
        """Weighted sum of Z; weights of rows with and without a bag."""
        return np.zeros_like(self.every), np.zeros(2)

    def rows(self, work: RowWork, rows: slice) -> tuple[float, tuple[Floats, ...]]:
        """Use a single kernel, because threads would wait for each other between short steps."""
        entries, block = work.entries, work.entries.block
        vectors, weighted = entries.vectors, np.zeros_like(self.every)
        side, term_part = entries.side, entries.term_part
        side = np.empty((0, 0), weighted.dtype) if side is None else side
        term_part = weighted[:0] if term_part is None else term_part
        value, filled, empty = additive_rows(
            rows.start, rows.stop,
            (block.bag_ptr, block.bag_ids, block.bag_values, vectors.bag),
            (block.ptr, block.ids, block.own, block.rest), block.filled, block.total,
            side, term_part, (vectors.target, entries.itself, vectors.intercept), self.every,
            entries.weight, work.zero_weight, work.back_weight, entries.sums.dtype.type(FLOOR),
            entries.sums, entries.g_sums, entries.as_zero, entries.u,
            work.factor, work.own, work.net, entries.slope, weighted,
        )  # fmt: skip
        products = sum(float(weighted[part] @ self.every[part]) for part in self.parts)
        value -= products + filled * self.plain + empty * self.floored
        if entries.cells is not None:
            value -= self._offsets(entries.cells, rows, work.zero_weight[rows], entries.sums[rows])
        return value, (weighted, np.array([filled, empty]))

    def _offsets(self, cells: CellOffsets, rows: slice, weight: Floats, sums: Floats) -> float:
        """What offsets of single cells add to the sum of the means of zeros; keeps their slopes."""
        empty = np.logical_not(np.any(sums, axis=1, keepdims=True))
        if self.above.all() or not empty.any():
            cells.keep_slopes_of_rows(rows, -weight)
            return float(weight @ cells.offsets.slice_rows(rows).sum_rows())
        # Cells of empty rows lie below the floor of the link, unless their offsets raise them.
        offset = np.zeros((len(sums), len(self.above)), dtype=sums.dtype)
        cells.add_to(rows, offset)
        lifted = np.maximum(add_intercepts(offset.copy(), self.intercept), FLOOR)
        raised = np.where(empty, lifted - np.maximum(self.intercept, FLOOR), offset)
        counted = np.logical_or(~empty, lifted > FLOOR)
        cells.keep_slopes(rows, -weight[:, None] * counted)
        return float(weight @ raised.sum(axis=1))

    def shift(self, total: tuple[Floats, ...]) -> Floats:
        """Zeros have the same gradient for all target vectors."""
        return -total[0]

    def add(self, total: tuple[Floats, ...], gradient: Factors) -> None:
        """Add the gradient of the intercepts."""
        filled, empty = total[1]
        gradient.intercept -= (filled + empty * self.above).astype(gradient.intercept.dtype)


class QuadraticStage(SteppedStage):
    """Gaussian with the identity link: the sum of squares is a K x K form, M = sum of rho rho'.

    Columns of terms are multiplied separately from those of bags, and offsets o of single cells
    enter as 2 u o + o^2: the bits do not change if a term is 0.
    """

    def __init__(self, family: Gaussian, has_cells: bool, vectors: Factors) -> None:
        self.predictor, self.has_cells = Predictor(vectors), has_cells
        self.inverse = 1.0 / family.variance
        self.constant = float(family.log_base_measure(np.zeros(1))[0]) * len(vectors.target)
        self.rho, self.b = rho, b = vectors.target, vectors.intercept
        self.parts = vectors.column_parts
        self.moment, self.squares = self._gram(rho, rho), float(b @ b)
        self.cross = np.concatenate([b @ rho[:, part] for part in self.parts])

    def nothing(self) -> tuple[Floats, ...]:
        """Weighted moments of Z: second, first and zeroth; gradients through the offsets."""
        moments = (np.zeros_like(self.moment), np.zeros_like(self.cross), np.zeros(1))
        through_offsets = (np.zeros_like(self.rho), np.zeros_like(self.b))
        return (*moments, *through_offsets) if self.has_cells else moments

    def zeros(
        self, work: RowWork, rows: slice, Z: Floats, g_context: Floats
    ) -> tuple[float, tuple[Floats, ...]]:
        """Sum of u^2 over all cells, with the cross terms."""
        row_weight = work.zero_weight[rows]
        weighted = row_weight[:, None] * Z
        outer, first, weight = self._gram(weighted, Z), weighted.sum(axis=0), row_weight.sum()
        products = self._product(weighted, self.moment)
        g_context[:] = -self.inverse * (products + row_weight[:, None] * self.cross)
        total = sum(
            float((self.moment[a, b] * outer[a, b]).sum()) for a in self.parts for b in self.parts
        )
        total += 2.0 * sum(float(self.cross[part] @ first[part]) for part in self.parts)
        total += self.squares * float(weight)
        value = -0.5 * self.inverse * total + self.constant * float(weight)
        moments = (outer, first, np.array([float(weight)]))
        cells = work.entries.cells
        if cells is None:
            return value, moments
        more, through_offsets = self._offsets(cells, rows, row_weight, Z, g_context)
        return value + more, (*moments, *through_offsets)

    def _offsets(
        self, cells: CellOffsets, rows: slice, row_weight: Floats, Z: Floats, g_context: Floats
    ) -> tuple[float, tuple[Floats, ...]]:
        """The part of offsets in the value, and in the gradient of vectors and intercepts."""
        offset = np.zeros((len(Z), len(self.b)), dtype=Z.dtype)
        cells.add_to(rows, offset)
        u, weight = self.predictor.apply(Z), -self.inverse * row_weight[:, None]
        slope = weight * offset
        for part in self.parts:
            g_context[:, part] += slope @ self.rho[:, part]
        of_target = np.concatenate([slope.T @ Z[:, part] for part in self.parts], axis=1)
        cells.keep_slopes(rows, weight * (u + offset))
        value = 0.5 * float((slope * (2.0 * u + offset)).sum())
        return value, (of_target, slope.sum(axis=0))

    def add(self, total: tuple[Floats, ...], gradient: Factors) -> None:
        """Add the gradient of the squares."""
        outer, first, (weight,), *through_offsets = total
        products = self._product(self.rho, outer) + self.b[:, None] * first
        gradient.target -= self.inverse * products
        sums = self._product(self.rho, first) + self.b * first.dtype.type(weight)
        gradient.intercept -= self.inverse * sums
        if through_offsets:
            gradient.target += through_offsets[0]
            gradient.add_intercepts(through_offsets[1])

    def _gram(self, left: Floats, right: Floats) -> Floats:
        """left' right."""
        rows = [[left[:, a].T @ right[:, b] for b in self.parts] for a in self.parts]
        return np.concatenate([np.concatenate(row, axis=1) for row in rows])

    def _product(self, left: Floats, right: Floats) -> Floats:
        """left right; the right one may be a vector."""
        if right.ndim > 1:
            columns = [sum(left[:, p] @ right[p, part] for p in self.parts) for part in self.parts]
            return np.concatenate(columns, axis=1)
        return np.asarray(sum(left[:, part] @ right[part] for part in self.parts))


def closed_form(
    family: Family, link: Link, *, has_cells: bool
) -> Callable[[Factors], ZeroStage] | None:
    """The stage in closed form, None if the family and link have none."""
    if family.linear_mean and link.is_log:
        return AdditiveStage
    if family.quadratic and link.is_identity and not family.varies:
        return partial(QuadraticStage, cast(Gaussian, family), has_cells)
    return None


class TiledRows:
    """Context vectors of some rows, in a layout for fast products with vectors of entities.

    The cells of an entity are contiguous (E[n, t]), so that only the vectors of the rows have to be
    transposed. Rows of E are padded: of their `pitch` numbers, `width` are computed and `n` used.
    """

    def __init__(self, Z: Floats, pool: Workers) -> None:
        self.pool, self.dtype = pool, Z.dtype
        self.n, self.size = Z.shape
        unit = ROW_BYTES // Z.itemsize
        self.width = -(-self.n // unit) * unit
        self.pitch = (
            self.width // unit | 1
        ) * unit  # an odd number of units uses all sets of the cache
        self.transposed = pool.buffer("row vectors", (_whole(self.size), self.pitch), Z.dtype)
        transpose(Z, self.transposed)
        self.transposed[:, self.n : self.width] = 0.0
        self.transposed[self.size :] = 0.0  # an old buffer may hold denormals, which are slow

    def buffers(self, n_entities: int) -> tuple[Floats, Floats]:
        """Buffers of this thread for cells of some entities, and the gradient of their vectors."""
        rows = _whole(n_entities)
        cells = self.pool.buffer("cells", (rows, self.pitch), self.dtype)
        return cells, self.pool.buffer("of cells", (rows, len(self.transposed)), self.dtype)

    def unset(self, n: int = 1) -> Floats:
        """A buffer of this thread for n gradients of the transposed vectors."""
        return self.pool.buffer("of rows", (n, self.size, self.pitch), self.dtype)

    def inner_products(self, rho: Floats) -> Floats:
        """rho . z of every cell, in a buffer."""
        E = self.buffers(len(rho))[0]
        multiply(rho, self.transposed, E, self.width, True)
        return E

    def slopes_to_rows(self, E: Floats, rho: Floats, total: Floats, *, fresh: bool = True) -> None:
        """Gradient of the transposed vectors; added to `total` unless `fresh`."""
        multiply(rho.T, E, total, self.width, fresh)

    def slopes_to_entities(self, E: Floats) -> Floats:
        """Gradient of the entities' vectors, in a buffer that may be larger."""
        g_entities = self.buffers(len(E))[1]
        inner_products(E, self.transposed, g_entities, self.width)
        return g_entities


def _whole(n: int) -> int:
    """n, rounded up to whole blocks of `inner_products`."""
    return -(-n // BLOCK) * BLOCK


GOLDEN = 0.6180339887498949
MAX_NEGATIVES = 1024


class Draws:
    """Draws columns for each minibatch; the sequence depends only on the key of the round."""

    def __init__(self, zeros: Zeros, popularity: Floats, seed: int, dtype: Any) -> None:
        self.zeros, self.dtype, self.n_entities = zeros, dtype, len(popularity)
        self.start_round(RoundKey(seed))
        self.systematic = zeros.gradient == "unbiased" or zeros.among_draws
        if self.systematic:
            share = probabilities(zeros.distribution, popularity)
            # Half uniform, because the mean of a rarely drawn entity could grow unchecked.
            self.chance = inclusion_probabilities(0.5 * share + 0.5 / len(share), zeros.n)
            rng = generator(seed, 0, 0, "order of zeros")  # the same in every shard
            self.order = rng.permutation(len(share))
            self.edges = np.cumsum(self.chance[self.order])
            self.first = float(rng.random())
        elif zeros.by_noise:
            self.cumulative = np.cumsum(zeros.entity_weights(popularity))
        self.weights = zeros.entity_weights(popularity).astype(dtype)

    def start_round(self, key: RoundKey) -> None:
        """Restart the generator for a round of a shard, whatever was drawn before."""
        self.key, self.step, self.rng = key, 0, key.generator("zeros")

    def __call__(self, n_positives: int) -> Columns:
        """Columns for the next minibatch."""
        if self.systematic:
            return self._systematic()
        if self.zeros.by_noise:
            return self._independent(max(1, min(n_positives * self.zeros.n, MAX_NEGATIVES)))
        return self.every()

    def of_rows(self, n_rows: int) -> tuple[Ints, Floats]:
        """Entities drawn for each row of the next minibatch, (rows, n), and weights of all N.

        Each row is a systematic sample of its own. Starts move by the golden ratio from row to
        row, so the visits of an entity are spread evenly over the rows of a minibatch.
        """
        starts = (self.rng.random() + GOLDEN * np.arange(n_rows)) % 1.0
        points = np.arange(1, round(self.edges[-1]) + 1) - starts[:, None]
        places = np.searchsorted(self.edges, points)
        return self.order[np.minimum(places, self.n_entities - 1)], 1.0 / self.chance

    def every(self) -> Columns:
        """All columns, with the expected weights of the draws."""
        return Columns(None, self.weights)

    def _systematic(self) -> Columns:
        """Systematic sampling with unequal probabilities, weights 1 / probability.

        The start moves by the golden ratio, so the visits of an entity are spread evenly over
        the minibatches: the longest gap is a small multiple of 1 / probability. Shards that train
        side by side take turns, so they visit different entities.
        """
        self.step += 1
        start = (self.first + GOLDEN * self.key.turn(self.step)) % 1.0
        stair = np.floor(self.edges + start)
        chosen = np.diff(stair, prepend=np.floor(start)) > 0
        index = np.sort(self.order[chosen])
        return Columns(index, (1.0 / self.chance[index]).astype(self.dtype))

    def _independent(self, n: int) -> Columns:
        """`n` draws with replacement, each with weight 1 / n."""
        places = np.searchsorted(self.cumulative, self.rng.random(n), side="right")
        index, count = np.unique(np.minimum(places, self.n_entities - 1), return_counts=True)
        return Columns(index, (count / n).astype(self.dtype))
