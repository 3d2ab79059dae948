"""Continuation of a fit: by `partial_fit` on data with new entities, or from a fitted model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.data.align import positions_with_new, with_new
from efemb.data.dataset import Dataset, recount
from efemb.data.vocabulary import Vocabulary
from efemb.engine.fit import Fit
from efemb.engine.optimizers.first_order import OptimizerState
from efemb.errors import DataError, ParameterError, suggest
from efemb.estimators.checks import never_observed
from efemb.fitted.embedding import FittedEmbedding
from efemb.model.parameters import Parameters
from efemb.model.spec import Spec
from efemb.model.structures import Structure
from efemb.model.terms.base import Term

if TYPE_CHECKING:
    from efemb.estimators.base import BaseEmbedding

State = OptimizerState | None
INGREDIENTS = ("context", "family", "link", "zeros", "structure", "combine")


def grow(
    estimator: BaseEmbedding, X: Any, rng: np.random.Generator
) -> tuple[Any, Parameters, State]:
    """Bring the entities of X into the estimator's order, and add parameters for new ones."""
    fitted = estimator.fitted()
    parameters, state = fitted.parameters.copy(), estimator._optimizer_state
    known = fitted.vocabulary
    if not isinstance(X, Dataset) or X.entities is None or known is None:
        return X, parameters, state
    if list(X.entities.labels) == list(known.labels):
        return X, parameters, state
    structure = fitted.spec.structure
    several = structure.grouped or len(parameters.alpha) != len(parameters.rho)
    several |= not (structure.tied or all(structure.own_rows))
    if parameters.rho.ndim > 2 or several:
        raise DataError(
            "only models with one pair of vectors per entity can take new entities: fit again"
        )
    absent = np.nan if estimator._spec().family.missing else 0.0
    data = with_new(X, known, len(known), absent=absent)
    n_new = data.n_entities - len(known)
    if n_new and (fitted.lists is not None or fitted.spec.context.is_sum):
        raise DataError(
            f"the data have {n_new:,} new entities, for which this model has no neighbors: use "
            "efemb.inference.fold_in, or fit again"
        )
    if fitted.positions is not None:
        positions = positions_with_new(X, data, known, fitted.positions)
        data = data._replace(data.values, positions=positions)
    assert data.entities is not None
    estimator.vocabulary_ = data.entities
    estimator.n_features_in_ = data.n_entities
    wider = _extend_parameters(parameters, n_new, rng)
    wider.terms.update(_extend_terms(fitted.spec.terms, parameters.terms, data.n_entities))
    return data, wider, _extend_state(state, wider)


def add_groups(
    spec: Spec, parameters: Parameters, state: State, data: Any
) -> tuple[Spec, Parameters, State]:
    """Make room for groups of rows (households) that the terms of a model do not know yet."""
    terms = tuple(term.add_groups(data) for term in spec.terms)
    arrays = _extend_terms(terms, parameters.terms, data.n_entities)
    wider = replace(parameters, terms=arrays)
    return replace(spec, terms=terms), wider, _extend_state(state, wider)


def _extend_terms(
    terms: Iterable[Term], known: Mapping[str, Floats], n_entities: int
) -> dict[str, Floats]:
    """Arrays of terms with zeros, the prior mean, for new entities and new groups of rows.

    Positive ones have means of the known rows.
    """
    extended = dict(known)
    for term in terms:
        for array in term.arrays(n_entities):
            name = f"{term.label}.{array.name}"
            fill = known[name].mean(axis=0) if array.positive and len(known[name]) else 0.0
            extended[name] = _pad(known[name], array.shape[0], fill)
    return extended


def _pad(array: Floats, size: int, fill: Floats | float = 0.0) -> Floats:
    """The array with rows of zeros, or other numbers, at its end."""
    rows = np.zeros((size - len(array), *array.shape[1:]), dtype=array.dtype)
    rows[:] = fill
    return np.concatenate([array, rows])


def add_counts(data: Any, earlier: Vocabulary | None) -> Vocabulary | None:
    """The labels of the data; their counts, if any, are summed over all batches so far.

    Words keep the counts of the first text, which define the noise and the tree of the model.
    """
    labels: Vocabulary | None = data.entities
    if not isinstance(data, Dataset) or labels is None or earlier is None:
        return labels
    if earlier.counts is None:
        return labels
    counts = np.zeros(len(labels))
    counts[: len(earlier)] = earlier.counts
    batch = recount(labels.with_counts(counts), data.values)
    assert batch is not None
    assert batch.counts is not None
    return batch.with_counts(counts + batch.counts)


def leave_absent(fit: Fit, before: Parameters, data: Dataset, structure: Structure) -> list[int]:
    """Restore the parameters of unobserved entities, which the prior alone would change."""
    after, n_entities = fit.result.parameters, data.n_entities
    absent = np.flatnonzero(never_observed(data))
    own = (*structure.own_rows, True)
    for new, old, by_entity in zip(after.arrays(), before.arrays(), own, strict=False):
        if by_entity:
            # An entity may have several slots of context vectors.
            shape = (-1, n_entities, *new.shape[1:])
            new.reshape(shape)[:, absent] = old.reshape(shape)[:, absent]
    return absent.tolist()


def _extend_parameters(parameters: Parameters, n: int, rng: np.random.Generator) -> Parameters:
    """Draw new rows that resemble the old ones in size, with the lowest intercept."""

    def extended(table: Floats) -> Floats:
        if (table > 0).all():
            rows = np.exp(rng.normal(np.log(table).mean(), 0.1, (n, table.shape[1])))
        else:
            rows = rng.normal(0.0, 0.1 / np.sqrt(table.shape[1]), (n, table.shape[1]))
        return np.concatenate([table, rows.astype(table.dtype)])

    intercept = parameters.intercept
    if intercept is not None:
        intercept = np.concatenate([intercept, np.full(n, intercept.min(), intercept.dtype)])
    tied = np.array_equal(parameters.rho, parameters.alpha)
    rho = extended(parameters.rho)
    return Parameters(rho, rho if tied else extended(parameters.alpha), intercept)


def _extend_state(state: State, parameters: Parameters) -> State:
    """Extend the arrays of the optimizer, which are numbered like those of the parameters."""
    if state is None:
        return None
    sizes = [len(array) for array in parameters.arrays()]
    extended: dict[str, Any] = {}
    for name, array in state.arrays.items():
        number = re.search(r"\d+$", name)
        extended[name] = array if number is None else _pad(array, sizes[int(number[0])])
    return OptimizerState(state.optimizer, extended)


def resume(kind: Any, fitted: FittedEmbedding, params: dict[str, Any]) -> Any:
    """Create an estimator with the ingredients and vectors of a model; `params` take precedence."""
    estimator = kind(n_components=fitted.n_components, warm_start=True)
    spec = fitted.spec
    settings = {name: getattr(spec, name) for name in INGREDIENTS}
    if fitted.binarize:
        settings["binarize"] = True
        if not hasattr(estimator, "binarize"):
            raise ParameterError(
                f"the model counts every non-zero value as 1, and {kind.__name__} has no binarize: "
                "use BernoulliEmbedding.from_fitted"
            )
    settings["context"] = spec.context.as_written()
    settings["prior"] = (spec.prior_rho, spec.prior_alpha)
    if spec.terms:
        settings["terms"] = list(spec.terms)
    settings.update(intercept=spec.intercept, intercept_prior=spec.intercept_prior)
    options = estimator.get_params(deep=False)
    if "weight_ridge" in options:
        settings["weight_ridge"] = spec.weight_ridge
        settings["center"] = any(part.center is not None for part in fitted.lists or ())
    for name in params:
        if name not in options:
            raise ParameterError(
                f"{kind.__name__} has no option {name!r}; {suggest(name, options)}"
            )
    for name, value in {**settings, **params}.items():
        setattr(estimator, name, value)
    estimator._fitted = replace(
        fitted,
        parameters=fitted.parameters.copy(),
        history=list(fitted.history),
        model=kind.__name__,
    )
    estimator.vocabulary_, estimator.n_features_in_ = fitted.vocabulary, fitted.n_entities
    estimator._n_features_out = fitted.n_components
    return estimator
