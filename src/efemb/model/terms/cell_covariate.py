"""CellCovariate: a number of each entity in each group of rows, such as its price of the week."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.data.array_checks import is_sparse
from efemb.data.columns import CellTable, distinct_labels, label_codes
from efemb.errors import DataError, check_name
from efemb.model.ingredient import flag, row_column
from efemb.model.priors import Normal, Prior
from efemb.model.terms.base import Arrays, BoundCells, TermArray, check_signed
from efemb.model.terms.cell_table import (
    RowsOfTable,
    TableTerm,
    cell_table,
    change_columns,
    find_table,
    store_table,
)
from efemb.model.terms.cell_values import CellValues

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

ROUNDING = 1e-9
COMMON = Normal(0.01)  # of the response of all entities: it is learned from all of the data


class CellCovariate(TableTerm):
    """u_tn += c_n z_tn: entities respond to a number of their own, such as their price.

    c_n = common + category + entity: the response of all entities, and how its category and the
    entity itself differ from it. z is centered for each entity, so that only variation within an
    entity counts; where z is the logarithm of a price, c_n is the price elasticity.

    Parameters
    ----------
    table : str
        Name of a cell table of the data, ``Dataset(cells={"price": CellTable(...)})``. Dense
        tables are centered, missing values count as the mean of the entity. Sparse tables, such as
        promotions, are used as they are.
    by : str, optional
        Entity feature (``Dataset(features={...})``) that names the category of each entity.
    log : bool, default=False
        Take logarithms of the table, whose values must be positive, as for prices.
    prior : Prior or str, optional
        Prior of the differences of categories and entities; by default ``Normal(10)``.
    frozen : mapping, optional
        Table, centers and categories of the training data, as a fit stores them in its model.

    Examples
    --------
    >>> import efemb
    >>> rng = np.random.default_rng(0)
    >>> week = np.repeat(np.arange(20), 30)
    >>> prices = np.exp(rng.normal(0.0, 0.3, (20, 3)))
    >>> trips = efemb.Dataset(
    ...     rng.poisson(prices[week] ** -2.0),
    ...     rows={"week": week},
    ...     cells={"price": efemb.data.CellTable(prices, by="week", groups=range(20))},
    ... )
    >>> terms = [CellCovariate("price", log=True)]
    >>> model = efemb.PoissonEmbedding(1, terms=terms, random_state=0).fit(trips)
    >>> bool((model.elasticity()["elasticity"] < -1.0).all())
    True
    """

    from_fit = ("frozen",)

    def __init__(
        self,
        table: str,
        by: str | None = None,
        log: bool = False,
        prior: Any = None,
        frozen: Mapping[str, Any] | None = None,
    ) -> None:
        self.table = table
        self.by = by
        self.log = log
        self.prior = prior
        self.frozen = frozen

    def change_table(
        self, row: Mapping[str, Any] | None, codes: Ints, numbers: Floats
    ) -> CellTable:
        """The table with changes; of logarithms numbers are factors, else new values."""
        assert self.frozen is not None
        if not self.log:
            return super().change_table(row, codes, numbers)
        if not (numbers > 0).all():
            raise DataError(
                f"{self.table} is multiplied by positive factors, got {numbers.min():g}"
            )
        usual = np.exp(self.frozen["center"])  # missing prices count as the mean of the item
        return change_columns(self.frozen, self.table, row, codes, numbers, usual)

    def check(self) -> None:
        """Names are text, the prior is one of signed numbers."""
        check_name("CellCovariate.table", self.table)
        if self.by is not None:
            check_name("CellCovariate.by", self.by)
        flag("CellCovariate.log", self.log)
        check_signed(self, self._prior)

    @property
    def _prior(self) -> Prior:
        return Normal(10.0) if self.prior is None else Prior.resolve(self.prior)

    def freeze(self, data: Dataset) -> CellCovariate:
        """The table of the training data, the centers of its columns, and the categories."""
        if self.frozen is not None:
            return self
        table = cell_table(data, self.table, self)
        values = self._transform(table)
        frozen: dict[str, Any] = store_table(table)
        frozen["center"] = self._centers(values, table.codes(data.rows[table.by]))
        frozen["categories"], frozen["category"] = self._categories(data)
        return type(self)(self.table, self.by, self.log, self.prior, frozen)

    def _transform(self, table: CellTable) -> Any:
        """The table, or its logarithms."""
        if not self.log:
            return table.values
        values = table.values
        if is_sparse(values):
            raise DataError(
                f"{self!r} takes logarithms, but the table is sparse, and what it does not store "
                "is 0: pass a dense table, or log=False"
            )
        group, entity = np.nonzero(values <= 0)
        if len(group):
            raise DataError(
                f"{self!r} takes logarithms of positive numbers, but the table has "
                f"{values[group[0], entity[0]]:g} in {table.by} {list(table.groups)[group[0]]!r}, "
                f"entity {entity[0]} ({len(group):,} such values): correct them, or set them to "
                "NaN"
            )
        return np.log(values)

    def _centers(self, values: Any, code: Ints) -> Floats:
        """Mean of each entity over the training rows whose value is known."""
        if is_sparse(values):
            return np.zeros(values.shape[1])
        weight = np.bincount(code[code >= 0], minlength=len(values)).astype(np.float64)
        known = np.isfinite(values)
        total = weight @ known
        center = (weight @ np.nan_to_num(values)) / np.maximum(total, 1.0)
        spread = np.abs(np.where(known, values - center, 0.0)) > ROUNDING * (1.0 + np.abs(center))
        if not np.any(spread[weight > 0]):
            raise DataError(
                f"the cell table {self.table!r} does not vary within any entity (or has no value "
                "for the training rows), so nothing can be learned from it: leave the term out"
            )
        return np.asarray(center)

    def _categories(self, data: Dataset) -> tuple[list[Any], Ints]:
        """Labels of the categories, and the category of each entity, -1 for none."""
        if self.by is None:
            return [], np.full(data.n_entities, -1, dtype=np.int64)
        if self.by not in data.features:
            known = ", ".join(map(repr, data.features)) or "none"
            raise DataError(
                f"{self!r} needs the entity feature {self.by!r}, which the data lack (features: "
                f"{known}): pass Dataset(values, features={{{self.by!r}: ...}})"
            )
        labels = data.features[self.by].tolist()
        named = distinct_labels(labels)
        return named, label_codes(labels, named)

    def arrays(self, n_entities: int) -> tuple[TermArray, ...]:
        """The response of all entities, and the differences of categories and entities."""
        assert self.frozen is not None
        arrays = [TermArray("common", (1,), COMMON, 0.0)]
        if self.by is not None:
            shape = (len(self.frozen["categories"]),)
            arrays.append(TermArray("categories", shape, self._prior, 0.0))
        return (*arrays, TermArray("entities", (n_entities,), self._prior, 0.0))

    def coefficients(self, arrays: Arrays) -> Floats:
        """c of every entity, (N,)."""
        coefficients = arrays["entities"] + arrays["common"]
        if self.by is not None:
            category = self._category(len(coefficients))
            known = category >= 0
            coefficients[known] += arrays["categories"][category[known]]
        return np.asarray(coefficients)

    def collect(self, arrays: Arrays, gradient: Floats) -> dict[str, Floats]:
        """Gradients of the arrays from that of `coefficients`: its transpose."""
        common = np.array([gradient.sum()], dtype=gradient.dtype)
        collected = {"common": common, "entities": gradient}
        if self.by is not None:
            category = self._category(len(gradient))
            known, size = category >= 0, len(arrays["categories"])
            total = np.bincount(category[known], gradient[known], size)
            collected["categories"] = np.asarray(total, dtype=gradient.dtype)
        return collected

    def _category(self, n_entities: int) -> Ints:
        """Category of every entity; new ones have none."""
        assert self.frozen is not None
        new = n_entities - len(self.frozen["category"])
        return np.concatenate([self.frozen["category"], np.full(new, -1, dtype=np.int64)])

    def bind(self, data: Dataset) -> BoundCells:
        """Centered values of the groups of rows, 0 where missing."""
        assert self.frozen is not None
        table = find_table(data, self.table, self.frozen, self)
        code = table.codes(row_column(data, table.by, self))
        return _Response(self, RowsOfTable(self.centered(table, data.n_entities), code))

    def centered(self, table: CellTable, n_entities: int) -> Any:
        """z of the groups of a table; new entities have the values of their own as center."""
        assert self.frozen is not None
        values, center = self._transform(table), self.frozen["center"]
        if is_sparse(values):
            return values
        if values.shape[1] < n_entities:  # stored with the model, before entities were added
            gap = np.full((len(values), n_entities - values.shape[1]), np.nan)
            values = np.concatenate([values, gap], axis=1)
        new = values[:, len(center) :]
        known = np.isfinite(new)
        own = np.nan_to_num(new).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        return np.nan_to_num(values - np.concatenate([center, own]))


class _Response(BoundCells):
    """Coefficients times the values of the groups."""

    def __init__(self, term: CellCovariate, rows: RowsOfTable) -> None:
        self.term, self.rows = term, rows

    def cells(self, arrays: Arrays, rows: Ints) -> CellValues:
        """c_n z_tn."""
        return self.rows.offsets(rows, self.term.coefficients(arrays))

    def pull_back_cells(self, arrays: Arrays, rows: Ints, gradient: Floats) -> dict[str, Floats]:
        """Gradients of the coefficients, then of their summands."""
        size = len(arrays["entities"])
        return self.term.collect(arrays, self.rows.collect(rows, gradient, size))
