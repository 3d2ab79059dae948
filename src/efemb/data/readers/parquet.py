"""Parquet files and pyarrow tables, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from efemb.data.readers.badlines import BadLines
from efemb.data.readers.interning import Coded, Column
from efemb.data.readers.source import Advance, Batch, column_places
from efemb.errors import DataError, InputTypeError, MissingExtraError

_ROWS = 1 << 17


def require_pyarrow(what: str) -> Any:
    """The pyarrow module, or an error that names the extra to install."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError(f'{what} needs pyarrow: pip install "efemb[io]"') from error
    return pyarrow


class ParquetSource:
    """Rows of a Parquet file."""

    unit = "row"
    knows_places = True

    def __init__(self, path: Path) -> None:
        pyarrow = require_pyarrow(f"reading {path}")
        self.name = str(path)
        try:
            self._file = pyarrow.parquet.ParquetFile(path)
        except (pyarrow.ArrowException, OSError) as error:
            raise _damaged(self.name, error) from error
        self.size = self._file.metadata.num_rows
        self.header = list(self._file.schema_arrow.names)

    def first(self, n_rows: int) -> dict[str, list[Any]]:
        """The first rows, column by column."""
        pyarrow = require_pyarrow(self.name)
        try:
            batch = next(self._file.iter_batches(batch_size=n_rows), None)
        except (pyarrow.ArrowException, OSError) as error:
            raise _damaged(self.name, error) from error
        return {name: [] for name in self.header} if batch is None else dict(batch.to_pydict())

    def batches(
        self, wanted: Sequence[str], numeric: Sequence[bool], bad: BadLines, advance: Advance
    ) -> Iterator[Batch]:
        """Yield the wanted columns."""
        column_places(wanted, self.header, self.name)
        pyarrow = require_pyarrow(self.name)
        try:
            parts = self._file.iter_batches(batch_size=_ROWS, columns=list(dict.fromkeys(wanted)))
            yield from _arrow_batches(parts, wanted, numeric, advance)
        except (pyarrow.ArrowException, OSError) as error:
            raise _damaged(self.name, error) from error


def read_parquet(path: Path) -> Any:
    """A whole Parquet file as a pyarrow table."""
    pyarrow = require_pyarrow(f"reading {path}")
    try:
        return pyarrow.parquet.ParquetFile(path).read()
    except (pyarrow.ArrowException, OSError) as error:
        raise _damaged(str(path), error) from error


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
        yield from _arrow_batches(parts, wanted, numeric, advance)


def _arrow_batches(
    parts: Iterable[Any], wanted: Sequence[str], numeric: Sequence[bool], advance: Advance
) -> Iterator[Batch]:
    start = 0
    for part in parts:
        columns = [
            _numbers(part.column(name), name) if is_count else _labels(part.column(name), name)
            for name, is_count in zip(wanted, numeric, strict=True)
        ]
        yield Batch(columns, np.arange(start, start + len(part), dtype=np.int64))
        start += len(part)
        advance(len(part))


def coded(array: Any) -> Coded:
    """A pyarrow array as distinct cells and places."""
    encoded = array.dictionary_encode()
    # Others may have written indices without a sign.
    places = encoded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    return Coded(encoded.dictionary.to_pylist(), places)


def _labels(array: Any, name: str) -> Column:
    import pyarrow as pa

    if pa.types.is_nested(array.type):
        raise InputTypeError(f"column {name!r} holds {array.type}, not labels")
    if pa.types.is_null(array.type):
        return [None] * len(array)
    if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        # Old writers store text without saying that it is text.
        try:
            array = array.cast(pa.large_string())
        except pa.ArrowInvalid as error:
            raise InputTypeError(f"column {name!r} holds {array.type}, not text") from error
    return coded(array)


def _numbers(array: Any, name: str) -> Column:
    import pyarrow as pa

    kind = array.type
    if pa.types.is_boolean(kind):
        array, kind = array.cast(pa.int8()), pa.int8()
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers: Column = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return numbers
    return _labels(array, name)


def _damaged(name: str, error: Exception) -> DataError:
    text = " ".join(str(error).split())
    return DataError(f"{name} is not a whole Parquet file ({text:.200}); copy or export it again")
