"""`efemb info`: what a saved model consists of."""

from __future__ import annotations

from typing import Any

import efemb
from efemb.cli import _arguments as of
from efemb.cli._labels import embedding_of
from efemb.cli._output import show_fields, show_json

SHOWN = 5
OF_BASKETS = ("pairs", "history", "held_out_score")
OF_VECTORS = ("passes", "seconds", "best_validation")  # of which a mixture has others as a whole


def command(model: of.Model, as_json: of.Json = False) -> None:
    """Show the ingredients, sizes and history of a saved model.

    \b
      efemb info model
      efemb info model --json
    """
    loaded = efemb.load(model)
    fields = describe_model(embedding_of(loaded, model))
    if loaded.fitted() is not loaded:  # a mixture, of which the vectors are one part
        of_vectors = {
            f"{name}_of_vectors": fields.pop(name) for name in OF_VECTORS if name in fields
        }
        fields = {"model": type(loaded).__name__, "vectors": fields.pop("model"), **fields}
        fields |= of_vectors
    report = getattr(loaded, "report_", {})
    fields |= {name: report[name] for name in OF_BASKETS if name in report}
    if as_json:
        show_json(fields)
        return
    if "labels" in fields:
        fields["labels"] = ", ".join(map(str, fields["labels"])) + ", ..."
    scores = fields.get("held_out_score", {})
    if scores:
        fields["held_out_score"] = ", ".join(f"{of} {score:.4f}" for of, score in scores.items())
    show_fields(fields)


def describe_model(model: Any) -> dict[str, Any]:
    """Sizes, ingredients and history of a fitted model."""
    spec, history = model.spec, model.history
    fields: dict[str, Any] = {
        "model": model.model,
        "entities": model.n_entities,
        "components": model.n_components,
        "context": repr(spec.context),
        "family": repr(spec.family),
        "link": spec.link.name(),
        "prior_rho": repr(spec.prior_rho),
        "prior_alpha": repr(spec.prior_alpha),
        "zeros": repr(spec.zeros),
        "intercept": model.parameters.intercept is not None,
    }
    if history:
        fields["passes"] = len(history)
        fields["seconds"] = round(float(history[-1]["seconds"]), 2)
        scores = [entry["validation"] for entry in history if entry.get("validation") is not None]
        if scores:
            fields["best_validation"] = round(max(scores), 4)
    if model.vocabulary is not None:
        fields["labels"] = _list_frequent(model.vocabulary)
    return fields


def _list_frequent(vocabulary: Any) -> list[Any]:
    """The first labels, or the most frequent ones if counts are known."""
    if vocabulary.counts is None:
        return list(vocabulary.labels[:SHOWN])
    most_frequent = (-vocabulary.counts).argsort(kind="stable")[:SHOWN]
    return list(vocabulary.labels[most_frequent])
