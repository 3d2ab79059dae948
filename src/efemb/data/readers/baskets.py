"""Transactions (one line an item of a basket) become a sparse `Dataset` of counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from efemb.data.dataset import Dataset
from efemb.data.labels import Label, sorted_order
from efemb.data.readers.badlines import BadLines
from efemb.data.readers.collect import LARGEST_COUNT, Collected, Columns, collect
from efemb.data.readers.source import NeedsTextReaderError, table_sources
from efemb.data.vocabulary import Vocabulary
from efemb.errors import DataError, ParameterError, suggest

if TYPE_CHECKING:
    from scipy.sparse import csr_array


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
