"""trajectory: how far the embeddings of items moved, against time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.errors import DataError, InputTypeError, ParameterError
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
    """Draw where items are in time, one line per item.

    Parameters
    ----------
    table : Table
        What `model.trajectory(items, data=...)` returns. With `data`, slices in which an item does
        not occur are hollow: their embedding is interpolated.
    value : {"distance", "similarity", "intercept"}
    backend : {"matplotlib", "plotly"}
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
    if value not in VALUES:
        raise ParameterError(f"value={value!r} is unknown; choices: {', '.join(VALUES)}")
    if len(table) == 0:
        raise DataError("there is no item to draw; pass at least one")
    at, place = _places(table["at"])
    paths = {str(label): np.flatnonzero(table["label"] == label) for label in table["label"]}
    numbers = np.asarray(table[value], dtype=np.float64)
    if is_interactive(backend, ax):
        curves = [(name, np.stack([place[rows], numbers[rows]])) for name, rows in paths.items()]
        return draw_curves(curves, x_title="time", y_title=VALUES[value])
    ax = new_axes(ax, (6.0, 3.8))
    for number, (name, rows) in enumerate(paths.items()):
        color, marker = HUES[number % len(HUES)], MARKERS[number % len(MARKERS)]
        ax.plot(place[rows], numbers[rows], color=color, marker=marker, markersize=4)
        ax.lines[-1].set_label(label_text(name))
        if "count" in table.columns:
            empty = rows[np.asarray(table["count"])[rows] == 0]
            points = np.stack([place[empty], numbers[empty]], axis=1)
            draw_dots(ax, points, s=40, facecolors="white", edgecolors=color, zorder=3)
    ax.set(xlabel="time", ylabel=VALUES[value])
    _label_times(ax, at, place)
    hide_upper_spines(ax)
    ax.legend(frameon=False, fontsize=9)
    return ax


def _places(at: Any) -> tuple[list[str], Floats]:
    """Names of times, and where they are on the axis: numbers themselves, dates one by one."""
    names = [str(label) for label in at]
    if all(isinstance(label, int | float | np.number) for label in at):
        return names, np.asarray(at, dtype=np.float64)
    order = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return names, np.array([order[name] for name in names], dtype=np.float64)


def _label_times(ax: Axes, at: list[str], place: Floats) -> None:
    """Whole numbers, or a dozen dates."""
    if not any("-" in name[1:] for name in at):
        ax.xaxis.set_major_locator(load_matplotlib().ticker.MaxNLocator(integer=True))
        return
    names = {float(where): name for where, name in zip(place, at, strict=True)}
    shown = sorted(names)[:: max(1, len(names) // 8)]
    ax.set_xticks(shown, [names[where] for where in shown])
