"""Axes created without pyplot, and drawing functions that all plots share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.errors import InputTypeError, MissingExtraError, check_known

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito (2008): distinguishable with any color vision; black is left for text.
HUES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GRAY = "#999999"
INK = "#333333"
# Colors of positive values, of negative values, and of entities, which have no sign.
PALETTES = {
    "paper": ("#1a9641", "#d7191c", "#2b6cb0"),
    "colorblind": ("#0072B2", "#D55E00", "#666666"),
}


# All of matplotlib that is used here; pyplot is not, because it keeps every figure.
_SUBMODULES = (
    *("axes", "backends.backend_agg", "collections", "colors", "figure", "lines", "patches"),
    *("patheffects", "text", "ticker", "transforms"),
)


def load_matplotlib() -> Any:
    """matplotlib with the submodules that plots use, imported when first needed."""
    try:
        for name in _SUBMODULES:
            import_module(f"matplotlib.{name}")
        return import_module("matplotlib")
    except ImportError as error:
        raise MissingExtraError("plots need matplotlib: pip install 'efemb[plot]'") from error


def new_figure(size: tuple[float, float], **options: Any) -> Figure:
    """A figure of `size` inches that pyplot does not manage."""
    mpl = load_matplotlib()
    figure: Figure = mpl.figure.Figure(figsize=size, **options)
    # Agg measures texts quickly; `savefig` still writes any format.
    mpl.backends.backend_agg.FigureCanvasAgg(figure)
    return figure


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """`ax`, or the Axes of a new figure of `size` inches."""
    axes_type: type[Axes] = load_matplotlib().axes.Axes
    if ax is None:
        return new_figure(size, layout="constrained").add_subplot()
    if not isinstance(ax, axes_type):
        raise InputTypeError(f"ax must be matplotlib Axes or None, not {type(ax).__name__}")
    return ax


def find_figure(ax: Axes) -> Figure:
    """The top-level figure of Axes, even if they are in a subfigure."""
    figure: Any = ax.figure
    return figure.figure  # type: ignore[no-any-return]


def apply_layout(ax: Axes) -> None:
    """Let the layout engine move the Axes now, so that sizes can be measured."""
    find_figure(ax).draw_without_rendering()


def draw_dots(ax: Axes, points: Floats, **style: Any) -> None:
    """Marks at points (n, 2)."""
    ax.scatter(points[:, 0], points[:, 1], **style)


def outline(color: Any = "white", width: float = 3.0, alpha: float = 1.0) -> list[Any]:
    """An outline around text, which keeps it readable over lines and marks."""
    stroke = load_matplotlib().patheffects.withStroke
    return [stroke(linewidth=width, foreground=color, alpha=alpha)]


def hide_upper_spines(ax: Axes) -> None:
    """Leave only the left and the lower edge of Axes."""
    ax.spines[["top", "right"]].set_visible(False)


def draw_ranking(
    names: Sequence[str],
    values: Floats,
    colors: Sequence[str],
    bounds: Floats | None,
    ax: Axes | None,
) -> Axes:
    """Horizontal bars on both sides of 0, the first on top, with intervals (2, n) if there are."""
    heights = np.arange(len(names))
    ax = new_axes(ax, (6.6, 0.9 + 0.24 * len(names)))
    ax.barh(heights, values, color=colors, height=0.72)
    if bounds is not None:
        length = np.abs(bounds - values)
        ax.errorbar(values, heights, xerr=length, fmt="none", ecolor=INK, capsize=2)
    ax.axvline(0.0, color=INK, linewidth=0.8)
    ax.set_yticks(heights, names, fontsize=8)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    hide_upper_spines(ax)
    ax.spines["left"].set_visible(False)
    return ax


def find_palette(name: Any) -> tuple[str, str, str]:
    """Colors of positive values, of negative values, and of entities."""
    check_known("palette", name, PALETTES)
    return PALETTES[name]


def label_text(label: object, width: int = 40) -> str:
    """A label that matplotlib shows literally: no formulas, one line, not too long."""
    text = " ".join(str(label).split())
    text = text if text.isprintable() else repr(text)[1:-1]
    if len(text) > width:  # names often differ only at the end: sizes, numbers
        ending = width // 3
        text = f"{text[: width - 1 - ending].rstrip()}…{text[len(text) - ending :].lstrip()}"
    # A leading underscore would hide a label from legends.
    return (" " + text if text.startswith("_") else text).replace("$", r"\$")


def label_texts(labels: Iterable[object], width: int = 40) -> list[str]:
    """Texts of labels, each no longer than needed to distinguish it from the others.

    >>> label_texts(["yoghurt of cows, plain, 1 kg", "yoghurt of goats, plain, 1 kg"], 16)
    ['yoghurt of cow…n, 1 kg', 'yoghurt of goa…n, 1 kg']
    """
    names = [str(label) for label in labels]
    texts = [label_text(name, width) for name in names]
    while True:
        owners: dict[str, set[str]] = {}
        for name, text in zip(names, texts, strict=True):
            owners.setdefault(text, set()).add(name)
        width += 6
        longer = [
            label_text(name, width) if len(owners[text]) > 1 else text
            for name, text in zip(names, texts, strict=True)
        ]
        if longer == texts:  # distinct, or equal at any length
            return texts
        texts = longer
