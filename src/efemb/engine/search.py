"""Search: rounds of L-BFGS on all rows, and the objective as a function of a flat vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from efemb._typing import Floats
from efemb.engine.optimizers.first_order import LBFGS, OptimizerState
from efemb.engine.optimizers.limited_memory import LimitedMemory
from efemb.engine.plan import Plan
from efemb.engine.random import RoundKey
from efemb.engine.solvers.base import Solver
from efemb.engine.solvers.moments.solver import MomentsSolver
from efemb.engine.state import TrainState, Update
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace


def evaluate_objective(
    space: ParameterSpace, solver: Solver[Any], parameters: Parameters
) -> tuple[float, Parameters]:
    """L and its gradient in the unconstrained parameters."""
    value, slopes = solver.value_and_gradient(space.vectors(parameters), exact=True)
    gradient = space.pull_back(parameters, slopes)
    space.add_prior(parameters, gradient)
    return value + space.log_prior(parameters), gradient


def profile_objective(
    space: ParameterSpace, solver: Solver[Any], parameters: Parameters
) -> tuple[float, Parameters]:
    """L and its gradient with a learned dispersion at its best value for these parameters."""
    family = solver.spec.family
    if family.learns and family.varies:
        solver.set_family(family.adapt_entities(*solver.evidence(space.vectors(parameters))))
    elif family.learns:
        value, _ = solver.value_and_gradient(space.vectors(parameters), exact=True)
        solver.set_family(family.adapt(value, solver.total_weight))
    return evaluate_objective(space, solver, parameters)


class Flat:
    """Conversion of all unconstrained parameters to one vector and back."""

    def __init__(self, theta: Parameters) -> None:
        self.begin = theta

    def start(self) -> Floats:
        """The vector of the initial parameters."""
        return self.gradient(self.begin)

    def gradient(self, gradient: Parameters) -> Floats:
        """The gradient with respect to the vector."""
        return np.concatenate([array.reshape(-1) for array in gradient.arrays()])

    def theta(self, vector: Floats) -> Parameters:
        """Unconstrained parameters of a vector."""
        arrays, start = [], 0
        for array in self.begin.arrays():
            stop = start + array.size
            arrays.append(vector[start:stop].reshape(array.shape))
            start = stop
        return self.begin.like(arrays)


class Projected:
    """alpha as a vector; rho and the intercepts follow from it (variable projection).

    The gradient of the projected objective is that of the objective along alpha at the best rho.
    """

    def __init__(self, solver: MomentsSolver, theta: Parameters) -> None:
        self.solver, self.begin = solver, theta
        self.last: tuple[Floats, Parameters] | None = None

    def start(self) -> Floats:
        """The vector of the parameters at the start."""
        return self.gradient(self.begin)

    def gradient(self, gradient: Parameters) -> Floats:
        """The part of the gradient that moves the vector."""
        return gradient.alpha.reshape(-1)

    def theta(self, vector: Floats) -> Parameters:
        """Parameters of a vector; those of the last one are kept."""
        if self.last is not None and self.last[0] is vector:
            return self.last[1]
        alpha = vector.reshape(self.begin.alpha.shape)
        rho, intercept = self.solver.best_targets(alpha)
        theta = Parameters(rho, alpha, None if self.begin.intercept is None else intercept)
        self.last = (vector, theta)
        return theta


def projects(space: ParameterSpace, solver: Solver[Any]) -> bool:
    """Whether rho can be projected out, which is exact."""
    return solver.projects(space)


class Search:
    """One iteration, over alpha alone if the best rho given alpha is known."""

    def __init__(self, solver: Solver[Any], state: TrainState, plan: Plan) -> None:
        assert isinstance(plan.optimizer, LBFGS)
        self.solver, self.plan, self.space = solver, plan, plan.space
        self.name = repr(plan.optimizer)
        self.view = self._choose_view(state.theta)
        saved = state.optimizer.arrays if state.optimizer.optimizer == self.name else None
        start = self.view.start() if saved is None else saved["x"]
        self.search = LimitedMemory(self._evaluate, start, plan.optimizer.memory, saved)
        if saved is not None and plan.space.spec.family.learns:  # the function itself has changed
            self.search.refresh()

    def _choose_view(self, theta: Parameters) -> Flat | Projected:
        if self.solver.projects(self.space):
            return Projected(cast(MomentsSolver, self.solver), theta)
        return Flat(theta)

    def _evaluate(self, x: Floats) -> tuple[float, Floats]:
        parameters = self.space.constrained(self.view.theta(x))
        value, gradient = evaluate_objective(self.space, self.solver, parameters)
        return value, self.view.gradient(gradient)

    def run(self, key: RoundKey, watch: Callable[[float], bool]) -> Update:
        """Make one line search; the search is exhausted if no ascent is possible."""
        moved = self.search.step()
        if not moved:
            self._check_gradient(key.round)
        theta = self.view.theta(self.search.x)
        return Update(
            theta,
            self.space.constrained(theta),
            OptimizerState(self.name, self.search.state()),
            key.first_step + 1,
            self.search.value,
            exhausted=not moved,
        )

    def _check_gradient(self, iteration: int) -> None:
        """A search also ends if the length of the gradient cannot be computed."""
        gradient = self.search.gradient
        if not np.isfinite(float(gradient @ gradient)):
            raise self.plan.diverged(
                f"the squares of the gradient are too large for {gradient.dtype} in iteration "
                f"{iteration}",
                "scale the data, or use dtype='float64'",
            )
