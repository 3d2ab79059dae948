"""`efemb info`: what a saved model is."""

from __future__ import annotations

from typing import Any

from efemb.cli import _arguments as of

SHOWN = 5


def command(model: of.Model, as_json: of.Json = False) -> None:
    """Show what a saved model is made of.

    \b
      efemb info model
      efemb info model --json
    """
    from efemb.cli._asking import opened
    from efemb.cli._show import show_json, show_list

    told = described(opened(model))
    if as_json:
        show_json(told)
        return
    if "labels" in told:
        told["labels"] = ", ".join(map(str, told["labels"])) + ", ..."
    show_list(told)


def described(model: Any) -> dict[str, Any]:
    """Sizes, ingredients and history of a fitted model."""
    spec, history = model.spec, model.history
    told: dict[str, Any] = {
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
        told["passes"] = len(history)
        told["seconds"] = round(float(history[-1]["seconds"]), 2)
        scores = [one["validation"] for one in history if one.get("validation") is not None]
        if scores:
            told["best_validation"] = round(max(scores), 4)
    if model.vocabulary is not None:
        told["labels"] = _frequent(model.vocabulary)
    return told


def _frequent(vocabulary: Any) -> list[Any]:
    """The first labels, the most frequent ones where counts are known."""
    if vocabulary.counts is None:
        return list(vocabulary.labels[:SHOWN])
    places = (-vocabulary.counts).argsort(kind="stable")[:SHOWN]
    return list(vocabulary.labels[places])
