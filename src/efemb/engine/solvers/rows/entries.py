"""Stored entries of a block of rows: sums of bags, slopes, and the gradient entity by entity."""

from __future__ import annotations

from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.engine.solvers.rows.zero_stages import RowWork, ZeroStage
from efemb.engine.threads import cut
from efemb.model.contexts.bound.row_block import ByEntity, RowBlock
from efemb.model.factors import Factors
from efemb.model.objective import value_and_slope

if TYPE_CHECKING:
    from efemb.engine.solvers.rows.solver import RowsSolver

PART_ROWS = 512


class Entries:
    """Working arrays of a block of rows.

    Threads share rows while they read vectors, and entities while they add to the gradient: every
    number is written by one of them, in an order that does not depend on their number.

    sums, g_sums : (rows, K) sums of the bags and the gradient with respect to them
    u, slope : of each stored entry given its bag without itself, and the weighted slope there
    itself : rho_n . alpha_n;  first : whether the gradient of the vectors is still unset
    side : (rows, k) row side of the model's terms, whose entity side are the last k columns of the
        target vectors; g_side : the gradient with respect to it
    """

    def __init__(
        self,
        solver: RowsSolver,
        block: RowBlock,
        vectors: Factors,
        weight: Floats,
        itself: Floats,
        gradient: Factors,
        first: bool,
        side: Floats | None = None,
    ) -> None:
        self.solver, self.block, self.vectors, self.side = solver, block, vectors, side
        self.itself, self.gradient, self.first = itself, gradient, first
        self.sums = np.empty((len(block.total), vectors.bag.shape[1]), dtype=solver.dtype)
        self.g_sums = np.empty_like(self.sums)
        self.u, self.slope, self.as_zero = (np.empty_like(block.x) for _ in range(3))
        self.weight = weight[block.row_of_entry] * block.seen

    # -- rows -----------------------------------------------------------------------------------

    def sum_bags(self) -> float:
        """Fill `sums`."""
        list(self.solver.pool.map(self.sum_bags_of, cut(len(self.sums), PART_ROWS)))
        return 0.0

    def sum_bags_and_slopes(self) -> float:
        """Fill `sums`, `u` and `slope`; returns the value of the entries."""

        def work(rows: slice) -> float:
            self.sum_bags_of(rows)
            return self.products_and_slopes(rows)

        size = 2 * len(self.u) * self.sums.shape[1]
        return sum(self.solver.pool.map(work, cut(len(self.sums), PART_ROWS), size))

    def sum_bags_of(self, rows: slice) -> None:
        """Fill `sums` of some rows."""
        from efemb.kernels.sparse import bag_sums

        block = self.block
        ptr = block.bag_ptr[rows.start : rows.stop + 1]
        bag_sums(ptr, block.bag_ids, block.bag_values, self.vectors.bag, self.sums[rows])
        if self.side is not None:  # divided by the total later, as bags are
            width = self.side.shape[1]
            self.sums[rows, -width:] = self.side[rows] * block.total[rows, None]

    def products_and_slopes(self, rows: slice) -> float:
        """Fill `as_zero`, `u` and `slope` of some rows; returns the value of their entries."""
        from efemb.kernels.rows import entry_products

        block, vectors = self.block, self.vectors
        ptr = block.ptr[rows.start : rows.stop + 1]
        shape = (ptr, block.ids, block.own, block.rest, block.total[rows], self.sums[rows])
        arrays = (vectors.target, self.itself, vectors.intercept, self.as_zero, self.u)
        entry_products(*(shape + arrays))
        here = self.of_rows(rows)
        if self.side is not None:
            self.u[here] += self.side_offset[here]
        given = (block.filled[here], self.u[here], self.weight[here])
        value, self.slope[here] = self.value_and_slopes(*given)
        return value

    def value_and_slopes(self, x: Floats, u: Floats, weight: Floats) -> tuple[float, Floats]:
        """Weighted log-density of some entries, and the slope of each."""
        gain, slope = value_and_slope(self.solver.family, self.solver.spec.link, x, u)
        return float(weight @ gain), weight * slope

    # -- terms ------------------------------------------------------------------------------------

    @cached_property
    def excess(self) -> Floats:
        """1 - total / rest of each stored entry.

        An entry takes itself out of its bag, which stretches what is left by total / rest. The
        columns of terms ride in the same products but nothing is taken out of them, so this part
        of them is put back.
        """
        block = self.block
        return np.asarray(1 - block.total[block.row_of_entry] / block.rest)

    @cached_property
    def side_offset(self) -> Floats:
        """What the columns of terms still lack in u of each stored entry."""
        assert self.side is not None
        block, gamma = self.block, self.vectors.target[:, -self.side.shape[1] :]
        products = np.einsum("ik,ik->i", self.side[block.row_of_entry], gamma[block.ids])
        return np.asarray(self.excess * products)

    def finish_side(self) -> Floats:
        """Add what entries still lack to the gradient of the terms; returns that of their rows."""
        from scipy.sparse import csr_array

        assert self.side is not None
        block, width = self.block, self.side.shape[1]
        gamma = self.vectors.target[:, -width:]
        arrays = (self.slope * self.excess, block.ids, block.ptr)
        lacking: Any = csr_array(arrays, shape=(len(block.total), len(gamma)))
        self.gradient.target[:, -width:] += lacking.T @ self.side
        return np.asarray(self.g_sums[:, -width:] * block.total[:, None] + lacking @ gamma)

    def of_rows(self, rows: slice) -> slice:
        """Places of the entries of some rows."""
        return slice(self.block.ptr[rows.start], self.block.ptr[rows.stop])

    # -- entities -------------------------------------------------------------------------------

    @cached_property
    def by_entity(self) -> ByEntity:
        """The entries sorted by entity."""
        return self.block.by_entity or sorted_by_entity(self.block, len(self.vectors.target))

    def spread_bags(self, own: Floats) -> None:
        """Add g_sums to the gradient of the context vectors; own * rho is what entries left out."""
        block = self.block
        if block.bag_ids is block.ids:
            edges, row, values = self.by_entity.edges, self.by_entity.row, self.by_entity.own
        else:
            edges, order = _sorted(block.bag_ids, len(self.vectors.bag))
            row = np.repeat(np.arange(len(block.total)), np.diff(block.bag_ptr)).take(order)
            values = block.bag_values.take(order)
        arrays = (values, self.g_sums, own, self.vectors.target)
        self._add_columns(edges, row, *arrays, None, self.gradient.bag)

    def spread_entries(self, factor: Floats, own: Floats, shift: Floats | None) -> None:
        """Add factor * sums - own * alpha + shift to the gradient of the target vectors."""
        found = self.by_entity
        arrays = (factor.take(found.order), self.sums, own, self.vectors.bag)
        self._add_columns(found.edges, found.row, *arrays, shift, self.gradient.target)

    def _add_columns(self, edges: Ints, row: Ints, *given: Any) -> None:
        from efemb.kernels.sparse import column_sums

        *arrays, shift, out = given
        start = np.zeros(self.sums.shape[1], self.sums.dtype) if shift is None else shift
        arguments: Any = (edges, row, *arrays, start, self.first, out)
        n, pool = len(edges) - 1, self.solver.pool
        # Whoever adds up an entity, the bits are the same.
        n_parts = pool.n
        shares = np.arange(1, n_parts) * len(row) // n_parts
        ends = [0, *np.searchsorted(edges, shares), n]
        size = (n + len(row)) * self.sums.shape[1]
        parts = list(pairwise(ends))
        list(pool.map(lambda ab: column_sums(*ab, *arguments), parts, size))


def sorted_by_entity(block: RowBlock, n_entities: int) -> ByEntity:
    """The stored entries of a block sorted by entity."""
    return ByEntity(block, *_sorted(block.ids, n_entities))


def _sorted(ids: Ints, n: int) -> tuple[Ints, Ints]:
    """Edges and order of entries: those of entity i are order[edges[i] : edges[i + 1]]."""
    from efemb.kernels.sparse import sort_by_column

    edges, order = np.zeros(n + 2, dtype=np.int64), np.empty(len(ids), dtype=np.int64)
    sort_by_column(ids, edges, order)
    return edges[: n + 1], order


def entry_terms(
    entries: Entries, stage: ZeroStage, zero_weight: Floats, column_weight: Floats
) -> float:
    """Add the gradient of a block of rows: its cells by a zero stage, then entries one by one."""
    block, gradient = entries.block, entries.gradient
    back_weight = zero_weight[block.row_of_entry] * column_weight[block.ids]
    factor, own, net = (np.empty_like(block.x) for _ in range(3))
    work = RowWork(entries, zero_weight, back_weight, factor, own, net)
    value, zeros = 0.0, stage.nothing()
    entries.solver.gather_ahead()
    pieces = cut(len(block.total), PART_ROWS)
    for more, part in entries.solver.pool.map(partial(stage.rows, work), pieces):
        value += more
        zeros = tuple(total + one for total, one in zip(zeros, part, strict=True))
    own_slope, slope = (
        np.bincount(block.ids, one, len(gradient.target)).astype(entries.sums.dtype)
        for one in (own, net)
    )
    gradient.intercept += slope
    entries.spread_entries(factor, own_slope, stage.shift(zeros))
    entries.spread_bags(own_slope)
    stage.add(zeros, gradient)
    return value
