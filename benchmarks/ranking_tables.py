"""Tables of `ranking` in Markdown: in short for the README, in full for the page of figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.contestants import CONTESTANTS
from benchmarks.ranking import CALIBRATED, CONTEXT_SIZES, FIGURES, MRR, RECALL, SHARES

if TYPE_CHECKING:
    from benchmarks.summary import Figures

MOVIES, TRIPS, ORDERS = "MovieLens-100K", "Complete Journey", "Instacart"
CONTESTS = (TRIPS, MOVIES, ORDERS)
EVERY_CONTEST = (*CONTESTS, "Groceries", "Online Retail")
SIZES = (*(f"context {size}" for size in CONTEXT_SIZES), "test")
SCENARIO = "ranking"
NOTHING = "–"
# Rows that only the page of figures has: within an error of a row that stays, or below it.
ONLY_IN_FULL = ("smoothed rules", "EASE, dropout", "efemb Blend", "efemb Blend, personal")


def in_short(figures: Figures) -> str:
    """One row per model: three figures on each set of data, and the cost on the trips."""
    heads = ["model", *CONTESTS, "CPU-s"]
    lines = []
    for name in _names(figures):
        if ", seed " in name or name in ONLY_IN_FULL:
            continue
        triples = [
            " / ".join(
                _figure(figures, contest, "test", name, figure)
                for figure in (RECALL, MRR, CALIBRATED)
            )
            for contest in CONTESTS
        ]
        triples = [NOTHING if set(cell) <= {*NOTHING, " ", "/"} else cell for cell in triples]
        lines.append([name, *triples, _cost(figures, TRIPS, name)])
    return _table(heads, lines)


def in_full(figures: Figures) -> str:
    """A table per data set with a row per model, and errors of the differences from the best."""
    whole = [f"{figure}, all entries" for figure in (RECALL, MRR, SHARES)]
    heads = ["data, model", *FIGURES, *whole, "CPU-s", "chosen"]
    tables = []
    for contest in EVERY_CONTEST:
        lines = []
        for name in _names(figures):
            label = _cost_label(contest, name)
            if not figures.has(SCENARIO, label):
                continue
            cells = [_figure(figures, contest, "test", name, one, error=True) for one in FIGURES]
            cells += [_figure(figures, contest, "all", name, one) for one in (RECALL, MRR, SHARES)]
            chosen = figures.text(SCENARIO, label).partition(", peak")[0]
            lines.append([f"{contest}, {name}", *cells, _cost(figures, contest, name), chosen])
        if lines:
            tables.append(f"#### {contest}\n\n{_table(heads, lines)}")
    return "\n\n".join(tables)


def short_contexts(figures: Figures) -> str:
    """Recall and likelihood at each size of the context, one row per model and set of data."""
    heads = ["data, model", *map(str, CONTEXT_SIZES), "all"]
    lines = []
    for contest in EVERY_CONTEST:
        for contestant in CONTESTANTS:
            label = f"{contest}, context 1: {contestant.name}: {RECALL}"
            if not contestant.short or not figures.has(SCENARIO, label):
                continue
            pairs = [
                " / ".join(
                    _figure(figures, contest, size, contestant.name, figure)
                    for figure in (RECALL, SHARES)
                )
                for size in SIZES
            ]
            lines.append([f"{contest}, {contestant.name}", *pairs])
    return _table(heads, lines)


def duels(figures: Figures) -> str:
    """Differences of the recommended models from EASE, and from the best other model."""
    to_ease, to_best = [], []
    for contest, name in _recommended(figures):
        for asked, entries in (("test", ""), ("all", ", all entries")):
            label = f"{contest}, {asked}: {name} - "
            row = f"{contest}, {name}{entries}"
            to_ease.append(
                [row, *(_difference(figures, f"{label}EASE: {figure}") for figure in FIGURES)]
            )
            to_best.append([row, *(_best_other(figures, label, figure) for figure in FIGURES)])
    tables = {"Differences from EASE": to_ease, "Differences from the best other model": to_best}
    return "\n\n".join(
        f"#### {title}\n\n" + _table(["data, model", *FIGURES], list(filter(_has_figures, rows)))
        for title, rows in tables.items()
    )


def _has_figures(row: list[str]) -> bool:
    return set(row[1:]) != {NOTHING}


def every_size(figures: Figures) -> str:
    """Likelihood above popularity and recall above item cosine, at each size of the context."""
    heads = ["data, model", *map(str, CONTEXT_SIZES), "all"]
    lines = []
    for contest, name in _recommended(figures):
        pairs = [
            [
                _difference(figures, f"{contest}, {size}: {name} - {rival}: {figure}")
                for rival, figure in (("popularity", SHARES), ("item-kNN (cosine)", RECALL))
            ]
            for size in SIZES
        ]
        if NOTHING not in pairs[0]:
            lines.append([f"{contest}, {name}", *(" / ".join(pair) for pair in pairs)])
    return _table(heads, lines)


def _recommended(figures: Figures) -> list[tuple[str, str]]:
    names = [one.name for one in CONTESTANTS if one.recommended]
    return [
        (contest, name)
        for contest in EVERY_CONTEST
        for name in names
        if figures.has(SCENARIO, _cost_label(contest, name))
    ]


def _best_other(figures: Figures, label: str, figure: str) -> str:
    """The difference to the best other model, and its name."""
    for one in CONTESTANTS:
        what = f"{label}{one.name}: {figure}"
        if figures.has(SCENARIO, what) and figures.text(SCENARIO, what).endswith(", the best"):
            return f"{_difference(figures, what)} ({one.name.removeprefix('efemb ')})"
    return NOTHING


def _difference(figures: Figures, what: str) -> str:
    """A difference with its sign and error; bold where it is below zero by more than two errors."""
    if not figures.has(SCENARIO, what):
        return NOTHING
    value, error = figures.value(SCENARIO, what), figures.beside(SCENARIO, what, "error #")
    shown = f"{value:+.3f} ± {error:.3f}".replace("0.", ".")
    return f"**{shown}**" if value < -2 * error else shown


def _names(figures: Figures) -> list[str]:
    """The contestants that were measured anywhere."""
    return [
        one.name
        for one in CONTESTANTS
        if any(figures.has(SCENARIO, _cost_label(contest, one.name)) for contest in EVERY_CONTEST)
    ]


def _cost_label(contest: str, name: str) -> str:
    return f"{contest}: {name}: CPU-s of the fit"


def _cost(figures: Figures, contest: str, name: str) -> str:
    label = _cost_label(contest, name)
    if not figures.has(SCENARIO, label):
        return NOTHING
    seconds = figures.value(SCENARIO, label)
    return f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}"


def _figure(
    figures: Figures, contest: str, questions: str, name: str, figure: str, *, error: bool = False
) -> str:
    """A figure in three digits; bold where no model is better by more than two errors."""
    label = f"{contest}, {questions}: {name}: {figure}"
    if not figures.has(SCENARIO, label):
        return NOTHING
    shown = f"{figures.value(SCENARIO, label):.3f}".replace("0.", ".", 1)
    gap = figures.beside(SCENARIO, label, "to the best # ")
    spread = figures.beside(SCENARIO, label, r"\(error #\)")
    if abs(gap) <= 2 * spread or gap == 0:
        shown = f"**{shown}**"
    return f"{shown} ± {spread:.3f}".replace("0.", ".", 1) if error and gap else shown


def _table(heads: list[str], lines: list[list[str]]) -> str:
    rule = "|".join(["", "---", *("---:" for _ in heads[1:]), ""])
    rows = ["| " + " | ".join(row) + " |" for row in [heads, *lines]]
    return "\n".join([rows[0], rule, *rows[1:]])
