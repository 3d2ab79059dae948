"""Callbacks: a common protocol for observers of a fit."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from efemb.errors import DataError, ParameterError, check_integer
from efemb.model.parameters import Parameters
from efemb.storage.encoding import decode, encode
from efemb.storage.folder import SealedKind

CHECKPOINT = SealedKind(
    format="efemb checkpoint", noun="checkpoint", version=2, tensors="state.safetensors"
)


@dataclass
class Progress:
    """The state of a fit that a callback sees after an iteration.

    iteration : passes over the data so far;  objective : value of the (estimated) objective
    validation : score of the held-out data, None if it was not computed in this iteration
    parameters : function that returns a copy of the current parameters
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

    It may also have `start()`, `step(share of the pass that is done)`, `note(status of a cluster)`
    and `close()`; and, to resume after a crash, `state()` and `restore(state)` of numbers, text and
    arrays.
    """

    def __call__(self, progress: Progress) -> bool | None:
        """Process the progress after an iteration."""


class Callbacks:
    """All callbacks of a fit as one; optional methods that a callback lacks are skipped."""

    def __init__(self, callbacks: Iterable[Callback]) -> None:
        self.callbacks = tuple(callbacks)

    def __enter__(self) -> None:
        for callback in self.callbacks:
            getattr(callback, "start", _do_nothing)()

    def __exit__(self, *_: object) -> None:
        for callback in self.callbacks:
            getattr(callback, "close", _do_nothing)()

    def announce(self, text: str) -> None:
        """Report what is known before the fit begins, and workers that were lost."""
        for callback in self.callbacks:
            getattr(callback, "announce", _do_nothing)(text)

    def step(self, done: float, status: str = "") -> None:
        """Report the share of the pass that is done, and the status of a cluster."""
        for callback in self.callbacks:
            getattr(callback, "step", _do_nothing)(done)
            if status:
                getattr(callback, "note", _do_nothing)(status)

    def __call__(self, progress: Progress) -> bool:
        """Pass the progress to every callback; True if one of them asks to stop."""
        answers = [callback(progress) for callback in self.callbacks]
        return any(answer is True for answer in answers)

    def state(self) -> list[Any]:
        """States of all callbacks, for a checkpoint."""
        return [getattr(callback, "state", _do_nothing)() for callback in self.callbacks]

    def restore(self, states: list[Any]) -> None:
        """Undo `state`; callbacks may have been added since."""
        for callback, state in zip(self.callbacks, states, strict=False):
            if state is not None:
                getattr(callback, "restore", _do_nothing)(state)


def _do_nothing(*args: object) -> None:
    """Placeholder for an optional method that a callback lacks."""


class EarlyStopping:
    """Stop when the validation score has not risen by `tol` in `patience` evaluations.

    Parameters
    ----------
    patience : int, default=5
        Number of evaluations without an improvement before a fit stops.
    tol : float, default=0.0001
        Minimum improvement of the score.
    """

    def __init__(self, patience: int = 5, tol: float = 1e-4) -> None:
        self.patience = patience
        self.tol = tol
        self.start()

    def start(self) -> None:
        """Reset the counts of an earlier fit."""
        self.best = -float("inf")
        self.waited = 0

    def __call__(self, progress: Progress) -> bool:
        """Count the evaluations without improvement."""
        return self.count(progress.validation)

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        return {"best": self.best, "waited": self.waited}

    def restore(self, state: dict[str, Any]) -> None:
        """Undo `state`."""
        self.best, self.waited = state["best"], state["waited"]

    def count(self, score: float | None) -> bool:
        """Whether a score (None if there was none) ends the fit."""
        if score is None:
            return False
        if score > self.best + self.tol:
            self.best, self.waited = score, 0
        else:
            self.waited += 1
        return self.waited >= self.patience


class IterateAverage:
    """The mean of the parameters after the last few passes, which is less noisy than any of them.

    Parameters
    ----------
    window : int, default=3
        Number of passes.

    Examples
    --------
    >>> import efemb
    >>> data = efemb.simulation.simulate(
    ...     "p-emb", n_rows=60, n_entities=6, n_components=2, seed=0
    ... ).data
    >>> mean = IterateAverage()
    >>> model = efemb.PoissonEmbedding(2, random_state=0, callbacks=[mean]).fit(data)
    >>> model.parameters_ = mean.average()
    """

    def __init__(self, window: int = 3) -> None:
        self.window = check_integer("IterateAverage.window", window)
        self.start()

    def start(self) -> None:
        """Forget an earlier fit."""
        self.recent: list[Parameters] = []

    def __call__(self, progress: Progress) -> None:
        """Store the parameters, and drop the oldest ones."""
        self.recent = [*self.recent, progress.parameters()][-self.window :]

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        return {"recent": [parameters.named() for parameters in self.recent]}

    def restore(self, state: dict[str, Any]) -> None:
        """Undo `state`."""
        self.recent = [Parameters.from_named(named) for named in state["recent"]]

    def average(self) -> Parameters:
        """The mean of the last parameters; positive arrays stay positive."""
        if not self.recent:
            raise ParameterError("no pass has been made yet: call average() after a fit")
        columns = zip(*(parameters.arrays() for parameters in self.recent), strict=True)
        means = (np.asarray(np.mean(arrays, axis=0, dtype=np.float64)) for arrays in columns)
        like = self.recent[0].arrays()
        return self.recent[0].like(
            mean.astype(array.dtype) for mean, array in zip(means, like, strict=True)
        )


class JsonLinesLog:
    """Append one JSON object per iteration to a file.

    Parameters
    ----------
    path : str or path
        The file; it is created if it does not exist.

    Examples
    --------
    >>> import efemb, tempfile
    >>> data = efemb.simulation.simulate(
    ...     "p-emb", n_rows=60, n_entities=6, n_components=2, seed=0
    ... ).data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = JsonLinesLog(folder + "/log.jsonl")
    ...     model = efemb.PoissonEmbedding(2, random_state=0, callbacks=[log]).fit(data)
    ...     lines = log.path.read_text().splitlines()
    >>> len(lines) == model.n_iter_
    True
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __call__(self, progress: Progress) -> None:
        """Write a line."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(progress.record()) + "\n")


class Checkpoint:
    """Saves the state of a fit in a folder, so that it can resume after a crash.

    The same `fit` call (same data, settings and seed) finds the folder, resumes from there and
    ends with the same bits as without the interruption. The result of a completed fit is returned
    immediately, and a larger `max_iter` continues a fit with a smaller one. Without a
    `random_state` the seed of the first attempt is used again.

    Parameters
    ----------
    path : path of the folder
        Replaced atomically each time: after a crash it holds the old state or the new one.
    every : int, default=1
        Iterations between two states.
    resume : bool, default=True
        False starts from the beginning and replaces the checkpoint, even a damaged one.

    Examples
    --------
    >>> import efemb, tempfile
    >>> data = efemb.simulation.simulate(
    ...     "p-emb", n_rows=60, n_entities=6, n_components=2, seed=0
    ... ).data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     state = efemb.engine.callbacks.Checkpoint(folder + "/state", every=20)
    ...     model = efemb.PoissonEmbedding(2, random_state=0, callbacks=[state]).fit(data)
    ...     state.load().rho.shape
    (6, 2)
    """

    def __init__(self, path: str | os.PathLike[str], every: int = 1, resume: bool = True) -> None:
        self.path = CHECKPOINT.check_path(path)
        self.every = check_integer("Checkpoint.every", every)
        self.resume = resume

    def __call__(self, progress: Progress) -> None:
        """Do nothing: an iteration is complete only after all callbacks have seen it."""

    def prepare(self) -> None:
        """Reject a folder that is not writable before any work is done."""
        target = CHECKPOINT.replaceable(self.path, damaged=not self.resume)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(target.parent, os.W_OK):
            raise PermissionError(f"{target.parent} is not writable: choose another folder")

    def write(self, state: dict[str, Any]) -> None:
        """Replace the folder by a state: nested dictionaries of numbers, text and arrays."""
        arrays: dict[str, Any] = {}
        body = {"state": encode(state, arrays, "state")}
        CHECKPOINT.write(self.path, body, arrays, damaged=not self.resume)

    def read(self) -> dict[str, Any] | None:
        """The state in the folder, None if there is none."""
        if not CHECKPOINT.exists(self.path):
            return None
        contents = CHECKPOINT.read(self.path)
        if contents.body["version"] < CHECKPOINT.version:
            raise DataError(
                f"{self.path} is a checkpoint of format {contents.body['version']}, of an older "
                f"efemb; this one resumes from format {CHECKPOINT.version} only: start anew with "
                "Checkpoint(..., resume=False) or in another folder"
            )
        state: dict[str, Any] = decode(contents.body["state"], contents.arrays)
        return state

    def load(self) -> Parameters:
        """The parameters of the last state, to inspect; to resume, call the same `fit` again."""
        state = self.read()
        if state is None:
            raise DataError(f"{self.path} does not exist: no state has been written there yet")
        return Parameters.from_named(state["parameters"])
