"""CSV and TSV through pyarrow: the same records as the plain reader, several times as fast.

Whatever pyarrow refuses, and whatever has to be told with a line number, goes back to the plain
reader, so that results and errors do not depend on whether pyarrow is there.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from efemb.data.readers.badlines import BadLines
from efemb.data.readers.encoding import UNREADABLE, open_bytes
from efemb.data.readers.interning import Coded, Column
from efemb.data.readers.parquet import coded
from efemb.data.readers.source import Advance, Batch, NeedsTextReaderError, column_places
from efemb.data.readers.text import END, Change, CsvSource

_BLOCK = 4 << 20
_BLANK = re.compile("\n(?=\n)")


class ArrowCsvSource:
    """The file of a `CsvSource`, read by pyarrow."""

    unit = "line"
    knows_places = False

    def __init__(self, plain: CsvSource) -> None:
        self._plain = plain
        self.name = plain.name
        self.size = plain.size

    def batches(
        self, wanted: Sequence[str], numeric: Sequence[bool], bad: BadLines, advance: Advance
    ) -> Iterator[Batch]:
        """Yield the wanted columns, or hand over to the plain reader."""
        places = column_places(wanted, self._plain.header, self.name)
        if self._plain.header_line != 1:
            raise NeedsTextReaderError("lines before the header")
        if not self._plain.separator.isascii():
            raise NeedsTextReaderError("pyarrow's separators are of one byte")
        try:
            yield from self._batches(places, self._plain.changes(places, numeric), advance)
        except (pa.ArrowException, UnicodeError, *UNREADABLE) as error:
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
            for batch in _open(stream, names, dict.fromkeys([*include, last]), self._plain):
                end = batch.column(last)
                ended = bool(len(end)) and end[-1].as_py() == END
                kept = batch.slice(0, len(batch) - 1) if ended else batch
                n_records += len(kept)
                if len(kept):
                    found = [coded(kept.column(name)) for name in include]
                    columns: list[Column] = [
                        Coded(change(list(cells)), codes)
                        for (cells, codes), change in zip(found, changes, strict=True)
                    ]
                    yield Batch(columns, np.full(len(kept), -1, np.int64))
        if not ended:
            raise NeedsTextReaderError("a quote is not closed")
        if n_records != stream.lines.n_filled:
            raise NeedsTextReaderError("a record of several lines: is its quote meant?")


def _open(stream: Any, names: list[str], include: dict[str, None], plain: CsvSource) -> Any:
    return pc.open_csv(
        stream,
        read_options=pc.ReadOptions(
            column_names=names, skip_rows_after_names=1, block_size=_BLOCK, use_threads=False
        ),
        parse_options=pc.ParseOptions(delimiter=plain.separator, newlines_in_values=True),
        convert_options=pc.ConvertOptions(
            include_columns=list(include),
            column_types=dict.fromkeys(include, pa.string()),
            strings_can_be_null=False,
            check_utf8=False,  # the stream below has done so
        ),
    )


class _Utf8(io.RawIOBase):
    """The file as UTF-8 whatever its encoding, checked to the last byte, with an end record."""

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
        given, self._ready = self._ready[:size], self._ready[size:]
        return given


class _FilledLines:
    """The number of lines of a text that are not blank."""

    def __init__(self) -> None:
        self._ended = 0
        self._begun = False

    @property
    def n_filled(self) -> int:
        return self._ended + self._begun

    def add(self, text: str) -> None:
        """Read on."""
        if not text:
            return
        if "\r" in text:  # the other half of a cut line end is a blank line, which is not counted
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        blank = int(text[0] == "\n" and not self._begun)
        blank += len(_BLANK.findall(text)) if "\n\n" in text else 0
        self._ended += text.count("\n") - blank
        self._begun = text[-1] != "\n"
