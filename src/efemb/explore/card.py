"""The card of a model: what it is, how its training went, and how it does on held-out data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from efemb.explore.contents import Contents
    from efemb.fitted.embedding import FittedEmbedding

MOST_RECORDS = 400
CURVES = ("validation", "objective")


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
