"""topics: the leading entities of each dimension, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.errors import DataError, InputTypeError
from efemb.plots.canvas import INK, apply_layout, find_figure, find_palette, label_text, new_axes
from efemb.plots.interactive import draw_bars, is_interactive
from efemb.plots.label_placement import make_ruler
from efemb.plots.model_vectors import get_fitted
from efemb.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

FIRST = 6  # topics drawn by default
MOST = 60
SIZE = 7.5  # font size


def topics(
    model: Any,
    topic: Any = None,
    n: int = 8,
    *,
    palette: str = "colorblind",
    backend: str = "matplotlib",
    ax: Axes | None = None,
    **options: Any,
) -> Any:
    """Draw the entities with the largest values in some dimensions.

    Parameters
    ----------
    model : fitted estimator, FittedEmbedding, or Table
        A Table must come from the query `topics` of a model.
    topic : int or list of int, optional
        Dimensions, counted from 0; by default the first six.
    n : int, default=8
        Number of bars per dimension.
    palette : {"colorblind", "paper"}, default="colorblind"
        Positive values are blue (green), negative ones orange (red).
    backend : {"matplotlib", "plotly"}, default="matplotlib"
        plotly figures are interactive; they need the extra `explore`.
    ax : Axes, optional
    **options
        Options of the query `topics`, such as `vectors`, `by` or `rotate="varimax"`.

    Returns
    -------
    Axes, or plotly Figure
        The Axes are empty; the panels, which share one scale, are their `child_axes`.
    """
    positive, negative, _ = find_palette(palette)
    table = _table(model, topic, n, options)
    numbers = list(dict.fromkeys(table["topic"].tolist()))
    if not 1 <= len(numbers) <= MOST:
        raise DataError(
            f"1 to {MOST} topics can be drawn, got {len(numbers)}; select some with topic="
        )
    rows = [np.flatnonzero(table["topic"] == number) for number in numbers]
    if is_interactive(backend, ax):
        return _draw_interactive(table, numbers, rows, (positive, negative))
    bars = max(len(topic_rows) for topic_rows in rows)
    across = min(3, len(numbers))
    down = -(-len(numbers) // across)
    ax = new_axes(ax, (2.8 * across, down * (0.28 + 0.2 * bars)))
    ax.set_axis_off()
    apply_layout(ax)
    values = table["value"].astype(np.float64)
    for position, (number, topic_rows) in enumerate(zip(numbers, rows, strict=True)):
        panel = ax.inset_axes(_place_panel(position, across, down, bars))
        panel.set(xlim=(0.0, _scale(panel, values)), ylim=(bars - 0.5, -0.5))
        panel.set_title(f"topic {number}", fontsize=9, loc="left", pad=2)
        panel.set_axis_off()
        colors = [positive if value >= 0 else negative for value in values[topic_rows]]
        panel.barh(np.arange(len(topic_rows)), np.abs(values[topic_rows]), color=colors, alpha=0.35)
        _write(panel, table["label"][topic_rows], values[topic_rows])
    return ax


def _draw_interactive(
    table: Table, numbers: list[int], rows: list[Any], colors: tuple[str, str]
) -> Any:
    """All topics below one another."""
    order = np.concatenate(rows)
    values = table["value"][order].astype(np.float64)
    owners = [number for number, own in zip(numbers, rows, strict=True) for _ in own]
    labels = table["label"][order].tolist()
    names = [f"{number}: {label}" for number, label in zip(owners, labels, strict=True)]
    shades = [colors[0] if value >= 0 else colors[1] for value in values]
    return draw_bars(names, np.abs(values), shades, x_title="size of the value")


def _table(model: Any, topic: Any, n: int, options: dict[str, Any]) -> Table:
    if isinstance(model, Table):
        if topic is not None or options:
            raise InputTypeError("topic and options apply to a model; a Table is drawn as it is")
        return model
    fitted = get_fitted(model)
    dimensions = list(range(min(FIRST, fitted.n_components))) if topic is None else topic
    table: Table = fitted.topics(n, topic=dimensions, **options)
    return table


def _place_panel(
    panel: int, across: int, down: int, bars: int
) -> tuple[float, float, float, float]:
    """Left, bottom, width and height of a panel, relative to the Axes, with room for a title."""
    row, column = divmod(panel, across)
    width, height = 1.0 / across, 1.0 / down
    title = 1.4 / (bars + 1.4)
    gap = 0.05 if across > 1 else 0.0
    bottom = 1.0 - (row + 1) * height
    return column * width, bottom, width * (1.0 - gap), height * (1.0 - title)


def _scale(panel: Axes, values: Floats) -> float:
    """Upper limit such that the longest bar ends before the widest number."""
    widest = max(make_ruler(SIZE)(_format_number(value))[0] for value in values)
    panel_width = _measure_width(panel)
    largest = float(np.abs(values).max()) or 1.0
    return largest * panel_width / max(panel_width - widest - 5.0, 0.5 * panel_width)


def _measure_width(panel: Axes) -> float:
    """Width in points."""
    return float(panel.get_window_extent().width * 72.0 / find_figure(panel).dpi)


def _format_number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _write(panel: Axes, labels: Any, values: Floats) -> None:
    """Write names over the bars, from the left, and numbers at the right."""
    measure = make_ruler(SIZE)
    panel_width = _measure_width(panel)
    look: dict[str, Any] = {"fontsize": SIZE, "color": INK, "va": "center"}
    for bar, (label, value) in enumerate(zip(labels, values.tolist(), strict=True)):
        number = _format_number(value)
        room = panel_width - measure(number)[0] - 8.0
        name = shorten(label_text(label, 60), room, measure)
        x = panel.get_xlim()[1]
        panel.text(0.015 * x, bar, name, ha="left", **look)
        panel.text(x, bar, number, ha="right", **look)


def shorten(text: str, room: float, measure: Callable[[str], tuple[float, float]]) -> str:
    """`text`, shortened to a width of `room` points."""
    if measure(text)[0] <= room:
        return text
    length = len(text) - 1
    while length > 0 and measure(text[:length].rstrip() + "…")[0] > room:
        length -= 1
    return text[:length].rstrip() + "…"
