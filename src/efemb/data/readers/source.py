"""The protocol of a source of batches, and the choice of the right one."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from efemb.data.readers.badlines import BadLines
from efemb.data.readers.foreign import refuse_foreign
from efemb.data.readers.interning import Column
from efemb.data.vocabulary import shorten
from efemb.errors import DataError, InputTypeError, suggest
from efemb.files import expanded

Advance = Callable[[int], None]


class NeedsTextReaderError(Exception):
    """The fast reader met something that only the plain one can explain; never leaves here."""


@dataclass(frozen=True)
class Batch:
    """Some lines of the wanted columns, and where they stand."""

    columns: list[Column]
    places: NDArray[np.int64]


class Source(Protocol):
    """Something that gives the wanted columns batch by batch."""

    name: str
    unit: str  # "line" or "row"
    knows_places: bool  # False: `places` are not to be shown
    size: int  # bytes or rows, for the progress bar

    def batches(
        self, wanted: Sequence[str], numeric: Sequence[bool], bad: BadLines, advance: Advance
    ) -> Iterator[Batch]:
        """Yield batches; lines that cannot be read are left out and noted in `bad`."""
        ...


def column_places(wanted: Sequence[str], header: Sequence[str], source: str) -> list[int]:
    """Place of each wanted column in the header; a missing or double name is an error."""
    for name in wanted:
        if not isinstance(name, str):
            raise InputTypeError(f"a column is chosen by its name (text), not {name!r}")
        if name not in header:
            raise DataError(f"{source} has no column {name!r}; {suggest(name, header)}")
        if header.count(name) > 1:
            raise DataError(f"{source} has {header.count(name)} columns named {name!r}; rename one")
    return [header.index(name) for name in wanted]


def existing_file(source: str | os.PathLike[str]) -> Path:
    """`source` as the path of a file that is there and not empty."""
    path = expanded(source)
    try:
        there = path.exists()
    except OSError as error:  # a name that is too long: text, perhaps
        raise DataError(f"there is no file {shorten(source)} ({error.strerror})") from error
    if path.is_dir():
        raise DataError(f"{path} is a directory; give one file")
    if not there:
        if not path.parent.is_dir():
            raise DataError(f"there is no file {path}; its folder does not exist")
        names = sorted(one.name for one in path.parent.iterdir() if one.is_file())
        near = difflib.get_close_matches(path.name, names, n=3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise DataError(f"there is no file {path}{hint}")
    if not path.is_file():
        raise DataError(
            f"{path} is a pipe or a device, which cannot be read twice: write it to a file first"
        )
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty (0 bytes)")
    return path


def table_sources(source: Any, separator: str | None, encoding: str) -> list[Source]:
    """Sources to try in turn for a path or a table; the last one explains every error."""
    if not isinstance(source, str | os.PathLike):
        from efemb.data.readers.frames import frame_source

        return [frame_source(source)]
    path = existing_file(source)
    refuse_foreign(path)
    if path.suffix.lower() in {".parquet", ".pq"}:
        from efemb.data.readers.parquet import ParquetSource

        return [ParquetSource(path)]
    from efemb.data.readers.text import CsvSource

    plain = CsvSource(path, separator, encoding)
    try:
        from efemb.data.readers.arrow_csv import ArrowCsvSource
    except ImportError:
        return [plain]
    return [ArrowCsvSource(plain), plain]
