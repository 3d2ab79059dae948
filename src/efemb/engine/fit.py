"""fit_model: from checked ingredients and data to fitted parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.data.memory import in_words
from efemb.engine.backends.local import LocalBackend
from efemb.engine.callbacks import Callbacks
from efemb.engine.checkpoint import Savepoint, identity
from efemb.engine.holdout import Split, given_split, hold_out, no_split
from efemb.engine.initial import initial_parameters
from efemb.engine.limits import check_memory, typed_memory_errors
from efemb.engine.loop import Loop, Result
from efemb.engine.optimizers.first_order import LBFGS, SGD, Adagrad, Optimizer, OptimizerState
from efemb.engine.options import Options
from efemb.engine.plan import Plan, Shard
from efemb.engine.precision import scaled, working_precision
from efemb.engine.prior_choice import choose_priors
from efemb.engine.solvers.base import Solver
from efemb.engine.solvers.choice import Setup, choose_solver
from efemb.engine.solvers.moments.solver import MomentsSolver
from efemb.engine.statistics import Statistics, centered
from efemb.engine.threads import workers
from efemb.engine.validation import SolverValidation
from efemb.errors import DataError, ParameterError
from efemb.model.contexts.base import BoundContext, Context
from efemb.model.contexts.bound.entities import EntityLists, Lists
from efemb.model.contract import (
    check_context_contract,
    check_structure_contract,
    check_term_contract,
)
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.model.terms import Term

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

# Passes of a first-order optimizer: this many steps, but at least the minimum number of passes.
MOST_STEPS, FEWEST = 10_000, 300
# For Adagrad on minibatches; chosen on the validation trips of three shops, K = 20 to 100.
PACE, BOLDEST, EPSILON = 1.1, 0.2, 0.01


@dataclass(frozen=True)
class Fit:
    """A finished fit, and how it was done."""

    result: Result
    solver: str
    gradient: str
    lists: tuple[Lists, ...] | None
    context: Context  # of the model, with the lists of neighbors that were chosen
    n_slots: int
    held_out: bool  # whether a held-out score, rather than the objective, decided when to stop
    optimizer: Optimizer
    terms: tuple[Term, ...]  # with what they learned from the training rows
    spec: Spec  # with numeric priors
    report: dict[str, Any]  # choices that depend on the data


def choose_optimizer(
    value: Any, solver: str, spec: Spec, k: int, *, minibatches: bool
) -> Optimizer:
    """L-BFGS for the moments, Adagrad otherwise (larger steps on all rows), unless specified."""
    if isinstance(value, str) and value == "auto":
        if solver == "moments":
            return LBFGS()
        if solver == "windows":
            if spec.combine.reverse:  # by likelihood and word lists of two corpora; as in word2vec
                return SGD(0.025, decay="linear")
            return Adagrad(0.3, epsilon=1e-4)  # one sum of squares per vector allows larger steps
        if spec.positive_rho:  # steps are relative
            return Adagrad(0.7, epsilon=1e-3) if minibatches else Adagrad(0.5)
        if not minibatches:
            return Adagrad(BOLDEST)
        # So that inner products, not numbers, move at the same pace for any number of components.
        return Adagrad(round(min(BOLDEST, PACE / k**0.5), 3), epsilon=EPSILON)
    optimizer = Optimizer.resolve(value)
    optimizer.check()
    if optimizer.full_batch and spec.zeros.gradient != "exact":
        raise ParameterError(f"{optimizer!r} needs exact gradients: use zeros=All(weight)")
    return optimizer


@typed_memory_errors()
def fit_model(
    spec: Spec,
    data: Dataset,
    options: Options,
    rng: np.random.Generator,
    *,
    validation: Dataset | None = None,
    sample_weight: Floats | None = None,
    start: Parameters | None = None,
    state: OptimizerState | None = None,
    lists: tuple[Lists, ...] | None = None,
    center: bool = False,
) -> Fit:
    """Fit one model; errors are raised before any work if something cannot be done.

    `lists` are the neighbors of an earlier fit, `state` is that of its optimizer. `center`
    measures the members of fixed contexts from their means.
    """
    job = _prepare(spec, data, options, sample_weight, lists, center=center)
    origin: dict[str, Any] = {"sample_weight": sample_weight, "start": start}
    origin |= {"state": state, "lists": lists} | ({"center": center} if center else {})
    planned = job.solver == "windows"
    savepoint = Savepoint.open(
        options.callbacks,
        rng,
        lambda: identity(job.written, options, data, validation, planned=planned, **origin),
        seeded=options.seeded,
    )
    with workers(options.n_jobs) as pool:
        setup = Setup(job.solver, job.spec, pool, job.dtype, int(rng.integers(2**62)))
        split = _split(job.bound, validation, sample_weight, setup, options, rng)
        check_observed(split.solver.n_observed)
        chosen = choose_priors(job.spec, split.solver, job.bound.lists, keep=lists is not None)
        spec, space = chosen.spec, job.space(chosen.spec)
        begin = initial_parameters(space, Statistics.of(split.bound, split.solver.row_weight), rng)
        begin = (begin if start is None else space.checked(start)).astype(job.dtype)
        plan = _plan(space, split, job.optimizer, options, setup.seed)
        loop = make_loop(split, plan, options)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # checked each step
            result = replace(loop, savepoint=savepoint).run_from(begin, state)
            if validation is None and start is None:
                _repeat_short_fit(result, job, loop, sample_weight, setup)
        if validation is None:
            use_all_rows(result, split, space)
    result.parameters = result.parameters.astype(options.dtype)
    return Fit(
        result,
        solver=job.solver,
        gradient=spec.zeros.gradient if job.solver in ("rows", "windows") else "exact",
        lists=chosen.lists,
        context=spec.context,
        n_slots=job.bound.n_slots,
        held_out=split.validation is not None,
        optimizer=job.optimizer,
        terms=spec.terms,
        spec=spec,
        report={**chosen.report, **spec.structure.describe(data)},
    )


@dataclass(frozen=True)
class _Job:
    """Decisions about a fit, made and checked before any work.

    written : the ingredients before they are frozen by the data
    """

    written: Spec
    spec: Spec
    bound: BoundContext
    solver: str
    optimizer: Optimizer
    dtype: Any
    n_components: int

    def space(self, spec: Spec) -> ParameterSpace:
        """The parameter space of these ingredients on the data."""
        bound = self.bound
        return ParameterSpace(
            spec, bound.n_entities, bound.n_slots, bound.n_dims, self.n_components
        )


def _prepare(
    spec: Spec,
    data: Dataset,
    options: Options,
    sample_weight: Floats | None,
    lists: tuple[Lists, ...] | None,
    *,
    center: bool,
) -> _Job:
    """Bind the contexts, and choose and check everything that needs no pass over the rows."""
    options.check()
    spec = replace(spec, family=spec.family.freeze(data))
    bound = _bind(spec, data, sample_weight, lists, center=center)
    written, spec = spec, replace(spec, context=bound.frozen(spec.context))
    spec = scaled(spec.freeze_terms(data, sample_weight), data, sample_weight)
    _check_contracts(spec, data)
    solver = choose_solver(options.solver, bound, spec)
    if solver == "windows" and options.batch_size not in ("auto", None):
        raise ParameterError("solver 'windows' steps word by word: leave batch_size='auto'")
    k, minibatches = options.n_components, batch_size(options.batch_size, solver, data.n_rows)
    optimizer = choose_optimizer(
        options.optimizer, solver, spec, k, minibatches=minibatches is not None
    )
    dtype = working_precision(data, spec, solver, options.dtype)
    job = _Job(written, spec, bound, solver, optimizer, dtype, k)
    _check_size(bound, job.space(spec), solver, dtype, options)
    return job


def use_all_rows(result: Result, split: Split, space: ParameterSpace) -> None:
    """Solve for rho again, including the held-out rows, if this takes no pass over the data.

    Only with a ridge, which prevents rho from fitting these rows more closely than validated.
    """
    solver, held = split.solver, split.validation
    if space.spec.weight_ridge is None:
        return
    if not (isinstance(held, SolverValidation) and solver.projects(space)):
        return
    other = held.solver
    if not (isinstance(solver, MomentsSolver) and isinstance(other, MomentsSolver)):
        return
    if any(part.reaches_other_rows for part in solver.bound.lists) or result.interrupted:
        return  # held-out rows were blanked, not removed
    solver.set_family(result.family)
    solver.add_sums(other.sums())
    rho, intercept = solver.best_targets(result.parameters.alpha)
    if np.isfinite(rho).all():
        result.parameters.rho = rho
        if result.parameters.intercept is not None:
            result.parameters.intercept = intercept


def _repeat_short_fit(
    result: Result, job: _Job, loop: Loop, sample_weight: Floats | None, setup: Setup
) -> None:
    """Fit all rows for as many steps, if the first few steps were the best ones.

    Such data are so few that what is held out changes the intercepts noticeably.
    """
    plan = loop.plan
    if result.best_iter not in loop.backend.early_scores or plan.space.spec.family.learns:
        return
    whole, rng = no_split(job.bound, sample_weight, setup), np.random.default_rng(setup.seed)
    statistics = Statistics.of(whole.bound, whole.solver.row_weight)
    begin = initial_parameters(plan.space, statistics, rng).astype(job.dtype)
    short = replace(plan, n_rounds=result.best_iter)
    backend = LocalBackend([Shard(whole.solver, None)], short)
    again = Loop(backend, short, patience=1, tol=0.0, callbacks=Callbacks(()))
    result.parameters = again.run_from(begin, None).parameters


def _check_size(
    bound: BoundContext, space: ParameterSpace, solver: str, dtype: Any, options: Options
) -> None:
    """Reject what does not fit into memory, with an estimate for groups of rows."""
    need, structure = check_memory(bound, space, solver, dtype), space.spec.structure
    if structure.grouped:
        Callbacks(options.callbacks or ()).announce(
            f"{len(structure.labels):,} groups of rows x {bound.n_entities:,} entities x "
            f"{space.k} components: about {in_words(need)} of memory; a pass takes about twice as "
            "long as without groups"
        )


def _check_contracts(spec: Spec, data: Dataset) -> None:
    check_structure_contract(spec.structure, data.n_entities)
    for term in spec.terms:
        check_term_contract(term, data)


def _bind(
    spec: Spec,
    data: Dataset,
    sample_weight: Floats | None,
    lists: tuple[Lists, ...] | None,
    *,
    center: bool,
) -> BoundContext:
    """The contexts of the data: those of an earlier fit, or new ones."""
    if lists is not None:
        return EntityLists(data, lists)
    bound = spec.context.bind_weighted(data, sample_weight)
    check_context_contract(spec.context, bound)
    bound.check_reach()
    return centered(bound, data, sample_weight) if center else bound


def _split(
    bound: BoundContext,
    validation: Dataset | None,
    sample_weight: Floats | None,
    setup: Setup,
    options: Options,
    rng: np.random.Generator,
) -> Split:
    """The training data, and the score that decides when to stop."""
    if validation is not None:
        return given_split(bound, validation, sample_weight, setup)
    automatic = options.early_stopping == "auto"
    if setup.name != "windows" if automatic else options.early_stopping:
        return hold_out(bound, options.validation_fraction, sample_weight, setup, rng)
    return no_split(bound, sample_weight, setup)


def check_observed(n_observed: float) -> None:
    """Reject data without any usable observation."""
    if not n_observed > 0:
        raise DataError(
            "no usable observations: every value is missing, has an empty context, or has weight 0 "
            "(sample_weight, or zeros=All(0) where everything is 0)"
        )


def make_plan(
    space: ParameterSpace,
    solver: str,
    n_rows: int,
    batch: int | None,
    optimizer: Optimizer,
    options: Options,
    seed: int,
) -> Plan:
    """The plan of all rounds over this many rows, with minibatches of `batch` rows."""
    n_rounds, scheduled = options.max_iter, solver == "windows"
    if n_rounds is None:
        steps = 1 if batch is None else -(-n_rows // batch)
        n_rounds = 1000 if optimizer.full_batch else min(5000, max(FEWEST, MOST_STEPS // steps))
        if scheduled:
            n_rounds = 5
    return Plan(
        space=space,
        optimizer=optimizer,
        batch_size=batch,
        n_rounds=n_rounds,
        seed=seed,
        total_rows=n_rows,
        scheduled=scheduled,
        deterministic=options.deterministic,
    )


def _plan(
    space: ParameterSpace, split: Split, optimizer: Optimizer, options: Options, seed: int
) -> Plan:
    solver = split.solver
    batch = _batch_size(options.batch_size, solver, optimizer)
    return make_plan(space, solver.name, solver.n_rows, batch, optimizer, options, seed)


def make_loop(split: Split, plan: Plan, options: Options) -> Loop:
    """The loop that trains on the rows of a split, in this process."""
    return Loop(
        LocalBackend([Shard(split.solver, split.validation)], plan),
        plan,
        patience=options.n_iter_no_change,
        tol=options.tol,
        callbacks=Callbacks(options.callbacks or ()),
    )


def batch_size(value: Any, solver: str, n_rows: int) -> int | None:
    """Rows of a minibatch, None for all of them."""
    if value != "auto":
        return None if value is None else int(value)
    size = 1024 if solver == "rows" else 128
    return size if n_rows > 2 * size else None


def _batch_size(value: Any, solver: Solver[Any], optimizer: Optimizer) -> int | None:
    if solver.stochastic and not optimizer.full_batch:
        return batch_size(value, solver.name, solver.n_rows)
    refuse_batches(value, solver.name, optimizer)
    return None


def refuse_batches(value: Any, solver: str, optimizer: Optimizer) -> None:
    """An error if rows are to be taken in batches where all of them are used at once."""
    if value not in (None, "auto"):
        raise ParameterError(
            f"batch_size={value}: solver {solver!r} with {optimizer!r} works on all rows: leave "
            "batch_size='auto'"
        )
