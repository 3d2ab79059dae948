"""Tables of a shop: prices of the lines, and features of the products."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efemb._terminal import progress_bar
from efemb._typing import Floats
from efemb.data.array_checks import is_missing_label
from efemb.data.columns import CellTable
from efemb.data.dataset import Dataset
from efemb.data.price_tables import prices
from efemb.data.readers.accumulators import MISSING, CountTable, LabelTable
from efemb.data.readers.badlines import BadLines
from efemb.data.readers.several import table_sources
from efemb.data.readers.source import NeedsTextReaderError, Source
from efemb.data.vocabulary import Vocabulary, shorten
from efemb.errors import DataError, InputTypeError, ParameterError, suggest

ROLES = ("value", "discount", "by")
# Missing labels as databases, NumPy, pandas and Excel write them; if they were labels, all these
# lines would form one basket. "None" and "NA" may be names.
NO_LABEL = ("NULL", r"\N", "NaN", "nan", "<NA>", "#N/A")


def read_features(
    source: Any,
    *,
    item: str,
    entities: Dataset | Vocabulary | Iterable[object],
    columns: Sequence[str] | None = None,
    separator: str | None = None,
    encoding: str = "utf-8",
) -> dict[str, NDArray[Any]]:
    """Read features of the items from a table of products, for ``Dataset(features=...)``.

    Parameters
    ----------
    source : path or table
        One line per item, in any form that `read_baskets` reads.
    item : str
        Column that identifies the item.
    entities : Dataset, Vocabulary or labels
        The items, in the order of the result. Lines of other items are ignored.
    columns : sequence of str, optional
        The columns to read; by default all but `item`.
    separator, encoding : str, default=None and "utf-8"
        As in `read_baskets`.

    Returns
    -------
    dict of str to array of shape (N,)
        Columns of numbers are float64, with NaN if missing; others hold labels, or None.

    Raises
    ------
    DataError
        If an item has two lines that differ, or no item has a line.

    Examples
    --------
    >>> import pandas as pd
    >>> products = pd.DataFrame({"item": ["tea", "milk"], "size": [2, 1], "kind": ["dry", "fresh"]})
    >>> features = read_features(products, item="item", entities=["milk", "tea", "beer"])
    >>> features["kind"].tolist(), features["size"].tolist()
    (['fresh', 'dry', None], [1.0, 2.0, nan])
    """
    labels = entities.entities if isinstance(entities, Dataset) else entities
    if labels is None:
        raise DataError("the data have no labels of entities, so features cannot be assigned")
    vocabulary = labels if isinstance(labels, Vocabulary) else Vocabulary(labels)
    sources = table_sources(source, separator, encoding)
    names = _feature_names(sources, item) if columns is None else list(columns)
    cells = read_columns(sources, [item, *names], strict=True)
    line_of_item = np.full(len(vocabulary), -1, dtype=np.int64)
    for line, label in enumerate(cells[item]):
        if label is None or label not in vocabulary:
            continue
        code = vocabulary.index_of(label)
        if line_of_item[code] >= 0 and any(
            cells[name][line] != cells[name][line_of_item[code]] for name in names
        ):
            raise DataError(
                f"{sources[-1].name} has two lines of item {shorten(label)} that differ: an item "
                "has one line"
            )
        line_of_item[code] = line
    if len(vocabulary) and not (line_of_item >= 0).any():
        raise DataError(
            f"no item of the data is in column {item!r} of {sources[-1].name}: "
            f"{shorten(vocabulary[0])}, ... there, {shorten(next(iter(cells[item]), ''))}, ... here"
        )
    return {name: _feature([*cells[name], None], line_of_item) for name in names}


def _feature_names(sources: Sequence[Any], item: str) -> list[str]:
    """Names of all columns except the item."""
    header = getattr(sources[-1], "header", None)
    if header is None:
        raise ParameterError(f"the columns of {sources[-1].name} are not known: pass columns=")
    if item not in header:
        raise DataError(
            f"{sources[-1].name} has no column {item!r}, by which its lines are assigned to items; "
            f"{suggest(item, header)}: rename it, or use efemb.data.read_features(source, item=...)"
        )
    return [name for name in header if name != item]


def _feature(cells: list[Any], line_of_item: NDArray[np.int64]) -> NDArray[Any]:
    """Values of the items: numbers if all are, labels otherwise."""
    values = [cells[line] for line in line_of_item.tolist()]
    present = [value for value in values if value is not None]
    numbers = CountTable()
    if present and all(np.isfinite(numbers[value]) for value in present):
        return np.array([np.nan if value is None else numbers[value] for value in values])
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def read_columns(
    sources: Sequence[Source],
    labels: Sequence[str],
    numbers: Sequence[str] = (),
    *,
    strict: bool = False,
) -> dict[str, Any]:
    """Whole columns of a table: lists of labels (None if missing), and arrays of numbers.

    strict : lines that cannot be read are an error; otherwise they are dropped
    """
    for source in sources:
        bad = BadLines(source.name, source.unit)
        try:
            columns = _read_columns(source, list(labels), list(numbers), bad)
        except NeedsTextReaderError:
            continue
        if not (bad and strict):
            return columns
        if source.knows_places:
            raise bad.error("Correct them")
    raise AssertionError("the last source explains every error")  # pragma: no cover


def _read_columns(
    source: Source, labels: list[str], numbers: list[str], bad: BadLines
) -> dict[str, Any]:
    tables, values = [LabelTable(NO_LABEL) for _ in labels], CountTable()
    codes: list[list[Any]] = [[] for _ in [*labels, *numbers]]
    numeric = [False] * len(labels) + [True] * len(numbers)
    with progress_bar(f"reading {source.name}", source.size, False) as advance:
        for batch in source.batches([*labels, *numbers], numeric, bad, advance):
            for i, column in enumerate(batch.columns):
                numeric_column = i >= len(labels)
                codes[i].append(
                    values.numbers(column) if numeric_column else tables[i].codes(column)
                )
    columns: dict[str, Any] = {}
    for i, name in enumerate([*labels, *numbers]):
        array = np.concatenate(codes[i]) if codes[i] else np.zeros(0)
        if i >= len(labels):
            columns[name] = array
            continue
        known = [*tables[i].labels, None]
        columns[name] = [known[code] for code in np.where(array == MISSING, -1, array).tolist()]
    return columns


def add_prices(
    data: Dataset,
    source: Any,
    columns: Mapping[str, Any],
    price: str | Mapping[str, str],
    *,
    on_bad: Any,
    reading: Mapping[str, Any],
) -> Dataset:
    """Add tables of prices, from the lines that the data were read from.

    columns : names of the columns of item, count (or None) and of the row columns (rows)
    """
    roles = {"value": price} if isinstance(price, str) else dict(price)
    by = roles.get("by", "week")
    _check_roles(roles, by, columns["rows"], source)
    names = {"item": columns["item"], "by": columns["rows"][by]}
    numbers: dict[str, str] = {role: roles[role] for role in ("value", "discount") if role in roles}
    if columns["count"] is not None:
        numbers["count"] = columns["count"]
    sources = table_sources(source, **reading)
    cells = read_columns(sources, list(names.values()), list(numbers.values()))
    lines = {role: cells[name] for role, name in {**names, **numbers}.items()}
    lines[by] = lines.pop("by")
    options: dict[str, Any] = {role: role for role in numbers}
    table = prices(lines, **options, by=by, entities=data, on_bad=on_bad)
    weeks = set(map(str, table.paid.groups))
    unknown = {v for v in data.rows[by].tolist() if not is_missing_label(v) and str(v) not in weeks}
    if unknown:
        raise DataError(f"{by} {min(map(str, unknown))!r} has no line with a price")
    tables = {"price": table.paid}
    if "discount" in roles:
        ratio: Floats = np.exp(table.log_ratio.values)
        tables["price_ratio"] = CellTable(ratio, by=by, groups=table.paid.groups)
    report = {**data.report, "price": table.report}
    return data._replace(data.values, cells={**data.cells, **tables}, report=report)


def _check_roles(roles: Mapping[str, str], by: str, rows: Mapping[str, str], source: Any) -> None:
    for role in roles:
        if role not in ROLES:
            raise ParameterError(f"price has no column {role!r}; {suggest(role, ROLES)}")
    if "value" not in roles:
        raise ParameterError("price needs 'value', the column of the amount paid for a line")
    if by not in rows:
        names = ", ".join(map(repr, rows)) or "none"
        raise ParameterError(
            f"prices are by {by!r}, which is not one of rows= ({names}): pass rows={{{by!r}: ...}} "
            "or price={..., 'by': ...}"
        )
    if isinstance(source, Iterator):
        raise InputTypeError(
            "prices are read in a second pass, but an iterator ends after the first"
        )


def add_features(data: Dataset, source: Any, item: str, encoding: str) -> Dataset:
    """Add features of the items."""
    features = read_features(source, item=item, entities=data, encoding=encoding)
    lacking = {
        name: int(sum(is_missing_label(value) for value in column.tolist()))
        for name, column in features.items()
    }
    report = {**data.report, "features": {"missing": lacking}}
    return data._replace(data.values, features={**data.features, **features}, report=report)
