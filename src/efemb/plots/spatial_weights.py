"""spatial_weights: positions of neurons, and the weights of some with their neighbors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import DataError, ParameterError
from efemb.fitted.neighbor_weights import edge_weights
from efemb.plots.canvas import (
    INK,
    draw_dots,
    find_palette,
    label_text,
    load_matplotlib,
    new_axes,
    outline,
)
from efemb.plots.interactive import draw_weights, is_interactive
from efemb.plots.model_vectors import find_codes, get_fitted, is_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from efemb.fitted.embedding import FittedEmbedding


LETTERS = "ABCDEFGHIJKL"
LEAN = 0.3  # shift of the deepest neurons, relative to the distance to the nearest neighbor


def spatial_weights(
    model: Any,
    neurons: Any = 3,
    *,
    view: tuple[int, int] = (0, 1),
    palette: str = "paper",
    unit: str = "",
    backend: str = "matplotlib",
    ax: Axes | None = None,
) -> Any:
    """Draw all entities at their positions, and zoom in on some of them with their contexts.

    The color of an edge from entity n to a neighbor m is the sign of rho_n . alpha_m, and its
    opacity the magnitude, on one scale for all panels.

    Parameters
    ----------
    model : fitted estimator or FittedEmbedding
        With positions, and a context that is fixed for each entity (`Neighbors`, `Graph`).
    neurons : int or list of labels, default=3
        Number of neurons to zoom in on, at most 12, or a list of them. A number selects those
        with the largest weights that are far enough apart.
    view : pair of int, default=(0, 1)
        Coordinates drawn to the right and upwards; (0, 1) looks from above.
    palette : {"paper", "colorblind"}, default="paper"
        Positive and negative weights: green and red as in the paper, or blue and orange.
    unit : str, default=""
        Unit of the positions, for the scale bar, such as "µm".
    backend : {"matplotlib", "plotly"}, default="matplotlib"
        plotly draws three coordinates, if available, and needs the extra `explore`.
    ax : Axes, optional

    Returns
    -------
    Axes, or plotly Figure
        In the coordinates of the positions; the panels are its `child_axes`.

    Notes
    -----
    If neighbors hide one another, a panel shows them slightly from the side.
    """
    fitted = get_fitted(model)
    points, depth = _project_positions(fitted, view)
    edges, colors = Edges(fitted), find_palette(palette)
    zoomed = _choose_zoomed(fitted, neurons, points, edges)
    if is_interactive(backend, ax):
        coordinates = np.asarray(fitted.positions, dtype=np.float64)
        shown = coordinates[:, :3] if coordinates.shape[1] > 2 else points
        return draw_weights(shown, fitted.entities, [(n, *edges.of(n)) for n in zoomed], colors)
    panels = Panels(points, len(zoomed))
    ax = new_axes(ax, panels.size)
    panels.prepare(ax, unit)
    draw_dots(ax, points, **_style_circles(len(points), colors[2]))
    largest = max(float(np.abs(edges.of(n)[1]).max(initial=0.0)) for n in zoomed) or 1.0
    for number, n in enumerate(panels.sorted(zoomed, points)):
        panel = panels.zoom(
            ax, number, points[n], _measure_reach(points, edges, n), LETTERS[number]
        )
        tilted = _tilt(points, depth, n, edges.of(n)[0])
        draw_dots(panel, tilted, s=3, color=colors[2], alpha=0.35, linewidths=0)
        _draw_edges(panel, tilted, n, edges, largest, colors)
        _title(panel, f"{LETTERS[number]}: {_find_name(fitted, n)}")
    panels.key(ax, largest, colors[:2])
    return ax


def _project_positions(fitted: FittedEmbedding, view: Any) -> tuple[Floats, Floats]:
    """Two coordinates of every entity (N, 2), and the one that the view hides (N,)."""
    if fitted.positions is None:
        raise DataError(
            "the model has no positions; fit it with positions=, or to a Dataset that has them"
        )
    p = fitted.positions.shape[1]
    if p < 2:
        raise DataError(f"positions must have at least 2 coordinates to be drawn, got {p}")
    axes = tuple(view)
    if len(axes) != 2 or len(set(axes)) != 2 or not set(axes) <= set(range(p)):
        raise ParameterError(f"view={view!r} must be two distinct integers from 0 to {p - 1}")
    positions = np.asarray(fitted.positions, dtype=np.float64)
    hidden = [coordinate for coordinate in range(p) if coordinate not in axes]
    return positions[:, list(axes)], positions[:, hidden[0]] if hidden else np.zeros(len(positions))


def _choose_zoomed(
    fitted: FittedEmbedding, neurons: Any, points: Floats, edges: Edges
) -> list[int]:
    if is_number(neurons):
        if not 1 <= neurons <= len(LETTERS):
            raise ParameterError(f"neurons must be 1 to {len(LETTERS)}, got {neurons}")
        return choose_spread_out(points, edges.strength(), neurons)
    codes: list[int] = find_codes(fitted.entities, neurons).tolist()
    if len(codes) > len(LETTERS):
        raise ParameterError(f"at most {len(LETTERS)} neurons can be shown, got {len(codes)}")
    return codes


def choose_spread_out(points: Floats, strength: Floats, n: int) -> list[int]:
    """The `n` strongest points that are far apart, relative to the whole extent, if possible."""
    extent = float(np.linalg.norm(np.ptp(points, axis=0)))
    strongest: list[int] = []
    for apart in (0.35, 0.25, 0.15, 0.05, 0.0):
        remaining = np.array(strength, dtype=np.float64)
        strongest = []
        while len(strongest) < n and remaining.max() > -np.inf:
            strongest.append(int(remaining.argmax()))
            gaps = np.linalg.norm(points - points[strongest[-1]], axis=1)
            remaining[gaps < apart * extent] = -np.inf
            remaining[strongest[-1]] = -np.inf
        if len(strongest) == n:
            break
    return strongest


def _measure_reach(points: Floats, edges: Edges, n: int) -> float:
    """Largest distance to a neighbor in either direction."""
    members, _ = edges.of(n)
    return float(np.abs(points[members] - points[n]).max(initial=0.0))


def _tilt(points: Floats, depth: Floats, n: int, members: Ints) -> Floats:
    """Points as seen slightly from the side, if some neighbors would hide one another."""
    group = np.append(members, n)
    if len(np.unique(points[group], axis=0)) == len(group):
        return points
    gaps = np.linalg.norm(points[members] - points[n], axis=1)
    step = LEAN * gaps[gaps > 0].min(initial=np.inf)
    lower = (depth - depth[n]) / (np.ptp(depth[group]) or 1.0)
    step = step if np.isfinite(step) else 0.0
    return np.asarray(points + step * np.clip(lower, -1.0, 1.0)[:, None])


def _style_circles(n: int, color: str) -> dict[str, Any]:
    size = float(np.clip(20_000 / n, 2.0, 30.0))
    line = {"facecolors": "none", "edgecolors": color, "linewidths": 0.4 if n > 1000 else 0.8}
    return {"s": size, **line, "alpha": 0.8, "rasterized": n > 2000}


def _draw_edges(
    panel: Axes, points: Floats, n: int, edges: Edges, largest: float, colors: Any
) -> None:
    mpl = load_matplotlib()
    positive, negative, entity = colors
    members, weights = edges.of(n)
    gaps = np.linalg.norm(points[members] - points[n], axis=1)
    order = np.argsort(-gaps, kind="stable")  # short edges are drawn over long ones
    members, weights = members[order], weights[order]
    colors = [mpl.colors.to_rgba(positive if weight > 0 else negative) for weight in weights]
    shade = np.array(colors).reshape(-1, 4)
    shade[:, 3] = np.abs(weights) / largest
    lines = np.stack([np.broadcast_to(points[n], (len(members), 2)), points[members]], axis=1)
    bundle = mpl.collections.LineCollection(list(lines), colors=shade, linewidths=1.8, zorder=2)
    panel.add_collection(bundle)
    draw_dots(panel, points[members], s=9, color=entity, linewidths=0, zorder=3)
    draw_dots(panel, points[[n]], s=55, color=entity, edgecolors="white", linewidths=1, zorder=4)


def _find_name(fitted: FittedEmbedding, n: int) -> str:
    labels = fitted.vocabulary
    return f"neuron {n}" if labels is None else label_text(labels[n], 20)


def _title(panel: Axes, text: str) -> None:
    """Write the title above the panel, where it does not hide neighbors."""
    where: dict[str, Any] = {"transform": panel.transAxes, "ha": "left", "va": "bottom"}
    panel.text(0.0, 1.015, text, fontsize=8, color=INK, path_effects=outline(), **where)


# -- edges ----------------------------------------------------------------------------------------


class Edges:
    """Members of each entity's context in the same row, and their weights rho_n . alpha_m.

    ptr : (N + 1,);  members, weights : (edges,), those of n are at ptr[n]:ptr[n + 1]
    """

    def __init__(self, fitted: FittedEmbedding) -> None:
        owner, member, offset, weight = edge_weights(fitted)
        order = np.argsort(owner, kind="stable")
        order = order[offset[order] == 0]
        if len(order) == 0:
            raise DataError("nothing to draw: no context contains another entity of the same row")
        self.members, self.weights = member[order], weight[order]
        self.ptr = np.searchsorted(owner[order], np.arange(fitted.n_entities + 1))

    def of(self, entity: int) -> tuple[Ints, Floats]:
        """Members of one context and their weights."""
        context = slice(self.ptr[entity], self.ptr[entity + 1])
        return self.members[context], self.weights[context]

    def strength(self) -> Floats:
        """Euclidean norm of each entity's weights."""
        squares = np.append(0.0, np.cumsum(self.weights**2))
        return np.asarray(np.sqrt(np.maximum(np.diff(squares[self.ptr]), 0.0)))


# -- panels ---------------------------------------------------------------------------------------


FRAME = "#666666"
LARGEST_FRAME = 0.12  # half of its side, relative to the map; larger ones would overlap


class Panels:
    """Layout, in data coordinates, of the map of all points and the panels that zoom in.

    The panels are to the right of the map, or below it if the map is wide, inside the same Axes, so
    that the proportions are the same wherever it is drawn.
    """

    def __init__(self, points: Floats, n: int) -> None:
        low, high = points.min(axis=0), points.max(axis=0)
        width, height = np.maximum(high - low, 1e-9 + 0.05 * np.max(high - low))
        margin = 0.03 * max(width, height)
        self.low, self.width, self.height = low - margin, width + 2 * margin, height + 2 * margin
        self.below = self.width > 1.5 * self.height
        self._place(n)

    def _place(self, n: int) -> None:
        """Squares in rows (below) or columns (right) of at most three, or four below."""
        longer = self.width if self.below else self.height
        in_line = min(n, 4 if self.below else 3)
        self.lines = lines = -(-n // in_line)
        gap = 0.04 * longer
        side = (longer - (in_line - 1) * gap) / max(in_line, 3 if self.below else 2)
        self.side, step = side, side + gap
        start = (longer - in_line * side - (in_line - 1) * gap) / 2
        self.corners = []
        for number in range(n):
            line, turn = divmod(number, in_line)
            if self.below:
                x, y = start + turn * step, -(line + 1) * step
            else:
                x, y = self.width + gap + line * step, self.height - start - side - turn * step
            self.corners.append((self.low[0] + x, self.low[1] + y))
        deep = lines * step if self.below else 0.0
        self.foot = self.low[1] - deep - 0.1 * longer
        self.right = self.low[0] + self.width + (0.0 if self.below else gap + lines * step)

    @property
    def size(self) -> tuple[float, float]:
        """Size in inches of a figure with these proportions."""
        width, height = self.right - self.low[0], self.low[1] + self.height - self.foot
        scale = min(7.5 / width, 8.5 / height)
        return float(width * scale), float(height * scale)

    def prepare(self, ax: Axes, unit: str) -> None:
        """Limits around everything, one scale, no axes but a scale bar."""
        ax.set_aspect("equal")
        ax.set(xlim=(self.low[0], self.right), ylim=(self.foot, self.low[1] + self.height))
        ax.set_axis_off()
        length = round_down(0.25 * self.width)
        x = self.low[0] + 0.03 * self.width
        y = self.foot + 0.35 * self._strip()
        ax.plot([x, x + length], [y, y], color=INK, linewidth=2, solid_capstyle="butt")
        text = f"{length:g} {unit}".strip()
        ax.annotate(
            text,
            (x + length / 2, y),
            (0, -3),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=8,
            color=INK,
        )

    def _strip(self) -> float:
        """Height of the strip at the bottom, with scale bar and key."""
        lowest = min(self.low[1], *(y for _, y in self.corners))
        return float(lowest - self.foot)

    def sorted(self, zoomed: list[int], points: Floats) -> list[int]:
        """Neurons in the order of the panels, so that few connecting lines cross."""
        if self.below:
            return sorted(zoomed, key=lambda n: points[n, 0])
        return sorted(zoomed, key=lambda n: -points[n, 1])

    def zoom(self, ax: Axes, number: int, center: Floats, reach: float, letter: str) -> Axes:
        """A square Axes around `center`, which is marked on the map, with a frame if one fits."""
        half = 1.15 * reach if reach > 0 else 0.05 * max(self.width, self.height)
        panel = ax.inset_axes((*self.corners[number], self.side, self.side), transform=ax.transData)
        panel.set(xlim=(center[0] - half, center[0] + half), xticks=[])
        panel.set(ylim=(center[1] - half, center[1] + half), yticks=[])
        for spine in panel.spines.values():
            spine.set_color(FRAME)
        size = np.array([self.width, self.height])
        fits = (center - half >= self.low).all() and (center + half <= self.low + size).all()
        if fits and half < LARGEST_FRAME * max(size):
            self._frame(ax, number, center, half)
        draw_dots(ax, center[None], s=24, color=INK, zorder=7)  # above the halo of its letter
        _letter(ax, letter, (center[0], center[1]))
        return panel

    def _frame(self, ax: Axes, number: int, center: Floats, half: float) -> None:
        """Frame the zoomed area, and connect its near corners with those of its panel."""
        look: dict[str, Any] = {"color": FRAME, "linewidth": 0.7, "alpha": 0.9, "zorder": 5}
        (left, low), (right, high) = center - half, center + half
        ax.plot([left, right, right, left, left], [low, low, high, high, low], **look)
        if self.lines > 1:  # connecting lines would run below other panels
            return
        x, y = self.corners[number]
        top = y + self.side
        ends = [((right, x), (high, top)), ((right, x), (low, y))]
        if self.below:
            ends = [((left, x), (low, top)), ((right, x + self.side), (low, top))]
        for across, up in ends:
            ax.plot(across, up, **look)

    def key(self, ax: Axes, largest: float, colors: tuple[str, str]) -> None:
        """A color bar from the most negative to the most positive weight."""
        to_rgba = load_matplotlib().colors.to_rgba
        width, height = 0.25 * (self.right - self.low[0]), 0.22 * self._strip()
        corner = (self.right - 1.12 * width, self.foot + 0.4 * self._strip())
        key = ax.inset_axes((*corner, width, height), transform=ax.transData)
        scale = np.linspace(-1.0, 1.0, 201)
        positive, negative = (np.array(to_rgba(color)) for color in colors)
        shade = np.where(scale[:, None] > 0, positive, negative)
        shade[:, 3] = np.abs(scale)
        where = (-largest, largest, 0.0, 1.0)
        key.imshow(shade[None], extent=where, aspect="auto", interpolation="nearest")
        key.set_yticks([])
        key.tick_params(labelsize=7, length=2, color=FRAME)
        key.set_xticks([-largest, 0.0, largest], [f"−{largest:.2g}", "0", f"+{largest:.2g}"])
        text = r"weight $\rho_n \cdot \alpha_m$ "
        key.text(-0.02, 0.5, text, transform=key.transAxes, ha="right", va="center", fontsize=8)
        for spine in key.spines.values():
            spine.set_color(FRAME)
            spine.set_linewidth(0.6)


def _letter(ax: Axes, letter: str, point: tuple[float, float]) -> None:
    look: dict[str, Any] = {"fontsize": 10, "color": INK, "ha": "right", "va": "bottom"}
    away: dict[str, Any] = {"xytext": (-2, 0), "textcoords": "offset points"}
    ax.annotate(letter, point, **away, **look, path_effects=outline(), zorder=6)


def round_down(most: float) -> float:
    """The largest 1, 2 or 5 times a power of ten up to `most`."""
    power = 10.0 ** np.floor(np.log10(most))
    return float(max(step * power for step in (1, 2, 5) if step * power <= most))
