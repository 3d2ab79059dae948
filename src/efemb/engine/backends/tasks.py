"""Tasks on shards: functions of files that write files, so that they may run anywhere, and twice.

A task reads a state, runs rounds on its shards and writes the resulting state. Workers hold nothing
that cannot be recomputed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from efemb._typing import Floats
from efemb.data.store.shard_store import ShardStore
from efemb.engine.backends.states import (
    Paths,
    Trained,
    checksum_of,
    checksums_of,
    done_before,
    read_part,
    read_state,
    write_part,
    write_state,
)
from efemb.engine.holdout import Split, hold_out, no_split
from efemb.engine.optimizers.first_order import OptimizerState
from efemb.engine.plan import Plan, Shard
from efemb.engine.random import generator
from efemb.engine.round import Averaging, merge, run_round
from efemb.engine.solvers.base import Solver
from efemb.engine.solvers.choice import Setup
from efemb.engine.statistics import Statistics, ValueMoments, has_outweighing_entry
from efemb.engine.threads import Workers, workers
from efemb.engine.validation import Validation
from efemb.model.contexts.base import BoundContext
from efemb.model.contexts.bound.entities import EntityLists, Lists
from efemb.model.factors import Factors
from efemb.model.families.base import Family
from efemb.model.spec import Spec
from efemb.model.support import binarized, check_not_negative, check_support

MOST_KEPT = 64  # validation sets that a process keeps


@dataclass(frozen=True)
class ShardJob:
    """Settings that all tasks of a fit share.

    share : of the entries of each shard that are held out, None if none are
    binarize, allow_real, way_out : how an estimator reads its data
    lists : fixed contexts of every entity, if they do not depend on the rows
    """

    store: ShardStore
    spec: Spec
    solver: str
    dtype: Any
    n_jobs: int | None
    seed: int
    share: float | None
    binarize: bool
    allow_real: bool
    way_out: str
    lists: tuple[Lists, ...] | None = None

    def __getstate__(self) -> dict[str, Any]:
        assert self._mark  # computed once per fit, not once per task
        return self.__dict__

    def read(self, shard: int) -> Any:
        """The rows of a shard, as a fit reads them."""
        data: Any = self.store.shard(shard)
        if self.binarize:
            check_not_negative(data)
            data = binarized(data)
        return data

    def check(self, data: Any) -> None:
        """Reject values that the family cannot have produced."""
        if not self.spec.context.reads_text:
            options: dict[str, Any] = {"allow_real": self.allow_real, "way_out": self.way_out}
            check_support(data, self.spec.family, **options)

    def bind(self, data: Any) -> BoundContext:
        """The contexts of some rows."""
        if self.lists is not None:
            return EntityLists(data, self.lists)
        return self.spec.context.bind(data)

    def split(self, shard: int, pool: Workers, data: Any = None) -> Split:
        """The solver of a shard, and the score of its held-out observations."""
        bound = self.bind(self.read(shard) if data is None else data)
        popularity = self.store.vocabulary.counts if self.solver == "rows" else None
        setup = Setup(self.solver, self.spec, pool, self.dtype, self.seed, popularity)
        split = no_split(bound, None, setup)
        if self.share is not None:
            rng = generator(self.seed, 0, shard, "hold-out")
            split = hold_out(bound, self.share, None, setup, rng)
        _kept[self._key(shard)] = split.validation
        while len(_kept) > MOST_KEPT:
            del _kept[next(iter(_kept))]
        return split

    def validation(self, shard: int, pool: Workers) -> Validation | None:
        """The score of the held-out observations of a shard; a few shards are cached."""
        key = self._key(shard)
        validation = _kept[key] if key in _kept else self.split(shard, pool).validation
        if validation is not None:
            validation.use(pool)
        return validation

    def _key(self, shard: int) -> tuple[Any, ...]:
        return (shard, *self._mark)

    @cached_property
    def _mark(self) -> tuple[Any, ...]:
        """Everything on which validation sets depend, except the shard."""
        model = (repr(self.spec), self.solver, self.binarize, self.share, self.seed)
        return (self.store.checksum, *model)


_kept: dict[tuple[Any, ...], Validation | None] = {}


# -- statistics of all rows ------------------------------------------------------------------------


@dataclass(frozen=True)
class MeasureTask:
    """Shards to be measured before training."""

    job: ShardJob
    shards: tuple[int, ...]


@dataclass(frozen=True)
class Measured:
    """Statistics of a shard that a fit needs, which add up over shards.

    n_rows : to train on;  outweighs : whether single precision would lose an entry
    held_out : whether anything is held out
    """

    statistics: Statistics
    moments: ValueMoments | None
    outweighs: bool
    n_rows: int
    n_observed: float
    total_weight: float
    held_out: bool

    def __add__(self, other: Measured) -> Measured:
        """The statistics of both shards."""
        both = self.moments is not None and other.moments is not None
        return Measured(
            self.statistics + other.statistics,
            self.moments + other.moments if both else None,  # type: ignore[operator]
            self.outweighs or other.outweighs,
            self.n_rows + other.n_rows,
            self.n_observed + other.n_observed,
            self.total_weight + other.total_weight,
            self.held_out or other.held_out,
        )


def measure(task: MeasureTask) -> Measured:
    """Check and measure shards; only the sum over them is in memory."""
    measured = _measure(task.job, task.shards[0])
    for shard in task.shards[1:]:
        measured = measured + _measure(task.job, shard)
    return measured


def _measure(job: ShardJob, shard: int) -> Measured:
    data = job.read(shard)
    job.check(data)
    family, text = job.spec.family, job.spec.context.reads_text
    values = not text and (family.learns or not family.normalized_score)
    with workers(job.n_jobs) as pool:
        split = job.split(shard, pool, data)
        solver = split.solver
        return Measured(
            Statistics.of(split.bound, solver.row_weight),
            ValueMoments.of(data) if values else None,
            not text and not job.spec.context.binary and has_outweighing_entry(data),
            solver.n_rows,
            solver.n_observed,
            solver.total_weight if family.learns else 0.0,
            split.validation is not None,
        )


# -- training --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrainTask:
    """Some shards that a replica trains on, one after the other.

    replica : its number;  first_round : rounds before the first of these shards
    start, target : the states to begin with and to write
    """

    job: ShardJob
    plan: Plan
    shards: tuple[int, ...]
    replica: int
    first_round: int
    start: Paths
    target: Paths


def train(task: TrainTask) -> Trained:
    """Train on the shards of a task, unless its result exists already."""
    mark = {"start": list(checksums_of(task.start)), "shards": list(task.shards)}
    done = done_before(task.target, mark)
    if done is not None:
        return done
    plan, rows, value = task.plan, 0, 0.0
    state = read_state(task.start, plan)
    with workers(task.job.n_jobs) as pool:
        for place, number in enumerate(task.shards):
            split = task.job.split(number, pool)
            state = replace(state, round=task.first_round + place)
            shard = Shard(split.solver, None, task.replica)
            state = merge(state, [run_round(state, shard, plan, in_place=True)], plan)
            value += state.objective - plan.space.log_prior(state.parameters)
            rows += split.solver.n_rows
            del split, shard  # before the next one is read: only one is in memory at a time
    prior = plan.space.log_prior(state.parameters)
    state = replace(state, objective=value + prior)
    value = state.objective - prior
    write_state(task.target, state, {**mark, "rows": rows, "data_term": value})
    return Trained(task.target, checksums_of(task.target), rows, value)


@dataclass(frozen=True)
class ReduceTask:
    """The same part of the states of all replicas, to be merged in their order.

    start : this part of the state that they began with
    parts : the folder and the checksum of each
    """

    plan: Plan
    start: Path
    parts: tuple[tuple[Path, str], ...]
    target: Path


def reduce(task: ReduceTask) -> str:
    """Average parameters and sums of squares, in double precision and in the order of replicas.

    Returns the checksum of what was written.
    """
    mean = Averaging(read_state((task.start,), task.plan), task.plan)
    for part in task.parts:
        state = read_part(*part)
        optimizer = OptimizerState(state["optimizer"]["name"], state["optimizer"]["arrays"])
        mean.add({**state["parameters"], **state["theta"]}, optimizer, state["steps"])
    write_part(task.target, mean.merged())
    return checksum_of(task.target)


# -- scores ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScoreTask:
    """Shards to be scored at the parameters of a state.

    family : with the dispersion that has been learned since the state was written
    """

    job: ShardJob
    plan: Plan
    shards: tuple[int, ...]
    state: Paths
    family: Family


def score(task: ScoreTask) -> list[tuple[float, float]]:
    """Sums of scores and of weights of the held-out observations of each shard."""
    vectors = task.plan.space.vectors(read_state(task.state, task.plan).parameters)
    parts = []
    with workers(task.job.n_jobs) as pool:
        for shard in task.shards:
            validation = task.job.validation(shard, pool)
            if validation is not None:
                parts.append(validation.parts(vectors, task.family))
            else:
                parts.append((0.0, 0.0))
    return parts


def evaluate(task: ScoreTask) -> list[float]:
    """The data term of each shard, with every zero."""
    return _of_solvers(task, lambda solver, at: solver.value_and_gradient(at, exact=True)[0])


def weigh_evidence(task: ScoreTask) -> list[tuple[Floats, Floats]]:
    """Sums by entity of the evidence of the family, and of the weights of cells, of each shard."""
    return _of_solvers(task, lambda solver, at: solver.evidence(at))


def _of_solvers(task: ScoreTask, ask: Callable[[Solver[Any], Factors], Any]) -> list[Any]:
    vectors = task.plan.space.vectors(read_state(task.state, task.plan).parameters)
    answers = []
    with workers(task.job.n_jobs) as pool:
        for shard in task.shards:
            solver = task.job.split(shard, pool).solver
            solver.set_family(task.family)
            answers.append(ask(solver, vectors))
    return answers


def groups_of(shards: Sequence[int], n: int) -> list[tuple[int, ...]]:
    """Cut the shards into at most `n` groups of consecutive ones."""
    n = max(1, min(n, len(shards)))
    edges = [len(shards) * k // n for k in range(n + 1)]
    return [tuple(shards[a:b]) for a, b in pairwise(edges)]
