"""similarity: cosines between entities as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import DataError, check_known
from efemb.plots.canvas import apply_layout, label_texts, new_axes
from efemb.plots.interactive import draw_cosines, is_interactive
from efemb.plots.model_vectors import choose_codes, get_vectors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 1000  # entities; more would be smaller than a pixel
NAMED = 80  # entities; the labels of more would be unreadable
ORDERS = ("leaves", "given")


def similarity(
    model: Any,
    labels: Any = 30,
    *,
    which: str = "auto",
    order: str = "leaves",
    backend: str = "matplotlib",
    ax: Axes | None = None,
) -> Any:
    """Draw the cosines between the vectors of entities.

    Parameters
    ----------
    model : fitted estimator, FittedEmbedding or LabeledVectors
    labels : int or list of labels, default=30
        Which entities, or how many of the most frequent ones.
    which : {"auto", "rho", "alpha", "both"}, default="auto"
    order : {"leaves", "given"}, default="leaves"
        "leaves" puts similar entities side by side: the leaves of an average-linkage tree in
        SciPy's `optimal_leaf_ordering`. "given" keeps the order of `labels`.
    backend : {"matplotlib", "plotly"}, default="matplotlib"
        plotly figures are interactive; they need the extra `explore`.
    ax : Axes, optional

    Returns
    -------
    Axes, or plotly Figure
    """
    vectors = get_vectors(model, which)
    check_known("order", order, ORDERS)
    codes = choose_codes(vectors, labels)
    if not 2 <= len(codes) <= MOST:
        raise DataError(f"a heat map takes 2 to {MOST:,} entities, got {len(codes):,}")
    unit = vectors.unit_vectors[codes].astype(np.float64)
    cosines: Floats = np.clip(unit @ unit.T, -1.0, 1.0)
    if order == "leaves":
        codes, cosines = _reorder(codes, cosines)
    if is_interactive(backend, ax):
        return draw_cosines(vectors.vocabulary.labels[codes].tolist(), cosines)
    side = min(9.0, 3.2 + 0.14 * len(codes))
    ax = new_axes(ax, (side + 0.8, side))
    picture = ax.imshow(cosines, cmap="RdBu", vmin=-1.0, vmax=1.0, interpolation="nearest")
    names = label_texts(vectors.vocabulary.labels[codes], 28)
    _draw_names(ax, names)
    bar = ax.figure.colorbar(picture, ax=ax, fraction=0.04, pad=0.02)
    bar.set_label("cosine")
    bar.outline.set_visible(False)
    apply_layout(ax)  # a square map makes room for long names only in a second layout
    return ax


def order_leaves(cosines: Floats) -> Ints:
    """Leaves of an average-linkage tree, ordered so that neighbors are similar."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    distance = np.maximum(1.0 - (cosines + cosines.T) / 2.0, 0.0)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance), method="average", optimal_ordering=True)
    return np.asarray(leaves_list(tree), dtype=np.int64)


def _reorder(codes: Ints, cosines: Floats) -> tuple[Ints, Floats]:
    leaves = order_leaves(cosines)
    return codes[leaves], cosines[np.ix_(leaves, leaves)]


def _draw_names(ax: Axes, names: list[str]) -> None:
    size = 8.0 if len(names) <= 40 else 6.0
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if len(names) > NAMED:
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_xlabel(f"{len(names):,} entities, similar ones side by side")
        return
    ticks = np.arange(len(names))
    ax.set_yticks(ticks, names, fontsize=size)
    ax.set_xticks(ticks, names, fontsize=size, rotation=90)
