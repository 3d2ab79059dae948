"""fit_shards: from checked ingredients and a store to fitted parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from efemb.data.store.executors import Executor
from efemb.data.store.shard_store import ShardStore
from efemb.engine.backends.sharded import EARLY_PASSES, Layout, ShardedBackend
from efemb.engine.backends.tasks import Measured, MeasureTask, ShardJob, groups_of, measure
from efemb.engine.callbacks import Callbacks, Checkpoint
from efemb.engine.checkpoint import Savepoint, identity
from efemb.engine.fit import Fit, batch_size, check_observed, choose_optimizer, make_plan
from efemb.engine.holdout import DEFAULT_FRACTION, MOST_ENTRIES
from efemb.engine.initial import initial_parameters
from efemb.engine.loop import Loop
from efemb.engine.optimizers.first_order import Optimizer
from efemb.engine.options import Options
from efemb.engine.precision import needs_double, scaled_to
from efemb.engine.prior_choice import priors_without_moments
from efemb.engine.solvers.choice import choose_solver
from efemb.errors import DataError, ParameterError
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec

# Averagings per pass: at least this many, and enough that replicas do not drift apart.
FEWEST_ROUNDS, MOST_ROUNDS, STEPS_OF_ROUND, BATCH = 4, 64, 64, 1024
MOST_MEASURED = 32  # tasks that measure shards, each of which returns several numbers per entity


@dataclass(frozen=True)
class Reading:
    """How an estimator reads its data."""

    binarize: bool
    allow_real: bool
    way_out: str


def make_layout(store: ShardStore, n_replicas: int, n_rounds: int | None) -> Layout:
    """Assign the shards with rows to replicas; defaults depend on sizes, not on workers."""
    shards = tuple(number for number, shard in enumerate(store.shards) if shard.n_rows)
    if not shards:
        raise DataError(f"{store.path} has no rows")
    if n_replicas > len(shards):
        raise ParameterError(
            f"n_replicas={n_replicas} is more than the {len(shards)} shards with rows: prepare the "
            "store with more shards, or use fewer replicas"
        )
    if n_rounds is not None:
        return Layout(shards, n_replicas, n_rounds, n_rounds)
    rounds = store.n_rows // (n_replicas * STEPS_OF_ROUND * BATCH)
    n_rounds = int(np.clip(rounds, FEWEST_ROUNDS, MOST_ROUNDS))
    return Layout(shards, n_replicas, n_rounds, n_rounds if n_replicas == 1 else MOST_ROUNDS)


def fit_shards(
    spec: Spec,
    store: ShardStore,
    reading: Reading,
    options: Options,
    rng: np.random.Generator,
    layout: Layout,
    executor: Executor,
    work: Path,
    *,
    resume: bool | None = True,
    check: Callable[[ParameterSpace, Any], None] = lambda space, dtype: None,
) -> Fit:
    """Fit one model to a store; `check` may refuse sizes before any shard is read.

    `resume` : from the loop in the folder `work`; None if nobody can, because it is a temporary one
    """
    options.check()
    rows_seen = _columns_to_learn_from(store, layout, spec)
    first: Any = store.shard(layout.shards[0])
    bound = spec.context.bind(first)
    written, spec = spec, replace(spec, context=bound.frozen(spec.context))
    spec = spec.freeze_terms(rows_seen)
    name = choose_solver(options.solver, bound, spec)
    _refuse(spec, name, layout, options)
    rows = batch_size(options.batch_size, name, store.n_rows)
    optimizer = _optimizer(options, name, spec, minibatches=rows is not None)
    dims = (bound.n_entities, bound.n_slots, bound.n_dims, options.n_components)
    check(ParameterSpace(spec, *dims), np.dtype(options.dtype))
    savepoint = _savepoint(work, resume, rng, written, options, store, layout, name)
    seed = int(rng.integers(2**62))
    dtype, share = np.dtype(options.dtype), _share(options, name, store)
    job = ShardJob(store, spec, name, dtype, options.n_jobs, seed, share, **vars(reading))
    callbacks = Callbacks(options.callbacks or ())
    callbacks.announce(_describe(store, layout))
    measured = _measure(job, layout, executor)
    job = _adapt(job, measured)
    chosen = priors_without_moments(job.spec, bound.lists)
    job = replace(job, spec=chosen.spec)
    space = ParameterSpace(chosen.spec, *dims)
    begin = initial_parameters(space, measured.statistics, rng).astype(job.dtype)
    plan = make_plan(space, name, measured.n_rows, rows, optimizer, options, seed)
    own = _arrays_of_one_shard(spec, store)
    plan = replace(plan, n_shards=layout.n_replicas, deterministic=True, of_one_shard=own)
    files = work / "rounds"
    backend = ShardedBackend(executor, job, plan, layout, measured, files, callbacks.announce)
    loop = Loop(backend, plan, options.n_iter_no_change, options.tol, callbacks, savepoint)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # checked each pass
        result = loop.run_from(begin, None)
    result.parameters = result.parameters.astype(options.dtype)
    gradient = chosen.spec.zeros.gradient
    how = (chosen.lists, chosen.spec.context, bound.n_slots, measured.held_out, optimizer)
    report = {**chosen.report, **spec.structure.describe(rows_seen)}
    return Fit(result, name, gradient, *how, chosen.spec.terms, chosen.spec, report)


def _optimizer(options: Options, solver: str, spec: Spec, *, minibatches: bool) -> Optimizer:
    optimizer = choose_optimizer(
        options.optimizer, solver, spec, options.n_components, minibatches=minibatches
    )
    if optimizer.full_batch:
        raise ParameterError(f"{optimizer!r} needs all rows at once: use Adagrad on shards")
    return optimizer


def _columns_to_learn_from(store: ShardStore, layout: Layout, spec: Spec) -> Any:
    """Row columns of all rows, or some rows if the model needs none."""
    text = store.kind == "text"
    if spec.context.reads_text != text:
        required = "a store of text" if spec.context.reads_text else "a store of rows"
        raise ParameterError(f"{spec.context!r} needs {required}, {store.path} holds {store.kind}")
    for term in spec.terms:
        if not term.learns_from_columns:
            raise ParameterError(
                f"{term!r} learns from the values of all training rows, which are not in memory "
                "here: fit it in memory with fit(data), or leave it out. RowVectors and groups "
                "of rows need columns only"
            )
    columns: dict[str, Any] = {name: term for term in spec.terms for name in term.columns}
    columns |= dict.fromkeys(spec.structure.columns, spec.structure)
    for name, ingredient in columns.items():
        if name not in store.columns:
            present = ", ".join(map(repr, store.columns)) or "none"
            raise ParameterError(
                f"{ingredient!r} needs the row column {name!r}, which {store.path} lacks (columns: "
                f"{present}): prepare the store with rows={{{name!r}: ...}}, or fit in memory"
            )
    return store.columns_of_rows() if columns else store.shard(layout.shards[0])


def _describe(store: ShardStore, layout: Layout) -> str:
    """Summary of the run, for callbacks."""
    text = f"{store.n_rows:,} rows in {len(layout.shards)} shards"
    if layout.n_replicas == 1:
        return f"{text}, one after the other"
    n, rounds = layout.n_replicas, len(layout.rounds(EARLY_PASSES))
    return (
        f"{text}, {n} replicas, averaged {rounds} times per pass: more than {n} workers have "
        "nothing to do"
    )


def _refuse(spec: Spec, name: str, layout: Layout, options: Options) -> None:
    if name == "windows" and options.batch_size not in ("auto", None):
        raise ParameterError("solver 'windows' steps word by word: leave batch_size='auto'")
    if name not in ("rows", "windows"):
        raise ParameterError(
            f"solver {name!r} does not train on shards: use a Basket or Window context, or fit in "
            "memory"
        )
    if layout.n_replicas > 1 and name == "rows" and spec.zeros.gradient != "exact":
        raise ParameterError(
            f"zeros={spec.zeros!r} with n_replicas={layout.n_replicas}: averaged replicas learn "
            "clearly less from sampled zeros; use n_replicas=1 (one machine with n_jobs threads "
            "is fast enough for them), or zeros=All()"
        )


def _arrays_of_one_shard(spec: Spec, store: ShardStore) -> frozenset[str]:
    """Names of arrays with a row for each group of rows that share a shard."""
    return frozenset(
        f"{term.label}.{term.group_array}"
        for term in spec.terms
        if term.group_array is not None and term.columns == (store.together,)
    )


def _measure(job: ShardJob, layout: Layout, executor: Executor) -> Measured:
    """Measure all shards; an error if nothing is observed."""
    tasks = [MeasureTask(job, group) for group in groups_of(layout.shards, MOST_MEASURED)]
    measured: Measured = reduce(add, executor.run("measure", measure, tasks))
    check_observed(measured.n_observed)
    return measured


def _share(options: Options, name: str, store: ShardStore) -> float | None:
    """Share of the entries of every shard that is held out."""
    automatic = options.early_stopping == "auto"
    if not (name != "windows" if automatic else options.early_stopping):
        return None
    if options.validation_fraction is not None:
        return options.validation_fraction
    return min(DEFAULT_FRACTION, MOST_ENTRIES / max(store.n_entries, 1))


def _adapt(job: ShardJob, measured: Measured) -> ShardJob:
    """The precision that the values need, and a dispersion that starts at that of the data."""
    spec, moments, dtype = job.spec, measured.moments, job.dtype
    double = measured.outweighs
    if moments is not None:
        double = double or needs_double(moments, job.solver)
        spec = scaled_to(spec, moments.mean, moments.mean_square)
    return replace(job, spec=spec, dtype=np.dtype(np.float64) if double else dtype)


def _savepoint(
    work: Path,
    resume: bool | None,
    rng: np.random.Generator,
    spec: Spec,
    options: Options,
    store: ShardStore,
    layout: Layout,
    name: str,
) -> Savepoint | None:
    """The state of the loop after every pass, in the folder of the fit."""
    planned = name == "windows"
    own = [c for c in options.callbacks if isinstance(c, Checkpoint)]
    if own:
        raise ParameterError(
            "a fit on shards has its own checkpoint: pass checkpoint= instead of the callback "
            f"Checkpoint({str(own[0].path)!r})"
        )
    if resume is None:
        return None
    checkpoint = Checkpoint(work / "loop", resume=resume)

    def identify() -> dict[str, Any]:
        marks = identity(spec, options, store, None, planned=planned, sample_weight=None)
        return {**marks, "layout": vars(layout)}

    return Savepoint.open([checkpoint], rng, identify, seeded=options.seeded)
