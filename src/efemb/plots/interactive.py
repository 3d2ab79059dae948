"""The plots as plotly figures: the same numbers, with labels that appear on hover."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import MissingExtraError, ParameterError, check_known
from efemb.plots.canvas import GRAY, HUES, INK

BACKENDS = ("matplotlib", "plotly")
SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")


def is_interactive(backend: Any, ax: Any) -> bool:
    """Whether the backend is plotly; only matplotlib can draw into Axes."""
    check_known("backend", backend, BACKENDS)
    if backend == "plotly" and ax is not None:
        raise ParameterError("ax= is for backend='matplotlib'; a plotly figure is always new")
    return bool(backend == "plotly")


def texts(labels: Iterable[object], width: int = 60) -> list[str]:
    """Labels escaped so that plotly shows them literally instead of interpreting tags.

    Texts for matplotlib have escaped dollars, which plotly does not need.
    """
    lines = (" ".join(str(label).replace(r"\$", "$").split()) for label in labels)
    return [escape(line if len(line) <= width else line[: width - 1] + "…") for line in lines]


def figure(traces: Sequence[dict[str, Any]], **layout: Any) -> Any:
    """A plotly Figure in the style of the other plots."""
    try:
        graphs = import_module("plotly.graph_objects")
    except ImportError as error:
        raise MissingExtraError(
            "backend='plotly' needs plotly: pip install 'efemb[explore]'"
        ) from error
    axis = {"zeroline": False, "showline": True, "linecolor": GRAY, "automargin": True}
    style = {
        "template": "plotly_white",
        "font": {"color": INK, "size": 12},
        "margin": {"l": 10, "r": 10, "t": 40, "b": 10},
        "colorway": list(HUES),
    }
    drawn = graphs.Figure({"data": list(traces), "layout": style})
    drawn.update_xaxes(**axis)
    drawn.update_yaxes(**axis)
    return drawn.update_layout(**layout)


def draw_map(
    points: Floats, axes: Sequence[str], labels: Any, groups: Sequence[tuple[str, str, Ints]]
) -> Any:
    """Points of groups (name, color, members), with names on hover."""
    names = np.array(texts(labels), dtype=object)
    traces = [
        {
            "type": "scattergl",
            "mode": "markers",
            "name": "".join(texts([name])),
            "x": points[members, 0],
            "y": points[members, 1],
            "text": names[members],
            "hoverinfo": "text",
            "marker": {"color": color, "size": 4 if len(points) > 2000 else 8, "opacity": 0.75},
        }
        for name, color, members in groups
    ]
    return figure(
        traces,
        xaxis_title=axes[0],
        yaxis={"title": axes[1], "scaleanchor": "x"},
        showlegend=any(name for name, _, _ in groups),
    )


def draw_bars(
    names: Sequence[str],
    values: Floats,
    colors: Sequence[str],
    *,
    title: str = "",
    x_title: str = "",
    bounds: Floats | None = None,
) -> Any:
    """Horizontal bars, the first on top, with intervals (2, n) if there are any."""
    bar: dict[str, Any] = {
        "type": "bar",
        "orientation": "h",
        "x": values,
        "y": list(range(len(names))),
        "text": texts(names),
        "textposition": "none",
        "hovertemplate": "%{text}: %{x:.4g}<extra></extra>",
        "marker": {"color": list(colors)},
    }
    if bounds is not None:
        bar["error_x"] = {
            "type": "data",
            "symmetric": False,
            "array": bounds[1] - values,
            "arrayminus": values - bounds[0],
            "color": INK,
        }
    ticks = {"tickvals": list(range(len(names))), "ticktext": texts(names, 40)}
    return figure(
        [bar],
        title=escape(title),
        xaxis={"title": x_title, "zeroline": True},
        yaxis={**ticks, "autorange": "reversed", "showline": False},
        height=90 + 24 * len(names),
    )


def draw_curves(
    curves: Sequence[tuple[str, Floats]],
    *,
    x_title: str,
    y_title: str,
    errors: Sequence[Floats] | None = None,
    levels: Sequence[tuple[str, float]] = (),
) -> Any:
    """Lines (2, n) by name with errors, and horizontal lines at levels."""
    traces = []
    for number, (name, curve) in enumerate(curves):
        symbol = SYMBOLS[number % len(SYMBOLS)]
        trace: dict[str, Any] = {
            "type": "scatter",
            "mode": "lines+markers",
            "name": escape(name),
            "x": curve[0],
            "y": curve[1],
            "marker": {"symbol": symbol},
        }
        if errors is not None:
            trace["error_y"] = {"type": "data", "array": errors[number]}
        traces.append(trace)
    drawn = figure(traces, xaxis_title=x_title, yaxis_title=y_title)
    for name, level in levels:
        drawn.add_hline(y=level, line={"color": INK, "dash": "dash"}, annotation_text=escape(name))
    return drawn


def draw_cosines(names: Sequence[str], cosines: Floats) -> Any:
    """A heat map from -1 to 1."""
    ticks = list(range(len(names)))
    shown = {"tickvals": ticks, "ticktext": texts(names, 28), "showline": False}
    trace = {
        "type": "heatmap",
        "z": cosines,
        "zmin": -1.0,
        "zmax": 1.0,
        "colorscale": "RdBu",
        "colorbar": {"title": "cosine"},
        "hovertemplate": "%{z:.3f}<extra></extra>",
    }
    side = min(900, 250 + 16 * len(names))
    yaxis = {**shown, "autorange": "reversed", "scaleanchor": "x"}
    return figure([trace], xaxis=shown, yaxis=yaxis, width=side + 80, height=side)


def draw_weights(
    points: Floats, labels: Any, edges: Sequence[tuple[int, Ints, Floats]], colors: Sequence[str]
) -> Any:
    """All entities at their positions (2 or 3 coordinates), and the weighted edges of some."""
    solid = points.shape[1] > 2
    kind = "scatter3d" if solid else "scatter"
    largest = max((float(np.abs(weights).max(initial=0.0)) for _, _, weights in edges)) or 1.0
    traces = []
    for owner, members, weights in edges:
        for member, weight in zip(members.tolist(), weights.tolist(), strict=True):
            ends = points[[owner, member]].T
            color = colors[0] if weight > 0 else colors[1]
            line = {"color": color, "width": 1.0 + 4.0 * abs(weight) / largest}
            traces.append(_place(kind, ends, mode="lines", line=line, hoverinfo="skip"))
    marker = {"size": 3 if solid else 5, "color": colors[2], "opacity": 0.6}
    dots = _place(
        kind, points.T, mode="markers", text=texts(labels), hoverinfo="text", marker=marker
    )
    drawn = figure([dots, *traces], showlegend=False)
    drawn.update_xaxes(visible=False).update_yaxes(visible=False)
    if solid:
        return drawn.update_layout(scene={"aspectmode": "data"})
    return drawn.update_layout(yaxis={"scaleanchor": "x", "visible": False})


def _place(kind: str, coordinates: Floats, **look: Any) -> dict[str, Any]:
    """A trace at coordinates (2 or 3, n)."""
    return {"type": kind, **dict(zip("xyz", coordinates, strict=False)), **look}
