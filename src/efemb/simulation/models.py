"""Models by name, as the ingredients they are made of."""

from __future__ import annotations

from typing import Any

from efemb.errors import InputTypeError, ParameterError, suggest
from efemb.spec import Spec

MODELS: dict[str, dict[str, Any]] = {
    "g-emb": {"context": "neighbors", "family": "gaussian"},
    "ng-emb": {"context": "neighbors", "family": "gaussian", "prior": "half-normal"},
    "p-emb": {"context": "basket", "family": "poisson"},
    "ap-emb": {"context": "basket", "family": "poisson", "link": "log", "prior": "half-normal"},
    "b-emb": {"context": "basket", "family": "bernoulli"},
    "categorical": {"context": "basket", "family": "categorical"},
    "negative-binomial": {"context": "basket", "family": "negative-binomial"},
}
INGREDIENTS = (
    "context",
    "family",
    "link",
    "combine",
    "structure",
    "prior",
    "zeros",
    "intercept",
    "intercept_prior",
)


def spec_of(model: str | Spec, ingredients: dict[str, Any]) -> Spec:
    """The checked ingredients of a named model, some of them exchanged."""
    for name in ingredients:
        if name not in INGREDIENTS:
            raise ParameterError(f"unknown ingredient {name!r}; {suggest(name, INGREDIENTS)}")
    if isinstance(model, Spec):
        if ingredients:
            raise ParameterError("a Spec is complete: give it, or ingredients, not both")
        model.check()
        return model
    if not isinstance(model, str):
        raise InputTypeError(f"model must be a name or a Spec, got {model!r}")
    if model not in MODELS:
        raise ParameterError(f"unknown model {model!r}; {suggest(model, MODELS)}")
    return Spec.resolve(**{**MODELS[model], **ingredients})
