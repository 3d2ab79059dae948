"""Ranking: every model asked for the same held-out entries, under settings chosen on validation.

Contestants run in processes of their own, one after the other: each tries its settings, keeps the
one with the best MRR@100 on validation entries and is judged on test entries; where rows are few,
it is first fitted again with the validation rows. Entities in the rest of the row are excluded from
the ranking. Errors are paired and clustered by row.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from benchmarks.contestants import CONTESTANTS, Contestant, Setting
from benchmarks.data import (
    Counts,
    baskets,
    groceries,
    instacart,
    invoices,
    movie_rows,
    movies,
)
from benchmarks.harness import Report, Settings, in_new_process, peak_memory, stopwatch
from benchmarks.questions import Questions, further_sets, question_sets

TEST_ROWS = 1500
WARM_ROWS = 200
CALIBRATION_ENTRIES = 2000
CONTEXT_SIZES = (1, 3, 10)
CHOSEN_BY = "mrr@100"
KNOWN = {contestant.name: contestant for contestant in CONTESTANTS}
RIVALS = ("popularity", "item-kNN (cosine)", "EASE")  # what recommended models must not be below
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
    refit : whether the chosen setting is fitted again, to training and validation rows
    """

    name: str
    splits: tuple[int, ...]
    cap: int
    validation_cap: int | None
    allowed: int
    follows: str = ""
    refit: bool = False


def contests(settings: Settings) -> tuple[Contest, ...]:
    """Movies, trips and orders; then data that no default was chosen on."""
    allowed, splits = (1, settings.seeds[:1]) if settings.quick else (6, settings.seeds)
    return (
        Contest("MovieLens-100K", splits, 20, None, allowed, refit=True),
        Contest("Complete Journey", (0,), 4, 4, min(allowed, 3)),
        Contest("Instacart", (0,), 4, 4, 0, follows="Complete Journey"),
        Contest("Groceries", (0,), 4, 4, allowed),
        Contest("Online Retail", (0,), 4, 4, min(allowed, 3)),
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
        label = f"{contest.name}, {questions}"
        for figure in FIGURES:
            answered = _answered(predictions, questions, figure)
            if answered:
                _add_scores(report, label, answered, figure)
                _add_duels(report, label, answered, figure)


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
            refit=contest.refit,
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


def _answered(
    predictions: dict[str, dict[str, Any]], questions: str, figure: str
) -> dict[str, Any]:
    """Predictions of the models that were asked these questions and have such a figure.

    Recommended models rank whole contexts by the probabilities that they recommend by.
    """
    key, own = f"{FIGURES[figure][0]} {questions}", f"calibrated {questions}"
    return {
        name: tables[own if KNOWN[name].recommended and figure != SHARES and own in tables else key]
        for name, tables in predictions.items()
        if key in tables and not (figure == SHARES and _only_ranks(name))
    }


def _add_scores(report: Report, label: str, answered: dict[str, Any], figure: str) -> None:
    """A row per model, with the paired difference to the best model."""
    for row in _compare(answered, figure):
        gap = f"{row['difference']:.4f} (error {row['difference_error']:.4f})"
        beside = f"error {row['row_error']:.4f}, to the best {gap}, n {row['n']:.0f}"
        report.add(f"{label}: {row['model']}: {figure}", float(row["score"]), beside=beside)


def _add_duels(report: Report, label: str, answered: dict[str, Any], figure: str) -> None:
    """Paired differences of the recommended models to some rivals and to the best of all.

    A model that is not told whose row it is meets only its like.
    """
    for ours in CONTESTANTS:
        if not ours.recommended or ours.name not in answered:
            continue
        rivals = {
            one.name: answered[one.name]
            for one in CONTESTANTS
            if one.name in answered and not one.recommended and one.for_users <= ours.for_users
        }
        rows = _compare({ours.name: answered[ours.name], **rivals}, figure, reference=ours.name)
        best = next((row["model"] for row in rows if row["model"] != ours.name), "")
        for row in rows:
            rival, gap = row["model"], -float(row["difference"])
            if rival in (*RIVALS, best) and rival != ours.name:
                beside = f"error {row['difference_error']:.4f}{', the best' * (rival == best)}"
                report.add(f"{label}: {ours.name} - {rival}: {figure}", gap, beside=beside)


def _compare(answered: dict[str, Any], figure: str, reference: str | None = None) -> Any:
    from efemb.evaluation import compare

    _, metric, by = FIGURES[figure]
    return list(compare(answered, metric=metric, by=by, reference=reference, bootstrap=1))


def _only_ranks(name: str) -> bool:
    rival = KNOWN[name].rival
    return rival is not None and not rival.gives_shares


# -- in a process of its own -----------------------------------------------------------------------


@cache
def counts_of(data: str, split: int, settings: Settings) -> Counts:
    """The counts of a contest."""
    if data == "MovieLens-100K":
        return movie_rows(movies(settings), split)
    readers = {
        "Complete Journey": baskets,
        "Instacart": instacart,
        "Groceries": groceries,
        "Online Retail": invoices,
    }
    return readers[data](settings)


def tune(
    name: str,
    data: str,
    split: int,
    candidates: list[Setting],
    caps: tuple[int, int | None],
    chosen: dict[str, Setting],
    source: tuple[bool, str | None],
    answers: str,
    refit: bool = False,
) -> dict[str, Any]:
    """Try settings, keep the best on validation, write its answers to a file."""
    quick, folder = source
    counts = counts_of(data, split, Settings(quick, None if folder is None else Path(folder)))
    parts = {part: _fit(KNOWN[part], setting, counts) for part, setting in chosen.items()}
    contestant = KNOWN[name]
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
    model = best.pop("model")
    make_calibrated = _calibrate(contestant, model, counts, asked.pop("validation"))
    if refit:
        model, best["cpu"] = _refit(contestant, best["setting"], chosen, counts)
    np.savez(answers, **_answers(model, make_calibrated(model), asked))
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


def _refit(
    contestant: Contestant, setting: Setting, chosen: dict[str, Setting], counts: Counts
) -> tuple[Any, float]:
    """The same for all rows but those of the test; each model holds out what it needs."""
    from efemb import Dataset

    unfitted = {part: KNOWN[part].make(**options) for part, options in chosen.items()}
    model = contestant.make(**({"parts": unfitted} if unfitted else {}), **setting)
    with stopwatch() as timing:
        model.fit(Dataset(csr_array(vstack([counts.train, counts.validation]))))
    return model, timing.cpu


class NextItems:
    """A model that gives calibrated probabilities of the items outside a row by itself."""

    def __init__(self, model: Any) -> None:
        self.log_means = model.absent_log_means
        self.family_, self.vocabulary_ = model.family_, model.vocabulary_


def _calibrate(
    contestant: Contestant, model: Any, counts: Counts, validation: Questions
) -> Callable[[Any], Any]:
    """What makes a calibrated model of a fit of the contestant, by validation entries."""
    from efemb.baselines import Popularity
    from efemb.evaluation.calibration import Calibrated, calibrate

    if contestant.recommended:
        return NextItems
    drawn = validation.sample(CALIBRATION_ENTRIES)
    popularity = Popularity("poisson").fit(counts.train).mean_
    fit = calibrate(model, drawn.data, drawn.entries, popularity)
    options = {"of_shares": fit.of_shares, "largest": fit.largest}
    return lambda final: Calibrated(final, popularity, fit.weights, **options)


def _answers(model: Any, calibrated: Any, asked: dict[str, Questions]) -> dict[str, Any]:
    """(5, n) row, entity, units, log share and rank of all entries asked for."""
    tables = {}
    for questions, entries in asked.items():
        # The weights hold for contexts like those of validation, not for shorter ones.
        whole = questions == "test"
        for kind, judged in (("share", model), ("calibrated", calibrated))[: 1 + whole]:
            answer = entries.judge(judged)
            arrays = (answer.row, answer.entity, answer.x, answer.log_share, answer.rank)
            tables[f"{kind} {questions}"] = np.stack(arrays)
    return tables
