"""Guesses: the contents of a file, the roles of its columns, and the family of its numbers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from efemb._files import expand_home
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
from efemb.data.readers.input_file import existing_file, inner_suffix, refuse_foreign
from efemb.data.readers.several import find_files
from efemb.data.readers.sniff import first_lines, sniff
from efemb.errors import DataError, ParameterError, suggest

Kind = Literal["baskets", "matrix", "text", "recording"]
LAYOUTS = ("table", "lines", "matrix", "text")
ARRAYS, PARQUET = {".npy", ".npz"}, {".parquet", ".pq"}
TABLES = {".csv", ".tsv", ".tab", *PARQUET}


@dataclass(frozen=True)
class Guess:
    """What a file seems to hold, and why, in words.

    basket, item, count : names of columns, for transactions only
    row_labels : name of the first column of a matrix, if it names the rows
    lines : whether each line is a basket;  separator : of its items
    """

    kind: Kind
    why: str
    basket: str | tuple[str, ...] | None = None
    item: str | None = None
    count: str | None = None
    row_labels: str | None = None
    lines: bool = False
    separator: str | None = None


def guess_contents(
    path: Any,
    *,
    basket: str | Sequence[str] | None = None,
    item: str | None = None,
    count: str | None = None,
    encoding: str = "utf-8",
    layout: str | None = None,
    header: Sequence[str] | None = None,
) -> Guess:
    """Infer the contents of a file from its first lines, and from its name where they are bytes.

    Parameters
    ----------
    path : path or list of paths
        Of several files (also a pattern, or a folder of Parquet files), the first is looked at.
    basket, item, count : str, optional
        Columns that you specify are not inferred; `count="none"` counts each line as 1, and
        several columns may identify a basket.
    encoding : str
        Text encoding.
    layout : {"table", "lines", "matrix", "text"}, optional
        What the file holds: a table with one line per item of a basket, a basket per line, a
        matrix of numbers, or a document per line.
    header : sequence of str, optional
        Names of the columns of a table that has none.

    Raises
    ------
    DataError
        If a file may hold several things; the message names the options that decide.
    """
    if layout is not None and layout not in LAYOUTS:
        raise ParameterError(f"layout={layout!r} is unknown; {suggest(layout, LAYOUTS)}")
    if is_suite2p(path):
        return Guess("recording", "a folder of suite2p")
    file = existing_file((find_files(path) or [path])[0])
    refuse_foreign(file)
    suffix = inner_suffix(file)
    if suffix in ARRAYS:
        return Guess("matrix", f"{suffix} files hold arrays")
    keys = () if basket is None else (basket,) if isinstance(basket, str) else tuple(basket)
    named = {"basket": keys[0] if keys else None, "item": item, "count": count}
    if layout is None and not any(named.values()) and header is None and suffix not in PARQUET:
        guess = _from_lines(file, encoding, suffix in TABLES)
        if guess is not None:
            return guess
    if layout == "text":
        return Guess("text", "each line is a document")
    if layout == "lines":
        return Guess("baskets", "each line is a basket", lines=True)
    sample = _sample(file, encoding, header)
    for index in index_names(list(sample), [name for name in named.values() if name is not None]):
        del sample[index]
    for name in (*named.values(), *keys):
        if name is not None and name not in (*sample, "none"):
            raise DataError(f"{file} has no column {name!r}; {suggest(name, sample)}")
    return _from_table(file, sample, named, keys, layout)


def _from_table(
    file: Path,
    sample: dict[str, list[Any]],
    named: dict[str, str | None],
    keys: tuple[str, ...],
    layout: str | None,
) -> Guess:
    """Transactions or a matrix, by the names of the columns and their first cells."""
    columns = None if layout == "matrix" else _transactions(sample, named, file)
    if columns is not None:
        if named["count"] is None:
            _check_count(file, sample, columns)
        return _describe(keys if len(keys) > 1 else columns[0], columns[1], columns[2])
    may_be_matrix = not any(named.values()) and layout != "table"
    numbers = _all_numbers(sample)
    if may_be_matrix and numbers and not _counts_rows(sample):
        return Guess("matrix", "every column holds numbers")
    if may_be_matrix and (numbers or _names_rows(sample)):
        first = next(iter(sample))
        why = f"rows named by {first!r}, all other columns hold numbers"
        return Guess("matrix", why, row_labels=first)
    raise DataError(
        f"{file}: which columns are basket and item? Name them with basket= and item= "
        f"(--basket and --item); there are {', '.join(sample)}{_headless(sample)}"
    )


def is_suite2p(path: Any) -> bool:
    """Whether a path is a folder that suite2p wrote."""
    if not isinstance(path, str | os.PathLike) or not os.path.isdir(expand_home(path)):
        return False
    folder = expand_home(path)
    return (folder / "F.npy").is_file() or (folder / "plane0" / "F.npy").is_file()


def _from_lines(file: Path, encoding: str, is_table: bool) -> Guess | None:
    """What the lines of a text file are; None if it is a table with a header.

    A file whose name says that it is a table is one, unless every line is a basket.
    """
    lines = first_lines(file, encoding)
    sniffed = sniff(lines)
    if sniffed.kind == "baskets" and not _has_roles(file, encoding):
        return Guess("baskets", sniffed.why, lines=True, separator=sniffed.separator)
    if is_table:
        return None
    if lines and len(lines[0].split()) > 1 and is_number(lines[0].split()) and "." in lines[0]:
        raise DataError(
            f"{file} holds numbers, not words: save them with numpy.save, or as a .csv file"
        )
    if sniffed.kind in ("numbers", "unsure"):
        raise DataError(
            f"{file} holds {sniffed.why}: what are they? --layout lines reads a basket per line, "
            "--layout matrix a row per line, --layout text a document per line, and --header "
            "user,item,rating names the columns of a table with one line per item of a basket"
        )
    if sniffed.kind == "table" or "\t" in "".join(lines[:1]):
        if _has_roles(file, encoding):
            return None
        if sniffed.kind == "table" and sniffed.separator != ",":
            raise DataError(
                f"{file} looks like a table (fields separated by {sniffed.separator!r}), whose "
                "columns have no known names: name them with --basket and --item, read each row "
                "as numbers with --layout matrix, or each line as a document with --layout text"
            )
    return Guess("text", "each line is a document")


def _has_roles(file: Path, encoding: str) -> bool:
    """Whether the first line names columns of baskets (or users) and items."""
    try:
        sample = _sample(file, encoding, None)
    except DataError:  # it is plain text
        return False
    sure = {role: candidates(sample, role, ())["sure"] for role in (BASKET, USER, ITEM)}
    return bool(any(sample.values()) and sure[ITEM] and (sure[BASKET] or sure[USER]))


def _check_count(file: Path, sample: Sample, columns: tuple[str, str, str | None]) -> None:
    """Reject a column that is named like counts but does not hold numbers."""
    passed_over = not_counts(sample, columns[:2]) if columns[2] is None else None
    if passed_over is not None:
        name, cell = passed_over
        raise DataError(
            f"{file}: column {name!r} is named like counts but holds {str(cell)[:40]!r}, which is "
            "not a number; correct it, name the column of counts with count= (--count), or count "
            'each line as 1 with count="none" (--count none)'
        )


def _headless(sample: Sample) -> str:
    """A hint if the first line looks like all others."""
    like_others = [name for name, values in sample.items() if name in map(str, values)]
    if not like_others and not any(is_number([name]) for name in sample):
        return ""
    return ". The first line must name the columns; each other line is one item of one basket"


def _describe(basket: str | tuple[str, ...], item: str, count: str | None) -> Guess:
    names = repr(basket) if isinstance(basket, str) else " and ".join(map(repr, basket))
    why = f"baskets in {names}, items in {item!r}, "
    why += "each line counts 1" if count is None else f"counts in {count!r}"
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


def _sample(path: Path, encoding: str, header: Sequence[str] | None) -> dict[str, list[Any]]:
    """The first lines of a table, column by column."""
    if inner_suffix(path) in PARQUET:
        columns = ParquetSource(path).first(SAMPLE)
        if not columns:
            raise DataError(f"{path} has no columns")
        return {name: list(map(_cell, cells)) for name, cells in columns.items()}
    plain = CsvSource(path, None, encoding, header)
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
