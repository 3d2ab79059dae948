"""The training loop: rounds until the validation score or the objective stops improving."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from efemb.engine.backends.base import Backend
from efemb.engine.callbacks import Callbacks, EarlyStopping, Progress
from efemb.engine.checkpoint import Savepoint, Snapshot
from efemb.engine.interrupt import StopFlag, stop_on_interrupt
from efemb.engine.optimizers.first_order import OptimizerState
from efemb.engine.plan import Plan
from efemb.engine.round import merge
from efemb.engine.state import Best, TrainState
from efemb.model.families.base import Family
from efemb.model.parameters import Parameters

# Nats per observation; a fit that ends further from 0 is compared with its start.
SUSPICIOUS = 20.0
# Loss in nats per observation, at the initial variance: early steps may overshoot.
LOST = 500.0


@dataclass
class Result:
    """The result of a fit."""

    parameters: Parameters
    family: Family
    history: list[dict[str, Any]]
    n_iter: int
    best_iter: int
    converged: bool
    interrupted: bool
    state: OptimizerState | None = None


@dataclass
class Log:
    """History of the loop, in addition to the state."""

    stopper: EarlyStopping
    history: list[dict[str, Any]] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)
    converged: bool = False

    @property
    def seconds(self) -> float:
        """Seconds since the fit began, over all attempts."""
        return time.perf_counter() - self.began


@dataclass(frozen=True)
class Loop:
    """Rounds, validation, stopping, callbacks and checkpoints; the backend runs the rounds.

    patience, tol : of early stopping
    """

    backend: Backend
    plan: Plan
    patience: int
    tol: float
    callbacks: Callbacks
    savepoint: Savepoint | None = None

    def run_from(self, start: Parameters, optimizer: OptimizerState | None) -> Result:
        """Train from parameters, and from the state of an earlier optimizer."""
        result = self.run(TrainState.start(self.plan.space, start, optimizer))
        self._check_ascent(start, result)
        return result

    def run(self, start: TrainState) -> Result:
        """Train from a state, or resume where an earlier attempt stopped."""
        log = Log(EarlyStopping(self.patience, self.tol))
        with stop_on_interrupt() as flag, self.callbacks:
            state = self._resume(start, log)
            if state.round == 0 and 0 in self.backend.early_scores:
                state = self._keep_best(state, self.backend.validate(state))
            while not (log.converged or flag.raised or state.round >= self.plan.n_rounds):
                state = self._round(state, log, flag)
        best = state.best
        parameters, family = state.parameters, state.family
        if best is not None:
            parameters, family = best.parameters, best.family
        return Result(
            parameters,
            family,
            log.history,
            state.round,
            state.round if best is None else best.round,
            log.converged,
            flag.raised,
            None if self.plan.optimizer.full_batch else state.optimizer,
        )

    @property
    def _learns(self) -> bool:
        return self.plan.space.spec.family.learns

    def _resume(self, start: TrainState, log: Log) -> TrainState:
        saved = None if self.savepoint is None else self.savepoint.read(self.plan.space)
        if saved is None:
            return (
                self._adapt(start, lambda: self.backend.evaluate(start)) if self._learns else start
            )
        log.history, log.converged = list(saved.history), saved.converged
        log.began = time.perf_counter() - saved.seconds
        log.stopper.restore(saved.stopper)
        self.callbacks.restore(saved.callbacks)
        return saved.state

    def _round(self, state: TrainState, log: Log, flag: StopFlag) -> TrainState:
        """One round, with validation, records and stopping."""

        def watch(done: float) -> bool:
            self.callbacks.step(done, self.backend.status)
            return flag.raised

        plan, full_batch = self.plan, self.plan.optimizer.full_batch
        state = merge(state, self.backend.run(state, watch), plan)
        self._check_finite(state)
        last = state.exhausted or state.round == plan.n_rounds or flag.raised
        due = last or state.round % self.backend.rounds_between_scores == 0
        if self._learns and not full_batch and (due or not state.family.varies):
            state = self._adapt(state, lambda: self._likelihood(state))
        early = state.round in self.backend.early_scores
        score = self.backend.validate(state) if due or early else None
        state = self._keep_best(state, score)
        done = self._record(state, score, log, due=due) or state.exhausted
        # L-BFGS is scored under the family of its search; its next round starts a new search.
        if self._learns and full_batch and not done and not flag.raised:
            state = self._adapt(state, lambda: self._likelihood(state))
        self._conclude(state, log, done, flag)
        return state

    def _keep_best(self, state: TrainState, score: float | None) -> TrainState:
        """The state, with its parameters as the best ones if their score is."""
        if score is None or (state.best is not None and score <= state.best.score):
            return state
        best = Best(score, state.round, state.parameters.copy(), state.family)
        return replace(state, best=best)

    def _record(self, state: TrainState, score: float | None, log: Log, *, due: bool) -> bool:
        """Add the round to the history and report it; True ends the fit.

        Scores between those that are due may be the best one, but do not count as waiting.
        """
        progress = Progress(state.round, state.objective, score, log.seconds, state.parameters.copy)
        log.history.append(progress.record())
        stop_requested = self.callbacks(progress)
        if score is None and due and not self.plan.scheduled:  # nothing is held out
            score = state.objective / self.backend.n_observed
        return log.stopper.count(score if due else None) or stop_requested

    def _conclude(self, state: TrainState, log: Log, done: bool, flag: StopFlag) -> None:
        """Whether this was the last round; an interrupted round is not a place to resume."""
        if flag.raised:
            return
        ended = done or state.round == self.plan.n_rounds
        log.converged = done or (ended and self.plan.scheduled)
        if self.savepoint is not None and self.savepoint.is_due(state.round, ended=ended):
            self.savepoint.write(
                Snapshot(
                    state,
                    log.history,
                    log.seconds,
                    log.stopper.state(),
                    self.callbacks.state(),
                    ended,
                    log.converged,
                )
            )

    def _check_ascent(self, start: Parameters, result: Result) -> None:
        """Reject a finite result that is far worse than the initial parameters."""
        size, history = self.backend.n_observed, result.history
        if self.plan.optimizer.full_batch or not history:
            return
        if self.plan.space.spec.zeros.tree:  # its value is known only during steps
            return
        if not self._learns and abs(history[-1]["objective"]) < SUSPICIOUS * size:
            return
        begin = TrainState.start(self.plan.space, start, None)
        before = self.backend.evaluate(begin)
        if self._learns:
            # A learned variance grows with the errors and hides them: use the initial one.
            value, size = before, self.backend.total_weight
            begin = self._adapt(begin, lambda: value)
            before = self.backend.evaluate(begin)
        after = self.backend.evaluate(replace(begin, parameters=result.parameters))
        far = not abs(after) < 10 * abs(before) + SUSPICIOUS * size
        if self._learns:
            far = not before - after < LOST * size
        # Where means overflow, a kernel may report probabilities above 1.
        impossible = result.family.support.integer and after > 0
        if far and (impossible or not after >= before):
            raise self.plan.diverged(
                f"training diverged: the log-likelihood per observation was {before / size:.4g} at "
                f"the start and is {after / size:.4g} after {result.n_iter} iterations"
            )

    def _check_finite(self, state: TrainState) -> None:
        if np.isfinite(state.objective) and state.parameters.is_finite():
            return
        problem = f"objective became {state.objective}"
        if np.isfinite(state.objective):
            problem = "parameters became infinite"
        raise self.plan.diverged(
            f"training diverged (NaN or infinity): the {problem} in iteration {state.round}"
        )

    def _adapt(self, state: TrainState, likelihood: Callable[[], float]) -> TrainState:
        """Fit the dispersion to the data term, once per round and for all shards.

        Dispersions of entities take a pass over the data, so they are fitted only with scores.
        """
        if state.family.varies:
            family = state.family.adapt_entities(*self.backend.evidence(state))
        else:
            family = state.family.adapt(likelihood(), self.backend.total_weight)
        return replace(state, family=family)

    def _likelihood(self, state: TrainState) -> float:
        """The data term; a round that drew zeros did not sum the weights of all of them."""
        if self.plan.space.spec.zeros.gradient == "exact":
            return state.objective - self.plan.space.log_prior(state.parameters)
        return self.backend.evaluate(state)
