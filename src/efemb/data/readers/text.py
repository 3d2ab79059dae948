"""CSV and TSV with the standard library: the reader that knows every line number."""

from __future__ import annotations

import csv
import io
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import IO, TypeAlias

import numpy as np

from efemb.data.readers.badlines import BadLines
from efemb.data.readers.encoding import checked_encoding, compressed, line_ends, open_bytes, told
from efemb.data.readers.interning import Column
from efemb.data.readers.source import Advance, Batch, column_places
from efemb.errors import DataError, ParameterError

# More records at a time would fall out of the processor's cache.
ROWS = 1 << 12
_TABS = {".tsv", ".tab"}
# A last record of our own: if it does not come back alone, a quote was never closed.
END = "\x00the end\x00"
_HUGE = 2**31 - 1

_Chunk: TypeAlias = tuple[list[int], list[list[str]]]


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
        with told(path, self.encoding), self._chunks(1) as (chunks, _):
            self.header_line, self.header = next((n[0], rows[0]) for n, rows in chunks if rows[0])
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
        """Yield (line numbers, records), some thousand at a time, without the header."""
        width, told_bytes, last = len(self.header), 0, (0, self.header)
        with told(self.path, self.encoding), self._chunks() as (chunks, raw):
            for all_lines, all_rows in chunks:
                last = (all_lines[-1], all_rows[-1])
                below = bisect_right(all_lines, self.header_line)
                lines, rows = all_lines[below:], all_rows[below:]
                if set(map(len, rows)) - {width} or last[1] == [END]:
                    lines, rows = _regular(lines, rows, width, bad)
                if rows:
                    yield lines, rows
                advance(raw.tell() - told_bytes)
                told_bytes = raw.tell()
        if last[1] != [END]:
            raise self._unclosed(last[0])

    def _unclosed(self, line: int) -> DataError:
        return DataError(f"{self.path}: a quote opened in line {line} or below is never closed")

    @contextmanager
    def _chunks(self, size: int = ROWS) -> Iterator[tuple[Iterator[_Chunk], IO[bytes]]]:
        """Numbered records in chunks, and the stream of bytes below them."""
        with open_bytes(self.path) as raw:
            text = io.TextIOWrapper(raw, encoding=self.encoding, newline="")
            yield self._numbered(chain(text, [END]), size), raw

    def _numbered(self, text: Iterable[str], size: int) -> Iterator[_Chunk]:
        """Yield records with the lines on which they start."""
        reader = csv.reader(text, delimiter=self.separator)
        while True:
            start = reader.line_num + 1
            rows: list[list[str]] = []
            try:
                with _huge_fields():
                    rows.extend(islice(reader, size))
            except csv.Error as error:
                raise DataError(f"{self.path}, line {reader.line_num}: {error}") from error
            if not rows:
                return
            yield _starts(start, reader.line_num, rows), rows

    def _check_separator(self) -> None:
        """A header of one field that holds another separator was meant to be split there."""
        if len(self.header) == 1:
            for other in ",;\t|":
                if other != self.separator and other in self.header[0]:
                    raise DataError(
                        f"{self.path}: the header has one field, {self.header[0][:80]!r}; "
                        f"is it separated by {other!r}? Then pass separator={other!r}"
                    )


def _starts(start: int, end: int, rows: list[list[str]]) -> list[int]:
    """Line on which each record starts, the first on `start`, the last ending on `end`."""
    if end - start + 1 == len(rows):
        return list(range(start, end + 1))
    spans = [1 + sum(map(line_ends, row)) for row in rows]
    return list(accumulate(spans[:-1], initial=start))


def _regular(
    lines: list[int], rows: list[list[str]], width: int, bad: BadLines
) -> tuple[list[int], list[list[str]]]:
    """The records of the right width; ragged ones are noted, blank lines and our end skipped."""
    kept_lines, kept_rows = [], []
    for line, row in zip(lines, rows, strict=True):
        if len(row) == width and row != [END]:
            kept_lines.append(line)
            kept_rows.append(row)
        elif row and not row[-1].endswith(END):
            bad.leave_out(f"not {width} fields", line)
    return kept_lines, kept_rows


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
