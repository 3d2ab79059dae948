"""Optimizers, which turn gradients into steps. All of them maximize."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from efemb._typing import Floats, Ints
from efemb.engine.optimizers.step import Move
from efemb.engine.threads import Workers
from efemb.errors import ParameterError, check_integer
from efemb.kernels.steps import adagrad, adagrad_positive, adagrad_rows, adam
from efemb.model.ingredient import Ingredient, positive_number

NO_OFFSETS = "SGD(shared=) needs a text model with structure=Grouped(column) or Dynamic(column)"


@dataclass(frozen=True)
class OptimizerState:
    """Arrays from which a fit resumes, and the optimizer they belong to."""

    optimizer: str
    arrays: dict[str, Any]

    def copy(self) -> OptimizerState:
        """A copy with arrays of its own."""
        return OptimizerState(self.optimizer, copy.deepcopy(self.arrays))


class Optimizer(Ingredient, ABC):
    """Options of an optimizer; `start` creates the state for one fit."""

    full_batch: bool = False
    by_word: ClassVar[bool] = False  # whether the kernels for text implement its steps

    def check(self) -> None:
        """Raise if an option is out of range."""
        positive_number(self, "step")


class Stepper(ABC):
    """State of a first-order optimizer over several arrays."""

    count: int = 0

    @abstractmethod
    def step(self, move: Move, pool: Workers) -> None:
        """Step along scale * gradient - shrinkage * array, in place."""

    @abstractmethod
    def state(self) -> dict[str, Floats]:
        """Arrays for a checkpoint."""

    @abstractmethod
    def restore(self, state: dict[str, Floats]) -> None:
        """Undo `state`; the stepper works on these arrays from then on."""


class RowStepper(Stepper, ABC):
    """A stepper that changes rows without a gradient only by the prior."""

    @abstractmethod
    def step_rows(self, move: Move, rows: Ints, waited: Floats, pool: Workers) -> None:
        """Step on the rows that the gradients cover.

        A row is shrunk for all the steps it has `waited` since its last visit.
        """


class FirstOrder(Optimizer, ABC):
    """An optimizer that works on minibatches."""

    averages: ClassVar[bool] = False  # whether the arrays of several shards may be averaged
    sums_squares: ClassVar[bool] = False  # whether steps are divided by roots of summed squares
    decay: float | str = 0  # of the step
    epsilon: float = 0.0  # initial value of the sums of squares
    shared: float = 1.0  # steps of vectors that groups share, in units of those of their offsets
    step: float

    def faster(self, factor: float) -> Self:
        """The same optimizer with a longer step."""
        other = copy.copy(self)
        other.step = self.step * factor
        return other

    @abstractmethod
    def start(self, arrays: list[Floats], n_rows: int) -> Stepper:
        """Initial state for one fit."""


class Adagrad(FirstOrder):
    """Duchi et al. (2011), the paper's: step g / sqrt(sum of g^2 + epsilon).

    Parameters
    ----------
    step : float, default=0.1
        The "Adagrad constant".
    epsilon : float, default=1e-06
        Prevents full steps for numbers whose gradients were tiny. Here g is the
        gradient of a minibatch, not scaled up to all rows (solver "windows": of a word).
        With about 0.01, entities that were seen only a few times move little, which matters more
        than the choice of `step` if many entities are rare.
    """

    averages = True
    by_word = True
    sums_squares = True

    def __init__(self, step: float = 0.1, epsilon: float = 1e-6) -> None:
        self.step = step
        self.epsilon = epsilon

    def check(self) -> None:
        """`epsilon` must be positive, to avoid 0 / 0."""
        super().check()
        positive_number(self, "epsilon")

    def faster(self, factor: float) -> Self:
        """With a longer step, except for numbers whose gradients are tiny.

        Epsilon, not their sums of squares, determines their step. It grows with the square of the
        factor, so that they step as before: longer steps of rare entities are mostly noise.
        """
        other = super().faster(factor)
        other.epsilon = self.epsilon * factor**2
        return other

    def start(self, arrays: list[Floats], n_rows: int) -> Stepper:
        """Zero sums of squares."""
        return _AdagradStepper(self, arrays)


class Adam(FirstOrder):
    """Adaptive moments (Kingma and Ba 2015).

    Parameters
    ----------
    step : float, default=0.01
        Length of a step.
    beta1, beta2 : float, default=0.9, 0.999
        Decay rates of the means of gradients and of their squares.
    epsilon : float, default=1e-8
        Added to the square root of the mean square.
    """

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

    The step at time t is step / (1 + decay t); with decay="linear" (solver "windows" only, whose
    passes are planned) it decreases linearly from `step` to 0 over all passes.

    Parameters
    ----------
    step : float, default=0.05
        Length of the first step, per unit of the mean gradient of a row.
    decay : float or "linear", default=0.0
        How fast steps become shorter; 0 keeps them constant.
    shared : float, default=1.0
        For text with `Grouped` or `Dynamic`: steps of the vectors that all groups share, in units
        of those of the offsets of a group. If groups refine a fitted model, 0.1 keeps its vectors
        close to what they are, and 0 fixes them.
    """

    by_word = True

    def __init__(self, step: float = 0.05, decay: float | str = 0.0, shared: float = 1.0) -> None:
        self.step = step
        self.decay = decay
        self.shared = shared

    def check(self) -> None:
        """`decay` must be a number >= 0 or "linear", `shared` a number >= 0."""
        super().check()
        positive_number(self, "shared", zero=True)
        if self.decay != "linear":
            positive_number(self, "decay", zero=True)

    def start(self, arrays: list[Floats], n_rows: int) -> Stepper:
        """No state but the time."""
        if isinstance(self.decay, str):
            raise ParameterError("SGD(decay='linear') needs solver 'windows': pass a number here")
        if self.shared != 1:
            raise ParameterError(NO_OFFSETS)
        return _SgdStepper(self, n_rows)


class LBFGS(Optimizer):
    """Limited-memory BFGS on all rows at once, with a Wolfe line search.

    Parameters
    ----------
    memory : int, default=10
        Number of past steps that shape the curvature.
    """

    full_batch = True

    def __init__(self, memory: int = 10) -> None:
        self.memory = memory

    def check(self) -> None:
        """`memory` must be a whole number."""
        check_integer("LBFGS.memory", self.memory)


class _AdagradStepper(RowStepper):
    def __init__(self, options: Adagrad, arrays: list[Floats]) -> None:
        self.options = options
        self.squares = [np.zeros_like(array) for array in arrays]

    def _numbers(self, move: Move, i: int) -> tuple[Any, ...]:
        scalar = move.arrays[i].dtype.type
        epsilon = self.options.epsilon * move.scale**2
        numbers = (self.options.step, epsilon, move.scale, move.shrinkage[i])
        return tuple(scalar(number) for number in numbers)

    def step(self, move: Move, pool: Workers) -> None:
        def step_array(i: int) -> None:
            vectors, (gradient, pitch, shape) = move.vectors_of(i), _in_rows(move.gradients[i])
            arrays = (move.arrays[i],) if vectors is None else (move.arrays[i], vectors)
            rows = (array.reshape(shape) for array in arrays)
            state: tuple[Any, ...] = (*rows, gradient, pitch, self.squares[i].reshape(shape))
            step = adagrad if vectors is None else adagrad_positive
            step(*(state + self._numbers(move, i)))

        list(pool.map(step_array, range(len(move)), move.size))

    def step_rows(self, move: Move, rows: Ints, waited: Floats, pool: Workers) -> None:
        def step_array(i: int) -> None:
            theta, gradient, squares = (
                array.reshape(len(array), -1)
                for array in (move.arrays[i], move.gradients[i], self.squares[i])
            )
            state: tuple[Any, ...] = (theta, rows, gradient, squares, waited)
            adagrad_rows(*(state + self._numbers(move, i)))

        list(pool.map(step_array, range(len(move)), move.size))

    def state(self) -> dict[str, Floats]:
        return {f"squares{i}": array for i, array in enumerate(self.squares)}

    def restore(self, state: dict[str, Floats]) -> None:
        self.squares = _adopt(self.squares, state, "squares")


class _AdamStepper(Stepper):
    def __init__(self, options: Adam, arrays: list[Floats]) -> None:
        self.options = options
        self.mean = [np.zeros_like(array) for array in arrays]
        self.squares = [np.zeros_like(array) for array in arrays]

    def step(self, move: Move, pool: Workers) -> None:
        self.count += 1
        asked, move = move, move.without_vectors()
        o = self.options
        unbiased = np.sqrt(1 - o.beta2**self.count) / (1 - o.beta1**self.count)

        def step_array(i: int) -> None:
            theta = move.arrays[i]
            state = (theta, move.gradients[i], self.mean[i], self.squares[i])
            flat: tuple[Any, ...] = tuple(array.reshape(-1) for array in state)
            decay = (o.beta1, o.beta2)
            numbers = (o.step * unbiased, o.epsilon, *decay, move.scale, move.shrinkage[i])
            adam(*(flat + tuple(theta.dtype.type(number) for number in numbers)))

        list(pool.map(step_array, range(len(move)), move.size))
        asked.refresh_vectors()

    def state(self) -> dict[str, Floats]:
        means = {f"mean{i}": array for i, array in enumerate(self.mean)}
        squares = {f"squares{i}": array for i, array in enumerate(self.squares)}
        return {"count": np.array([self.count]), **means, **squares}

    def restore(self, state: dict[str, Floats]) -> None:
        self.count = int(state["count"][0])
        self.mean = _adopt(self.mean, state, "mean")
        self.squares = _adopt(self.squares, state, "squares")


class _SgdStepper(RowStepper):
    def __init__(self, options: SGD, n_rows: int) -> None:
        self.options, self.n_rows = options, n_rows

    def _size(self) -> float:
        self.count += 1
        decay = float(self.options.decay)
        return self.options.step / (1.0 + decay * (self.count - 1)) / self.n_rows

    def step(self, move: Move, pool: Workers) -> None:
        size = self._size()
        asked, move = move, move.without_vectors()
        for theta, gradient, shrink in zip(
            move.arrays, move.gradients, move.shrinkage, strict=True
        ):
            np.add(theta, size * (move.scale * gradient - shrink * theta), out=theta)
        asked.refresh_vectors()

    def step_rows(self, move: Move, rows: Ints, waited: Floats, pool: Workers) -> None:
        size = self._size()
        terms = zip(move.arrays, move.gradients, move.shrinkage, strict=True)
        for theta, gradient, shrink in terms:
            waits = waited.reshape(-1, *[1] * (theta.ndim - 1))
            theta[rows] += size * (move.scale * gradient - shrink * waits * theta[rows])

    def state(self) -> dict[str, Floats]:
        return {"count": np.array([self.count])}

    def restore(self, state: dict[str, Floats]) -> None:
        self.count = int(state["count"][0])


def _in_rows(gradient: Floats) -> tuple[Floats, int, tuple[int, int]]:
    """Its numbers as a flat array, the distance between rows there, and rows x columns.

    In a model with terms a gradient is part of a wider array: its rows are read where they lie.
    """
    if not gradient.flags.c_contiguous and gradient.ndim == 2:
        (step, each), size = gradient.strides, gradient.itemsize
        if each == size and step > 0 and step % size == 0:
            pitch, (n, width) = step // size, gradient.shape
            flat = np.lib.stride_tricks.as_strided(gradient, ((n - 1) * pitch + width,), (size,))
            return flat, pitch, (n, width)
    return gradient.reshape(-1), gradient.size, (1, gradient.size)


def _adopt(arrays: list[Floats], state: dict[str, Floats], name: str) -> list[Floats]:
    """The arrays of a state, in the precision of the current ones."""
    return [np.asarray(state[f"{name}{i}"], array.dtype) for i, array in enumerate(arrays)]
