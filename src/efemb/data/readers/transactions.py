"""Transactions (one line per item of a basket) become a sparse `Dataset` of counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from efemb._terminal import progress_bar
from efemb.data.array_checks import make_csr
from efemb.data.dataset import Dataset
from efemb.data.readers.accumulators import (
    MISSING,
    Column,
    CountTable,
    KeyTable,
    LabelTable,
    PairSums,
    cell_at,
)
from efemb.data.readers.badlines import BadLines
from efemb.data.readers.dialect import explain_number
from efemb.data.readers.item_lists import item_lists, peek_lists
from efemb.data.readers.several import table_sources
from efemb.data.readers.shop_tables import NO_LABEL, add_features, add_prices
from efemb.data.readers.source import Batch, NeedsTextReaderError, Source
from efemb.data.vocabulary import Label, Vocabulary, shorten, sorted_order
from efemb.errors import DataError, InputTypeError, ParameterError, suggest

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# float64 counts exactly up to here.
LARGEST_COUNT = 2.0**53
NO_NUMBER = "is missing or not a number"


def read_baskets(  # noqa: PLR0913 - every option of a reader is its own keyword
    source: Any,
    *,
    basket: str | Sequence[str] | None = None,
    item: str | None = None,
    count: str | None = None,
    user: str | None = None,
    rows: Mapping[str, str] | None = None,
    price: str | Mapping[str, str] | None = None,
    features: Any = None,
    layout: Literal["table", "lines"] = "table",
    header: Sequence[str] | None = None,
    returns: Literal["bad", "net"] = "bad",
    min_count: int = 1,
    top_n: int | None = None,
    min_items_per_basket: int = 1,
    separator: str | None = None,
    encoding: str = "utf-8",
    on_bad: Literal["error", "drop"] = "error",
    progress: bool = False,
) -> Dataset:
    r"""Read transactions: one line per item of a basket, or one line per basket.

    Rows are baskets and entities are items, both sorted by label (by value if all labels are
    numbers). Lines with the same basket and item are summed. The source is read in batches and
    only integer codes and counts are kept, so it may be larger than memory.

    Parameters
    ----------
    source : path, table or lists
        CSV or TSV (also .gz, .bz2, .xz, or a .zip with one file) with a header, or Parquet, which
        needs ``pip install "efemb[io]"``; a list of such files, a pattern (``"trips-*.csv"``) or a
        folder of Parquet files. A pandas, polars (also lazy) or pyarrow table, anything else with
        ``__arrow_c_stream__`` (a query of DuckDB, a reader), or an iterator of tables. Lists of
        items, ``[["milk", "bread"], ["beer"]]``: each is a basket, an item that occurs twice
        counts 2, and no columns are named.
    basket, item : str, optional
        Names of the columns. Labels are text or numbers; those of a CSV file are text. Several
        columns may identify a basket, ``basket=["customer", "date"]``; their labels are joined by
        a space, and each column also becomes a column of ``data.rows``.
    count : str, optional
        Column of counts: positive numbers up to 2**53, the largest range that float64 represents
        exactly. Without it, each line counts 1.
    user : str, optional
        Column of users; a basket has one user, and every line names it. Becomes ``rows["user"]``.
    rows : mapping of str to str, optional
        Further columns with one value per basket, by the name that they get in ``data.rows``:
        ``rows={"household": "household_id", "week": "week"}``. A basket whose lines have two
        different values is an error (or loses the later lines, see `on_bad`); a missing value is
        kept as missing (None) unless another line of the basket has one.
    price : str or mapping, optional
        Column of the amount paid for a line, or columns by role: ``price={"value": "sales",
        "discount": "retail_disc", "by": "week"}``, where `by` is one of `rows` ("week" by default)
        and `discount` the amount of the discount. Adds the cell tables "price" (paid per unit, by
        item and week) and, with a discount, "price_ratio" (paid over regular price); weeks without
        sales are filled as in `efemb.prices` and counted in ``report["price"]``. The source is read
        twice.
    features : path or table, optional
        One line per item with a column of the name `item`; all other columns become
        ``data.features``, see `efemb.data.read_features`. Items without a line are missing there
        and counted in ``report["features"]``.
    layout : {"table", "lines"}, default="table"
        "table": columns, one line per item of a basket. "lines": each line of a file is a basket,
        its items separated by `separator`, by default by commas, semicolons, tabs or bars if the
        first lines have them, otherwise by spaces; baskets are labeled by the number of their
        line, and no columns are named.
    header : sequence of str, optional
        Names of the columns, for CSV and TSV files without a header.
    returns : {"bad", "net"}, default="bad"
        How to treat negative counts: as bad lines (see `on_bad`), or as returns, which are
        subtracted from the other lines of the same basket and item. Items with no units left are
        dropped.
    min_count : int, default=1
        Drop items that occur in fewer baskets.
    top_n : int, optional
        Keep only the `top_n` remaining items that occur in most baskets (ties: the first by label).
    min_items_per_basket : int, default=1
        Then drop baskets with fewer distinct items. The filters run once, in this order, so an
        item may end up in fewer than `min_count` baskets, or in none.
    separator : str, optional
        Field separator. By default it is inferred from the first lines: comma, semicolon, tab or
        vertical bar. Unless it is a comma, numbers may have decimal commas.
    encoding : str, default="utf-8"
        Text encoding, also of a file of `features`.
    on_bad : {"error", "drop"}, default="error"
        What to do with lines that have a missing label (empty, NULL, \N, NaN, <NA>, #N/A), a
        count that is missing, not a number, infinite, not positive or above 2**53, the wrong
        number of fields, or a user (or value of `rows`) that differs from the basket's first.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    Dataset
        Sparse, in float32 if that represents all counts exactly. `report` says what was dropped
        and summed; `entities.counts` is the number of remaining baskets that hold each item.

    Raises
    ------
    DataError
        If there are bad lines. The message names the column, the first lines, their number and
        the way out.
    MissingExtraError
        If pyarrow is needed but not installed.

    Examples
    --------
    >>> import pandas as pd
    >>> lines = pd.DataFrame({"trip": [7, 7, 9, 9], "what": ["beer", "milk", "beer", "beer"]})
    >>> baskets = read_baskets(lines, basket="trip", item="what")
    >>> baskets.values.toarray().tolist(), baskets.report["duplicates_summed"]
    ([[1.0, 1.0], [2.0, 0.0]], 1)
    """
    check_filters(min_count, top_n, min_items_per_basket, on_bad)
    choices = {"layout": (layout, ("table", "lines")), "returns": (returns, ("bad", "net"))}
    for name, (value, allowed) in choices.items():
        if value not in allowed:
            raise ParameterError(f"{name}={value!r} is unknown; {suggest(value, allowed)}")
    source, in_memory = peek_lists(source)
    if in_memory or layout == "lines":
        named = (basket, item, count, user, rows, header, price, features)
        if any(option is not None for option in named):
            raise ParameterError(
                "a list of items per basket has no columns: leave out basket=, item=, count=, "
                "user=, rows=, price=, features= and header="
            )
        columns = LineColumns({"basket": "basket", "item": "item"}, {}, frozenset())
        sources = item_lists(source, in_memory, separator, encoding)
    else:
        columns = line_columns(basket, item, count, user, rows or {})
        sources = table_sources(source, separator, encoding, header)
    collected = _collect(sources, columns, on_bad, progress, net=returns == "net")
    data = _filter(collected, min_count, top_n, min_items_per_basket)
    if price is not None:
        names = {"item": item, "count": count, "rows": columns.rows}
        reading = {"separator": separator, "encoding": encoding, "header": header}
        bad_prices = "drop" if returns == "net" else on_bad
        data = add_prices(data, source, names, price, on_bad=bad_prices, reading=reading)
    return data if features is None else add_features(data, features, str(item), encoding)


def _collect(
    sources: Sequence[Any], columns: LineColumns, on_bad: str, progress: bool, net: bool
) -> Collected:
    for source in sources:
        bad = BadLines(source.name, source.unit)
        try:
            collected = collect(source, columns, bad, progress, net)
        except NeedsTextReaderError:
            continue
        if bad and on_bad == "error":
            if source.knows_places:
                strict = " (without --strict)" if source.unit == "line" else ""
                raise bad.error(
                    f'Correct them, or leave these {source.unit}s out with on_bad="drop"{strict}'
                )
            continue
        if collected.sums.lines == 0:
            raise _empty_error(source.name, collected)
        return collected
    raise AssertionError("the last source explains every error")  # pragma: no cover


def _empty_error(name: str, collected: Collected) -> DataError:
    lines = collected.report["lines"]
    if lines == 0:
        return DataError(f"{name} has a header but no lines below it")
    reasons = "; ".join(f"{problem} in {n:,}" for problem, n in collected.report["bad"].items())
    return DataError(f"{name}: none of the {lines:,} lines can be used: {reasons}")


def _filter(collected: Collected, min_count: int, top_n: int | None, min_items: int) -> Dataset:
    """Drop rare items, then small baskets; sort both by label."""
    rows, columns, counts = collected.sums.finish()
    n_pairs = len(rows)
    check_sums(counts, collected.report["source"])
    if collected.net:
        bought = counts > 0
        rows, columns, counts = rows[bought], columns[bought], counts[bought]
        if not len(rows):
            raise DataError(f"{collected.report['source']}: nothing is left after returns")
    baskets, items = collected.baskets.labels, collected.items.labels
    popularity = np.bincount(columns, minlength=len(items))
    kept_items = popular_items(popularity, sorted_order(items), min_count, top_n)
    sizes = np.bincount(rows[np.isin(columns, kept_items)], minlength=len(baskets))
    order = sorted_order(baskets)
    kept_baskets = order[sizes[order] >= min_items]
    if len(kept_baskets) == 0:
        raise DataError(
            f"no baskets remain: min_count={min_count}{'' if top_n is None else f', {top_n=}'} "
            f"keeps {len(kept_items):,} of {len(items):,} items, and none of the "
            f"{len(baskets):,} baskets has {min_items} of them"
        )
    values = _matrix((rows, columns, counts), kept_baskets, kept_items, (len(baskets), len(items)))
    in_baskets = np.bincount(values.indices, minlength=len(kept_items))
    return Dataset(
        values,
        entities=Vocabulary([items[i] for i in kept_items], counts=in_baskets),
        row_labels=_object_array([baskets[i] for i in kept_baskets]),
        rows={name: column.labels(kept_baskets) for name, column in collected.columns.items()},
        report={
            **collected.report,
            "duplicates_summed": collected.sums.lines - n_pairs,
            **({"returned": n_pairs - len(rows)} if collected.net else {}),
            "items_dropped": len(items) - len(kept_items),
            "baskets_dropped": len(baskets) - len(kept_baskets),
            "entries_dropped": len(rows) - values.nnz,
            "items_without_basket": int((in_baskets == 0).sum()),
            "entries": values.nnz,
        },
    )


def _matrix(
    triples: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[Any]],
    kept_baskets: NDArray[np.int64],
    kept_items: NDArray[np.int64],
    sizes: tuple[int, int],
) -> csr_array:
    """The kept baskets x the kept items, each in the given order."""
    rows, columns, counts = triples
    new_rows = _new_codes(kept_baskets, sizes[0])[rows]
    new_columns = _new_codes(kept_items, sizes[1])[columns]
    is_kept = (new_rows >= 0) & (new_columns >= 0)
    # scipy takes 64-bit indices where there are more than 2**31 entries.
    indices = (new_rows[is_kept], new_columns[is_kept])
    values = make_csr((counts[is_kept], indices), shape=(len(kept_baskets), len(kept_items)))
    values.sort_indices()
    return values


def check_sums(counts: NDArray[Any], name: str) -> None:
    """Reject sums that are no longer exact."""
    largest = np.abs(counts).max(initial=0)
    if largest > LARGEST_COUNT:
        raise DataError(
            f"{name}: the lines of one basket and item add up to {largest:.4g}, above 2**53, "
            "where counts are no longer exact; divide the counts by a common unit"
        )


def popular_items(
    popularity: NDArray[np.int64], order: NDArray[np.int64], min_count: int, top_n: int | None
) -> NDArray[np.int64]:
    """Items to keep, in the order of their labels."""
    frequent = order[popularity[order] >= min_count]
    if top_n is None or top_n >= len(frequent):
        return frequent
    first = np.argsort(-popularity[frequent], kind="stable")[:top_n]
    return frequent[np.sort(first)]


def _new_codes(old_codes: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """New code of each old one: its position in `old_codes`, or -1."""
    codes = np.full(size, -1, np.int64)
    codes[old_codes] = np.arange(len(old_codes))
    return codes


def _object_array(labels: Sequence[Label | None]) -> NDArray[Any]:
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def line_columns(
    basket: str | Sequence[str] | None,
    item: str | None,
    count: str | None,
    user: str | None,
    rows: Mapping[str, str],
) -> LineColumns:
    """The columns to read; an error if their names are not valid."""
    if basket is None or item is None:
        raise ParameterError(
            "basket= and item= name the columns of a table with one line per item of a basket; "
            'for a file with one basket per line pass layout="lines"'
        )
    if not isinstance(basket, str | Sequence) or not basket:
        raise InputTypeError(f"the column basket= is selected by its name (text), not {basket!r}")
    keys = [basket] if isinstance(basket, str) else list(basket)
    roles = ["basket", *(f"basket {number}" for number in range(2, len(keys) + 1))]
    lines = dict(zip(roles, keys, strict=True)) | {"item": item}
    lines |= {} if count is None else {"count": count}
    named = list(lines.values())
    twice = [name for name in named if named.count(name) > 1]
    if twice:
        raise ParameterError(f"the column {twice[0]!r} can be only one of basket, item and count")
    if not isinstance(rows, Mapping) or not all(isinstance(name, str) for name in rows):
        raise InputTypeError(
            f"rows={rows!r:.80} must map names to columns of the source, such as "
            "{'week': 'week_number'}"
        )
    if len(keys) > 1:  # each column of the key is known for every basket
        rows = {**{name: name for name in keys if name != "row"}, **rows}
    if user is None:
        return LineColumns(lines, dict(rows), frozenset())
    if "user" in rows:
        raise ParameterError("user= and rows['user'] are the same column: pass one")
    return LineColumns(lines, {"user": user, **rows}, frozenset({"user"}))


def check_filters(min_count: int, top_n: int | None, min_items: int, on_bad: str) -> None:
    """Reject options that are not counts, or unknown."""
    options = {"min_count": min_count, "top_n": top_n, "min_items_per_basket": min_items}
    for name, value in options.items():
        if value is None and name == "top_n":
            continue
        if not isinstance(value, int | np.integer) or value < 1:
            raise ParameterError(f"{name}={value!r} must be a whole number of at least 1")
    if on_bad not in ("error", "drop"):
        raise ParameterError(f"on_bad={on_bad!r} is unknown; {suggest(on_bad, ['error', 'drop'])}")


def _label_table() -> LabelTable:
    return LabelTable(NO_LABEL)


@dataclass(frozen=True)
class LineColumns:
    """Names of the columns to read.

    lines : of basket, item and count;  rows : of columns with one value per basket, by new name
    required : those of `rows` that every line must have
    """

    lines: dict[str, str]
    rows: dict[str, str]
    required: frozenset[str]

    @property
    def keys(self) -> dict[str, str]:
        """The columns of `lines` that identify the basket."""
        return {role: name for role, name in self.lines.items() if role.startswith("basket")}

    @property
    def wanted(self) -> list[str]:
        """The names of all columns."""
        return [*self.lines.values(), *self.rows.values()]

    @property
    def numeric(self) -> list[bool]:
        """Whether each of them contains numbers."""
        return [role == "count" for role in self.lines] + [False] * len(self.rows)


@dataclass
class BasketColumn:
    """One value per basket: the first one among its lines."""

    table: LabelTable = field(default_factory=_label_table)
    codes: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def labels(self, baskets: NDArray[np.int64]) -> NDArray[Any]:
        """Value of each basket; None if it is missing."""
        return _object_array([*self.table.labels, None])[self.codes[baskets]]


@dataclass
class Collected:
    """Everything that is kept from a source."""

    columns: dict[str, BasketColumn]
    baskets: KeyTable
    net: bool = False
    items: LabelTable = field(default_factory=_label_table)
    sums: PairSums = field(default_factory=PairSums)
    report: dict[str, Any] = field(default_factory=dict)

    def assign(
        self, role: str, baskets: NDArray[np.int64], codes: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Give each basket the first value of its lines; True if a line has another value."""
        column = self.columns[role]
        grown = len(self.baskets.labels) - len(column.codes)
        column.codes = np.append(column.codes, np.full(grown, MISSING, np.int64))
        new = (column.codes[baskets] == MISSING) & (codes != MISSING)
        # The last assignment to an element wins, so assign backwards to keep the first value.
        column.codes[baskets[new][::-1]] = codes[new][::-1]
        differs: NDArray[np.bool_] = (column.codes[baskets] != codes) & (codes != MISSING)
        return differs

    def conflict(self, role: str, basket: int, code: int) -> str:
        """The two values of a basket, in words."""
        column = self.columns[role]
        first, second = (column.table.labels[i] for i in (column.codes[basket], code))
        label = self.baskets.labels[basket]
        return f"basket {shorten(label)} has {shorten(first)} and {shorten(second)}"


def collect(
    source: Source, columns: LineColumns, bad: BadLines, progress: bool, net: bool
) -> Collected:
    """Read the whole source; unusable lines are skipped and recorded in `bad`."""
    baskets = KeyTable(len(columns.keys), NO_LABEL)
    collected = Collected({name: BasketColumn() for name in columns.rows}, baskets, net)
    numbers = CountTable()
    lines = 0
    with progress_bar(f"reading {source.name}", source.size, progress) as advance:
        for batch in source.batches(columns.wanted, columns.numeric, bad, advance):
            lines += len(batch.places)
            collected.sums.add(*usable_lines(collected, batch, columns, numbers, bad))
    lines += bad.left_out
    collected.report = {
        "source": source.name,
        "lines": lines,
        "lines_dropped": lines - collected.sums.lines,
        "bad": bad.totals,
        "baskets": len(collected.baskets.labels),
        "items": len(collected.items.labels),
    }
    return collected


def usable_lines(
    collected: Collected, batch: Batch, columns: LineColumns, numbers: CountTable, bad: BadLines
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Basket, item and count of the lines of a batch that can be used; others go to `bad`."""
    cells = dict(zip(columns.lines, batch.columns, strict=False))
    counts = np.ones(len(batch.places))
    usable = np.ones(len(batch.places), dtype=bool)
    if "count" in cells:
        counts = numbers.numbers(cells["count"])
        usable &= _check_counts(
            counts, cells["count"], columns.lines["count"], batch, bad, collected.net
        )
    baskets, by_key = collected.baskets.codes([cells[role] for role in columns.keys])
    items = collected.items.codes(cells["item"])
    of_rows = batch.columns[len(columns.lines) :]
    values = {
        role: collected.columns[role].table.codes(column)
        for role, column in zip(columns.rows, of_rows, strict=True)
    }
    required = [*zip(columns.keys.values(), by_key, strict=True), (columns.lines["item"], items)]
    required += [(columns.rows[role], values[role]) for role in columns.required]
    for name, codes in required:
        bad.add(f"column {name!r} is missing", batch.places[codes == MISSING])
        usable &= codes != MISSING
    for role, codes in values.items():
        lines = np.flatnonzero(usable)
        other = lines[collected.assign(role, baskets[lines], codes[lines])]
        if len(other):
            example = collected.conflict(role, baskets[other[0]], codes[other[0]])
            problem = f"column {columns.rows[role]!r} differs within a basket"
            bad.add(problem, batch.places[other], example)
            usable[other] = False
    return baskets[usable], items[usable], counts[usable]


def _check_counts(
    counts: NDArray[np.float64], cells: Column, name: str, batch: Batch, bad: BadLines, net: bool
) -> NDArray[np.bool_]:
    """Whether each count is usable; with `net`, negative ones are."""
    if net:
        counts = np.abs(counts)
    usable = (counts > 0) & (counts <= LARGEST_COUNT)
    if not usable.all():
        problems = {
            NO_NUMBER: np.isnan(counts),
            "is infinite": np.isinf(counts),
            "is not positive": np.isfinite(counts) & (counts <= 0),
            "is above 2**53, where counts are no longer exact": np.isfinite(counts)
            & (counts > LARGEST_COUNT),
        }
        for problem, is_bad in problems.items():
            texts = (explain_number(cell_at(cells, i)) for i in np.flatnonzero(np.isnan(counts)))
            example = next(filter(None, texts), "") if problem == NO_NUMBER else ""
            bad.add(f"column {name!r} {problem}", batch.places[is_bad], example)
    return usable
