"""history: objective and validation score during training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.errors import DataError, ParameterError, check_known
from efemb.plots.canvas import (
    GRAY,
    HUES,
    INK,
    MARKERS,
    draw_dots,
    hide_upper_spines,
    label_text,
    load_matplotlib,
    new_axes,
)
from efemb.plots.interactive import draw_curves, is_interactive
from efemb.plots.model_vectors import get_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AGAINST = {"pass": ("iteration", "pass over the data"), "seconds": ("seconds", "time (s)")}
VALUES = ("auto", "validation", "objective", "both")
NAMES = {"validation": "validation score", "objective": "objective"}


def history(
    models: Any,
    *,
    value: str = "auto",
    against: str = "pass",
    backend: str = "matplotlib",
    ax: Axes | None = None,
) -> Any:
    """Draw the validation score or the objective against passes or seconds.

    Parameters
    ----------
    models : fitted estimator or FittedEmbedding, or mapping of names to several
    value : {"auto", "validation", "objective", "both"}, default="auto"
        "auto" is the validation score if every model has one, else the objective. "both" draws the
        objective against a second axis on the right, for a single model.
    against : {"pass", "seconds"}, default="pass"
    backend : {"matplotlib", "plotly"}, default="matplotlib"
        plotly figures are interactive; they need the extra `explore`.
    ax : Axes, optional

    Returns
    -------
    Axes, or plotly Figure
        The best validation score of each model is marked.
    """
    check_known("value", value, VALUES)
    check_known("against", against, AGAINST)
    named = dict(models) if isinstance(models, Mapping) else {"": models}
    if not named:
        raise DataError("there is no model to draw; pass at least one")
    if value == "both" and len(named) > 1:
        raise ParameterError(
            "value='both' takes a single model; use value='validation' for several"
        )
    records = {name: get_fitted(model).history for name, model in named.items()}
    shown = ("validation", "objective") if value == "both" else (_choose_value(value, records),)
    key, title = AGAINST[against]
    if is_interactive(backend, ax):
        curves = [
            (name or NAMES[shown_value], _extract_curve(record, key, shown_value, name))
            for name, record in records.items()
            for shown_value in shown
        ]
        y_title = " and ".join(NAMES[shown_value] for shown_value in shown)
        return draw_curves(curves, x_title=title, y_title=y_title)
    ax = new_axes(ax, (6.0, 3.8))
    for number, (name, record) in enumerate(records.items()):
        _draw(
            ax,
            _extract_curve(record, key, shown[0], name),
            name,
            number,
            best=shown[0] == "validation",
        )
    ax.set(xlabel=title, ylabel=NAMES[shown[0]])
    hide_upper_spines(ax)
    if against == "pass":
        ax.xaxis.set_major_locator(load_matplotlib().ticker.MaxNLocator(integer=True))
    if len(shown) == 2:
        _draw_beside(ax, _extract_curve(record, key, "objective", name))
    if len(named) > 1 or shown[0] == "validation":
        ax.legend(frameon=False, fontsize=9)
    return ax


def _choose_value(value: str, records: dict[str, list[dict[str, Any]]]) -> str:
    if value != "auto":
        return value
    scored = [
        any(entry.get("validation") is not None for entry in record) for record in records.values()
    ]
    return "validation" if all(scored) else "objective"


def _extract_curve(record: list[dict[str, Any]], key: str, value: str, name: str) -> Floats:
    """Passes that have the value, and their values (2, n)."""
    pairs = [(entry[key], entry[value]) for entry in record if entry.get(value) is not None]
    if not pairs:
        whose = f" of {name!r}" if name else ""
        raise DataError(
            f"the history{whose} has no {value}"
            + ("; the model was fitted without validation data" if value == "validation" else "")
        )
    return np.array(pairs, dtype=np.float64).T


def _draw(ax: Axes, curve: Floats, name: str, number: int, *, best: bool) -> None:
    color, marker = HUES[number % len(HUES)], MARKERS[number % len(MARKERS)]
    text = label_text(name)
    if best:
        top = int(curve[1].argmax())
        best_score = f"{curve[1, top]:.4g}".replace("-", "−")
        text += f"{': ' if name else ''}best {best_score}"
        draw_dots(ax, curve[:, [top]].T, s=90, facecolors="none", edgecolors=INK, zorder=3)
    # More marks than these would overlap.
    every = max(1, curve.shape[1] // 12)
    ax.plot(*curve, color=color, label=text, marker=marker, markersize=4, markevery=every)


def _draw_beside(ax: Axes, curve: Floats) -> None:
    right = ax.twinx()
    right.plot(*curve, color=GRAY, linestyle="--")
    right.set_ylabel(NAMES["objective"] + " (dashed)", color="#666666")
    right.spines[["top", "left"]].set_visible(False)
