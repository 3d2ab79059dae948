"""The report on count models: tables as the paper prints them, and their pictures."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from efemb.plots import score_curve
from efemb.plots.canvas import GRAY, HUES, INK, MARKERS, hide_upper_spines, new_axes
from efemb.reproduce.claims import EMPTY, format_gap, format_number
from efemb.reproduce.counts_models import POPULARITY
from efemb.reproduce.counts_scores import (
    Row,
    Size,
    compare_rows,
    find_reference,
    tabulate_curves,
    tabulate_splits,
)
from efemb.reproduce.published import Printed
from efemb.reproduce.study import Results
from efemb.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


RISING = "↑"
INDENT = "    "
DEEPEST = 1.0  # nats below the best score at which a curve is cut
SCORE = "normalized log-likelihood per unit"


def tabulate_like_paper(rows: Sequence[Row], printed: Mapping[tuple[str, int], Printed]) -> Table:
    """One line per model; for each K the paper's score, ours, and the gain over p-emb."""
    sizes = list(dict.fromkeys(row.key[1] for row in rows if row.key[1] is not None))
    names = list(dict.fromkeys(row.key[0] for row in rows))
    by_key = {row.key: row for row in rows}
    columns: dict[str, list[str]] = {}
    for k in sizes:
        model_rows = [by_key.get((name, k), by_key.get((name, None))) for name in names]
        columns[f"paper ({k})"] = [_paper(printed.get((name, k))) for name in names]
        columns[f"ours ({k})"] = [_format_ours(row) for row in model_rows]
        columns[f"gain ({k})"] = [_format_difference(rows, row, k) for row in model_rows]
    # A line break inside a number is hard to read.
    narrow = {name: [cell.replace(" ", "") for cell in cells] for name, cells in columns.items()}
    return Table({"model": names, **narrow})


def _paper(printed: Printed | None) -> str:
    return EMPTY if printed is None else format_number(printed.score, printed.error)


def _format_ours(row: Row | None) -> str:
    if row is None:
        return EMPTY
    return format_number(row.score, row.error) + (f" {RISING}" if any(row.each("rising")) else "")


def _format_difference(rows: Sequence[Row], row: Row | None, k: Size) -> str:
    base = find_reference(rows, k)
    if row is None or base is None or row is base:
        return EMPTY
    return format_gap(compare_rows(row, base))


def draw_scores(rows: Sequence[Row], printed: Mapping[tuple[str, int], Printed]) -> Axes:
    """Our scores and the paper's, one line per model, the best on top, one mark per K."""
    sized = [row for row in rows if row.key[1] is not None]
    sizes = list(dict.fromkeys(row.key[1] for row in sized))
    best = {row.key[0]: max(r.score for r in sized if r.key[0] == row.key[0]) for row in sized}
    height_of_model = {name: i for i, name in enumerate(sorted(best, key=lambda name: best[name]))}
    ax = new_axes(None, (7.2, 1.3 + 0.31 * len(height_of_model)))
    for popular in (row for row in rows if row.key[0] == POPULARITY.name):
        ax.axvline(popular.score, color=GRAY, linestyle=":", linewidth=1.2, label="popularity")
    edge = _find_left_edge(rows)
    for turn, k in enumerate(sizes):
        aside = 0.14 * (len(sizes) - 1) - 0.28 * turn
        our_scores = {row.key[0]: row.score for row in sized if row.key[1] == k}
        paper_scores = {
            name: printed[name, k].score for name in our_scores if k and (name, k) in printed
        }
        for whose, score_of_model, fill in (
            ("ours", our_scores, "full"),
            ("paper", paper_scores, "none"),
        ):
            if score_of_model:
                heights = [height_of_model[name] + aside for name in score_of_model]
                look = {"color": HUES[turn], "marker": MARKERS[turn], "fillstyle": fill}
                _draw_marks(
                    ax,
                    list(score_of_model.values()),
                    heights,
                    edge,
                    label=f"{whose}, K = {k}",
                    **look,
                )
    ax.set_yticks(range(len(height_of_model)), list(height_of_model), fontsize=9)
    ax.set_ylim(-0.6, len(height_of_model) - 0.4)
    ax.set_xlim(left=edge)
    ax.set_xlabel(SCORE)
    ax.grid(color="#e3e3e3", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    hide_upper_spines(ax)
    above: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": 5}
    ax.legend(frameon=False, fontsize=8, borderpad=0.2, columnspacing=1.2, **above)
    return ax


def _find_left_edge(rows: Sequence[Row]) -> float:
    """The left limit: a few very low scores would compress all others into a point."""
    best, scores = max(row.score for row in rows), [row.score for row in rows]
    popular = [row.score for row in rows if row.key[0] == POPULARITY.name]
    return best - 1.6 * (best - min(popular or scores))


def _draw_marks(
    ax: Axes, scores: list[float], heights: list[float], edge: float, **look: Any
) -> None:
    """Marks, and arrows with numbers for scores beyond the edge."""
    inside = [
        (score, height) for score, height in zip(scores, heights, strict=True) if score >= edge
    ]
    x, y = ([mark[i] for mark in inside] for i in (0, 1))
    ax.plot(x, y, linestyle="none", markersize=6, **look)
    ours = look["fillstyle"] != "none"
    for score, height in zip(scores, heights, strict=True):
        if score < edge:
            text = f"◂ {score:.2f}".replace("-", "−")
            ax.annotate(
                text,
                (0.0, height),
                xycoords=("axes fraction", "data"),
                xytext=(3 if ours else 38, 0),  # both may be beyond the edge
                textcoords="offset points",
                va="center",
                fontsize=7.5,
                color=look["color"] if ours else INK,
            )


def draw_constants(curves: Table) -> Axes:
    """Validation score against the Adagrad constant, one line per model and K."""
    ax: Axes = score_curve(
        curves,
        x="step",
        y="validation",
        error=None,
        x_label="Adagrad constant",
        y_label="validation score",
    )
    # A constant that is much too large would compress all other curves into a line.
    lowest = float(max(curves["validation"])) - DEEPEST
    ax.set_ylim(bottom=max(ax.get_ylim()[0], lowest))
    return ax


def tabulate_splits_for_page(rows: Sequence[Row]) -> Table:
    """The scores of each split, and the cost of a fit."""
    seeds = [outcome.job.settings["seed"] for outcome in rows[0].outcomes]
    columns: dict[str, list[object]] = {
        "model": [row.key[0] for row in rows],
        "K": [EMPTY if row.key[1] is None else str(row.key[1]) for row in rows],
    }
    for split, seed in enumerate(seeds):
        columns[f"split {seed}"] = [format_number(row.each("score")[split]) for row in rows]
    columns["per entry"] = [format_number(row.mean("by_entry")) for row in rows]
    columns["recall@10"] = [row.mean("recall@10") for row in rows]
    columns["best pass"] = [_format_values(row.each("best_pass")) for row in rows]
    columns["constant"] = [_format_values(row.each("step")) for row in rows]
    columns["seconds"] = [f"{row.mean('fit_seconds'):.1f}" for row in rows]
    return Table(columns)


def _format_values(values: list[Any]) -> str:
    return EMPTY if None in values else " ".join(f"{value:g}" for value in values)


def show_fits(rows: Sequence[Row], out: Results, chosen: str, fitted: str) -> None:
    """Show how the constants were chosen, each fit, and the settings."""
    curves = tabulate_curves(rows)
    out.write("constants", curves)
    out.figure("constants", draw_constants(curves), chosen)
    out.write("splits", tabulate_splits(rows))
    out.page.table(tabulate_splits_for_page(rows), fitted)
    show_settings(rows, out)


def show_settings(rows: Sequence[Row], out: Results) -> None:
    """Describe each model, and why it is included."""
    recipes = {row.key[0]: (row.task.recipe, row.outcomes[0]) for row in rows}
    columns: dict[str, list[str]] = {
        "model": list(recipes),
        "settings": [recipe.group for recipe, _ in recipes.values()],
        "what": [_format_settings(outcome.figures["settings"]) for _, outcome in recipes.values()],
        "why": [recipe.why for recipe, _ in recipes.values()],
    }
    out.write("settings", Table(columns))
    out.page.paragraph("The models; settings that are not listed are defaults:")
    lines = zip(columns["model"], columns["settings"], columns["why"], columns["what"], strict=True)
    out.page.code("\n".join(_format_model(*line) for line in lines))


def _format_model(name: str, group: str, why: str, what: str) -> str:
    """A model as text of the width of the page."""
    return f"{name} ({group}): {why}\n" + textwrap.fill(
        what, 92, initial_indent=INDENT, subsequent_indent=2 * INDENT, break_long_words=False
    )


def _format_settings(settings: Mapping[str, str]) -> str:
    inside = ", ".join(
        f"{name}={value}"
        for name, value in settings.items()
        if name not in ("class", "random_state", "n_components")
    )
    return f"{settings['class']}({inside})"
