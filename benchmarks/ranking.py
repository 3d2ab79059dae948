"""Ranking: every model asked for the same held-out entries, under settings chosen on validation.

Contestants run in processes of their own, one after the other: each tries its settings, keeps the
one with the best MRR@100 on validation entries and is judged on test entries. Entities in the rest
of the row are excluded from the ranking. Errors are paired and clustered by row.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contestants import CONTESTANTS, Contestant, Setting
from benchmarks.data import Counts, baskets, instacart, movie_rows, movies
from benchmarks.harness import Report, Settings, in_new_process, peak_memory, stopwatch
from benchmarks.questions import Questions, further_sets, question_sets

TEST_ROWS = 1500
WARM_ROWS = 200
CALIBRATION_ENTRIES = 2000
CONTEXT_SIZES = (1, 3, 10)
CHOSEN_BY = "mrr@100"
RECALL, MRR, SHARES, CALIBRATED = "recall@10", "MRR@100", "log-likelihood", "calibrated"
# How each figure is averaged: the array of a file of answers, the metric, and over what.
FIGURES = {
    RECALL: ("share", "recall@10", "entry"),
    MRR: ("share", "mrr@100", "entry"),
    SHARES: ("share", "normalized_log_likelihood", "unit"),
    CALIBRATED: ("calibrated", "normalized_log_likelihood", "unit"),
}


@dataclass(frozen=True)
class Contest:
    """One set of data.

    cap, validation_cap : most entries per row of test and validation
    allowed : how many settings each contestant may try
    follows : an earlier contest whose chosen settings are used instead
    """

    name: str
    splits: tuple[int, ...]
    cap: int
    validation_cap: int | None
    allowed: int
    follows: str = ""


def contests(settings: Settings) -> tuple[Contest, ...]:
    """Movies, trips and orders."""
    allowed, splits = (1, settings.seeds[:1]) if settings.quick else (6, settings.seeds)
    return (
        Contest("MovieLens-100K", splits, 20, None, allowed),
        Contest("Complete Journey", (0,), 4, 4, min(allowed, 3)),
        Contest("Instacart", (0,), 4, 4, 0, follows="Complete Journey"),
    )


def run(settings: Settings) -> Report:
    """All contestants on all data."""
    report, chosen = Report("ranking", settings), dict[str, dict[str, Setting]]()
    with tempfile.TemporaryDirectory() as temporary:
        for contest in contests(settings):
            folder = (settings.work or Path(temporary)) / contest.name.replace(" ", "-")
            folder.mkdir(parents=True, exist_ok=True)
            _hold(report, contest, folder, chosen)
    return report


def _hold(
    report: Report, contest: Contest, folder: Path, chosen: dict[str, dict[str, Setting]]
) -> None:
    """Run all contestants on all splits of one set of data, and add their figures.

    chosen : settings by contest and contestant, which this contest adds to
    """
    settings, outcomes = report.settings, dict[str, list[dict[str, Any]]]()
    for split in contest.splits:
        counts, mine = counts_of(contest.name, split, settings), dict[str, Setting]()
        for contestant in _entrants(settings, contest, counts):
            if contestant.rival is not None and not contestant.rival.available():
                if split == contest.splits[0]:
                    report.add(f"{contest.name}: {contestant.name}", contestant.rival.missing())
                continue
            try_all = contestant.settings[: contest.allowed]
            tried = [chosen[contest.follows][contestant.name]] if contest.follows else try_all
            parts = {part: mine[part] for part in contestant.parts}
            options = {"candidates": list(tried), "chosen": parts, "split": split}
            outcome = _outcome(contestant, contest, settings, folder, **options)
            mine[contestant.name] = outcome["setting"]
            outcomes.setdefault(contestant.name, []).append(outcome)
        chosen[contest.name] = mine
    _add_costs(report, contest, outcomes)
    predictions = {name: _read_answers(folder, name, contest.splits) for name in outcomes}
    for questions in ("test", "all", *(f"context {size}" for size in CONTEXT_SIZES)):
        _add_scores(report, f"{contest.name}, {questions}", predictions, questions)


def _entrants(settings: Settings, contest: Contest, counts: Counts) -> Iterator[Contestant]:
    for contestant in CONTESTANTS:
        asked = not settings.only or any(word in contestant.name for word in settings.only)
        barred = contestant.for_users and counts.users is None
        if asked and not barred and contest.name in (contestant.only or (contest.name,)):
            yield contestant


def _outcome(
    contestant: Contestant, contest: Contest, settings: Settings, folder: Path, **options: Any
) -> dict[str, Any]:
    """What `tune` returns, from a file where an earlier run has left one."""
    split = options["split"]
    stem = folder / f"{contestant.name}-{split}"
    path = stem.with_suffix(".json")
    if not path.is_file():
        outcome = in_new_process(
            tune,
            name=contestant.name,
            data=contest.name,
            caps=[contest.cap, contest.validation_cap],
            source=[settings.quick, None if settings.data is None else str(settings.data)],
            answers=str(stem.with_suffix(".npz")),
            **options,
        )
        path.write_text(json.dumps(outcome), encoding="utf-8")
    outcome = json.loads(path.read_text(encoding="utf-8"))
    line = f"{outcome['setting']}, {outcome['cpu']:.1f} CPU-s, {outcome['scores']}"
    print(f"   {contest.name} {split}, {contestant.name}: {line}", file=sys.stderr, flush=True)
    return dict(outcome)


# -- figures ---------------------------------------------------------------------------------------


def _read_answers(folder: Path, name: str, splits: tuple[int, ...]) -> dict[str, Any]:
    """Predictions by kind and questions; the rows of all splits, one after the other."""
    from efemb.evaluation import Predictions

    tables: dict[str, list[Any]] = {}
    for split in splits:
        with np.load(folder / f"{name}-{split}.npz") as file:
            for key in file.files:
                tables.setdefault(key, []).append(file[key])
    predictions = {}
    for key, parts in tables.items():
        starts = np.cumsum([0, *(int(part[0].max()) + 1 for part in parts[:-1])])
        row = np.concatenate([part[0] + start for part, start in zip(parts, starts, strict=True)])
        _, entity, x, log_share, rank = np.concatenate(parts, axis=1)
        shape = (row.astype(np.int64), entity.astype(np.int64), x)
        predictions[key] = Predictions(*shape, log_share=log_share, rank=rank)
    return predictions


def _add_costs(report: Report, contest: Contest, outcomes: dict[str, list[dict[str, Any]]]) -> None:
    for name, runs in outcomes.items():
        cpu = float(np.mean([run["cpu"] for run in runs]))
        memory = max(run["peak_bytes_of_fits"] or 0 for run in runs) / 1e9
        settings = "; ".join(dict.fromkeys(_words(run["setting"]) for run in runs))
        tried = f"best of {runs[0]['tried']}: {settings}, peak {memory:.2f} GB"
        report.add(f"{contest.name}: {name}: CPU-s of the fit", cpu, beside=tried)


def _words(setting: Setting) -> str:
    return " ".join(f"{name}={value}" for name, value in setting.items()) or "none"


def _add_scores(
    report: Report, label: str, predictions: dict[str, dict[str, Any]], questions: str
) -> None:
    """A row per model and figure, with the paired difference to the best model."""
    from efemb.evaluation import compare

    for figure, (kind, metric, by) in FIGURES.items():
        answered = {
            name: tables[f"{kind} {questions}"]
            for name, tables in predictions.items()
            if f"{kind} {questions}" in tables and not (figure == SHARES and _only_ranks(name))
        }
        if not answered:
            continue
        for row in compare(answered, metric=metric, by=by, bootstrap=1):
            gap = f"{row['difference']:.4f} (error {row['difference_error']:.4f})"
            beside = f"error {row['row_error']:.4f}, to the best {gap}, n {row['n']:.0f}"
            report.add(f"{label}: {row['model']}: {figure}", float(row["score"]), beside=beside)


def _only_ranks(name: str) -> bool:
    rival = next(one.rival for one in CONTESTANTS if one.name == name)
    return rival is not None and not rival.gives_shares


# -- in a process of its own -----------------------------------------------------------------------


@cache
def counts_of(data: str, split: int, settings: Settings) -> Counts:
    """The counts of a contest."""
    if data == "MovieLens-100K":
        return movie_rows(movies(settings), split)
    return baskets(settings) if data == "Complete Journey" else instacart(settings)


def tune(
    name: str,
    data: str,
    split: int,
    candidates: list[Setting],
    caps: tuple[int, int | None],
    chosen: dict[str, Setting],
    source: tuple[bool, str | None],
    answers: str,
) -> dict[str, Any]:
    """Try settings, keep the best on validation, write its answers to a file."""
    quick, folder = source
    counts = counts_of(data, split, Settings(quick, None if folder is None else Path(folder)))
    known = {contestant.name: contestant for contestant in CONTESTANTS}
    parts = {part: _fit(known[part], setting, counts) for part, setting in chosen.items()}
    contestant = known[name]
    asked = dict(question_sets(counts, TEST_ROWS, *caps))
    if contestant.short:
        asked |= further_sets(counts, TEST_ROWS, caps[0], CONTEXT_SIZES)
    best: dict[str, Any] = {}
    scores = []
    for setting in candidates:
        model, cpu = _fit(contestant, setting, counts, parts)
        scores.append(asked["validation"].judge(model).score(CHOSEN_BY).value)
        if scores[-1] == max(scores):
            best = {"model": model, "setting": setting, "cpu": cpu}
    peak = peak_memory()
    np.savez(answers, **_answers(best.pop("model"), counts, asked))
    return {**best, "scores": scores, "tried": len(scores), "peak_bytes_of_fits": peak}


def _fit(
    contestant: Contestant,
    setting: Setting,
    counts: Counts,
    parts: dict[str, tuple[Any, float]] | None = None,
) -> tuple[Any, float]:
    """The fitted model and its CPU-seconds, those of its parts included."""
    from efemb import Dataset

    users = (None, None, None) if counts.users is None else counts.users
    train, validation = (
        Dataset(X, users=owners)
        for X, owners in ((counts.train, users[0]), (counts.validation, users[1]))
    )
    fits = {"parts": {part: model for part, (model, _) in parts.items()}} if parts else {}
    if contestant.compiled:
        contestant.make(**setting).fit(train[:WARM_ROWS], validation=validation[:WARM_ROWS])
    model = contestant.make(**fits, **setting)
    with stopwatch() as timing:
        model.fit(train, validation=validation)
    return model, timing.cpu + sum(cpu for _, cpu in (parts or {}).values())


def _answers(model: Any, counts: Counts, asked: dict[str, Questions]) -> dict[str, Any]:
    """(5, n) row, entity, units, log share and rank of all entries asked for."""
    from efemb.baselines import Popularity
    from efemb.evaluation.calibration import calibrate

    validation = asked.pop("validation").sample(CALIBRATION_ENTRIES)
    popularity = Popularity("poisson").fit(counts.train).mean_
    calibrated = calibrate(model, validation.data, validation.entries, popularity)
    tables = {}
    for questions, entries in asked.items():
        # The weights hold for contexts like those of validation, not for shorter ones.
        whole = questions == "test"
        for kind, judged in (("share", model), ("calibrated", calibrated))[: 1 + whole]:
            answer = entries.judge(judged)
            arrays = (answer.row, answer.entity, answer.x, answer.log_share, answer.rank)
            tables[f"{kind} {questions}"] = np.stack(arrays)
    return tables
