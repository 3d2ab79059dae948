"""Scores of count models: one row per model and K, with paired differences and claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from efemb.evaluation.comparison import check_same_entries, differences
from efemb.evaluation.metrics import metric_of
from efemb.reproduce.claims import NAN, Claim, Gap, format_gap, join_rows, judge_gaps
from efemb.reproduce.counts_fits import Task, read_predictions
from efemb.reproduce.jobs import Outcome
from efemb.reproduce.published import Printed
from efemb.table import Table

REFERENCE = "p-emb"
SPLIT_FIGURES = (
    *("score", "standard_error", "by_entry", "log_likelihood", "recall@10"),
    *("validation", "step", "best_pass", "passes"),
)
Size = int | None


@dataclass(frozen=True)
class Row:
    """A model and K, with the outcomes of its splits."""

    task: Task
    outcomes: tuple[Outcome, ...]

    @property
    def key(self) -> tuple[str, Size]:
        """Name and K."""
        return self.task.recipe.name, self.task.k

    def each(self, name: str) -> list[Any]:
        """A figure for every split."""
        return [outcome.figures.get(name) for outcome in self.outcomes]

    def mean(self, name: str) -> float:
        """Mean of a figure over the splits."""
        values = [value for value in self.each(name) if value is not None]
        return float(np.mean(values)) if values else NAN

    @property
    def score(self) -> float:
        """Mean score over the splits."""
        return self.mean("score")

    @property
    def error(self) -> float:
        """Standard error of one split over units, as printed in the paper."""
        return self.mean("standard_error")


def collect_rows(tasks: Sequence[Task], outcomes: Sequence[Outcome]) -> list[Row]:
    """Outcomes by model and K, in the order of the tasks."""
    pairs_of_model: dict[tuple[str, Size], list[tuple[Task, Outcome]]] = {}
    for task, outcome in zip(tasks, outcomes, strict=True):
        pairs_of_model.setdefault((task.recipe.name, task.k), []).append((task, outcome))
    return [
        Row(pairs[0][0], tuple(outcome for _, outcome in pairs))
        for pairs in pairs_of_model.values()
    ]


def find_row(rows: Iterable[Row], name: str, k: Size) -> Row | None:
    """The row of a model and K, or None."""
    return next((row for row in rows if row.key == (name, k)), None)


def list_sizes(rows: Iterable[Row]) -> list[int]:
    """All K, in the order of the rows."""
    return [k for k in dict.fromkeys(row.key[1] for row in rows) if k is not None]


def find_best(rows: Iterable[Row], which: Callable[[Row], bool]) -> Row | None:
    """The row with the highest score among those that `which` accepts."""
    return max(filter(which, rows), key=lambda row: row.score, default=None)


def compare_rows(row: Row, other: Row) -> Gap:
    """Paired difference of two rows, on the test rows that both have."""
    splits = []
    limits = [side.task.most_rows for side in (row, other) if side.task.most_rows is not None]
    n_rows = min(limits) if limits else None
    for outcome, other_outcome in zip(row.outcomes, other.outcomes, strict=True):
        pair = {
            "model": read_predictions(outcome, n_rows),
            "reference": read_predictions(other_outcome, n_rows),
        }
        check_same_entries(pair)
        metric = metric_of("normalized_log_likelihood")
        splits.append(differences(pair, metric, metric.by, "reference", 1, 0)["model"])
    values = np.array([split.value for split in splits])
    error = np.sqrt(np.sum([split.standard_error**2 for split in splits])) / len(splits)
    return Gap(float(values.mean()), float(error), float(values.min()))


def find_reference(rows: Sequence[Row], k: Size) -> Row | None:
    """What a row is compared with: p-emb with the same K, or else with the smallest K."""
    same_size = find_row(rows, REFERENCE, k)
    return same_size or next((row for row in rows if row.key[0] == REFERENCE), None)


def tabulate_scores(
    rows: Sequence[Row],
    printed: Mapping[tuple[str, int], Printed],
    known: Mapping[tuple[str, Size], float],
) -> Table:
    """The paper's figure, ours, and the paired difference from p-emb with the same K."""
    lines: list[dict[str, Any]] = []
    for row in rows:
        name, k = row.key
        paper = printed.get((name, k)) if k is not None else None
        base = find_reference(rows, k)
        gap = Gap(NAN, NAN, NAN) if base is None or base is row else compare_rows(row, base)
        cells = {
            "model": name,
            "settings": row.task.recipe.group,
            "K": NAN if k is None else float(k),
            "paper": paper.score if paper else NAN,
            "paper_error": paper.error if paper else NAN,
            "score": row.score,
            "standard_error": row.error,
            "difference": gap.value,
            "difference_error": gap.error,
            "independent": known.get(row.key, NAN),
            "rising": "yes" if any(row.each("rising")) else "",
        }
        lines.append(cells)
    return join_rows(lines)


def tabulate_splits(rows: Sequence[Row]) -> Table:
    """Each split: scores, passes, the chosen constant, and times."""
    lines: list[dict[str, Any]] = []
    for row in rows:
        for outcome in row.outcomes:
            cells: dict[str, Any] = {
                "model": row.key[0],
                "K": NAN if row.key[1] is None else float(row.key[1]),
                "split": outcome.job.settings["seed"],
            }
            cells |= {name: _to_float(outcome.figures.get(name)) for name in SPLIT_FIGURES}
            cells["fit_seconds"] = round(outcome.figures["fit_seconds"], 1)
            lines.append(cells | {name: outcome.figures[name] for name in ("entries", "skipped")})
    return join_rows(lines)


def tabulate_curves(rows: Sequence[Row]) -> Table:
    """Validation score of each Adagrad constant that was tried, on the first split."""
    curve_points = [
        (f"{row.key[0]}, K = {row.key[1]}", step, score)
        for row in rows
        for step, score in row.outcomes[0].figures["curve"]
    ]
    names = ("model", "step", "validation")
    return Table(
        {name: [point[column] for point in curve_points] for column, name in enumerate(names)}
    )


def _to_float(value: Any) -> float:
    return NAN if value is None else float(value)


def claim_above(rows: Sequence[Row], name: str, other: str, sentence: str) -> list[Claim]:
    """A claim that one model scores higher than another, for every K that both have."""
    pairs = [(k, find_row(rows, name, k), find_row(rows, other, k)) for k in list_sizes(rows)]
    gaps = {k: compare_rows(a, b) for k, a, b in pairs if a is not None and b is not None}
    if not gaps:
        return []
    text = "; ".join(f"K = {k}: {format_gap(gap)}" for k, gap in gaps.items())
    return [Claim(sentence, judge_gaps(list(gaps.values())), f"{name} minus {other}, {text}.")]
