"""Panels: one picture of everything, squares beside it that zoom in, a scale bar and a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb.plots.canvas import INK, dots
from efemb.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FRAME = "#666666"
LARGEST_FRAME = 0.12  # half of its side, part of the map; larger ones would hide one another


class Panels:
    """Places, in data coordinates, of the map of all points and of the squares that zoom in.

    The squares stand right of the map, or below it where the map is wide, inside the same Axes, so
    that the whole keeps its proportions wherever it is drawn.
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
            line, place = divmod(number, in_line)
            if self.below:
                x, y = start + place * step, -(line + 1) * step
            else:
                x, y = self.width + gap + line * step, self.height - start - side - place * step
            self.corners.append((self.low[0] + x, self.low[1] + y))
        deep = lines * step if self.below else 0.0
        self.foot = self.low[1] - deep - 0.1 * longer
        self.right = self.low[0] + self.width + (0.0 if self.below else gap + lines * step)

    @property
    def size(self) -> tuple[float, float]:
        """Inches of a figure of these proportions."""
        width, height = self.right - self.low[0], self.low[1] + self.height - self.foot
        scale = min(7.5 / width, 8.5 / height)
        return float(width * scale), float(height * scale)

    def prepare(self, ax: Axes, unit: str) -> None:
        """Limits around everything, one scale, no axes but a scale bar."""
        ax.set_aspect("equal")
        ax.set(xlim=(self.low[0], self.right), ylim=(self.foot, self.low[1] + self.height))
        ax.set_axis_off()
        length = round_number(0.25 * self.width)
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
        """Height of the foot, where scale bar and key are."""
        lowest = min(self.low[1], *(y for _, y in self.corners))
        return float(lowest - self.foot)

    def sorted(self, zoomed: list[int], points: Floats) -> list[int]:
        """In the order of the squares, so that few connecting lines cross."""
        if self.below:
            return sorted(zoomed, key=lambda n: points[n, 0])
        return sorted(zoomed, key=lambda n: -points[n, 1])

    def zoom(self, ax: Axes, number: int, centre: Floats, reach: float, letter: str) -> Axes:
        """A square Axes around `centre`, which is marked on the map: with a frame if one fits."""
        half = 1.15 * reach if reach > 0 else 0.05 * max(self.width, self.height)
        panel = ax.inset_axes((*self.corners[number], self.side, self.side), transform=ax.transData)
        panel.set(xlim=(centre[0] - half, centre[0] + half), xticks=[])
        panel.set(ylim=(centre[1] - half, centre[1] + half), yticks=[])
        for spine in panel.spines.values():
            spine.set_color(FRAME)
        size = np.array([self.width, self.height])
        fits = (centre - half >= self.low).all() and (centre + half <= self.low + size).all()
        if fits and half < LARGEST_FRAME * max(size):
            found: Any = ax.indicate_inset_zoom(panel, edgecolor=FRAME, linewidth=0.7, alpha=0.9)
            if self.lines > 1:  # connecting lines would run below other panels
                hide_connectors(found)
        dots(ax, centre[None], s=24, color=INK, zorder=7)  # above the halo of its letter
        _letter(ax, letter, (centre[0], centre[1]))
        return panel

    def key(self, ax: Axes, largest: float, colours: tuple[str, str]) -> None:
        """What colours and opacity mean: a strip from the most negative to the most positive."""
        from matplotlib.colors import to_rgba

        width, height = 0.25 * (self.right - self.low[0]), 0.22 * self._strip()
        corner = (self.right - 1.12 * width, self.foot + 0.4 * self._strip())
        key = ax.inset_axes((*corner, width, height), transform=ax.transData)
        scale = np.linspace(-1.0, 1.0, 201)
        positive, negative = (np.array(to_rgba(colour)) for colour in colours)
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


def hide_connectors(indicator: Any) -> None:
    """Leave the frame of a zoomed part alone; older matplotlib gives a pair (frame, lines)."""
    lines = indicator[1] if isinstance(indicator, tuple) else indicator.connectors
    for line in lines or ():
        line.set_visible(False)


def halo() -> list[Any]:
    """A white edge: text stays readable where lines cross it."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=3, foreground="white")]


def _letter(ax: Axes, letter: str, point: tuple[float, float]) -> None:
    look: dict[str, Any] = {"fontsize": 10, "color": INK, "ha": "right", "va": "bottom"}
    away: dict[str, Any] = {"xytext": (-2, 0), "textcoords": "offset points"}
    ax.annotate(letter, point, **away, **look, path_effects=halo(), zorder=6)


def round_number(most: float) -> float:
    """The largest 1, 2 or 5 times a power of ten that is not above `most`."""
    power = 10.0 ** np.floor(np.log10(most))
    return float(max(step * power for step in (1, 2, 5) if step * power <= most))
