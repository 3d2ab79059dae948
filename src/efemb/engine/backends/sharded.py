"""ShardedBackend: passes over a store as tasks of an executor; replicas are averaged in rounds."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from efemb._typing import Floats
from efemb.data.store.executors import Executor, InterruptedTasksError, describe_lost
from efemb.engine.backends.base import Backend
from efemb.engine.backends.states import (
    Paths,
    Trained,
    count_parts,
    paths_of,
    read_state,
    write_state,
)
from efemb.engine.backends.tasks import (
    Measured,
    ReduceTask,
    ScoreTask,
    ShardJob,
    TrainTask,
    evaluate,
    groups_of,
    reduce,
    score,
    train,
    weigh_evidence,
)
from efemb.engine.plan import Plan
from efemb.engine.random import generator
from efemb.engine.round import Watch
from efemb.engine.state import TrainState, Update
from efemb.errors import DataLossError
from efemb.model.parameters import Parameters

EARLY_PASSES = 2  # in which most is learned


@dataclass(frozen=True)
class Layout:
    """The assignment of shards to replicas, on which the result of a fit depends.

    shards : numbers of the shards that have rows
    n_replicas : copies of the model that are trained separately and averaged
    n_rounds : averagings per pass; with a single replica, points at which a fit may stop
    n_early : averagings in each of the first passes, when steps are long and replicas differ most
    """

    shards: tuple[int, ...]
    n_replicas: int
    n_rounds: int
    n_early: int

    def deal(self, seed: int, number: int) -> list[list[int]]:
        """The shards of each replica in a pass, in the order in which it trains on them."""
        rng = generator(seed, number + 1, 0, "order of shards")
        order = [self.shards[place] for place in rng.permutation(len(self.shards))]
        return [order[replica :: self.n_replicas] for replica in range(self.n_replicas)]

    @property
    def n_places(self) -> int:
        """Maximum number of shards per replica in a pass."""
        return -(-len(self.shards) // self.n_replicas)

    def rounds(self, number: int) -> list[slice]:
        """Slices of the shards of a replica, one per round of a pass."""
        n = min(self.n_early if number < EARLY_PASSES else self.n_rounds, self.n_places)
        return [slice(a, b) for a, b in pairwise(self.n_places * k // n for k in range(n + 1))]


class ShardedBackend(Backend):
    """Runs a pass as rounds of tasks; to the loop a pass is a single round of a single shard.

    work : folder of the states that tasks exchange; all workers must have access to it
    announce : prints a line about lost workers
    """

    def __init__(
        self,
        executor: Executor,
        job: ShardJob,
        plan: Plan,
        layout: Layout,
        measured: Measured,
        work: Path,
        announce: Callable[[str], None],
    ) -> None:
        self.executor, self.job, self.plan, self.layout = executor, job, plan, layout
        self.measured, self.work, self.announce = measured, work, announce
        # For a task, each shard is a round, so that a decaying step decays over all of them.
        self.task_plan = replace(plan, n_rounds=plan.n_rounds * layout.n_places)
        self.n_observed = measured.n_observed
        self.rounds_between_scores = 1
        self.status, self._lost = "", 0
        self.n_parts = count_parts(plan.space, job.dtype, layout.n_replicas)
        self._written: tuple[Parameters, Paths] | None = None

    def run(self, state: TrainState, watch: Watch) -> list[Update]:
        """One pass: rounds in which every replica trains on its shards, then all are averaged."""
        number, layout = state.round, self.layout
        queues = layout.deal(self.plan.seed, number)
        folder = self.work / f"pass-{number:05d}"
        shutil.rmtree(self.work / f"pass-{number - 1:05d}", ignore_errors=True)
        first, last = number * layout.n_places, self._paths(folder / "start")
        write_state(last, state, {})
        data_term, rows, done = 0.0, 0, 0
        rounds = layout.rounds(number)
        for turn, places in enumerate(rounds):
            tasks = [
                TrainTask(
                    self.job,
                    self.task_plan,
                    tuple(queue[places]),
                    replica,
                    first + places.start,
                    last,
                    self._paths(folder / f"round-{turn}-{replica}"),
                )
                for replica, queue in enumerate(queues)
                if queue[places]
            ]
            self.status = f"round {turn + 1} of {len(rounds)}"
            share = sum(len(task.shards) for task in tasks)
            watched = self._watch_round(watch, tasks, done)
            try:
                trained = self._run("train", train, tasks, watched)
            except InterruptedTasksError:
                break
            last = self._merge(last, trained, self._paths(folder / f"round-{turn}"))
            data_term += sum(state.data_term for state in trained)
            rows, done = rows + sum(state.rows for state in trained), done + share
        else:
            self._check_rows(rows)
        ended = read_state(last, self.plan)
        self._written = (ended.parameters, last)
        objective = data_term + self.plan.space.log_prior(ended.parameters)
        return [Update(ended.theta, ended.parameters, ended.optimizer, ended.steps, objective)]

    def _run(
        self,
        phase: str,
        function: Callable[[Any], Any],
        tasks: Sequence[Any],
        watch: Watch | None = None,
    ) -> list[Any]:
        """Results of the tasks of a phase; lost workers are announced once."""
        outcomes = self.executor.run(phase, function, tasks, watch)
        if lost := self.executor.lost - self._lost:
            self.announce(describe_lost(lost))
        self._lost += lost
        return outcomes

    def _watch_round(self, watch: Watch, tasks: Sequence[TrainTask], before: int) -> Watch:
        n_shards, here = len(self.layout.shards), sum(len(task.shards) for task in tasks)
        turn = self.status

        def watch_round(done: float) -> bool:
            self.status = f"{turn}, {round(done * here)} of {here} shards"
            if lost := self.executor.lost:
                self.status += f", {lost} worker{'' if lost == 1 else 's'} lost"
            return watch((before + done * here) / n_shards)

        return watch_round

    def _merge(self, start: Paths, trained: Sequence[Trained], target: Paths) -> Paths:
        """Average each part in a task of its own; the state of a single replica is not changed."""
        if len(trained) == 1:
            return trained[0].paths
        tasks = [
            ReduceTask(
                self.plan,
                start[part],
                tuple((state.paths[part], state.checksums[part]) for state in trained),
                target[part],
            )
            for part in range(self.n_parts)
        ]
        self._run("reduce", reduce, tasks)
        return target

    def _paths(self, path: Path) -> Paths:
        return paths_of(path, self.n_parts)

    def _check_rows(self, rows: int) -> None:
        if rows != self.measured.n_rows:
            raise DataLossError(
                f"a pass trained on {rows:,} rows, but {self.job.store.path} has "
                f"{self.measured.n_rows:,}; the states of the last whole pass are in {self.work}"
            )

    def evaluate(self, state: TrainState) -> float:
        """Sum over the shards, in their order."""
        outcomes: list[list[float]] = self._run("evaluate", evaluate, self._score_tasks(state))
        return sum(value for values in outcomes for value in values)

    def evidence(self, state: TrainState) -> tuple[Floats, Floats]:
        """Sum over the shards, in their order."""
        total, weight = np.zeros((2, self.plan.space.n_entities))
        for sums in self._run("evidence", weigh_evidence, self._score_tasks(state)):
            for of_shard in sums:
                total, weight = total + of_shard[0], weight + of_shard[1]
        return total, weight

    @property
    def total_weight(self) -> float:
        """Sum over the shards."""
        return self.measured.total_weight

    def validate(self, state: TrainState) -> float | None:
        """Mean score of the shards, weighted by what each holds out, in their order."""
        if not self.measured.held_out:
            return None
        outcomes: list[list[tuple[float, float]]] = self._run(
            "score", score, self._score_tasks(state)
        )
        parts = [part for outcome in outcomes for part in outcome]
        return sum(total for total, _ in parts) / sum(weight for _, weight in parts)

    def _score_tasks(self, state: TrainState) -> list[ScoreTask]:
        paths = self._paths(self.work / "scored")
        if self._written is not None and self._written[0] is state.parameters:
            paths = self._written[1]
        else:
            write_state(paths, state, {})
        groups = groups_of(self.layout.shards, 2 * self.executor.width)
        return [ScoreTask(self.job, self.plan, group, paths, state.family) for group in groups]
