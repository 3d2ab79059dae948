"""RowBags: contexts that all observations of a row share, each without itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.data.array_checks import make_csr
from efemb.errors import ParameterError
from efemb.model.contexts.base import BoundContext, check_scale, dense_rows, gather_rows, or_one
from efemb.model.contexts.bound.terms import Bags, Terms, summing_dtype

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


class RowBags(BoundContext):
    """A bag of members for each row.

    Parameters
    ----------
    data : Dataset
    scale, binary : str and bool, default="total" and False
        As in `Basket`.
    members : csr_array of shape (T, N), optional
        Values of the members of each row's bag. By default the row itself, in which case an
        observation is removed from its own context.
    masked : csr_array of shape (T, N), optional
        Stored entries are neither zero, target nor context.
    whole : Dataset, optional
        The same rows including held-out entries; by default the data.
    pseudo_count : float, default=0.0
        Added to every divisor.
    """

    def __init__(
        self,
        data: Dataset,
        *,
        scale: str = "total",
        binary: bool = False,
        members: Any = None,
        masked: Any = None,
        whole: Dataset | None = None,
        pseudo_count: float = 0.0,
    ) -> None:
        self.whole = data if whole is None else whole
        self.data, self.scale, self.binary, self.members = data, scale, binary, members
        self.n_rows, self.n_entities, self.n_dims = data.n_rows, data.n_entities, data.n_dims
        self.masked, self.pseudo_count = masked, pseudo_count
        self._stored: Stored | None = None
        check_scale(data, scale)

    @property
    def whole_data(self) -> Dataset:
        """The rows including held-out entries."""
        return self.whole

    @property
    def leaves_own_bag(self) -> bool:
        """True unless other members were passed."""
        return self.members is None

    @property
    def shares_rows(self) -> bool:
        """True for scalar data."""
        return self.n_dims == 1

    def without(self, masked: Any, data: Dataset | None = None) -> RowBags:
        """The same context with some cells masked; values come from `data` if it is passed."""
        return RowBags(
            self.data if data is None else data,
            scale=self.scale,
            binary=self.binary,
            members=self.members,
            masked=masked,
            whole=self.whole,
            pseudo_count=self.pseudo_count,
        )

    @property
    def stored(self) -> Stored:
        """All rows as sparse arrays (computed once)."""
        if self._stored is None:
            self._stored = Stored.of(self)
        return self._stored

    def block(self, rows: Ints, *, reverse: bool = False) -> RowBlock:
        """Some rows as sparse arrays (scalar data)."""
        block = self.stored.block(rows, shares_bag=self.members is None)
        return reverse_block(block, self.scale) if reverse else block

    def thinned_block(self, rows: Ints, members: Bools) -> RowBlock:
        """Some rows with fewer members in their contexts and unchanged targets.

        members : mask of the stored entries that stay in the contexts
        """
        block = self.block(rows)
        members = members.take(gather_rows(self.stored.ptr, rows)[1])
        own = np.where(members, block.own, 0).astype(block.own.dtype)
        share = _entry_share(own, self.scale)
        total: Floats = np.bincount(block.row_of_entry, share, len(block.total)).astype(np.float64)
        rest = self.divisor(total[block.row_of_entry] - share).astype(block.x.dtype)
        total = self.divisor(total).astype(block.x.dtype)
        return replace(block, bag_values=own, own=own, total=total, rest=rest)

    def divisor(self, total: Floats) -> Floats:
        """The divisor of context sums, from the sum or the number of the members."""
        return total + self.pseudo_count if self.pseudo_count else or_one(total)

    def scored_block(self, rows: Ints, *, reverse: bool) -> RowBlock:
        """Each entry given the rest of its row, in either direction."""
        return self.block(rows)

    def terms(self, rows: Ints, *, reverse: bool = False, missing: bool = False) -> Terms:
        """A term for every cell of the rows."""
        if reverse:
            return reverse_terms(self, rows)
        x = dense_rows(self.data, rows)
        n_rows, n_entities, n_dims = x.shape
        if self.members is None:
            value = np.where(np.isnan(x), 0.0, x)
            value = (value != 0).astype(np.float64) if self.binary else value
        else:
            value = self.members[rows].toarray()[:, :, None]
        share = self._share(value)
        cells = np.arange(n_rows * n_entities)
        own = left_out = None
        total = share.sum(axis=1)[:, None] + np.zeros(share.shape)
        if self.members is None:
            own = make_csr(_blocks_of_own(value))
            left_out = np.repeat(cells, n_dims)
            total = total - share
        shape = (n_rows, n_entities, n_dims)
        terms = Terms(
            x=x.ravel(),
            row=np.repeat(cells // n_entities, n_dims),
            vector=np.tile(np.arange(n_entities * n_dims), n_rows),
            entity=np.tile(np.arange(n_entities * n_dims), n_rows),
            parts=(
                Bags(
                    matrix=make_csr(value.reshape(n_rows, -1)),
                    bag=np.repeat(cells // n_entities, n_dims),
                    scale=np.broadcast_to(self.divisor(total)[:, :, None], shape).ravel(),
                    own=own,
                    left_out=left_out,
                ),
            ),
        )
        return terms if missing else terms.take(self._observed(rows, x))

    def products(self, rows: Ints, target: Floats, bag: Floats) -> Floats:
        """Every cell given the whole bag, then the stored entries given the rest of it."""
        if self.n_dims > 1:
            return super().products(rows, target, bag)
        block = self.block(rows)
        dtype = summing_dtype(block.bag_values, bag.dtype)
        sums = block.bag_sums(bag, dtype, self.n_context_vectors)
        scaled = np.asarray(sums / block.total.astype(dtype)[:, None])
        inner_products = scaled.astype(bag.dtype, copy=False) @ target.T
        row, ids = block.row_of_entry, block.ids
        remaining = (sums[row] - block.own.astype(dtype)[:, None] * bag[ids]) / block.rest[:, None]
        inner_products[row, ids] = np.einsum("ik,ik->i", remaining, target[ids])
        return inner_products

    def context_of(self, row: int, entity: int, *, reverse: bool = False) -> tuple[Ints, Floats]:
        """The rest of the row; a reverse model predicts a cell from it in the same way."""
        if self.n_dims > 1:
            return super().context_of(row, entity)
        return self.block(np.array([row])).members_of(entity)

    def _observed(self, rows: Ints, x: Floats) -> Any:
        observed = ~np.isnan(x)
        if self.masked is not None:
            observed &= ~self.masked[rows].toarray().astype(bool)[:, :, None]
        return observed.ravel()

    def _share(self, value: Floats) -> Floats:
        """The amount that each member adds to the divisor of its bag, (rows, N)."""
        if self.scale == "items":
            return np.asarray((value != 0).any(axis=2), dtype=np.float64)
        return value.sum(axis=2) if self.scale == "total" else np.zeros(value.shape[:2])

    def predictions_of_entry(self) -> Ints:
        """For the reverse conditional: how many entries of a row predict each of its entries."""
        return np.maximum(np.bincount(self.stored.row, minlength=self.n_rows) - 1, 0)

    def cost_of_row(self) -> int:
        """Number of cells, and of the entries of `own`."""
        return self.n_entities * self.n_dims * (1 + self.n_dims)


@dataclass(frozen=True)
class Stored:
    """The whole data set as the arrays of a RowBlock."""

    ptr: Ints
    ids: Ints
    x: Floats
    own: Floats
    rest: Floats
    total: Floats
    bag: Any

    @classmethod
    def of(cls, bags: RowBags) -> Stored:
        if bags.n_dims > 1:
            raise ParameterError("vector observations on row contexts need solver='generic'")
        x, ids, ptr = _entries(bags.data, bags.masked)
        n_rows = bags.n_rows
        row = np.repeat(np.arange(n_rows), np.diff(ptr))
        bag = bags.members
        if bag is None:
            missing = np.isnan(x)
            value = np.where(missing, 0.0, x).astype(x.dtype) if missing.any() else x
            own = (value != 0).astype(x.dtype) if bags.binary else value
            share = _entry_share(own, bags.scale)
            total: Any = np.bincount(row, share, n_rows)
        else:
            own = np.zeros_like(x)
            share = np.zeros(len(x))
            owner = np.repeat(np.arange(bag.shape[0]), np.diff(bag.indptr))
            total = np.bincount(owner, _entry_share(bag.data, bags.scale), bag.shape[0])
        rest = bags.divisor(total[row] - share)
        return cls(ptr, ids, x, own, rest.astype(x.dtype), bags.divisor(total), bag)

    @cached_property
    def seen(self) -> Any:
        """Index of the entries that are not missing; a slice, which copies nothing, if none is."""
        seen = ~np.isnan(self.x)
        return slice(None) if seen.all() else seen

    @property
    def row(self) -> Ints:
        """The row of each entry that is not missing."""
        return np.asarray(np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))[self.seen])

    def count_entities(self, n_entities: int) -> Ints:
        """Number of rows in which each entity occurs."""
        return np.asarray(np.bincount(self.ids[self.seen], minlength=n_entities))

    def block(self, rows: Ints, *, shares_bag: bool) -> RowBlock:
        ptr, where = gather_rows(self.ptr, rows)
        ids, x, rest = self.ids.take(where), self.x.take(where), self.rest.take(where)
        own = x if self.own is self.x else self.own.take(where)
        if shares_bag:
            bag_ptr, bag_ids, bag_values = ptr, ids, own
        else:
            bag_ptr, place = gather_rows(self.bag.indptr, rows)
            bag_ids, bag_values = self.bag.indices[place], self.bag.data[place].astype(x.dtype)
        total = self.total[rows].astype(x.dtype)
        return RowBlock(
            bag_ptr, bag_ids, bag_values, ptr, ids, x, own, total, rest, np.arange(len(rows))
        )


def _entry_share(value: Floats, scale: str) -> Floats:
    if scale == "items":
        return np.asarray(value != 0, dtype=np.float64)
    return value.astype(np.float64) if scale == "total" else np.zeros(len(value))


def _entries(data: Dataset, masked: Any) -> tuple[Floats, Ints, Ints]:
    """Values, columns and row pointer (CSR) of non-zero cells; masked and missing ones are NaN."""
    values = data.values
    if not data.is_sparse:
        return _dense_entries(values.reshape(data.n_rows, data.n_entities), masked)
    if masked is not None and masked.nnz:
        marks = make_csr(masked).astype(values.dtype)
        marks.data[:] = np.nan
        values = make_csr(values + marks)
        values.sort_indices()
    return values.data, values.indices, values.indptr


def _dense_entries(values: Floats, masked: Any) -> tuple[Floats, Ints, Ints]:
    """`_entries` of a dense array in NumPy alone, because a question is a dense row."""
    if masked is not None:
        values = np.where(masked.toarray().astype(bool), np.nan, values)
    row, ids = np.nonzero(values)
    ptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(values)))])
    index = np.int32 if max(len(ids), values.shape[1]) <= np.iinfo(np.int32).max else np.int64
    return values[row, ids], ids.astype(index), ptr.astype(index)


def _blocks_of_own(value: Floats) -> Any:
    """Each cell's own values as a row over the flattened columns: (cells, N * D)."""
    n_rows, n_entities, n_dims = value.shape
    columns = np.arange(n_entities * n_dims).reshape(n_entities, n_dims)
    ptr = np.arange(n_rows * n_entities + 1) * n_dims
    matrix = make_csr(
        (value.ravel().copy(), np.tile(columns.ravel(), n_rows), ptr),
        shape=(n_rows * n_entities, n_entities * n_dims),
    )
    matrix.eliminate_zeros()  # works in place, hence the copy
    return matrix


@dataclass(frozen=True)
class RowBlock:
    """Some rows as sparse arrays: their bags, and the stored entries to be predicted.

    An entry with x = NaN is masked: neither zero, target nor context.

    bag_ptr, bag_ids, bag_values : the bag of each row (CSR)
    ptr, ids, x : the stored entries of each row (CSR)
    own : context value that an entry removes from the bag (0: nothing)
    total : divisor of the whole bag of each row
    rest : divisor of the bag without the entry
    row : position of each row among the requested rows
    excluded : entity a row must not predict, or -1 (reverse conditional only)
    by_entity : the stored entries sorted by entity, if a solver needs them
    entry_weight : weight of each entry relative to that of its row, 1 by default
    """

    bag_ptr: Ints
    bag_ids: Ints
    bag_values: Floats
    ptr: Ints
    ids: Ints
    x: Floats
    own: Floats
    total: Floats
    rest: Floats
    row: Ints
    excluded: Ints | None = None
    by_entity: ByEntity | None = None
    entry_weight: Floats | None = None

    @cached_property
    def row_of_entry(self) -> Ints:
        """Row of each stored entry."""
        return np.repeat(np.arange(len(self.total)), np.diff(self.ptr))

    def with_zeros(self, row: Ints, ids: Ints, weight: Floats) -> RowBlock:
        """The same rows with further entries of value 0, which remove nothing from their bag.

        row, ids : their cells, which are not stored;  weight : relative to that of the row
        """
        owner = np.concatenate([self.row_of_entry, row])
        order = np.argsort(owner, kind="stable")
        nothing, n_stored = np.zeros(len(row), dtype=self.x.dtype), len(self.ids)
        pairs = {
            "ids": (self.ids, ids.astype(self.ids.dtype)),
            "x": (self.x, nothing),
            "own": (self.own, nothing),
            "rest": (self.rest, self.total[row]),
            "entry_weight": (np.ones(n_stored, dtype=self.x.dtype), weight.astype(self.x.dtype)),
        }
        arrays: dict[str, Any] = {
            name: np.concatenate(pair).take(order) for name, pair in pairs.items()
        }
        sizes = np.bincount(owner, minlength=len(self.total))
        ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(self.ptr.dtype)
        return replace(self, ptr=ptr, by_entity=None, **arrays)

    def bag_matrix(self, n_context: int) -> Any:
        """The rows' bags as a csr_array (rows, context vectors)."""
        arrays = (self.bag_values, self.bag_ids, self.bag_ptr)
        return make_csr(arrays, shape=(len(self.total), n_context))

    def bag_sums(self, bag: Floats, dtype: Any, n_context: int) -> Floats:
        """Sums of the context vectors in each row's bag, (rows, K)."""
        if len(self.total) == 1:  # a question, which needs no SciPy
            return np.asarray(self.bag_values.astype(dtype)[None] @ bag[self.bag_ids])
        return np.asarray(self.bag_matrix(n_context).astype(dtype) @ bag)

    def members_of(self, entity: int) -> tuple[Ints, Floats]:
        """Context of a cell of the only row: context vectors and their coefficients."""
        entry = np.flatnonzero(self.ids == entity)
        own, divisor = np.zeros(len(self.bag_ids)), self.total[0]
        if len(entry) and self.own[entry[0]] != 0:
            own[self.bag_ids == entity], divisor = self.own[entry[0]], self.rest[entry[0]]
        remaining = self.bag_values - own
        return self.bag_ids[remaining != 0].astype(np.int64), remaining[remaining != 0] / divisor

    @cached_property
    def members(self) -> Floats:
        """Number of members in the bag of each row, without masked or missing ones."""
        row = np.repeat(np.arange(len(self.total)), np.diff(self.bag_ptr))
        members = np.bincount(row, self.bag_values != 0, len(self.total))
        return np.asarray(members, np.float64)

    @cached_property
    def seen(self) -> Bools:
        """Mask of the entries that are observed and not masked."""
        return ~np.isnan(self.x)

    @cached_property
    def filled(self) -> Floats:
        """Values, 0 where masked."""
        return np.where(self.seen, self.x, 0).astype(self.x.dtype, copy=False)


@dataclass(frozen=True)
class ByEntity:
    """The stored entries of a block sorted by entity: those of n lie at edges[n]..edges[n + 1].

    order : their positions in the block;  row, x : their rows and values
    ratio : divisor of the whole bag / that without the entry;  share : own / the latter
    """

    block: RowBlock
    edges: Ints
    order: Ints

    @cached_property
    def row(self) -> Ints:
        return self.block.row_of_entry.take(self.order)

    @cached_property
    def x(self) -> Floats:
        return self.block.filled.take(self.order)

    @cached_property
    def own(self) -> Floats:
        return self.block.own.take(self.order)

    @cached_property
    def _rest(self) -> Floats:
        return self.block.rest.take(self.order)

    @cached_property
    def ratio(self) -> Floats:
        return np.asarray(self.block.total.take(self.row) / self._rest)

    @cached_property
    def share(self) -> Floats:
        return np.asarray(self.own / self._rest)


def reverse_block(block: RowBlock, scale: str) -> RowBlock:
    """One row for each positive entry: its bag is the entry, its targets the rest of the row."""
    giver = np.flatnonzero(block.own)
    row = block.row_of_entry[giver]
    sizes = np.diff(block.ptr)[row]
    ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(block.ptr.dtype)
    source = np.arange(ptr[-1]) - np.repeat(ptr[:-1] - block.ptr[row], sizes)
    x = block.x[source].copy()
    x[source == np.repeat(giver, sizes)] = np.nan
    value = block.own[giver]
    total = value if scale == "total" else np.ones_like(value)
    return RowBlock(
        bag_ptr=np.arange(len(giver) + 1, dtype=block.ptr.dtype),
        bag_ids=block.ids[giver],
        bag_values=value,
        ptr=ptr,
        ids=block.ids[source],
        x=x,
        own=np.zeros_like(x),
        total=total,
        rest=np.repeat(total, sizes),
        row=block.row[row],
        excluded=block.ids[giver],
    )


def reverse_terms(bags: RowBags, rows: Ints) -> Terms:
    """Terms for every other cell of the row given each positive entry."""
    if bags.members is not None or bags.n_dims > 1:
        raise ParameterError("combine='reverse' on rows needs Basket and scalar observations")
    x = dense_rows(bags.data, rows)[:, :, 0]
    hidden = np.isnan(x)
    if bags.masked is not None:
        hidden |= bags.masked[rows].toarray().astype(bool)
    observed = np.where(hidden, 0.0, x)
    value: Floats = (observed != 0).astype(np.float64) if bags.binary else observed
    row, giver = np.nonzero(value)
    amount = value[row, giver]
    n_entities = x.shape[1]
    pair = np.arange(len(row))
    scale = or_one(amount) if bags.scale == "total" else np.ones(len(row))
    keep = ~hidden[row]
    keep[pair, giver] = False
    terms = Terms(
        x=x[row].ravel(),
        row=np.repeat(row, n_entities),
        vector=np.tile(np.arange(n_entities), len(row)),
        entity=np.tile(np.arange(n_entities), len(row)),
        parts=(
            Bags(
                matrix=make_csr((amount, (pair, giver)), shape=(len(row), n_entities)),
                bag=np.repeat(pair, n_entities),
                scale=np.repeat(scale, n_entities),
            ),
        ),
    )
    return terms.take(keep.ravel())
