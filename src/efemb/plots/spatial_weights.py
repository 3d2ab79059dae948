"""spatial_weights: where the neurons are, and the weights of some with their neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb.errors import DataError, ParameterError
from efemb.plots.canvas import INK, dots, label_text, new_axes, palette_of
from efemb.plots.edges import Edges
from efemb.plots.inputs import codes_of, fitted_model, is_number
from efemb.plots.panels import Panels, halo
from efemb.types import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from efemb.fitted import FittedEmbedding

LETTERS = "ABCDEFGHIJKL"
LEAN = 0.3  # part of the way to the nearest neighbour by which the deepest are moved


def spatial_weights(
    model: Any,
    neurons: Any = 3,
    *,
    view: tuple[int, int] = (0, 1),
    palette: str = "paper",
    unit: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw all entities at their positions and zoom on some of them with their contexts.

    An edge from the zoomed entity n to a neighbour m has the colour of the sign of
    rho_n . alpha_m, and is the more opaque the larger it is; one scale holds for all panels.

    Parameters
    ----------
    model : fitted estimator or FittedEmbedding
        With positions, and a context that is fixed for each entity (`Neighbors`, `Graph`).
    neurons : int or list of labels
        How many to zoom on, at most 12, or which. A number picks those of the largest weights
        that are well apart.
    view : pair of int
        Coordinates drawn to the right and upwards; (0, 1) looks from above.
    palette : {"paper", "colorblind"}
        Positive and negative weights: green and red as in the paper, or blue and orange.
    unit : str
        Of the positions, for the scale bar, for instance "µm".
    ax : Axes, optional

    Returns
    -------
    Axes
        In the coordinates of the positions; the panels are its `child_axes`.

    Notes
    -----
    Where neighbours lie below one another, a panel shows them a little from the side.
    """
    fitted = fitted_model(model)
    places, depth = _positions(fitted, view)
    edges, colours = Edges(fitted), palette_of(palette)
    zoomed = _zoomed(fitted, neurons, places, edges)
    panels = Panels(places, len(zoomed))
    ax = new_axes(ax, panels.size)
    panels.prepare(ax, unit)
    dots(ax, places, **_circles(len(places), colours[2]))
    largest = max(float(np.abs(edges.of(n)[1]).max(initial=0.0)) for n in zoomed) or 1.0
    for number, n in enumerate(panels.sorted(zoomed, places)):
        panel = panels.zoom(ax, number, places[n], _reach(places, edges, n), LETTERS[number])
        seen = _leaning(places, depth, n, edges.of(n)[0])
        dots(panel, seen, s=3, color=colours[2], alpha=0.35, linewidths=0)
        _draw_edges(panel, seen, n, edges, largest, colours)
        _title(panel, f"{LETTERS[number]}: {_name(fitted, n)}")
    panels.key(ax, largest, colours[:2])
    return ax


def _positions(fitted: FittedEmbedding, view: Any) -> tuple[Floats, Floats]:
    """Two coordinates of every entity (N, 2), and the one that the view hides (N,)."""
    if fitted.positions is None:
        raise DataError(
            "the model has no positions; fit it with positions= or a Dataset that has them"
        )
    p = fitted.positions.shape[1]
    if p < 2:
        raise DataError(f"positions need at least 2 coordinates to be drawn, these have {p}")
    axes = tuple(view)
    if len(axes) != 2 or len(set(axes)) != 2 or not all(one in range(p) for one in axes):
        raise ParameterError(f"view={view!r} must be two different numbers from 0 to {p - 1}")
    found = np.asarray(fitted.positions, dtype=np.float64)
    hidden = [one for one in range(p) if one not in axes]
    return found[:, list(axes)], found[:, hidden[0]] if hidden else np.zeros(len(found))


def _zoomed(fitted: FittedEmbedding, neurons: Any, places: Floats, edges: Edges) -> list[int]:
    if is_number(neurons):
        if not 1 <= neurons <= len(LETTERS):
            raise ParameterError(f"zoom on 1 to {len(LETTERS)} neurons, not {neurons}")
        return spread_out(places, edges.strength(), neurons)
    found: list[int] = codes_of(fitted.entities, neurons).tolist()
    if len(found) > len(LETTERS):
        raise ParameterError(f"zoom on at most {len(LETTERS)} neurons, not {len(found)}")
    return found


def spread_out(places: Floats, strength: Floats, n: int) -> list[int]:
    """The `n` strongest places that are a good part of the whole width apart, if there are such."""
    extent = float(np.linalg.norm(np.ptp(places, axis=0)))
    found: list[int] = []
    for apart in (0.35, 0.25, 0.15, 0.05, 0.0):
        left = np.array(strength, dtype=np.float64)
        found = []
        while len(found) < n and left.max() > -np.inf:
            found.append(int(left.argmax()))
            gaps = np.linalg.norm(places - places[found[-1]], axis=1)
            left[gaps < apart * extent] = -np.inf
            left[found[-1]] = -np.inf
        if len(found) == n:
            break
    return found


def _reach(places: Floats, edges: Edges, n: int) -> float:
    """Largest distance, in either direction, to a neighbour."""
    members, _ = edges.of(n)
    return float(np.abs(places[members] - places[n]).max(initial=0.0))


def _leaning(places: Floats, depth: Floats, n: int, members: Ints) -> Floats:
    """Places as seen a little from the side, if some neighbours would hide one another."""
    group = np.append(members, n)
    if len(np.unique(places[group], axis=0)) == len(group):
        return places
    gaps = np.linalg.norm(places[members] - places[n], axis=1)
    step = LEAN * gaps[gaps > 0].min(initial=np.inf)
    lower = (depth - depth[n]) / (np.ptp(depth[group]) or 1.0)
    step = step if np.isfinite(step) else 0.0
    return np.asarray(places + step * np.clip(lower, -1.0, 1.0)[:, None])


def _circles(n: int, colour: str) -> dict[str, Any]:
    size = float(np.clip(20_000 / n, 2.0, 30.0))
    line = {"facecolors": "none", "edgecolors": colour, "linewidths": 0.4 if n > 1000 else 0.8}
    return {"s": size, **line, "alpha": 0.8, "rasterized": n > 2000}


def _draw_edges(
    panel: Axes, places: Floats, n: int, edges: Edges, largest: float, colours: Any
) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    positive, negative, entity = colours
    members, weights = edges.of(n)
    gaps = np.linalg.norm(places[members] - places[n], axis=1)
    order = np.argsort(-gaps, kind="stable")  # an edge that lies along a longer one is on top
    members, weights = members[order], weights[order]
    shade = np.array([to_rgba(positive if w > 0 else negative) for w in weights]).reshape(-1, 4)
    shade[:, 3] = np.abs(weights) / largest
    lines = np.stack([np.broadcast_to(places[n], (len(members), 2)), places[members]], axis=1)
    panel.add_collection(LineCollection(list(lines), colors=shade, linewidths=1.8, zorder=2))
    dots(panel, places[members], s=9, color=entity, linewidths=0, zorder=3)
    dots(panel, places[[n]], s=55, color=entity, edgecolors="white", linewidths=1, zorder=4)


def _name(fitted: FittedEmbedding, n: int) -> str:
    labels = fitted.vocabulary
    return f"neuron {n}" if labels is None else label_text(labels[n], 20)


def _title(panel: Axes, text: str) -> None:
    """Above the panel: inside, it would hide neighbours."""
    where: dict[str, Any] = {"transform": panel.transAxes, "ha": "left", "va": "bottom"}
    panel.text(0.0, 1.015, text, fontsize=8, color=INK, path_effects=halo(), **where)
