"""SumSolver: a Basket plus lists of members (Neighbors, Graph, Lagged), by the `rows` solver.

A sum of contexts is linear in its context vectors. The contribution of lists to u_tn, the sum of
x rho_n . alpha_m / d over the members that occur, is non-zero only in the few cells of a row that
have such a member. It is treated like a term that adds offsets to single cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.data.array_checks import make_csr
from efemb.engine.random import RoundKey
from efemb.engine.solvers.base import Solver
from efemb.engine.solvers.rows.solver import RowsSolver
from efemb.kernels.row_entries import entry_products
from efemb.model.contexts.base import BoundContext, gather_rows, or_one
from efemb.model.contexts.bound.entities import EntityLists, Lists
from efemb.model.factors import Factors
from efemb.model.families.base import Family
from efemb.model.spec import Spec
from efemb.model.terms.base import Arrays, BoundCells, CellTerm, Term, TermArray
from efemb.model.terms.cell_values import SparseRows

LABEL = "(members of lists)"


def applies(bound: BoundContext, spec: Spec) -> bool:
    """Whether a context is the sum of one Basket and lists; only whole rows may be missing."""
    baskets, lists = _sort_parts(bound)
    if len(baskets) != 1 or not lists or len(bound.parts) != 1 + len(lists):
        return False
    if spec.family.softmax or not spec.combine.inner_product or spec.combine.reverse:
        return False
    centered = any(part.center is not None for one in lists for part in one.lists or ())
    if centered or bound.data.is_sparse:
        return not centered
    missing = np.isnan(bound.data.values)
    return bool((missing.any(axis=1) == missing.all(axis=1)).all())


def _sort_parts(bound: BoundContext) -> tuple[list[BoundContext], list[BoundContext]]:
    """The parts that are baskets, and those that are lists."""
    baskets = [part for part in bound.parts if part.shares_rows and part.leaves_own_bag]
    return baskets, [part for part in bound.parts if part.lists is not None]


def split_sum(bound: BoundContext) -> tuple[Any, EntityLists]:
    """The basket of a sum, and all of its lists."""
    baskets, lists = _sort_parts(bound)
    members = tuple(part for one in lists for part in one.lists or ())
    return baskets[0], EntityLists(bound.data, members)


class SumSolver(Solver[BoundContext]):
    """The rows solver on the basket of a sum, with the contribution of its lists as a term."""

    name = "rows"

    def prepare(self) -> None:
        """Make the solver of the basket."""
        basket, lists = split_sum(self.bound)
        spec = replace(self.spec, terms=(*self.spec.terms, MembersTerm(ListCells(lists))))
        weight = np.asarray(self.row_weight, dtype=np.float64)
        self.inner = RowsSolver(
            basket,
            spec,
            self.pool,
            dtype=self.dtype,
            row_weight=weight,
            seed=self.seed,
            popularity=self.popularity,
        )
        self.n_observed = self.inner.n_observed

    @property
    def total_weight(self) -> float:  # type: ignore[override]
        """Sum of the weights of all terms."""
        return self.inner.total_weight

    def set_family(self, family: Family) -> None:
        """Use a family whose dispersion has been refitted."""
        self.family = family
        self.inner.set_family(family)

    def start_round(self, key: RoundKey) -> None:
        """Draw the zeros of this round of this shard."""
        self.inner.start_round(key)

    def expect(self, rows: Ints | None) -> None:
        """Note the rows that come after the next ones."""
        self.inner.expect(rows)

    def value_and_gradient(
        self, vectors: Factors, rows: Ints | None = None, *, exact: bool = False
    ) -> tuple[float, Factors]:
        """Sum over the rows; gradients of the members are added to those of their vectors."""
        n, k = self.bound.n_entities, vectors.n_bag  # members have no columns of terms
        names = [f"{LABEL}.{side}" for side in ("target", "bag")]
        members = [np.ascontiguousarray(vectors.target[:, :k]), vectors.bag]
        arrays = {**vectors.terms, **dict(zip(names, members, strict=True))}
        basket = replace(vectors, bag=vectors.bag[:n], terms=arrays)
        value, slopes = self.inner.value_and_gradient(basket, rows, exact=exact)
        slopes = slopes.on_all_rows(basket)
        bag = np.zeros_like(vectors.bag)
        bag[:n] = slopes.bag
        target = slopes.target.copy()
        if names[0] in slopes.terms:
            target[:, :k] += slopes.terms.pop(names[0])
            bag += slopes.terms.pop(names[1])
        return value, replace(slopes, target=target, bag=bag)


class MembersTerm(CellTerm):
    """Offsets of the cells that have members in lists; it uses the vectors of the model."""

    listed = False

    def __init__(self, bound: ListCells) -> None:
        self.bound = bound

    @property
    def label(self) -> str:
        """A name that no column has."""
        return LABEL

    def freeze(self, data: Any) -> Term:
        """Return itself: it was made for these rows."""
        return self

    def arrays(self, n_entities: int) -> tuple[TermArray, ...]:
        """It has no arrays of its own."""
        return ()

    def bind(self, data: Any) -> BoundCells:
        """Return the rows that it was made for."""
        return self.bound


@dataclass(frozen=True)
class _Members:
    """The members of the cells of some rows.

    ptr, ids : the cells (CSR);  place, edge : (members,) cell and edge of each
    coefficient : (members,) value divided by divisor
    """

    ptr: Ints
    ids: Ints
    place: Ints
    edge: Ints
    coefficient: Floats


class ListCells(BoundCells):
    """The contribution of the members of lists to u of single cells."""

    def __init__(self, bound: EntityLists) -> None:
        self.bound, self.n = bound, bound.n_entities
        values = bound.data.values
        self.observed: Bools = np.ones(bound.n_rows, dtype=bool)
        if not bound.data.is_sparse:
            self.observed = ~np.isnan(values[:, 0])
            values = make_csr(np.nan_to_num(values))
        self.values = values
        owner = np.concatenate([part.owner for part in bound.lists])
        vector = np.concatenate([part.slot * self.n + part.members for part in bound.lists])
        self.order = np.argsort(owner, kind="stable")  # of all edges, sorted by entity
        rank = np.empty(len(owner), dtype=np.int64)
        rank[self.order] = np.arange(len(owner))
        sizes = np.bincount(owner, minlength=self.n)
        self.ptr: Ints = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.vector: Ints = vector[self.order]
        first = np.cumsum([0, *(len(part.members) for part in bound.lists)])
        self.views = [
            _Shift(part, int(offset), rank[start : start + len(part.members)], self.n)
            for part, start in zip(bound.lists, first[:-1], strict=True)
            for offset in np.unique(part.offset)
        ]
        self.last: tuple[Ints, _Members] | None = None

    def cells(self, arrays: Arrays, rows: Ints) -> SparseRows:
        """Sums over members, of the cells that have any."""
        members, target, bag = self._members(rows), arrays["target"], arrays["bag"]
        weight = np.empty(len(self.vector), dtype=target.dtype)
        ones, none = np.ones(self.n, target.dtype), np.zeros(len(bag), bag.dtype)
        scratch = np.ones_like(weight)
        arguments = (self.ptr, self.vector, np.zeros_like(weight), scratch, ones, target, bag)
        entry_products(*arguments, none, none, target.shape[1], weight, np.empty_like(weight))
        summed = np.bincount(
            members.place, members.coefficient * weight[members.edge], len(members.ids)
        )
        return SparseRows(members.ptr, members.ids, summed.astype(target.dtype))

    def pull_back_cells(self, arrays: Arrays, rows: Ints, gradient: Floats) -> dict[str, Floats]:
        """Gradients of the embeddings and the context vectors."""
        members, target, bag = self._members(rows), arrays["target"], arrays["bag"]
        slope = np.bincount(
            members.edge, members.coefficient * gradient[members.place], len(self.vector)
        )
        shape = (self.n, len(bag))
        matrix = make_csr((slope.astype(target.dtype), self.vector, self.ptr), shape=shape)
        return {"target": np.asarray(matrix @ bag), "bag": np.asarray(matrix.T @ target)}

    def _members(self, rows: Ints) -> _Members:
        """The members of some rows; those of the last call are kept for the backward pass."""
        last = self.last
        if last is not None and last[0] is rows:
            return last[1]
        keys, edges, coefficients = [], [], []
        for key, edge, coefficient in self._of_lists(rows):
            keys.append(key)
            edges.append(edge)
            coefficients.append(coefficient)
        cells, place = np.unique(np.concatenate(keys), return_inverse=True)
        row, ids = np.divmod(cells, self.n)
        ptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(rows)))])
        edge, coefficient = np.concatenate(edges), np.concatenate(coefficients)
        members = _Members(ptr.astype(np.int64), ids, place, edge, coefficient)
        self.last = (rows, members)
        return members

    def _of_lists(self, rows: Ints) -> Iterator[tuple[Ints, Ints, Floats]]:
        """(cell, edge, coefficient) of the members of each kind of list."""
        for part in self.bound.lists:
            views = [view for view in self.views if view.part is part]
            shifts = [self._of_shift(view, rows) for view in views]
            key, edge, amount = (np.concatenate(arrays) for arrays in zip(*shifts, strict=True))
            if part.scale == "none":
                yield key, edge, amount
                continue
            if part.scale == "items":
                inside = np.stack([self._source(rows, view)[1] for view in views])
                degrees = np.stack([view.degrees for view in views])
                row, ids = np.divmod(key, self.n)
                divisor = np.einsum("om,om->m", inside[:, row], degrees[:, ids])
            else:
                cells, place = np.unique(key, return_inverse=True)
                divisor = np.bincount(place, amount, len(cells))[place]
            yield key, edge, amount / or_one(np.asarray(divisor, dtype=np.float64))

    def _source(self, rows: Ints, view: _Shift) -> tuple[Ints, Bools]:
        """Rows `offset` away, and whether they exist and are observed."""
        source, inside = self.bound.source_rows(rows, view.offset)
        return source, inside & self.observed[source]

    def _of_shift(self, view: _Shift, rows: Ints) -> tuple[Ints, Ints, Floats]:
        """(cell, edge, amount) of the members that occur `offset` rows away."""
        source, inside = self._source(rows, view)
        present = np.flatnonzero(inside)
        ptr, where = gather_rows(self.values.indptr, source[present])
        row = np.repeat(present, np.diff(ptr))
        member, value = self.values.indices[where], self.values.data[where]
        edge_ptr, edges = gather_rows(view.ptr, member)
        repeat = np.diff(edge_ptr)
        key = np.repeat(row, repeat) * np.int64(self.n) + view.owner[edges]
        amount = view.part.amounts(np.repeat(value, repeat).astype(np.float64))
        return key, view.edge[edges], amount


class _Shift:
    """The edges of one list at one offset, sorted by member: those of m are at ptr[m]..ptr[m + 1].

    owner, edge : entity of each edge, and its place among all edges
    degrees : (N,) number of edges of each entity
    """

    def __init__(self, part: Lists, offset: int, rank: Ints, n: int) -> None:
        self.part, self.offset = part, offset
        edges = np.flatnonzero(part.offset == offset)
        edges = edges[np.argsort(part.members[edges], kind="stable")]
        sizes = np.bincount(part.members[edges], minlength=n)
        self.ptr: Ints = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.owner, self.edge = part.owner[edges], rank[edges]
        self.degrees = np.bincount(self.owner, minlength=n)
