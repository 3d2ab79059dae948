"""embedding_map: all vectors in the plane, with as many labels as fit."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Floats, Ints
from efemb.data.array_checks import is_missing_label
from efemb.errors import DataError, InputTypeError, MissingExtraError, check_known
from efemb.plots.canvas import (
    GRAY,
    HUES,
    INK,
    apply_layout,
    draw_dots,
    label_text,
    load_matplotlib,
    new_axes,
)
from efemb.plots.interactive import draw_map, is_interactive
from efemb.plots.label_placement import place_labels, place_names
from efemb.plots.model_vectors import (
    choose_codes,
    get_fitted,
    get_vectors,
    is_number,
    rank_by_frequency,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from efemb.fitted import LabeledVectors

METHODS = ("auto", "pca", "tsne", "umap")
TSNE_BELOW = 10_000  # entities: about a minute
NAMED, FEW = 60, 5  # maximum number of named groups; smallest size of a group that has a color
NEAR = 0.5  # largest distance of half a group from its center, relative to the map
LARGE = 2000  # number of points above which marks are small, and pixels in a vector file


def embedding_map(
    model: Any,
    *,
    method: str = "auto",
    which: str = "auto",
    labels: Any = 40,
    groups: Any = None,
    unit: bool = True,
    seed: int = 0,
    progress: bool = False,
    backend: str = "matplotlib",
    ax: Axes | None = None,
) -> Any:
    """Draw the vectors of all entities in two dimensions.

    The title describes the map; `ax.set_title` replaces it.

    Parameters
    ----------
    model : fitted estimator, FittedEmbedding or LabeledVectors
    method : {"auto", "pca", "tsne", "umap"}, default="auto"
        Principal components (exact, the same in every run), or a map that preserves
        neighborhoods: t-SNE from scikit-learn, or UMAP from the extra `umap` (umap-learn). Both
        take about a minute for 8,000 entities, principal components a second. "auto" is t-SNE
        below 10,000 entities.
    which : {"auto", "rho", "alpha", "both"}, default="auto"
        Embedding vectors, context vectors, or both concatenated.
    labels : int or list of labels, default=40
        How many entities to label, the most frequent first (or those with the longest vectors if
        counts are unknown), or a list of them. A label is written in full, or omitted if it
        would cover another one.
    groups : mapping of labels to groups, or one group per entity, optional
        Colors: the seven largest groups have one each, the rest is gray. The name of a group is
        written where most of its members are, unless they are spread over the whole map.
    unit : bool, default=True
        Scale vectors to length 1, so that nearby points have a large cosine, as in `similar`.
    seed : int, default=0
        Random seed of t-SNE and UMAP.
    progress : bool, default=False
        Show a progress bar while t-SNE or UMAP runs.
    backend : {"matplotlib", "plotly"}, default="matplotlib"
        plotly figures are interactive; they need the extra `explore`.
    ax : Axes, optional
        Where to draw; by default in a new figure, `ax.figure`, that pyplot does not manage.

    Returns
    -------
    Axes, or plotly Figure
    """
    vectors = get_vectors(model, which)
    check_known("method", method, METHODS)
    if method == "auto":
        method = "tsne" if 4 <= len(vectors) < TSNE_BELOW else "pca"
    order = choose_codes(vectors, labels)
    n = len(order)
    if is_number(labels):  # if there is no room for one, the next is tried
        order = rank_by_frequency(vectors)
    colors = _assign_groups(vectors, groups)
    interactive = is_interactive(backend, ax)
    ax = None if interactive else new_axes(ax, (7.5, 6.0))
    numbers = (vectors.unit_vectors if unit else vectors.vectors).astype(np.float64)
    points, names = project_vectors(numbers, method, seed, progress)
    if ax is None:
        return draw_map(points, names, vectors.vocabulary.labels, colors)
    large = len(points) > LARGE
    _draw_points(ax, points, colors, large)
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    if method != "pca":  # the scale of such a map has no meaning
        ax.set_xticks([])
        ax.set_yticks([])
    ax.set_title(_describe(model, vectors, method), fontsize=10)
    _fill_page(ax)
    boxes = place_names(ax, points, *_find_centers(points, vectors, groups, colors), size=8.5)
    named = place_labels(ax, points, vectors.vocabulary.labels, order, n, size=7.5, taken=boxes)
    ring = {"facecolors": "none", "edgecolors": INK, "linewidths": 0.8, "zorder": 4}
    draw_dots(ax, points[named], s=14 if large else 26, **ring)
    return ax


def _describe(model: Any, vectors: LabeledVectors, method: str) -> str:
    """What the map shows, in one line."""
    name = "" if vectors is model else f"{get_fitted(model).model}, "
    how = {"pca": "principal components", "tsne": "t-SNE", "umap": "UMAP"}[method]
    return (
        f"{len(vectors):,} items; those in similar contexts are close "
        f"({name}K = {vectors.n_components}, {how})"
    )


def _find_centers(
    points: Floats, vectors: LabeledVectors, groups: Any, drawn: list[tuple[str, str, Ints]]
) -> tuple[Floats, list[str], list[str]]:
    """Positions for the names of groups, the names and their colors; the largest groups first.

    A name is at the member with the smallest distances to the others. A group that is spread out,
    with half of it not near that member, has no name on the map.
    """
    if groups is None:
        return np.empty((0, 2)), [], []
    colors = {name: color for name, color, _ in drawn}
    of = np.array(_list_groups(vectors, groups), dtype=object)
    sizes = {group: int((of == group).sum()) for group in dict.fromkeys(of) if group is not None}
    reach = NEAR * np.median(np.linalg.norm(points - np.median(points, axis=0), axis=1))
    centers, names, inks = [], [], []
    for group in sorted(sizes, key=lambda group: -sizes[group])[:NAMED]:
        inside = points[of == group]
        sample = inside[:: max(1, len(inside) // 500)]
        distances = np.linalg.norm(inside[:, None] - sample[None], axis=2)
        center = int(np.argmin(distances.mean(axis=1)))
        name = label_text(group, 30)
        if (len(inside) < FEW and name not in colors) or np.median(distances[center]) > reach:
            continue
        centers.append(inside[center])
        names.append(name)
        inks.append(colors.get(name, INK))
    return np.array(centers).reshape(-1, 2), names, inks


def _fill_page(ax: Axes) -> None:
    """Use one scale in both directions, limits that fill the Axes, and a final layout."""
    ax.margins(0.04)
    ax.set_aspect("equal", adjustable="datalim")
    apply_layout(ax)
    apply_layout(ax)  # new limits have new tick labels, of another width
    ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())
    ax.set_aspect("equal", adjustable="box")


# -- two dimensions -----------------------------------------------------------------------------


def project_on_principal_axes(vectors: Floats) -> tuple[Floats, Floats]:
    """First two principal components (N, 2), and their shares of the variance (2,).

    The largest loading is positive, so that every run gives the same plot.
    """
    centered = vectors - vectors.mean(axis=0)
    variance, axes = np.linalg.eigh(centered.T @ centered)
    two = axes[:, ::-1][:, :2]
    two = two * np.sign(two[np.abs(two).argmax(axis=0), np.arange(two.shape[1])])
    points, share = centered @ two, variance[::-1][:2] / max(variance.sum(), 1e-300)
    if points.shape[1] == 1:
        points, share = np.column_stack([points, np.zeros(len(points))]), np.append(share, 0.0)
    return points, np.clip(share, 0.0, 1.0)


def project_vectors(
    vectors: Floats, method: str, seed: int, progress: bool
) -> tuple[Floats, tuple[str, str]]:
    """Points (N, 2) and the names of both axes."""
    if method == "pca":
        points, share = project_on_principal_axes(vectors)
        names = [f"principal component {i + 1} ({100 * share[i]:.0f}% of variance)" for i in (0, 1)]
        return points, (names[0], names[1])
    if len(vectors) < 4:
        raise DataError(f"{method} needs at least 4 entities, got {len(vectors)}; use pca")
    with progress_bar(f"{method} of {len(vectors):,} vectors", 0, progress):
        points = _fit_tsne(vectors, seed) if method == "tsne" else _fit_umap(vectors, seed)
    title = {"tsne": "t-SNE", "umap": "UMAP"}[method]
    return np.asarray(points, dtype=np.float64), (f"{title} 1", f"{title} 2")


def _fit_tsne(vectors: Floats, seed: int) -> Any:
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(vectors) - 1) / 3.0)
    # Half of the default steps and coarser far forces: equally many neighbors in 40% of the time.
    options: dict[str, Any] = {"max_iter": 500, "angle": 0.8, "random_state": seed}
    # The initialization of scikit-learn needs at least two dimensions.
    start, _ = project_on_principal_axes(vectors)
    small = (start * (1e-4 / max(float(start[:, 0].std()), 1e-300))).astype(np.float32)
    return TSNE(perplexity=perplexity, init=small, **options).fit_transform(vectors)


def _fit_umap(vectors: Floats, seed: int) -> Any:
    try:
        umap = import_module("umap")
    except ImportError as error:
        raise MissingExtraError(
            "method='umap' needs umap-learn: pip install 'efemb[umap]'; 'pca' and 'tsne' do not"
        ) from error
    size = min(15, len(vectors) - 1)
    return umap.UMAP(n_neighbors=size, random_state=seed, n_jobs=1).fit_transform(vectors)


# -- colors ------------------------------------------------------------------------------------


def _assign_groups(vectors: LabeledVectors, groups: Any) -> list[tuple[str, str, Ints]]:
    """Name, color and members of each group, in the order in which they are drawn."""
    everything = np.arange(len(vectors))
    if groups is None:
        return [("", HUES[0], everything)]
    of = np.array(_list_groups(vectors, groups), dtype=object)
    named = [group for group in of if group is not None]
    sizes = {group: named.count(group) for group in dict.fromkeys(named)}
    largest = sorted(sizes, key=lambda group: -sizes[group])[: len(HUES)]
    groups_drawn: list[tuple[str, str, Ints]] = [
        (label_text(group, 30), hue, np.flatnonzero([owner == group for owner in of]))
        for group, hue in zip(largest, HUES, strict=False)
    ]
    ungrouped = np.setdiff1d(
        everything, np.concatenate([everything[:0], *(f[2] for f in groups_drawn)])
    )
    return [("other", GRAY, ungrouped), *groups_drawn] if len(ungrouped) else groups_drawn


def _list_groups(vectors: LabeledVectors, groups: Any) -> list[Any]:
    if isinstance(groups, Mapping):
        by_code = {vectors.vocabulary.index_of(label): group for label, group in groups.items()}
        groups = [by_code.get(code) for code in range(len(vectors))]
    elif isinstance(groups, str) or not hasattr(groups, "__len__"):
        raise InputTypeError(
            "groups must be a mapping of labels to groups, or one group per entity"
        )
    if len(groups) != len(vectors):
        raise DataError(
            f"groups has {len(groups):,} entries for {len(vectors):,} entities; pass one per entity"
        )
    return [None if is_missing_label(group) else group for group in groups]


def _draw_points(
    ax: Axes, points: Floats, groups: list[tuple[str, str, Ints]], large: bool
) -> None:
    size, opacity = (5, 0.5) if large else (18, 0.85)
    look = {"s": size, "alpha": opacity, "linewidths": 0, "rasterized": large}
    for _, color, members in groups:
        draw_dots(ax, points[members], color=color, **look)
    named = [(name, color) for name, color, _ in groups if name]
    if named:
        # Other points are drawn first, below the groups, and listed last.
        named.sort(key=lambda pair: pair[1] == GRAY)
        line = load_matplotlib().lines.Line2D
        marks = [line([], [], marker="o", linestyle="", color=color) for _, color in named]
        names = [name for name, _ in named]
        outside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
        ax.legend(marks, names, frameon=False, fontsize=9, **outside)
