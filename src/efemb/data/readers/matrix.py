"""Matrices (rows x entities) from arrays, files and tables become a `Dataset`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efemb.data.array_checks import is_sparse
from efemb.data.dataset import Dataset
from efemb.data.readers.input_file import existing_file
from efemb.data.readers.numeric import NumericTable, read_numeric_table, read_positions
from efemb.errors import DataError, InputTypeError, ParameterError, suggest

_ARRAY_FILES = {".npy", ".npz"}
_SPARSE_PARTS = {"data", "format", "shape"}


def read_matrix(
    source: Any,
    *,
    key: str | None = None,
    row_labels: Any = None,
    recordings: Any = None,
    entities: Iterable[object] | None = None,
    positions: Any = None,
    separator: str | None = None,
    encoding: str = "utf-8",
) -> Dataset:
    """Read a matrix: one row per time frame, user or document, one column per entity.

    Parameters
    ----------
    source : path, array, sparse matrix or table
        .npy; .npz (a scipy sparse matrix or a named array); CSV or TSV of numbers whose header
        holds the labels of the entities, where an empty cell is missing (a first line of numbers
        is a header if they are whole and distinct, or increasing); Parquet, or a pandas, polars or
        pyarrow table of numbers; a NumPy array or a scipy sparse matrix.
    key : str, optional
        Name of the array, for an .npz file with several.
    row_labels, recordings : str or array, optional
        One value per row or, for tables, the name of a column, which is then not an entity. An
        index that pandas wrote (``Unnamed: 0``, a column without a name, ...) provides the row
        labels.
    entities : labels, optional
        One label per entity; replaces the header.
    positions : array or path, optional
        Entities x coordinates: an array, or a .npy, .npz (one array), Parquet, CSV or TSV file
        (with or without a header).
    separator : str, optional
        Field separator. By default it is inferred from the first lines: comma, semicolon, tab or
        vertical bar. Unless it is a comma, numbers may have decimal commas.
    encoding : str
        Text encoding.

    Returns
    -------
    Dataset
        Dense, or sparse if the source is.

    Examples
    --------
    >>> read_matrix(np.eye(3), entities=["a", "b", "c"])
    Dataset(3 rows x 3 entities, dense float64, entities 'a', 'b', 'c')
    """
    named = None
    if positions is not None and isinstance(positions, str | os.PathLike):
        positions, named = _positions(existing_file(positions), separator, encoding)
    aside = {"row_labels": row_labels, "recordings": recordings}
    if _is_array(source):
        values, row_columns = _array(source, key), aside
        _check_aside(aside)
    else:
        if key is not None:
            raise ParameterError("key= selects an array of an .npz file; this source is not one")
        names = {role: name for role, name in aside.items() if isinstance(name, str)}
        table = read_numeric_table(source, list(names.values()), separator, encoding)
        values, entities = table.values, table.header if entities is None else entities
        if table.index_name is not None and row_labels is None:
            names["row_labels"] = table.index_name
        row_columns = aside | {role: _aside_column(table, name) for role, name in names.items()}
    if named is not None and entities is not None:
        positions = _sort_positions(positions, named, entities)
    return Dataset(values, entities=entities, positions=positions, **row_columns)


def _is_array(source: Any) -> bool:
    if isinstance(source, str | os.PathLike):
        return Path(source).suffix.lower() in _ARRAY_FILES
    return isinstance(source, np.ndarray | list | tuple) or is_sparse(source)


def _array(source: Any, key: str | None) -> Any:
    if isinstance(source, str | os.PathLike):
        return load_array(existing_file(source), key)
    return source


def load_array(path: Path, key: str | None = None) -> Any:
    """The array or sparse matrix in a .npy or .npz file; never unpickles."""
    try:
        # Opened here because numpy leaves a damaged archive open.
        with path.open("rb") as stream:
            loaded = np.load(stream, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return _only_array(path, key, loaded)
            names = list(loaded.files)
            if key is None and set(names) >= _SPARSE_PARTS:
                from scipy.sparse import load_npz

                return load_npz(path)
            return loaded[_choose(path, key, names)]
    except (DataError, ParameterError):
        raise
    except Exception as error:  # numpy and zipfile raise a dozen types
        raise DataError(f"{path} cannot be read as {path.suffix}: {error}") from error


def _only_array(path: Path, key: str | None, array: NDArray[Any]) -> NDArray[Any]:
    if key is not None:
        raise ParameterError(f"key= selects an array of an .npz file; {path} holds a single array")
    return array


def _choose(path: Path, key: str | None, names: list[str]) -> str:
    if key is not None and key in names:
        return key
    if key is not None:
        raise DataError(f"{path} has no array {key!r}; {suggest(key, names)}")
    if len(names) != 1:
        raise DataError(
            f"{path} holds {len(names)} arrays; select one with key=, or save it alone as .npy: "
            f"{', '.join(names)}"
        )
    return names[0]


def _positions(path: Path, separator: str | None, encoding: str) -> tuple[Any, list[Any] | None]:
    """Coordinates, and the names of their entities if the file has a column of them."""
    if path.suffix.lower() in _ARRAY_FILES:
        return load_array(path), None
    table = read_positions(path, separator, encoding)
    return table.values, next(iter(table.aside.values()), None)


def _sort_positions(positions: Any, names: list[Any], entities: Any) -> Any:
    """Positions in the order of the entities if the names match, otherwise unchanged."""
    number_of = {str(name).strip(): i for i, name in enumerate(names)}
    wanted = [str(label) for label in entities]
    if len(number_of) != len(names) or set(number_of) != set(wanted):
        return positions
    return positions[[number_of[label] for label in wanted]]


def _aside_column(table: NumericTable, name: str) -> NDArray[Any]:
    cells = np.empty(len(table.values), dtype=object)
    cells[:] = table.aside[name]
    return cells


def _check_aside(aside: dict[str, Any]) -> None:
    for role, name in aside.items():
        if isinstance(name, str):
            raise InputTypeError(
                f"{role}={name!r} names a column, but arrays have none; pass one value per row"
            )
