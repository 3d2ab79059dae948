"""Rows drawn from a fitted model: baskets of known households, at other prices or elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Floats
from efemb.data.array_checks import make_csr
from efemb.data.columns import CellTable
from efemb.data.dataset import Dataset
from efemb.errors import (
    DataError,
    InputTypeError,
    ParameterError,
    check_integer,
    check_number,
    suggest,
)
from efemb.fitted.docstrings import as_function_of
from efemb.fitted.embedding import FittedEmbedding
from efemb.fitted.group_models import WAY_OUT
from efemb.fitted.queries.shop_queries import ShopQueries
from efemb.fitted.query_context import number_of
from efemb.fitted.selection import Choice
from efemb.model.predictor import Predictor
from efemb.model.terms.base import RowSide
from efemb.simulation.gibbs import BLOCK_NUMBERS, RowSampler, UnitSampler, draw_by_inversion
from efemb.table import Table


@as_function_of(ShopQueries.simulate)
def simulate_rows(
    model: Any,
    rows: Any,
    *,
    sweeps: int = 8,
    row_size: float | None = None,
    seed: int = 0,
    progress: bool = False,
    **tables: Any,
) -> Dataset:
    """A model on baskets."""
    fitted: FittedEmbedding = model.fitted()
    check_integer("sweeps", sweeps)
    check_integer("seed", seed, 0)
    if row_size is not None:
        check_number("row_size", row_size, low=0)
    _check_model(fitted)
    data = _read_rows(model, fitted, rows)
    changed = read_tables(fitted, tables)
    scenario = data._replace(data.values, cells={**data.cells, **changed})
    draws = _Draws(fitted, data, scenario, changed, sweeps, row_size)
    size = max(256, BLOCK_NUMBERS // data.n_entities)
    blocks = []
    with progress_bar("simulate", data.n_rows, progress) as advance:
        for start in range(0, data.n_rows, size):
            stop = min(start + size, data.n_rows)
            blocks.append(draws.block(start, stop, np.random.default_rng([seed, start])))
            advance(stop - start)
    from scipy.sparse import vstack

    values = make_csr(vstack(blocks, format="csr"))
    report = {"sampler": "gibbs", "sweeps": sweeps, "seed": seed}
    return scenario._replace(values, entities=fitted.vocabulary, report=report)


@as_function_of(ShopQueries.compare_prices)
def compare_prices(
    model: Any,
    rows: Any,
    after: Any,
    before: Any = None,
    *,
    table: str = "price",
    draws: int = 4,
    seed: int = 0,
    progress: bool = False,
    **options: Any,
) -> Table:
    """A model with a `CellCovariate` of the table."""
    fitted: FittedEmbedding = model.fitted()
    check_integer("draws", draws)
    scenarios = read_tables(fitted, {table: after})[table], _table_of_fit(fitted, table, before)
    totals = {"after": _Totals(fitted), "before": _Totals(fitted)}
    change: Any = 0
    for turn in range(draws):
        settings: dict[str, Any] = {**options, "seed": seed + turn, "progress": progress}
        drawn = [simulate_rows(model, rows, **{**settings, table: each}) for each in scenarios]
        for name, data, prices in zip(totals, drawn, scenarios, strict=True):
            totals[name].add(data, prices)
        difference = drawn[0].values - drawn[1].values
        change = difference if turn == 0 else change + difference
    n_rows = change.shape[0]
    mean = np.asarray(change.sum(axis=0)).ravel() / draws
    square = np.asarray(change.multiply(change).sum(axis=0)).ravel() / draws**2
    error = np.sqrt(np.maximum(square - mean**2 / n_rows, 0.0))
    order = np.argsort(-np.abs(mean), kind="stable")
    columns = {
        "label": fitted.entities.labels,
        "units_before": totals["before"].units / draws,
        "units_after": totals["after"].units / draws,
        "change": mean,
        "standard_error": error,
        "revenue_before": totals["before"].revenue / draws,
        "revenue_after": totals["after"].revenue / draws,
    }
    return Table({name: np.asarray(values)[order] for name, values in columns.items()})


class _Totals:
    """Units and revenue of every item, summed over rows and draws."""

    def __init__(self, fitted: FittedEmbedding) -> None:
        self.units, self.revenue = np.zeros(fitted.n_entities), np.zeros(fitted.n_entities)

    def add(self, data: Dataset, prices: CellTable) -> None:
        """Add the units of some rows, at the prices of their groups."""
        sold = CellTable.total(data, by=prices.by)
        lines = prices.values[prices.codes(np.array(list(sold.groups), dtype=object))]
        lines = lines.toarray() if hasattr(lines, "toarray") else lines
        self.units += np.asarray(data.values.sum(axis=0)).ravel()
        self.revenue += (sold.values * np.nan_to_num(lines)).sum(axis=0)


def read_tables(fitted: FittedEmbedding, tables: Mapping[str, Any]) -> dict[str, CellTable]:
    """Tables of a scenario by name: as passed, or those of the fit with some changes."""
    terms = {name: term for term in fitted.spec.terms for name in term.tables}
    choice = Choice(fitted.entities)
    changed = {}
    for name, scenario in tables.items():
        if name not in terms:
            hint = suggest(name, terms) if terms else "its terms read no tables"
            raise InputTypeError(f"there is no parameter and no table {name!r} here; {hint}")
        table = scenario
        if isinstance(scenario, Mapping):
            codes = np.array([choice.code(item) for item in scenario], dtype=np.int64)
            numbers = np.array([number_of(item, value) for item, value in scenario.items()])
            table = terms[name].change_table(None, codes, numbers)
        if not isinstance(table, CellTable):
            raise InputTypeError(
                f"{name} must be a CellTable or map items to numbers, got {type(table).__name__}"
            )
        if table.n_entities != fitted.n_entities:
            raise DataError(
                f"the table {name!r} has {table.n_entities:,} items, the model "
                f"{fitted.n_entities:,}"
            )
        changed[name] = table
    return changed


def _table_of_fit(fitted: FittedEmbedding, name: str, table: Any) -> CellTable:
    """The table of the fit, unless another one is passed."""
    return read_tables(fitted, {name: {} if table is None else table})[name]


def _check_model(fitted: FittedEmbedding) -> None:
    spec = fitted.spec
    if not spec.context.rest_of_row or spec.combine.reverse or fitted.parameters.rho.ndim > 2:
        raise ParameterError("simulate draws rows of models of baskets (context='basket')")
    if spec.structure.grouped:
        raise ParameterError(f"simulate takes one embedding per entity: {WAY_OUT}")
    if not spec.family.support.integer:
        raise ParameterError(f"simulate draws counts, not data of the {spec.family.name()} family")
    spec.check_means()


def _read_rows(model: Any, fitted: FittedEmbedding, rows: Any) -> Dataset:
    """The rows to draw, with every column that terms read."""
    if isinstance(rows, Dataset):
        data: Dataset = model._read(rows)
        return data
    columns = dict(rows) if isinstance(rows, Mapping) else {}
    if not columns:
        check_integer("rows", rows)
    sizes = {len(column) for column in columns.values()} or {int(rows)}
    if len(sizes) > 1 or 0 in sizes:
        raise DataError(f"the columns of rows must be equally long, got lengths {sorted(sizes)}")
    (n_rows,) = sizes
    for name in (name for term in fitted.spec.terms for name in term.columns):
        columns.setdefault(name, np.full(n_rows, None))
    none = np.zeros(0, dtype=np.int64)
    empty = make_csr((np.zeros(0), (none, none)), shape=(n_rows, fitted.n_entities))
    return Dataset(empty, entities=fitted.vocabulary, rows=columns)


class _Draws:
    """Blocks of rows of one scenario."""

    def __init__(
        self,
        fitted: FittedEmbedding,
        data: Dataset,
        scenario: Dataset,
        changed: Mapping[str, CellTable],
        sweeps: int,
        row_size: float | None,
    ) -> None:
        self.fitted, self.data, self.sweeps, self.row_size = fitted, data, sweeps, row_size
        _, _, factors = fitted._bound(data)
        self.factors, self.predictor = factors, Predictor(factors.without_terms())
        pairs = [
            (term, term.bind(scenario if set(term.tables) & set(changed) else data))
            for term in fitted.spec.terms
        ]
        self.side = RowSide(tuple(pairs), data.n_entities)

    def block(self, start: int, stop: int, rng: np.random.Generator) -> Any:
        """Rows start..stop, as a csr matrix."""
        spec, factors = self.fitted.spec, self.factors
        added = self.side.add_up(factors.terms, np.arange(start, stop), factors.target)
        first = self.data.values[start:stop]
        first = np.asarray(first.toarray() if self.data.is_sparse else first, dtype=np.float64)
        if spec.family.softmax:
            units = UnitSampler(spec, self.predictor, added=added.T)
            sampler: Any = units
            x = units.fill(self._sizes(first, rng), factors.intercept, rng)
        else:
            sampler = RowSampler(spec, self.predictor, added.T, draw_by_inversion)
            x = np.ascontiguousarray(np.nan_to_num(first).T)
        for _ in range(self.sweeps):
            sampler.sweep(x, rng)
        return make_csr(np.ascontiguousarray(x.T))

    def _sizes(self, first: Floats, rng: np.random.Generator) -> Any:
        """Units of each row."""
        if self.row_size is not None:
            return 1 + rng.poisson(max(self.row_size - 1.0, 0.0), len(first))
        sizes = np.nan_to_num(first).sum(axis=1).astype(np.int64)
        if not sizes.any():
            raise ParameterError(
                "a categorical model knows what is bought, not how much: pass row_size=, the mean "
                "number of units of a row, or rows with values"
            )
        return sizes
