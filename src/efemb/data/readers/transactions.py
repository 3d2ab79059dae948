"""Transactions (one line per item of a basket) become a sparse `Dataset` of counts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from efemb._progress import progress_bar
from efemb.data.dataset import Dataset
from efemb.data.readers.accumulators import MISSING, CountTable, LabelTable, PairSums
from efemb.data.readers.arrow import ArrowCsvSource, ParquetSource, find_pyarrow
from efemb.data.readers.badlines import BadLines
from efemb.data.readers.csv import CsvSource
from efemb.data.readers.frames import frame_source
from efemb.data.readers.input_file import existing_file, refuse_foreign
from efemb.data.readers.source import Batch, NeedsTextReaderError, Source
from efemb.data.vocabulary import Label, Vocabulary, sorted_order
from efemb.errors import DataError, ParameterError, suggest

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# float64 counts exactly up to here.
LARGEST_COUNT = 2.0**53
# What databases, NumPy, pandas and Excel write where there is no label; as one label, all of their
# lines would be one basket. "None" and "NA" may be names.
NO_LABEL = ("NULL", r"\N", "NaN", "nan", "<NA>", "#N/A")


def read_baskets(  # noqa: PLR0913 - every option of a reader is its own keyword
    source: Any,
    *,
    basket: str,
    item: str,
    count: str | None = None,
    user: str | None = None,
    min_count: int = 1,
    top_n: int | None = None,
    min_items_per_basket: int = 1,
    separator: str | None = None,
    encoding: str = "utf-8",
    on_bad: Literal["error", "drop"] = "error",
    progress: bool = False,
) -> Dataset:
    r"""Read transactions: one line for each item of a basket.

    Rows are baskets and entities are items, both sorted by label (by value if all labels are
    numbers). Lines of the same basket and item are summed. Only integer codes and counts are kept
    while the source streams through, so it may be larger than memory.

    Parameters
    ----------
    source : path or table
        CSV or TSV (also .gz, .bz2, .xz) with a header, Parquet, or a pandas, polars or pyarrow
        table. Parquet needs ``pip install "efemb[io]"``.
    basket, item : str
        Names of the columns. Labels are text or numbers; those of a CSV file are text.
    count : str, optional
        Column of counts: numbers above 0 and at most 2**53, where float64 stops counting exactly.
        Without it each line counts 1.
    user : str, optional
        Column of users; a basket has one user.
    min_count : int
        Keep items that are in at least so many baskets.
    top_n : int, optional
        Of these keep the ones in most baskets (ties: the first by label).
    min_items_per_basket : int
        Then drop baskets of fewer different items. Filters run once, in this order, so an item
        may end up in fewer baskets than `min_count`, or in none.
    separator : str, optional
        Of the fields; else the first lines tell: comma, semicolon, tab or vertical bar. Where it
        is no comma, numbers may have decimal commas.
    encoding : str
        Of the text.
    on_bad : {"error", "drop"}
        What to do with lines that have a missing label (empty, NULL, \N, NaN, <NA>, #N/A), a
        count that is missing, not a number, infinite, not positive or above 2**53, the wrong
        number of fields, or a second user.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Dataset
        Sparse, float32 if that holds all counts exactly. `report` tells what was dropped and
        summed; `entities.counts` in how many of the kept baskets each item is.

    Raises
    ------
    DataError
        Names the column, the first lines, how many there are and the way out.
    MissingExtraError
        If pyarrow is needed and not there.

    Examples
    --------
    >>> import pandas as pd
    >>> lines = pd.DataFrame({"trip": [7, 7, 9, 9], "what": ["beer", "milk", "beer", "beer"]})
    >>> baskets = read_baskets(lines, basket="trip", item="what")
    >>> baskets.values.toarray().tolist(), baskets.report["duplicates_summed"]
    ([[1.0, 1.0], [2.0, 0.0]], 1)
    """
    _check_options(min_count, top_n, min_items_per_basket, on_bad)
    columns = Columns(basket, item, count, user)
    _check_columns(columns)
    collected = _collect(table_sources(source, separator, encoding), columns, on_bad, progress)
    return _filtered(collected, min_count, top_n, min_items_per_basket)


def table_sources(source: Any, separator: str | None, encoding: str) -> list[Source]:
    """Sources to try in turn for a path or a table; the last one explains every error."""
    if not isinstance(source, str | os.PathLike):
        return [frame_source(source)]
    path = existing_file(source)
    refuse_foreign(path)
    if path.suffix.lower() in {".parquet", ".pq"}:
        return [ParquetSource(path)]
    plain = CsvSource(path, separator, encoding)
    return [ArrowCsvSource(plain), plain] if find_pyarrow() else [plain]


def _collect(sources: Sequence[Any], columns: Columns, on_bad: str, progress: bool) -> Collected:
    for source in sources:
        bad = BadLines(source.name, source.unit)
        try:
            collected = collect(source, columns, bad, progress)
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
            raise _nothing_left(source.name, collected)
        return collected
    raise AssertionError("the last source explains every error")  # pragma: no cover


def _nothing_left(name: str, collected: Collected) -> DataError:
    lines = collected.report["lines"]
    if lines == 0:
        return DataError(f"{name} has a header but nothing below it")
    told = "; ".join(f"{what} in {n:,}" for what, n in collected.report["bad"].items())
    return DataError(f"{name}: none of the {lines:,} lines can be used: {told}")


def _filtered(collected: Collected, min_count: int, top_n: int | None, min_items: int) -> Dataset:
    """Drop rare items, then small baskets; order both by label."""
    rows, columns, counts = collected.sums.finish()
    _check_sums(counts, collected.report["source"])
    baskets, items = collected.baskets.labels, collected.items.labels
    popularity = np.bincount(columns, minlength=len(items))
    kept_items = _popular(popularity, sorted_order(items), min_count, top_n)
    sizes = np.bincount(rows[np.isin(columns, kept_items)], minlength=len(baskets))
    order = sorted_order(baskets)
    kept_baskets = order[sizes[order] >= min_items]
    if len(kept_baskets) == 0:
        raise DataError(
            f"no basket is left: min_count={min_count}{'' if top_n is None else f', {top_n=}'} "
            f"keeps {len(kept_items):,} of {len(items):,} items, and none of the "
            f"{len(baskets):,} baskets has {min_items} of them"
        )
    values = _matrix((rows, columns, counts), kept_baskets, kept_items, (len(baskets), len(items)))
    in_baskets = np.bincount(values.indices, minlength=len(kept_items))
    return Dataset(
        values,
        entities=Vocabulary([items[i] for i in kept_items], counts=in_baskets),
        row_labels=_object_array([baskets[i] for i in kept_baskets]),
        users=collected.user_labels(kept_baskets),
        report={
            **collected.report,
            "duplicates_summed": collected.sums.lines - len(rows),
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
    from scipy.sparse import csr_array

    rows, columns, counts = triples
    new_rows = _new_codes(kept_baskets, sizes[0])[rows]
    new_columns = _new_codes(kept_items, sizes[1])[columns]
    kept = (new_rows >= 0) & (new_columns >= 0)
    # scipy takes 64-bit indices where there are more than 2**31 entries.
    places = (new_rows[kept], new_columns[kept])
    values = csr_array((counts[kept], places), shape=(len(kept_baskets), len(kept_items)))
    values.sort_indices()
    return values


def _check_sums(counts: NDArray[Any], name: str) -> None:
    if len(counts) and counts.max() > LARGEST_COUNT:
        raise DataError(
            f"{name}: the lines of one basket and item add up to {counts.max():.4g}, above 2**53, "
            "where counts stop being exact; divide the counts by a common unit"
        )


def _popular(
    popularity: NDArray[np.int64], order: NDArray[np.int64], min_count: int, top_n: int | None
) -> NDArray[np.int64]:
    """Items to keep, in the order of their labels."""
    kept = order[popularity[order] >= min_count]
    if top_n is None or top_n >= len(kept):
        return kept
    first = np.argsort(-popularity[kept], kind="stable")[:top_n]
    return kept[np.sort(first)]


def _new_codes(kept: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Place among the kept ones of each old code; -1 if it is not kept."""
    codes = np.full(size, -1, np.int64)
    codes[kept] = np.arange(len(kept))
    return codes


def _object_array(labels: list[Label]) -> NDArray[Any]:
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def _check_columns(columns: Columns) -> None:
    named = [columns.basket, columns.item, columns.count]
    twice = [name for name in named if named.count(name) > 1]
    if twice:
        raise ParameterError(f"the column {twice[0]!r} can be only one of basket, item and count")


def _check_options(min_count: int, top_n: int | None, min_items: int, on_bad: str) -> None:
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
class Columns:
    """Names of the columns to read."""

    basket: str
    item: str
    count: str | None
    user: str | None

    @property
    def roles(self) -> list[str]:
        """The columns that are asked for."""
        return [one.name for one in fields(self) if getattr(self, one.name) is not None]

    @property
    def wanted(self) -> list[str]:
        """Their names."""
        return [getattr(self, role) for role in self.roles]

    @property
    def numeric(self) -> list[bool]:
        """Which of them hold numbers."""
        return [role == "count" for role in self.roles]


@dataclass
class Collected:
    """Everything that is kept of a source."""

    baskets: LabelTable = field(default_factory=_label_table)
    items: LabelTable = field(default_factory=_label_table)
    users: LabelTable = field(default_factory=_label_table)
    user_of: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    sums: PairSums = field(default_factory=PairSums)
    report: dict[str, Any] = field(default_factory=dict)

    def user_labels(self, baskets: NDArray[np.int64]) -> NDArray[Any] | None:
        """User of each of the given baskets, or None if there are no users."""
        if not self.users.labels:
            return None
        labels = np.empty(len(self.users.labels), dtype=object)
        labels[:] = self.users.labels
        return labels[self.user_of[baskets]]

    def assign_users(
        self, baskets: NDArray[np.int64], users: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Give each basket its first user; True where a line names another one."""
        grown = len(self.baskets.labels) - len(self.user_of)
        self.user_of = np.append(self.user_of, np.full(grown, MISSING, np.int64))
        new = self.user_of[baskets] == MISSING
        # The last of several assignments to one place stays: backwards, so that it is the first.
        self.user_of[baskets[new][::-1]] = users[new][::-1]
        return np.not_equal(self.user_of[baskets], users)


def collect(source: Source, columns: Columns, bad: BadLines, progress: bool) -> Collected:
    """Read the whole source; what cannot be used is left out and noted in `bad`."""
    kept = Collected()
    numbers = CountTable()
    lines = 0
    with progress_bar(f"reading {source.name}", source.size, progress) as advance:
        for batch in source.batches(columns.wanted, columns.numeric, bad, advance):
            lines += len(batch.places)
            _add(kept, batch, columns, numbers, bad)
    lines += bad.left_out
    kept.report = {
        "source": source.name,
        "lines": lines,
        "lines_dropped": lines - kept.sums.lines,
        "bad": bad.totals,
        "baskets": len(kept.baskets.labels),
        "items": len(kept.items.labels),
    }
    return kept


def _add(
    kept: Collected, batch: Batch, columns: Columns, numbers: CountTable, bad: BadLines
) -> None:
    cells = dict(zip(columns.roles, batch.columns, strict=True))
    counts = np.ones(len(batch.places))
    usable = np.ones(len(batch.places), dtype=bool)
    if columns.count is not None:
        counts = numbers.numbers(cells["count"])
        usable &= _check_counts(counts, columns.count, batch, bad)
    tables = {"basket": kept.baskets, "item": kept.items, "user": kept.users}
    codes = []
    for role, table in tables.items():
        if role in cells:
            codes.append(table.codes(cells[role]))
            missing = codes[-1] == MISSING
            bad.add(f"column {getattr(columns, role)!r} is missing", batch.places[missing])
            usable &= ~missing
    baskets, items = codes[0][usable], codes[1][usable]
    counts = counts[usable]
    if columns.user is not None:
        other = kept.assign_users(baskets, codes[2][usable])
        bad.add(f"column {columns.user!r} differs within a basket", batch.places[usable][other])
        baskets, items, counts = baskets[~other], items[~other], counts[~other]
    kept.sums.add(baskets, items, counts)


def _check_counts(
    counts: NDArray[np.float64], name: str, batch: Batch, bad: BadLines
) -> NDArray[np.bool_]:
    """True where a count can be used."""
    usable = (counts > 0) & (counts <= LARGEST_COUNT)
    if not usable.all():
        problems = {
            "is missing or not a number": np.isnan(counts),
            "is infinite": np.isinf(counts),
            "is not positive": np.isfinite(counts) & (counts <= 0),
            "is above 2**53, where counts stop being exact": np.isfinite(counts)
            & (counts > LARGEST_COUNT),
        }
        for problem, found in problems.items():
            bad.add(f"column {name!r} {problem}", batch.places[found])
    return usable
