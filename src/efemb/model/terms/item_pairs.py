"""ItemPairs: what the other items of a row say of an item directly, pair by pair."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.data.array_checks import make_csr
from efemb.errors import DataError, InputTypeError, check_integer, check_number
from efemb.model.ingredient import positive_number
from efemb.model.priors import Prior
from efemb.model.terms.base import Arrays, BoundCells, CellTerm, TermArray, check_signed
from efemb.model.terms.cell_values import SparseRows, TableRows
from efemb.model.terms.row_units import mix_numbers, read_units
from efemb.model.terms.scaled_cells import ScaledCells

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

WAY_OUT = "pass sparse=True, which makes no array of N^2 numbers, or drop rare items"
LEAST_SHARE = 0.01  # of the ridge: rows that are all equal are in one half
SPARSE_WAY_OUT = "pass a smaller n_neighbors, or drop rare items"


class ItemPairs(CellTerm):
    r"""u_tn += c log(1 + s_tn / (kappa p_n)), s_tn = sum of B_mn over the other items m of row t.

    Pairs of items, in addition to the vectors. B are the weights of `efemb.baselines.EASE`, the
    regressions of every item on all others in closed form, of which the largest are kept; B_nn = 0:
    no item predicts itself. Items count as present or absent, so that no amount dominates, and the
    sum is not divided. The sum is an estimate of a probability, which the term compares with p_n,
    the share of the training rows that hold item n; sums below 0 count as 0.

    Parameters
    ----------
    penalty : float, default=100.0
        Ridge of the regressions, > 0; it acts like this many additional rows in which no item
        predicts another.
    dropout : float, default=0.0
        Probability, in [0, 1), of dropping an item from a row that predicts.
    n_neighbors : int, default=100
        Weights that are kept for each item, those of largest magnitude.
    sparse : bool, optional
        Regress each item on the `n_neighbors` items that it occurs with most often only, with
        weights >= 0, as in SLIM: for many items. By default so with more than 20,000 items; False
        makes an array of N^2 numbers, or raises if that does not fit into memory.
    kappa : float, default=5.0
        What p_n is multiplied by, > 0. The larger, the less do small sums matter.
    prior : Prior or str, default="normal"
        Prior of the coefficient c, which starts at 1.
    pairs : mapping of str to array, optional
        The weights and the training rows, as a fit stores them in its model.

    Notes
    -----
    The coefficient must not be learned on rows that B has seen. The training rows are divided in
    halves by their items, and each half is predicted by a B that was fitted to the other one; all
    other rows by the B of all training rows. A row is recognized as a training row by its items;
    rows of one item contain no pair, and are predicted by the B of all rows. Three sets of
    weights are stored with the model.

    Examples
    --------
    >>> import efemb
    >>> trips = efemb.Dataset([[1, 1, 0], [2, 1, 0], [0, 0, 1], [1, 3, 1]])
    >>> term = ItemPairs(penalty=1.0, n_neighbors=2).freeze(trips)
    >>> basket = term.bind(efemb.Dataset([[4, 0, 0]]))
    >>> cells = basket.cells({"coefficient": np.ones(1)}, np.array([0])).products
    >>> cells.ids.tolist(), cells.values.round(2).tolist()
    ([1, 2], [0.18, 0.06])
    """

    reads_items = True
    from_fit = ("pairs",)

    def __init__(
        self,
        penalty: float = 100.0,
        dropout: float = 0.0,
        n_neighbors: int = 100,
        sparse: bool | None = None,
        kappa: float = 5.0,
        prior: Any = "normal",
        pairs: Mapping[str, Any] | None = None,
    ) -> None:
        self.penalty = penalty
        self.dropout = dropout
        self.n_neighbors = n_neighbors
        self.sparse = sparse
        self.kappa = kappa
        self.prior = prior
        self.pairs = pairs

    @property
    def label(self) -> str:
        """Item pairs."""
        return "item pairs"

    @property
    def columns(self) -> tuple[str, ...]:
        """None: the items of the row are all it reads."""
        return ()

    def check(self) -> None:
        """The options of the regressions, and a prior of signed numbers."""
        positive_number(self, "penalty")
        positive_number(self, "kappa")
        check_number("dropout", self.dropout, low=0, below=1)
        check_integer("ItemPairs.n_neighbors", self.n_neighbors)
        if self.sparse is not None and not isinstance(self.sparse, bool | np.bool_):
            raise InputTypeError(
                f"ItemPairs.sparse must be True, False or None, got {self.sparse!r}"
            )
        check_signed(self, Prior.resolve(self.prior))

    def freeze(self, data: Dataset) -> ItemPairs:
        """The weights of all training rows and of each half, and the training rows by number."""
        if self.pairs is not None:
            return self
        n = data.n_entities
        items = _read_items(self, data, n)
        number = _number_rows(items)
        several = np.diff(items.ptr) >= 2
        if not several.any():
            raise DataError(
                "no training row has two items, so there are no pairs to learn from: leave "
                "ItemPairs out"
            )
        present: Any = make_csr((items.values, items.ids, items.ptr), shape=(data.n_rows, n))
        half = np.where(several, _halves(number), -1)  # rows of one item teach no pair
        fitted = [
            self._fit_weights(present[chosen], max(float(chosen.mean()), LEAST_SHARE))
            for chosen in (half < 2, half != 0, half != 1)
        ]
        ends = np.cumsum([0, *(len(weights.ids) for weights in fitted)])
        ptr = [weights.ptr[1:] + end for weights, end in zip(fitted, ends[:-1], strict=True)]
        pairs = {
            "n_entities": n,
            "ptr": np.concatenate([np.zeros(1, np.int64), *ptr]),
            "ids": np.concatenate([weights.ids for weights in fitted]),
            "weights": np.concatenate([weights.values for weights in fitted]),
            "shares": np.maximum(np.bincount(items.ids, minlength=n), 0.5) / data.n_rows,
            "rows": np.unique(number[several]),
        }
        return type(self)(**{**self.get_params(deep=False), "pairs": pairs})

    def _fit_weights(self, present: Any, share: float) -> SparseRows:
        """B of a share of the rows: line m has the weights of item m for others.

        The ridge is the same share of that of all rows. Otherwise weights of fewer rows would be
        smaller, and the coefficient that is learned with them too large for those of all rows.
        """
        from efemb.model import item_regressions as regressions  # SciPy: for fits only

        n, size = present.shape[1], int(self.n_neighbors)
        penalty, dropout = float(self.penalty) * share, float(self.dropout)
        if self.sparse or (self.sparse is None and n > regressions.MOST_DENSE):
            need = regressions.sparse_size(present, size)
            regressions.check_memory(need, "ItemPairs", n, SPARSE_WAY_OUT)
            weights = regressions.sparse_ridge_weights(present, penalty, size, dropout)
        else:
            regressions.check_memory(regressions.dense_size(n), "ItemPairs", n, WAY_OUT)
            dense = regressions.ridge_weights(present, penalty, dropout, fast=True)
            weights = regressions.keep_strongest(dense, size)
        weights.sort_indices()
        return SparseRows(
            weights.indptr.astype(np.int64), weights.indices.astype(np.int32), weights.data
        )

    def arrays(self, n_entities: int) -> tuple[TermArray, ...]:
        """One coefficient."""
        return (TermArray("coefficient", (1,), Prior.resolve(self.prior), 0.0, 1.0),)

    @cached_property
    def _lines(self) -> SparseRows:
        """B of all training rows, then those that have not seen the first and second half."""
        assert self.pairs is not None
        return SparseRows(self.pairs["ptr"], self.pairs["ids"], self.pairs["weights"])

    def bind(self, data: Dataset) -> BoundCells:
        """The items of the rows, as lines of the B that has not seen the row."""
        assert self.pairs is not None
        n = self.pairs["n_entities"]
        items = _read_items(self, data, n)
        number = _number_rows(items)
        seen = (np.diff(items.ptr) >= 2) & np.isin(number, self.pairs["rows"])
        which = np.where(seen, 1 + _halves(number), 0)
        line = items.ids + n * which[items.row]
        return _PairsOfRows(self, SparseRows(items.ptr, line, items.values))


class _PairsOfRows(ScaledCells):
    """Sums of lines of B; lines : those of the items of each row."""

    def __init__(self, term: ItemPairs, lines: SparseRows) -> None:
        assert term.pairs is not None
        self.term, self.lines, self.n_entities = term, lines, term.pairs["n_entities"]
        self.weights = term._lines

    def without(self, masked: Any) -> _PairsOfRows:
        """The lines of the other items; which B has not seen a row is known by all of them."""
        lines, unknown = self.lines, SparseRows(masked.indptr, masked.indices, masked.data)
        known = unknown.at(lines.row, lines.ids % self.n_entities) == 0
        return type(self)(self.term, _keep(lines, known))

    def weighed(self, rows: Ints) -> TableRows:
        """Predictions by all items of each row."""
        return self._weigh(self.lines.take(rows))

    def weighed_without(self, rows: Ints, left_out: Ints) -> TableRows:
        """Predictions by all items of each row except one."""
        lines = self.lines.take(rows)
        return self._weigh(_keep(lines, lines.ids % self.n_entities != left_out[lines.row]))

    def _weigh(self, lines: SparseRows) -> TableRows:
        """log(1 + s / (kappa p)) of rows, by the lines of B of their items."""
        assert self.term.pairs is not None
        sums = self.weights.sum_rows(lines)
        usual = self.term.kappa * self.term.pairs["shares"][sums.ids]
        logs = np.log1p(np.maximum(sums.values, 0.0) / usual).astype(np.float32)
        return TableRows.of(SparseRows(sums.ptr, sums.ids, logs))

    def split_by_item(self, arrays: Arrays, row: int, entity: int) -> dict[int, float]:
        """The contribution of the term, divided among items m of the row in proportion to B_mn."""
        rows = np.array([row])
        line = self.lines.take(rows).ids
        each = self.weights.take(line)
        for_entity = np.flatnonzero(each.ids == entity)
        codes = line[each.row[for_entity]] % self.n_entities
        pairs: Floats = each.values[for_entity].astype(np.float64)
        added = float(self.cells(arrays, rows).at(np.zeros(1, np.int64), np.array([entity]))[0])
        total = float(pairs.sum())
        shares = pairs * (added / total if total > 0.0 else 0.0)
        return dict(zip(codes.tolist(), shares.tolist(), strict=True))


def _read_items(term: ItemPairs, data: Dataset, n_entities: int) -> SparseRows:
    """The items of the rows with value 1; those that the term does not know are left out."""
    units = read_units(term, data, n_entities)
    units = _keep(units, units.values > 0)
    ones = np.ones(len(units.ids), dtype=np.float32)
    return SparseRows(units.ptr, units.ids.astype(np.int64), ones)


def _keep(rows: SparseRows, chosen: Bools) -> SparseRows:
    """Some of the cells."""
    ptr = np.concatenate([[0], np.cumsum(chosen)])[rows.ptr]
    return SparseRows(ptr, rows.ids[chosen], rows.values[chosen])


def _number_rows(items: SparseRows) -> Ints:
    """A number for the set of items of each row."""
    each = mix_numbers(items.ids + 1, items.ids)  # not 0 for any item: zeros mix to 0
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(each)])
    return np.asarray(sums[items.ptr[1:]] - sums[items.ptr[:-1]])


def _halves(number: Ints) -> Ints:
    """0 or 1: rows with the same items are in the same half."""
    return mix_numbers(number, number) & 1
