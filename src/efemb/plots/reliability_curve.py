"""reliability: observed against predicted probabilities of the next item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.errors import DataError, InputTypeError
from efemb.plots.canvas import GRAY, HUES, MARKERS, hide_upper_spines, label_text, new_axes
from efemb.plots.interactive import draw_curves, is_interactive
from efemb.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = {"predicted", "observed", "n"}
X_TITLE, Y_TITLE = "predicted probability", "observed frequency"
IDEAL = "calibrated"


def reliability(models: Any, *, backend: str = "matplotlib", ax: Axes | None = None) -> Any:
    """Draw how often items were next in held-out baskets against their predicted probability.

    Parameters
    ----------
    models : fitted BasketEmbedding or its table `reliability_`, or mapping of names to several
        A table has the columns predicted, observed and n (number of predictions).
    backend : {"matplotlib", "plotly"}, default="matplotlib"
        plotly figures are interactive; they need the extra `explore`.
    ax : Axes, optional

    Returns
    -------
    Axes, or plotly Figure
        Both axes are logarithmic. Probabilities on the gray line are calibrated; bars extend one
        standard error (of a Poisson number of hits) up and down. Groups of predictions without a
        single hit are not drawn.
    """
    named = dict(models) if isinstance(models, Mapping) else {"": models}
    if not named:
        raise DataError("there is no model to draw; pass at least one")
    curves = {name: _read_curve(model) for name, model in named.items()}
    lowest = min(float(curve[:2].min()) for curve in curves.values())
    ideal = np.array([[lowest, 1.0], [lowest, 1.0]])
    if is_interactive(backend, ax):
        lines = [(IDEAL, ideal), *((name or "model", curve[:2]) for name, curve in curves.items())]
        errors = [np.zeros(2), *(curve[2] for curve in curves.values())]
        figure = draw_curves(lines, x_title=X_TITLE, y_title=Y_TITLE, errors=errors)
        return figure.update_xaxes(type="log").update_yaxes(type="log")
    ax = new_axes(ax, (4.8, 4.4))
    ax.set(xscale="log", yscale="log", xlabel=X_TITLE, ylabel=Y_TITLE)
    ax.plot(*ideal, color=GRAY, linewidth=1.0, label=IDEAL)
    for number, (name, (predicted, observed, error)) in enumerate(curves.items()):
        # The lower end of a bar must not reach 0, which a logarithmic axis does not have.
        bars = np.stack([np.minimum(error, 0.9 * observed), error])
        style: Any = {"color": HUES[number % len(HUES)], "marker": MARKERS[number % len(MARKERS)]}
        drawn = ax.errorbar(predicted, observed, yerr=bars, capsize=2, markersize=4, **style)
        drawn.set_label(label_text(name) if name else "held-out entries")
    hide_upper_spines(ax)
    ax.legend(frameon=False, fontsize=9, loc="upper left")
    return ax


def _read_curve(model: Any) -> Floats:
    """Predicted, observed and the standard error of the latter, (3, points) with any hits."""
    table = getattr(model, "reliability_", model)
    if not isinstance(table, Table) or not set(table.columns) >= COLUMNS:
        raise InputTypeError(
            "reliability draws a fitted BasketEmbedding or its table reliability_, not "
            f"{type(model).__name__}"
        )
    predicted, observed, n = (
        np.asarray(table[name], dtype=np.float64) for name in ("predicted", "observed", "n")
    )
    hit = observed > 0
    if not hit.any():
        raise DataError("no held-out entry was predicted, so there is nothing to draw")
    return np.stack([predicted[hit], observed[hit], np.sqrt(observed[hit] / n[hit])])
