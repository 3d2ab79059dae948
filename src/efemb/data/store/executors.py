"""Executors, which run tasks that read and write files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")
Watch = Callable[[float], bool]  # takes the finished share; returns True to stop


class InterruptedTasksError(Exception):
    """A user asked to stop before all tasks were done; never reaches the caller of a fit."""


class Executor(Protocol):
    """Runs the tasks of a phase.

    A task is pure: it reads files, writes files under names that depend on the task alone, and
    returns a few numbers. It may be run again, elsewhere or twice at the same time.
    """

    lost: int  # workers that died so far

    @property
    def width(self) -> int:
        """Tasks that can run at once."""
        ...

    def run(
        self,
        phase: str,
        function: Callable[[Task], Outcome],
        tasks: Sequence[Task],
        watch: Watch | None = None,
    ) -> list[Outcome]:
        """The outcome of every task, in the order of the tasks."""
        ...


def describe_lost(number: int) -> str:
    """A line about lost workers, which do not change the result."""
    who = "a worker was" if number == 1 else f"{number} workers were"
    return f"{who} lost: the tasks ran again elsewhere, with the same result"


class SerialExecutor:
    """One task after the other in this process; every other executor must give its results."""

    width = 1
    lost = 0

    def run(
        self,
        phase: str,
        function: Callable[[Any], Any],
        tasks: Sequence[Any],
        watch: Watch | None = None,
    ) -> list[Any]:
        """The outcome of every task, in the order of the tasks."""
        outcomes = []
        for number, task in enumerate(tasks):
            outcomes.append(function(task))
            if watch is not None and watch((number + 1) / len(tasks)) and number + 1 < len(tasks):
                raise InterruptedTasksError(phase)
        return outcomes
