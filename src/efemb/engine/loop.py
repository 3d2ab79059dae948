"""Trainer: passes of gradient steps until the validation score or the objective stops rising."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from efemb._typing import Floats
from efemb.engine.callbacks import Callback, EarlyStopping, Progress
from efemb.engine.checkpoint import Keeper, state_of_passes, state_of_search
from efemb.engine.epochs import Passes
from efemb.engine.flatten import choose_view, evaluate_objective
from efemb.engine.interrupt import StopFlag, stop_on_interrupt
from efemb.engine.optimizers.first_order import LBFGS, FirstOrder, Optimizer, OptimizerState
from efemb.engine.optimizers.limited_memory import LimitedMemory
from efemb.engine.random import RoundKey
from efemb.engine.solvers.base import Solver
from efemb.engine.validation import Validation
from efemb.errors import DivergenceError
from efemb.model.families.base import Family
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace

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
    solver: Solver[Any]
    optimizer: Optimizer
    batch_size: int | None
    max_iter: int
    tol: float
    patience: int
    seed: int
    validation: Validation | None = None
    callbacks: Iterable[Callback] = ()
    deterministic: bool = False
    scheduled: bool = False  # a fixed number of passes is the plan, not a limit
    keeper: Keeper | None = None
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
            for callback in self.callbacks:
                getattr(callback, "start", _nothing)()
            try:
                parameters, converged = self._work(self.space.unconstrained(start))
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

    def _work(self, theta: Parameters) -> tuple[Parameters, bool]:
        """All iterations, or those that are left of an earlier attempt."""
        if self.keeper is not None and self.keeper.saved is not None:
            self.keeper.restore(self)
            if self.keeper.over(self.max_iter):
                return self.keeper.outcome()
        work = self._newton if isinstance(self.optimizer, LBFGS) else self._passes
        return work(theta)

    def _passes(self, theta: Parameters) -> tuple[Parameters, bool]:
        """First-order steps on minibatches."""
        assert isinstance(self.optimizer, FirstOrder)
        saved = None if self.keeper is None else self.keeper.start()
        start = theta if saved is None else saved
        options = (self.optimizer, self.batch_size, self.state)
        more: dict[str, Any] = {"n_passes": self.max_iter, "deterministic": self.deterministic}
        passes = self.solver.passes(self.space, start, *options, **more)
        if self.keeper is not None and saved is not None:
            self.keeper.resume_passes(passes)
        elif self.family.learns:
            self._adapt_to(passes.parameters)
        try:
            return self._run_passes(passes)
        finally:
            self.state = passes.state()

    def _run_passes(self, passes: Passes) -> tuple[Parameters, bool]:
        every = max(1, STEPS_BETWEEN_SCORES // len(passes.batches()))
        for number in range(self.iteration + 1, self.max_iter + 1):
            self.iteration = number
            key = RoundKey(self.seed, number, first_step=getattr(passes, "count", 0))
            objective = passes.one_pass(key, self._watch)
            if self.solver.spec.family.learns:
                self._adapt_after(objective, passes.parameters)
            last = number == self.max_iter or self.flag.raised
            done = self._after(objective, passes.parameters, number % every == 0 or last)
            self._keep(partial(state_of_passes, passes), done)
            if done:
                return passes.parameters, not self.flag.raised
            if self.flag.raised:
                break
        return passes.parameters, self.scheduled and not self.flag.raised

    def _keep(self, work: Callable[[], dict[str, Any]], done: bool) -> None:
        """Write a checkpoint if it is time; a pass that was cut short is no place to go on from."""
        if self.keeper is None or self.flag.raised:
            return
        ended = done or self.iteration == self.max_iter
        if ended or self.iteration % self.keeper.checkpoint.every == 0:
            converged = done or (ended and self.scheduled)
            self.keeper.keep(self, work(), ended=ended, converged=converged)

    def _watch(self, done: float) -> bool:
        """Tell the callbacks how much of the pass is done; True stops at this step."""
        for callback in self.callbacks:
            getattr(callback, "step", _nothing)(done)
        return self.flag.raised

    def _adapt_after(self, objective: float, parameters: Parameters) -> None:
        """Fit the dispersion to a pass; one that drew zeros did not add up the weights of all."""
        if self.solver.spec.zeros.gradient == "exact":
            self._adapt(objective - self.space.log_prior(parameters))
        else:
            self._adapt_to(parameters)

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
        saved = None if self.keeper is None else self.keeper.saved
        if self.family.learns and saved is None:
            self._adapt_to(self.space.constrained(theta))
        view = choose_view(self.space, self.solver, theta)

        def evaluate(x: Floats) -> tuple[float, Floats]:
            parameters = view.parameters(x)
            value, gradient = evaluate_objective(self.space, self.solver, parameters)
            return value, view.gradient(gradient)

        search = LimitedMemory(evaluate, view.start, self.optimizer.memory)
        if saved is not None:
            search.restore(saved["search"])
        for number in range(self.iteration + 1, self.max_iter + 1):
            self.iteration = number
            moved = search.step()
            if not moved:
                self._check_gradient(search.gradient)
            parameters = view.parameters(search.x)
            last = not moved or self.iteration == self.max_iter or self.flag.raised
            done = self._after(search.value, parameters, self.iteration % view.every == 0 or last)
            done = done or not moved
            if self.solver.spec.family.learns and not done and not self.flag.raised:
                self._adapt(search.value - self.space.log_prior(parameters))
                view.forget()
                search.refresh()
            self._keep(partial(state_of_search, search, parameters), done)
            if done:
                return parameters, not self.flag.raised
            if self.flag.raised:
                break
        return parameters, False

    def _check_gradient(self, gradient: Floats) -> None:
        """A search also ends where it cannot compute the length of the gradient."""
        if not np.isfinite(float(gradient @ gradient)):
            raise DivergenceError(
                f"the squares of the gradient are too large for {gradient.dtype} in iteration "
                f"{self.iteration}: scale the data, or use dtype='float64'"
            )

    def _after(self, objective: float, parameters: Parameters, scored: bool) -> bool:
        """Record the iteration; True ends the fit."""
        if not np.isfinite(objective) or not parameters.is_finite():
            what = f"objective became {objective}"
            if np.isfinite(objective):
                what = "parameters became infinite"
            raise DivergenceError(
                f"the {what} in iteration {self.iteration}; lower the "
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
        if self.validation is None and scored and not self.scheduled:
            score = objective / self.solver.n_observed
        return self.stopper.count(score) or any(wish is True for wish in wishes)


def _nothing(*args: object) -> None:
    """Stand in for a method that a callback need not have."""
