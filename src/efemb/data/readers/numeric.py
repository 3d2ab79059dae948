"""Tables of numbers with labeled columns: CSV, TSV, Parquet and data frames."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from efemb._files import bare
from efemb.data.array_checks import list_first
from efemb.data.containers import in_memory
from efemb.data.readers.accumulators import CountTable, text_in_numbers
from efemb.data.readers.arrow import read_parquet
from efemb.data.readers.badlines import BadLines
from efemb.data.readers.column_roles import COUNTERS, index_names, noted_index, words
from efemb.data.readers.csv import Change, CsvSource
from efemb.data.readers.dialect import MISSING
from efemb.data.readers.frames import eager_frame, number_column
from efemb.data.readers.input_file import existing_file, refuse_foreign
from efemb.data.readers.source import column_places
from efemb.errors import DataError

# Names of columns that identify the entity of a line.
ENTITY = ("id", "cell", "neuron", "unit", "roi", "voxel", "entity", "index", "label", "name")

_EXACT = 2**53


class NumericTable(NamedTuple):
    """The numbers, their column labels, the columns set aside, and the name of an index."""

    values: NDArray[np.float64]
    header: list[Any] | None
    aside: dict[Any, list[Any]]
    index_name: str | None = None


def read_numeric_table(
    source: Any, aside: Sequence[str], separator: str | None, encoding: str
) -> NumericTable:
    """All columns except those set aside, as float64; an empty or null cell is NaN.

    An index that pandas wrote is not an entity: it is set aside and reported as the index.
    """
    if not isinstance(source, str | os.PathLike):
        return read_frame(in_memory(source), "the table", aside)
    path = existing_file(source)
    refuse_foreign(path)
    if path.suffix.lower() in {".parquet", ".pq"}:
        return read_frame(read_parquet(path), str(path), aside)
    return read_lines(CsvSource(path, separator, encoding), aside)


def read_frame(source: Any, name: str, aside: Sequence[str]) -> NumericTable:
    """The columns of a table in memory."""
    frame = eager_frame(source)
    # By position: the names of pandas' columns may be numbers.
    columns = dict(zip(frame.columns, frame.iter_columns(), strict=True))
    column_places(aside, list(columns), name)
    index = index_names(list(columns), aside) + noted_index(source, list(columns), aside, name)
    apart = {*aside, *index}
    entities = {label: column for label, column in columns.items() if label not in apart}
    wrong = [label for label, column in entities.items() if not _is_numeric(column.dtype)]
    if wrong:
        places, example = text_in_numbers(entities[wrong[0]].to_list())
        rows = f": {example} in row {list_first(places)}" if len(places) else ""
        raise DataError(
            f"{name}: column {wrong[0]!r} ({entities[wrong[0]].dtype}) does not hold numbers"
            f"{rows}; correct it (pandas.to_numeric makes numbers of text), drop it, or name it as "
            f"row_labels= or recordings= ({len(wrong)} such columns)"
        )
    for label, column in entities.items():
        _check_exact(label, column, name)
    numbers = [number_column(column) for column in entities.values()]
    values = np.stack(numbers, axis=1) if numbers else np.empty((len(frame), 0))
    cells = {label: columns[label].to_list() for label in apart}
    return _without_counter(NumericTable(values, list(entities), cells, next(iter(index), None)))


def _check_exact(label: Any, column: Any, name: str) -> None:
    """Reject whole numbers that float64 cannot hold; they are usually identifiers."""
    if not column.dtype.is_integer() or not len(column):
        return
    ends = [end for end in (column.min(), column.max()) if end is not None]
    beyond = [int(end) for end in ends if abs(int(end)) > _EXACT]
    if beyond:
        raise DataError(
            f"{name}: column {label!r} holds {beyond[0]}, beyond 2**53, where numbers are not "
            "exact; drop it, or name it as row_labels= if it is an identifier"
        )


def _is_numeric(dtype: Any) -> bool:
    import narwhals as nw

    return bool(dtype.is_numeric() or dtype == nw.Boolean)


def read_lines(
    source: CsvSource, aside: Sequence[str], numbers_are_labels: bool = True
) -> NumericTable:
    """The columns of a text file, with or without a header."""
    headless = not aside and is_data(source, numbers_are_labels)
    index = [] if headless else index_names(source.header, aside)
    apart = dict(zip(aside, column_places(aside, source.header, source.name), strict=True))
    apart |= {name: source.header.index(name) for name in index}
    numeric = [place for place in range(len(source.header)) if place not in apart.values()]
    bad = BadLines(source.name, source.unit)
    changed = source.change(numeric)
    cells: dict[Any, list[Any]] = {name: [] for name in apart}
    blocks = [np.empty((0, len(numeric)))]
    first = [([source.header_line], [source.header])] if headless else []
    for lines, rows in chain(first, source.records(bad, lambda _: None)):
        blocks.append(_numbers(lines, rows, numeric, source, changed))
        for name, place in apart.items():
            cells[name] += [bare(row[place]) for row in rows]
    if bad:
        raise bad.error("Correct them: each line needs a value or an empty cell in every column")
    header = None if headless else [source.header[place] for place in numeric]
    table = NumericTable(np.concatenate(blocks), header, cells, next(iter(index), None))
    return _without_counter(table)


def _without_counter(table: NumericTable) -> NumericTable:
    """Set aside a first column that reset_index() named and that numbers the rows."""
    first = table.values[:, :1].ravel()
    counts = len(first) > 1 and first[0] in (0, 1) and bool((np.diff(first) == 1).all())
    header = table.header or []
    if table.index_name is not None or header[:1] not in COUNTERS or not counts:
        return table
    aside = {**table.aside, header[0]: first.astype(int).tolist()}
    return NumericTable(table.values[:, 1:], header[1:], aside, header[0])


def is_data(source: CsvSource, numbers_are_labels: bool) -> bool:
    """Whether the first line is data: it holds numbers, or empty cells, instead of labels."""
    above_index = source.header[0] == ""
    cells = [cell.strip() for cell in source.header[above_index:]]
    numbers = np.array([CountTable()[cell] for cell in source.change(range(len(cells)))(cells)])
    if any(cell.lower() not in MISSING for cell in np.array(cells, object)[np.isnan(numbers)]):
        return False
    may_be_labels = len(cells) > 0 and _are_labels(numbers)
    if above_index:
        return not (may_be_labels and _is_index([row[0] for row in source.sample]))
    return not (may_be_labels and numbers_are_labels)


def _are_labels(numbers: NDArray[np.float64]) -> bool:
    """Whether numbers may be labels: distinct whole numbers, or increasing ones (frequencies)."""
    is_count = (numbers >= 0) & (numbers == np.round(numbers))
    if is_count.all():
        return len(np.unique(numbers)) == len(numbers)
    return len(numbers) > 2 and bool((np.diff(numbers) > 0).all())


def _is_index(cells: list[str]) -> bool:
    """Whether cells count from 0 or 1, or are labels."""
    counts = cells in ([str(i + start) for i in range(len(cells))] for start in (0, 1))
    return counts or any(np.isnan(CountTable()[cell]) for cell in cells)


def _numbers(
    lines: list[int], rows: list[list[str]], numeric: list[int], source: CsvSource, changed: Change
) -> NDArray[np.float64]:
    """Numbers of the numeric fields; other text is an error that names its line."""
    table = CountTable({"": np.nan})
    values = np.empty((len(rows), len(numeric)))
    for i, row in enumerate(rows):
        values[i] = [table[cell] for cell in changed([row[place] for place in numeric])]
    for i, j in np.argwhere(np.isnan(values)):
        cell = rows[i][numeric[j]]
        if cell.strip().lower() not in MISSING:
            raise DataError(
                f"{source.name}: column {source.header[numeric[j]]!r} holds {cell[:40]!r}, "
                f"which is not a number, in line {lines[i]}; correct it, or name the column as "
                "row_labels= or recordings="
            )
    return values


def read_by_entity(path: Path, separator: str | None, encoding: str) -> NumericTable:
    """Numbers in a file with one entity per line; a first line of numbers is data, not a header.

    A first column whose name says that it identifies entities, as in `cell,t0,t1`, is set aside.
    """
    if path.suffix.lower() in {".parquet", ".pq"}:
        table = read_parquet(existing_file(path))
        return read_frame(table, str(path), naming_column(table.column_names))
    refuse_foreign(path)
    source = CsvSource(path, separator, encoding)
    return read_lines(source, naming_column(source.header), numbers_are_labels=False)


def naming_column(header: Sequence[Any]) -> list[Any]:
    """The first column, if it names entities and is followed by two or more columns."""
    last = words(str(header[0]))[-1:] if len(header) > 2 else []
    return [header[0]] if last and last[0] in ENTITY else []
