"""The list of data sets: descriptions, terms of use, and whether they are available locally."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

from efemb.datasets.download import Home, find_here
from efemb.datasets.sources import DataSet
from efemb.errors import DataError, ParameterError, suggest
from efemb.table import Table

Loader = Callable[..., Any]


def catalog() -> dict[str, tuple[DataSet, Loader]]:
    """Every data set and its loader by name: the `ENTRIES` of the modules of this package."""
    import efemb.datasets

    entries = {}
    for module in pkgutil.iter_modules(efemb.datasets.__path__):
        loaded = importlib.import_module(f"efemb.datasets.{module.name}")
        for data, loader in getattr(loaded, "ENTRIES", ()):
            entries[data.name] = (data, loader)
    return dict(sorted(entries.items()))


def list_datasets(data_home: Home = None) -> Table:
    """List the data sets, one per row, without downloading any.

    Parameters
    ----------
    data_home : path, optional
        Folder of data sets; by default the folder in the environment variable EFEMB_DATA.

    Returns
    -------
    Table
        name, title, shape, megabytes (approximate size of the download), here (whether the files
        are on this machine), where (the folder, or where they are downloaded from), terms.
    """
    rows = []
    for data, _ in catalog().values():
        here, where = _place(data, data_home)
        rows.append(
            {
                "name": data.name,
                "title": data.title,
                "shape": data.shape,
                "megabytes": round(data.size / 1e6, 1),
                "here": here,
                "where": where,
                "terms": data.terms,
            }
        )
    return Table({column: [row[column] for row in rows] for column in rows[0]})


def fetch(
    name: str, data_home: Home = None, *, download: bool = True, progress: bool = True
) -> Any:
    """A data set by its name."""
    data_sets = catalog()
    by_function = {entry.replace("-", "_"): entry for entry in data_sets}
    name = by_function.get(name.replace("-", "_"), name)
    if name not in data_sets:
        raise ParameterError(f"unknown data set {name!r}; {suggest(name, data_sets)}")
    return data_sets[name][1](data_home=data_home, download=download, progress=progress)


def _place(data: DataSet, data_home: Home) -> tuple[bool, str]:
    """Whether the files are on this machine, and their folder or origin."""
    try:
        files = find_here(data, data_home, [])
    except DataError as error:
        return False, f"damaged: {error}"
    return (True, files.where) if files else (False, f"from {'; '.join(data.carriers)}")
