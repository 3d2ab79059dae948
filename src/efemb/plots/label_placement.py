"""Labels beside points, in order of priority and without overlap."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.plots.canvas import (
    apply_layout,
    find_figure,
    label_text,
    load_matplotlib,
    new_figure,
    outline,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Possible positions of a label: the direction from its point, and the corner of the text there.
SIDES = (
    ((1, 0), "left", "center"),
    ((-1, 0), "right", "center"),
    ((0, 1), "center", "bottom"),
    ((0, -1), "center", "top"),
    ((0.7, 0.7), "left", "bottom"),
    ((-0.7, 0.7), "right", "bottom"),
    ((0.7, -0.7), "left", "top"),
    ((-0.7, -0.7), "right", "top"),
)
GAP = 5.0  # points between a label and the middle of its mark
ROOM = 1.5  # free points around a label
RING = 1.5  # additional points around a labeled mark: half the width of its ring
WIDTH = 80  # characters; only longer labels are shortened
FINE = 600  # pixels per inch for measuring texts
SNAP = 1.09  # factor by which a text may become wider at a lower resolution
STEPS = (0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5)  # half lines from the center of a group
BOLD = 1.15  # width of bold letters relative to normal ones
CONTRAST = 4.5  # of a text and its background
TRIES = 12  # candidates per requested label


def place_labels(
    ax: Axes,
    points: Floats,
    names: Any,
    order: Ints,
    most: int,
    *,
    size: float,
    taken: Floats | None = None,
) -> Ints:
    """Write up to `most` names beside their points, in `order`, where there is room.

    points : (N, 2) in data coordinates;  names : one per point;  order : points by priority
    taken : (boxes, 4) in pixels, where nothing may be written
    No name covers another name or the mark of one. Of the free sides, the one that covers the
    fewest points is used; a name that fits on no side is omitted. Boxes are measured in the current
    layout: set sizes and limits before. Returns the points whose names were written.
    """
    apply_layout(ax)
    pixels = ax.transData.transform(points)
    unit = find_figure(ax).dpi / 72.0
    page = ax.get_window_extent()
    frame = np.array([page.x0, page.y0, page.x1, page.y1])
    measure, taken = make_ruler(size), np.empty((0, 4)) if taken is None else taken
    reach = RING * unit * np.array([-1, -1, 1, 1])
    written: list[int] = []
    for point in order[: TRIES * most].tolist():
        if len(written) == most:
            break
        text = label_text(names[point], WIDTH)
        boxes = _outline_boxes(pixels[point], measure(text), unit)
        clear = _find_free(boxes, taken, frame)
        clear &= _count_inside(boxes + reach, pixels[written]) == 0
        free = np.flatnonzero(clear)
        if len(free) == 0 or _count_inside(taken + reach, pixels[[point]]).any():
            continue
        side = int(free[np.argmin(_count_inside(boxes[free], pixels))])
        taken = np.vstack([taken, boxes[side]])
        _write(ax, text, points[point], side, size)
        written.append(point)
    return np.array(written, dtype=np.int64)


def place_names(
    ax: Axes, points: Floats, centers: Floats, names: list[str], colors: list[str], *, size: float
) -> Floats:
    """Write the names of groups in their colors near their centers.

    Of the free places above and below a center, the one that covers the fewest points is used, and
    of those the nearest. A name without room is omitted. Returns the boxes of the names, in pixels.
    """
    apply_layout(ax)
    unit = find_figure(ax).dpi / 72.0
    page = ax.get_window_extent()
    frame = np.array([page.x0, page.y0, page.x1, page.y1])
    pixels = ax.transData.transform(points)
    reach = GAP * unit * np.array([-1, -1, 1, 1])  # the marks of points, and a little room
    measure, occupied = make_ruler(size), np.empty((0, 4))
    for center, name, color in zip(centers, names, colors, strict=True):
        x, y = ax.transData.transform(center)
        half = np.array(measure(name)) * unit * BOLD / 2
        x = np.clip(x, frame[0] + half[0], frame[2] - half[0])
        middles = np.column_stack([np.full(len(STEPS), x), y + half[1] * np.array(STEPS)])
        boxes = np.hstack([middles - half, middles + half])
        free = np.flatnonzero(_find_free(boxes, occupied, frame))
        if not len(free):
            continue
        best = free[np.argmin(_count_inside(boxes[free] + reach, pixels))]
        occupied = np.vstack([occupied, boxes[best]])
        _write_name(ax, name, ax.transData.inverted().transform(middles[best]), color, size)
    return occupied


def _write_name(ax: Axes, name: str, point: Floats, color: str, size: float) -> None:
    note = ax.annotate(
        name,
        (float(point[0]), float(point[1])),
        ha="center",
        va="center",
        fontsize=size,
        fontweight="bold",
        color=_readable(color, ax.get_facecolor()),
        annotation_clip=False,
        path_effects=outline(ax.get_facecolor(), 3.0, 0.9),
        zorder=6,
    )
    note.set_in_layout(False)


def _readable(color: str, background: Any) -> tuple[float, float, float]:
    """The color, darker or lighter by as much as a text on the background needs (WCAG 2, AA)."""
    to_rgb = load_matplotlib().colors.to_rgb
    behind = _luminance(to_rgb(background))
    end = np.zeros(3) if behind > 0.18 else np.ones(3)  # black, or white on dark backgrounds
    for share in np.linspace(0.0, 1.0, 21):
        mixed = (1 - share) * np.asarray(to_rgb(color)) + share * end
        low, high = sorted((behind, _luminance(mixed)))
        if (high + 0.05) / (low + 0.05) >= CONTRAST:
            break
    return (float(mixed[0]), float(mixed[1]), float(mixed[2]))


def _luminance(rgb: Any) -> float:
    """Relative luminance of an sRGB color."""
    channels = np.asarray(rgb, dtype=float)
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def make_ruler(size: float) -> Callable[[str], tuple[float, float]]:
    """A function that returns the width and height of a text in points."""
    # At a low resolution, letters snap to the pixel grid and texts change their width.
    probe = load_matplotlib().text.Text(0, 0, "", fontsize=size)
    probe.set_figure(new_figure((0.1, 0.1), dpi=FINE))

    def measure(text: str) -> tuple[float, float]:
        probe.set_text(text)
        extent = probe.get_window_extent()
        return SNAP * extent.width * 72 / FINE, extent.height * 72 / FINE

    return measure


def _outline_boxes(point: Floats, extent: tuple[float, float], unit: float) -> Floats:
    """x0, y0, x1, y1 of the text on each side of a point, including its margin."""
    width, height = extent[0] * unit, extent[1] * unit
    shift = {"left": 0.0, "center": -0.5, "right": -1.0}
    low = {"bottom": 0.0, "center": -0.5, "top": -1.0}
    boxes = np.empty((len(SIDES), 4))
    for box, ((dx, dy), across, up) in zip(boxes, SIDES, strict=True):
        x = point[0] + dx * GAP * unit + shift[across] * width
        y = point[1] + dy * GAP * unit + low[up] * height
        room = ROOM * unit
        box[:] = x - room, y - room, x + width + room, y + height + room
    return boxes


def _find_free(boxes: Floats, occupied: Floats, frame: Floats) -> Any:
    """Which boxes are inside the frame and overlap no box in `occupied`."""
    inside = (boxes[:, :2] >= frame[:2]).all(axis=1) & (boxes[:, 2:] <= frame[2:]).all(axis=1)
    low, high = boxes[:, None, :2], boxes[:, None, 2:]
    apart = np.any((low >= occupied[:, 2:]) | (high <= occupied[:, :2]), axis=2)
    return inside & apart.all(axis=1)


def _count_inside(boxes: Floats, pixels: Floats) -> Ints:
    above = (pixels[None] > boxes[:, None, :2]).all(axis=2)
    below = (pixels[None] < boxes[:, None, 2:]).all(axis=2)
    return np.asarray((above & below).sum(axis=1))


def _write(ax: Axes, text: str, point: Floats, side: int, size: float) -> None:
    (dx, dy), across, up = SIDES[side]
    note = ax.annotate(
        text,
        (float(point[0]), float(point[1])),
        xytext=(dx * GAP, dy * GAP),
        textcoords="offset points",
        ha=across,
        va=up,
        fontsize=size,
        annotation_clip=False,
        path_effects=outline(ax.get_facecolor(), 2.2, 0.85),
        zorder=5,
    )
    note.set_in_layout(False)  # it is inside the Axes, which must not move any more
