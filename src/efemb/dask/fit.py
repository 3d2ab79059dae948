"""prepare and fit on a cluster: the tasks of `efemb.shards`, run by Dask."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from efemb import shards
from efemb.dask.cluster import check_alike, check_limits, find_client, warn_threads
from efemb.dask.executor import DaskExecutor
from efemb.errors import check_integer
from efemb.model.space import ParameterSpace
from efemb.shards import ShardStore
from efemb.shards.training import Model, fit_store

BYTES_OF_ENTRY = 90  # that a task keeps while it trains on a shard
COPIES = 14  # of the parameters, that the task holds which averages states


def prepare(
    source: Any, store: str | os.PathLike[str], *, client: Any = None, **options: Any
) -> Any:
    """Read transactions into a store of shards on the workers of a cluster.

    Parameters
    ----------
    source, store, **options
        As in `efemb.shards.prepare`. Workers read the files under the names that are passed here;
        tables in memory are read in this process.
    client : dask.distributed.Client, optional
        By default the client in use.

    Returns
    -------
    ShardStore
        With the same bits as that of `efemb.shards.prepare`; its `report` also says the number of
        `deaths` of workers.
    """
    client = find_client(client)
    check_alike(client, mixed_cpus=True)
    executor = DaskExecutor(client, os.fspath(store), mixed_cpus=True)
    prepared = shards.prepare(source, store, **options, executor=executor)
    executor.look()  # short phases end before it is noticed that a worker died
    return replace(prepared, report={**prepared.report, "deaths": executor.lost})


def fit(
    model: Model,
    store: ShardStore | str | os.PathLike[str],
    *,
    client: Any = None,
    n_replicas: int = 8,
    rounds_per_pass: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = True,
    mixed_cpus: bool = False,
    wait: float = 60.0,
    slow: float = 30.0,
) -> Model:
    """Fit a model to a store on the workers of a cluster.

    Replicas of the model train apart on different shards and are averaged several times in each
    pass. Bits depend on the lines, the settings, `n_shards`, `n_replicas`, `rounds_per_pass`, the
    seed, versions of software and the processor. They do not depend on the number of workers,
    their deaths, the order of arrival, or on stopping and resuming.

    Parameters
    ----------
    model : estimator
        As in `efemb.shards.fit`. Its `n_jobs` is the number of threads of a task.
    store : ShardStore or path
        Made by `efemb.shards.prepare`, in a folder that every worker sees under the same path.
    client : dask.distributed.Client, optional
        By default the client in use; a cluster is never started here.
    n_replicas : int, default=8
        Copies of the model. More workers than replicas have nothing to do; steps are
        sqrt(n_replicas) times as long, which makes up for averaging.
    rounds_per_pass : int, optional
        Averagings in each pass. By default at least 4, and in the first two passes one per shard.
    checkpoint : path of a folder, optional
        Where states are kept, in a folder that every worker sees; the same call resumes from it
        with the same bits. By default a temporary folder in the store.
    resume : bool, default=True
        False starts again and replaces the checkpoint.
    mixed_cpus : bool, default=False
        Allow workers with different processors; bits then depend on which worker does what.
    wait : float, default=60
        Seconds without any worker after which `ClusterLostError` is raised.
    slow : float, default=30
        Seconds after which a task that takes five times as long as its peers is copied to an idle
        worker.

    Returns
    -------
    model
        The same estimator, fitted: an ordinary one in this process.

    Raises
    ------
    ShardError
        If a task fails on every worker; names its shards and files.
    ClusterLostError
        If no worker or no scheduler is left.
    """
    client = find_client(client)
    check_integer("n_replicas", n_replicas)
    check_alike(client, mixed_cpus=mixed_cpus)
    warn_threads(client, model.n_jobs)
    opened = store if isinstance(store, ShardStore) else ShardStore.open(store)
    place = "" if checkpoint is None else os.fspath(checkpoint)
    executor = DaskExecutor(client, place, mixed_cpus=mixed_cpus, wait=wait, slow=slow)
    largest = max((shard.n_entries for shard in opened.shards), default=0)

    def check(space: ParameterSpace, dtype: Any) -> None:
        numbers = sum(int(np.prod(array.shape)) for array in space.layout)
        states = COPIES * numbers * dtype.itemsize
        check_limits(client, states + BYTES_OF_ENTRY * largest, "states and a shard")
        if n_replicas > 1 and space.spec.positive_rho:
            warnings.warn(
                f"positive vectors learn slowly from averaged replicas: expect about three times "
                f"the passes of one machine with n_replicas={n_replicas}; n_replicas=1 has no such "
                "loss",
                stacklevel=6,
            )

    fitted = fit_store(
        model,
        opened,
        executor,
        checkpoint,
        n_replicas=n_replicas,
        rounds_per_pass=rounds_per_pass,
        resume=resume,
        check=check,
    )
    fitted.report_["mixed_cpus"] = mixed_cpus
    return fitted
