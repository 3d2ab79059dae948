"""Passes: minibatch steps of a first-order optimizer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.engine.optimizers.first_order import FirstOrder, OptimizerState, RowStepper
from efemb.engine.optimizers.step import Move
from efemb.engine.plan import Plan
from efemb.engine.random import RoundKey
from efemb.engine.solvers.base import Solver
from efemb.engine.state import TrainState, Update
from efemb.model.factors import Factors
from efemb.model.parameters import Parameters
from efemb.model.space import positive_exp

ROWS_AT_ONCE = 1 << 14  # at a time, since gradients of all rows would take too much memory


class Passes:
    """Minibatch steps over a shard, in place on the arrays of a state."""

    def __init__(self, solver: Solver[Any], state: TrainState, plan: Plan) -> None:
        assert isinstance(plan.shard_optimizer, FirstOrder)
        self.solver, self.plan, self.space = solver, plan, plan.space
        self.theta, self.parameters = state.theta, state.parameters
        self.name = repr(plan.optimizer)
        self.stepper = plan.shard_optimizer.start(list(self.theta.arrays()), plan.total_rows)
        if state.optimizer.optimizer == self.name:
            self.stepper.restore(state.optimizer.arrays)
        self.count = state.steps
        self.room: dict[str, Floats] = {}  # memory of vectors, reused by the next step
        self.visited: Ints | None = None  # the last step of each row, if some rows lag behind

    def run(self, key: RoundKey, watch: Callable[[float], bool]) -> Update:
        """Step on every minibatch until `watch(share done)` is true."""
        n, total, done = self.solver.n_rows, 0.0, 0
        self.solver.start_round(key)
        batches = self._batches(key)
        for rows, following in zip(batches, [*batches[1:], None], strict=True):
            self.solver.expect(following)
            total += self._step(rows)
            done += n if rows is None else len(rows)
            if watch(done / n):
                break
        self.catch_up()
        objective = total * n / done + self.space.log_prior(self.parameters)
        state = OptimizerState(self.name, self.stepper.state())
        return Update(self.theta, self.parameters, state, self.count, objective)

    def _batches(self, key: RoundKey) -> list[Ints | None]:
        """Parts of the shuffled rows; a single None means all rows at once."""
        n, starts = self.solver.n_rows, self.plan.batch_starts(self.solver.n_rows)
        if starts is None:
            return [None]
        rows = self.solver.shuffle(key.generator("order of rows"))
        edges = [*starts, n]
        return [rows[a:b] for a, b in pairwise(edges)]

    def _step(self, rows: Ints | None) -> float:
        """One step; the data term is scaled up to all rows, so that it is unbiased."""
        n_rows = self.solver.n_rows if rows is None else len(rows)
        scale = self.plan.total_rows / n_rows
        vectors = self.space.vectors(self.parameters, self.room)
        value, slopes = self.solver.value_and_gradient(vectors, rows)
        self.count += 1
        if not np.isfinite(value):
            raise self.plan.diverged(
                f"training diverged (NaN or infinity): the objective became {value} at step "
                f"{self.count}"
            )
        by_row = self.space.plain and isinstance(self.stepper, RowStepper)
        if slopes.rows is None or not by_row:
            self._dense(slopes.on_all_rows(vectors), scale)
        else:
            self._sparse(slopes, slopes.rows, scale)
        return value

    def _dense(self, slopes: Factors, scale: float) -> None:
        """Step on all rows; the optimizer applies the chain rule as it visits every number."""
        space, parameters = self.space, self.parameters
        gradient = space.pull_back(parameters, slopes, chain_rule=False)
        vectors = [value if positive else None for _, value, positive in space.signed(parameters)]
        if space.spec.structure.tied:  # alpha is the array rho, and needs no step
            vectors[1] = None
        shrinkage = space.shrinkage(of_positive=True)
        move = Move(*self._arrays(gradient), scale, shrinkage, vectors)
        for index, prior, array in space.priors(parameters):
            if not shrinkage[index]:
                inner = 1.0 if vectors[index] is None else array
                move.gradients[index] += prior.gradient(array) / (inner * scale)
        self.stepper.step(move, self.solver.pool)

    def _arrays(self, gradient: Parameters) -> tuple[list[Floats], list[Floats]]:
        return list(self.theta.arrays()), list(gradient.arrays())

    def _sparse(self, slopes: Factors, rows: Ints, scale: float) -> None:
        """Step on used rows only, with the prior's gradient since the last visit of each."""
        if self.visited is None:
            self.visited = np.full(self.space.n_entities, self.count - 1)
        gradient = list(self.space.pull_back(self.parameters, slopes).arrays())
        self._step_rows(gradient, rows, scale)

    def catch_up(self) -> None:
        """Apply the missing gradients of the prior to all rows before parameters are read."""
        if self.visited is None:
            return
        count, waiting = self.stepper.count, np.flatnonzero(self.visited < self.count)
        for start in range(0, len(waiting), ROWS_AT_ONCE):
            rows = waiting[start : start + ROWS_AT_ONCE]
            none = [np.zeros((len(rows), *a.shape[1:]), a.dtype) for a in self.theta.arrays()]
            self._step_rows(none, rows, 1.0)
        self.stepper.count, self.visited = count, None  # not counted as a step

    def _step_rows(self, gradient: list[Floats], rows: Ints, scale: float) -> None:
        assert self.visited is not None
        assert isinstance(self.stepper, RowStepper)
        waited = (self.count - self.visited[rows]).astype(gradient[0].dtype)
        self.visited[rows] = self.count
        move = Move(list(self.theta.arrays()), gradient, scale, self.space.shrinkage())
        for index, prior, array in self.space.priors(self.parameters):
            if not move.shrinkage[index]:
                waits = waited.reshape(-1, *[1] * (array.ndim - 1))
                move.gradients[index] += prior.gradient(array[rows]) * waits / scale
        self.stepper.step_rows(move, rows, waited, self.solver.pool)
        for (_, value, positive), raw in zip(
            self.space.signed(self.parameters), self.theta.arrays(), strict=True
        ):
            if positive:
                value[rows] = positive_exp(raw[rows])
