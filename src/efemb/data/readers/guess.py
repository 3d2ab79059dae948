"""Guesses: the contents of a file, the roles of its columns, and the family of its numbers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from efemb.data.dataset import Dataset
from efemb.data.readers.arrow import ParquetSource
from efemb.data.readers.column_roles import (
    BASKET,
    COUNT,
    ITEM,
    USER,
    Role,
    Sample,
    candidates,
    index_names,
    is_number,
    known,
    names_rows,
    not_counts,
    rivals,
)
from efemb.data.readers.csv import SAMPLE, CsvSource
from efemb.data.readers.input_file import (
    UNREADABLE,
    check_encoding,
    existing_file,
    inner_suffix,
    open_bytes,
    refuse_foreign,
)
from efemb.errors import DataError, suggest

Kind = Literal["baskets", "matrix", "text"]
_FIRST_LINE = 1 << 16  # bytes of it to look at
ARRAYS, TABLES = {".npy", ".npz"}, {".csv", ".tsv", ".tab", ".parquet", ".pq"}


@dataclass(frozen=True)
class Guess:
    """What a file seems to hold, and why, in words.

    basket, item, count : names of columns, for transactions only
    row_labels : name of the first column of a matrix, if it names the rows
    """

    kind: Kind
    why: str
    basket: str | None = None
    item: str | None = None
    count: str | None = None
    row_labels: str | None = None


def guess_contents(
    path: str | os.PathLike[str],
    *,
    basket: str | None = None,
    item: str | None = None,
    count: str | None = None,
    encoding: str = "utf-8",
) -> Guess:
    """Infer the contents of a file from its name and its first lines.

    Columns that you specify are not inferred; `count="none"` counts each line as 1.

    Raises
    ------
    DataError
        If a table is neither transactions nor numeric; the message lists its columns.
    """
    file = existing_file(path)
    refuse_foreign(file)
    suffix = inner_suffix(file)
    if suffix in ARRAYS:
        return Guess("matrix", f"{suffix} files hold arrays")
    named = {"basket": basket, "item": item, "count": count}
    if suffix not in TABLES and not any(named.values()):
        return _table_in_text(file, encoding) or Guess("text", "each line is a document")
    sample = _sample(file, encoding)
    for index in index_names(list(sample), [name for name in named.values() if name is not None]):
        del sample[index]
    for name in named.values():
        if name is not None and name not in (*sample, "none"):
            raise DataError(f"{file} has no column {name!r}; {suggest(name, sample)}")
    columns = _transactions(sample, named, file)
    if columns is not None:
        passed_over = None if count == "none" else not_counts(sample, columns[:2])
        return _describe(*columns, passed_over)
    numbers = _all_numbers(sample)
    if not any(named.values()) and numbers and not _counts_rows(sample):
        return Guess("matrix", "every column holds numbers")
    if not any(named.values()) and (numbers or _names_rows(sample)):
        first = next(iter(sample))
        why = f"rows named by {first!r}, all other columns hold numbers"
        return Guess("matrix", why, row_labels=first)
    raise DataError(
        f"{file}: which columns are basket and item? Name them with basket= and item= "
        f"(--basket and --item); there are {', '.join(sample)}{_headless(sample)}"
    )


def _table_in_text(file: Path, encoding: str) -> Guess | None:
    """Transactions that Excel saved as .txt, with tabs; numbers that NumPy saved are rejected."""
    with open_bytes(file) as stream, suppress(*UNREADABLE):
        first = stream.readline(_FIRST_LINE).decode(check_encoding(encoding), errors="replace")
        if len(first.split()) > 1 and is_number(first.split()) and "." in first:
            raise DataError(
                f"{file} holds numbers, not words: save them with numpy.save, or as a .csv file"
            )
        if "\t" in first:
            try:
                sample = _sample(file, encoding)
            except DataError:  # it is plain text
                return None
            sure = {role: candidates(sample, role, ())["sure"] for role in (BASKET, USER, ITEM)}
            if any(sample.values()) and sure[ITEM] and (sure[BASKET] or sure[USER]):
                columns = _transactions(sample, dict.fromkeys(("basket", "item", "count")), file)
                return (
                    None
                    if columns is None
                    else _describe(*columns, not_counts(sample, columns[:2]))
                )
    return None


def _headless(sample: Sample) -> str:
    """A hint if the first line looks like all others."""
    like_others = [name for name, values in sample.items() if name in map(str, values)]
    if not like_others and not any(is_number([name]) for name in sample):
        return ""
    return ". The first line must name the columns; each other line is one item of one basket"


def _describe(
    basket: str, item: str, count: str | None, passed_over: tuple[str, Any] | None
) -> Guess:
    why = f"baskets in {basket!r}, items in {item!r}, "
    why += "each line counts 1" if count is None else f"counts in {count!r}"
    if count is None and passed_over is not None:
        column, cell = passed_over
        why += f" (column {column!r} holds {str(cell)[:40]!r}, not a number)"
    return Guess("baskets", why, basket, item, count)


def guess_family(data: Dataset) -> tuple[str, str]:
    """Name of a family that suits the numbers, and why."""
    values = np.asarray(data.values.data if data.is_sparse else data.values)
    seen = values[np.isfinite(values)]
    if seen.size == 0 or (seen < 0).any():
        return "gaussian", "not every number is a count"
    if (seen != np.round(seen)).any():
        if data.is_sparse:  # baskets: absent items are zero, and quantities may be weights
            return "poisson", "quantities need not be whole numbers"
        return "gaussian", "not every number is a count"
    if seen.max(initial=0) <= 1:
        return "bernoulli", "every number is 0 or 1"
    return "poisson", "every number is a count"


def _sample(path: Path, encoding: str) -> dict[str, list[Any]]:
    """The first lines of a table, column by column."""
    if inner_suffix(path) in {".parquet", ".pq"}:
        columns = ParquetSource(path).first(SAMPLE)
        if not columns:
            raise DataError(f"{path} has no columns")
        return {name: list(map(_cell, cells)) for name, cells in columns.items()}
    plain = CsvSource(path, None, encoding)
    return {
        name: plain.change([place])([row[place] for row in plain.sample])
        for place, name in enumerate(plain.header)
    }


def _cell(value: Any) -> Any:
    """A cell as a scalar: lists are neither numbers nor labels."""
    return str(value) if isinstance(value, list | dict) else value


def _transactions(
    sample: Sample, named: Mapping[str, str | None], file: Path
) -> tuple[str, str, str | None] | None:
    """Columns of baskets, items and counts; None without one for baskets and one for items.

    A table of numbers may be a matrix, where only unambiguous names count.
    """
    basket, item, count = (named[role] for role in ("basket", "item", "count"))
    in_doubt = any(named.values()) or not _all_numbers(sample)
    baskets = _choices(sample, BASKET, basket, (item, count), in_doubt)
    items = _choices(sample, ITEM, item, (basket, count, *baskets[:1]), in_doubt)
    if not baskets and items:
        baskets = _choices(sample, USER, None, (item, count, *items[:1]), in_doubt)
    if not baskets or not items:
        return None
    if len(baskets) > 1 or len(items) > 1:
        raise _question(file, sample, {"basket": baskets, "item": items})
    if count is None:
        counts = _choices(sample, COUNT, None, (*baskets, *items), in_doubt)
        if len(counts) > 1:
            raise _question(file, sample, {"count": counts})
        return baskets[0], items[0], counts[0] if counts else None
    return baskets[0], items[0], None if count == "none" else count


def _choices(
    sample: Sample, role: Role, named: str | None, but: Sequence[str | None], in_doubt: bool
) -> list[str]:
    """The column for a role; several (or one twice) if the user has to choose."""
    if named is not None:
        return [named]
    by_fit = candidates(sample, role, but)
    if by_fit["sure"]:
        return [by_fit["sure"][0], *rivals(by_fit["sure"], sample, role)]
    return by_fit["perhaps"] * 2 if in_doubt else []


def _question(file: Path, sample: Sample, roles: Mapping[str, Sequence[str]]) -> DataError:
    asked = {role: list(dict.fromkeys(names)) for role, names in roles.items() if len(names) > 1}
    questions = [f"is {' or '.join(map(repr, names))} the {role}?" for role, names in asked.items()]
    options = " and ".join(f"{role}= (--{role})" for role in asked)
    none = '; "none" counts each line as 1' if "count" in asked else ""
    return DataError(
        f"{file}: {' '.join(questions)} Name it with {options}{none}; there are {', '.join(sample)}"
    )


def _all_numbers(sample: Sample) -> bool:
    filled = [values for values in sample.values() if known(values)]
    return bool(filled) and all(is_number(values) for values in filled)


def _counts_rows(sample: Sample) -> bool:
    """Whether the name of the first of several numeric columns says that it numbers the rows."""
    first = next(iter(sample))
    return names_rows(list(sample), sample[first])


def _names_rows(sample: Sample) -> bool:
    """Whether a first column of distinct texts is followed by numbers, as in a pivot table."""
    first, *others = sample
    names = known(sample[first])
    numbers = {name: sample[name] for name in others}
    different = len(names) == len(sample[first]) == len(set(map(str, names)))
    if not different or len(others) < 2 or not _all_numbers(numbers):
        return False
    # Order or product numbers mean transactions, and so does a first line like the others.
    coded = any(candidates(numbers, role, ())["sure"] for role in (BASKET, ITEM))
    return not coded and not all(name in map(str, sample[name]) for name in others)
