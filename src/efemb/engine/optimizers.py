"""Optimisers: how a gradient becomes a step. All maximise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from efemb.ingredient import Ingredient, positive_number
from efemb.types import Floats, Ints


@dataclass(frozen=True)
class OptimizerState:
    """Arrays that let a fit go on, and the optimiser they belong to."""

    optimizer: str
    arrays: dict[str, Floats]


class Optimizer(Ingredient, ABC):
    """Options of an optimiser; `start` makes the state for one fit."""

    full_batch: bool = False

    def check(self) -> None:
        """Raise if an option is out of range."""
        positive_number(self, "step")


class Stepper(ABC):
    """State of a first-order optimiser over several arrays."""

    count: int = 0

    @abstractmethod
    def step(
        self,
        arrays: list[Floats],
        gradients: list[Floats],
        scale: float,
        shrinkage: list[float],
    ) -> None:
        """Step along scale * gradient - shrinkage * array, in place."""

    @abstractmethod
    def step_rows(self, arrays: list[Floats], gradients: list[Floats], rows: Ints) -> None:
        """Step on some rows only, which the gradients cover."""

    @abstractmethod
    def state(self) -> dict[str, Floats]:
        """Arrays that a checkpoint must keep."""

    @abstractmethod
    def restore(self, state: dict[str, Floats]) -> None:
        """Undo `state`."""


class FirstOrder(Optimizer, ABC):
    """An optimiser that works on minibatches."""

    @abstractmethod
    def start(self, arrays: list[Floats], n_rows: int) -> Stepper:
        """State for one fit."""


class Adagrad(FirstOrder):
    """Duchi et al. (2011), the paper's: step g / sqrt(sum of g^2 + epsilon).

    Parameters
    ----------
    step : float
        The "Adagrad constant".
    epsilon : float
        Keeps the first step of a number whose gradient is tiny from being a full one.
    """

    def __init__(self, step: float = 0.1, epsilon: float = 1e-6) -> None:
        self.step = step
        self.epsilon = epsilon

    def start(self, arrays: list[Floats], n_rows: int) -> Stepper:
        """Zero sums of squares."""
        return _AdagradStepper(self, arrays)


class Adam(FirstOrder):
    """Kingma and Ba (2015)."""

    def __init__(
        self, step: float = 0.01, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8
    ) -> None:
        self.step = step
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def start(self, arrays: list[Floats], n_rows: int) -> Stepper:
        """Zero moments."""
        return _AdamStepper(self, arrays)


class SGD(FirstOrder):
    """Plain steps along the gradient divided by the number of rows, with decay.

    The step at time t is step / (1 + decay t).
    """

    def __init__(self, step: float = 0.05, decay: float = 0.0) -> None:
        self.step = step
        self.decay = decay

    def start(self, arrays: list[Floats], n_rows: int) -> Stepper:
        """No state but the time."""
        return _SgdStepper(self, n_rows)


class LBFGS(Optimizer):
    """Limited-memory BFGS on all rows at once, with a Wolfe line search.

    Parameters
    ----------
    memory : int
        Number of past steps that shape the curvature.
    """

    full_batch = True

    def __init__(self, memory: int = 10) -> None:
        self.memory = memory

    def check(self) -> None:
        """`memory` must be positive."""
        positive_number(self, "memory")


class _AdagradStepper(Stepper):
    def __init__(self, options: Adagrad, arrays: list[Floats]) -> None:
        self.options = options
        self.squares = [np.zeros_like(array) for array in arrays]

    def step(
        self,
        arrays: list[Floats],
        gradients: list[Floats],
        scale: float,
        shrinkage: list[float],
    ) -> None:
        from efemb.kernels.steps import adagrad

        for theta, gradient, squares, shrink in zip(
            arrays, gradients, self.squares, shrinkage, strict=True
        ):
            numbers = (self.options.step, self.options.epsilon, scale, shrink)
            flat: tuple[Any, ...] = tuple(a.reshape(-1) for a in (theta, gradient, squares))
            adagrad(*flat, *(theta.dtype.type(number) for number in numbers))

    def step_rows(self, arrays: list[Floats], gradients: list[Floats], rows: Ints) -> None:
        from efemb.kernels.steps import adagrad_rows

        for theta, gradient, squares in zip(arrays, gradients, self.squares, strict=True):
            scalar, shape = theta.dtype.type, (len(theta), -1)
            rest = gradient.reshape(len(rows), -1)
            step, epsilon = scalar(self.options.step), scalar(self.options.epsilon)
            tables = (theta.reshape(shape), rows, rest, squares.reshape(shape))
            adagrad_rows(*tables, step, epsilon)

    def state(self) -> dict[str, Floats]:
        return {f"squares{i}": array for i, array in enumerate(self.squares)}

    def restore(self, state: dict[str, Floats]) -> None:
        for i, array in enumerate(self.squares):
            array[...] = state[f"squares{i}"]


class _AdamStepper(Stepper):
    def __init__(self, options: Adam, arrays: list[Floats]) -> None:
        self.options = options
        self.mean = [np.zeros_like(array) for array in arrays]
        self.squares = [np.zeros_like(array) for array in arrays]

    def step(
        self,
        arrays: list[Floats],
        gradients: list[Floats],
        scale: float,
        shrinkage: list[float],
    ) -> None:
        from efemb.kernels.steps import adam

        self.count += 1
        o = self.options
        unbiased = np.sqrt(1 - o.beta2**self.count) / (1 - o.beta1**self.count)
        for theta, gradient, mean, squares, shrink in zip(
            arrays, gradients, self.mean, self.squares, shrinkage, strict=True
        ):
            state = (theta, gradient, mean, squares)
            flat: tuple[Any, ...] = tuple(a.reshape(-1) for a in state)
            numbers = (o.step * unbiased, o.epsilon, o.beta1, o.beta2, scale, shrink)
            scalars: tuple[Any, ...] = tuple(theta.dtype.type(number) for number in numbers)
            adam(*(flat + scalars))

    def step_rows(self, arrays: list[Floats], gradients: list[Floats], rows: Ints) -> None:
        full = [np.zeros_like(array) for array in arrays]
        for whole, part in zip(full, gradients, strict=True):
            whole[rows] = part
        self.step(arrays, full, 1.0, [0.0] * len(full))

    def state(self) -> dict[str, Floats]:
        kept: dict[str, Any] = {"count": np.array([self.count])}
        kept.update({f"mean{i}": array for i, array in enumerate(self.mean)})
        kept.update({f"squares{i}": array for i, array in enumerate(self.squares)})
        return kept

    def restore(self, state: dict[str, Floats]) -> None:
        self.count = int(state["count"][0])
        for i, (mean, squares) in enumerate(zip(self.mean, self.squares, strict=True)):
            mean[...] = state[f"mean{i}"]
            squares[...] = state[f"squares{i}"]


class _SgdStepper(Stepper):
    def __init__(self, options: SGD, n_rows: int) -> None:
        self.options, self.n_rows = options, n_rows

    def _size(self) -> float:
        self.count += 1
        return self.options.step / (1.0 + self.options.decay * (self.count - 1)) / self.n_rows

    def step(
        self,
        arrays: list[Floats],
        gradients: list[Floats],
        scale: float,
        shrinkage: list[float],
    ) -> None:
        size = self._size()
        for theta, gradient, shrink in zip(arrays, gradients, shrinkage, strict=True):
            np.add(theta, size * (scale * gradient - shrink * theta), out=theta)

    def step_rows(self, arrays: list[Floats], gradients: list[Floats], rows: Ints) -> None:
        size = self._size()
        for theta, gradient in zip(arrays, gradients, strict=True):
            theta[rows] += size * gradient

    def state(self) -> dict[str, Floats]:
        return {"count": np.array([self.count])}

    def restore(self, state: dict[str, Floats]) -> None:
        self.count = int(state["count"][0])
