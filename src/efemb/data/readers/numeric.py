"""Tables of numbers with labelled columns: CSV, TSV, Parquet and data frames."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from efemb.data.readers.badlines import BadLines
from efemb.data.readers.frames import eager_frame, number_column
from efemb.data.readers.interning import CountTable
from efemb.data.readers.source import column_places, existing_file
from efemb.data.readers.text import CsvSource
from efemb.errors import DataError


class NumericTable(NamedTuple):
    """The numbers, the labels of their columns, and the columns set aside."""

    values: NDArray[np.float64]
    header: list[str]
    aside: dict[str, list[Any]]


def read_numeric_table(
    source: Any, aside: Sequence[str], separator: str | None, encoding: str
) -> NumericTable:
    """All columns but those set aside as float64; an empty or null cell is NaN."""
    if not isinstance(source, str | os.PathLike):
        return _from_frame(source, "the table", aside)
    path = existing_file(source)
    if path.suffix.lower() in {".parquet", ".pq"}:
        from efemb.data.readers.parquet import read_parquet

        return _from_frame(read_parquet(path), str(path), aside)
    return _from_text(CsvSource(path, separator, encoding), aside)


def _from_frame(source: Any, name: str, aside: Sequence[str]) -> NumericTable:
    frame = eager_frame(source)
    names = list(frame.columns)
    column_places(aside, names, name)
    header = [column for column in names if column not in aside]
    wrong = [column for column in header if not _is_numeric(frame[column].dtype)]
    if wrong:
        raise DataError(
            f"{name}: column {wrong[0]!r} ({frame[wrong[0]].dtype}) holds no numbers; drop it, or "
            f"name it as row_labels= or recordings= ({len(wrong)} such columns)"
        )
    columns = [number_column(frame[column]) for column in header]
    values = np.stack(columns, axis=1) if columns else np.empty((len(frame), 0))
    return NumericTable(values, header, {column: frame[column].to_list() for column in aside})


def _is_numeric(dtype: Any) -> bool:
    return bool(dtype.is_integer() or dtype.is_float() or dtype == "Boolean")


def _from_text(source: CsvSource, aside: Sequence[str]) -> NumericTable:
    apart = column_places(aside, source.header, source.name)
    kept = [place for place in range(len(source.header)) if place not in apart]
    header = [source.header[place] for place in kept]
    bad = BadLines(source.name, source.unit)
    cells: dict[str, list[Any]] = {name: [] for name in aside}
    parts = []
    for lines, rows in source.records(bad, lambda _: None):
        parts.append(_numbers(lines, rows, kept, source))
        for name, place in zip(aside, apart, strict=True):
            cells[name] += [row[place] for row in rows]
    if bad:
        raise bad.error("Correct them: each line needs a value or an empty cell for every column")
    return NumericTable(np.concatenate([np.empty((0, len(kept))), *parts]), header, cells)


def _numbers(
    lines: list[int], rows: list[list[str]], kept: list[int], source: CsvSource
) -> NDArray[np.float64]:
    """Numbers of the kept fields; text that is none is an error with its line."""
    table = CountTable({"": np.nan})
    values = np.empty((len(rows), len(kept)))
    for i, row in enumerate(rows):
        values[i] = [table[row[place]] for place in kept]
    for i, j in np.argwhere(np.isnan(values)):
        cell = rows[i][kept[j]]
        if cell.strip().lower() not in {"", "nan", "na", "null"}:
            raise DataError(
                f"{source.name}: column {source.header[kept[j]]!r} holds {cell[:40]!r}, no number, "
                f"in line {lines[i]}; correct it, or name the column as row_labels= or recordings="
            )
    return values


def read_positions(path: Path, separator: str | None, encoding: str) -> NDArray[np.float64]:
    """Coordinates in a text file, one entity a line; a first line of numbers is data."""
    source = CsvSource(path, separator, encoding)
    table = _from_text(source, [])
    first = [CountTable()[cell] for cell in source.header]
    if np.isnan(first).any():
        return table.values
    return np.vstack([first, table.values])
