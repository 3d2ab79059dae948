"""What tests do to the workers of a cluster, from inside of their tasks."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from efemb.dask.executor import DaskExecutor

Harm = Callable[[Any], None]


def harm_tasks(monkeypatch: pytest.MonkeyPatch, phase: str, harm: Harm) -> None:
    """Let `harm` look at the tasks of a phase on their workers before they run."""
    submit = DaskExecutor.submit

    def submit_harmed(self: Any, name: str, function: Any, tasks: Any, **where: Any) -> Any:
        if name == phase:
            function = partial(run_harmed, function, harm)
        return submit(self, name, function, tasks, **where)

    monkeypatch.setattr(DaskExecutor, "submit", submit_harmed)


def run_harmed(function: Any, harm: Harm, task: Any) -> Any:
    harm(task)
    return function(task)


def signal_once(marker: Path, number: int, task: Any) -> None:
    """Send a signal to this process, the first time that anybody comes here."""
    try:
        handle = os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return
    os.write(handle, str(os.getpid()).encode())
    os.close(handle)
    os.kill(os.getpid(), number)


def die_on_shard(shard: int, task: Any) -> None:
    """A shard that kills whoever trains on it."""
    if shard in task.shards:
        os.kill(os.getpid(), signal.SIGKILL)


def fail_on_shard(shard: int, task: Any) -> None:
    """A shard that no task can work with."""
    if shard in task.shards:
        raise RuntimeError("the weather")


class Skewed:
    """The fingerprint of this process; where it arrives on a worker, that of other software."""

    def __init__(self, here: dict[str, str], there: dict[str, str]) -> None:
        self.here, self.there = here, there

    def __call__(self) -> dict[str, str]:
        return self.here

    def __reduce__(self) -> Any:
        return Skewed, (self.there, self.there)
