"""Positions of entities in a file: columns of coordinates, and the column of labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from efemb.data.array_checks import float_array, list_first
from efemb.data.coordinates import coordinate_columns, is_on_earth, kilometers
from efemb.data.readers.array_file import ARRAY_FILES, load_array
from efemb.data.readers.arrow import read_parquet
from efemb.data.readers.column_roles import COUNTERS, index_names, is_number, words
from efemb.data.readers.csv import SAMPLE, CsvSource
from efemb.data.readers.input_file import existing_file, refuse_foreign
from efemb.data.readers.numeric import NumericTable, is_data, naming_column, read_frame, read_lines
from efemb.data.vocabulary import shorten
from efemb.errors import DataError

_MOST = 3  # columns that are used as coordinates without being named x, y, z
_APART = 1000.0  # larger ratios of spans mean different units


class Positions(NamedTuple):
    """Coordinates in the order of the entities, and where they were found, in words."""

    values: NDArray[Any]
    why: str


def read_positions(
    path: Path, entities: Iterable[object] | None, separator: str | None, encoding: str
) -> Positions:
    """Coordinates of the entities from a .npy, .npz, Parquet, CSV or TSV file.

    Columns named x, y, z or latitude, longitude are the coordinates; otherwise all columns but
    those that name or number the entities, if there are at most three. A column that contains the
    labels of the entities assigns the lines to them.

    Parameters
    ----------
    path : Path
        The file; a first line of numbers is data, not a header.
    entities : labels, optional
        Labels of the data, to be found in the file.
    separator, encoding : as in `read_matrix`
    """
    path = existing_file(path)
    if path.suffix.lower() in ARRAY_FILES:
        values = float_array(load_array(path), "positions")
        check_spans(values, _number_columns(values), path.name)
        return Positions(values, f"{path.name}, in the order of its rows")
    labels = None if entities is None else [str(label) for label in entities]
    table, used, names = _read_columns(path, labels, separator, encoding)
    earth = is_on_earth(used)
    values, unit = kilometers(table.values) if earth else (table.values, "")
    if not earth:
        check_spans(values, used or _number_columns(values), path.name)
    why = f"{' and '.join(used) or 'all columns'} of {path.name}{unit}"
    if names is None or labels is None:
        return Positions(values, f"{why}, in the order of its lines")
    lines = [str(label).strip() for label in table.aside[names]]
    return Positions(values[_order(lines, labels, path, names)], f"{why}, matched by {names!r}")


def _number_columns(values: NDArray[Any]) -> list[str]:
    """Names for columns that have none."""
    return [f"column {i}" for i in range(values.shape[-1])]


def check_spans(values: NDArray[Any], names: Sequence[str], source: str) -> None:
    """Reject coordinates whose spans differ so much that one alone determines the neighbors."""
    if values.ndim != 2 or not len(values):
        return
    with np.errstate(invalid="ignore"):
        spans = np.nanmax(values, axis=0) - np.nanmin(values, axis=0)
    varying = np.flatnonzero(np.isfinite(spans) & (spans > 0))
    if len(varying) < 2:
        return
    wide, narrow = varying[np.argmax(spans[varying])], varying[np.argmin(spans[varying])]
    if spans[wide] > _APART * spans[narrow]:
        raise DataError(
            f"{source}: {names[wide]} spans {spans[wide]:.4g} and {names[narrow]} "
            f"{spans[narrow]:.4g}: distances would be those of {names[wide]} alone; bring all "
            "coordinates to one unit, and leave out what is not a coordinate"
        )


def _read_columns(
    path: Path, labels: list[str] | None, separator: str | None, encoding: str
) -> tuple[NumericTable, list[str], str | None]:
    """The numbers of the coordinates, their names, and the column that names the entities."""
    if path.suffix.lower() in {".parquet", ".pq"}:
        frame = read_parquet(path)
        sample = {name: frame[name][:SAMPLE].to_pylist() for name in frame.column_names}
        used, names = _choose(sample, labels, path.name)
        aside = [name for name in sample if name not in used]
        return read_frame(frame, str(path), aside), used, names
    refuse_foreign(path)
    source = CsvSource(path, separator, encoding)
    if is_data(source, numbers_are_labels=False):
        return read_lines(source, (), numbers_are_labels=False), [], None
    cells = {
        name: source.change([column])([row[column] for row in source.sample])
        for column, name in enumerate(source.header)
    }
    used, names = _choose(cells, labels, path.name)
    aside = [name for name in cells if name not in used]
    return read_lines(source, aside, numbers_are_labels=False), used, names


def _choose(
    sample: dict[str, list[Any]], labels: list[str] | None, source: str
) -> tuple[list[str], str | None]:
    """Names of the coordinates and of the column of labels, if there is one."""
    names = _column_of_labels(sample, labels, source)
    used = [name for name in coordinate_columns(list(sample)) if name != names]
    if used:
        return used, names
    counters = [first for [first] in COUNTERS if first in sample]
    apart = {names, *index_names(list(sample), ()), *counters}
    candidates = [name for name in sample if name not in apart]
    candidates = [name for name in candidates if name not in naming_column(candidates)]
    used = [name for name in candidates if is_number(sample[name])]
    if not 1 <= len(used) <= _MOST:
        raise DataError(
            f"{source}: which columns are coordinates? Name them x, y and z (or latitude and "
            f"longitude), or leave out all others; there are {', '.join(map(str, sample))}"
        )
    return used, names


def _column_of_labels(
    sample: dict[str, list[Any]], labels: list[str] | None, source: str
) -> str | None:
    """The column whose cells are the labels of the data; an incomplete one raises an error."""
    if labels is None:
        return None
    label_set = set(labels)
    for name, cells in sample.items():
        texts = [str(cell).strip() for cell in cells]
        shared = label_set.intersection(texts)
        counted = texts == [str(i) for i in range(len(texts))]
        if counted and label_set != set(texts):  # an index is not an identifier
            continue
        if shared == label_set or (len(texts) >= SAMPLE and len(shared) > len(texts) / 2):
            return name
        if 2 * len(shared) > len(label_set) and words(str(name))[-1:] not in (["x"], ["y"], ["z"]):
            missing = [label for label in labels if label not in shared]
            raise DataError(
                f"{source}: column {name!r} names the entities, but {shorten(missing[0])} is not "
                f"in it ({len(missing):,} of {len(labels):,} are missing); add their positions, "
                "or leave these columns out of the data"
            )
    return None


def _order(lines: list[str], labels: list[str], path: Path, names: str) -> list[int]:
    """The line of each label."""
    line_of = {label: line for line, label in enumerate(lines)}
    if len(line_of) != len(lines):
        twice = next(label for label in lines if lines.count(label) > 1)
        raise DataError(f"{path.name}: {shorten(twice)} occurs more than once in {names!r}")
    missing = np.array([label for label in labels if label not in line_of], dtype=object)
    if len(missing):
        raise DataError(f"{path.name} has no positions of {list_first(missing)} (in {names!r})")
    return [line_of[label] for label in labels]
