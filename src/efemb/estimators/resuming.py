"""Resuming: an estimator that goes on from a fitted model."""

from __future__ import annotations

from typing import Any

from efemb.contexts.base import ContextSum
from efemb.contexts.kept import as_written
from efemb.errors import ParameterError, suggest
from efemb.fitted import FittedEmbedding

INGREDIENTS = ("context", "family", "link", "zeros", "structure", "combine")


def resumed(kind: Any, fitted: FittedEmbedding, params: dict[str, Any]) -> Any:
    """An estimator of this kind with the model's ingredients and vectors; `params` go first."""
    found = kind(n_components=fitted.n_components, warm_start=True)
    spec = fitted.spec
    kept = {name: getattr(spec, name) for name in INGREDIENTS}
    if fitted.binarize:
        kept["binarize"] = True
        if not hasattr(found, "binarize"):
            raise ParameterError(
                f"the model counts every non-zero value as 1, and {kind.__name__} has no binarize: "
                "use BernoulliEmbedding.from_fitted"
            )
    kept["context"] = as_written(spec.context)
    kept["prior"] = (spec.prior_rho, spec.prior_alpha)
    kept.update(intercept=spec.intercept, intercept_prior=spec.intercept_prior)
    options = found.get_params(deep=False)
    for name in params:
        if name not in options:
            raise ParameterError(
                f"{kind.__name__} has no option {name!r}; {suggest(name, options)}"
            )
    for name, value in {**kept, **params}.items():
        setattr(found, name, value)
    found.parameters_ = fitted.parameters.copy()
    found.embedding_, found.context_ = found.parameters_.rho, found.parameters_.alpha
    found.intercept_ = found.parameters_.intercept
    found.position_ = found.parameters_.position
    found.family_, found.history_ = fitted.spec.family, list(fitted.history)
    found.vocabulary_, found.positions_ = fitted.vocabulary, fitted.positions
    found._lists, found._optimizer_state, found._optimizer = fitted.lists, None, None
    found._n_slots = fitted.n_slots
    found._kept_context = spec.context if isinstance(spec.context, ContextSum) else None
    found.n_features_in_ = fitted.n_entities
    found._n_features_out = fitted.n_components
    return found
