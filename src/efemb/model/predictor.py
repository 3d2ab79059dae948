"""The linear predictor u = rho . s / d + intercept + further terms, for all of the package.

Kernels of the solvers compute it in fused form; nothing else implements how an observation leaves
its own context, how contexts are scaled, or what is added to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.errors import ParameterError
from efemb.model.contexts.bound.terms import Terms, summing_dtype
from efemb.model.factors import Factors
from efemb.model.terms.base import RowSide, ShareName
from efemb.model.terms.cell_values import Offsets

if TYPE_CHECKING:
    from efemb.model.contexts.base import BoundContext
    from efemb.model.contexts.bound.rows import RowBlock
    from efemb.model.spec import Spec

CHUNK_NUMBERS = 1 << 22


def row_side(spec: Spec, bound: BoundContext) -> RowSide | None:
    """The row sides of a model's terms on bound data, None if it has no terms."""
    # Terms recognize a row by all of its entries; held-out ones are then not used to predict.
    return RowSide.of(spec.terms, bound.whole_data, bound.masked) if spec.terms else None


def row_groups(spec: Spec, bound: BoundContext) -> Ints | None:
    """The group of each row of bound data, None if all rows have the same vectors."""
    if not spec.structure.grouped:
        return None
    return bound.spread_to_rows(spec.structure.codes(bound.whole_data))


def by_group(codes: Ints | None) -> list[tuple[int, Any]]:
    """Yield (group, indices of its members) in the order of the groups; None is a single group."""
    if codes is None:
        return [(-1, slice(None))]
    groups, inverse = np.unique(codes, return_inverse=True)
    return [(int(group), np.flatnonzero(inverse == i)) for i, group in enumerate(groups)]


def affine(Z: Floats, vector: Floats, intercept: float) -> Floats:
    """u of one entity over many contexts, (n,): vector . z + intercept."""
    return np.asarray(Z @ vector + intercept)


def add_intercepts(inner: Floats, intercept: Floats) -> Floats:
    """u of every entity from inner products (n, entities), in place."""
    inner += intercept
    return inner


@dataclass(frozen=True)
class Predictor:
    """u from context vectors Z, (n, K), followed by the row side of the terms, if any."""

    factors: Factors

    def apply(self, Z: Floats, entities: Ints | slice = slice(None)) -> Floats:
        """u of all (or some) entities given each context, (n, entities)."""
        target, parts = self.factors.target[entities], self.factors.column_parts
        if self.factors.combine:
            inner = self._pairs(Z, target)
        else:
            inner = np.asarray(Z[:, parts[0]] @ target[:, parts[0]].T)
            for columns in parts[1:]:
                inner += Z[:, columns] @ target[:, columns].T
        return add_intercepts(inner, self.factors.intercept[entities])

    def pick(self, Z: Floats, vector: Ints, entity: Ints | None = None) -> Floats:
        """u of one number per context, (n,): rows of the target vectors and of the intercepts."""
        target, parts = self.factors.target[vector], self.factors.column_parts
        if self.factors.combine is not None:
            u = self.factors.combine.value(target, Z)
        else:
            u = np.einsum("ik,ik->i", Z[:, parts[0]], target[:, parts[0]])
            for columns in parts[1:]:
                u += np.einsum("ik,ik->i", Z[:, columns], target[:, columns])
        return np.asarray(u + self.factors.intercept[vector if entity is None else entity])

    def _pairs(self, Z: Floats, target: Floats) -> Floats:
        """Apply a user-defined combination to every context and target, some contexts at a time."""
        assert self.factors.combine is not None
        values = np.empty((len(Z), len(target)), dtype=Z.dtype)
        step = max(1, CHUNK_NUMBERS // max(target.size, 1))
        for start in range(0, len(Z), step):
            block = Z[start : start + step]
            pairs = np.tile(target, (len(block), 1)), np.repeat(block, len(target), axis=0)
            values[start : start + step] = self.factors.combine.value(*pairs).reshape(
                len(block), -1
            )
        return values

    def check_linear(self) -> None:
        """Reject operations that are only valid for inner products."""
        if self.factors.combine is not None:
            raise ParameterError(
                f"this needs u to be an inner product of rho and the context, which "
                f"combine={self.factors.combine!r} is not"
            )

    @cached_property
    def itself(self) -> Floats:
        """rho_n . alpha_n of every entity, (N,)."""
        self.check_linear()
        rho = self.factors.target[:, : self.factors.n_bag]
        return np.asarray(np.einsum("nk,nk->n", rho, self.factors.bag))

    def affine_target(self) -> Floats:
        """Targets that end with their intercept, (N, K + 1), for contexts that end with a 1."""
        return np.concatenate([self.factors.target, self.factors.intercept[:, None]], axis=1)

    def shift(self, inner: Floats, entity: Any, added: Floats | float = 0.0) -> Floats:
        """u from inner products rho . s / d of the entities; `added` is the part of the terms."""
        return np.asarray(inner + (self.factors.intercept[entity] + added))

    def leave_sum(
        self, inner: Floats, own: Floats, rest: Floats, entity: Any, added: Floats | float = 0.0
    ) -> Floats:
        """u of entities that leave their own context.

        inner : products rho . S with the whole sum;  own : what the entity adds to it
        rest : divisor of the rest;  added : the part of the terms, which no entity leaves
        """
        return self.shift((inner - own * self.itself[entity]) / rest, entity, added)

    def leave_bag(
        self,
        full: Floats,
        total: Floats,
        own: Floats,
        rest: Floats,
        entity: Ints,
        added: Floats | float = 0.0,
    ) -> Floats:
        """`leave_sum` from `full`, the u with the entity in its context, of divisor `total`."""
        inner = (full - (self.factors.intercept[entity] + added)) * total
        return self.leave_sum(inner, own, rest, entity, added)

    def totals(self) -> tuple[Floats, float]:
        """Sums over all entities, of the target vectors and of the intercepts (float64)."""
        factors = self.factors
        return factors.target.sum(axis=0, dtype=np.float64), float(
            factors.intercept.sum(dtype=np.float64)
        )

    def of_group(self, group: int) -> Predictor:
        """The predictor for the rows of one group."""
        return self if self.factors.groups is None else Predictor(self.factors.of_group(group))

    def cells(self, spec: Spec, bound: BoundContext, rows: Ints) -> Floats:
        """u of every cell of some rows, (rows, N * D)."""
        codes = None if self.factors.groups is None else row_groups(spec, bound)
        if codes is not None:
            u = np.empty((len(rows), len(self.factors.target)), dtype=self.factors.target.dtype)
            for group, places in by_group(codes[rows]):
                u[places] = self.of_group(group).cells(spec, bound, rows[places])
            return u
        products = bound.reverse_products if spec.combine.reverse else bound.products
        target, bag, side = self.factors.target, self.factors.bag, row_side(spec, bound)
        if self.factors.combine is not None:
            terms = bound.terms(rows, missing=True)
            u = np.empty((len(rows), len(target)), dtype=target.dtype)
            u[terms.row, terms.vector] = self.observations(terms, side, rows)[0]
            return u
        if side is None:
            return products(rows, target, bag) + self.factors.intercept
        k = target.shape[1] - side.width
        u = products(rows, target[:, :k], bag) + self.factors.intercept
        u = np.asarray(u + side.columns(self.factors.terms, rows) @ target[:, k:].T)
        offsets = side.offsets(self.factors.terms, rows)
        if offsets is not None:
            offsets.add_to(u)
        return u

    def explain(self, spec: Spec, bound: BoundContext, row: int, entity: int) -> Explanation:
        """Decompose u of one cell into context members, intercept and further terms."""
        self.check_linear()
        codes = None if self.factors.groups is None else row_groups(spec, bound)
        if codes is not None:
            return self.of_group(int(codes[row])).explain(spec, bound, row, entity)
        vectors, coefficients = bound.context_of(row, entity, reverse=spec.combine.reverse)
        side = row_side(spec, bound)
        k = self.factors.target.shape[1] - (0 if side is None else side.width)
        target = self.factors.target[entity].astype(np.float64)
        products = self.factors.bag[vectors].astype(np.float64) @ target[:k]
        intercept = float(self.factors.intercept[entity])
        shares: dict[ShareName, float] = {}
        if side is not None:
            shares = side.shares(self.factors.terms, row, entity, target[k:])
        return Explanation(vectors, products, coefficients * products, intercept, shares)

    def observations(self, terms: Terms, side: RowSide | None, rows: Ints) -> tuple[Floats, Floats]:
        """(u, Z) of observations that are given as terms of some rows."""
        Z = self.contexts(terms, side, rows)
        u = self.pick(Z, terms.vector, terms.entity)
        offsets = None if side is None else side.offsets(self.factors.terms, rows)
        if offsets is not None:
            u += offsets.at(terms.row, terms.entity).astype(u.dtype, copy=False)
        return u, Z

    def contexts(self, terms: Terms, side: RowSide | None, rows: Ints) -> Floats:
        """Z of observations that are given as terms of some rows."""
        Z = terms.contexts(self.factors.bag)
        if side is None or not side.width:
            return Z
        return _append_columns(Z, side.columns(self.factors.terms, rows)[terms.row])


def _append_columns(Z: Floats, columns: Floats) -> Floats:
    """Contexts followed by the columns of the row side of the terms."""
    return np.concatenate([Z, columns.astype(Z.dtype, copy=False)], axis=1)


@dataclass(frozen=True)
class Explanation:
    """u of one cell as a sum of `contribution`, `intercept` and `terms`.

    vector : (members,) row of the context vectors;  product : (members,) target . bag of each
    contribution : (members,) what each adds to u
    terms : what each further term adds, by its label, and by item if it is a sum over items
    """

    vector: Ints
    product: Floats
    contribution: Floats
    intercept: float
    terms: dict[ShareName, float]


@dataclass(frozen=True)
class Cells:
    """Cells to be predicted, each from the bag of its row without itself.

    bags : csr_array of shape (rows, context vectors);  row, ids, x : (n,) cell and its value
    own, rest : (n,) what the cell removes from the bag, and the divisor of what is left
    empty : (n,) whether nothing is left
    side, data_row : row sides of the terms, and the row of the data of each bag
    group : group of the row of each bag, if groups have vectors of their own
    """

    bags: Any
    row: Ints
    ids: Ints
    x: Floats
    own: Floats
    rest: Floats
    empty: Bools
    side: RowSide | None = None
    data_row: Ints | None = None
    group: Ints | None = None

    @classmethod
    def leave_one_out(cls, block: RowBlock, n_context: int) -> Cells:
        """Every stored entry given the rest of its row."""
        row, observed = block.row_of_entry, ~np.isnan(block.x)
        n_members = block.members[row] - (block.own != 0)
        bags, empty = block.bag_matrix(n_context), n_members == 0
        return cls(bags, row, block.ids, block.x, block.own, block.rest, empty).take(observed)

    @classmethod
    def held_out(cls, block: RowBlock, n_context: int, row: Ints, ids: Ints, x: Floats) -> Cells:
        """Entries that are not in the rows' bags."""
        bags = block.bag_matrix(n_context)
        empty = np.bincount(block.row_of_entry, block.own != 0, len(block.total)) == 0
        return cls(bags, row, ids, x, np.zeros(len(row)), block.total[row], empty[row])

    @classmethod
    def of_rows(cls, block: RowBlock, n_context: int, row: Ints, ids: Ints) -> Cells:
        """Any cells given the rest of their rows; x is 0 where nothing is stored."""
        stored = block.row_of_entry * n_context + block.ids
        order = np.argsort(stored, kind="stable")
        cell = row * n_context + ids
        position = np.searchsorted(stored, cell, sorter=order)
        position = order[np.minimum(position, max(len(order) - 1, 0))] if len(order) else position
        is_stored = stored[position] == cell if len(order) else np.zeros(len(cell), dtype=bool)
        x, own, rest = np.zeros(len(cell)), np.zeros(len(cell)), block.total[row].astype(float)
        for array, values in ((x, block.x), (own, block.own), (rest, block.rest)):
            array[is_stored] = values[position[is_stored]]
        n_members = np.bincount(block.row_of_entry, block.own != 0, len(block.total))[row] - (
            own != 0
        )
        return cls(block.bag_matrix(n_context), row, ids, x, own, rest, n_members == 0)

    def with_terms(self, side: RowSide | None, data_row: Ints, groups: Ints | None = None) -> Cells:
        """The same cells with the row sides of the terms, and the groups of all rows of the data.

        `data_row` is the row of the data of each bag.
        """
        cells = self if side is None else replace(self, side=side, data_row=data_row)
        return cells if groups is None else replace(cells, group=groups[data_row])

    def known(self) -> Cells:
        """The cells whose context is not empty."""
        return self.take(~self.empty)

    def take(self, keep: Any) -> Cells:
        """Some of the cells, with all bags."""
        names = ("row", "ids", "x", "own", "rest", "empty")
        return replace(self, **{name: getattr(self, name)[keep] for name in names})

    def compact(self, keep: slice) -> Cells:
        """A slice of the cells with only the bags that it needs."""
        selected = self.take(keep)
        distinct, row = np.unique(selected.row, return_inverse=True)
        data_row = None if self.data_row is None else self.data_row[distinct]
        group = None if self.group is None else self.group[distinct]
        return replace(selected, bags=self.bags[distinct], row=row, data_row=data_row, group=group)

    def apply(self, predictor: Predictor, part: slice, Z: Floats) -> Floats:
        """u of all entities given the contexts of some cells, as returned by `contexts`."""
        if self.group is None:
            u = predictor.apply(Z)
        else:
            u = np.empty((len(Z), len(predictor.factors.target)), dtype=Z.dtype)
            for group, places in by_group(self.group[self.row[part]]):
                u[places] = predictor.of_group(group).apply(Z[places])
        offsets = self.offsets(predictor.factors, part)
        if offsets is not None:
            offsets.add_to(u)
        return u

    def pick(self, predictor: Predictor, part: slice, Z: Floats) -> Floats:
        """u of some cells, given their contexts."""
        ids = self.ids[part]
        if self.group is None:
            u = predictor.pick(Z, ids)
        else:
            u = np.empty(len(Z), dtype=Z.dtype)
            for group, places in by_group(self.group[self.row[part]]):
                u[places] = predictor.of_group(group).pick(Z[places], ids[places])
        offsets = self.offsets(predictor.factors, part)
        return u if offsets is None else u + offsets.at(np.arange(len(u)), ids)

    def offsets(self, factors: Factors, part: slice) -> Offsets | None:
        """Offsets of the rows of some cells, one row per cell."""
        if self.side is None or self.data_row is None:
            return None
        rows, left_out = self.data_row[self.row[part]], self.ids[part]
        return self.side.offsets(factors.terms, rows, left_out)

    def contexts(self, factors: Factors, width: int) -> Iterator[tuple[slice, Floats]]:
        """Yield scaled contexts in blocks, so that arrays of cells x `width` numbers stay small."""
        real = factors.bag.dtype
        dtype = summing_dtype(self.bags.data, real) if self.own.any() else real
        sums = self._sums(factors, dtype)
        size = max(64, CHUNK_NUMBERS // max(width, 1))
        for start in range(0, len(self.row), size):
            part = slice(start, min(start + size, len(self.row)))
            own = self.own[part].astype(dtype)[:, None]
            rest = self.rest[part].astype(dtype)[:, None]
            left = (sums[self.row[part]] - own * self._own_vectors(factors, part)) / rest
            Z = np.asarray(left.astype(real, copy=False))
            if self.side is not None and self.data_row is not None:
                rows = self.data_row[self.row[part]]
                Z = _append_columns(Z, self.side.columns(factors.terms, rows))
            yield part, Z

    def _sums(self, factors: Factors, dtype: Any) -> Floats:
        """Sum of the members of each bag."""
        bags = self.bags.astype(dtype)
        if self.group is None or not factors.own_contexts:
            return np.asarray(bags @ factors.bag)
        sums = np.empty((bags.shape[0], factors.n_bag), dtype=dtype)
        for group, places in by_group(self.group):
            sums[places] = bags[places] @ factors.of_group(group).bag
        return sums

    def _own_vectors(self, factors: Factors, part: slice) -> Floats:
        """Context vectors of the entities of some cells."""
        ids = self.ids[part]
        if self.group is None or not factors.own_contexts:
            return factors.bag[ids]
        vectors = np.empty((len(ids), factors.n_bag), dtype=factors.bag.dtype)
        for group, places in by_group(self.group[self.row[part]]):
            vectors[places] = factors.of_group(group).bag[ids[places]]
        return vectors
