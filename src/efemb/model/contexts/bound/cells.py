"""CellLists: a separate list of members for each observation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from efemb._typing import Floats, Ints
from efemb.data.array_checks import make_csr
from efemb.errors import ParameterError
from efemb.model.contexts.base import BoundContext, check_scale, dense_rows, gather_rows, or_one
from efemb.model.contexts.bound.entities import Lists
from efemb.model.contexts.bound.member_lists import checked_lists
from efemb.model.contexts.bound.terms import Bags, Terms, with_components

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


class CellLists(BoundContext):
    """Members of cell (t, n) are the cells `indices[indptr[c]:indptr[c + 1]]`, c = t N + n.

    indptr : (T N + 1,);  indices : integers in 0 ... T N - 1, none of a cell itself
    """

    def __init__(
        self, data: Dataset, indptr: Ints, indices: Ints, *, scale: str, binary: bool
    ) -> None:
        self.data, self.scale, self.binary = data, scale, binary
        self.n_rows, self.n_entities, self.n_dims = data.n_rows, data.n_entities, data.n_dims
        n_cells = data.n_rows * data.n_entities
        self.indptr, self.indices = checked_lists(
            indptr,
            indices,
            n_cells,
            names=("indptr", "indices"),
            one="cell",
            size="rows x entities",
        )
        none = np.zeros(len(self.indices), dtype=np.int64)
        self.cell_lists = Lists(self.indptr, self.indices, none, none, scale, binary)
        check_scale(data, scale)

    def terms(self, rows: Ints, *, reverse: bool = False, missing: bool = False) -> Terms:
        """A term for every observed cell of the rows."""
        if reverse:
            raise ParameterError("combine='reverse' takes Basket, Neighbors, Graph or Lagged")
        x = dense_rows(self.data, rows)
        n_rows, n_entities, n_dims = x.shape
        cells = (rows[:, None] * n_entities + np.arange(n_entities)).ravel()
        ptr, where = gather_rows(self.indptr, cells)
        row, member = np.divmod(self.indices[where], n_entities)
        distinct, inverse = np.unique(row, return_inverse=True)
        values = dense_rows(self.data, distinct)[inverse, member]
        observed = np.asarray(~np.isnan(values).any(axis=1))
        values = np.where(observed[:, None], values, 0.0)
        if self.binary:
            values = (values != 0).astype(np.float64)
        matrix = make_csr(
            (values.ravel(), with_components(member, n_dims), ptr * n_dims),
            shape=(len(cells), n_entities * n_dims),
        )
        scale: Floats = np.ones(len(cells))
        if self.scale != "none":
            share = observed.astype(np.float64) if self.scale == "items" else values.sum(axis=1)
            owner = np.repeat(np.arange(len(cells)), np.diff(ptr))
            scale = or_one(np.asarray(np.bincount(owner, share, len(cells)), np.float64))
        bag = np.repeat(np.arange(len(cells)), n_dims)
        entity = np.tile(np.arange(n_entities * n_dims), n_rows)
        row_of = np.repeat(np.arange(n_rows), n_entities * n_dims)
        bags = (Bags(matrix, bag, np.repeat(scale, n_dims)),)
        terms = Terms(x.ravel(), row_of, entity, entity, bags)
        return terms if missing else terms.take(~np.isnan(terms.x))

    def cost_of_row(self) -> int:
        """Average number of members of a row."""
        return (len(self.indices) // self.n_rows + self.n_entities) * self.n_dims
