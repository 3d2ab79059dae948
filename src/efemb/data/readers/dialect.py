"""The dialect of a text table: its field separator, and whether numbers have decimal commas."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from efemb.data.vocabulary import shorten
from efemb.errors import ParameterError

SEPARATORS = ",;\t|"
# Cells that mean a missing value.
MISSING = frozenset({"", "nan", "na", "n/a", "<na>", "null", "none"})
_TABS = {".tsv", ".tab"}
_LOOKED_AT = 50
# Characters of a field; more is damage, or an attack on the memory.
_HUGE = 1 << 24
# Excel may write the separator above the header.
_TOLD = re.compile(r"\"?sep=(.)\"?\r?\n?", re.IGNORECASE)
_OTHER_POINT = "decimal point: "  # before a number in a column with decimal commas
_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)?,\d+([eE][+-]?\d+)?", re.ASCII)
# 1,234 is either 1.234 or 1234.
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?", re.ASCII)
_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?", re.ASCII)


def check_separator(separator: str) -> str:
    """Check the separator that the caller passed."""
    usable = isinstance(separator, str) and len(separator) == 1 and separator != '"'
    if not usable or (separator < " " and separator != "\t"):
        raise ParameterError(
            f"separator={separator!r} must be one character other than a quote or newline"
        )
    return separator


def excel_separator(first: str) -> str | None:
    """The separator in Excel's line `sep=;`, if the first line is one."""
    match = _TOLD.fullmatch(first)
    return match[1] if match else None


def guess_separator(path: Path, lines: Iterable[str]) -> str:
    """The separator that splits the first lines into the same, largest number of fields.

    >>> guess_separator(Path("a.csv"), ["trip;item;weight", "1;milk;1,5"])
    ';'
    """
    usual = "\t" if _TABS & {suffix.lower() for suffix in path.suffixes} else ","
    looked_at = list(islice(lines, _LOOKED_AT))
    choices = [usual, *(other for other in SEPARATORS if other != usual)]
    widths = {choice: _widths(looked_at, choice) for choice in choices}
    even = {
        choice: field_counts[0]
        for choice, field_counts in widths.items()
        if len(set(field_counts)) == 1
    }
    best = max(even, key=even.__getitem__, default=usual)  # in a tie, the usual one
    if even.get(best, 0) > 1:
        return best
    if widths[usual][:1] > [1]:
        return usual
    return max(choices, key=lambda choice: widths[choice][:1])


def _widths(lines: list[str], separator: str) -> list[int]:
    """Number of fields of each record, without blank lines."""
    with huge_fields():
        try:
            rows = [len(row) for row in csv.reader(lines, delimiter=separator) if row]
        except csv.Error:
            return [0]
    # The last record may continue below.
    return rows[:-1] if len(lines) == _LOOKED_AT and len(rows) > 1 else rows


@contextmanager
def huge_fields() -> Iterator[None]:
    """Lift the csv module's global limit of 131,072 characters per field, and restore it later."""
    limit = csv.field_size_limit(_HUGE)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def has_decimal_commas(cells: Iterable[str]) -> bool:
    """Whether numbers have decimal commas: some cells are unambiguous, and none has a point.

    >>> has_decimal_commas(["1,5", "1,234"]), has_decimal_commas(["1,234"])
    (True, False)
    """
    only_commas = False
    for cell in map(str.strip, cells):
        if "." in cell and _POINT.fullmatch(cell):
            return False
        if "," in cell and not only_commas:
            only_commas = bool(_COMMA.fullmatch(cell)) and not _EITHER.fullmatch(cell)
    return only_commas


def has_thousands(cells: Iterable[str]) -> bool:
    """Whether commas separate thousands: 1,234,567 or 1,234.5 is unambiguous, 1,234 is not.

    >>> has_thousands(["1,234", "12,345.6"]), has_thousands(["1,234"])
    (True, False)
    """
    grouped = [cell for cell in map(str.strip, cells) if _THOUSANDS.fullmatch(cell)]
    return any(not _EITHER.fullmatch(cell) for cell in grouped)


def drop_thousands(cells: Sequence[str]) -> list[str]:
    """Remove the commas that separate thousands.

    >>> drop_thousands(["1,200", "12,345.6", "7", "1,5"])
    ['1200', '12345.6', '7', '1,5']
    """
    return [
        cell.replace(",", "") if "," in cell and _THOUSANDS.fullmatch(cell.strip()) else cell
        for cell in cells
    ]


def use_decimal_points(cells: Sequence[str]) -> list[str]:
    """Replace decimal commas by points; a number that has a point already becomes invalid.

    >>> use_decimal_points(["1,5", "1.234,5", "7", "1.5"])
    ['1.5', '1234.5', '7', 'decimal point: 1.5']
    """
    return [_with_point(cell) for cell in cells]


def _with_point(cell: str) -> str:
    if _COMMA.fullmatch(cell.strip()):
        return cell.replace(".", "").replace(",", ".")
    return f"{_OTHER_POINT}{cell}" if "." in cell else cell


def explain_number(cell: object) -> str:
    """A cell that is not a number, and how to write it if it is one elsewhere; empty if missing.

    >>> print(explain_number("1.234,50"))
    '1.234,50' has a decimal comma: write 1234.50 (in pandas, read_csv(decimal=',', thousands='.'))
    >>> print(explain_number("two"), explain_number(""))
    'two'
    """
    text = str(cell).strip()
    if cell is None or text.lower() in MISSING:
        return ""
    if text.startswith(_OTHER_POINT):
        return f"{text.removeprefix(_OTHER_POINT)!r} has a point, but other cells a decimal comma"
    shown, plain = shorten(text), text.replace(",", "")
    if _EITHER.fullmatch(text):
        return (
            f"{shown} has a comma: write {plain} or {_with_point(text)} (in pandas, "
            "read_csv(thousands=',') or read_csv(decimal=','))"
        )
    if _THOUSANDS.fullmatch(text):
        return f"{shown} has commas: write {plain} (in pandas, read_csv(thousands=','))"
    if _COMMA.fullmatch(text):
        return (
            f"{shown} has a decimal comma: write {_with_point(text)} (in pandas, "
            "read_csv(decimal=',', thousands='.'))"
        )
    return shown
