"""answer: the rows of an answer as bars, the first on top."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb.errors import DataError, InputTypeError, check_integer
from efemb.plots.canvas import draw_ranking, find_palette, label_text, label_texts
from efemb.plots.interactive import draw_bars, is_interactive
from efemb.table import Table

# Columns that identify a row in addition to its label.
SUBJECTS = ("query", "given", "item", "row", "topic", "group")


def answer(
    table: Table,
    n: int = 20,
    *,
    value: str | None = None,
    palette: str = "colorblind",
    backend: str = "matplotlib",
    ax: Any = None,
) -> Any:
    """Draw the rows of an answer as bars.

    Parameters
    ----------
    table : Table
        The result of a question such as `similar`, `complements`, `complete` or `explain`.
    n : int, default=20
        Number of bars, the first rows of the table.
    value : str, optional
        Column of the numbers; by default the first one with fractions.
    palette : {"colorblind", "paper"}, default="colorblind"
        Positive values are blue (green), negative ones orange (red).
    backend : {"matplotlib", "plotly"}, default="matplotlib"
    ax : Axes, optional
        Only for matplotlib.

    Returns
    -------
    Axes, or plotly Figure
        With intervals if the table has the columns `low` and `high`.
    """
    if not isinstance(table, Table):
        raise InputTypeError(f"answer draws a Table, not {type(table).__name__}")
    check_integer("n", n)
    positive, negative, _ = find_palette(palette)
    shown = table[:n]
    if len(shown) == 0:
        raise DataError("nothing to draw: the table has no rows")
    column = _choose_value(shown, value)
    numbers = np.asarray(shown[column], dtype=np.float64)
    names, title = _name_rows(shown)
    bounds = None
    if {"low", "high"} <= set(shown.columns):
        bounds = np.stack([shown["low"], shown["high"]]).astype(np.float64)
    colors = [positive if number >= 0 else negative for number in numbers]
    heading = column.replace("_", " ")
    if is_interactive(backend, ax):
        return draw_bars(names, numbers, colors, title=title, x_title=heading, bounds=bounds)
    ax = draw_ranking(label_texts(names, 40), numbers, colors, bounds, ax)
    ax.set_xlabel(heading)
    if title:
        ax.set_title(label_text(title, 60).strip(), fontsize=10, loc="left")
    return ax


def _choose_value(table: Table, value: str | None) -> str:
    """The column that is drawn."""
    numeric = [name for name in table.columns if table[name].dtype.kind in "iuf"]
    if value is not None:
        if value not in numeric:
            raise DataError(f"column {value!r} does not hold numbers; these do: {numeric}")
        return value
    fractions = [name for name in numeric if table[name].dtype.kind == "f"]
    if not numeric:
        raise DataError(f"the table has no column of numbers to draw, only {table.columns}")
    return (fractions or numeric)[0]


def _name_rows(table: Table) -> tuple[list[str], str]:
    """A name for each row, and what all rows have in common."""
    words = [name for name in table.columns if table[name].dtype.kind == "O"]
    title = ""
    for name in [name for name in SUBJECTS if name in table.columns]:
        subjects = {str(subject) for subject in table[name].tolist()}
        if len(subjects) == 1 and len(words) > 1:
            title = f"{name}: {subjects.pop()}"
            words = [word for word in words if word != name]
    if not words:
        return [str(number) for number in range(len(table))], title
    main = "label" if "label" in words else words[0]
    names = [str(label) for label in table[main].tolist()]
    for name in SUBJECTS:
        if name in words and name != main:
            subjects_of = (str(subject) for subject in table[name].tolist())
            names = [f"{label} | {one}" for label, one in zip(names, subjects_of, strict=True)]
    return names, title
