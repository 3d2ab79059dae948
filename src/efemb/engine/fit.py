"""fit_model: from checked ingredients and data to fitted parameters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb.contexts.base import BoundContext
from efemb.contexts.entity_lists import EntityLists, Lists
from efemb.contexts.row_bags import RowBags
from efemb.engine import moments
from efemb.engine.blocks import Workers, workers
from efemb.engine.callbacks import Callback
from efemb.engine.generic import GenericSolver
from efemb.engine.holdout import Split, given_split, hold_out, no_split
from efemb.engine.initial import initial_parameters
from efemb.engine.memory import check_memory
from efemb.engine.moments import MomentsSolver
from efemb.engine.optimizers import LBFGS, Adagrad, Optimizer, OptimizerState
from efemb.engine.rows import RowsSolver
from efemb.engine.solver import Solver
from efemb.engine.space import ParameterSpace
from efemb.engine.trainer import Result, Trainer
from efemb.errors import InputTypeError, ParameterError, suggest
from efemb.families import Categorical
from efemb.parameters import Parameters
from efemb.spec import Spec
from efemb.types import Floats

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

MOST_STEPS = 10_000  # of a first-order optimiser, unless a hundred passes take more
SOLVERS = ("auto", "generic", "moments", "rows")


@dataclass(frozen=True)
class Options:
    """How to fit; the model itself is a Spec."""

    n_components: int
    solver: str = "auto"
    optimizer: Any = "auto"
    batch_size: int | str | None = "auto"
    max_iter: int | None = None
    early_stopping: bool = True
    validation_fraction: float | None = None
    n_iter_no_change: int = 5
    tol: float = 1e-4
    n_jobs: int | None = 1
    dtype: str = "float32"
    callbacks: Iterable[Callback] = ()

    def check(self) -> None:
        """Raise a typed error that names the first bad option."""
        whole("n_iter_no_change", self.n_iter_no_change)
        if self.max_iter is not None:
            whole("max_iter", self.max_iter)
        if self.batch_size not in (None, "auto"):
            whole("batch_size", self.batch_size)
        number("tol", self.tol)
        if self.validation_fraction is not None:
            number("validation_fraction", self.validation_fraction)
        if str(self.dtype) not in ("float32", "float64"):
            raise ParameterError(f"dtype must be 'float32' or 'float64', got {self.dtype!r}")
        for callback in self.callbacks:
            if not callable(callback):
                raise InputTypeError(f"callbacks must be callables, got {callback!r}")


@dataclass(frozen=True)
class Fit:
    """A finished fit and how it was done."""

    result: Result
    solver: str
    gradient: str
    lists: tuple[Lists, ...] | None
    n_slots: int


def whole(option: str, value: Any) -> None:
    """Refuse what is not an integer >= 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InputTypeError(f"{option} must be an integer >= 1, got {value!r}")
    if value < 1:
        raise ParameterError(f"{option} must be >= 1, got {value}")


def number(option: str, value: Any) -> None:
    """Refuse what is not a finite number >= 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise InputTypeError(f"{option} must be a number >= 0, got {value!r}")
    if not np.isfinite(value) or value < 0:
        raise ParameterError(f"{option} must be finite and >= 0, got {value}")


def choose_solver(name: str, bound: BoundContext, spec: Spec) -> str:
    """The solver that runs; a typed error where the asked one cannot."""
    if name not in SOLVERS:
        raise ParameterError(f"unknown solver {name!r}; {suggest(name, SOLVERS)}")
    rows = isinstance(bound, RowBags) and bound.n_dims == 1
    if name == "auto":
        if rows:
            return "rows"
        return "moments" if moments.applies(bound, spec) else "generic"
    if name == "rows" and not rows:
        raise ParameterError("solver 'rows' needs a row context (Basket) and scalar data")
    return name


def make_solver(
    name: str, bound: BoundContext, spec: Spec, pool: Workers, **options: Any
) -> Solver[Any]:
    """Build a solver by name."""
    if isinstance(spec.family, Categorical) and not isinstance(bound, RowBags):
        raise ParameterError("the categorical family needs a row context: context='basket'")
    if name == "rows":
        assert isinstance(bound, RowBags)
        return RowsSolver(bound, spec, pool, **options)
    if name == "moments":
        if not isinstance(bound, EntityLists):
            raise ParameterError("solver 'moments' needs a context fixed for each entity")
        return MomentsSolver(bound, spec, pool, **options)
    return GenericSolver(bound, spec, pool, **options)


def choose_optimizer(value: Any, solver: str, spec: Spec, *, minibatches: bool) -> Optimizer:
    """L-BFGS for the moments, Adagrad elsewhere (bolder on all rows), unless asked otherwise."""
    if isinstance(value, str) and value == "auto":
        if solver == "moments":
            return LBFGS()
        # Steps are relative where vectors are positive, and less noisy on all rows at once.
        return Adagrad(0.5 if spec.positive_rho else 0.1 if minibatches else 0.2)
    optimizer = Optimizer.resolve(value)
    optimizer.check()
    if optimizer.full_batch and spec.zeros.gradient != "exact":
        raise ParameterError(f"{optimizer!r} needs exact gradients: use zeros=All(weight)")
    return optimizer


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
) -> Fit:
    """Fit one model; raises typed errors before any work where something cannot be done.

    `lists` keeps the neighbours of an earlier fit, `state` where its optimiser stood.
    """
    options.check()
    if lists is None:
        bound = spec.context.bind_weighted(data, sample_weight)
    else:
        bound = EntityLists(data, lists)
    name = choose_solver(options.solver, bound, spec)
    minibatches = batch_size(options.batch_size, name, data.n_rows) is not None
    optimizer = choose_optimizer(options.optimizer, name, spec, minibatches=minibatches)
    dims = (bound.n_entities, bound.n_slots, bound.n_dims, options.n_components)
    space = ParameterSpace(spec, *dims)
    check_memory(bound, space, name, options.dtype)
    with workers(options.n_jobs) as pool:
        setup = _Setup(name, spec, pool, np.dtype(options.dtype), int(rng.integers(2**62)))
        if validation is not None:
            split = given_split(bound, validation, sample_weight, setup)
        elif options.early_stopping:
            fraction = options.validation_fraction
            split = hold_out(bound, fraction, sample_weight, setup, rng)
        else:
            split = no_split(bound, sample_weight, setup)
        begin = initial_parameters(space, split.bound, split.solver.row_weight, rng)
        if start is not None:
            begin = space.checked(start)
        trainer = _trainer(space, split, optimizer, options, rng)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # checked each step
            result = trainer.run(begin.astype(options.dtype), state)
    lists = bound.lists if isinstance(bound, EntityLists) else None
    gradient = spec.zeros.gradient if name == "rows" else "exact"
    return Fit(result, name, gradient, lists, bound.n_slots)


@dataclass(frozen=True)
class _Setup:
    """Makes solvers of one kind."""

    name: str
    spec: Spec
    pool: Workers
    dtype: Any
    seed: int

    def __call__(self, bound: BoundContext, row_weight: Floats | None) -> Solver[Any]:
        options = {"dtype": self.dtype, "row_weight": row_weight, "seed": self.seed}
        return make_solver(self.name, bound, self.spec, self.pool, **options)


def _trainer(
    space: ParameterSpace,
    split: Split,
    optimizer: Optimizer,
    options: Options,
    rng: np.random.Generator,
) -> Trainer:
    batch = _batch_size(options.batch_size, split.solver, optimizer)
    passes = options.max_iter
    if passes is None:
        steps = 1 if batch is None else -(-split.solver.n_rows // batch)
        passes = 1000 if optimizer.full_batch else min(5000, max(100, MOST_STEPS // steps))
    return Trainer(
        space=space,
        solver=split.solver,
        optimizer=optimizer,
        batch_size=batch,
        max_iter=passes,
        tol=options.tol,
        patience=options.n_iter_no_change,
        rng=rng,
        validation=split.validation,
        callbacks=tuple(options.callbacks or ()),
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
    if isinstance(value, int):
        raise ParameterError(
            f"batch_size={value}: solver {solver.name!r} with {optimizer!r} works on all rows"
        )
    return None
