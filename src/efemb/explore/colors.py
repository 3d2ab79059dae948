"""Colors of the points of a map: each item in one of a few buckets, by what is known of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import DataError, InputTypeError
from efemb.explore.payload import Payload
from efemb.fitted.vectors import entity_vectors

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding

# Okabe and Ito (2008) and a violet; the gray is for the rest. All of them differ with any color
# vision, and so do the steps, which are visible on white and on black.
HUES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7A3FD0")
REST = "#BFC4C9"
STEPS = ("#2A5DB8", "#5E6FAC", "#7D829F", "#969692", "#B4A87B", "#CFBB60", "#E8CF3C")
MARKS = {  # of what is lit on a map
    "similar": HUES[0],
    "complement": HUES[2],
    "substitute": HUES[5],
    "member": HUES[3],
    "changed": HUES[1],
    "positive": HUES[0],
    "negative": HUES[5],
}
EXTREME = 0.01  # share of the smallest and of the largest numbers that are not told apart
R2_ROWS = 2_000


def color_by_category(
    payload: Payload, key: str, name: str, codes: Ints, names: Sequence[str]
) -> None:
    """Add a way to color: the largest categories have a hue each; -1 is the rest."""
    sizes = np.bincount(codes[codes >= 0], minlength=len(names))
    largest = [code for code in np.argsort(-sizes, kind="stable")[: len(HUES)] if sizes[code]]
    places = np.zeros(len(names) + 1, dtype=np.uint8)  # of the categories; the last is that of -1
    places[largest] = np.arange(1, len(largest) + 1)
    buckets = [("other", REST), *((names[code], HUES[i]) for i, code in enumerate(largest))]
    _add(payload, key, name, name, places[codes], buckets)


def color_by_number(
    payload: Payload,
    key: str,
    name: str,
    title: str,
    values: Floats,
    *,
    log: bool = False,
    first: bool = False,
) -> None:
    """Add a way to color: steps of equal width, of logarithms if asked; NaN is the rest.

    first : whether it is the way to begin with
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.log10(values) if log else np.asarray(values, dtype=np.float64)
    known = np.isfinite(scaled)
    # A few extremes must not leave all others in one step.
    low, high = np.quantile(scaled[known], [EXTREME, 1 - EXTREME]) if known.any() else (0.0, 1.0)
    edges = np.linspace(low, max(high, low + 1e-12), len(STEPS) + 1)[1:-1]
    edges = 10**edges if log else edges
    counted = bool(np.all(values[known] == np.rint(values[known])))
    if counted:
        edges = np.unique(np.ceil(edges))
    places = np.zeros(len(values), dtype=np.uint8)
    places[known] = 1 + np.searchsorted(edges, values[known], side="right")
    names = _name_counts(edges, values[known]) if counted else _name_steps(edges)
    shades = [STEPS[i] for i in np.linspace(0, len(STEPS) - 1, len(names)).round().astype(int)]
    buckets = [("none" if log else "unknown", REST), *zip(names, shades, strict=True)]
    _add(payload, key, name, title, places, buckets)
    if first:
        payload.header["colorings"].insert(0, payload.header["colorings"].pop())


def color_by_nothing(payload: Payload) -> None:
    """Add the plainest way to color."""
    places = np.ones(payload.header["n"], dtype=np.uint8)
    _add(payload, "none", "nothing", "", places, [("", REST), ("", HUES[0])])


def _add(
    payload: Payload, key: str, name: str, title: str, places: Any, buckets: list[tuple[str, str]]
) -> None:
    entry = {"key": key, "name": name, "title": title, "buckets": buckets}
    payload.header.setdefault("colorings", []).append(entry)
    payload.arrays[f"color.{key}"] = places


def _name_counts(edges: Floats, values: Floats) -> list[str]:
    """Names of steps of whole numbers, each of which begins at an edge."""
    names = [f"{a:,.0f}" if b == a + 1 else f"{a:,.0f} to {b - 1:,.0f}" for a, b in pairwise(edges)]
    least = "" if values.min(initial=np.inf) == edges[0] - 1 else "up to "
    most = "" if values.max(initial=-np.inf) == edges[-1] else " and more"
    return [f"{least}{edges[0] - 1:,.0f}", *names, f"{edges[-1]:,.0f}{most}"]


def _name_steps(edges: Floats) -> list[str]:
    """Names of steps of other numbers: three digits, whole numbers from 10 on."""
    marks = [f"{round(edge):,}" if abs(edge) >= 10 else f"{edge:.3g}" for edge in edges]
    middle = (f"{a} to {b}" for a, b in pairwise(marks))
    return [f"up to {marks[0]}", *middle, f"{marks[-1]} and more"]


# -- numbers of items -----------------------------------------------------------------------------


def item_uncertainty(model: FittedEmbedding, errors: Any) -> Floats:
    """Standard error of each embedding, relative to its length: an array, or that of `laplace`."""
    if hasattr(errors, "standard_error"):
        labels = list(model.entities)
        spread = np.sqrt(np.square(errors.standard_error(labels)).sum(axis=1))
        length = np.linalg.norm(entity_vectors(model, "rho").astype(np.float64), axis=1)
        return np.asarray(spread / np.where(length > 0, length, np.inf), dtype=np.float32)
    try:
        values = np.asarray(errors, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(
            "errors takes what model.laplace(data) returns, or one number per item"
        ) from error
    if values.shape != (model.n_entities,) or not np.isfinite(values).all():
        raise DataError(f"errors needs one finite number for each of {model.n_entities:,} items")
    return np.asarray(values, dtype=np.float32)


def explained_variance(model: FittedEmbedding, data: Any) -> Floats:
    """R^2 of every item given its neighbors, over the first rows of the data; NaN becomes 0."""
    from efemb.model import predict

    read = model._read(data)
    rows = read.take_rows(np.arange(min(read.n_rows, R2_ROWS)))
    spec, bound, vectors = model._bound(rows)
    mean = predict.conditional_means(spec, bound, vectors)
    values = np.asarray(rows.values.todense()) if rows.is_sparse else np.asarray(rows.values)
    seen = ~np.isnan(values)
    usual = np.nansum(values, axis=0) / np.maximum(seen.sum(axis=0), 1)
    left = np.where(seen, np.square(values - mean), 0.0).sum(axis=0)
    whole = np.where(seen, np.square(values - usual), 0.0).sum(axis=0)
    share = 1.0 - left / np.where(whole > 0, whole, np.inf)
    return np.asarray(np.where(whole > 0, share, 0.0), dtype=np.float32)


def kept_neighbors(first: FittedEmbedding, second: FittedEmbedding, n: int = 10) -> Floats:
    """Share of each item's nearest neighbors in `first` that it has in `second` too.

    Neighbors are sought among the items of both models; NaN for items that `second` lacks.
    """
    known = second.entities
    common = np.array([code for code, label in enumerate(first.entities) if label in known])
    if len(common) < 2:
        raise DataError("the two models have fewer than two items in common: nothing to compare")
    other = np.array([known.index_of(first.entities[code]) for code in common.tolist()])
    share = np.full(first.n_entities, np.nan)
    near = zip(_neighbor_blocks(first, common, n), _neighbor_blocks(second, other, n), strict=True)
    for (rows, mine), (_, theirs) in near:
        kept = (mine[:, :, None] == theirs[:, None, :]).any(axis=2)
        share[common[rows]] = kept.mean(axis=1)
    return share


def _neighbor_blocks(model: FittedEmbedding, codes: Ints, n: int) -> Iterator[tuple[Ints, Ints]]:
    """Rows of `codes` and the places of their nearest others, block by block."""
    from efemb.fitted.nearest import largest_products

    unit = model.vectors().unit_vectors[codes]
    n = min(n, len(codes) - 1)
    for start in range(0, len(codes), 1024):
        rows = np.arange(start, min(start + 1024, len(codes)))
        near, _ = largest_products(unit, unit[rows], n + 1)
        others = near != rows[:, None]
        others &= np.cumsum(others, axis=1) <= n
        yield rows, near[others].reshape(len(rows), n)
