"""Sources of several parts: files, patterns, folders, iterators of tables, Arrow streams."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from glob import glob, has_magic
from itertools import chain
from pathlib import Path
from typing import Any

from efemb._files import expand_home
from efemb._terminal import Advance
from efemb.data.containers import in_memory, is_lazy, refuse_remote
from efemb.data.readers.arrow import (
    ArrowCsvSource,
    ParquetSource,
    arrow_batches,
    find_pyarrow,
    require_pyarrow,
)
from efemb.data.readers.badlines import BadLines
from efemb.data.readers.csv import CsvSource
from efemb.data.readers.frames import frame_source
from efemb.data.readers.input_file import existing_file, pattern_of, refuse_foreign
from efemb.data.readers.source import Batch, Source, column_places
from efemb.errors import DataError, EfembError, InputTypeError, ParameterError

_PARQUET = {".parquet", ".pq"}


def find_files(source: Any) -> list[Path] | None:
    """The files that a glob, a folder or a list of paths names; None for anything else."""
    if isinstance(source, str | os.PathLike):
        path = expand_home(source)
        if os.path.isdir(path):
            return _parquet_files(path)
        # A file may have such a name, and the contents of a file may have been passed in its place.
        if has_magic(str(path)) and "\n" not in str(path) and not os.path.exists(path):
            return _matching(str(path))
        return None
    if isinstance(source, list | tuple) and source and isinstance(source[0], str | os.PathLike):
        paths = [find_files(path) or [expand_home(path)] for path in source]
        return list(chain.from_iterable(paths))
    return None


def _matching(pattern: str) -> list[Path]:
    # Sorted: the order of the lines decides which of several values comes first.
    names = sorted(name for name in glob(pattern, recursive=True) if os.path.isfile(name))
    if not names:
        raise DataError(f"no file matches {pattern!r}")
    return [Path(name) for name in names]


def _parquet_files(folder: Path) -> list[Path]:
    """All Parquet files of a folder and its folders, without hidden ones."""
    try:
        files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _PARQUET)
    except OSError as error:  # another program may remove folders meanwhile
        raise DataError(f"{folder} cannot be searched for Parquet files: {error}") from error
    visible = [path for path in files if path.name[0] not in "._" and path.is_file()]
    if not visible:
        raise DataError(
            f"{folder} is a directory without Parquet files; name its files by a pattern, such "
            f"as '{pattern_of(folder)}', or pass one of them"
        )
    return visible


class SeveralFiles:
    """The lines of several files, one after the other."""

    def __init__(self, sources: Sequence[Source], name: str) -> None:
        self._sources = sources
        self.name = name
        self.unit = sources[0].unit
        self.knows_places = all(source.knows_places for source in sources)
        self.size = sum(source.size for source in sources)

    def batches(
        self, wanted: Sequence[str], numeric: Sequence[bool], bad: BadLines, advance: Advance
    ) -> Iterator[Batch]:
        """Yield the wanted columns of every file."""
        for source in self._sources:
            bad.file = source.name
            yield from source.batches(wanted, numeric, bad, advance)


class SeveralTables:
    """The rows of the tables that an iterator yields; each is released before the next."""

    name = "the tables"
    unit = "row"
    knows_places = True
    size = 0

    def __init__(self, tables: Iterable[Any]) -> None:
        self._tables = tables

    def batches(
        self, wanted: Sequence[str], numeric: Sequence[bool], bad: BadLines, advance: Advance
    ) -> Iterator[Batch]:
        """Yield the wanted columns of every table."""
        number = -1
        for number, table in enumerate(self._tables):
            bad.file = f"table {number}"
            try:
                yield from frame_source(in_memory(table)).batches(wanted, numeric, bad, advance)
            except (DataError, InputTypeError) as error:
                raise type(error)(f"table {number} of the source: {error}") from error
        if number < 0:
            raise DataError("the source yields no tables")


class ArrowStream:
    """The rows of any source of Arrow batches: DuckDB, readers, scanners of datasets."""

    name = "the table"
    unit = "row"
    knows_places = True
    size = 0

    def __init__(self, source: Any) -> None:
        self._source = source

    def batches(
        self, wanted: Sequence[str], numeric: Sequence[bool], bad: BadLines, advance: Advance
    ) -> Iterator[Batch]:
        """Yield the wanted columns."""
        with _explain_stream():
            reader = self._open()
            column_places(wanted, reader.schema.names, self.name)
            yield from arrow_batches(reader, wanted, numeric, advance)

    def read(self) -> Any:
        """The whole table."""
        with _explain_stream():
            return self._open().read_all()

    def _open(self) -> Any:
        pyarrow = require_pyarrow("reading an Arrow stream")
        return pyarrow.RecordBatchReader.from_stream(self._source)


@contextmanager
def _explain_stream() -> Iterator[None]:
    """Turn exceptions of the program that fills a stream into a DataError."""
    try:
        yield
    except EfembError:
        raise
    except Exception as error:
        raise DataError(f"the table cannot be read: {error}") from error


class LazyTable:
    """The rows of a lazy table; only the wanted columns are collected."""

    name = "the table"
    unit = "row"
    knows_places = True
    size = 0

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def batches(
        self, wanted: Sequence[str], numeric: Sequence[bool], bad: BadLines, advance: Advance
    ) -> Iterator[Batch]:
        """Yield the wanted columns."""
        column_places(wanted, self._frame.collect_schema().names(), self.name)
        table = LazyTable(self._frame.select(list(dict.fromkeys(wanted)))).read()
        yield from frame_source(in_memory(table)).batches(wanted, numeric, bad, advance)

    def read(self) -> Any:
        """The whole table."""
        try:
            return self._frame.collect()
        except Exception as error:  # whatever the query raises
            raise DataError(f"the lazy table cannot be collected: {error}") from error


def table_source(source: Any) -> Source:
    """The source for tables in memory, streams and iterators of tables."""
    refuse_remote(source)
    if is_lazy(source):
        return LazyTable(source)
    if hasattr(source, "to_batches") and not hasattr(source, "num_rows"):
        return ArrowStream(_scanner(source))
    if not hasattr(source, "__dataframe__") and not hasattr(source, "columns"):
        if hasattr(source, "__arrow_c_stream__"):
            return ArrowStream(source)
        if isinstance(source, Iterator | list | tuple):
            return SeveralTables(source)
    if type(source).__module__.partition(".")[0] in {"duckdb", "_duckdb"}:
        return ArrowStream(source)
    return frame_source(source)


def whole_table(source: Any) -> Any:
    """A table in memory; lazy ones are collected, streams read to their end."""
    opened = table_source(source)
    return opened.read() if isinstance(opened, LazyTable | ArrowStream) else source


def _scanner(source: Any) -> Any:
    """A reader of a dataset on disk, or of a scanner of one."""
    scanner = source if hasattr(source, "to_reader") else source.scanner()
    return scanner.to_reader()


def table_sources(
    source: Any, separator: str | None, encoding: str, header: Sequence[str] | None = None
) -> list[Source]:
    """Sources to try in turn for paths or tables; the last one can explain every error."""
    files = find_files(source)
    if files is not None:
        ways = [file_sources(path, separator, encoding, header) for path in files]
        name = f"{files[0]} and {len(files) - 1:,} further files" if files[1:] else str(files[0])
        fast = SeveralFiles([way[0] for way in ways], name)
        plain = SeveralFiles([way[-1] for way in ways], name)
        return [plain] if fast.knows_places else [fast, plain]
    if isinstance(source, str | os.PathLike):
        return file_sources(existing_file(source), separator, encoding, header)
    if header is not None:
        raise ParameterError("header= names the columns of a text file; a table has its own names")
    return [table_source(source)]


def file_sources(
    path: Path, separator: str | None, encoding: str, header: Sequence[str] | None
) -> list[Source]:
    """Sources to try in turn for a file; the last one can explain every error."""
    path = existing_file(path)
    refuse_foreign(path)
    if path.suffix.lower() in {".parquet", ".pq"}:
        return [ParquetSource(path)]
    plain = CsvSource(path, separator, encoding, _check_header(header))
    return [ArrowCsvSource(plain), plain] if find_pyarrow() else [plain]


def _check_header(header: Sequence[str] | None) -> list[str] | None:
    if header is None:
        return None
    names = [header] if isinstance(header, str) else list(header)
    if not names or not all(isinstance(name, str) for name in names):
        raise InputTypeError(f"header={header!r:.80} must be a list of the names of all columns")
    return names
