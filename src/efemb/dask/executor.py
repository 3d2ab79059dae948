"""DaskExecutor: tasks on the workers of a cluster, whatever happens to those workers.

Dask runs a task again when its worker dies, a few times; then it gives up, also on tasks that only
waited on the same worker. Here such tasks are submitted again one by one, so that the one that
kills its workers is known. A task that takes far longer than its peers gets a second copy on an
idle worker.
"""

from __future__ import annotations

import pickle
import time
import traceback
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any, cast

from efemb.dask.cluster import (
    POLL,
    WAIT,
    differences,
    fingerprint,
    require_distributed,
    workers_of,
)
from efemb.data.store.executors import InterruptedTasksError, Watch
from efemb.errors import ClusterLostError, EfembError, ParameterError, ShardError

# For an outcome, which is small; twice as long each time.
FETCH_SECONDS, MOST_FETCHES = 5.0, 20
SLOW_SECONDS, SLOW_FACTOR = 30.0, 5.0  # a task is copied if it is older than both say


@dataclass(frozen=True)
class Failure:
    """An error of a task, as its outcome.

    Not raised on the worker, which would log it also where nobody waits for the task any more: a
    copy that was overtaken finds the files gone that it was to read.

    error : if it is a typed one;  text, trace : in words
    """

    error: EfembError | None
    text: str
    trace: str = ""

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """The error that is being handled."""
        typed = error.with_traceback(None) if isinstance(error, EfembError) else None
        return cls(typed, explain(error), traceback.format_exc())


@dataclass
class _Attempt:
    """A task and the futures that try it."""

    number: int
    futures: list[Any] = field(default_factory=list)
    began: float = 0.0  # since a worker has it
    kills: int = 0
    fetches: int = 0  # of an outcome, in vain


class DaskExecutor:
    """Runs tasks through a `dask.distributed.Client`.

    Parameters
    ----------
    client : dask.distributed.Client
    checkpoint : str, default=""
        Where a fit can be resumed from, for messages.
    mixed_cpus : bool, default=False
        Whether workers may have different processors.
    wait : float, default=60.0
        Seconds without any worker after which the cluster is lost.
    slow : float, default=30.0
        Seconds after which a second copy of a slow task may be started.
    """

    def __init__(
        self,
        client: Any,
        checkpoint: str = "",
        *,
        mixed_cpus: bool = False,
        wait: float = WAIT,
        slow: float = SLOW_SECONDS,
    ) -> None:
        self.client, self.checkpoint, self.wait, self.slow = client, checkpoint, wait, slow
        self.mixed_cpus, self.expected = mixed_cpus, fingerprint()
        self.lost = 0
        self._known = set(workers_of(client))
        self._last_seen = self._looked = time.monotonic()
        self._run = uuid.uuid4().hex[:8]
        self._submitted = 0

    @property
    def width(self) -> int:
        """Threads of all workers."""
        return max(1, len(self._known))

    def run(
        self,
        phase: str,
        function: Callable[[Any], Any],
        tasks: Sequence[Any],
        watch: Watch | None = None,
    ) -> list[Any]:
        """The outcome of every task, in the order of the tasks."""
        job = _Phase(self, phase, function, tasks)
        try:
            return job.run(watch)
        except EfembError:
            raise
        except Exception as error:
            if self._is_connected:
                raise
            raise ClusterLostError(
                f"the connection to the scheduler is {self.client.status}{self.way_out}"
            ) from error
        finally:
            if self._is_connected:
                job.cancel()

    @property
    def _is_connected(self) -> bool:
        return bool(self.client.status == "running")

    def submit(
        self, phase: str, function: Any, tasks: Mapping[int, Any], **where: Any
    ) -> list[Any]:
        """A future for each task, under a key of its own, which the dashboard shows.

        All of them are one message to the scheduler, which sees bytes instead of tasks: it would
        unpickle and pickle each of them, and have no time for the workers.
        """
        dumps = require_distributed().protocol.pickle.dumps  # also of what a notebook defines
        self._submitted += 1
        keys = [f"efemb-{phase}-{number}-{self._run}-{self._submitted}" for number in tasks]
        checked = partial(run_checked, function, self.expected, self.mixed_cpus)
        pickled = [dumps(task) for task in tasks.values()]
        futures: list[Any] = self.client.map(
            checked, pickled, key=keys, pure=False, retries=0, **where
        )
        return futures

    @property
    def is_look_due(self) -> bool:
        """Whether workers may have come or gone since the last look."""
        return time.monotonic() - self._looked > POLL

    def look(self) -> dict[str, dict[str, Any]]:
        """The workers; counts those that are gone, and raises an error when none comes back."""
        try:
            workers = workers_of(self.client)
        except ClusterLostError as error:
            raise ClusterLostError(f"{error}{self.way_out}") from error
        self.lost += len(self._known - set(workers))
        self._known = set(workers)
        now = self._looked = time.monotonic()
        if workers:
            self._last_seen = now
        elif now - self._last_seen > self.wait:
            raise ClusterLostError(
                f"no worker is left, and none came within {self.wait:.0f} s{self.way_out}"
            )
        return workers

    @property
    def way_out(self) -> str:
        """How to resume."""
        if not self.checkpoint:
            return "; pass checkpoint= to be able to resume"
        return f"; start workers and call the same fit again: it resumes from {self.checkpoint}"


class _Phase:
    """The tasks of one phase."""

    def __init__(
        self, executor: DaskExecutor, phase: str, function: Any, tasks: Sequence[Any]
    ) -> None:
        self.executor, self.phase, self.function, self.tasks = executor, phase, function, tasks
        self.outcomes: dict[int, Any] = {}
        self.open: dict[int, _Attempt] = {}
        self.alone: list[_Attempt] = []  # their workers died: they run when nothing else does
        self.seconds: list[float] = []

    def run(self, watch: Watch | None) -> list[Any]:
        self._submit([_Attempt(number) for number in range(len(self.tasks))])
        while self.open or self.alone:
            if not self.open:
                self._submit([self.alone.pop(0)])
            self._wait()
            self._collect()
            if self.open or self.executor.is_look_due:  # a look asks the scheduler
                self._copy_slow(self.executor.look())
            done = len(self.outcomes) / len(self.tasks)
            if watch is not None and watch(done) and done < 1:
                raise InterruptedTasksError(self.phase)
        return [self.outcomes[number] for number in range(len(self.tasks))]

    def cancel(self) -> None:
        futures = [future for attempt in self.open.values() for future in attempt.futures]
        if futures:
            self.executor.client.cancel(futures, force=True)

    def _submit(self, attempts: Sequence[_Attempt], **where: Any) -> None:
        tasks = {attempt.number: self.tasks[attempt.number] for attempt in attempts}
        futures = self.executor.submit(self.phase, self.function, tasks, **where)
        for attempt, future in zip(attempts, futures, strict=True):
            attempt.futures.append(future)
            attempt.began = attempt.began or time.monotonic()
            self.open[attempt.number] = attempt

    def _wait(self) -> None:
        distributed = require_distributed()
        futures = [future for attempt in self.open.values() for future in attempt.futures]
        try:
            distributed.wait(futures, timeout=POLL)
        except TimeoutError:
            pass
        except distributed.client.CancelledError as error:
            raise ClusterLostError(
                f"the tasks were canceled: the scheduler restarted, or another client did it"
                f"{self.executor.way_out}"
            ) from error

    def _collect(self) -> None:
        """Take the outcomes that are there, all at once where every worker answers."""
        outcomes = self._gather(
            {
                attempt.number: future
                for attempt in self.open.values()
                for future in reversed(attempt.futures)
                if future.status == "finished"
            }
        )
        for attempt in list(self.open.values()):
            if attempt.number in outcomes:
                self._take(attempt, outcomes[attempt.number])
            else:
                self._settle(attempt)

    def _gather(self, finished: dict[int, Any]) -> dict[int, Any]:
        """Outcomes by the number of their task; none if one of them went away."""
        client = self.executor.client
        gather = partial(client.gather, asynchronous=True)
        try:
            return cast(
                "dict[int, Any]", client.sync(gather, finished, callback_timeout=FETCH_SECONDS)
            )
        except Exception:  # of the cluster; each outcome is then asked for on its own
            return {}

    def _settle(self, attempt: _Attempt) -> None:
        """Take the first outcome of a task; its other copies are not waited for."""
        for future in list(attempt.futures):
            if future.status == "finished":
                self._fetch(attempt, future)
            elif future.status in ("error", "cancelled", "lost"):
                attempt.futures.remove(future)
                self._fail(attempt, future)
            else:
                continue
            return

    def _fetch(self, attempt: _Attempt, future: Any) -> None:
        """Take an outcome from its worker; where that is gone, the task is submitted again."""
        patience = min(self.executor.wait, FETCH_SECONDS * 2**attempt.fetches)
        try:
            outcome = future.result(timeout=patience)
        except Exception as error:  # of the cluster: those of tasks are outcomes
            attempt.fetches += 1
            if attempt.fetches > MOST_FETCHES:
                raise self._shard_error(attempt, Failure(None, explain(error))) from error
            attempt.futures.remove(future)
            self.executor.client.cancel([future], force=True)
            if not attempt.futures:
                self._submit([attempt])
            return
        self._take(attempt, outcome)

    def _take(self, attempt: _Attempt, outcome: Any) -> None:
        if isinstance(outcome, Failure):
            raise self._shard_error(attempt, outcome)
        self.outcomes[attempt.number] = outcome
        self.seconds.append(time.monotonic() - attempt.began)
        self._drop(attempt)

    def _drop(self, attempt: _Attempt) -> None:
        del self.open[attempt.number]
        late = [future for future in attempt.futures if future.status == "pending"]
        if late:
            self.executor.client.cancel(late, force=True)
        attempt.futures.clear()

    def _fail(self, attempt: _Attempt, future: Any) -> None:
        """Submit again what lost its worker; errors of the task itself are the caller's."""
        distributed = require_distributed()
        if future.status != "error":
            if not attempt.futures:
                self._submit([attempt])
            return
        error = future.exception()
        failure = Failure(None, explain(error))
        if not isinstance(error, distributed.scheduler.KilledWorker):
            raise self._shard_error(attempt, failure) from error
        if attempt.futures:  # another copy is still running
            return
        attempt.kills += 1
        if attempt.kills > 1:  # it was alone this time
            raise self._shard_error(attempt, failure) from error
        attempt.began = 0.0
        del self.open[attempt.number]
        self.alone.append(attempt)

    def _shard_error(self, attempt: _Attempt, failure: Failure) -> EfembError:
        """A typed error of a task as it is, any other with the shards and files of the task."""
        task = self.tasks[attempt.number]
        error = failure.error or ShardError(
            f"{describe(self.phase, task)} failed: {failure.text}{self.executor.way_out}"
        )
        if failure.trace:
            error.add_note(f"On the worker: {failure.trace}")
        return error

    def _copy_slow(self, workers: dict[str, dict[str, Any]]) -> None:
        """A second copy of a task that takes far longer than its peers, where someone is idle."""
        limit = max(self.executor.slow, SLOW_FACTOR * median(self.seconds or [0.0]))
        now = time.monotonic()
        slow = [
            attempt
            for attempt in self.open.values()
            if len(attempt.futures) == 1 and now - attempt.began > limit
        ]
        if not slow or len(workers) < 2:
            return
        busy = self._busy()
        idle = [address for address in workers if not busy.get(address)]
        for attempt, address in zip(slow, idle, strict=False):
            self._submit([attempt], workers=[address], allow_other_workers=False)
            attempt.began = now

    def _busy(self) -> dict[str, Any]:
        try:
            processing: dict[str, Any] = self.executor.client.processing()
        except (OSError, TimeoutError):
            return {}
        return processing


def run_checked(
    function: Callable[[Any], Any], expected: dict[str, str], mixed_cpus: bool, pickled: bytes
) -> Any:
    """Run a task, unless this worker came later and would give other bits; errors are outcomes."""
    differing = differences(expected, fingerprint(), mixed_cpus=mixed_cpus)
    try:
        if differing:
            raise ParameterError(
                f"a worker that joined later has {', '.join(differing)}: remove it, or install "
                "the same versions"
            )
        return function(pickle.loads(pickled))
    except Exception as error:
        return Failure.of(error)


def describe(phase: str, task: Any) -> str:
    """A task in the words of a user: its shards and files."""
    shards = getattr(task, "shards", None)
    if shards is None and hasattr(task, "shard"):
        shards = (task.shard,)
    store = getattr(getattr(task, "job", None), "store", None)
    parts = [f"phase {phase!r}"]
    if shards is not None:
        parts.append(f"shard {', '.join(map(str, shards))}")
    if store is not None and shards is not None:
        arrays = [entry["file"] for s in shards for entry in store.shards[s].arrays.values()]
        parts.append(f"of {store.path} (files {', '.join(arrays[:3])}, ...)")
    files = getattr(task, "files", ())
    if files:
        parts.append(f"files {', '.join(files[:3])}{', ...' if len(files) > 3 else ''}")
    return " ".join(parts)


def explain(error: Exception) -> str:
    """What happened, without the words of a scheduler."""
    worker = getattr(error, "last_worker", None)
    if worker is None:
        return f"{type(error).__name__}: {error}"
    return (
        "every worker that ran it died, also when it ran alone (the last was "
        f"{getattr(worker, 'address', worker)}): often memory; see the logs of that worker"
    )
