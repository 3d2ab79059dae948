"""What a page shows of a model: labels, maps, vectors, relations, predictions and topics."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import InputTypeError, ParameterError
from efemb.explore.colors import (
    color_by_category,
    color_by_nothing,
    color_by_number,
    explained_variance,
    item_uncertainty,
)
from efemb.explore.groups import Groups
from efemb.explore.maps import MapMaker, available_vectors
from efemb.explore.page import describe_choices, describe_hints, describe_lists, plot_settings
from efemb.explore.pair_lists import add_answers, add_relations
from efemb.explore.payload import Payload, Quantized, small_integers
from efemb.explore.prediction import add_prediction
from efemb.explore.slices import add_slices
from efemb.fitted.cooccurrence import Support
from efemb.fitted.group_models import counts_by_group
from efemb.fitted.neighbor_weights import edge_weights
from efemb.fitted.rotation import varimax

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding

ROTATED = 5_000  # items that determine the rotation of topics
WORDS, CANDIDATES = 3, 12  # labels that name a topic, and those that may
BEGINNING = 20  # letters of such a label
LONGEST_LABEL = 10_000
LETTERS = 26  # of a label on a map
# Spaces and control characters, those of the direction of writing too.
_UNSEEN = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
MOST_RECORDS = 400
LISTED = 8  # of the most frequent items
CURVES = ("validation", "objective")
RIVALS = {
    "item": "popularity",
    "word": "word frequencies",
    "neuron": "the mean activity of each neuron",
}
# Numbers of items: array, column, name of the coloring, title of its legend, whether of logarithms.
NUMBERS = (
    ("counts", "count", "frequency", "frequency", True),
    ("r2", "r2", "R²", "R²", False),
    ("drift", "drift", "drift", "distance from first to last", True),
    ("uncertainty", "uncertainty", "uncertainty", "relative standard error", True),
)


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

    @cached_property
    def slice_counts(self) -> Ints | None:
        """Rows of each slice of time that hold each item, (G, N)."""
        return None if self.data is None else counts_by_group(self.model, self.data)

    def without_vectors(self) -> Contents:
        """The same for a page that asks a server."""
        return replace(self, vectors=False)


def make_payload(contents: Contents) -> Payload:
    """Header and arrays of one model."""
    model = contents.model
    payload = Payload(
        {
            "name": contents.name,
            "n": model.n_entities,
            "k": model.n_components,
            "noun": (noun := _noun(model)),
            "article": f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}",
            "labels": [str(label)[:LONGEST_LABEL] for label in model.entities],
            "short": [short_label(str(label)) for label in model.entities],
            "notes": [],
            "neural": False,  # whether each item has a list of neighbors with weights
            "prepared": {},  # columns of answers that the page has of every item
        }
    )
    _add_items(payload, contents)
    contents.maps.add_to(payload, contents.progress, more=not contents.vectors)
    _add_topics(payload, model)
    _add_neighbors(payload, contents)
    add_slices(payload, contents)
    add_relations(payload, contents)
    add_prediction(payload, model, contents.whole, vectors=contents.vectors)
    if contents.vectors:
        _add_vectors(payload, contents)
    payload.header |= {
        "spaces": list(contents.maps.spaces()),
        "card": describe_card(contents),
    }
    _add_colorings(payload, contents)
    payload.header |= {
        "hints": describe_hints(payload.header),
        "lists": describe_lists(payload.header),
        "plot": plot_settings(model.n_entities),
        "choices": describe_choices(payload.header),
    }
    return payload


def _add_colorings(payload: Payload, contents: Contents) -> None:
    """What is known of each item, and ways to color the map by it, that which says most first."""
    arrays, groups = payload.arrays, contents.groups
    columns: list[dict[str, Any]] = []
    payload.header["columns"] = columns
    if groups is not None:
        columns.append(_category("groups", groups.title, groups.names, groups.codes))
        color_by_category(payload, "groups", groups.title, arrays["groups"], groups.names)
    for key, column, name, title, log in NUMBERS:
        if key in arrays:
            columns.append({"key": key, "array": key, "title": column})
            color_by_number(payload, key, name, title, arrays[key], log=log)
    topics = payload.header["topics"]
    columns.append(_category("topics", "topic", topics, arrays["topics"]))
    color_by_category(payload, "topics", "topic", arrays["topics"], topics)
    color_by_nothing(payload)


def _category(key: str, title: str, names: list[str], codes: Ints) -> dict[str, Any]:
    """A column of categories: their names, and the share of all items that is in each."""
    shares = np.bincount(codes[codes >= 0], minlength=len(names)) / max(len(codes), 1)
    return {"key": key, "array": key, "title": title, "names": names, "shares": shares.tolist()}


def _noun(model: FittedEmbedding) -> str:
    if model.spec.context.reads_text:
        return "word"
    return "neuron" if model.lists is not None and model.positions is not None else "item"


def _add_items(payload: Payload, contents: Contents) -> None:
    """How often each item occurs, its group and its uncertainty, where they are known."""
    counts = contents.model.entities.counts
    if isinstance(contents.support, Support):  # the rows that lift and shares are about
        counts = contents.support.counts
    n = contents.model.n_entities
    # Of labels on the map; without counts in any order that is not one of places or names.
    order = (
        np.random.default_rng(0).permutation(n)
        if counts is None
        else np.argsort(-counts, kind="stable")
    )
    payload.arrays["order"] = order.astype(np.int32)
    if counts is not None:
        payload.arrays["counts"] = counts.astype(np.float32)
        rows = [{"code": int(code), "count": float(counts[code])} for code in order[:LISTED]]
        payload.header["frequent"] = {"rows": rows}
    elif payload.header["noun"] != "neuron":
        payload.header["notes"].append("The model does not store how often its items occur.")
    groups = contents.groups
    if groups is not None:
        payload.arrays["groups"] = small_integers(groups.codes)
        payload.header["notes"].append(groups.remark() + ".")
    if contents.errors is not None:
        payload.arrays["uncertainty"] = item_uncertainty(contents.model, contents.errors)


def _add_vectors(payload: Payload, contents: Contents) -> None:
    vectors = contents.maps.spaces()
    payload.header["quantization"] = {"bits": contents.bits}
    errors = {}
    for space, array in vectors.items():
        payload.vectors[space] = quantized = Quantized.of(array, contents.bits)
        errors[space] = float(np.abs(quantized.restore() - array).max(initial=0.0))
    payload.header["quantization"]["largest_error"] = errors
    payload.header["notes"].append(
        f"Vectors are rounded to {contents.bits} bits: the largest error of a number is "
        f"{max(errors.values()):.1e}."
    )


def short_label(label: str) -> str:
    """One line for a map. Names often differ by a size or number at their end, which is kept."""
    text = _UNSEEN.sub(" ", label[:LONGEST_LABEL]).strip()
    if len(text) <= LETTERS:
        return text or "(blank)"
    last = text.rpartition(" ")[2]
    end = last if len(last) <= LETTERS / 3 and re.search(r"\d", last) else ""
    return f"{text[: LETTERS - len(end) - 1].rstrip()}…{end}"


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


# -- neurons --------------------------------------------------------------------------------------


def _add_neighbors(payload: Payload, contents: Contents) -> None:
    """Weights of fixed lists of neighbors, and R^2 of each item."""
    model = contents.model
    if model.lists is None:
        return
    try:
        owner, member, _, weight = edge_weights(model)
    except ParameterError as error:
        payload.header["notes"].append(f"Weights are not shown: {error}.")
        return
    order = np.lexsort((-weight, owner))
    payload.header["neural"] = True
    if contents.vectors:
        columns = {"code": member[order], "weight": weight[order]}
        add_answers(payload, "weights", owner[order], model.n_entities, columns)
    if contents.data is not None and not hasattr(contents.data, "tokens"):
        payload.arrays["r2"] = explained_variance(model, contents.data)


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
    card: dict[str, Any] = {"facts": _facts(model), "history": _history(model), "verdict": ""}
    if contents.test is not None:
        card["scores"] = compare_with_popularity(contents)
        card["verdict"] = describe_scores(card["scores"], RIVALS[_noun(model)])
    return card


def describe_scores(scores: dict[str, float], rival: str) -> str:
    """The score of the test data, and the difference from popularity, in a sentence.

    rival : what popularity is for this kind of items
    """
    own = f"Score {scores['score']:.4f} on {scores['n']:,.0f} held-out entries"
    if "popularity" not in scores:
        return f"{own}."
    verdict = "better" if scores["difference"] >= 0 else "worse"
    return (
        f"{own}: {verdict} than {rival} ({scores['popularity']:.4f}) by "
        f"{abs(scores['difference']):.4f} (95% interval of the difference {scores['low']:.3f} to "
        f"{scores['high']:.3f})."
    )


def _facts(model: FittedEmbedding) -> list[list[str]]:
    spec = model.spec
    facts = [
        [f"{_noun(model)}s", f"{model.n_entities:,}"],
        ["dimensions", f"{model.n_components:,}"],
        ["family", _describe(spec.family)],
        ["link", spec.link.name()],
        ["context", _describe(spec.context)],
    ]
    facts += [["term", _describe(term)] for term in spec.terms]
    if model.history:
        facts.append(["passes", f"{len(model.history):,}"])
    best = [record.get("validation") for record in model.history]
    scores = [score for score in best if isinstance(score, float) and math.isfinite(score)]
    if scores:
        facts.append(["best validation score", f"{max(scores):.4f}"])
    return facts


def _describe(ingredient: Any) -> str:
    """An ingredient with four digits of its numbers."""
    return re.sub(r"\d+\.\d{4,}", lambda number: f"{float(number[0]):.4g}", repr(ingredient)[:300])


def _history(model: FittedEmbedding) -> dict[str, str] | None:
    """The curve that says most: its title, points of a line 300 wide and 60 high, and its ends."""
    for name in CURVES:
        numbers = [record.get(name) for record in model.history]
        values = np.array([x for x in numbers if isinstance(x, int | float) and math.isfinite(x)])
        if len(values) > 1:
            x = np.linspace(0, 300, len(values))
            y = 60 - 58 * (values - values.min()) / (np.ptp(values) or 1.0)
            few = slice(None, None, -(-len(values) // MOST_RECORDS))
            first, last = (
                f"{end:,.0f}" if abs(end) >= 1000 else f"{end:.4g}" for end in values[[0, -1]]
            )
            return {
                "title": f"Training: {name} by pass",
                "points": " ".join(f"{a:.1f},{b:.2f}" for a, b in zip(x[few], y[few], strict=True)),
                "caption": f"{first} at first, {last} at the end",
            }
    return None


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
    return {name: float(value) for name, value in scores.items() if math.isfinite(value)}
