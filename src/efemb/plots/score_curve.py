"""score_curve: scores of several models against the length of their vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.errors import DataError, InputTypeError
from efemb.plots.canvas import (
    HUES,
    INK,
    MARKERS,
    find_figure,
    hide_upper_spines,
    label_text,
    load_matplotlib,
    new_axes,
)
from efemb.plots.interactive import draw_curves, is_interactive
from efemb.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES = ("-", "--", "-.", ":")
LEVELS = LINES[:0:-1]  # never solid, unlike the line of a model
STEP = 3.0  # points between the error bars of two models


def score_curve(
    table: Table,
    *,
    x: str | None = None,
    y: str = "score",
    by: str = "model",
    error: str | None = "standard_error",
    x_label: str = "vector length K",
    y_label: str | None = None,
    backend: str = "matplotlib",
    ax: Axes | None = None,
) -> Any:
    """Draw scores with error bars, one line per model.

    Parameters
    ----------
    table : Table
        One row per model and K. A row without K (NaN or None), such as popularity, becomes a
        horizontal line.
    x, y, by : str
        Columns of K (by default `k`, or `n_components` as in `score_grid`), of the score, and
        of the model's name.
    error : str, optional
        Column of standard errors; bars extend one standard error up and down. No bars if None or
        if the table has no such column.
    x_label, y_label : str
        Labels of the axes; `y_label` is by default the name of the column.
    backend : {"matplotlib", "plotly"}, default="matplotlib"
        plotly figures are interactive; they need the extra `explore`.
    ax : Axes, optional

    Returns
    -------
    Axes, or plotly Figure
    """
    if not isinstance(table, Table):
        raise InputTypeError(f"score_curve draws a Table, not {type(table).__name__}")
    if x is None:
        x = "k" if "k" in table.columns else "n_components"
    sizes, scores = _read_numbers(table, x), _read_numbers(table, y)
    bars = _read_numbers(table, error) if error in table.columns else np.full(len(table), np.nan)
    known = np.isfinite(scores)
    if not known.any():
        raise DataError(f"column {y!r} holds no finite score")
    names = np.array([str(name) for name in table[by]], dtype=object)
    models = list(dict.fromkeys(names[known].tolist()))
    of_model = {name: np.flatnonzero(known & (names == name)) for name in models}
    of_model = {
        name: rows[np.argsort(sizes[rows], kind="stable")] for name, rows in of_model.items()
    }
    y_title = y.replace("_", " ") if y_label is None else y_label
    if is_interactive(backend, ax):
        return _draw_interactive(of_model, sizes, scores, bars, (x_label, y_title))
    ax = new_axes(ax, (6.4, 4.0))
    _scale(ax, np.unique(sizes[known & np.isfinite(sizes)]))
    handles = []
    for number, rows in enumerate(of_model.values()):
        aside = STEP * (number - (len(models) - 1) / 2)
        handles.append(_draw(ax, sizes[rows], scores[rows], bars[rows], number, aside))
    ax.set(xlabel=x_label, ylabel=label_text(y_title))
    hide_upper_spines(ax)
    ax.grid(axis="y", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    outside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    ax.legend(handles, [label_text(name) for name in models], **outside, frameon=False, fontsize=9)
    return ax


def _draw_interactive(
    of_model: dict[str, Any], sizes: Floats, scores: Floats, bars: Floats, titles: tuple[str, str]
) -> Any:
    """Models with sizes as lines, others as levels."""
    sized = {name: rows for name, rows in of_model.items() if np.isfinite(sizes[rows]).any()}
    levels = [
        (name, float(score))
        for name, rows in of_model.items()
        if name not in sized
        for score in scores[rows]
    ]
    curves = [(name, np.stack([sizes[rows], scores[rows]])) for name, rows in sized.items()]
    errors = [np.nan_to_num(bars[rows]) for rows in sized.values()]
    return draw_curves(curves, x_title=titles[0], y_title=titles[1], errors=errors, levels=levels)


def _read_numbers(table: Table, column: str | None) -> Floats:
    values = [np.nan if value is None else value for value in table[str(column)].tolist()]
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise DataError(f"column {column!r} must hold numbers: {problem}") from problem


def _draw(ax: Axes, sizes: Floats, scores: Floats, bars: Floats, number: int, aside: float) -> Any:
    """A line with error bars, shifted so that bars at the same K do not overlap."""
    if not np.isfinite(sizes).any():
        style: dict[str, Any] = {"color": INK, "linestyle": LEVELS[number % len(LEVELS)]}
        lines = [ax.axhline(score, linewidth=1.2, **style) for score in scores]
        return lines[0]
    style = {
        "color": HUES[number % len(HUES)],
        "linestyle": LINES[number // len(HUES) % len(LINES)],
    }
    spread = np.nan_to_num(bars)
    container = ax.errorbar(
        sizes,
        scores,
        yerr=spread if spread.any() else None,
        marker=MARKERS[number % len(MARKERS)],
        markersize=5,
        linewidth=1.3,
        capsize=3,
        **style,
    )
    # Last, because the limits must follow from the numbers, not from the shifted marks.
    moved = load_matplotlib().transforms.offset_copy(
        ax.transData, find_figure(ax), x=aside, y=0.0, units="points"
    )
    for artist in container.get_children():
        artist.set_transform(moved)
    return container


def _scale(ax: Axes, sizes: Floats) -> None:
    """Ticks at the sizes; a logarithmic scale if they span a factor of four or more."""
    if len(sizes) == 0:
        ax.set_xticks([])
        return
    if sizes[0] > 0 and sizes[-1] >= 4 * sizes[0]:
        ax.set_xscale("log")
        ax.xaxis.set_minor_locator(load_matplotlib().ticker.NullLocator())
    ax.set_xticks(sizes, [f"{size:g}" for size in sizes])
