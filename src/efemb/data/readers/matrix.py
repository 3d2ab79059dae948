"""Matrices (rows x entities) from arrays, files and tables become a `Dataset`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efemb._files import expand_home
from efemb.data.array_checks import is_sparse
from efemb.data.containers import Opened, open_container
from efemb.data.dataset import Dataset
from efemb.data.readers.array_file import ARRAY_FILES, load_array
from efemb.data.readers.column_roles import check_row_names
from efemb.data.readers.input_file import existing_file
from efemb.data.readers.numeric import NumericTable, read_numeric_table
from efemb.data.readers.positions import read_positions
from efemb.errors import InputTypeError, ParameterError


def read_matrix(
    source: Any,
    *,
    key: str | None = None,
    layer: str | None = None,
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
    source : path, array, sparse matrix, table or container
        .npy; .npz (a scipy sparse matrix or a named array); CSV or TSV of numbers whose header
        holds the labels of the entities, where an empty cell is missing (a first line of numbers
        is a header if they are whole and distinct, or increasing); Parquet, or a pandas, polars or
        pyarrow table of numbers, or anything else with ``__arrow_c_stream__``, such as a query of
        DuckDB; a NumPy array or a scipy sparse matrix; an AnnData, whose var_names and obs_names
        label entities and rows and whose obs become row columns; a DataArray of xarray, whose
        coordinates become labels, row columns, features and, if named as in `positions`, positions.
    key : str, optional
        Name of the array, for an .npz file with several.
    layer : str, optional
        Layer of an AnnData to read instead of X.
    row_labels, recordings : str or array, optional
        One value per row or, for tables, the name of a column, which is then not an entity. An
        index that pandas wrote (``Unnamed: 0``, a column without a name, ...) provides the row
        labels.
    entities : labels, optional
        One label per entity; replaces the header.
    positions : array or path, optional
        Entities x coordinates: an array, or a .npy, .npz (one array), Parquet, CSV or TSV file
        (with or without a header). Columns named x, y, z or latitude, longitude are the
        coordinates (degrees become kilometers), and a column that holds the labels of the
        entities assigns the lines to them; ``report["positions"]`` says what was used.
    separator : str, optional
        Field separator. By default it is inferred from the first lines: comma, semicolon, tab or
        vertical bar. Unless it is a comma, numbers may have decimal commas.
    encoding : str, default="utf-8"
        Text encoding.

    Returns
    -------
    Dataset
        Dense, or sparse if the source is.

    Raises
    ------
    DataError
        If the source cannot be used as it is. A first column that numbers or names the rows, such
        as ``customer_id``, is an error unless `row_labels` or `entities` says what it is.

    Examples
    --------
    >>> read_matrix(np.eye(3), entities=["a", "b", "c"])
    Dataset(3 rows x 3 entities, dense float64, entities 'a', 'b', 'c')
    """
    aside = {"row_labels": row_labels, "recordings": recordings}
    report: dict[str, Any] = {}
    container = open_container(source, layer)
    if container is not None:
        _check_aside(aside)
        return _from_container(container, aside, entities, positions)
    if _is_array(source):
        values, row_columns = _array(source, key), aside
        _check_aside(aside)
    else:
        if key is not None:
            raise ParameterError("key= selects an array of an .npz file; this source is not one")
        names = {role: name for role, name in aside.items() if isinstance(name, str)}
        table = read_numeric_table(source, list(names.values()), separator, encoding)
        if entities is None:
            check_row_names(table.header, table.values[:, :1], _name(source))
        values, entities = table.values, table.header if entities is None else entities
        if table.index_name is not None and row_labels is None:
            names["row_labels"] = table.index_name
        row_columns = aside | {role: _aside_column(table, name) for role, name in names.items()}
    if isinstance(positions, str | os.PathLike):
        positions, report["positions"] = read_positions(
            expand_home(positions), entities, separator, encoding
        )
    return Dataset(values, entities=entities, positions=positions, report=report, **row_columns)


def _from_container(
    opened: Opened, aside: dict[str, Any], entities: Any, positions: Any
) -> Dataset:
    """The data of another package's container; arguments of the caller take precedence."""
    if isinstance(positions, str | os.PathLike):
        labels = opened.entities if entities is None else entities
        positions = read_positions(expand_home(positions), labels, None, "utf-8").values
    passed = {role: column for role, column in aside.items() if column is not None}
    return Dataset(opened, entities=entities, positions=positions, **passed)


def _name(source: Any) -> str:
    return str(source) if isinstance(source, str | os.PathLike) else "the table"


def _is_array(source: Any) -> bool:
    if isinstance(source, str | os.PathLike):
        return Path(source).suffix.lower() in ARRAY_FILES
    return isinstance(source, np.ndarray | list | tuple) or is_sparse(source)


def _array(source: Any, key: str | None) -> Any:
    if isinstance(source, str | os.PathLike):
        return load_array(existing_file(source), key)
    return source


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
