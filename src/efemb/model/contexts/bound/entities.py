"""EntityLists: contexts in which each entity has the same list of members in every row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.data.array_checks import make_csr
from efemb.errors import DataError, ParameterError
from efemb.model.contexts.base import (
    BoundContext,
    Context,
    SumOfBound,
    check_scale,
    dense_rows,
    gather_rows,
    or_one,
)
from efemb.model.contexts.bound.member_lists import checked_lists
from efemb.model.contexts.bound.terms import Bags, Terms, stacked, with_components

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


EDGE_ARRAYS = ("members", "offset", "slot", "distance", "center", "ridge", "weight")


@dataclass(frozen=True)
class Lists:
    """Members of each entity: `members[ptr[n]:ptr[n + 1]]`, taken `offset` rows away.

    ptr : (N + 1,);  members, offset, slot : (edges,);  scale, binary as in `Context`
    distance : (edges,) from each entity to its members, None if positions are not known
    center : (edges,) subtracted from the value of each member, so that a missing one counts
        as its mean; None is 0
    ridge : (edges,) penalty on the square of each weight rho_n . alpha_m, in units of the
        variance; None is 0
    weight : (edges,) factor of each member in its context, None is 1; divisors are weighted, too
    """

    ptr: Ints
    members: Ints
    offset: Ints
    slot: Ints
    scale: str = "none"
    binary: bool = False
    distance: Floats | None = None
    center: Floats | None = None
    ridge: Floats | None = None
    weight: Floats | None = None

    @property
    def owner(self) -> Ints:
        """Entity that each edge belongs to."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))

    @property
    def reaches_other_rows(self) -> bool:
        """Whether a member is in another row than its entity."""
        return bool(self.offset.any())

    def amounts(self, values: Floats) -> Floats:
        """The amounts that members with these values count for."""
        return (values != 0).astype(np.float64) if self.binary else values

    def about(self, means: Floats) -> Lists:
        """The same lists with member values measured from the means of the entities."""
        measured = not self.binary and self.scale != "total"
        return replace(self, center=means[self.members]) if measured else self

    @property
    def column_center(self) -> Floats | None:
        """The center of each entity's values (N,), None for 0."""
        if self.center is None:
            return None
        center = np.zeros(len(self.ptr) - 1)
        center[self.members] = self.center
        return center

    def weigh(self, numbers: Floats, edges: Any = slice(None)) -> Floats:
        """Multiply numbers of all (or some) edges, the last axis, by the weights of the edges."""
        return numbers if self.weight is None else numbers * self.weight[edges]

    def shares(self, amounts: Floats, seen: Bools) -> Floats:
        """The amount that each member adds to the divisor of its context, before weights."""
        if self.scale == "items":
            return seen.astype(np.float64)
        return amounts if self.scale == "total" else np.zeros(amounts.shape)

    def turned(self) -> Lists:
        """Lists for the reverse conditional: an entity is predicted by those whose lists hold it.

        Each of them predicts it alone; the prediction is the mean over them. A value divided by
        its own total is 1.
        """
        if self.weight is not None:
            raise ParameterError("combine='reverse' takes contexts without weights")
        edges = np.argsort(self.members, kind="stable")
        sizes = np.bincount(self.members, minlength=len(self.ptr) - 1)
        return Lists(
            ptr=np.concatenate([[0], np.cumsum(sizes)]),
            members=self.owner[edges],
            offset=-self.offset[edges],
            slot=self.slot[edges],
            scale="items",
            binary=self.binary or self.scale == "total",
        )


class EntityLists(BoundContext):
    """Fixed member lists; each kind of list is scaled separately, and their sums are added.

    `private` lists (one context vector per offset) have slots of their own in a sum. `targets` may
    contain other values to be predicted than those that make up the contexts.
    """

    lists: tuple[Lists, ...]

    def __init__(
        self,
        data: Dataset,
        lists: tuple[Lists, ...],
        *,
        private: bool = False,
        targets: Dataset | None = None,
    ) -> None:
        self.data, self.lists, self.private = data, lists, private
        self.targets = data if targets is None else targets
        self.n_rows, self.n_entities, self.n_dims = data.n_rows, data.n_entities, data.n_dims
        self.n_slots = 1 + max((int(part.slot.max(initial=0)) for part in lists), default=0)
        for part in lists:
            check_scale(data, part.scale)
        if data.rows_left_out and any(part.reaches_other_rows for part in lists):
            raise DataError(
                "contexts reach other rows (Lagged), but some rows of these data were left out, so "
                "that consecutive rows need not be consecutive in time: split with by='blocks' or "
                "by='time', or pass recordings= to state which rows belong together"
            )

    @classmethod
    def from_neighbors(
        cls,
        data: Dataset,
        ptr: Any,
        members: Any,
        *,
        scale: str = "none",
        binary: bool = False,
        distance: Floats | None = None,
        weight: Floats | None = None,
    ) -> EntityLists:
        """Contexts within the same row: `members[ptr[n]:ptr[n + 1]]` are those of entity n.

        ptr : (N + 1,);  members : integers in 0 ... N - 1, none of an entity itself
        """
        starts, index = checked_lists(
            ptr, members, data.n_entities, names=("ptr", "members"), one="entity", size="entities"
        )
        none = np.zeros(len(index), dtype=np.int64)
        part = Lists(starts, index, none, none, scale, binary, distance)
        return cls(data, (replace(part, weight=weight),))

    def plus(self, other: BoundContext) -> BoundContext:
        """Lists merge with lists; otherwise lists with their own slots come last."""
        if other.lists is not None:
            return self.merge(other)
        if self.private and not other.private:
            return SumOfBound(self.shifted(other.n_slots), other)
        return super().plus(other)

    def frozen_part(self, context: Context) -> Context:
        """The context with the lists that the fit found."""
        from efemb.model.contexts.frozen import Kept

        return context if context.is_frozen else Kept(context, tuple(map(_fields, self.lists)))

    def rebind(self, data: Dataset) -> EntityLists:
        """The same lists for other rows."""
        return EntityLists(data, self.lists, private=self.private)

    def merge(self, other: Any) -> EntityLists:
        """Both sets of lists; private slots of one follow all slots of the other."""
        first, second = self, other
        if second.private:
            second = second.shifted(first.n_slots)
        elif first.private:
            first = first.shifted(second.n_slots)
        private = self.private and other.private
        return EntityLists(self.data, first.lists + second.lists, private=private)

    def about(self, means: Floats) -> EntityLists:
        """The same contexts with member values measured from the means of the entities (N,)."""
        lists = tuple(part.about(means) for part in self.lists)
        targets = None if self.targets is self.data else self.targets
        return EntityLists(self.data, lists, private=self.private, targets=targets)

    def shifted(self, slots: int) -> EntityLists:
        """The same lists with their slots moved up."""
        moved = tuple(replace(part, slot=part.slot + slots) for part in self.lists)
        return EntityLists(self.data, moved, private=self.private)

    def flattened(self) -> EntityLists | None:
        """Equivalent contexts of N D scalar entities, None if there are none.

        A member with D numbers becomes D members. Divisors count members, not numbers, and centers
        belong to scalar data. Partly missing observations are missing.
        """
        from efemb.data.dataset import Dataset

        for part in self.lists:
            if part.scale != "none" or part.binary or part.center is not None:
                return None
        lists = tuple(_expand_components(part, self.n_dims) for part in self.lists)
        size = (self.n_rows, self.n_entities * self.n_dims)
        flat = [
            Dataset(
                dense_rows(data, np.arange(self.n_rows)).reshape(size),
                recordings=self.data.recordings,
            )
            for data in (self.data, self.targets)
        ]
        return EntityLists(flat[0], lists, private=self.private, targets=flat[1])

    def around(self, entities: Ints) -> tuple[EntityLists, Ints]:
        """The lists of some entities over the columns of their members, and these columns.

        The entities come first, in their order; other entities have empty lists.
        """
        lists = [_select_entities(part, entities) for part in self.lists]
        members = np.concatenate([part.members for part in lists])
        columns = np.concatenate([entities, np.setdiff1d(members, entities)])
        new_code = np.full(self.n_entities, -1, dtype=np.int64)
        new_code[columns] = np.arange(len(columns))
        bound_part = [_renumber_members(part, len(columns), new_code) for part in lists]
        data, targets = (one.take_entities(columns) for one in (self.data, self.targets))
        return EntityLists(data, tuple(bound_part), private=self.private, targets=targets), columns

    def context_sizes(self) -> Ints:
        """(T, N) numbers of observed members of each context."""
        rows, shape = np.arange(self.n_rows), (self.n_entities, self.n_entities)
        seen = np.asarray(~np.isnan(dense_rows(self.data, rows)).any(axis=2))
        sizes = np.zeros(seen.shape, dtype=np.int64)
        for lists in self.lists:
            for offset in np.unique(lists.offset):
                at_offset = lists.offset == offset
                source, inside = self.source_rows(rows, int(offset))
                observed = (seen[source] & inside[:, None]).astype(np.int64)
                edges = (lists.owner[at_offset], lists.members[at_offset])
                ones = np.ones(int(at_offset.sum()), np.int64)
                sizes += (make_csr((ones, edges), shape=shape) @ observed.T).T
        return sizes

    def cost_of_row(self) -> int:
        """Number of members of all observations of a row."""
        edges = sum(len(part.members) for part in self.lists)
        return (edges + self.n_entities) * self.n_dims

    def terms(self, rows: Ints, *, reverse: bool = False, missing: bool = False) -> Terms:
        """A term for every observed cell of the rows; in a reverse model, for every edge."""
        if reverse:
            return self._reverse_terms(rows)
        x = dense_rows(self.targets, rows)
        n_rows, n_entities, n_dims = x.shape
        parts = tuple(self._bags(part, rows) for part in self.lists)
        entity = np.tile(np.arange(n_entities * n_dims), n_rows)
        row = np.repeat(np.arange(n_rows), n_entities * n_dims)
        terms = Terms(x.ravel(), row, entity, entity, parts)
        return terms if missing else terms.take(~np.isnan(terms.x))

    def shifted_values(
        self, part: Lists, rows: Ints, data: Dataset | None = None
    ) -> tuple[Floats, Bools]:
        """Value of every edge's member in each row (rows, edges, D), and whether it is observed.

        Values are those that make up the contexts, unless other data are passed.
        """
        values = np.zeros((len(rows), len(part.members), self.n_dims))
        observed = np.zeros(values.shape[:2], dtype=bool)
        for offset in np.unique(part.offset):
            edges = np.flatnonzero(part.offset == offset)
            source, inside = self.source_rows(rows, int(offset))
            block = dense_rows(self.data if data is None else data, source)[:, part.members[edges]]
            ok = ~np.isnan(block).any(axis=2) & inside[:, None]
            if part.center is not None and data is None:
                block = block - part.center[edges, None]
            values[:, edges] = np.where(ok[:, :, None], block, 0.0)
            observed[:, edges] = ok
        return values, observed

    def products(self, rows: Ints, target: Floats, bag: Floats) -> Floats:
        """Inner products through the members' coefficients rho_n . alpha_m: cost rows x edges."""
        if self.n_dims > 1:
            return super().products(rows, target, bag)
        if len(rows) == 1:
            return self._row_products(int(rows[0]), target, bag, reverse=False)
        inner_products = np.zeros((len(rows), self.n_entities))
        for part in self.lists:
            total, scale = self._part_sums(part, rows, target, bag)
            inner_products += total / or_one(scale)
        return inner_products

    def reverse_products(self, rows: Ints, target: Floats, bag: Floats) -> Floats:
        """Mean of the predictions by all entities whose lists contain an entity."""
        if len(rows) == 1:
            return self._row_products(int(rows[0]), target, bag, reverse=True)
        inner_products, count = np.zeros((2, len(rows), self.n_entities))
        for part in self.lists:
            total, scale = self._part_sums(part.turned(), rows, target, bag)
            inner_products, count = inner_products + total, count + scale
        return inner_products / or_one(count)

    def context_of(self, row: int, entity: int, *, reverse: bool = False) -> tuple[Ints, Floats]:
        """Observed members of an entity's lists; in a reverse model, the entities that list it."""
        if self.n_dims > 1:
            return super().context_of(row, entity)
        owner, vector, coefficient = self._row_edges(row, reverse=reverse)
        return vector[owner == entity], coefficient[owner == entity]

    def _row_products(self, row: int, target: Floats, bag: Floats, *, reverse: bool) -> Floats:
        """Products of a single row, as in questions; needs no SciPy."""
        owner, vector, coefficient = self._row_edges(row, reverse=reverse)
        weight = np.einsum("ek,ek->e", target[owner], bag[vector]).astype(np.float64)
        total = np.bincount(owner, coefficient * weight, self.n_entities)
        return np.asarray(total, np.float64)[None]

    def _row_edges(self, row: int, *, reverse: bool) -> tuple[Ints, Ints, Floats]:
        """(entity, row of the context vectors, coefficient) of the observed members of one row."""
        lists = tuple(part.turned() for part in self.lists) if reverse else self.lists
        edges, divisors = [], []
        for part in lists:
            values, seen = self.shifted_values(part, np.array([row]))
            observed = np.flatnonzero(seen[0])
            owner, amount = part.owner[observed], part.amounts(values[0, observed, 0])
            share = part.weigh(part.shares(amount, seen[0, observed]), observed)
            amount = part.weigh(amount, observed)
            divisors.append(np.asarray(np.bincount(owner, share, self.n_entities), np.float64))
            vector = part.slot[observed] * self.n_entities + part.members[observed]
            edges.append((owner, vector, amount))
        if reverse:  # a single mean over all lists
            divisors = [np.sum(divisors, axis=0)] * len(divisors)
        scales = [
            or_one(divisor)[owner] for divisor, (owner, *_) in zip(divisors, edges, strict=True)
        ]
        owner, vector, amount = (np.concatenate(column) for column in zip(*edges, strict=True))
        return owner, vector, amount / np.concatenate(scales)

    def weighted_sums(self, rows: Ints, weights: Sequence[Floats]) -> Floats:
        """Sums over the members with given weights, one per edge of every list, (rows, N)."""
        sums = np.zeros((len(rows), self.n_entities))
        for part, weight in zip(self.lists, weights, strict=True):
            total, scale = self._edge_sums(part, rows, weight)
            sums += total / or_one(scale)
        return sums

    def _part_sums(
        self, part: Lists, rows: Ints, target: Floats, bag: Floats
    ) -> tuple[Floats, Floats]:
        """Sums over the members, and their divisors (0 if there is nothing to divide by)."""
        alpha = bag[part.slot * self.n_entities + part.members]
        weight = np.einsum("ek,ek->e", target[part.owner], alpha).astype(np.float64)
        return self._edge_sums(part, rows, weight)

    def _edge_sums(self, part: Lists, rows: Ints, weight: Floats) -> tuple[Floats, Floats]:
        """Weighted sums and divisors over the members, with a weight per edge."""
        owner, size = part.owner, (self.n_entities, self.n_entities)
        total, scale = np.zeros((len(rows), size[0])), np.zeros((len(rows), size[0]))
        for offset in np.unique(part.offset):
            at_offset = part.offset == offset
            source, inside = self.source_rows(rows, int(offset))
            block = dense_rows(self.data, source)[:, :, 0]
            observed = ~np.isnan(block) & inside[:, None]
            center = part.column_center
            block = block if center is None else block - center
            value = part.amounts(np.where(observed, block, 0.0))
            edges = (owner[at_offset], part.members[at_offset])
            mixed = part.weigh(weight[at_offset], at_offset)
            total += (make_csr((mixed, edges), shape=size) @ value.T).T
            if part.scale != "none":
                share = part.shares(value, observed)
                factors = part.weigh(np.ones(int(at_offset.sum())), at_offset)
                ones = make_csr((factors, edges), shape=size)
                scale += (ones @ share.T).T
        return total, scale

    def source_rows(self, rows: Ints, offset: int) -> tuple[Ints, Bools]:
        """Indices of the rows `offset` away, and whether they exist in the same recording."""
        source = rows + offset
        inside = (source >= 0) & (source < self.n_rows)
        source = np.where(inside, source, 0)
        if self.data.recordings is not None:
            inside &= self.data.recordings[source] == self.data.recordings[rows]
        return source, inside

    def check_reach(self) -> None:
        """Reject an offset that exceeds every recording, because nothing can be learned from it."""
        for offset in np.unique(np.concatenate([part.offset for part in self.lists])):
            _, inside = self.source_rows(np.arange(self.n_rows), int(offset))
            if not inside.any():
                raise DataError(
                    f"the offset {offset} reaches beyond every recording: of {self.n_rows:,} rows, "
                    f"none has another one {abs(offset):,} rows away; use smaller offsets"
                )

    def _bags(self, part: Lists, rows: Ints) -> Bags:
        values, observed = self.shifted_values(part, rows)
        values = part.amounts(values)
        n_rows, n_edges, n_dims = values.shape
        amounts = part.weigh(values.transpose(0, 2, 1)).transpose(0, 2, 1)
        columns = with_components(part.slot * self.n_entities + part.members, n_dims)
        starts = np.arange(n_rows)[:, None] * n_edges * n_dims + part.ptr[None, :-1] * n_dims
        ptr = np.append(starts.ravel(), n_rows * n_edges * n_dims)
        n_columns = self.n_context_vectors * n_dims
        matrix = make_csr(
            (amounts.ravel(), np.tile(columns, n_rows), ptr),
            shape=(n_rows * self.n_entities, n_columns),
        )
        scale: Floats = np.ones((n_rows, self.n_entities))
        if part.scale != "none":
            share = part.weigh(part.shares(values.sum(axis=2), observed))
            scale = or_one(sum_by_owner(share, part.ptr))
        bag = np.arange(n_rows * self.n_entities)
        return Bags(matrix, np.repeat(bag, n_dims), np.repeat(scale.ravel(), n_dims))

    def _reverse_terms(self, rows: Ints) -> Terms:
        """A term for each observed member, given the observation whose context contains it."""
        observed = dense_rows(self.data, rows)
        return stacked([self._reverse_part(part, rows, observed) for part in self.lists])

    def _reverse_part(self, part: Lists, rows: Ints, observed: Floats) -> Terms:
        if part.weight is not None:
            raise ParameterError("combine='reverse' takes contexts without weights")
        values, seen = self.shifted_values(part, rows, self.targets)
        known = np.asarray(~np.isnan(observed).any(axis=2))
        row, edge = np.nonzero(seen & known[:, part.owner])
        n_dims, owner, member = self.n_dims, part.owner[edge], part.members[edge]
        amount = observed[row, owner]
        if part.binary:
            amount = (amount != 0).astype(np.float64)
        scale = or_one(amount.sum(axis=1)) if part.scale == "total" else np.ones(len(row))
        ptr = np.arange(len(row) + 1) * n_dims
        matrix = make_csr(
            (amount.ravel(), with_components(owner, n_dims), ptr),
            shape=(len(row), self.n_entities * n_dims),
        )
        bag = np.repeat(np.arange(len(row)), n_dims)
        return Terms(
            x=values[row, edge].ravel(),
            row=np.repeat(row, n_dims),
            vector=with_components(part.slot[edge] * self.n_entities + member, n_dims),
            entity=with_components(member, n_dims),
            parts=(Bags(matrix, bag, np.repeat(scale, n_dims)),),
        )


def _fields(part: Lists) -> tuple[Any, ...]:
    return tuple(getattr(part, field.name) for field in fields(Lists))


def _select_entities(part: Lists, entities: Ints) -> Lists:
    """The lists of some entities, in their order."""
    ptr, edges = gather_rows(part.ptr, entities)
    of_edges = {name: getattr(part, name) for name in EDGE_ARRAYS}
    return replace(part, ptr=ptr, **{n: a[edges] for n, a in of_edges.items() if a is not None})


def _renumber_members(part: Lists, n_entities: int, new_code: Ints) -> Lists:
    """Lists with renumbered members; entities without a list get an empty one."""
    empty = np.full(n_entities + 1 - len(part.ptr), part.ptr[-1])
    return replace(part, ptr=np.concatenate([part.ptr, empty]), members=new_code[part.members])


def sum_by_owner(share: Floats, ptr: Ints) -> Floats:
    """Sum the columns of `share` (rows, edges) that belong to each entity."""
    running = np.zeros((share.shape[0], share.shape[1] + 1))
    np.cumsum(share, axis=1, out=running[:, 1:])
    return np.asarray(running[:, ptr[1:]] - running[:, ptr[:-1]])


def _expand_components(part: Lists, n_dims: int) -> Lists:
    """Lists of the D numbers of every entity: all numbers of its members."""
    n_entities = len(part.ptr) - 1
    ptr, order = gather_rows(part.ptr, np.repeat(np.arange(n_entities), n_dims))
    edges = np.repeat(order, n_dims)
    arrays: dict[str, Any] = {
        name: None if getattr(part, name) is None else getattr(part, name)[edges]
        for name in EDGE_ARRAYS
    }
    arrays["members"] = with_components(part.members[order], n_dims)
    return replace(part, ptr=ptr * n_dims, **arrays)
