"""TrainState: everything that training changes, in one object; a checkpoint holds its arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from efemb.engine.optimizers.first_order import OptimizerState
from efemb.model.families.base import Family
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace


@dataclass(frozen=True)
class Best:
    """The parameters and the family with the highest validation score, and their round."""

    score: float
    round: int
    parameters: Parameters
    family: Family


@dataclass(frozen=True)
class TrainState:
    """The state of training after a round.

    theta : unconstrained parameters: logarithms of positive arrays
    parameters : the parameters themselves; arrays without a constraint are those of `theta`
    optimizer : its name and arrays; no row waits for a lazy update between rounds
    family : with the dispersion learned so far
    round : rounds so far;  steps : steps that each shard has made in them
    objective : (estimated) objective of the last round
    exhausted : whether the optimizer found no ascent
    best : best result of all rounds so far, None if nothing is held out
    """

    theta: Parameters
    parameters: Parameters
    optimizer: OptimizerState
    family: Family
    round: int = 0
    steps: int = 0
    objective: float = -np.inf
    exhausted: bool = False
    best: Best | None = None

    @classmethod
    def start(
        cls, space: ParameterSpace, start: Parameters, optimizer: OptimizerState | None
    ) -> TrainState:
        """The state before the first round, with copies of all arrays."""
        theta = space.unconstrained(start)
        owned = OptimizerState("", {}) if optimizer is None else optimizer.copy()
        return cls(theta, space.constrained(theta), owned, space.spec.family)

    def copy(self) -> TrainState:
        """A copy with arrays of its own, which a round may modify."""
        copies = {id(array): array.copy() for array in self.theta.arrays()}
        for array in self.parameters.arrays():
            if id(array) not in copies:  # some are shared by theta, or by rho and a tied alpha
                copies[id(array)] = array.copy()
        theta, parameters = (
            source.like(copies[id(array)] for array in source.arrays())
            for source in (self.theta, self.parameters)
        )
        return replace(self, theta=theta, parameters=parameters, optimizer=self.optimizer.copy())

    def to_arrays(self) -> dict[str, Any]:
        """Nested dictionaries of numbers, text, ingredients and arrays."""
        parameters, best = self.parameters.named(), self.best
        theta = {n: a for n, a in self.theta.named().items() if a is not parameters[n]}
        return {
            "parameters": parameters,
            "theta": theta,
            "optimizer": {"name": self.optimizer.optimizer, "arrays": self.optimizer.arrays},
            "family": self.family,
            "iteration": self.round,
            "steps": self.steps,
            "objective": self.objective,
            "exhausted": self.exhausted,
            "best": None if best is None else {**vars(best), "parameters": best.parameters.named()},
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], space: ParameterSpace) -> TrainState:
        """Undo `to_arrays`, with copies, because arrays read from a file are read-only."""
        theta = _copy_arrays({**arrays["parameters"], **arrays["theta"]})
        parameters = space.constrained(theta)
        # Stored, not recomputed: exponentials of some rows may differ from those of all in one bit.
        for name in arrays["theta"]:
            parameters.named()[name][...] = arrays["parameters"][name]
        best = arrays["best"]
        if best is not None:
            best = Best(**{**best, "parameters": _copy_arrays(best["parameters"])})
        optimizer = arrays["optimizer"]
        return cls(
            theta,
            parameters,
            OptimizerState(optimizer["name"], optimizer["arrays"]).copy(),
            arrays["family"].scaled_to(space.spec.family.scale),
            arrays["iteration"],
            arrays["steps"],
            arrays["objective"],
            arrays["exhausted"],
            best,
        )


@dataclass(frozen=True)
class Update:
    """Changes of a round: parameters, the optimizer's arrays, steps, and how it went."""

    theta: Parameters
    parameters: Parameters
    optimizer: OptimizerState
    steps: int
    objective: float
    exhausted: bool = False


def _copy_arrays(arrays: Mapping[str, Any]) -> Parameters:
    return Parameters.from_named({name: array.copy() for name, array in arrays.items()})
