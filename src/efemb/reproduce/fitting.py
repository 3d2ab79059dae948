"""Jobs of count models: fit one on one split, then predict every test entry without itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from efemb.data.dataset import Dataset
from efemb.evaluation.predictions import Predictions
from efemb.reproduce.runner import Found, Job, Outcome
from efemb.reproduce.settings import Recipe
from efemb.reproduce.splits import Split
from efemb.table import Table


class Later:
    """Something that is made when it is first asked for: a resumed study may never need it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._made = make, False
        self._lock = threading.Lock()  # jobs may run side by side

    @property
    def value(self) -> Any:
        """What was made."""
        with self._lock:
            if not self._made:
                self._value, self._made = self._make(), True
        return self._value


@dataclass(frozen=True)
class Task:
    """A model of a table on a split.

    split : gives the `Split`, when the job runs
    data : what the split is made from, for the name of the job
    pilot : passes of the short fits that choose the Adagrad constant; None: fits to the end
    passes : most passes of a fit, for a quick look; None: the model's own
    most_rows : test rows that are predicted, from the first on; None for all
    more : function of (fitted model, split) that gives further figures and arrays to keep
    """

    study: str
    recipe: Recipe
    k: int | None
    seed: int
    split: Later
    data: dict[str, Any]
    pilot: int | None = None
    passes: int | None = None
    most_rows: int | None = None
    n_jobs: int = 1
    more: Callable[[Any, Split], Found] | None = None

    @property
    def label(self) -> str:
        """What a person calls it."""
        size = "" if self.k is None else f", K = {self.k}"
        return f"{self.recipe.name}{size}, split {self.seed}"

    def make(self, step: float | None = None) -> Any:
        """The unfitted model."""
        model = self.recipe.make(self.k, self.seed, step)
        options = model.get_params(deep=False)
        if "n_jobs" in options:
            model.set_params(n_jobs=self.n_jobs)
        if self.passes is not None and "max_iter" in options:
            model.set_params(max_iter=self.passes)
        return model

    def job(self) -> Job:
        """The job; its name on disk changes with every setting that the result depends on."""
        settings = {
            "model": described(self.make(), whole=True),
            "steps": list(self.recipe.steps),
            "pilot": self.pilot,
            "most_rows": self.most_rows,
            "k": self.k,
            "seed": self.seed,
            "data": self.data,
        }
        return Job(self.study, self.label, settings, self.run)

    def run(self) -> Found:
        """Choose the constant, fit, and predict the test rows."""
        split: Split = self.split.value
        start = time.perf_counter()
        chosen, curve, model = self._chosen(split)
        if model is None:
            model = self.make(chosen).fit(split.train, validation=split.validation)
        fitted = time.perf_counter()
        found = predicted(model, split.test, self.most_rows)
        figures = {
            **scores(found),
            **progress_of(model),
            "step": chosen,
            "curve": curve,
            "fit_seconds": fitted - start,
            "score_seconds": time.perf_counter() - fitted,
            "settings": described(model),
        }
        further, arrays = ({}, {}) if self.more is None else self.more(model, split)
        return {**figures, **further}, {**kept(found), **arrays}

    def _chosen(self, split: Split) -> tuple[float | None, list[list[float]], Any]:
        """The best constant, (constant, validation score) of all, and its model if it is whole."""
        best, curve, model = None, [], None
        for step in self.recipe.steps:
            tried = self.make(step)
            if self.pilot is not None:
                tried.set_params(max_iter=self.pilot)
            score = _validated(tried, split)
            curve.append([step, score])
            if best is None or score > best[1]:
                best, model = (step, score), tried
        return (None if best is None else best[0]), curve, (model if self.pilot is None else None)


def _validated(model: Any, split: Split) -> float:
    """Best validation score of a fit, minus infinity if it diverged."""
    from efemb.errors import DivergenceError

    try:
        model.fit(split.train, validation=split.validation)
    except DivergenceError:
        return -float("inf")
    return float(max(validations(model)[1]))


def validations(model: Any) -> tuple[list[int], list[float]]:
    """Passes at which a fit was validated, and the scores."""
    history = [one for one in getattr(model, "history_", []) if one.get("validation") is not None]
    return [int(one["iteration"]) for one in history], [float(one["validation"]) for one in history]


def progress_of(model: Any) -> dict[str, Any]:
    """Passes of a fit, and whether its validation score was still rising when it ended."""
    passes, found = validations(model)
    return {
        "passes": getattr(model, "n_iter_", None),
        "best_pass": getattr(model, "best_iter_", None),
        "rising": not bool(getattr(model, "converged_", True)),
        "validation": max(found) if found else None,
        "history": [passes, found],
    }


def predicted(model: Any, test: Dataset, most_rows: int | None) -> Predictions:
    """Every entry of the first test rows given the rest of its row."""
    from efemb.evaluation import leave_one_out

    return leave_one_out(model, test if most_rows is None else test.take_rows(slice(0, most_rows)))


def scores(found: Predictions) -> dict[str, Any]:
    """Scores as JSON."""
    unit, entry = found.normalized_log_likelihood(), found.normalized_log_likelihood("entry")
    figures = {
        "score": unit.value,
        "standard_error": unit.standard_error,
        "by_entry": entry.value,
        "by_entry_error": entry.standard_error,
        "units": unit.n,
        "entries": len(found),
        "skipped": found.n_skipped,
        "recall@10": found.recall(10).value,
    }
    if found.log_density is not None:
        figures["log_likelihood"] = found.log_likelihood().value
    return figures


def kept(found: Predictions) -> dict[str, Any]:
    """What paired differences need."""
    return {
        "row": found.row.astype(np.int32),
        "entity": found.entity.astype(np.int32),
        "x": found.x.astype(np.float32),
        "log_share": found.known("log_share").astype(np.float32),
    }


def predictions_of(outcome: Outcome, most_rows: int | None = None) -> Predictions:
    """The predictions of a finished job, of the first rows only if asked."""
    arrays = outcome.arrays
    mine = slice(None) if most_rows is None else arrays["row"] < most_rows
    columns = {name: arrays[name][mine] for name in ("row", "entity", "x", "log_share")}
    return Predictions(**{**columns, "log_share": columns["log_share"].astype(np.float64)})


def described(model: Any, *, whole: bool = False) -> dict[str, str]:
    """The settings of a model as text: all that matter, or those that are not its defaults."""
    found = {"class": type(model).__name__}
    usual = type(model)().get_params(deep=False)
    for name, value in model.get_params(deep=False).items():
        changed = repr(value) != repr(usual[name])
        if name not in ("n_jobs", "callbacks", "verbose") and (whole or changed):
            found[name] = repr(value)
    return found


# -- tables of queries, made where the model is and shown where the report is ---------------------


def as_arrays(name: str, table: Table) -> dict[str, Any]:
    """A table as arrays of a result file; text without pickle."""
    found = {}
    for column in table.columns:
        values = table[column]
        found[f"{name}/{column}"] = values.astype(str) if values.dtype.kind == "O" else values
    return found


def as_table(name: str, arrays: dict[str, Any]) -> Table:
    """The table that `as_arrays` took apart."""
    start = f"{name}/"
    return Table({key[len(start) :]: arrays[key] for key in arrays if key.startswith(start)})
