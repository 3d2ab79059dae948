"""Passes: minibatch steps of a first-order optimiser."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.engine.optimizers.first_order import FirstOrder, OptimizerState, RowStepper
from efemb.engine.optimizers.step import Move
from efemb.engine.random import RoundKey
from efemb.engine.solvers.base import Solver
from efemb.errors import DivergenceError
from efemb.model.factors import Factors
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace, positive_exp

SETTLED_ROWS = 1 << 14  # at a time: gradients of all rows would take as much memory as they do


class Passes:
    """Unconstrained parameters `theta`, the vectors made of them, and the optimiser's state."""

    def __init__(
        self,
        solver: Solver[Any],
        space: ParameterSpace,
        theta: Parameters,
        optimizer: FirstOrder,
        batch_size: int | None,
        state: OptimizerState | None,
    ) -> None:
        self.space, self.solver, self.theta = space, solver, theta
        self.parameters = space.constrained(theta)
        self.batch_size = None if batch_size is None or batch_size >= solver.n_rows else batch_size
        self.name = repr(optimizer)
        self.stepper = optimizer.start(list(theta.arrays()), solver.n_rows)
        if state is not None and state.optimizer == self.name:
            self.stepper.restore(state.arrays)
        self.visited: Ints | None = None
        self.count = 0

    def state(self) -> OptimizerState:
        """Where the optimiser stands."""
        return OptimizerState(self.name, self.stepper.state())

    def batches(self, rng: np.random.Generator | None = None) -> list[Ints | None]:
        """Parts of the shuffled rows; a single None takes all rows at once."""
        n, size = self.solver.n_rows, self.batch_size
        if size is None:
            return [None]
        rows = np.arange(n) if rng is None else rng.permutation(n)
        edges = [*range(0, n - size // 2, size), n]  # a short rest joins the last batch
        return [rows[a:b] for a, b in pairwise(edges)]

    def one_pass(self, key: RoundKey, watch: Callable[[float], bool]) -> float:
        """Step on every minibatch until `watch(part done)` is true; returns the estimate of L."""
        n, total, done = self.solver.n_rows, 0.0, 0
        self.solver.start_round(key)
        batches = self.batches(key.generator("order of rows"))
        for rows, following in zip(batches, [*batches[1:], None], strict=True):
            self.solver.expect(following)
            total += self._step(rows)
            done += n if rows is None else len(rows)
            if watch(done / n):
                break
        self.settle()
        return total * n / done + self.space.log_prior(self.parameters)

    def _step(self, rows: Ints | None) -> float:
        """One step; the data term is scaled up to all rows, so that it is unbiased."""
        scale = 1.0 if rows is None else self.solver.n_rows / len(rows)
        vectors = self.space.vectors(self.parameters)
        value, slopes = self.solver.value_and_gradient(vectors, rows)
        self.count += 1
        if not np.isfinite(value):
            raise DivergenceError(
                f"the objective became {value} at step {self.count}; lower the optimizer's step "
                "(for example optimizer=Adagrad(step=0.02)), raise the prior's precision, or "
                "scale the data"
            )
        by_row = self.space.plain and isinstance(self.stepper, RowStepper)
        if slopes.rows is None or not by_row:
            self._dense(_spread(slopes, vectors), scale)
        else:
            self._sparse(slopes, slopes.rows, scale)
        return value

    def _dense(self, slopes: Factors, scale: float) -> None:
        """All rows; the optimiser sees to the chain rule, since it passes over the numbers."""
        space, parameters = self.space, self.parameters
        gradient = space.pull_back(parameters, slopes, chain_rule=False)
        vectors = [value if positive else None for _, value, positive in space.signed(parameters)]
        if space.spec.structure.tied:  # alpha is the array rho, and does not move
            vectors[1] = None
        shrinkage = space.shrinkage(of_positive=True)
        move = Move(*self._arrays(gradient), scale, shrinkage, vectors)
        for place, prior, array in space.priors(parameters):
            if not shrinkage[place]:
                inner = 1.0 if vectors[place] is None else array
                move.gradients[place] += prior.gradient(array) / (inner * scale)
        self.stepper.step(move, self.solver.pool)

    def _arrays(self, gradient: Parameters) -> tuple[list[Floats], list[Floats]]:
        return list(self.theta.arrays()), list(gradient.arrays())

    def _sparse(self, slopes: Factors, rows: Ints, scale: float) -> None:
        """Only the rows in use; each catches up on the prior's gradient since its last visit."""
        if self.visited is None:
            self.visited = np.full(self.space.n_entities, self.count - 1)
        gradient = list(self.space.pull_back(self.parameters, slopes).arrays())
        self._step_rows(gradient, rows, scale)

    def settle(self) -> None:
        """Let every row catch up, so that none waits for the prior when parameters are read."""
        if self.visited is None:
            return
        count, waiting = self.stepper.count, np.flatnonzero(self.visited < self.count)
        for start in range(0, len(waiting), SETTLED_ROWS):
            rows = waiting[start : start + SETTLED_ROWS]
            none = [np.zeros((len(rows), *a.shape[1:]), a.dtype) for a in self.theta.arrays()]
            self._step_rows(none, rows, 1.0)
        self.stepper.count, self.visited = count, None  # it is not a step of its own

    def _step_rows(self, gradient: list[Floats], rows: Ints, scale: float) -> None:
        assert self.visited is not None
        assert isinstance(self.stepper, RowStepper)
        waited = (self.count - self.visited[rows]).astype(gradient[0].dtype)
        self.visited[rows] = self.count
        move = Move(list(self.theta.arrays()), gradient, scale, self.space.shrinkage())
        for place, prior, array in self.space.priors(self.parameters):
            if not move.shrinkage[place]:
                waits = waited.reshape(-1, *[1] * (array.ndim - 1))
                move.gradients[place] += prior.gradient(array[rows]) * waits / scale
        self.stepper.step_rows(move, rows, waited, self.solver.pool)
        for (_, value, positive), raw in zip(
            self.space.signed(self.parameters), self.theta.arrays(), strict=True
        ):
            if positive:
                value[rows] = positive_exp(raw[rows])


def _spread(slopes: Factors, like: Factors) -> Factors:
    """A gradient on some rows as one on all rows."""
    if slopes.rows is None:
        return slopes
    full = Factors.zeros_like(like)
    full.add_terms(slopes.terms)
    full.target[slopes.rows] = slopes.target
    full.bag[slopes.rows] = slopes.bag
    full.intercept[slopes.rows] = slopes.intercept
    return full
