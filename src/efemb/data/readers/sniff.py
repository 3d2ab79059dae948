"""What the lines of a text file are: prose, a table, baskets of items, or numbers."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from efemb.data.readers.column_roles import is_number
from efemb.data.readers.dialect import SEPARATORS, huge_fields
from efemb.data.readers.input_file import UNREADABLE, check_encoding, open_bytes
from efemb.data.readers.item_lists import split_line

LineKind = Literal["prose", "table", "baskets", "numbers", "unsure"]
_LOOKED_AT = 200
_LONGEST = 1 << 16  # bytes of a line to look at
_FEW = 3  # lines that are too few to see a pattern
_MOST_WORDS = 4  # of the name of an item, on average
_REPEATED = 0.5  # share of cells that must have occurred before


@dataclass(frozen=True)
class Sniffed:
    """The kind of the lines, what separates their fields, and why."""

    kind: LineKind
    separator: str = " "
    why: str = ""


def first_lines(path: Path, encoding: str) -> list[str]:
    """The first lines that are not blank, without their ends; bytes of another encoding count."""
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
    what = f"cells separated by {separator!r}, a different number in each line"
    if short and repeated >= _REPEATED:
        return Sniffed("baskets", separator, f"each line is a basket: {what}")
    return Sniffed("unsure", separator, f"lines of {what}") if short else Sniffed("prose")


def _is_punctuation(lines: Sequence[str], separator: str) -> bool:
    """Whether most separators are followed by a space or end the line, as in sentences."""
    text = "\n".join(lines) + "\n"
    total = text.count(separator)
    loose = text.count(separator + " ") + text.count(separator + "\n")
    return separator in ",;" and 2 * loose > total


def _are_whole(cells: Sequence[str]) -> bool:
    return all(cell.isdigit() for cell in cells)
