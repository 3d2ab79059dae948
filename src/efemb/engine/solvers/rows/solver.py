"""The `rows` solver: contexts that a row shares (baskets), with every zero or sampled ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.engine.random import RoundKey
from efemb.engine.solvers.base import Solver
from efemb.engine.solvers.rows.cell_offsets import StepOffsets
from efemb.engine.solvers.rows.entries import Entries, cell_terms, entry_terms, sorted_by_entity
from efemb.engine.solvers.rows.softmax import softmax_terms
from efemb.engine.solvers.rows.zero_stages import (
    NO_COLUMNS,
    Columns,
    Draws,
    ListedStage,
    SampledStage,
    ZeroSlopes,
    ZeroStage,
    closed_form,
)
from efemb.engine.statistics import count_entities
from efemb.engine.threads import cut
from efemb.errors import ParameterError
from efemb.kernels.sparse import bag_sums
from efemb.model.contexts.bound.rows import RowBags, RowBlock
from efemb.model.factors import Factors
from efemb.model.families import Family
from efemb.model.predictor import row_side
from efemb.model.zeros import log_noise

BLOCK_ENTITIES = 1 << 14

_Expected = tuple[Ints, Callable[[], RowBlock]]


class RowsSolver(Solver[RowBags]):
    """Sums the bag of each row once, treats all cells as zeros, then corrects the stored entries.

    The cost of a pass is one sparse product and, unless the zeros have a closed form, three
    matrix products of rows x entities x K.
    """

    name = "rows"

    def prepare(self) -> None:
        """Set up the draws of zeros, and everything that depends on the family."""
        popularity = count_entities(self.bound) if self.popularity is None else self.popularity
        self.side = row_side(self.spec, self.bound)
        if self.side is not None and self.side.has_cells and self.spec.zeros.of_softmax:
            raise ParameterError(
                f"zeros={self.spec.zeros!r} does not take terms that add to single cells "
                "(History, prices, ItemPairs, Offset): use zeros='all'"
            )
        self.draws = Draws(self.spec.zeros, popularity, self.seed, self.dtype)
        zeros = self.spec.zeros
        offset = self.spec.noise_offset(popularity)
        if self.spec.family.softmax and zeros.by_noise and not zeros.among_draws:
            offset = log_noise(zeros, popularity)
        self.offset = None if offset is None else offset.astype(self.dtype)
        self.samples = zeros.gradient != "exact"
        self.members: Bools | None = None  # of the contexts of this round, if they are thinned
        self._lookup: Ints | None = None
        self._coming: _Expected | None = None
        self._begun: _Expected | None = None
        self._next: Ints | None = None
        stored = self.bound.stored
        entry_weight = np.repeat(self.row_weight, np.diff(stored.ptr))
        self.n_observed = float(np.nansum(np.abs(stored.x) * entry_weight))
        self.set_family(self.spec.family)

    def set_family(self, family: Family) -> None:
        """Use a refitted family."""
        self.family = family
        has_cells = self.side is not None and self.side.has_cells
        self.closed = closed_form(family, self.spec.link, has_cells=has_cells)
        self.slopes = ZeroSlopes(family, self.spec.link, self.dtype)
        every = np.arange(self.bound.n_entities if family.varies else 1)
        self._base_of_zero = family.at(every).log_base_measure(np.zeros(len(every), self.dtype))
        self.base_of_row = self._base_of_row()

    def base_of_zeros(self, ids: Ints) -> Floats | float:
        """log h(0) of some entities."""
        return self._base_of_zero[ids] if self.family.varies else float(self._base_of_zero[0])

    def _base_of_row(self) -> Floats:
        """Weighted log h(x) of the stored entries of each row: constant during a fit."""
        if self.family.softmax:
            return np.zeros(self.n_rows)
        stored = self.bound.stored
        family = self.family.at(stored.ids[stored.seen])
        base = family.log_base_measure(stored.x[stored.seen].astype(np.float64))
        exposure = self.bound.exposure
        if exposure is not None:  # log h(1) + log L of a Poisson word, over the weight L
            base = np.log(exposure) / exposure
        total = np.bincount(stored.row, base, self.n_rows)
        if self.spec.combine.reverse:
            total *= self.bound.predictions_of_entry()
        return np.asarray(total * self.row_weight)

    @cached_property
    def total_weight(self) -> float:  # type: ignore[override]
        """Sum of the weights of all terms; the expected sum if zeros are drawn."""
        block = self.bound.block(np.arange(self.n_rows), reverse=self.spec.combine.reverse)
        weight = self.row_weight[block.row].astype(np.float64)
        column = self.draws.every().weight.astype(np.float64)
        seen = np.bincount(block.row_of_entry, block.seen, len(weight))
        stored = np.bincount(block.row_of_entry, column[block.ids], len(weight))
        return float(weight @ seen + self._zero_weight(block, weight) @ (column.sum() - stored))

    def value_and_gradient(
        self, vectors: Factors, rows: Ints | None = None, *, exact: bool = False
    ) -> tuple[float, Factors]:
        """Sum over the rows, block by block."""
        block = self._whole(exact=exact) if rows is None else self._expected(rows, exact=exact)
        places = np.arange(self.n_rows) if rows is None else rows
        weight = self.row_weight[places][block.row]
        side: Floats | None = None
        if self.side is not None and self.side.width:
            side = self.side.columns(vectors.terms, places)
        kept: Ints | None = None
        sampling, arrays = self.samples and not exact, vectors.terms
        if self.family.softmax:
            drawn: Columns | None = None
            if sampling:
                drawn, vectors = self.draws(int(np.sum(block.x > 0))), vectors.less(self.offset)
                if self.bound.n_slots == 1:
                    block, drawn, vectors, kept = self._compact(block, drawn, vectors)
            arguments = (block, vectors, weight, side, places, arrays, drawn)
            total, gradient = self._categorical(*arguments)
        else:
            block, columns = self._visited_zeros(block) if sampling else (block, self.draws.every())
            vectors = vectors.less(self.offset)
            offsets: StepOffsets | None = None
            if self.side is not None and self.side.has_cells:
                offsets = StepOffsets(self.side, arrays, places, block, columns.index)
            # Members in several slots, and entities that differ, cannot be renumbered.
            if sampling and self.bound.n_slots == 1 and not self.family.varies:
                block, columns, vectors, kept = self._compact(block, columns, vectors)
            g_side = None if side is None else np.empty_like(side)
            total, gradient = self._elementwise(
                block, vectors, weight, columns, side, g_side, offsets
            )
            if self.side is not None and g_side is not None:
                gradient.add_terms(self.side.pull_back(arrays, places, g_side))
        total += float(self.base_of_row[places].sum())
        gradient.rows = kept
        return total, gradient

    def _visited_zeros(self, block: RowBlock) -> tuple[RowBlock, Columns]:
        """Draw columns for all rows of a block, or entries of value 0 for each row."""
        if not self.spec.zeros.draws_by_row:
            return block, self.draws(int(np.sum(block.x > 0)))
        n_rows, n_entities = len(block.total), self.bound.n_entities
        drawn, weight = self.draws.of_rows(n_rows)
        row, ids = np.repeat(np.arange(n_rows), drawn.shape[1]), drawn.ravel()
        stored = np.sort(block.row_of_entry * np.int64(n_entities) + block.ids)
        cell = row * np.int64(n_entities) + ids
        place = np.minimum(np.searchsorted(stored, cell), max(len(stored) - 1, 0))
        free = np.ones(len(cell), dtype=bool) if len(stored) == 0 else stored[place] != cell
        row, ids = row[free], ids[free]
        return block.with_zeros(row, ids, self.spec.zeros.weight * weight[ids]), NO_COLUMNS

    @cached_property
    def _all(self) -> RowBlock:
        return self._prepared(np.arange(self.n_rows))

    def _whole(self, *, exact: bool) -> RowBlock:
        """All rows, with the contexts of this round unless they have to be exact."""
        if self.members is None or exact:
            return self._all
        return self._prepared(np.arange(self.n_rows), self.members)

    def start_round(self, key: RoundKey) -> None:
        """Draw the zeros and the contexts of this round of this shard."""
        self.draws.start_round(key)
        if self.spec.context.thinning:
            stored = self.bound.stored
            self.members = thin(stored.ptr, self.spec.context.thinning, key.generator("contexts"))

    def expect(self, rows: Ints | None) -> None:
        """Note the rows that come after the next ones."""
        self._coming, self._begun = self._begun, None
        self._next = rows

    def gather_ahead(self) -> None:
        """Gather the rows of the next step in a thread while others run kernels."""
        if self._next is not None:
            work = partial(self._prepared, members=self.members)
            self._begun = (self._next, self.pool.begin(work, self._next))
            self._next = None

    def _expected(self, rows: Ints, *, exact: bool) -> RowBlock:
        if self._coming is not None and self._coming[0] is rows:
            gathered = self._coming[1]
            self._coming = None  # which holds this solver: no reference cycle may remain
            return gathered()
        return self._block(rows, None if exact else self.members)

    def _block(self, rows: Ints, members: Bools | None = None) -> RowBlock:
        if members is None:
            block = self.bound.block(rows, reverse=self.spec.combine.reverse)
        else:
            block = self.bound.thinned_block(rows, members)
        if block.x.dtype == self.dtype:
            return block
        arrays = {
            name: getattr(block, name).astype(self.dtype)
            for name in ("bag_values", "x", "own", "total", "rest")
        }
        return replace(block, **arrays)

    def _prepared(self, rows: Ints, members: Bools | None = None) -> RowBlock:
        """Some rows, with everything a step needs that does not depend on the parameters."""
        block = self._block(rows, members)
        # A larger block is cut into parts, which do not inherit the order by entity.
        large = len(block.total) > self.pool.tuning.block_rows
        if large or self.samples or self.family.softmax:
            return block
        by_entity = sorted_by_entity(block, self.bound.n_entities)
        for name in ("row", "own", "ratio", "share"):  # compute the cached properties
            getattr(by_entity, name)
        return replace(block, by_entity=by_entity)

    def _compact(
        self, block: RowBlock, columns: Columns, vectors: Factors
    ) -> tuple[RowBlock, Columns, Factors, Ints]:
        """Renumber the entities in use, to avoid arrays over all entities."""
        assert columns.index is not None
        if self._lookup is None:
            self._lookup = np.zeros(self.bound.n_entities, dtype=np.int64)
        used = np.zeros(self.bound.n_entities, dtype=bool)
        for ids in (block.ids, block.bag_ids, columns.index):
            used[ids] = True
        kept = np.flatnonzero(used)
        self._lookup[kept] = np.arange(len(kept))
        ids = self._lookup[block.ids]
        bag_ids = ids if block.bag_ids is block.ids else self._lookup[block.bag_ids]
        small = replace(block, ids=ids, bag_ids=bag_ids, by_entity=None)
        few = Columns(self._lookup[columns.index], columns.weight)
        few_vectors = (vectors.target[kept], vectors.bag[kept], vectors.intercept[kept])
        local = Factors(*few_vectors, width=vectors.width)
        return small, few, local, kept

    def _sums(self, block: RowBlock, vectors: Factors) -> Floats:
        sums = np.empty((len(block.total), vectors.bag.shape[1]), dtype=self.dtype)
        bag_sums(block.bag_ptr, block.bag_ids, block.bag_values, vectors.bag, sums)
        return sums

    def _zero_weight(self, block: RowBlock, weight: Floats) -> Floats:
        """Weight of a zero in each row."""
        positives = np.asarray(
            np.bincount(block.row_of_entry, block.seen, len(block.total)), np.float64
        )
        return self.spec.zeros.weigh_rows(weight, positives)

    def _elementwise(
        self,
        block: RowBlock,
        vectors: Factors,
        weight: Floats,
        columns: Columns,
        side: Floats | None,
        g_side: Floats | None,
        offsets: StepOffsets | None,
    ) -> tuple[float, Factors]:
        """Families whose entities are independent given the context; fills `g_side`."""
        zero_weight = self._zero_weight(block, weight)
        stage = self._stage(vectors, columns)
        column_weight = columns.full_weight(len(vectors.target))
        itself = self._own_products(vectors)
        unset = (np.empty_like(vectors.target), np.empty_like(vectors.bag))
        gradient = Factors(*unset, np.zeros_like(vectors.intercept))
        value = 0.0
        tuning = self.pool.tuning
        size = tuning.block_rows if stage is None else tuning.stage_rows
        for piece in cut(len(block.total), size):
            arguments = (_part(block, piece), vectors, weight[piece], itself, gradient)
            of_piece = None if side is None else side[piece]
            cells = None if offsets is None else offsets.of_rows(piece)
            entries = Entries(self, *arguments, first=piece.start == 0, side=of_piece, cells=cells)
            weights = (zero_weight[piece], column_weight)
            if stage is None:
                value += cell_terms(self, entries, *weights)
            else:
                value += entry_terms(entries, stage, *weights)
            if g_side is not None:
                g_side[piece] = entries.g_side()
            if offsets is not None and cells is not None:
                gradient.add_terms(offsets.pull_back(cells, piece, entries.net))
        return value, gradient

    def _own_products(self, vectors: Factors) -> Floats:
        """rho_n . alpha_n of every entity."""
        own_products = np.empty_like(vectors.intercept)

        def work(part: slice) -> None:
            rho, alpha = vectors.target[part, : vectors.n_bag], vectors.bag[part]
            np.einsum("nk,nk->n", rho, alpha, out=own_products[part])

        list(self.pool.map(work, cut(len(own_products), BLOCK_ENTITIES)))
        return own_products

    def _stage(self, vectors: Factors, columns: Columns) -> ZeroStage | None:
        """The stage that adds up the zeros, None if every cell is visited."""
        if columns.index is not None:
            by_row = self.spec.zeros.draws_by_row
            return (
                ListedStage() if by_row else SampledStage(self.slopes, vectors, columns, self.pool)
            )
        # A closed form gives every zero the same weight.
        if self.closed is None or self.spec.zeros.by_noise:
            return None
        return self.closed(vectors)

    def _categorical(
        self,
        block: RowBlock,
        vectors: Factors,
        weight: Floats,
        side: Floats | None,
        rows: Ints,
        arrays: dict[str, Floats],
        drawn: Columns | None,
    ) -> tuple[float, Factors]:
        """A softmax over all or drawn entities, for each stored entry or row (reverse conditional).

        arrays : of the terms
        """

        def work(piece: slice) -> tuple[float, Factors]:
            sub_block, of_piece = _part(block, piece), None if side is None else side[piece]
            places, left_out, offsets = rows[piece], None, None
            if self.side is not None and self.side.reads_items:  # an entry has offsets of its own
                places, left_out = places[sub_block.row_of_entry], sub_block.ids
            if self.side is not None:
                offsets = self.side.offsets(arrays, places, left_out)
            value, gradient, g_side, of_cells = softmax_terms(
                self, sub_block, vectors, weight[piece], of_piece, offsets, drawn
            )
            if self.side is not None and g_side is not None:
                gradient.add_terms(self.side.pull_back(arrays, rows[piece], g_side))
            if self.side is not None and offsets is not None:
                slopes = self.side.pull_back_cells(arrays, places, of_cells, left_out)
                gradient.add_terms(slopes)
            return value, gradient

        self.gather_ahead()
        # Each piece has a gradient of its own, so only a few may exist at a time.
        results = self.pool.ahead(work, cut(len(block.total), self.pool.tuning.block_rows))
        total, gradient = next(results)
        for value, part in results:
            total += value
            gradient.add(part)
        return total, gradient


def thin(ptr: Ints, share: float, rng: np.random.Generator) -> Bools:
    """Mask of the stored entries that stay in the contexts of their rows (CSR pointer `ptr`).

    A row is thinned with probability `share`. Its members then stay with a probability that is
    drawn log-uniformly between one over their number and one.
    """
    sizes = np.diff(ptr)
    chance = np.maximum(sizes, 1.0) ** -rng.random(len(sizes))
    chance[rng.random(len(sizes)) >= share] = 1.0
    return np.asarray(rng.random(int(ptr[-1])) < np.repeat(chance, sizes))


def _part(block: RowBlock, piece: slice) -> RowBlock:
    """Some consecutive rows of a block."""
    if piece.start == 0 and piece.stop == len(block.total):
        return block
    entries = slice(block.ptr[piece.start], block.ptr[piece.stop])
    members = slice(block.bag_ptr[piece.start], block.bag_ptr[piece.stop])
    edges = slice(piece.start, piece.stop + 1)
    ids = block.ids[entries]
    return RowBlock(
        bag_ptr=block.bag_ptr[edges] - members.start,
        bag_ids=ids if block.bag_ids is block.ids else block.bag_ids[members],
        bag_values=block.bag_values[members],
        ptr=block.ptr[edges] - entries.start,
        ids=ids,
        x=block.x[entries],
        own=block.own[entries],
        total=block.total[piece],
        rest=block.rest[entries],
        row=block.row[piece],
        excluded=None if block.excluded is None else block.excluded[piece],
        entry_weight=None if block.entry_weight is None else block.entry_weight[entries],
    )
