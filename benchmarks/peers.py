"""Peers: fits of the rivals and of ours on the same rows, judged by one scorer in the same run.

Every fit has a process of its own, which reads the rows from a file, fits a small part first (to
load or compile what is needed), then fits with the clock running. Scores are leave-one-out inside
test rows: normalised log-likelihood per unit where a model gives means, and recall@10, the share
of items that are among the first ten of those not in the rest of their row.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, load_npz, save_npz

from benchmarks.data import Counts, baskets, movie_split, movies
from benchmarks.harness import (
    Report,
    Settings,
    Spread,
    Watch,
    in_new_process,
    interleaved,
    peak_memory,
    stopwatch,
)
from benchmarks.rivals import OURS, RIVALS, Rival
from benchmarks.rivals.numpy_baskets import NumpyBaskets, NumpyMovies

PARTS = ("train", "validation", "test")
SCORED_ROWS = 1500
WARM_ROWS = 200
# What hpfrec may cost of its own time before ap-emb has its score; the aim of the project.
PART_OF_HPFREC = 0.2


def run(settings: Settings) -> Report:
    """Movies, then baskets."""
    report = Report("peers", settings)
    small = settings.quick
    contest(report, "movies", movie_split(movies(settings), 0), 5 if small else 20)
    contest(report, "baskets", baskets(settings), 10 if small else 100)
    return report


def contest(report: Report, name: str, counts: Counts, k: int) -> dict[str, list[dict[str, Any]]]:
    """All fits on one set of rows; those on movies, a second each, are repeated."""
    settings = report.settings
    entries = _held_out_entries(counts.train, counts.validation)
    chosen = [_for_data(one, entries) for one in (*OURS, *RIVALS)]
    chosen = [one for one in chosen if not settings.only or _asked(one, settings.only)]
    with tempfile.TemporaryDirectory() as folder:
        for part in PARTS:
            save_npz(Path(folder) / f"{part}.npz", getattr(counts, part))
        jobs = {one.name: partial(_one, one.name, folder, k) for one in chosen if one.available()}
        found = interleaved(jobs, settings.repeats if entries else 1)
    for one in chosen:
        label = f"{name}, K={k}: {one.name}"
        if not one.available():
            report.add(label, one.missing())
            continue
        _told(report, label, found[one.name])
    _additive_against_hpfrec(report, f"{name}, K={k}", found)
    return found


def _one(name: str, folder: str, k: int) -> dict[str, Any]:
    found = in_new_process(one_fit, name=name, folder=folder, k=k, seed=0)
    print(f"   {name}: {found['cpu']:.1f} CPU-s, {found['score']}", file=sys.stderr, flush=True)
    return found


def _held_out_entries(train: csr_array, validation: csr_array) -> bool:
    """Whether validation is entries of the training rows (as of movies), not rows of its own."""
    return bool(validation.shape[0] == train.shape[0])


def _for_data(one: type[Rival], entries: bool) -> type[Rival]:
    return NumpyMovies if entries and one is NumpyBaskets else one


def _asked(one: type[Rival], words: tuple[str, ...]) -> bool:
    return any(word.lower() in one.name.lower() for word in words)


def _told(report: Report, label: str, runs: list[dict[str, Any]]) -> None:
    last = runs[-1]
    notes = []
    if last["score"] is not None:
        notes.append(f"score {last['score']:.4f} (error {last['error']:.4f})")
    notes.append(f"recall@10 {last['recall']:.4f}")
    notes.append(f"{last['wall']:.1f} s wall")
    if last["fit_peak_bytes"] is not None:
        notes.append(f"peak {last['fit_peak_bytes'] / 1e9:.2f} GB")
    if last["best"] is not None:
        notes.append(f"{last['best']:.2f} to its best score")
    spread = Spread.of([one["cpu"] for one in runs])
    report.add(f"{label}: CPU-s of the fit", spread, beside=", ".join(notes))


def _additive_against_hpfrec(report: Report, label: str, found: dict[str, Any]) -> None:
    """How soon ap-emb has the validation score with which hpfrec ends."""
    theirs = next((runs[0] for name, runs in found.items() if name.startswith("hpfrec")), None)
    ours = found.get("efemb AdditivePoissonEmbedding")
    if theirs is None or ours is None or theirs["validation"] is None:
        return
    reached = next((cpu for score, cpu in ours[0]["marks"] if score >= theirs["validation"]), None)
    what = f"{label}: CPU-s of ap-emb to hpfrec's validation score / hpfrec's"
    note = f"validation {theirs['validation']:.4f} after {theirs['cpu']:.1f} CPU-s, all iterations"
    value = np.inf if reached is None else reached / theirs["cpu"]
    report.add(what, value, beside=note, at_most=PART_OF_HPFREC)


# -- in a process of its own -----------------------------------------------------------------------


def one_fit(name: str, folder: str, k: int, seed: int) -> dict[str, Any]:
    """Fit one model by its name and judge it."""
    everyone: tuple[type[Rival], ...] = (*OURS, *RIVALS, NumpyMovies)
    known = {one.name: one for one in everyone}
    train, validation, test = (csr_array(load_npz(Path(folder) / f"{p}.npz")) for p in PARTS)
    entries = _held_out_entries(train, validation)
    few = validation[:WARM_ROWS] if entries else validation[:20]
    known[name]().fit(train[:WARM_ROWS], 2, seed, few)
    model = known[name]()
    with stopwatch() as timing:
        model.fit(train, k, seed, validation)
    peak = peak_memory()
    watch: Watch | None = getattr(model, "watch", None)
    marks = [] if watch is None else [(mark.score, mark.cpu) for mark in watch.marks]
    best = None if watch is None or not watch.marks else watch.best().cpu
    answer: dict[str, Any] = {"cpu": timing.cpu, "wall": timing.wall, "fit_peak_bytes": peak}
    answer |= {"marks": marks, "best": best, **judged(model, test[:SCORED_ROWS])}
    again = judged(model, validation)["score"] if not entries else None
    return {**answer, "validation": again}


def judged(model: Rival, test: csr_array) -> dict[str, Any]:
    """Score and recall@10 of a model, whoever made it."""
    from efemb.evaluation import leave_one_out

    found = leave_one_out(model, test)
    answer: dict[str, Any] = {"score": None, "recall": found.recall(10).value}
    if model.gives_shares:
        shares = found.normalized_log_likelihood()
        answer |= {"score": shares.value, "error": shares.row_error}
    return answer
