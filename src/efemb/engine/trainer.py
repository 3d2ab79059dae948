"""Trainer: passes of gradient steps until the validation score or the objective stops rising."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from efemb.engine.callbacks import Callback, EarlyStopping, Progress
from efemb.engine.interrupt import StopFlag, stop_on_interrupt
from efemb.engine.lbfgs import LimitedMemory
from efemb.engine.moments import MomentsSolver
from efemb.engine.optimizers import LBFGS, FirstOrder, Optimizer, OptimizerState
from efemb.engine.solver import Solver
from efemb.engine.space import ParameterSpace
from efemb.engine.validation import Validation
from efemb.engine.vectors import Vectors
from efemb.errors import DivergenceError
from efemb.families.base import Family
from efemb.parameters import Parameters
from efemb.types import Floats, Ints

STEPS_BETWEEN_SCORES = 20


@dataclass
class Result:
    """What a fit leaves behind."""

    parameters: Parameters
    family: Family
    history: list[dict[str, Any]]
    n_iter: int
    best_iter: int
    converged: bool
    interrupted: bool
    state: OptimizerState | None = None


@dataclass
class Trainer:
    """Options of one fit; `run` does it."""

    space: ParameterSpace
    solver: Solver
    optimizer: Optimizer
    batch_size: int | None
    max_iter: int
    tol: float
    patience: int
    rng: np.random.Generator
    validation: Validation | None = None
    callbacks: Iterable[Callback] = ()
    history: list[dict[str, Any]] = field(default_factory=list)

    def run(self, start: Parameters, state: OptimizerState | None = None) -> Result:
        """Train from `start`, with the optimiser's state where an earlier fit left it."""
        self.state = state
        self.family = self.solver.spec.family
        self.started = time.perf_counter()
        self.best: tuple[float, int, Parameters, Family] | None = None
        self.stopper = EarlyStopping(self.patience, self.tol)
        self.iteration = 0
        with stop_on_interrupt() as flag:
            self.flag = flag
            work = self._newton if isinstance(self.optimizer, LBFGS) else self._passes
            try:
                parameters, converged = work(self.space.unconstrained(start))
            finally:
                for callback in self.callbacks:
                    getattr(callback, "close", _nothing)()
        best_iter = self.iteration
        if self.best is not None:
            _, best_iter, parameters, self.family = self.best
        return Result(
            parameters,
            self.family,
            self.history,
            self.iteration,
            best_iter,
            converged,
            self.flag.raised,
            self.state,
        )

    state: OptimizerState | None = field(init=False, default=None, repr=False)
    flag: StopFlag = field(init=False, repr=False)
    family: Family = field(init=False, repr=False)

    def _passes(self, theta: Parameters) -> tuple[Parameters, bool]:
        """First-order steps on minibatches."""
        assert isinstance(self.optimizer, FirstOrder)
        steps = _Steps(self, theta, self.optimizer)
        if self.family.learns:
            self._adapt_to(steps.parameters)
        try:
            return self._run_passes(steps)
        finally:
            self.state = OptimizerState(steps.name, steps.stepper.state())

    def _run_passes(self, steps: _Steps) -> tuple[Parameters, bool]:
        every = max(1, STEPS_BETWEEN_SCORES // len(steps.batches(None)))
        for number in range(1, self.max_iter + 1):
            self.iteration = number
            objective = steps.one_pass()
            if self.solver.spec.family.learns:
                self._adapt(objective - self.space.log_prior(steps.parameters))
            last = self.iteration == self.max_iter or self.flag.raised
            if self._after(objective, steps.parameters, self.iteration % every == 0 or last):
                return steps.parameters, not self.flag.raised
            if self.flag.raised:
                break
        return steps.parameters, False

    def _adapt(self, likelihood: float) -> None:
        self.family = self.family.adapt(likelihood, self.solver.total_weight)
        self.solver.set_family(self.family)

    def _adapt_to(self, parameters: Parameters) -> None:
        """Fit the dispersion to given parameters."""
        value, _ = self.solver.value_and_gradient(self.space.vectors(parameters), exact=True)
        self._adapt(value)

    def _newton(self, theta: Parameters) -> tuple[Parameters, bool]:
        """L-BFGS on all rows, over alpha alone where the best rho given alpha is known."""
        assert isinstance(self.optimizer, LBFGS)
        if self.family.learns:
            self._adapt_to(self.space.constrained(theta))
        view = _view(self.space, self.solver, theta)

        def evaluate(x: Floats) -> tuple[float, Floats]:
            parameters = view.parameters(x)
            value, gradient, _ = evaluate_objective(self.space, self.solver, parameters)
            return value, view.gradient(gradient)

        search = LimitedMemory(evaluate, view.start, self.optimizer.memory)
        for number in range(1, self.max_iter + 1):
            self.iteration = number
            moved = search.step()
            parameters = view.parameters(search.x)
            last = not moved or self.iteration == self.max_iter or self.flag.raised
            done = self._after(search.value, parameters, self.iteration % view.every == 0 or last)
            if not moved or done:
                return parameters, not self.flag.raised
            if self.flag.raised:
                break
            if self.solver.spec.family.learns:
                self._adapt(search.value - self.space.log_prior(parameters))
                view.forget()
                search.refresh()
        return parameters, False

    def _after(self, objective: float, parameters: Parameters, scored: bool) -> bool:
        """Record the iteration; True ends the fit."""
        if not np.isfinite(objective) or not parameters.is_finite():
            raise DivergenceError(
                f"the objective became {objective} in iteration {self.iteration}; lower the "
                "optimizer's step (for example optimizer=Adagrad(step=0.02)), raise the prior's "
                "precision, or scale the data"
            )
        score = None
        if self.validation is not None and scored:
            score = self.validation.score(self.space.vectors(parameters), self.family)
            if self.best is None or score > self.best[0]:
                self.best = (score, self.iteration, parameters.copy(), self.family)
        seconds = time.perf_counter() - self.started
        progress = Progress(self.iteration, objective, score, seconds, parameters.copy)
        self.history.append(progress.record())
        wishes = [callback(progress) for callback in self.callbacks]
        if self.validation is None and scored:
            score = objective / self.solver.n_observed
        return self.stopper.count(score) or any(wish is True for wish in wishes)


def evaluate_objective(
    space: ParameterSpace, solver: Solver, parameters: Parameters
) -> tuple[float, Parameters, Vectors]:
    """L, its gradient in the unconstrained parameters, and that of the data term alone."""
    value, slopes = solver.value_and_gradient(space.vectors(parameters), exact=True)
    gradient = space.pull_back(parameters, slopes)
    space.add_prior(parameters, gradient)
    return value + space.log_prior(parameters), gradient, slopes


def profile_objective(
    space: ParameterSpace, solver: Solver, parameters: Parameters
) -> tuple[float, Parameters]:
    """L and its gradient with a learned dispersion at its best value for these parameters."""
    family = solver.spec.family
    if family.learns:
        value, _ = solver.value_and_gradient(space.vectors(parameters), exact=True)
        solver.set_family(family.adapt(value, solver.total_weight))
    value, gradient, _ = evaluate_objective(space, solver, parameters)
    return value, gradient


class _Steps:
    """Minibatch steps of a first-order optimiser."""

    def __init__(self, trainer: Trainer, theta: Parameters, optimizer: FirstOrder) -> None:
        self.trainer, self.space, self.solver = trainer, trainer.space, trainer.solver
        self.theta = theta
        self.parameters = self.space.constrained(theta)
        self.stepper = optimizer.start(list(theta.arrays()), self.solver.n_rows)
        self.name = repr(optimizer)
        if trainer.state is not None and trainer.state.optimizer == self.name:
            self.stepper.restore(trainer.state.arrays)
        self.touched: Ints | None = None
        self.count = 0

    def batches(self, order: Ints | None) -> list[Ints | None]:
        """Near-equal parts of the rows; one None where all rows are taken at once."""
        n, size = self.solver.n_rows, self.trainer.batch_size
        if size is None or size >= n:
            return [None]
        edges = [*range(0, n - size // 2, size), n]  # a short rest joins the last batch
        rows = np.arange(n) if order is None else order
        return [rows[a:b] for a, b in pairwise(edges)]

    def one_pass(self) -> float:
        """All minibatches in a random order of rows; returns the mean estimate of L."""
        n = self.solver.n_rows
        total = 0.0
        whole = self.trainer.batch_size is None or self.trainer.batch_size >= n
        order = None if whole else self.trainer.rng.permutation(n)
        done = 0
        for rows in self.batches(order):
            total += self._step(rows)
            done += n if rows is None else len(rows)
            for callback in self.trainer.callbacks:
                getattr(callback, "step", _nothing)(done / n)
            if self.trainer.flag.raised:
                break
        return total * n / done + self.space.log_prior(self.parameters)

    def _step(self, rows: Ints | None) -> float:
        share = 1.0 if rows is None else len(rows) / self.solver.n_rows
        vectors = self.space.vectors(self.parameters)
        value, slopes = self.solver.value_and_gradient(vectors, rows)
        self.count += 1
        if not np.isfinite(value):
            raise DivergenceError(
                f"the objective became {value} at step {self.count} (iteration "
                f"{self.trainer.iteration}); lower the optimizer's step, raise the prior's "
                "precision, or scale the data"
            )
        slopes.scale(1.0 / share)
        if slopes.rows is None or not self.space.plain:
            self._dense(_spread(slopes, vectors))
        else:
            self._sparse(slopes)
        return value

    def _dense(self, slopes: Vectors) -> None:
        gradient = self.space.pull_back(self.parameters, slopes)
        self.space.add_prior(self.parameters, gradient)
        self.stepper.step(list(self.theta.arrays()), list(gradient.arrays()), None)
        self.parameters = self.space.constrained(self.theta)

    def _sparse(self, slopes: Vectors) -> None:
        """Only the rows in use; each catches up on the prior's gradient since its last visit."""
        rows = slopes.rows
        assert rows is not None
        if self.touched is None:
            self.touched = np.zeros(self.space.n_entities, dtype=np.int64)
        waited = (self.count - self.touched[rows]).astype(slopes.target.dtype)
        self.touched[rows] = self.count
        local = Parameters(*(array[rows] for array in self.parameters.arrays()))
        gradient = self.space.pull_back(self.parameters, slopes)
        arrays = list(gradient.arrays())
        for place, prior, array in self.space.priors(local):
            arrays[place] += prior.gradient(array) * waited.reshape(-1, *[1] * (array.ndim - 1))
        self.stepper.step(list(self.theta.arrays()), arrays, rows)
        for (_, value, positive), raw in zip(
            self.space.signed(self.parameters), self.theta.arrays(), strict=True
        ):
            if positive:
                value[rows] = np.exp(raw[rows])


def _nothing(*args: object) -> None:
    """Stand in for a method that a callback need not have."""


def _spread(slopes: Vectors, like: Vectors) -> Vectors:
    """A gradient on some rows as one on all rows."""
    if slopes.rows is None:
        return slopes
    full = Vectors.zeros_like(like)
    full.target[slopes.rows] = slopes.target
    full.bag[slopes.rows] = slopes.bag
    full.intercept[slopes.rows] = slopes.intercept
    return full


class _Flat:
    """All unconstrained parameters as one vector and back."""

    every = 5  # iterations between two validation scores

    def __init__(self, space: ParameterSpace, theta: Parameters) -> None:
        self.space = space
        self.shapes = [array.shape for array in theta.arrays()]
        self.start = self.gradient(theta)

    def forget(self) -> None:
        """Nothing is kept."""

    def gradient(self, gradient: Parameters) -> Floats:
        return np.concatenate([array.reshape(-1) for array in gradient.arrays()])

    def parameters(self, vector: Floats) -> Parameters:
        arrays, start = [], 0
        for shape in self.shapes:
            stop = start + int(np.prod(shape))
            arrays.append(vector[start:stop].reshape(shape))
            start = stop
        return self.space.constrained(Parameters(*arrays))


class _Projected:
    """alpha as one vector; rho and the intercepts follow from it (variable projection).

    The gradient of the objective along alpha at the best rho is that of the projected objective.
    """

    every = 1

    def __init__(self, solver: MomentsSolver, theta: Parameters) -> None:
        self.solver, self.shape = solver, theta.alpha.shape
        self.intercept = theta.intercept is not None
        self.start = theta.alpha.reshape(-1)
        self.last: tuple[Floats, Parameters] | None = None

    def gradient(self, gradient: Parameters) -> Floats:
        return gradient.alpha.reshape(-1)

    def parameters(self, vector: Floats) -> Parameters:
        if self.last is not None and self.last[0] is vector:
            return self.last[1]
        alpha = vector.reshape(self.shape)
        rho, intercept = self.solver.best_targets(alpha)
        found = Parameters(rho, alpha, intercept if self.intercept else None)
        self.last = (vector, found)
        return found

    def forget(self) -> None:
        self.last = None


def _view(space: ParameterSpace, solver: Solver, theta: Parameters) -> _Flat | _Projected:
    if isinstance(solver, MomentsSolver) and solver.projects(space):
        return _Projected(solver, theta)
    return _Flat(space, theta)
