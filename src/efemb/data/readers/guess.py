"""Inference of what a file holds, from its first lines and the names of its columns."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from efemb._files import expand_home
from efemb.data.readers.arrow import ParquetSource
from efemb.data.readers.column_roles import (
    BASKET,
    ITEM,
    USER,
    Sample,
    all_numbers,
    candidates,
    choose_columns,
    index_names,
    is_number,
    labels_rows,
    not_counts,
    numbers_rows,
)
from efemb.data.readers.csv import SAMPLE, CsvSource
from efemb.data.readers.dialect import SEPARATORS, huge_fields
from efemb.data.readers.input_file import (
    UNREADABLE,
    check_encoding,
    existing_file,
    inner_suffix,
    open_bytes,
    refuse_foreign,
)
from efemb.data.readers.item_lists import split_line
from efemb.data.readers.several import find_files
from efemb.errors import DataError, ParameterError, suggest

Kind = Literal["baskets", "matrix", "text", "recording"]
LAYOUTS = ("table", "lines", "matrix", "text")
ARRAYS, PARQUET = {".npy", ".npz"}, {".parquet", ".pq"}
TABLES = {".csv", ".tsv", ".tab", *PARQUET}
LineKind = Literal["prose", "table", "baskets", "numbers", "unsure"]
_LOOKED_AT = 200
_LONGEST = 1 << 16  # bytes of a line that are examined
_FEW = 3  # lines, too few to recognize a pattern
_MOST_WORDS = 4  # in the name of an item, on average
_REPEATED = 0.5  # minimum share of cells that occurred before


@dataclass(frozen=True)
class Guess:
    """The likely contents of a file, and the reason in words.

    basket, item, count : names of columns, for transactions only
    row_labels : name of the first column of a matrix, if it names the rows
    customer : name of the column that seems to identify the customer, if it is not the basket
    lines : whether each line is a basket;  separator : of its items
    """

    kind: Kind
    why: str
    basket: str | tuple[str, ...] | None = None
    item: str | None = None
    count: str | None = None
    customer: str | None = None
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
    """Infer the contents of a file from its first lines, and from its name if it is binary.

    Parameters
    ----------
    path : path or list of paths
        Of several files (also a pattern, or a folder of Parquet files), the first is examined.
    basket, item, count : str, optional
        Columns that you specify are not inferred; `count="none"` counts each line as 1, and
        several columns may identify a basket.
    encoding : str, default="utf-8"
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
    columns = None if layout == "matrix" else choose_columns(sample, named, file)
    if columns is not None:
        if named["count"] is None:
            _check_count(file, sample, columns)
        baskets = keys if len(keys) > 1 else columns[0]
        users = candidates(sample, USER, (*keys, *columns))["sure"]
        return _describe(baskets, columns[1], columns[2], users[0] if users else None)
    may_be_matrix = not any(named.values()) and layout != "table"
    numbers = all_numbers(sample)
    if may_be_matrix and numbers and not numbers_rows(sample):
        return Guess("matrix", "every column holds numbers")
    if may_be_matrix and (numbers or labels_rows(sample)):
        first = next(iter(sample))
        why = f"rows named by {first!r}, all other columns hold numbers"
        return Guess("matrix", why, row_labels=first)
    raise DataError(
        f"{file}: which columns are basket and item? Name them with basket= and item= "
        f"(--basket and --item); there are {', '.join(sample)}{_header_hint(sample)}"
    )


def is_suite2p(path: Any) -> bool:
    """Whether a path is a folder that suite2p wrote."""
    if not isinstance(path, str | os.PathLike) or not os.path.isdir(expand_home(path)):
        return False
    folder = expand_home(path)
    return (folder / "F.npy").is_file() or (folder / "plane0" / "F.npy").is_file()


def _from_lines(file: Path, encoding: str, is_table: bool) -> Guess | None:
    """The contents of a text file; None if it is a table with a header.

    A file whose name says that it is a table is treated as one, unless every line is a basket.
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
            f"{file} holds {sniffed.why}: name its layout. --layout lines reads a basket per line, "
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


def _header_hint(sample: Sample) -> str:
    """A hint if the lines are no table, or the first line looks like all others."""
    if len(sample) == 1:
        return (
            ". There is a single column: if each line is a document, read it as text (read_text, "
            '--layout text), if it is a basket, with layout="lines" (--layout lines)'
        )
    like_others = [name for name, values in sample.items() if name in map(str, values)]
    if not like_others and not any(is_number([name]) for name in sample):
        return ""
    return ". The first line must name the columns; each other line is one item of one basket"


def _describe(
    basket: str | tuple[str, ...], item: str, count: str | None, customer: str | None
) -> Guess:
    names = repr(basket) if isinstance(basket, str) else " and ".join(map(repr, basket))
    why = f"baskets in {names}, items in {item!r}, "
    why += "each line counts 1" if count is None else f"counts in {count!r}"
    return Guess("baskets", why, basket, item, count, customer)


def _sample(path: Path, encoding: str, header: Sequence[str] | None) -> dict[str, list[Any]]:
    """The first lines of a table, column by column."""
    if inner_suffix(path) in PARQUET:
        columns = ParquetSource(path).first(SAMPLE)
        if not columns:
            raise DataError(f"{path} has no columns")
        return {name: list(map(_cell, cells)) for name, cells in columns.items()}
    plain = CsvSource(path, None, encoding, header)
    return {
        name: plain.change([column])([row[column] for row in plain.sample])
        for column, name in enumerate(plain.header)
    }


def _cell(value: Any) -> Any:
    """A cell as a scalar: lists are neither numbers nor labels."""
    return str(value) if isinstance(value, list | dict) else value


@dataclass(frozen=True)
class Sniffed:
    """The kind of the lines, what separates their fields, and why."""

    kind: LineKind
    separator: str = " "
    why: str = ""


def first_lines(path: Path, encoding: str) -> list[str]:
    """The first nonblank lines, without line ends; undecodable bytes are replaced."""
    codec = check_encoding(encoding)
    lines: list[str] = []
    try:
        with open_bytes(path) as stream:
            for raw in islice(iter(lambda: stream.readline(_LONGEST), b""), 2 * _LOOKED_AT):
                lines += raw.decode(codec, errors="replace").splitlines()
    except UNREADABLE:  # the reader itself explains it
        pass
    # The last line may have been cut.
    return [line for line in lines[:_LOOKED_AT] if line.strip()]


def sniff(lines: Sequence[str]) -> Sniffed:
    r"""The kind of some lines.

    >>> sniff(["1 2 3", "2 5", "1 3 7 9"]).kind, sniff(["to be or not", "that is", "x"]).kind
    ('baskets', 'prose')
    >>> sniff(["196\t242\t3", "186\t302\t3", "22\t377\t1"]).kind
    'numbers'
    """
    if len(lines) < _FEW:
        return Sniffed("prose")
    separator = _even_separator(lines)
    if separator is not None:
        return _sniff_table(lines, separator)
    words = [line.split() for line in lines]
    if all(_are_whole(cells) for cells in words):
        return _sniff_numbers(words)
    return _sniff_items(lines)


def _even_separator(lines: Sequence[str]) -> str | None:
    """The separator that splits every line into the same number of fields, the largest."""
    widths = {}
    for sign in SEPARATORS:
        with huge_fields():
            try:
                counts = {len(row) for row in csv.reader(lines, delimiter=sign) if row}
            except csv.Error:
                continue
        if len(counts) == 1:
            widths[sign] = counts.pop()
    best = max(widths, key=widths.__getitem__, default=",")
    if widths.get(best, 0) < 2 or (best == "," and _is_punctuation(lines, best)):
        return None
    return best


def _sniff_table(lines: Sequence[str], separator: str) -> Sniffed:
    rows = [line.split(separator) for line in lines]
    if all(is_number(row) for row in rows[1:]):
        name = {"\t": "tabs"}.get(separator, repr(separator))
        if is_number(rows[0]):
            why = f"{len(rows[0])} columns of numbers, separated by {name}, without a header"
            return Sniffed("numbers", separator, why)
    return Sniffed("table", separator)


def _sniff_numbers(rows: Sequence[Sequence[str]]) -> Sniffed:
    """Lines of whole numbers separated by spaces."""
    if len({len(row) for row in rows}) == 1:
        if len(rows[0]) == 1:
            return Sniffed("prose")  # one number per line: its own error says that words are alone
        return Sniffed("numbers", " ", f"{len(rows[0])} columns of whole numbers, without a header")
    if all(len(set(row)) == len(row) for row in rows):
        return Sniffed("baskets", " ", "each line is a basket of distinct numbers")
    return Sniffed("unsure", " ", "lines of whole numbers, some of which are repeated")


def _sniff_items(lines: Sequence[str]) -> Sniffed:
    """Lines of different numbers of cells: names of items, or sentences."""
    counts = {sign: sum(sign in line for line in lines) for sign in SEPARATORS}
    separator = max(counts, key=counts.__getitem__)
    if counts[separator] < len(lines) / 2 or _is_punctuation(lines, separator):
        return Sniffed("prose")
    cells = [cell for line in lines for cell in split_line(line, separator)]
    repeated = 1 - len(set(cells)) / max(1, len(cells))
    short = np.mean([len(cell.split()) for cell in cells] or [9]) <= _MOST_WORDS
    description = f"cells separated by {separator!r}, a different number in each line"
    if short and repeated >= _REPEATED:
        return Sniffed("baskets", separator, f"each line is a basket: {description}")
    return Sniffed("unsure", separator, f"lines of {description}") if short else Sniffed("prose")


def _is_punctuation(lines: Sequence[str], separator: str) -> bool:
    """Whether most separators are followed by a space or end the line, as in sentences."""
    text = "\n".join(lines) + "\n"
    total = text.count(separator)
    loose = text.count(separator + " ") + text.count(separator + "\n")
    return separator in ",;" and 2 * loose > total


def _are_whole(cells: Sequence[str]) -> bool:
    return all(cell.isdigit() for cell in cells)
