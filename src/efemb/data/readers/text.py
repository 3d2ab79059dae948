"""CSV and TSV with the standard library: the reader that knows every line number."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np

from efemb.data.readers.badlines import BadLines
from efemb.data.readers.encoding import checked_encoding, compressed, open_bytes, told
from efemb.data.readers.interning import Column
from efemb.data.readers.source import Advance, Batch, column_places
from efemb.errors import DataError, ParameterError

ROWS = 1 << 16
_TABS = {".tsv", ".tab"}
# A last record of our own: if it does not come back alone, a quote was never closed.
END = "\x00the end\x00"
_HUGE = 2**31 - 1


class CsvSource:
    """Lines of a separated-values file with a header."""

    unit = "line"
    knows_places = True

    def __init__(self, path: Path, separator: str | None, encoding: str) -> None:
        self.path = path
        self.name = str(path)
        self.size = 0 if compressed(path) else path.stat().st_size
        self.encoding = checked_encoding(encoding)
        self.separator = _checked_separator(path, separator)
        with told(path, self.encoding), self._records() as (records, _):
            self.header_line, self.header = next((line, row) for line, row in records if row)
        if self.header == [END]:
            raise DataError(f"{path} holds no text, not even a header")
        if self.header[-1].endswith(END):
            raise self._unclosed(self.header_line)
        self._check_separator()

    def batches(
        self, wanted: Sequence[str], numeric: Sequence[bool], bad: BadLines, advance: Advance
    ) -> Iterator[Batch]:
        """Yield the wanted columns; ragged lines are left out and noted."""
        places = column_places(wanted, self.header, self.name)
        for lines, rows in self.records(bad, advance):
            columns: list[Column] = [[row[place] for row in rows] for place in places]
            yield Batch(columns, np.array(lines, np.int64))

    def records(
        self, bad: BadLines, advance: Advance
    ) -> Iterator[tuple[list[int], list[list[str]]]]:
        """Yield (line numbers, records), up to 65,536 at a time, without the header."""
        width, told_bytes = len(self.header), 0
        lines: list[int] = []
        rows: list[list[str]] = []
        line, row = 0, self.header
        with told(self.path, self.encoding), self._records() as (records, raw):
            for line, row in records:
                if len(row) == width and row != [END]:
                    lines.append(line)
                    rows.append(row)
                elif row and not row[-1].endswith(END):
                    bad.leave_out(f"not {width} fields", line)
                if len(rows) == ROWS:
                    yield _without(self.header_line, lines, rows)
                    lines, rows = [], []
                    advance(raw.tell() - told_bytes)
                    told_bytes = raw.tell()
        if row != [END]:
            raise self._unclosed(line)
        yield _without(self.header_line, lines, rows)

    def _unclosed(self, line: int) -> DataError:
        return DataError(f"{self.path}: a quote opened in line {line} or below is never closed")

    @contextmanager
    def _records(self) -> Iterator[tuple[Iterator[tuple[int, list[str]]], IO[bytes]]]:
        """Numbered records, and the stream of bytes below them."""
        with open_bytes(self.path) as raw:
            text = io.TextIOWrapper(raw, encoding=self.encoding, newline="")
            yield self._numbered(chain(text, [END])), raw

    def _numbered(self, text: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
        """Yield each record with the line on which it starts."""
        reader = csv.reader(text, delimiter=self.separator)
        line = 1
        with _huge_fields():
            try:
                for row in reader:
                    yield line, row
                    line = reader.line_num + 1
            except csv.Error as error:
                raise DataError(f"{self.path}, line {line}: {error}") from error

    def _check_separator(self) -> None:
        """A header of one field that holds another separator was meant to be split there."""
        if len(self.header) == 1:
            for other in ",;\t|":
                if other != self.separator and other in self.header[0]:
                    raise DataError(
                        f"{self.path}: the header has one field, {self.header[0][:80]!r}; "
                        f"is it separated by {other!r}? Then pass separator={other!r}"
                    )


def _without(
    header_line: int, lines: list[int], rows: list[list[str]]
) -> tuple[list[int], list[list[str]]]:
    start = 1 if lines and lines[0] == header_line else 0
    return lines[start:], rows[start:]


@contextmanager
def _huge_fields() -> Iterator[None]:
    """Lift the csv module's limit of 131,072 characters a field; it is global, so put it back."""
    limit = csv.field_size_limit(_HUGE)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def _checked_separator(path: Path, separator: str | None) -> str:
    if separator is None:
        return "\t" if _TABS & {suffix.lower() for suffix in path.suffixes} else ","
    if len(separator) != 1 or separator in '"\r\n':
        raise ParameterError(f"separator={separator!r} must be one character, no quote or line end")
    return separator
