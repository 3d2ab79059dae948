"""topics: the entities that stand out in each dimension, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.errors import DataError, InputTypeError
from efemb.plots.canvas import INK, figure_of, label_text, new_axes, palette_of, settle
from efemb.plots.label_placement import ruler
from efemb.plots.model_vectors import fitted_model
from efemb.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

FIRST = 6  # topics drawn unless others are asked for
MOST = 60
SIZE = 7.5  # of the letters


def topics(
    model: Any,
    topic: Any = None,
    n: int = 8,
    *,
    palette: str = "colorblind",
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw the entities with the largest numbers in some dimensions.

    Parameters
    ----------
    model : fitted estimator, FittedEmbedding, or Table
        A Table is one that `topics` of a model returned.
    topic : int or list of int, optional
        Dimensions, counted from 0; by default the first six.
    n : int
        Bars a dimension.
    palette : {"colorblind", "paper"}
        Positive numbers are blue (green), negative ones orange (red).
    ax : Axes, optional
    **options
        Of the query `topics`, such as `vectors`, `by` or `rotate="varimax"`.

    Returns
    -------
    Axes
        Empty itself; the panels, all of one scale, are its `child_axes`.
    """
    positive, negative, _ = palette_of(palette)
    table = _table(model, topic, n, options)
    numbers = list(dict.fromkeys(table["topic"].tolist()))
    if not 1 <= len(numbers) <= MOST:
        raise DataError(f"1 to {MOST} topics can be drawn, not {len(numbers)}; choose some")
    rows = [np.flatnonzero(table["topic"] == number) for number in numbers]
    bars = max(len(topic_rows) for topic_rows in rows)
    across = min(3, len(numbers))
    down = -(-len(numbers) // across)
    ax = new_axes(ax, (2.8 * across, down * (0.28 + 0.2 * bars)))
    ax.set_axis_off()
    settle(ax)
    values = table["value"].astype(np.float64)
    for position, (number, topic_rows) in enumerate(zip(numbers, rows, strict=True)):
        panel = ax.inset_axes(_corner(position, across, down, bars))
        panel.set(xlim=(0.0, _scale(panel, values)), ylim=(bars - 0.5, -0.5))
        panel.set_title(f"topic {number}", fontsize=9, loc="left", pad=2)
        panel.set_axis_off()
        colours = [positive if value >= 0 else negative for value in values[topic_rows]]
        panel.barh(
            np.arange(len(topic_rows)), np.abs(values[topic_rows]), color=colours, alpha=0.35
        )
        _write(panel, table["label"][topic_rows], values[topic_rows])
    return ax


def _table(model: Any, topic: Any, n: int, options: dict[str, Any]) -> Table:
    if isinstance(model, Table):
        if topic is not None or options:
            raise InputTypeError("a Table is drawn as it is: topic and options belong to a model")
        return model
    fitted = fitted_model(model)
    wanted = list(range(min(FIRST, fitted.n_components))) if topic is None else topic
    table: Table = fitted.topics(n, topic=wanted, **options)
    return table


def _corner(panel: int, across: int, down: int, bars: int) -> tuple[float, float, float, float]:
    """Left, bottom, width and height of a panel, parts of the whole; a title has room above."""
    row, column = divmod(panel, across)
    width, height = 1.0 / across, 1.0 / down
    title = 1.4 / (bars + 1.4)
    gap = 0.05 if across > 1 else 0.0
    bottom = 1.0 - (row + 1) * height
    return column * width, bottom, width * (1.0 - gap), height * (1.0 - title)


def _scale(panel: Axes, values: Floats) -> float:
    """Upper limit at which the longest bar ends before the widest number."""
    widest = max(ruler(SIZE)(_number(value))[0] for value in values)
    whole = _points(panel)
    largest = float(np.abs(values).max()) or 1.0
    return largest * whole / max(whole - widest - 5.0, 0.5 * whole)


def _points(panel: Axes) -> float:
    """Width in points."""
    return float(panel.get_window_extent().width * 72.0 / figure_of(panel).dpi)


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _write(panel: Axes, labels: Any, values: Floats) -> None:
    """Names over the bars, from the left; numbers at the right."""
    measure = ruler(SIZE)
    whole = _points(panel)
    look: dict[str, Any] = {"fontsize": SIZE, "color": INK, "va": "center"}
    for bar, (label, value) in enumerate(zip(labels, values.tolist(), strict=True)):
        number = _number(value)
        room = whole - measure(number)[0] - 8.0
        name = fitting(label_text(label, 60), room, measure)
        x = panel.get_xlim()[1]
        panel.text(0.015 * x, bar, name, ha="left", **look)
        panel.text(x, bar, number, ha="right", **look)


def fitting(text: str, room: float, measure: Callable[[str], tuple[float, float]]) -> str:
    """`text`, or as much of its beginning as `room` points hold."""
    if measure(text)[0] <= room:
        return text
    most = len(text) - 1
    while most > 0 and measure(text[:most].rstrip() + "…")[0] > room:
        most -= 1
    return text[:most].rstrip() + "…"
