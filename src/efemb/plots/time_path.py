"""trajectory and change_points: how far embeddings moved over time, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Bools, Floats
from efemb.errors import DataError, InputTypeError, check_known, check_number
from efemb.plots.canvas import (
    HUES,
    MARKERS,
    draw_dots,
    hide_upper_spines,
    label_text,
    load_matplotlib,
    new_axes,
)
from efemb.plots.interactive import draw_curves, is_interactive
from efemb.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VALUES = {
    "distance": "distance from the first slice",
    "similarity": "cosine with the first slice",
    "intercept": "intercept",
}


def trajectory(
    table: Table,
    *,
    value: str = "distance",
    backend: str = "matplotlib",
    ax: Axes | None = None,
) -> Any:
    """Draw how embeddings move over time, one line per item.

    Parameters
    ----------
    table : Table
        The result of `model.trajectory(items, data=...)`. With `data`, slices in which an item
        does not occur are hollow: their embedding is interpolated.
    value : {"distance", "similarity", "intercept"}, default="distance"
    backend : {"matplotlib", "plotly"}, default="matplotlib"
        plotly figures are interactive; they need the extra `explore`.
    ax : Axes, optional

    Returns
    -------
    Axes, or plotly Figure
    """
    if not isinstance(table, Table) or "at" not in getattr(table, "columns", ()):
        raise InputTypeError(
            f"trajectory draws the Table of model.trajectory(items), not {type(table).__name__}"
        )
    check_known("value", value, VALUES)
    if len(table) == 0:
        raise DataError("there is no item to draw; pass at least one")
    at, ticks = _places(table["at"])
    paths = {str(label): np.flatnonzero(table["label"] == label) for label in table["label"]}
    numbers = np.asarray(table[value], dtype=np.float64)
    if is_interactive(backend, ax):
        curves = [(name, np.stack([ticks[rows], numbers[rows]])) for name, rows in paths.items()]
        return draw_curves(curves, x_title="time", y_title=VALUES[value])
    ax = new_axes(ax, (6.0, 3.8))
    for number, (name, rows) in enumerate(paths.items()):
        color, marker = HUES[number % len(HUES)], MARKERS[number % len(MARKERS)]
        ax.plot(ticks[rows], numbers[rows], color=color, marker=marker, markersize=4)
        ax.lines[-1].set_label(label_text(name))
        if "count" in table.columns:
            empty = rows[np.asarray(table["count"])[rows] == 0]
            points = np.stack([ticks[empty], numbers[empty]], axis=1)
            draw_dots(ax, points, s=40, facecolors="white", edgecolors=color, zorder=3)
    ax.set(xlabel="time", ylabel=VALUES[value])
    _label_times(ax, at, ticks)
    hide_upper_spines(ax)
    ax.legend(frameon=False, fontsize=9)
    return ax


def change_points(
    table: Table,
    *,
    level: float = 0.05,
    backend: str = "matplotlib",
    ax: Axes | None = None,
) -> Any:
    """Draw how much the rows before and after each slice differ in the embedding of an item.

    Parameters
    ----------
    table : Table
        The result of `model.change_points(item, data, n=...)`; with a large `n` all slices are
        drawn, with a small one only the most different ones.
    level : float, default=0.05
        Slices with a p-value of at most this are filled, with the time beside the largest.
    backend : {"matplotlib", "plotly"}, default="matplotlib"
        plotly figures are interactive; they need the extra `explore`.
    ax : Axes, optional

    Returns
    -------
    Axes, or plotly Figure
    """
    _check_changes(table, level)
    order = np.argsort(_order_of(table["at"]), kind="stable")
    at, ticks = _places(table["at"][order])
    statistic, p_value = (
        np.asarray(table[name], dtype=np.float64)[order] for name in ("statistic", "p_value")
    )
    title = "rows before and after differ by"
    if is_interactive(backend, ax):
        curve = [("statistic", np.stack([ticks, statistic]))]
        return draw_curves(curve, x_title="first slice after the change", y_title=title)
    ax = new_axes(ax, (6.0, 3.8))
    sure = p_value <= level
    _draw_stems(ax, np.stack([ticks, statistic], axis=1), sure, level)
    best = int(np.argmax(statistic))
    if sure[best]:
        ax.annotate(
            label_text(at[best]),
            (ticks[best], statistic[best]),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=9,
        )
    ax.set(xlabel="first slice after the change", ylabel=title)
    ax.set_ylim(0.0, 1.15 * max(float(statistic.max()), 1e-12))
    _label_times(ax, at, ticks)
    hide_upper_spines(ax)
    ax.legend(frameon=False, fontsize=9)
    return ax


def _check_changes(table: Table, level: float) -> None:
    if not isinstance(table, Table) or not {"at", "statistic", "p_value"} <= set(table.columns):
        raise InputTypeError(
            "change_points draws the Table of model.change_points(item, data), not "
            f"{type(table).__name__}"
        )
    check_number("level", level, above=0, below=1)
    if len(table) == 0:
        raise DataError("there is no slice to draw: request n >= 1 change points")


def _draw_stems(ax: Axes, points: Floats, sure: Bools, level: float) -> None:
    """Lines from 0, with a filled dot where the p-value is at most the level."""
    ax.vlines(points[:, 0], 0.0, points[:, 1], color=HUES[0], linewidth=1.2)
    for selected, face, name in (
        (sure, HUES[0], f"p <= {level:g}"),
        (~sure, "white", f"p > {level:g}"),
    ):
        if selected.any():
            draw_dots(ax, points[selected], s=36, facecolors=face, edgecolors=HUES[0], zorder=3)
            ax.collections[-1].set_label(name)


def _order_of(at: Any) -> Any:
    """Sort keys of times: numbers, or dates as text."""
    if all(isinstance(label, int | float | np.number) for label in at):
        return np.asarray(at, dtype=np.float64)
    return np.array([str(label) for label in at])


def _places(at: Any) -> tuple[list[str], Floats]:
    """Names of times, and their positions on the axis: the numbers, or consecutive dates."""
    names = [str(label) for label in at]
    if all(isinstance(label, int | float | np.number) for label in at):
        return names, np.asarray(at, dtype=np.float64)
    order = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return names, np.array([order[name] for name in names], dtype=np.float64)


def _label_times(ax: Axes, at: list[str], ticks: Floats) -> None:
    """Whole numbers, or a dozen dates."""
    if not any("-" in name[1:] for name in at):
        ax.xaxis.set_major_locator(load_matplotlib().ticker.MaxNLocator(integer=True))
        return
    names = {float(where): name for where, name in zip(ticks, at, strict=True)}
    shown = sorted(names)[:: max(1, len(names) // 8)]
    ax.set_xticks(shown, [names[where] for where in shown])
