"""Callbacks: one protocol for anything that watches a fit."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from efemb.parameters import Parameters


@dataclass
class Progress:
    """What a callback sees after an iteration.

    iteration : passes over the data so far;  objective : value of the (estimated) objective
    validation : score of the held-out data, None where it was not computed in this iteration
    parameters : function that returns a copy of the present parameters
    """

    iteration: int
    objective: float
    validation: float | None
    seconds: float
    parameters: Callable[[], Parameters] = field(repr=False)

    def record(self) -> dict[str, Any]:
        """The numbers, for a log."""
        return {
            "iteration": self.iteration,
            "objective": self.objective,
            "validation": self.validation,
            "seconds": self.seconds,
        }


class Callback(Protocol):
    """Called after every iteration; returning True stops the fit.

    It may also have `start()`, `step(part of the pass that is done)` and `close()`.
    """

    def __call__(self, progress: Progress) -> bool | None:
        """Look at the progress."""


class EarlyStopping:
    """Stop when the validation score has not risen by `tol` in `patience` evaluations."""

    def __init__(self, patience: int = 5, tol: float = 1e-4) -> None:
        self.patience = patience
        self.tol = tol
        self.start()

    def start(self) -> None:
        """Forget an earlier fit."""
        self.best = -float("inf")
        self.waited = 0

    def __call__(self, progress: Progress) -> bool:
        """Count the evaluations without progress."""
        return self.count(progress.validation)

    def count(self, score: float | None) -> bool:
        """Whether a score (None: there was none) ends the fit."""
        if score is None:
            return False
        if score > self.best + self.tol:
            self.best, self.waited = score, 0
        else:
            self.waited += 1
        return self.waited >= self.patience


class JsonLinesLog:
    """Append one JSON object an iteration to a file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __call__(self, progress: Progress) -> None:
        """Write a line."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(progress.record()) + "\n")


class Checkpoint:
    """Write the present parameters to a safetensors file every `every` iterations, atomically."""

    def __init__(self, path: str | os.PathLike[str], every: int = 1) -> None:
        self.path = Path(path)
        self.every = every

    def __call__(self, progress: Progress) -> None:
        """Save to a temporary name, then rename."""
        if progress.iteration % self.every:
            return
        from safetensors.numpy import save_file

        found = progress.parameters()
        arrays = {key: getattr(found, key) for key in ("rho", "alpha", "intercept", "position")}
        tensors = {key: array for key, array in arrays.items() if array is not None}
        partial = self.path.with_name(self.path.name + ".partial")
        metadata = {key: json.dumps(value) for key, value in progress.record().items()}
        save_file(tensors, partial, metadata=metadata)
        os.replace(partial, self.path)

    def load(self) -> Parameters:
        """Read the parameters back; pass them to `fit` through `warm_start`."""
        from safetensors.numpy import load_file

        tensors = load_file(self.path)
        names = ("rho", "alpha", "intercept", "position")
        return Parameters(*(tensors.get(name) for name in names))  # type: ignore[arg-type]
