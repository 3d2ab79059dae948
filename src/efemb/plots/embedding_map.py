"""embedding_map: all vectors in the plane, with as many labels as fit."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._progress import progress_bar
from efemb._typing import Floats, Ints
from efemb.errors import DataError, InputTypeError, MissingExtraError, ParameterError, suggest
from efemb.plots.canvas import GREY, HUES, INK, dots, label_text, load_matplotlib, new_axes, settle
from efemb.plots.label_placement import place_labels
from efemb.plots.model_vectors import chosen, importance, is_number, vectors_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from efemb.fitted import LabeledVectors

METHODS = ("pca", "tsne", "umap")
LARGE = 2000  # points from which marks are small and become pixels in a vector file


def embedding_map(
    model: Any,
    *,
    method: str = "pca",
    which: str = "auto",
    labels: Any = 40,
    groups: Any = None,
    unit: bool = True,
    seed: int = 0,
    progress: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw the vectors of all entities in two dimensions.

    Parameters
    ----------
    model : fitted estimator, FittedEmbedding or LabeledVectors
    method : {"pca", "tsne", "umap"}
        Principal components (exact, the same in every run), or a map that keeps near what is near:
        t-SNE of scikit-learn, UMAP of the extra `umap` (umap-learn); both take about a
        minute for 8,000 entities, where principal components take a second.
    which : {"auto", "rho", "alpha", "both"}
        Embeddings, context vectors, or one after the other.
    labels : int or list of labels
        How many labels to write, the most frequent entities first (those of the longest vectors
        where counts are not known), or which. One that would cover another is left out.
    groups : mapping of labels to groups, or one group an entity, optional
        Colours: the seven largest groups have their own, the rest is grey.
    unit : bool
        Scale vectors to length 1, so that near means a large cosine, as in `similar`.
    seed : int
        Of t-SNE and UMAP.
    progress : bool
        Show that t-SNE or UMAP is at work.
    ax : Axes, optional
        Where to draw; by default a new figure, `ax.figure`, that pyplot does not keep.

    Returns
    -------
    Axes
    """
    vectors = vectors_of(model, which)
    if method not in METHODS:
        raise ParameterError(f"method={method!r} is unknown; {suggest(method, METHODS)}")
    order = chosen(vectors, labels)
    most = len(order)
    if is_number(labels):  # where one has no room, the next takes its place
        order = importance(vectors)
    colours = _groups(vectors, groups)
    ax = new_axes(ax, (7.5, 6.0))
    numbers = (vectors.unit_vectors if unit else vectors.vectors).astype(np.float64)
    points, names = _project(numbers, method, seed, progress)
    large = len(points) > LARGE
    _draw_points(ax, points, colours, large)
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    if method != "pca":  # the scale of such a map means nothing
        ax.set_xticks([])
        ax.set_yticks([])
    _fill_page(ax)
    named = place_labels(ax, points, vectors.vocabulary.labels, order, most, size=7.5)
    ring = {"facecolors": "none", "edgecolors": INK, "linewidths": 0.8, "zorder": 4}
    dots(ax, points[named], s=14 if large else 26, **ring)
    return ax


def _fill_page(ax: Axes) -> None:
    """One scale in both directions, limits that fill the Axes, and none of it moving any more."""
    ax.margins(0.04)
    ax.set_aspect("equal", adjustable="datalim")
    settle(ax)
    settle(ax)  # new limits have new ticks, which have another width
    ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())
    ax.set_aspect("equal", adjustable="box")


# -- two dimensions -----------------------------------------------------------------------------


def principal_components(vectors: Floats) -> tuple[Floats, Floats]:
    """First two principal components (N, 2), and their shares of the variance (2,).

    The sign is such that the largest loading is positive: the same picture in every run.
    """
    centred = vectors - vectors.mean(axis=0)
    variance, axes = np.linalg.eigh(centred.T @ centred)
    two = axes[:, ::-1][:, :2]
    two = two * np.sign(two[np.abs(two).argmax(axis=0), np.arange(two.shape[1])])
    points, share = centred @ two, variance[::-1][:2] / max(variance.sum(), 1e-300)
    if points.shape[1] == 1:
        points, share = np.column_stack([points, np.zeros(len(points))]), np.append(share, 0.0)
    return points, np.clip(share, 0.0, 1.0)


def _project(
    vectors: Floats, method: str, seed: int, progress: bool
) -> tuple[Floats, tuple[str, str]]:
    """Points (N, 2) and the names of both axes."""
    if method == "pca":
        points, share = principal_components(vectors)
        names = [f"principal component {i + 1} ({100 * share[i]:.0f}% of variance)" for i in (0, 1)]
        return points, (names[0], names[1])
    if len(vectors) < 4:
        raise DataError(f"{method} needs at least 4 entities, there are {len(vectors)}; use pca")
    with progress_bar(f"{method} of {len(vectors):,} vectors", 0, progress):
        points = _tsne(vectors, seed) if method == "tsne" else _umap(vectors, seed)
    title = {"tsne": "t-SNE", "umap": "UMAP"}[method]
    return np.asarray(points, dtype=np.float64), (f"{title} 1", f"{title} 2")


def _tsne(vectors: Floats, seed: int) -> Any:
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(vectors) - 1) / 3.0)
    # Half of the usual steps, and coarser far forces: as many neighbours kept in 40% of the time.
    options: dict[str, Any] = {"max_iter": 500, "angle": 0.8, "random_state": seed}
    # Its own principal components need two dimensions at least.
    start, _ = principal_components(vectors)
    small = (start * (1e-4 / max(float(start[:, 0].std()), 1e-300))).astype(np.float32)
    return TSNE(perplexity=perplexity, init=small, **options).fit_transform(vectors)


def _umap(vectors: Floats, seed: int) -> Any:
    try:
        umap = import_module("umap")
    except ImportError as error:
        raise MissingExtraError(
            "method='umap' needs umap-learn: pip install 'efemb[umap]'; 'pca' and 'tsne' do not"
        ) from error
    size = min(15, len(vectors) - 1)
    return umap.UMAP(n_neighbors=size, random_state=seed, n_jobs=1).fit_transform(vectors)


# -- colours ------------------------------------------------------------------------------------


def _groups(vectors: LabeledVectors, groups: Any) -> list[tuple[str, str, Ints]]:
    """Name, colour and places of each group, the one that is drawn first coming first."""
    everything = np.arange(len(vectors))
    if groups is None:
        return [("", HUES[0], everything)]
    of = np.array(_group_of_each(vectors, groups), dtype=object)
    known = [group for group in of if group is not None]
    sizes = {group: known.count(group) for group in dict.fromkeys(known)}
    largest = sorted(sizes, key=lambda group: -sizes[group])[: len(HUES)]
    groups_drawn: list[tuple[str, str, Ints]] = [
        (label_text(group, 30), hue, np.flatnonzero([owner == group for owner in of]))
        for group, hue in zip(largest, HUES, strict=False)
    ]
    rest = np.setdiff1d(everything, np.concatenate([everything[:0], *(f[2] for f in groups_drawn)]))
    return [("other", GREY, rest), *groups_drawn] if len(rest) else groups_drawn


def _group_of_each(vectors: LabeledVectors, groups: Any) -> list[Any]:
    if isinstance(groups, Mapping):
        by_code = {vectors.vocabulary.index_of(label): group for label, group in groups.items()}
        return [by_code.get(code) for code in range(len(vectors))]
    if isinstance(groups, str) or not hasattr(groups, "__len__"):
        raise InputTypeError("groups must be a mapping of labels to groups, or one an entity")
    if len(groups) != len(vectors):
        raise DataError(f"there are {len(groups):,} groups, but {len(vectors):,} entities")
    return list(groups)


def _draw_points(
    ax: Axes, points: Floats, groups: list[tuple[str, str, Ints]], large: bool
) -> None:
    size, opacity = (5, 0.5) if large else (18, 0.85)
    look = {"s": size, "alpha": opacity, "linewidths": 0, "rasterized": large}
    for _, colour, members in groups:
        dots(ax, points[members], color=colour, **look)
    named = [(name, colour) for name, colour, _ in groups if name]
    if named:
        # The rest is drawn first, under the groups, and named last.
        named.sort(key=lambda pair: pair[1] == GREY)
        line = load_matplotlib().lines.Line2D
        marks = [line([], [], marker="o", linestyle="", color=colour) for _, colour in named]
        names = [name for name, _ in named]
        outside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
        ax.legend(marks, names, frameon=False, fontsize=9, **outside)
