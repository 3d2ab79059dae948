"""Watching a fit: a look every few passes, the best state so far, and when to stop."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from efemb.data.readers.progress import progress_bar
from efemb.engine.callbacks import EarlyStopping
from efemb.errors import DivergenceError


def watched(
    model: Any,
    step: Callable[[], bool],
    score: Callable[[], float],
    state: Callable[[], Any],
    *,
    every: int,
) -> Any:
    """Make passes until the score stops rising; return the best state.

    step : one pass; False where no more is to be gained
    state : copy of what the passes change
    every : passes between two looks at the score

    Uses max_iter, tol, n_iter_no_change and verbose of the model, and gives it history_, n_iter_,
    best_iter_ and converged_.
    """
    stopper = EarlyStopping(model.n_iter_no_change, model.tol)
    best, kept = -np.inf, state()
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
                    f"{type(model).__name__} left the finite numbers in pass {number}"
                )
            model.history_.append({"iteration": number, "score": value})
            if value > best:
                best, kept, model.best_iter_ = value, state(), number
            if stopper.count(value) or not moved:
                model.converged_ = True
                break
    if not model.converged_:
        warnings.warn(
            f"{type(model).__name__} was still improving after max_iter={model.max_iter} passes; "
            "the best state so far is kept: raise max_iter",
            ConvergenceWarning,
            stacklevel=4,
        )
    return kept
