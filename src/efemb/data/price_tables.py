"""Prices: tables of prices by item and week from lines of transactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from efemb._typing import Floats, Ints
from efemb.data.columns import CellTable, distinct_labels, label_codes
from efemb.data.dataset import Dataset
from efemb.data.vocabulary import Vocabulary, sorted_order
from efemb.errors import DataError, InputTypeError, ParameterError, suggest


@dataclass(frozen=True, repr=False)
class Prices:
    """Prices by group of rows (week) and item, without gaps; see `prices`.

    Attributes
    ----------
    paid : CellTable
        Price paid per unit; the regular price in cells without sales.
    regular : CellTable
        The price before discounts; in cells without sales, that of the last earlier week in which
        the item was sold, or of the first later week.
    log_ratio : CellTable
        log(paid / regular): 0 without a discount.
    report : dict
        Numbers of observed and filled cells, of items without any price, and of dropped lines.
    """

    paid: CellTable
    regular: CellTable
    log_ratio: CellTable
    report: dict[str, Any]

    def __repr__(self) -> str:
        table, report = self.paid, self.report
        return (
            f"Prices({len(table.groups):,} groups by {table.by!r} x {table.n_entities:,} items, "
            f"{report['filled']:,} of {report['observed'] + report['filled']:,} filled)"
        )


def prices(
    lines: Any,
    *,
    value: str,
    by: str,
    item: str = "item",
    count: str | None = None,
    discount: str | None = None,
    entities: Dataset | Vocabulary | Iterable[object] | None = None,
    on_bad: Literal["error", "drop"] = "error",
) -> Prices:
    """Tables of prices by item and week, from the lines of transactions.

    A price is observed only when something is sold. A week without sales gets the regular price,
    not the mean price paid in other weeks, which would be too low.

    Parameters
    ----------
    lines : table or mapping of str to array
        A pandas, polars or pyarrow table with a row for each line of a basket.
    value : str
        Column of the amount paid for the line, after discounts.
    by : str
        Column of the week (or store, or day) of the line, a row column of the data.
    item : str, default="item"
        Column of the item.
    count : str, optional
        Column of the units of the line; by default 1.
    discount : str, optional
        Column of the discount of the line, as a positive number; a missing one is none. Without
        the column, the regular price is the price that was paid.
    entities : Dataset, Vocabulary or sequence of labels, optional
        Items of the tables, in their order: those of the data that the tables are for. By default
        all items of the lines. Lines of other items are dropped and counted.
    on_bad : {"error", "drop"}, default="error"
        What to do with lines without a positive number of units, a positive and finite price or
        a week, or with a negative discount: raise an error, or drop and count them.

    Returns
    -------
    Prices
        `paid`, `regular` and `log_ratio` are tables for ``Dataset(cells={...})``. Items without
        any price are missing (NaN) in all of them, and counted in `report`.

    Examples
    --------
    >>> lines = {
    ...     "item": ["milk", "milk", "tea", "milk"],
    ...     "week": [1, 2, 2, 4],
    ...     "paid": [1.0, 1.6, 3.0, 1.2],
    ...     "units": [1, 2, 1, 1],
    ...     "off": [0.0, 0.4, 0.0, 0.0],
    ... }
    >>> table = prices(lines, value="paid", count="units", discount="off", by="week")
    >>> table
    Prices(3 groups by 'week' x 2 items, 2 of 6 filled)
    >>> table.paid.values.tolist()
    [[1.0, 3.0], [0.8, 3.0], [1.2, 3.0]]
    """
    if on_bad not in ("error", "drop"):
        raise ParameterError(f"on_bad must be 'error' or 'drop', got {on_bad!r}")
    named = {"value": value, "by": by, "item": item, "count": count, "discount": discount}
    columns = _columns(lines, {role: name for role, name in named.items() if name is not None})
    labels = _entities(entities, columns["item"])
    groups = _sorted_labels(columns["by"], by)
    numbers = {
        role: _numbers(columns[role], name)
        for role, name in named.items()
        if role in ("value", "count", "discount") and name is not None
    }
    paid, units = numbers["value"], numbers.get("count", np.ones(len(columns["item"])))
    off = numbers.get("discount", np.zeros(len(units)))
    off = np.where(np.isnan(off), 0.0, off)
    code = label_codes(columns["item"], labels)
    group = label_codes(columns["by"], groups)
    priced = (units > 0) & (paid > 0) & np.isfinite(units + paid) & (group >= 0)
    good = priced & (off >= 0) & np.isfinite(off)
    if on_bad == "error" and not good.all():
        i = int(np.flatnonzero(~good)[0])
        problem = f"{value}={paid[i]:g} for {units[i]:g} units in {by} {columns['by'][i]!r}"
        rule = f"a price must be positive and its {by} known"
        if priced[i]:
            problem, rule = f"{discount}={off[i]:g}", "a discount must be a positive number or 0"
        raise _bad_lines(i, problem, rule, int((~good).sum()))
    valid = good & (code >= 0)
    shape = (len(groups), len(labels))
    cells = (group[valid], code[valid])
    sums = [_sum(cells, numbers_of[valid], shape) for numbers_of in (units, paid, paid + off)]
    if not sums[0].any():
        raise DataError("no line has a price of one of the items: check item= and entities=")
    report = {"dropped": int((~good).sum()), "unknown_items": int((good & (code < 0)).sum())}
    return _fill(*sums, by=by, groups=groups, report=report)


def _bad_lines(first: int, problem: str, rule: str, n: int) -> DataError:
    return DataError(
        f"line {first} has {problem}: {rule} ({n:,} bad lines); correct them, or pass on_bad='drop'"
    )


def _fill(
    units: Floats,
    paid: Floats,
    full: Floats,
    *,
    by: str,
    groups: Vocabulary,
    report: dict[str, Any],
) -> Prices:
    """Prices per unit, with those of weeks without sales."""
    sold = units > 0
    each = np.where(sold, units, 1.0)
    regular = _carry(np.where(sold, full / each, np.nan), sold)
    price = np.where(sold, paid / each, regular)
    never = ~sold.any(axis=0)
    report = {
        "observed": int(sold.sum()),
        "filled": int((~sold[:, ~never]).sum()),
        "items_without_price": int(never.sum()),
        **report,
    }
    tables = [
        CellTable(values, by=by, groups=groups)
        for values in (price, regular, np.log(price) - np.log(regular))
    ]
    return Prices(tables[0], tables[1], tables[2], report)


def _carry(values: Floats, known: NDArray[np.bool_]) -> Floats:
    """Fill every gap with the last value before it, or else the first one after it."""
    source_row = np.where(known, np.arange(len(values))[:, None], -1)
    last = np.maximum.accumulate(source_row, axis=0)
    first = np.argmax(known, axis=0)
    source = np.where(last >= 0, last, first)
    return np.take_along_axis(values, source, axis=0)


def _sum(cells: tuple[Ints, Ints], values: Floats, shape: tuple[int, int]) -> Floats:
    flat = cells[0] * np.int64(shape[1]) + cells[1]
    return np.asarray(np.bincount(flat, values, shape[0] * shape[1]), np.float64).reshape(shape)


def _columns(lines: Any, names: Mapping[str, str]) -> dict[str, list[Any]]:
    """Columns of the lines by role, as lists."""
    table = lines
    if not isinstance(lines, Mapping):
        from efemb.data.readers.frames import eager_frame

        table = eager_frame(lines)
    names_of_columns = list(lines if isinstance(lines, Mapping) else table.columns)
    for role, name in names.items():
        if name not in names_of_columns:
            raise DataError(
                f"the lines have no column {name!r} ({role}=); {suggest(name, names_of_columns)}"
            )
    columns = {role: np.asarray(table[name]).tolist() for role, name in names.items()}
    sizes = {len(column) for column in columns.values()}
    if len(sizes) != 1:
        raise DataError(f"the columns of the lines have different lengths: {sorted(sizes)}")
    return columns


def _numbers(column: list[Any], name: str) -> Floats:
    try:
        return np.array(column, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"the column {name!r} must hold numbers: {error}") from error


def _entities(entities: Any, items: list[Any]) -> Vocabulary:
    """Items of the tables."""
    if entities is None:
        return _sorted_labels(items, "item")
    if isinstance(entities, Dataset):
        if entities.entities is None:
            raise DataError("the data have no labels of entities, so lines cannot be assigned")
        return entities.entities
    return entities if isinstance(entities, Vocabulary) else Vocabulary(entities)


def _sorted_labels(labels: list[Any], name: str) -> Vocabulary:
    """Different labels in order, by value if all are numbers."""
    different = distinct_labels(labels)
    if not different:
        raise DataError(f"the lines have no {name}")
    try:
        return Vocabulary([different[i] for i in sorted_order(different)])  # "9" before "10"
    except TypeError:
        return Vocabulary(sorted(different))  # dates
