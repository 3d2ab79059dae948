"""ItemPairs: what the other items of a row say of an item directly, pair by pair."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.data.array_checks import make_csr
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.model.ingredient import positive_number
from efemb.model.priors import Prior
from efemb.model.terms.base import Arrays, BoundCells, CellTerm, ScaledCells, TermArray
from efemb.model.terms.cell_values import SparseRows
from efemb.model.terms.row_units import mix_numbers, read_units

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

WAY_OUT = "pass sparse=True, which makes no array of N^2 numbers, or drop rare items"
SPARSE_WAY_OUT = "pass a smaller n_neighbors, or drop rare items"


class ItemPairs(CellTerm):
    r"""u_tn += c sum over the other items m of row t of B_mn: pairs of items beside the vectors.

    B are the weights of `efemb.baselines.EASE`, the regressions of every item on all others in
    closed form, of which the largest are kept. Items count as present or absent, so that no
    amount dominates, and the sum is not divided. B_nn = 0: no item predicts itself.

    Parameters
    ----------
    penalty : float
        Ridge of the regressions, > 0; it acts like this many additional rows in which no item
        predicts another.
    dropout : float
        Probability, in [0, 1), of dropping an item from a row that predicts.
    n_neighbors : int
        Weights that are kept for each item, those of largest magnitude.
    sparse : bool, optional
        Regress each item on the `n_neighbors` items that it occurs with most often only, with
        weights >= 0, as in SLIM: for many items. By default so with more than 20,000 items; False
        makes an array of N^2 numbers, or raises if that does not fit into memory.
    prior : Prior or str
        Of the coefficient c, which starts at 1.
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
    >>> cells = basket.cells({"coefficient": np.ones(1)}, np.array([0]))
    >>> cells.ids.tolist(), cells.values.round(2).tolist()
    ([1, 2], [0.73, 0.14])
    """

    def __init__(
        self,
        penalty: float = 100.0,
        dropout: float = 0.0,
        n_neighbors: int = 100,
        sparse: bool | None = None,
        prior: Any = "normal",
        pairs: Mapping[str, Any] | None = None,
    ) -> None:
        self.penalty = penalty
        self.dropout = dropout
        self.n_neighbors = n_neighbors
        self.sparse = sparse
        self.prior = prior
        self.pairs = pairs

    def __repr__(self) -> str:
        """Without the weights, of which there are many."""
        options = f"penalty={self.penalty!r}, dropout={self.dropout!r}"
        return f"ItemPairs({options}, n_neighbors={self.n_neighbors!r})"

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
        from efemb.model.item_regressions import check_dropout

        positive_number(self, "penalty")
        check_dropout(self.dropout)
        size: Any = self.n_neighbors
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise ParameterError(f"ItemPairs.n_neighbors must be an integer >= 1, got {size!r}")
        if self.sparse is not None and not isinstance(self.sparse, bool | np.bool_):
            raise InputTypeError(
                f"ItemPairs.sparse must be True, False or None, got {self.sparse!r}"
            )
        prior = Prior.resolve(self.prior)
        prior.check()
        if prior.positive:
            raise ParameterError(f"ItemPairs takes a prior of signed numbers, got {prior!r}")

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
            self._fit_weights(present[rows])
            for rows in (slice(None), np.flatnonzero(half != 0), np.flatnonzero(half != 1))
        ]
        ends = np.cumsum([0, *(len(weights.ids) for weights in fitted)])
        ptr = [weights.ptr[1:] + end for weights, end in zip(fitted, ends[:-1], strict=True)]
        pairs = {
            "n_entities": n,
            "ptr": np.concatenate([np.zeros(1, np.int64), *ptr]),
            "ids": np.concatenate([weights.ids for weights in fitted]),
            "weights": np.concatenate([weights.values for weights in fitted]),
            "rows": np.unique(number[several]),
        }
        return type(self)(**{**self.get_params(deep=False), "pairs": pairs})

    def _fit_weights(self, present: Any) -> SparseRows:
        """B of some rows: line m has the weights of item m for others."""
        from efemb.model import item_regressions as regressions  # SciPy: for fits only

        n, size = present.shape[1], int(self.n_neighbors)
        penalty, dropout = float(self.penalty), float(self.dropout)
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
        super().__init__()
        assert term.pairs is not None
        self.term, self.lines, self.n_entities = term, lines, term.pairs["n_entities"]
        self.weights = term._lines

    def without(self, masked: Any) -> _PairsOfRows:
        """The lines of the other items; which B has not seen a row is known by all of them."""
        lines, unknown = self.lines, SparseRows(masked.indptr, masked.indices, masked.data)
        rest = unknown.at(lines.row, lines.ids % self.n_entities) == 0
        ptr = np.concatenate([[0], np.cumsum(rest)])[lines.ptr]
        return _PairsOfRows(self.term, SparseRows(ptr, lines.ids[rest], lines.values[rest]))

    def weighed(self, rows: Ints) -> SparseRows:
        """Sum of B_mn over the items m of each row."""
        return self.weights.sum_rows(self.lines.take(rows))

    def split_by_item(self, arrays: Arrays, row: int, entity: int) -> dict[int, float]:
        """c B_mn of each item m of the row that has a weight for the entity."""
        line = self.lines.take(np.array([row])).ids
        each = self.weights.take(line)
        for_entity = np.flatnonzero(each.ids == entity)
        codes = line[each.row[for_entity]] % self.n_entities
        shares: Floats = each.values[for_entity] * arrays["coefficient"][0]
        return dict(zip(codes.tolist(), shares.tolist(), strict=True))


def _read_items(term: ItemPairs, data: Dataset, n_entities: int) -> SparseRows:
    """The items of the rows with value 1; those that the term does not know are left out."""
    units = read_units(term, data, n_entities)
    present = units.values > 0
    ptr = np.concatenate([[0], np.cumsum(present)])[units.ptr]
    ids = units.ids[present].astype(np.int64)
    return SparseRows(ptr, ids, np.ones(len(ids), dtype=np.float32))


def _number_rows(items: SparseRows) -> Ints:
    """A number for the set of items of each row."""
    each = mix_numbers(items.ids + 1, items.ids)  # not 0 for any item: zeros mix to 0
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(each)])
    return np.asarray(sums[items.ptr[1:]] - sums[items.ptr[:-1]])


def _halves(number: Ints) -> Ints:
    """0 or 1: rows with the same items are in the same half."""
    return mix_numbers(number, number) & 1
