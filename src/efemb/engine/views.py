"""Views: the objective as a function of one flat vector, for L-BFGS."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb.engine.moments import MomentsSolver
from efemb.engine.solver import Solver
from efemb.engine.space import ParameterSpace
from efemb.parameters import Parameters
from efemb.types import Floats


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
    if family.learns:
        value, _ = solver.value_and_gradient(space.vectors(parameters), exact=True)
        solver.set_family(family.adapt(value, solver.total_weight))
    return evaluate_objective(space, solver, parameters)


class Flat:
    """All unconstrained parameters as one vector and back."""

    every = 5  # iterations between two validation scores

    def __init__(self, space: ParameterSpace, theta: Parameters) -> None:
        self.space = space
        self.shapes = [array.shape for array in theta.arrays()]
        self.like = theta.like
        self.start = self.gradient(theta)

    def gradient(self, gradient: Parameters) -> Floats:
        """The part of the gradient that moves the vector."""
        return np.concatenate([array.reshape(-1) for array in gradient.arrays()])

    def parameters(self, vector: Floats) -> Parameters:
        """Parameters at a vector."""
        arrays, start = [], 0
        for shape in self.shapes:
            stop = start + int(np.prod(shape))
            arrays.append(vector[start:stop].reshape(shape))
            start = stop
        return self.space.constrained(self.like(arrays))

    def forget(self) -> None:
        """Nothing is kept."""


class Projected:
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
        """The part of the gradient that moves the vector."""
        return gradient.alpha.reshape(-1)

    def parameters(self, vector: Floats) -> Parameters:
        """Parameters at a vector; those of the last one are kept."""
        if self.last is not None and self.last[0] is vector:
            return self.last[1]
        alpha = vector.reshape(self.shape)
        rho, intercept = self.solver.best_targets(alpha)
        found = Parameters(rho, alpha, intercept if self.intercept else None)
        self.last = (vector, found)
        return found

    def forget(self) -> None:
        """The variance has changed, and with it the best rho."""
        self.last = None


def choose_view(space: ParameterSpace, solver: Solver[Any], theta: Parameters) -> Flat | Projected:
    """Project rho out where that is exact."""
    if isinstance(solver, MomentsSolver) and solver.projects(space):
        return Projected(solver, theta)
    return Flat(space, theta)
