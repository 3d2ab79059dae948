"""Fits of count models: a split, a fit, and predictions of each test entry from its row."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from efemb._typing import Bools
from efemb.data.dataset import Dataset
from efemb.errors import DivergenceError
from efemb.evaluation import leave_one_out
from efemb.evaluation.predictions import Predictions
from efemb.reproduce.counts_models import Recipe
from efemb.reproduce.jobs import Found, Job, Later, Outcome

# -- splits ---------------------------------------------------------------------------------------


TEST_USERS = 0.2
VALIDATION_ENTRIES = 0.05
TEST_TRIPS, VALIDATION_TRIPS = 0.05, 0.01


@dataclass(frozen=True)
class Split:
    """Training rows, validation data (entries of the same rows, or other rows) and test rows.

    requested : the entries of the test rows that are predicted; None: all
    """

    train: Dataset
    validation: Dataset
    test: Dataset
    requested: Dataset | None = None


def split_movies(data: Dataset, seed: int) -> Split:
    """A fifth of the users for testing, 5% of the other users' ratings for validation.

    The paper holds out "20% of the ratings"; holding out users is the reading that matches its
    "we recover the factor loadings using the other test entries".
    """
    rng = np.random.default_rng(seed)
    n_users = data.n_rows
    test = rng.permutation(n_users)[: int(n_users * TEST_USERS)]
    fit_users = data.take_rows(np.setdiff1d(np.arange(n_users), test))
    stored = fit_users.values.copy()
    stored.sort_indices()  # entries are drawn by index, row by row
    held = np.zeros(stored.nnz, dtype=bool)
    held[rng.permutation(stored.nnz)[: round(VALIDATION_ENTRIES * stored.nnz)]] = True
    train, validation = (
        fit_users._replace(_keep_entries(stored, chosen)) for chosen in (~held, held)
    )
    return Split(train, validation, data.take_rows(test))


def split_ratings(data: Dataset, seed: int) -> Split:
    """The paper to the letter: "20% of the ratings", validation "from the test".

    Held-out ratings are zeros in training. A test rating is predicted from all other ratings of
    its user, those of the test included.
    """
    stored = data.values.copy()
    stored.sort_indices()
    order = np.random.default_rng(seed).permutation(stored.nnz)
    n_test = round(TEST_USERS * stored.nnz)
    n_validation = round(VALIDATION_ENTRIES * n_test)
    parts = (order[n_test:], order[:n_validation], order[n_validation:n_test])
    chosen = np.zeros((3, stored.nnz), dtype=bool)
    for mask, indices in zip(chosen, parts, strict=True):
        mask[indices] = True
    train, validation, requested = (data._replace(_keep_entries(stored, mask)) for mask in chosen)
    return Split(train, validation, data, requested)


def _keep_entries(stored: Any, chosen: Bools) -> Any:
    """The stored entries that were chosen; the others become zeros."""
    thinned = stored.copy()
    thinned.data = np.where(chosen, stored.data, 0)
    thinned.eliminate_zeros()
    return thinned


def split_trips(data: Dataset, seed: int = 0) -> Split:
    """5% of the trips for testing, 1% for validation, the rest for training."""
    order = np.random.default_rng(seed).permutation(data.n_rows)
    first = int(TEST_TRIPS * data.n_rows)
    second = int((TEST_TRIPS + VALIDATION_TRIPS) * data.n_rows)
    subsets = (order[second:], order[first:second], order[:first])
    return Split(*(data.take_rows(trips) for trips in subsets))


def shrink(data: Dataset, n_rows: int, n_entities: int) -> Dataset:
    """The first rows and the most frequent entities, without single-item rows, for a quick run."""
    sold = np.asarray((data.values[:n_rows] > 0).sum(axis=0)).ravel()
    often = np.sort(np.argsort(-sold, kind="stable")[:n_entities])
    shrunk = data.take_rows(slice(0, n_rows)).take_entities(often)
    return shrunk.take_rows(np.flatnonzero(np.diff(shrunk.values.tocsr().indptr) >= 2))


# -- fits -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """A model of a table on a split.

    split : returns the `Split` when the job runs
    data : what the split is made from, part of the name of the job
    pilot : passes of the short fits that choose the Adagrad constant; None: full fits
    passes : maximum number of passes of a quick run; None: that of the model
    most_rows : number of test rows to predict; None: all
    analysis : function of (fitted model, split) that returns additional figures and arrays
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
    analysis: Callable[[Any, Split], Found] | None = None

    @property
    def label(self) -> str:
        """The displayed name."""
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
        """The job; its file name changes with every setting that the result depends on."""
        settings = {
            "model": describe_settings(self.make(), full=True),
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
        chosen, curve, model = self._choose_step(split)
        if model is None:
            model = self.make(chosen).fit(split.train, validation=split.validation)
        fitted = time.perf_counter()
        predictions = predict_test_entries(model, split, self.most_rows)
        figures = {
            **summarize_scores(predictions),
            **summarize_training(model),
            "step": chosen,
            "curve": curve,
            "fit_seconds": fitted - start,
            "score_seconds": time.perf_counter() - fitted,
            "settings": describe_settings(model),
        }
        further, arrays = ({}, {}) if self.analysis is None else self.analysis(model, split)
        return {**figures, **further}, {**pack_predictions(predictions), **arrays}

    def _choose_step(self, split: Split) -> tuple[float | None, list[list[float]], Any]:
        """The best constant, all (constant, validation score), and its model if fully fitted."""
        best, curve, model = None, [], None
        for step in self.recipe.steps:
            tried = self.make(step)
            if self.pilot is not None:
                tried.set_params(max_iter=self.pilot)
            score = _validate(tried, split)
            curve.append([step, score])
            if best is None or score > best[1]:
                best, model = (step, score), tried
        return (None if best is None else best[0]), curve, (model if self.pilot is None else None)


def _validate(model: Any, split: Split) -> float:
    """Best validation score of a fit; minus infinity if it diverged."""
    try:
        model.fit(split.train, validation=split.validation)
    except DivergenceError:
        return -float("inf")
    return float(max(list_validations(model)[1]))


def list_validations(model: Any) -> tuple[list[int], list[float]]:
    """Passes at which a fit was validated, and the scores."""
    history = [
        entry for entry in getattr(model, "history_", []) if entry.get("validation") is not None
    ]
    return [int(entry["iteration"]) for entry in history], [
        float(entry["validation"]) for entry in history
    ]


def summarize_training(model: Any) -> dict[str, Any]:
    """Passes of a fit, and whether its validation score was still improving when it ended."""
    passes, scores = list_validations(model)
    return {
        "passes": getattr(model, "n_iter_", None),
        "best_pass": getattr(model, "best_iter_", None),
        "rising": not bool(getattr(model, "converged_", True)),
        "validation": max(scores) if scores else None,
        "history": [passes, scores],
    }


def predict_test_entries(model: Any, split: Split, most_rows: int | None) -> Predictions:
    """Predict each entry of the first test rows from the rest of its row."""
    test, requested = split.test, split.requested
    test = test if most_rows is None else test.take_rows(slice(0, most_rows))
    predictions = leave_one_out(model, test)
    if requested is None:
        return predictions
    is_requested = np.asarray(requested.values[predictions.row, predictions.entity]).ravel() > 0
    names = ("row", "entity", "x", "log_share", "log_density", "rank")
    columns: dict[str, Any] = {name: getattr(predictions, name) for name in names}
    chosen: dict[str, Any] = {n: a if a is None else a[is_requested] for n, a in columns.items()}
    return Predictions(**chosen)


def summarize_scores(predictions: Predictions) -> dict[str, Any]:
    """Scores as JSON."""
    unit, entry = (
        predictions.normalized_log_likelihood(),
        predictions.normalized_log_likelihood("entry"),
    )
    figures = {
        "score": unit.value,
        "standard_error": unit.standard_error,
        "by_entry": entry.value,
        "by_entry_error": entry.standard_error,
        "units": unit.n,
        "entries": len(predictions),
        "skipped": predictions.n_skipped,
        "recall@10": predictions.recall(10).value,
    }
    if predictions.log_density is not None:
        figures["log_likelihood"] = predictions.log_likelihood().value
    return figures


def pack_predictions(predictions: Predictions) -> dict[str, Any]:
    """The arrays that paired differences need."""
    return {
        "row": predictions.row.astype(np.int32),
        "entity": predictions.entity.astype(np.int32),
        "x": predictions.x.astype(np.float32),
        "log_share": predictions.known("log_share").astype(np.float32),
    }


def read_predictions(outcome: Outcome, most_rows: int | None = None) -> Predictions:
    """The predictions of a finished job, or those of its first rows."""
    arrays = outcome.arrays
    chosen = slice(None) if most_rows is None else arrays["row"] < most_rows
    columns = {name: arrays[name][chosen] for name in ("row", "entity", "x", "log_share")}
    return Predictions(**{**columns, "log_share": columns["log_share"].astype(np.float64)})


def describe_settings(model: Any, *, full: bool = False) -> dict[str, str]:
    """The settings of a model as text: all of them, or those that differ from the defaults."""
    settings = {"class": type(model).__name__}
    usual = type(model)().get_params(deep=False)
    for name, value in model.get_params(deep=False).items():
        changed = repr(value) != repr(usual[name])
        if name not in ("n_jobs", "callbacks", "verbose") and (full or changed):
            settings[name] = repr(value)
    return settings
