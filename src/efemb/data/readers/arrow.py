"""Sources that pyarrow reads: Parquet, Arrow tables, and CSV several times as fast as Python.

CSV that pyarrow refuses, and any problem that needs a line number, is left to the plain reader,
so that results and errors do not depend on whether pyarrow is installed.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from efemb._terminal import Advance
from efemb.data.readers.accumulators import Coded, Column
from efemb.data.readers.badlines import BadLines
from efemb.data.readers.csv import END, Change, CsvSource
from efemb.data.readers.input_file import UNREADABLE, open_bytes
from efemb.data.readers.source import Batch, NeedsTextReaderError, column_places
from efemb.errors import DataError, InputTypeError, MissingExtraError

_ROWS = 1 << 17
_BLOCK = 4 << 20
_BLANK = re.compile("\n(?=\n)")


def require_pyarrow(what: str) -> Any:
    """The pyarrow module, or an error that names the extra to install."""
    pyarrow = find_pyarrow()
    if pyarrow is None:
        raise MissingExtraError(f'{what} needs pyarrow: pip install "efemb[io]"')
    return pyarrow


def find_pyarrow() -> Any | None:
    """The pyarrow module with its readers; None if it is not installed."""
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        return None
    return pyarrow


class ParquetSource:
    """Rows of a Parquet file."""

    unit = "row"
    knows_places = True

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        with _explaining_damage(self.name) as pyarrow:
            self._file = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
            self.size = self._file.metadata.num_rows
            self.header = list(self._file.schema_arrow.names)

    def first(self, n_rows: int) -> dict[str, list[Any]]:
        """The first rows, column by column."""
        with _explaining_damage(self.name):
            batch = next(self._file.iter_batches(batch_size=n_rows), None)
            return {name: [] for name in self.header} if batch is None else dict(batch.to_pydict())

    def batches(
        self, wanted: Sequence[str], numeric: Sequence[bool], bad: BadLines, advance: Advance
    ) -> Iterator[Batch]:
        """Yield the wanted columns."""
        column_places(wanted, self.header, self.name)
        with _explaining_damage(self.name):
            parts = self._file.iter_batches(batch_size=_ROWS, columns=list(dict.fromkeys(wanted)))
            yield from arrow_batches(parts, wanted, numeric, advance)


def read_parquet(path: Path) -> Any:
    """A whole Parquet file as a pyarrow table."""
    with _explaining_damage(str(path)) as pyarrow:
        return pyarrow.parquet.ParquetFile(path, page_checksum_verification=True).read()


class ArrowTableSource:
    """Rows of a pyarrow table."""

    name = "the table"
    unit = "row"
    knows_places = True

    def __init__(self, table: Any) -> None:
        self._table = table
        self.size = table.num_rows
        self.header = list(table.column_names)

    def batches(
        self, wanted: Sequence[str], numeric: Sequence[bool], bad: BadLines, advance: Advance
    ) -> Iterator[Batch]:
        """Yield the wanted columns."""
        column_places(wanted, self.header, self.name)
        parts = self._table.select(list(dict.fromkeys(wanted))).to_batches(max_chunksize=_ROWS)
        yield from arrow_batches(parts, wanted, numeric, advance)


def arrow_batches(
    batches: Iterable[Any], wanted: Sequence[str], numeric: Sequence[bool], advance: Advance
) -> Iterator[Batch]:
    """The wanted columns of Arrow batches, with the numbers of their rows."""
    start = 0
    for batch in batches:
        columns = [
            _numbers(batch.column(name), name) if is_count else _labels(batch.column(name), name)
            for name, is_count in zip(wanted, numeric, strict=True)
        ]
        yield Batch(columns, np.arange(start, start + len(batch), dtype=np.int64))
        start += len(batch)
        advance(len(batch))


def encode_dictionary(array: Any) -> Coded:
    """A pyarrow array as distinct cells and indices."""
    encoded = array.dictionary_encode()
    # Other writers may use unsigned indices.
    indices = encoded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    return Coded(encoded.dictionary.to_pylist(), indices)


def _labels(array: Any, name: str) -> Column:
    pa = require_pyarrow("the table")
    if pa.types.is_nested(array.type):
        raise InputTypeError(f"column {name!r} holds {array.type}, not labels")
    if pa.types.is_null(array.type):
        return [None] * len(array)
    if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        # Old writers store text without marking it as text.
        try:
            array = array.cast(pa.large_string())
        except pa.ArrowInvalid as error:
            raise InputTypeError(f"column {name!r} holds {array.type}, not text") from error
    return encode_dictionary(array)


def _numbers(array: Any, name: str) -> Column:
    pa = require_pyarrow("the table")
    kind = array.type
    if pa.types.is_boolean(kind):
        array, kind = array.cast(pa.int8()), pa.int8()
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers: Column = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return numbers
    return _labels(array, name)


@contextmanager
def _explaining_damage(name: str) -> Iterator[Any]:
    """The pyarrow module; what it raises for a damaged file becomes a `DataError`."""
    pyarrow = require_pyarrow(f"reading {name}")
    try:
        yield pyarrow
    except (pyarrow.ArrowException, OSError, UnicodeError) as error:  # names or labels not UTF-8
        text = " ".join(str(error).split())
        raise DataError(
            f"{name} is not a complete Parquet file ({text:.200}); copy or export it again"
        ) from error


class ArrowCsvSource:
    """The file of a `CsvSource`, read by pyarrow."""

    unit = "line"
    knows_places = False

    def __init__(self, plain: CsvSource) -> None:
        self._plain = plain
        self._pyarrow = require_pyarrow(f"reading {plain.name}")
        self.name = plain.name
        self.size = plain.size

    def batches(
        self, wanted: Sequence[str], numeric: Sequence[bool], bad: BadLines, advance: Advance
    ) -> Iterator[Batch]:
        """Yield the wanted columns, or leave the file to the plain reader."""
        places = column_places(wanted, self._plain.header, self.name)
        if self._plain.header_line != 1:
            raise NeedsTextReaderError("lines before the header")
        if not self._plain.separator.isascii():
            raise NeedsTextReaderError("pyarrow needs a separator of one byte")
        try:
            yield from self._batches(places, self._plain.changes(places, numeric), advance)
        except (self._pyarrow.ArrowException, UnicodeError, *UNREADABLE) as error:
            raise NeedsTextReaderError(str(error)) from error

    def _batches(
        self, places: list[int], changes: list[Change], advance: Advance
    ) -> Iterator[Batch]:
        names = [f"c{place}" for place in range(len(self._plain.header))]
        include = [names[place] for place in places]
        last = names[-1]
        ended, n_records = False, 1  # the header
        with open_bytes(self._plain.path) as raw:
            stream = _Utf8(raw, self._plain, advance)
            for batch in self._open(stream, names, list(dict.fromkeys([*include, last]))):
                end = batch.column(last)
                ended = bool(len(end)) and end[-1].as_py() == END
                records = batch.slice(0, len(batch) - 1) if ended else batch
                n_records += len(records)
                if len(records):
                    coded_columns = [encode_dictionary(records.column(name)) for name in include]
                    columns: list[Column] = [
                        Coded(change(list(cells)), codes)
                        for (cells, codes), change in zip(coded_columns, changes, strict=True)
                    ]
                    yield Batch(columns, np.full(len(records), -1, np.int64))
        if not ended:
            raise NeedsTextReaderError("a quote is not closed")
        if n_records != stream.lines.n_filled:
            raise NeedsTextReaderError("a record spans several lines: is its quote intended?")

    def _open(self, stream: Any, names: list[str], include: list[str]) -> Any:
        csv = self._pyarrow.csv
        return csv.open_csv(
            stream,
            read_options=csv.ReadOptions(
                column_names=names, skip_rows_after_names=1, block_size=_BLOCK, use_threads=False
            ),
            parse_options=csv.ParseOptions(
                delimiter=self._plain.separator, newlines_in_values=True
            ),
            convert_options=csv.ConvertOptions(
                include_columns=include,
                column_types=dict.fromkeys(include, self._pyarrow.string()),
                strings_can_be_null=False,
                check_utf8=False,  # the stream below has checked it
            ),
        )


class _Utf8(io.RawIOBase):
    """The file as valid UTF-8, whatever its encoding, followed by an end record."""

    def __init__(self, raw: Any, plain: CsvSource, advance: Advance) -> None:
        self._raw = raw
        self._decoder: Any = codecs.getincrementaldecoder(plain.encoding)()
        self._end = "\n" + plain.separator.join([END] * len(plain.header)) + "\n"
        self._advance = advance
        self.lines = _FilledLines()
        self._ready = b""
        self._done = False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; empty only at the end."""
        while not self._ready and not self._done:
            chunk = self._raw.read(_BLOCK)
            self._advance(len(chunk))
            text = self._decoder.decode(chunk, final=not chunk)
            self.lines.add(text)
            self._done = not chunk
            self._ready = (text + self._end if self._done else text).encode()
        size = len(self._ready) if size < 0 else size
        ready, self._ready = self._ready[:size], self._ready[size:]
        return ready


class _FilledLines:
    """Counts the lines of a text that are not blank."""

    def __init__(self) -> None:
        self._ended = 0
        self._begun = False

    @property
    def n_filled(self) -> int:
        return self._ended + self._begun

    def add(self, text: str) -> None:
        """Process the next piece of text."""
        if not text:
            return
        if "\r" in text:  # half of a split line end is a blank line, which is not counted
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        blank = int(text[0] == "\n" and not self._begun)
        blank += len(_BLANK.findall(text)) if "\n\n" in text else 0
        self._ended += text.count("\n") - blank
        self._begun = text[-1] != "\n"
