"""Early stopping: baselines that are fitted pass by pass, until their score stops improving."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from efemb._terminal import progress_bar
from efemb._typing import Floats
from efemb.baselines.base import Baseline
from efemb.engine.callbacks import EarlyStopping
from efemb.errors import DivergenceError, check_integer, check_number
from efemb.estimators.checks import check_components
from efemb.model.ingredient import positive_number


@dataclass(eq=False, repr=False)
class Iterated(Baseline):
    """Base class with the options of `run_passes`; `_positive` names options that must be > 0."""

    n_components: int = 20
    _: KW_ONLY
    max_iter: int = 500
    tol: float = 1e-4
    n_iter_no_change: int = 10
    random_state: Any = None
    verbose: int = 0

    beta_: Floats = field(init=False)
    theta_: Floats = field(init=False)
    history_: list[dict[str, float]] = field(init=False)
    n_iter_: int = field(init=False)
    best_iter_: int = field(init=False)
    converged_: bool = field(init=False)

    _positive: ClassVar[tuple[str, ...]] = ()

    def _check(self) -> None:
        check_components(self.n_components)
        for name in self._positive:
            positive_number(self, name)
        check_number("tol", self.tol, low=0)
        check_integer("max_iter", self.max_iter)
        check_integer("n_iter_no_change", self.n_iter_no_change)


def run_passes(
    model: Any,
    step: Callable[[], bool],
    score: Callable[[], float],
    state: Callable[[], Any],
    *,
    every: int,
) -> Any:
    """Make passes until the score stops improving; return the best state.

    step : makes one pass; returns False if no further improvement is possible
    state : returns a copy of what the passes change
    every : number of passes between two evaluations of the score

    Reads max_iter, tol, n_iter_no_change and verbose of the model; sets history_, n_iter_,
    best_iter_ and converged_.
    """
    stopper = EarlyStopping(model.n_iter_no_change, model.tol)
    best, best_state = -np.inf, state()
    model.history_, model.best_iter_, model.converged_ = [], 0, False
    with progress_bar(f"fitting {type(model).__name__}", model.max_iter, bool(model.verbose)) as on:
        for number in range(1, model.max_iter + 1):
            model.n_iter_ = number
            moved = step()
            on(1)
            if moved and number % every and number != model.max_iter:
                continue
            value = score()
            if not np.isfinite(value):
                raise DivergenceError(
                    f"{type(model).__name__} diverged (NaN or infinity) in pass {number}: check "
                    "the scale of the data"
                )
            model.history_.append({"iteration": number, "score": value})
            if value > best:
                best, best_state, model.best_iter_ = value, state(), number
            if stopper.count(value) or not moved:
                model.converged_ = True
                break
    if not model.converged_:
        warnings.warn(
            f"{type(model).__name__} was still improving after max_iter={model.max_iter} passes; "
            "the best state so far was kept: raise max_iter",
            ConvergenceWarning,
            stacklevel=4,
        )
    return best_state
