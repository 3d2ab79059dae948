"""fit_moments: Gaussian models of a recording in shards, from sums of Gram matrices.

One task per shard computes the Gram matrices of its rows. Their sums are all that a fit needs; the
rest of it runs as on one machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from efemb.data.store.executors import Executor
from efemb.data.store.shard_store import ShardStore
from efemb.engine.backends.sharded import Layout
from efemb.engine.backends.tasks import ShardJob
from efemb.engine.fit import (
    Fit,
    choose_optimizer,
    make_loop,
    make_plan,
    refuse_batches,
    use_all_rows,
)
from efemb.engine.fit_shards import Reading
from efemb.engine.holdout import DEFAULT_FRACTION, Split
from efemb.engine.initial import initial_parameters
from efemb.engine.options import Options
from efemb.engine.precision import scaled_to
from efemb.engine.prior_choice import choose_priors
from efemb.engine.solvers.choice import choose_solver
from efemb.engine.statistics import Statistics, ValueMoments
from efemb.engine.threads import workers
from efemb.engine.validation import SolverValidation
from efemb.errors import DataError, ParameterError
from efemb.model.contexts.base import BoundContext
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.storage.folder import SealedKind

SUMS = SealedKind(
    format="efemb sums", noun="sums over a shard", version=1, tensors="sums.safetensors"
)
FEWEST_ROWS = 20  # of a shard with held-out rows


@dataclass(frozen=True)
class GramTask:
    """A shard, and the folder for its sums."""

    job: ShardJob
    shard: int
    target: Path


def measure_values(task: GramTask) -> ValueMoments:
    """Check a shard and add up its values."""
    data = task.job.read(task.shard)
    task.job.check(data)
    return ValueMoments.of(data)


def sum_products(task: GramTask) -> Statistics:
    """Write the Gram matrices of the training rows and of the held-out rows."""
    with workers(task.job.n_jobs) as pool:
        split = task.job.split(task.shard, pool)
        arrays = _prefix_names("train", split.solver)
        if split.validation is not None:
            arrays |= _prefix_names("held", _held_solver(split))
        SUMS.write(task.target, {}, arrays, damaged=True)
        return Statistics.of(split.bound, split.solver.row_weight)


def _prefix_names(part: str, solver: Any) -> dict[str, Any]:
    return {f"{part}.{name}": array for name, array in solver.sums().items()}


def _held_solver(split: Split) -> Any:
    assert isinstance(split.validation, SolverValidation)
    return split.validation.solver


def fit_moments(
    spec: Spec,
    store: ShardStore,
    reading: Reading,
    options: Options,
    rng: np.random.Generator,
    layout: Layout,
    executor: Executor,
    work: Path,
    *,
    center: bool,
) -> Fit:
    """Fit one model to a recording in shards; equal to a fit in memory except for the hold-out."""
    options.check()
    _check_shards(store, layout, spec)
    share = None
    if options.early_stopping:
        share = options.validation_fraction or DEFAULT_FRACTION
    job = ShardJob(
        *(store, spec, "moments", np.dtype(np.float64), options.n_jobs, 0, share),
        **vars(reading),
    )
    tasks = [GramTask(job, shard, work / f"sums-{shard}") for shard in layout.shards]
    moments: ValueMoments = reduce(add, executor.run("values", measure_values, tasks))
    bound = _bind(spec, store, layout)
    if center:
        bound = bound.about(moments.mean.ravel())
    spec = replace(spec, context=bound.frozen(spec.context))
    spec = scaled_to(spec, moments.mean, moments.mean_square)
    if choose_solver(options.solver, bound, spec) != "moments":
        raise ParameterError(
            "a recording in shards needs a Gaussian family with the identity link and a context "
            "that is fixed for each entity: fit other models in memory"
        )
    optimizer = choose_optimizer(
        options.optimizer, "moments", spec, options.n_components, minibatches=False
    )
    refuse_batches(options.batch_size, "moments", optimizer)
    dims = (bound.n_entities, bound.n_slots, bound.n_dims, options.n_components)
    job = replace(job, spec=spec, seed=int(rng.integers(2**62)), lists=bound.lists)
    tasks = [replace(task, job=job) for task in tasks]
    statistics: Statistics = reduce(add, executor.run("products", sum_products, tasks))
    with workers(options.n_jobs) as pool:
        split = _merge(job.split(layout.shards[0], pool), tasks[1:])
        chosen = choose_priors(spec, split.solver, bound.lists)
        spec = chosen.spec
        space = ParameterSpace(spec, *dims)
        begin = initial_parameters(space, statistics, rng).astype(job.dtype)
        plan = make_plan(space, "moments", statistics.n_rows, None, optimizer, options, job.seed)
        result = make_loop(split, plan, options).run_from(begin, None)
        use_all_rows(result, split, space)
    result.parameters = result.parameters.astype(options.dtype)
    held = split.validation is not None
    how = (chosen.lists, spec.context, bound.n_slots, held, optimizer, spec.terms)
    return Fit(result, "moments", "exact", *how, spec, chosen.report)


def _check_shards(store: ShardStore, layout: Layout, spec: Spec) -> None:
    if spec.context.reads_text or spec.context.rest_of_row:
        raise ParameterError(f"{spec.context!r} needs text or baskets, {store.path} is a recording")
    if spec.context.reaches_other_rows:
        raise ParameterError(
            f"{spec.context!r} reaches other rows, and shards cut a recording: fit it in memory"
        )
    small = [number for number in layout.shards if store.shards[number].n_rows < FEWEST_ROWS]
    if small:
        raise DataError(
            f"shard {small[0]} of {store.path} has fewer than {FEWEST_ROWS} rows: prepare the "
            "recording with fewer shards"
        )


def _bind(spec: Spec, store: ShardStore, layout: Layout) -> Any:
    """Bind the first shard, whose lists must be those of every other."""
    rows: list[Any] = [store.shard(layout.shards[i]) for i in (0, -1)]
    first, last = (spec.context.bind(data) for data in rows)
    if not _same_lists(first, last):
        raise ParameterError(
            f"{spec.context!r} chooses neighbors by the rows, which differ between shards: pass "
            "positions= to prepare_recording, a Graph, or the neighbors of an earlier fit"
        )
    return first


def _same_lists(one: BoundContext, other: BoundContext) -> bool:
    if one.lists is None or other.lists is None:
        return False
    pairs = zip(one.lists, other.lists, strict=True)
    return all(np.array_equal(a.members, b.members) for a, b in pairs)


def _merge(split: Split, tasks: list[GramTask]) -> Split:
    """Add the sums of all other shards to those of the first, in their order."""
    for task in tasks:
        arrays = SUMS.read(task.target).arrays
        for part, solver in (("train", split.solver), ("held", None)):
            sums = {n.partition(".")[2]: a for n, a in arrays.items() if n.startswith(f"{part}.")}
            target: Any = solver if solver is not None else _held_solver(split) if sums else None
            if target is not None:
                target.add_sums(sums)
    if split.validation is None:
        return split
    held = _held_solver(split)
    return replace(split, validation=SolverValidation(held, None, held.total_weight))
