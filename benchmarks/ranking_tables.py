"""Tables of `ranking` in Markdown: in short for the README, in full for the page of figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.contestants import CONTESTANTS
from benchmarks.ranking import CALIBRATED, CONTEXT_SIZES, FIGURES, MRR, RECALL, SHARES

if TYPE_CHECKING:
    from benchmarks.summary import Figures

MOVIES, TRIPS, ORDERS = "MovieLens-100K", "Complete Journey", "Instacart"
CONTESTS = (TRIPS, MOVIES, ORDERS)
SCENARIO = "ranking"
NOTHING = "–"


def in_short(figures: Figures) -> str:
    """One row per model: three figures on each set of data, likelihood and cost on the trips."""
    heads = [
        "model",
        *(f"{contest}: {RECALL} / {MRR} / {CALIBRATED}" for contest in CONTESTS),
        "trips: log-likelihood per unit",
        "trips: CPU-s",
    ]
    lines = []
    for name in _names(figures):
        triples = [
            " / ".join(
                _figure(figures, contest, "test", name, figure)
                for figure in (RECALL, MRR, CALIBRATED)
            )
            for contest in CONTESTS
        ]
        triples = [NOTHING if set(cell) <= {*NOTHING, " ", "/"} else cell for cell in triples]
        own = _figure(figures, TRIPS, "test", name, SHARES)
        lines.append([name, *triples, own, _cost(figures, TRIPS, name)])
    return _table(heads, lines)


def in_full(figures: Figures) -> str:
    """One row per set of data and model, with the errors of the differences to the best."""
    whole = [f"{figure}, all entries" for figure in (RECALL, MRR, SHARES)]
    heads = ["data, model", *FIGURES, *whole, "CPU-s", "chosen"]
    lines = []
    for contest in CONTESTS:
        for name in _names(figures):
            label = _cost_label(contest, name)
            if not figures.has(SCENARIO, label):
                continue
            cells = [_figure(figures, contest, "test", name, one, error=True) for one in FIGURES]
            cells += [_figure(figures, contest, "all", name, one) for one in (RECALL, MRR, SHARES)]
            chosen = figures.text(SCENARIO, label).partition(", peak")[0]
            lines.append([f"{contest}, {name}", *cells, _cost(figures, contest, name), chosen])
    return _table(heads, lines)


def short_contexts(figures: Figures) -> str:
    """Recall and likelihood at each size of the context, one row per model and set of data."""
    sizes = [*(f"context {size}" for size in CONTEXT_SIZES), "test"]
    heads = ["data, model", *(size.replace("context ", "") for size in sizes[:-1]), "all"]
    lines = []
    for contest in CONTESTS:
        for contestant in CONTESTANTS:
            label = f"{contest}, context 1: {contestant.name}: {RECALL}"
            if not contestant.short or not figures.has(SCENARIO, label):
                continue
            pairs = [
                " / ".join(
                    _figure(figures, contest, size, contestant.name, figure)
                    for figure in (RECALL, SHARES)
                )
                for size in sizes
            ]
            lines.append([f"{contest}, {contestant.name}", *pairs])
    return _table(heads, lines)


def _names(figures: Figures) -> list[str]:
    """The contestants that were measured anywhere."""
    return [
        one.name
        for one in CONTESTANTS
        if any(figures.has(SCENARIO, _cost_label(contest, one.name)) for contest in CONTESTS)
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
