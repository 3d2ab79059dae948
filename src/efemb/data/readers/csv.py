"""CSV and TSV with the standard library, which knows all line numbers."""

from __future__ import annotations

import csv
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import IO, TypeAlias

import numpy as np

from efemb._terminal import Advance
from efemb.data.readers.accumulators import Column
from efemb.data.readers.badlines import BadLines
from efemb.data.readers.dialect import (
    SEPARATORS,
    check_separator,
    drop_thousands,
    excel_separator,
    guess_separator,
    has_decimal_commas,
    has_thousands,
    huge_fields,
    use_decimal_points,
)
from efemb.data.readers.input_file import (
    check_encoding,
    explain_errors,
    is_compressed,
    line_ends,
    open_bytes,
    text_lines,
)
from efemb.data.readers.source import Batch, column_places
from efemb.errors import DataError

# Records per batch; more would not fit into the processor's cache.
ROWS = 1 << 12
SAMPLE, _CELLS, _LEAST = 2000, 200_000, 20  # records and cells to sample, at least 20 records
# Appended as a last record: if it does not come back alone, a quote was never closed.
END = "\x00\x01\x00"

_LINE_END = re.compile("\r\n|\r|\n")
Change: TypeAlias = Callable[[list[str]], list[str]]
_Chunk: TypeAlias = tuple[list[int], list[list[str]]]


class CsvSource:
    """Lines of a separated-values file with a header."""

    unit = "line"
    knows_places = True

    def __init__(
        self,
        path: Path,
        separator: str | None,
        encoding: str,
        header: Sequence[str] | None = None,
    ) -> None:
        self.path = path
        self.name = str(path)
        self.size = 0 if is_compressed(path) else path.stat().st_size
        self.encoding = check_encoding(encoding)
        self.header: list[str] = []
        with explain_errors(path, self.encoding):
            self.separator, above = self._separator(separator)
            sentence = r"(?=\S)" if self.separator in ",;" else ""
            self._parting = re.compile(re.escape(self.separator) + sentence)
            with self._chunks(1) as (chunks, _):
                records = ((n[0], rows[0]) for n, rows in chunks if rows[0])
                if header is None:
                    self.header_line, self.header = next(islice(records, above, None))
                else:  # the first line is data
                    self.header_line, self.header = above, list(header)
                rows = (row for _, row in islice(records, SAMPLE))
                self.sample = _sample(rows, len(self.header))
        if self.header == [END]:
            raise DataError(f"{path} is empty: it does not even have a header")
        if header is not None:
            self._check_width()
        if self.header[-1].endswith(END):
            raise self._quote_error(self.header_line)
        if separator is not None:
            self._check_separator()
        # A header such as `order ; item` has spaces that users omit when naming a column.
        self.header = [name.strip() for name in self.header]

    def _separator(self, separator: str | None) -> tuple[str, int]:
        """The field separator, and the number of lines above the header."""
        with open_bytes(self.path) as raw:
            text = text_lines(raw, self.encoding, self.path)
            lines = (line for line in text if line.strip("\r\n"))
            first = next(lines, "")
            named = excel_separator(first)
            if separator is not None:
                return check_separator(separator), int(named is not None)
            if named is not None:
                return named, 1
            return guess_separator(self.path, chain([first], lines)), 0

    def change(self, places: Sequence[int]) -> Change:
        """How to convert the numbers of columns at `places`.

        Decimal commas become points, and separators of thousands are removed. In a table that is
        separated by commas, a comma within a number can only separate thousands.
        """
        cells = [row[place] for row in self.sample for place in places]
        if self.separator != "," and has_decimal_commas(cells):
            return use_decimal_points
        groups = self.separator == "," or has_thousands(cells)
        return drop_thousands if groups else list

    def changes(self, places: Sequence[int], numeric: Sequence[bool]) -> list[Change]:
        """How to convert the cells of each column."""
        pairs = zip(places, numeric, strict=True)
        return [self.change([place]) if is_number else list for place, is_number in pairs]

    def batches(
        self, wanted: Sequence[str], numeric: Sequence[bool], bad: BadLines, advance: Advance
    ) -> Iterator[Batch]:
        """Yield the wanted columns; ragged lines are skipped and recorded."""
        places = column_places(wanted, self.header, self.name)
        changes = self.changes(places, numeric)
        for lines, rows in self.records(bad, advance):
            columns: list[Column] = [
                change([row[place] for row in rows])
                for place, change in zip(places, changes, strict=True)
            ]
            yield Batch(columns, np.array(lines, np.int64))

    def records(
        self, bad: BadLines, advance: Advance
    ) -> Iterator[tuple[list[int], list[list[str]]]]:
        """Yield (line numbers, records) in batches of a few thousand, without the header."""
        width, seen_bytes, last = len(self.header), 0, (0, self.header)
        with explain_errors(self.path, self.encoding), self._chunks() as (chunks, raw):
            for all_lines, all_rows in chunks:
                last = (all_lines[-1], all_rows[-1])
                below = bisect_right(all_lines, self.header_line)
                lines, rows = all_lines[below:], all_rows[below:]
                if set(map(len, rows)) - {width} or last[1] == [END]:
                    lines, rows = _regular(lines, rows, width, bad)
                if rows:
                    yield lines, rows
                advance(raw.tell() - seen_bytes)
                seen_bytes = raw.tell()
        if last[1] != [END]:
            raise self._quote_error(last[0])

    def _quote_error(self, line: int) -> DataError:
        return DataError(f"{self.path}: a quote opened in line {line} or below is never closed")

    @contextmanager
    def _chunks(self, size: int = ROWS) -> Iterator[tuple[Iterator[_Chunk], IO[bytes]]]:
        """Numbered records in chunks, and the stream of bytes below them."""
        with open_bytes(self.path) as raw:
            text = text_lines(raw, self.encoding, self.path)
            yield self._number_records(chain(text, [END]), size), raw

    def _number_records(self, text: Iterable[str], size: int) -> Iterator[_Chunk]:
        """Yield records with the lines on which they start."""
        reader = csv.reader(text, delimiter=self.separator)
        while True:
            start = reader.line_num + 1
            rows: list[list[str]] = []
            try:
                with huge_fields():
                    rows.extend(islice(reader, size))
            except csv.Error as error:
                raise DataError(f"{self.path}, line {reader.line_num}: {error}") from error
            if not rows:
                return
            lines = _starts(start, reader.line_num, rows)
            if reader.line_num - start + 1 != len(rows):
                self._check_quotes(lines, rows)
            yield lines, rows

    def _check_quotes(self, lines: list[int], rows: list[list[str]]) -> None:
        """Reject records that span lines which look like records themselves."""
        for line, row in zip(lines, rows, strict=True):
            n_lines = 1 + sum(map(line_ends, row))
            if n_lines > 1 and END not in row[-1] and self._swallows_lines(row):
                raise DataError(
                    f"{self.path}: a quote opened in line {line} spans {n_lines - 1:,} further "
                    'line(s); a quote within a cell is doubled, as in "12"" pizza"'
                )

    def _swallows_lines(self, row: list[str]) -> bool:
        width = len(self.header) or len(row)  # for the header, its own width
        if len(row) != width:
            return True
        for column, cell in enumerate(row):
            # A comma before a space or at the end of a line is punctuation.
            sizes = [len(self._parting.findall(line)) + 1 for line in _LINE_END.split(cell)]
            sizes[0] += column
            sizes[-1] += width - column - 1
            if len(sizes) > 1 and set(sizes) == {width}:
                return True
        return False

    def _check_width(self) -> None:
        """Reject a list of column names whose length differs from the number of columns."""
        if not self.sample:
            raise DataError(
                f"{self.path}: no line has {len(self.header)} fields, the number of names in "
                f"header={self.header}"
            )

    def _check_separator(self) -> None:
        """Reject a header of one field that contains another separator."""
        if len(self.header) == 1:
            for other in SEPARATORS:
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
    """The records of the right width; ragged ones are recorded, blank lines and END skipped."""
    kept_lines, kept_rows = [], []
    for line, row in zip(lines, rows, strict=True):
        if len(row) == width and row != [END]:
            kept_lines.append(line)
            kept_rows.append(row)
        elif row and not row[-1].endswith(END):
            bad.leave_out(f"not {width} fields", line)
    return kept_lines, kept_rows


def _sample(rows: Iterable[list[str]], width: int) -> list[list[str]]:
    """The first records of the right width; fewer if they are wide."""
    n_records = max(_LEAST, _CELLS // width)
    return [row for row in islice(rows, n_records) if len(row) == width and row != [END]]
