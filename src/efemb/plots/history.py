"""history: how objective and validation score went while a model was fitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.errors import DataError, ParameterError, suggest
from efemb.plots.canvas import (
    GREY,
    HUES,
    INK,
    MARKERS,
    dots,
    label_text,
    load_matplotlib,
    new_axes,
    plain_spines,
)
from efemb.plots.model_vectors import fitted_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AGAINST = {"pass": ("iteration", "pass over the data"), "seconds": ("seconds", "time (s)")}
VALUES = ("auto", "validation", "objective", "both")
NAMES = {"validation": "validation score", "objective": "objective"}


def history(
    models: Any, *, value: str = "auto", against: str = "pass", ax: Axes | None = None
) -> Axes:
    """Draw the validation score or the objective against passes or seconds.

    Parameters
    ----------
    models : fitted estimator or FittedEmbedding, or mapping of names to several
    value : {"auto", "validation", "objective", "both"}
        "auto" is the validation score where a model has one, else the objective. "both" has the
        objective on an axis of its own, at the right, and takes a single model.
    against : {"pass", "seconds"}
    ax : Axes, optional

    Returns
    -------
    Axes
        The best validation score of each model is marked.
    """
    _check(value, VALUES, "value")
    _check(against, tuple(AGAINST), "against")
    named = dict(models) if isinstance(models, Mapping) else {"": models}
    if not named:
        raise DataError("there is no model to draw; give at least one")
    if value == "both" and len(named) > 1:
        raise ParameterError("value='both' takes one model; draw several by validation score")
    records = {name: fitted_model(model).history for name, model in named.items()}
    shown = ("validation", "objective") if value == "both" else (_shown(value, records),)
    ax = new_axes(ax, (6.0, 3.8))
    key, title = AGAINST[against]
    for number, (name, record) in enumerate(records.items()):
        _draw(ax, _curve(record, key, shown[0], name), name, number, best=shown[0] == "validation")
    ax.set(xlabel=title, ylabel=NAMES[shown[0]])
    plain_spines(ax)
    if against == "pass":
        ax.xaxis.set_major_locator(load_matplotlib().ticker.MaxNLocator(integer=True))
    if len(shown) == 2:
        _draw_beside(ax, _curve(record, key, "objective", name))
    if len(named) > 1 or shown[0] == "validation":
        ax.legend(frameon=False, fontsize=9)
    return ax


def _check(value: Any, choices: tuple[str, ...], option: str) -> None:
    if value not in choices:
        raise ParameterError(f"{option}={value!r} is unknown; {suggest(value, choices)}")


def _shown(value: str, records: dict[str, list[dict[str, Any]]]) -> str:
    if value != "auto":
        return value
    scored = [
        any(entry.get("validation") is not None for entry in record) for record in records.values()
    ]
    return "validation" if all(scored) else "objective"


def _curve(record: list[dict[str, Any]], key: str, value: str, name: str) -> Floats:
    """Pairs (2, n) of the passes that have the value."""
    pairs = [(entry[key], entry[value]) for entry in record if entry.get(value) is not None]
    if not pairs:
        whose = f" of {name!r}" if name else ""
        raise DataError(
            f"the history{whose} has no {value}"
            + ("; it was fitted without held-out data" if value == "validation" else "")
        )
    return np.array(pairs, dtype=np.float64).T


def _draw(ax: Axes, curve: Floats, name: str, number: int, *, best: bool) -> None:
    colour, marker = HUES[number % len(HUES)], MARKERS[number % len(MARKERS)]
    text = label_text(name)
    if best:
        top = int(curve[1].argmax())
        text += f"{': ' if name else ''}best {curve[1, top]:.4g}"
        dots(ax, curve[:, [top]].T, s=90, facecolors="none", edgecolors=INK, zorder=3)
    # More marks than these run into each other.
    every = max(1, curve.shape[1] // 12)
    ax.plot(*curve, color=colour, label=text, marker=marker, markersize=4, markevery=every)


def _draw_beside(ax: Axes, curve: Floats) -> None:
    right = ax.twinx()
    right.plot(*curve, color=GREY, linestyle="--")
    right.set_ylabel(NAMES["objective"] + " (dashed)", color="#666666")
    right.spines[["top", "left"]].set_visible(False)
