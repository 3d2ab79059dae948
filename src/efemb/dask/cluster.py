"""The cluster that a client is connected to: its workers, and whether they are alike."""

from __future__ import annotations

import importlib.metadata
import ipaddress
import platform
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from efemb.data.memory import in_words
from efemb.errors import ClusterLostError, MemoryEstimateError, MissingExtraError, ParameterError

PACKAGES = ("efemb", "numpy", "numba", "llvmlite", "scipy")
WAIT, POLL = 60.0, 0.5  # seconds without an answer, and between looks at the cluster
GONE = (TimeoutError, CancelledError, OSError)
# A local cluster gives a worker up if it is absent so long after any of its deaths, also if it came
# back and has died again since: by default 15 s, which a second death can meet by chance.
PATIENCE = {"distributed.deploy.lost-worker-timeout": "1 day"}
# Dask has its workers give memory back to the system at once, so that every array of a task comes
# with page faults. Arrays up to 32 MB, the most malloc allows, are reused here.
_ENVIRON = "distributed.nanny.pre-spawn-environ"
REUSE = {
    f"{_ENVIRON}.MALLOC_TRIM_THRESHOLD_": 1 << 28,
    f"{_ENVIRON}.MALLOC_MMAP_THRESHOLD_": 1 << 25,
}
# Dask samples the threads of a worker a hundred times a second, and looks at every process fifty
# times: with two workers, a tenth of a core.
RARELY = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
}
# Dask warns about workers that are slow to stop, also after good runs. Those that die are counted
# and reported by the executor; errors of tasks are raised with their traces.
QUIET = "ERROR"
SHARE_OF_LIMIT = 0.6  # of a worker's memory: a nanny kills at 95%, and states cannot be spilled


def require_distributed() -> Any:
    """The package distributed, or an error that names the extra to install."""
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError(
            'efemb.dask needs distributed: pip install "efemb[dask]"'
        ) from error
    return distributed


@contextmanager
def open_cluster(address: str) -> Iterator[Any]:
    """A client of the scheduler at an address, or of so many processes here: local:4."""
    distributed = require_distributed()
    kind, _, number = address.partition(":")
    if kind != "local":
        try:
            client = distributed.Client(address, timeout=WAIT)
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterLostError(f"no scheduler answers at {address}: {error}") from error
        with client:
            yield client
        return
    if not number.isdigit() or int(number) < 1:
        raise ParameterError(f"{address!r} is not a cluster: use local:4 or tcp://host:8786")
    with start_local(n_workers=int(number)) as client:
        yield client


@contextmanager
def start_local(**options: Any) -> Iterator[Any]:
    """A client of processes on this machine, one thread each, which are replaced when they die."""
    import dask

    distributed = require_distributed()
    usual: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": ":0"}
    usual["silence_logs"] = QUIET
    with (
        dask.config.set({**REUSE, **PATIENCE, **RARELY}),
        distributed.LocalCluster(**{**usual, **options}) as local,
        distributed.Client(local) as client,
    ):
        yield client


def find_client(client: Any) -> Any:
    """The client that was passed, or the one in use; none is ever started here."""
    distributed = require_distributed()
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError as error:
            raise ParameterError(
                "there is no Dask client: pass client=Client(LocalCluster(threads_per_worker=1)) "
                "or client=Client('tcp://host:8786'), both from dask.distributed"
            ) from error
    if not hasattr(client, "scheduler_info"):
        raise ParameterError(f"client must be a dask.distributed.Client, got {client!r}")
    _warn_open(client)
    return client


def _warn_open(client: Any) -> None:
    """Whoever reaches a scheduler without TLS can run any code on its workers."""
    address = str(getattr(client.scheduler, "address", ""))
    protocol, _, rest = address.partition("://")
    host = rest.rpartition(":")[0].strip("[]")
    if protocol not in ("tcp", "ws") or host in ("", "localhost"):
        return
    try:
        private = ipaddress.ip_address(host).is_private
    except ValueError:
        private = True  # a name of the local network
    if not private:
        warnings.warn(
            f"the scheduler at {address} has a public address and no TLS: whoever reaches it can "
            "run any code on the workers; use tls:// (dask.distributed.Security)",
            stacklevel=4,
        )


def workers_of(client: Any) -> dict[str, dict[str, Any]]:
    """The workers by address; an error where the scheduler does not answer."""
    if client.status != "running":
        raise ClusterLostError(f"the connection to the scheduler is {client.status}")
    try:
        workers: dict[str, dict[str, Any]] = client.scheduler_info(n_workers=-1)["workers"]
    except (OSError, TimeoutError) as error:
        raise ClusterLostError(f"the scheduler does not answer: {error}") from error
    return workers


@cache
def fingerprint() -> dict[str, str]:
    """What bits depend on: versions of software, and the processor that code is compiled for."""
    import llvmlite.binding

    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "from its source"
    features = llvmlite.binding.get_host_cpu_features().flatten()
    return {
        "python": platform.python_version(),
        **versions,
        "processor": f"{llvmlite.binding.get_host_cpu_name()} {hash_text(features)}",
    }


def hash_text(text: str) -> str:
    """A few characters that tell one text from another."""
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()[:8]


def differences(expected: dict[str, str], actual: dict[str, str], *, mixed_cpus: bool) -> list[str]:
    """What is not the same, in words."""
    names = [name for name in expected if not (mixed_cpus and name == "processor")]
    return [
        f"{name} {actual.get(name)} instead of {expected[name]}"
        for name in names
        if expected[name] != actual.get(name)
    ]


def check_alike(client: Any, *, mixed_cpus: bool) -> None:
    """Refuse workers whose software or processor would give other bits, or that lack efemb."""
    # A worker that cannot unpickle a function of ours goes down: one of Python's is sent first.
    _ask_workers(client, eval, "__import__('efemb').__version__")
    for address, actual in _ask_workers(client, fingerprint).items():
        differing = differences(fingerprint(), actual, mixed_cpus=mixed_cpus)
        if differing:
            raise ParameterError(
                f"the worker {address} has {', '.join(differing)}: results would depend on which "
                "worker does what. Install the same versions"
                + ("" if mixed_cpus else ", or pass mixed_cpus=True if only processors differ")
            )


def _ask_workers(client: Any, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """What a function says on every worker; one that hangs, or goes away, says nothing."""
    distributed = require_distributed()
    futures = {
        address: client.submit(
            function,
            *arguments,
            key=f"efemb-versions-{address}-{uuid.uuid4().hex[:8]}",
            workers=[address],
            pure=False,
        )
        for address in workers_of(client)
    }
    answers: dict[str, Any] = {}
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        present = workers_of(client)
        waiting = {a: f for a, f in futures.items() if a in present and a not in answers}
        if not waiting:
            break
        for address, future in waiting.items():
            if future.status == "error":
                error = future.exception()
                raise ParameterError(
                    f"the worker {address} cannot run efemb ({type(error).__name__}: {error}): "
                    f"install efemb {fingerprint()['efemb']} on every worker"
                ) from error
            if future.status == "finished":
                with suppress(*GONE):  # an answer goes away with its worker
                    answers[address] = future.result(timeout=POLL)
        with suppress(*GONE):
            distributed.wait([f for a, f in waiting.items() if a not in answers], timeout=POLL)
    client.cancel(list(futures.values()))
    return answers


def check_limits(client: Any, need: int, what: str) -> None:
    """Refuse a task that does not fit into the memory of a worker, before anything is read."""
    for address, worker in workers_of(client).items():
        limit = int(worker.get("memory_limit") or 0)
        if limit and need > SHARE_OF_LIMIT * limit:
            raise MemoryEstimateError(
                f"{what} need about {in_words(need)} on a worker, {address} has a limit of "
                f"{in_words(limit)} (of which {SHARE_OF_LIMIT:.0%} are used): start workers with a "
                "larger memory_limit, use fewer components, or prepare the store with more shards"
            )


def warn_threads(client: Any, n_jobs: int | None) -> None:
    """Warn where tasks that use several threads run beside each other."""
    threads = max((int(w.get("nthreads", 1)) for w in workers_of(client).values()), default=1)
    if threads > 1 and n_jobs not in (None, 1):
        warnings.warn(
            f"workers run {threads} tasks at once, each with n_jobs={n_jobs} threads: start them "
            "with one thread (dask worker --nthreads 1) and let n_jobs use the cores",
            stacklevel=4,
        )
