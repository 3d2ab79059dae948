"""relations: complements and substitutes as bars on both sides of zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.errors import DataError, InputTypeError
from efemb.plots.canvas import (
    GRAY,
    draw_ranking,
    find_palette,
    label_text,
    label_texts,
    load_matplotlib,
)
from efemb.plots.interactive import draw_bars, is_interactive
from efemb.plots.model_vectors import get_fitted
from efemb.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRODUCT = r"inner product $\rho_n \cdot \alpha_m$"
# Names of the kinds of bars; a low product alone does not make a substitute.
WORDS = {
    "complement": "complement",
    "more": "more probable",
    "substitute": "substitute",
    "suggested": "suggested substitute",
    "less": "less probable",
    "unclear": "possible substitute",
    "apart": "other contexts",
}


def relations(
    model: Any,
    item: Any = None,
    n: int = 8,
    *,
    palette: str = "colorblind",
    backend: str = "matplotlib",
    ax: Axes | None = None,
    **options: Any,
) -> Any:
    """Draw what an item makes more probable and what it makes less probable.

    Parameters
    ----------
    model : fitted estimator, FittedEmbedding, or Table
        For a model, the `complements` and `substitutes` of the item are drawn; a Table must come
        from `complements`, `substitutes` or `pairs`.
    item : label, optional
        Only with a model.
    n : int, default=8
        Number of bars on each side.
    palette : {"colorblind", "paper"}, default="colorblind"
        Blue and orange, or green and red.
    backend : {"matplotlib", "plotly"}, default="matplotlib"
        plotly figures are interactive; they need the extra `explore`.
    ax : Axes, optional
    **options
        Options of `complements`, such as `direction`, `center`, `data`, `min_support` or `where`.

    Returns
    -------
    Axes, or plotly Figure
        The largest product on top, colored by `kind` if the table has that column, else by sign.
        Items that merely occur in other contexts (`kind` "apart") are gray, cases that
        are unclear in `data` are pale; intervals are drawn if the table has them.
    """
    positive, negative, _ = find_palette(palette)
    hues = (positive, positive, negative, negative, negative, _lighten(negative), GRAY)
    colors = dict(zip(WORDS, hues, strict=True))
    names, kinds, products, bounds = _collect_bars(model, item, n, options)
    order = np.argsort(products, kind="stable")[::-1]
    names, shown = [names[bar] for bar in order], [colors[kinds[bar]] for bar in order]
    products, bounds = products[order], None if bounds is None else bounds[:, order]
    if is_interactive(backend, ax):
        title = "" if item is None else f"given {item}"
        x_title = "inner product of rho and alpha"
        return draw_bars(names, products, shown, title=title, x_title=x_title, bounds=bounds)
    ax = draw_ranking(names, products, shown, bounds, ax)
    ax.set_xlabel(PRODUCT)
    if item is not None:
        ax.set_title(f"given {label_text(item).strip()}", fontsize=10, loc="left", pad=18)
    _draw_legend(ax, [kind for kind in colors if kind in kinds], colors)
    return ax


def _lighten(color: str) -> str:
    """A color #RRGGBB, mixed with white."""
    channels = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(255 - 0.45 * (255 - channel)):02X}" for channel in channels)


Bars = tuple[list[str], list[str], Floats, Floats | None]


def _collect_bars(model: Any, item: Any, n: int, options: dict[str, Any]) -> Bars:
    """Names, kinds, products, and bounds (2, bars) or None."""
    if isinstance(model, Table):
        if item is not None or options:
            raise InputTypeError("item and options apply to a model; a Table is drawn as it is")
        return _read_bars(model)
    fitted = get_fitted(model)
    if item is None or not isinstance(item, str | int | float | np.generic):
        raise InputTypeError(f"relations draws a single item: pass its label, not {item!r}")
    drawn = fitted.complements(item, n, **options)
    # With few entities, the list continues with what the item makes less probable.
    shown = int((drawn["score"] > 0).sum())
    if "kind" in drawn.columns:  # confirmed complements come first
        shown = int(((drawn["score"] > 0) & (drawn["kind"] == "complement")).sum())
    first = _read_bars(drawn[:shown])
    second = _read_bars(fitted.substitutes(item, n, apart=True, **options))
    if not first[0]:
        return second
    drawn_labels = set(first[0])
    new_bars = [bar for bar, name in enumerate(second[0]) if name not in drawn_labels]
    bounds = None
    if first[3] is not None and second[3] is not None:
        bounds = np.concatenate([first[3], second[3][:, new_bars]], axis=1)
    return (
        first[0] + [second[0][bar] for bar in new_bars],
        ["complement"] * len(first[0]) + [second[1][bar] for bar in new_bars],
        np.concatenate([first[2], second[2][new_bars]]),
        bounds,
    )


def _read_bars(table: Table) -> Bars:
    products = np.asarray(table["score"], dtype=np.float64)
    if len(products) == 0:
        return [], [], products, None
    labels = label_texts(table["label"], 34)
    if "given" in table.columns:
        names = label_texts([*table["label"], *table["given"]], 26)
        pairs = zip(names[: len(products)], names[len(products) :], strict=True)
        labels = [f"{label} | {context}" for label, context in pairs]
    kinds = ["less" if product < 0 else "more" for product in products]
    if "kind" in table.columns:
        kinds = [str(kind) for kind in table["kind"]]
    bounds = None
    if {"low", "high"} <= set(table.columns):
        bounds = np.stack([table["low"], table["high"]]).astype(np.float64)
    return labels, kinds, products, bounds


def _draw_legend(ax: Axes, kinds: list[str], colors: dict[str, str]) -> None:
    if not kinds:
        raise DataError("nothing to draw: the table has no rows")
    patch = load_matplotlib().patches.Patch
    marks = [patch(color=colors[kind], label=WORDS[kind]) for kind in kinds]
    above: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderpad": 0.0}
    ax.legend(handles=marks, ncols=len(marks), frameon=False, fontsize=8, **above)
