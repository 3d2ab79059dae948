"""score, transform and recommend over shards or partitions: a fitted model, asked on a cluster."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from efemb._typing import Floats
from efemb.dask.cluster import check_alike, find_client
from efemb.dask.executor import DaskExecutor
from efemb.errors import InputTypeError
from efemb.fitted.embedding import load
from efemb.shards import ShardStore
from efemb.shards.training import mean_score
from efemb.table import Table


def score(model: Any, data: Any, *, client: Any = None) -> float:
    """How well a model predicts the rows of a store or of a Dask collection.

    Parameters
    ----------
    model : fitted estimator or model
    data : ShardStore, path of a store, or Dask array or data frame
        Such as ``store.test``. A collection has rows x entities.
    client : dask.distributed.Client, optional
        By default the client in use.

    Returns
    -------
    float
        As `model.score` of all rows at once.
    """
    return mean_score(_ask(model, data, client, _score_parts))


def transform(model: Any, data: Any, *, client: Any = None) -> Floats:
    """Embed the rows of a store or of a Dask collection.

    Parameters
    ----------
    model : fitted estimator or model
    data : ShardStore, path of a store, or Dask array or data frame
    client : dask.distributed.Client, optional
        By default the client in use.

    Returns
    -------
    array of shape (rows, K)
        In the order of the shards or partitions.
    """
    return np.concatenate(_ask(model, data, client, _transform))


def recommend(model: Any, data: Any, n: int = 10, *, client: Any = None, **options: Any) -> Table:
    """List the best items for every row of a store or of a Dask collection.

    Parameters
    ----------
    model : fitted estimator or model
    data : ShardStore, path of a store, or Dask array or data frame
    n : int, default=10
        Number of items per row.
    client : dask.distributed.Client, optional
        By default the client in use.
    **options
        As in `model.recommend`.

    Returns
    -------
    Table
        As that of `model.recommend`; rows are numbered in the order of the shards or partitions.
    """
    tables = _ask(model, data, client, partial(_recommend, n=n, **options))
    starts = np.cumsum([0, *(size for size, _ in tables)])
    columns: dict[str, list[Any]] = {}
    for start, (_, table) in zip(starts, tables, strict=False):
        for name, column in table.items():
            columns.setdefault(name, []).append(column + start if name == "row" else column)
    return Table({name: np.concatenate(parts) for name, parts in columns.items()})


def _score_parts(model: Any, data: Any) -> tuple[float, float]:
    parts: tuple[float, float] = model.score_parts(data)
    return parts


def _transform(model: Any, data: Any) -> Floats:
    rows: Floats = model.transform(data)
    return rows


def _recommend(model: Any, data: Any, **options: Any) -> tuple[int, dict[str, Any]]:
    table = model.recommend(data, **options)
    return len(data), {name: np.asarray(table[name]) for name in table.columns}


@dataclass(frozen=True)
class AskTask:
    """A question about the rows of a shard to the model in a folder."""

    store: ShardStore
    shard: int
    model: Path
    question: Callable[[Any, Any], Any]


def ask_shard(task: AskTask) -> Any:
    """Answer it."""
    return task.question(_load(task.model), task.store.shard(task.shard))


@lru_cache(maxsize=2)
def _load(path: Path) -> Any:
    return load(path)


def _ask(model: Any, data: Any, client: Any, question: Callable[[Any, Any], Any]) -> list[Any]:
    """The answers of all shards or partitions, in their order."""
    client = find_client(client)
    check_alike(client, mixed_cpus=True)
    fitted = model.fitted() if hasattr(model, "fitted") else model
    if isinstance(data, str | os.PathLike):
        data = ShardStore.open(data)
    if isinstance(data, ShardStore):
        shards = [number for number, shard in enumerate(data.shards) if shard.n_rows]
        with _saved(fitted, data.path) as path:
            tasks = [AskTask(data, shard, path, question) for shard in shards]
            return DaskExecutor(client, mixed_cpus=True).run("ask", ask_shard, tasks)
    if not hasattr(data, "to_delayed"):
        raise InputTypeError(
            f"data must be a ShardStore or a Dask array or data frame, got {type(data).__name__}; "
            "data in memory are for the model's own methods"
        )
    parts = np.asarray(data.to_delayed()).ravel()
    if getattr(data, "ndim", 2) > 1 and len(parts) != len(np.asarray(data.to_delayed())):
        raise InputTypeError("the columns of the array are cut into chunks: rechunk({1: -1}) first")
    everywhere = client.scatter(fitted, broadcast=True)
    asked = [
        client.submit(_ask_partition, question, everywhere, rows, pure=False)
        for rows in client.compute(list(parts))
    ]
    answers: list[Any] = client.gather(asked)
    return [answer for answer in answers if answer is not None]


def _ask_partition(question: Callable[[Any, Any], Any], fitted: Any, rows: Any) -> Any:
    return question(fitted, rows) if len(rows) else None


@contextmanager
def _saved(fitted: Any, beside: Path) -> Iterator[Path]:
    """The model in a folder that workers see, for as long as it is asked."""
    folder = Path(tempfile.mkdtemp(prefix=".ask-", dir=beside))
    try:
        fitted.save(folder / "model")
        yield folder / "model"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
