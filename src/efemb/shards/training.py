"""Fits from stores: in this process, or wherever the tasks of an executor run."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from efemb._files import check_path, check_writable
from efemb.data.store.executors import Executor, SerialExecutor
from efemb.data.store.shard_store import ShardStore
from efemb.engine.backends.sharded import EARLY_PASSES, Layout
from efemb.engine.fit_moments import fit_moments
from efemb.engine.fit_shards import Reading, fit_shards, make_layout
from efemb.errors import DataError, check_integer
from efemb.estimators.base import BaseEmbedding
from efemb.estimators.checks import all_or_nothing, generator
from efemb.estimators.inputs import Prepared
from efemb.model.space import ParameterSpace

Model = TypeVar("Model", bound=BaseEmbedding)


def fit(
    model: Model,
    store: ShardStore | str | os.PathLike[str],
    *,
    n_replicas: int = 1,
    rounds_per_pass: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = True,
) -> Model:
    """Fit a model to a store on this machine, with the memory of one shard at a time.

    Each pass takes the shards in a new order and their rows in a random order, so that with
    ``n_replicas=1`` the steps are those of `fit` on rows that are shuffled in blocks.

    Parameters
    ----------
    model : estimator
        Any model with a Basket context (or, for a store of text, a Window context). Its options,
        such as `max_iter`, `n_jobs` and `verbose`, hold as in its own `fit`.
    store : ShardStore or path
        Made by `prepare`.
    n_replicas : int, default=1
        Copies of the model that train on different shards and are averaged; more than 1 is for
        comparison with `efemb.dask.fit`, which gives the same bits.
    rounds_per_pass : int, optional
        Averagings in each pass. By default at least 4, and in the first two passes one per shard.
    checkpoint : path of a folder, optional
        Where the state is kept, so that the same call resumes after a crash with the same bits.
    resume : bool, default=True
        False starts again and replaces the checkpoint.

    Returns
    -------
    model
        The same estimator, fitted: an ordinary one, which can be saved and asked. Its `report_`
        says `shards`, `n_replicas`, `rounds`, `rows` and `deaths` of workers.

    Examples
    --------
    >>> import efemb, tempfile
    >>> import pandas as pd
    >>> lines = pd.DataFrame(
    ...     {"trip": [t for t in range(300) for _ in (0, 1)], "what": list(300 * "ab")}
    ... )
    >>> lines["what"] += (lines["trip"] % 3).astype(str)
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = efemb.shards.prepare(lines, folder.name, basket="trip", item="what", n_shards=4)
    >>> model = efemb.shards.fit(efemb.PoissonEmbedding(2, random_state=0), store)
    >>> model.report_["shards"], model.report_["rows"]
    (4, 300)
    >>> folder.cleanup()
    """
    return fit_store(
        model,
        store,
        SerialExecutor(),
        checkpoint,
        n_replicas=n_replicas,
        rounds_per_pass=rounds_per_pass,
        resume=resume,
    )


def score(model: Any, store: ShardStore | str | os.PathLike[str]) -> float:
    """How well a model predicts the rows of a store, one shard at a time.

    Parameters
    ----------
    model : fitted estimator or model
    store : ShardStore or path
        Such as ``store.test``.

    Returns
    -------
    float
        As `model.score` of all rows at once.
    """
    if not isinstance(store, ShardStore):
        store = ShardStore.open(store)
    numbers = [number for number, shard in enumerate(store.shards) if shard.n_rows]
    return mean_score([model.score_parts(store.shard(number)) for number in numbers])


def mean_score(parts: Sequence[tuple[float, float]]) -> float:
    """The score of all rows from sums and weights of their parts."""
    weight = sum(part[1] for part in parts)
    if not weight > 0:
        raise DataError("no row has two or more non-zero entities: there is nothing to score")
    return sum(part[0] for part in parts) / weight


def fit_store(
    model: Model,
    store: ShardStore | str | os.PathLike[str],
    executor: Executor,
    checkpoint: str | os.PathLike[str] | None,
    *,
    n_replicas: int,
    rounds_per_pass: int | None,
    resume: bool,
    check: Callable[[ParameterSpace, Any], None] = lambda space, dtype: None,
) -> Model:
    """Fit a model wherever the tasks of an executor run; see `fit` and `efemb.dask.fit`."""
    if not isinstance(store, ShardStore):
        store = ShardStore.open(store)
    check_integer("n_replicas", n_replicas)
    if rounds_per_pass is not None:
        check_integer("rounds_per_pass", rounds_per_pass)
    if store.kind == "recording":  # sums over rows: nothing is averaged
        n_replicas = rounds_per_pass = 1
    layout = make_layout(store, n_replicas, rounds_per_pass)
    with all_or_nothing(model):
        with _work_folder(store, checkpoint) as work:
            spec = model._spec()
            reading = Reading(model._binarizes(), _allows_real(model), model._way_out)
            common = (spec, store, reading, model._options(), generator(model.random_state))
            place = (layout, executor, work)
            if store.kind == "recording":
                fitted = fit_moments(*common, *place, center=model._centers())
            else:
                found = None if checkpoint is None else resume
                fitted = fit_shards(*common, *place, resume=found, check=check)
        model.n_features_in_, model.vocabulary_ = store.n_entities, store.vocabulary
        of_store = {name: value for name, value in store.report.items() if name != "positions"}
        report = {**of_store, **_report(store, layout, executor)}
        model._keep(fitted, spec, Prepared(store, None, None, report))
    model._warn_unconverged(fitted)
    return model


def _allows_real(model: BaseEmbedding) -> bool:
    return bool(getattr(model, "allow_real", model._allow_real))


def _report(store: ShardStore, layout: Layout, executor: Executor) -> dict[str, Any]:
    counts = store.vocabulary.counts
    return {
        "shards": len(layout.shards),
        "n_replicas": layout.n_replicas,
        "rounds": len(layout.rounds(EARLY_PASSES)),
        "step": layout.n_replicas**0.5,
        "rows": store.n_rows,
        "deaths": executor.lost,
        "unused_entities": [] if counts is None else (counts == 0).nonzero()[0].tolist(),
    }


@contextmanager
def _work_folder(store: ShardStore, checkpoint: str | os.PathLike[str] | None) -> Iterator[Path]:
    """The checkpoint, or a folder beside the shards (which workers see) for as long as a fit."""
    if checkpoint is not None:
        folder = check_path(checkpoint, "a checkpoint is a folder: pass its path")
        check_writable(folder)
        yield folder
        shutil.rmtree(folder / "rounds", ignore_errors=True)
        return
    folder = Path(tempfile.mkdtemp(prefix=".fit-", dir=store.path))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
