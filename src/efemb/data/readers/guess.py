"""Guesses: what a file holds, which of its columns are which, and what kind of numbers they are."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from efemb.data.dataset import Dataset
from efemb.data.readers.badlines import BadLines
from efemb.data.readers.source import existing_file
from efemb.data.readers.text import CsvSource
from efemb.errors import DataError, suggest

Kind = Literal["baskets", "matrix", "text"]
SAMPLE = 2000
CLEAN = 0.9  # part of a column that must be numbers for it to hold counts
ARRAYS, TABLES = {".npy", ".npz"}, {".csv", ".tsv", ".tab", ".parquet", ".pq"}
PACKED = {".gz", ".bz2", ".xz"}
# Words that columns of transactions are called by, the most telling first.
BASKET = ("basket", "invoice", "order", "transaction", "trip", "receipt", "session", "ticket")
ITEM = ("description", "title", "product", "item", "article", "movie", "sku", "stock", "name")
COUNT = ("quantity", "qty", "count", "units", "amount", "number", "rating")
USER = ("customer", "user", "household", "client", "member")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True)
class Guess:
    """What a file seems to hold, and in words why.

    basket, item, count : names of columns, for transactions only
    """

    kind: Kind
    why: str
    basket: str | None = None
    item: str | None = None
    count: str | None = None


def guess_contents(
    path: str | os.PathLike[str],
    *,
    basket: str | None = None,
    item: str | None = None,
    count: str | None = None,
    encoding: str = "utf-8",
) -> Guess:
    """Guess from the name of a file and its first lines what it holds.

    Columns that are told are not guessed; `count="none"` counts each line as 1.

    Raises
    ------
    DataError
        If a table is neither transactions nor all numbers, with the columns there are.
    """
    file = existing_file(path)
    suffix = _suffix(file)
    if suffix in ARRAYS:
        return Guess("matrix", f"{suffix} files hold arrays")
    told = {"basket": basket, "item": item, "count": count}
    if suffix not in TABLES and not any(told.values()):
        return Guess("text", "each line is a document")
    sample = _sample(file, encoding)
    for name in told.values():
        if name is not None and name not in (*sample, "none"):
            raise DataError(f"{file} has no column {name!r}; {suggest(name, sample)}")
    found = _transactions(sample, **told)
    if found is not None:
        return found
    if not any(told.values()) and all(_is_number(values) for values in sample.values()):
        return Guess("matrix", "every column holds numbers")
    raise DataError(
        f"{file}: which columns are basket and item? Name them with basket= and item= "
        f"(--basket and --item); there are {', '.join(sample)}"
    )


def guess_family(data: Dataset) -> tuple[str, str]:
    """Name of the family that suits the numbers, and why."""
    values = np.asarray(data.values.data if data.is_sparse else data.values)
    seen = values[np.isfinite(values)]
    if seen.size == 0 or (seen < 0).any() or (seen != np.round(seen)).any():
        return "gaussian", "not every number is a count"
    if seen.max(initial=0) <= 1:
        return "bernoulli", "every number is 0 or 1"
    return "poisson", "every number is a count"


def _suffix(path: Path) -> str:
    endings = [suffix.lower() for suffix in path.suffixes]
    while endings and endings[-1] in PACKED:
        endings.pop()
    return endings[-1] if endings else ""


def _sample(path: Path, encoding: str) -> dict[str, list[Any]]:
    """The first lines of a table, column by column."""
    if _suffix(path) in {".parquet", ".pq"}:
        from efemb.data.readers.parquet import ParquetSource, require_pyarrow

        header = ParquetSource(path).header  # a damaged file is told there
        parquet = require_pyarrow(f"reading {path}").parquet.ParquetFile(path)
        batch = next(parquet.iter_batches(batch_size=SAMPLE), None)
        return {name: [] for name in header} if batch is None else dict(batch.to_pydict())
    plain = CsvSource(path, None, encoding)
    records: Any = plain.records(BadLines(plain.name, plain.unit), lambda _: None)
    with closing(records):
        lines: list[list[str]] = next(records, ([], []))[1][:SAMPLE]
    return {name: [row[place] for row in lines] for place, name in enumerate(plain.header)}


def _transactions(
    sample: Mapping[str, list[Any]], basket: str | None, item: str | None, count: str | None
) -> Guess | None:
    """Transactions, if there are columns for baskets and items."""
    basket = basket or _named(sample, BASKET, _differs, but=(item, count))
    basket = basket or _named(sample, BASKET, but=(item, count))
    item = item or _named(sample, ITEM, lambda values: not _is_number(values), but=(basket, count))
    item = item or _named(sample, ITEM, but=(basket, count))
    if basket is None and item is not None:
        basket = _named(sample, USER, but=(item, count))
    if basket is None or item is None:
        return None
    if count is None:
        count = _named(sample, COUNT, _holds_numbers, but=(basket, item))
    elif count == "none":
        count = None
    why = f"baskets in {basket!r}, items in {item!r}, "
    why += "each line counts 1" if count is None else f"counts in {count!r}"
    return Guess("baskets", why, basket, item, count)


def _named(
    sample: Mapping[str, list[Any]],
    words: Sequence[str],
    suits: Any = lambda values: True,
    but: tuple[str | None, ...] = (),
) -> str | None:
    """The column whose name holds the most telling word."""
    for word in words:
        for name, values in sample.items():
            parts = [part.lower() for part in _WORDS.findall(name)]
            if name not in but and any(part.startswith(word) for part in parts) and suits(values):
                return name
    return None


def _differs(values: Sequence[Any]) -> bool:
    return len(set(values)) > 1


def _is_number(values: Sequence[Any]) -> bool:
    """Whether the values that are there are numbers."""
    there = [value for value in values if value not in ("", None)]
    try:
        return bool(np.isfinite(np.array(there, dtype=np.float64)).any())
    except (TypeError, ValueError):
        return False


def _holds_numbers(values: Sequence[Any]) -> bool:
    """Whether nearly all values that are there are numbers: real files have some dirt."""
    there = [value for value in values if value not in ("", None)]
    return bool(there) and sum(_is_number([one]) for one in there) > CLEAN * len(there)
