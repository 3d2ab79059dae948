"""What a page shows of a model: labels, maps, vectors, relations, predictions and topics."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.explore.groups import Groups
from efemb.explore.maps import MapMaker
from efemb.explore.payload import Payload, Quantized, small_integers
from efemb.explore.prediction import add_prediction
from efemb.fitted.cooccurrence import Support
from efemb.fitted.neighbor_weights import edge_weights
from efemb.fitted.relation import LOW_Z, MIN_SIMILARITY, Affinity
from efemb.fitted.rotation import varimax
from efemb.fitted.vectors import entity_vectors

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding

ROTATED = 5_000  # items that determine the rotation of topics
WORDS, CANDIDATES = 3, 12  # labels that name a topic, and those that may
BEGINNING = 20  # letters of such a label
LONGEST_LABEL = 10_000
R2_ROWS = 2_000
MOST_RECORDS = 400
CURVES = ("validation", "objective")


@dataclass(frozen=True)
class Contents:
    """Everything that an explorer was given about a model.

    whole : the model that `model` is the vectors of, if it completes baskets by more than those
    data : rows of the fit or others, for co-occurrence and R^2
    vectors : whether the page answers questions itself, so that it needs the vectors
    """

    model: FittedEmbedding
    name: str
    maps: MapMaker
    whole: Any = None
    data: Any = None
    groups: Groups | None = None
    test: Any = None
    errors: Any = None
    bits: int = 24
    vectors: bool = True
    progress: bool = False

    @cached_property
    def support(self) -> Support | str | None:
        """Counts of pairs in the data, or why they are not counted."""
        if self.data is None:
            return None
        try:
            return Support(self.model, self.data)
        except (InputTypeError, ParameterError) as error:
            return f"Pairs are not counted: {error}."

    def without_vectors(self) -> Contents:
        """The same for a page that asks a server."""
        return replace(self, vectors=False)


def make_payload(contents: Contents) -> Payload:
    """Header and arrays of one model."""
    model = contents.model
    payload = Payload(
        {
            "name": contents.name,
            "model": model.model,
            "n": model.n_entities,
            "k": model.n_components,
            "noun": _noun(model),
            "labels": [str(label)[:LONGEST_LABEL] for label in model.entities],
            "notes": [],
        }
    )
    _add_items(payload, contents)
    contents.maps.add_to(payload, contents.progress, more=not contents.vectors)
    _add_topics(payload, model)
    _add_relations(payload, contents)
    add_prediction(payload, model, contents.whole, vectors=contents.vectors)
    _add_lists(payload, contents)
    payload.header["spaces"] = list(available_vectors(model))
    payload.header["card"] = describe_card(contents)
    if contents.vectors:
        _add_vectors(payload, contents)
        _add_support(payload, contents)
    return payload


def _noun(model: FittedEmbedding) -> str:
    if model.spec.context.reads_text:
        return "word"
    return "neuron" if model.lists is not None and model.positions is not None else "item"


def _add_items(payload: Payload, contents: Contents) -> None:
    """How often each item occurs, its group and its uncertainty, where they are known."""
    counts = contents.model.entities.counts
    if isinstance(contents.support, Support):  # the rows that lift and shares are about
        counts = contents.support.counts
    if counts is not None:
        payload.arrays["counts"] = counts.astype(np.float32)
    else:
        payload.header["notes"].append("The model does not store how often its items occur.")
    groups = contents.groups
    if groups is not None:
        payload.header["groups"] = {"title": groups.title, "names": groups.names}
        payload.arrays["groups"] = small_integers(groups.codes)
        payload.header["notes"].append(groups.remark() + ".")
    if contents.errors is not None:
        payload.arrays["uncertainty"] = item_uncertainty(contents.model, contents.errors)


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


def available_vectors(model: FittedEmbedding) -> dict[str, Floats]:
    """rho and alpha with one row per item; those that a model lacks are left out."""
    vectors = {}
    for space in ("rho", "alpha"):
        try:
            vectors[space] = entity_vectors(model, space)
        except ParameterError:
            continue
    if not vectors:
        raise ParameterError(
            "this model has several vectors per item, so it has no map: explore a model of scalar "
            "observations"
        )
    return vectors


def _add_vectors(payload: Payload, contents: Contents) -> None:
    vectors = available_vectors(contents.model)
    tied = contents.model.spec.structure.tied and len(vectors) == 2
    if tied:
        payload.header["tied"] = True
        del vectors["alpha"]
    payload.header["quantization"] = {"bits": contents.bits}
    errors = {}
    for space, array in vectors.items():
        payload.vectors[space] = quantized = Quantized.of(array, contents.bits)
        errors[space] = float(np.abs(quantized.restore() - array).max(initial=0.0))
    payload.header["quantization"]["largest_error"] = errors


# -- topics ---------------------------------------------------------------------------------------


def _add_topics(payload: Payload, model: FittedEmbedding) -> None:
    """The rotated dimension in which each item is largest, and the labels that name it."""
    vectors = available_vectors(model)
    array = vectors["alpha" if "alpha" in vectors else "rho"]
    turned = rotate_topics(array.astype(np.float64), model.entities.counts)
    leaders = np.argsort(-turned, axis=0, kind="stable")[:CANDIDATES]
    payload.header["topics"] = [name_topic(model.entities.labels[column]) for column in leaders.T]
    topic = turned.argmax(axis=1)
    topic[~array.any(axis=1)] = -1
    payload.arrays["topics"] = small_integers(topic)


def name_topic(labels: Any) -> str:
    """The first words of labels that do not begin alike: sizes of one product say the same."""
    names = dict.fromkeys(shorten(" ".join(str(label).split())) for label in labels)
    return ", ".join(list(names)[:WORDS])


def shorten(text: str) -> str:
    """Whole words of the beginning of a long text, up to its first number."""
    if len(text) <= BEGINNING:
        return text
    start = re.split(r"\s+\S*\d", text[: BEGINNING + 1].rpartition(" ")[0])[0]
    return start.rstrip(" -,;:/") or text[:BEGINNING]


def rotate_topics(vectors: Floats, counts: Floats | None) -> Floats:
    """Varimax of the most frequent items, applied to all."""
    if len(vectors) <= ROTATED:
        return varimax(vectors)
    rank = np.square(vectors).sum(axis=1) if counts is None else counts
    chosen = vectors[np.argsort(-rank, kind="stable")[:ROTATED]]
    rotation = np.linalg.lstsq(chosen, varimax(chosen), rcond=None)[0]
    return np.asarray(vectors @ rotation)


# -- relations ------------------------------------------------------------------------------------


def _add_relations(payload: Payload, contents: Contents) -> None:
    """What complements and substitutes need beside the vectors, or why there are none."""
    model = contents.model
    relations: dict[str, Any] = {"min_similarity": MIN_SIMILARITY, "low_z": LOW_Z}
    payload.header["relations"] = relations
    try:
        affinity = Affinity(model)
    except ParameterError as error:
        relations["refused"] = str(error)
        return
    if model.spec.positive_rho and model.spec.positive_alpha:
        relations["refused_substitutes"] = (
            "All vectors of this model are positive, so that it has no negative effects and knows "
            "no substitutes."
        )
    relations["target"] = "alpha" if model.spec.combine.reverse else "rho"
    relations["bag"] = "rho" if model.spec.combine.reverse else "alpha"
    if not contents.vectors:
        return
    bag = affinity.bag.astype(np.float64)
    covariance = np.cov(bag.T, bias=True).reshape(bag.shape[1], -1)
    response = np.einsum("nk,kl,nl->n", affinity.target, covariance, affinity.target)
    place = model.parameters.position
    payload.arrays["relation.place"] = np.asarray(
        np.ones(bag.shape[1]) if place is None else place.mean(axis=0), dtype=np.float64
    )
    payload.arrays["relation.mean"], payload.arrays["relation.spread"] = (
        np.asarray(column, dtype=np.float64) for column in affinity.usual
    )
    payload.arrays["relation.covariance"] = covariance
    payload.arrays["relation.response"] = np.sqrt(np.maximum(response, 0.0))


def _add_support(payload: Payload, contents: Contents) -> None:
    """Rows of the data as sets of items, so that the page counts pairs itself."""
    support = contents.support
    if isinstance(support, str):
        payload.header["notes"].append(support)
    elif support is not None:
        payload.arrays["support.pointers"] = support._ptr.astype(np.int32)
        payload.arrays["support.items"] = small_integers(support._ids)


# -- neurons --------------------------------------------------------------------------------------


def _add_lists(payload: Payload, contents: Contents) -> None:
    """Weights of fixed lists of neighbors, and R^2 of each item."""
    model = contents.model
    if model.lists is None:
        return
    try:
        owner, member, _, weight = edge_weights(model)
    except ParameterError as error:
        payload.header["notes"].append(f"Weights are not shown: {error}.")
        return
    order = np.argsort(owner, kind="stable")
    pointers = np.searchsorted(owner[order], np.arange(model.n_entities + 1))
    payload.arrays["lists.pointers"] = pointers.astype(np.int32)
    payload.arrays["lists.members"] = member[order].astype(np.int32)
    payload.arrays["lists.weights"] = weight[order].astype(np.float32)
    if contents.data is not None and not hasattr(contents.data, "tokens"):
        payload.arrays["r2"] = explained_variance(model, contents.data)


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


# -- two models -----------------------------------------------------------------------------------


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


def check_model(model: Any) -> FittedEmbedding:
    """The fitted model of an estimator or of a file."""
    from efemb.fitted.embedding import FittedEmbedding

    if not callable(getattr(model, "fitted", None)):
        raise InputTypeError(
            f"an explorer shows embeddings, not a {type(model).__name__}: {_way_out(model)}"
        )
    fitted = model.fitted()
    if not isinstance(fitted, FittedEmbedding):
        raise InputTypeError(f"an explorer shows embeddings, not a {type(fitted).__name__}")
    return fitted


def _way_out(model: Any) -> str:
    """What to explore instead: a blend has no vectors of its own, but its members may."""
    members = getattr(model, "models_", {})
    shown = [name for name, one in members.items() if callable(getattr(one, "fitted", None))]
    if shown:
        listed = ", ".join(f"models_[{name!r}]" for name in shown)
        return f"it has no vectors of its own; explore one of its models ({listed})"
    return "pass a fitted estimator or a model from efemb.load"


def describe_card(contents: Contents) -> dict[str, Any]:
    """Facts, the course of training and, with test data, scores beside popularity."""
    model = contents.model
    card: dict[str, Any] = {"facts": _facts(model), "history": _history(model)}
    if contents.test is not None:
        card["scores"] = compare_with_popularity(contents)
    return card


def _facts(model: FittedEmbedding) -> list[list[str]]:
    spec = model.spec
    facts = [
        ["items", f"{model.n_entities:,}"],
        ["dimensions", f"{model.n_components:,}"],
        ["family", repr(spec.family)],
        ["link", spec.link.name()],
        ["context", repr(spec.context)],
    ]
    facts += [["term", repr(term)] for term in spec.terms]
    if model.history:
        facts.append(["passes", f"{len(model.history):,}"])
    best = [record.get("validation") for record in model.history]
    scores = [score for score in best if isinstance(score, float) and math.isfinite(score)]
    if scores:
        facts.append(["best validation score", f"{max(scores):.4f}"])
    return facts


def _history(model: FittedEmbedding) -> dict[str, Any]:
    """Passes and values of the curve that says most, thinned to a few hundred points."""
    for name in CURVES:
        pairs = [
            (index + 1, float(record[name]))
            for index, record in enumerate(model.history)
            if isinstance(record.get(name), int | float) and math.isfinite(record[name])
        ]
        if len(pairs) > 1:
            step = -(-len(pairs) // MOST_RECORDS)
            passes, values = zip(*pairs[::step], strict=True)
            return {"name": name, "passes": list(passes), "values": list(values)}
    return {}


def compare_with_popularity(contents: Contents) -> dict[str, Any]:
    """Scores of the test data, and by how much the model is better than popularity."""
    from efemb.evaluation.comparison import POPULARITY, compare

    table = compare(
        {contents.name: contents.model if contents.whole is None else contents.whole},
        contents.test,
        train=contents.data,
        reference=POPULARITY if contents.data is not None else None,
        progress=contents.progress,
    )
    rows = {row["model"]: row for row in table}
    mine = rows[contents.name]
    scores: dict[str, Any] = {"score": mine["score"], "n": mine["n"]}
    if POPULARITY in rows:
        scores |= {
            "popularity": rows[POPULARITY]["score"],
            "difference": mine["difference"],
            "low": mine["low"],
            "high": mine["high"],
        }
    finite = (int, float)
    return {
        name: float(value)
        for name, value in scores.items()
        if isinstance(value, finite) and math.isfinite(value)
    }
