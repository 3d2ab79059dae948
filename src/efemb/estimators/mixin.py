"""Predictions: what a fitted estimator says about data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from efemb._typing import Floats
from efemb.engine.flatten import profile_objective
from efemb.engine.precision import scaled
from efemb.engine.solvers.choice import choose_solver, make_solver
from efemb.engine.threads import workers
from efemb.estimators import checks as checking
from efemb.fitted import Queries
from efemb.fitted.embedding import FittedEmbedding
from efemb.model import predict
from efemb.model.contexts.base import BoundContext, ContextSum
from efemb.model.contexts.bound.entities import EntityLists, Lists
from efemb.model.contexts.window import WindowBags
from efemb.model.factors import Factors
from efemb.model.families import Family
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.model.support import check_sample_weight

if TYPE_CHECKING:
    from efemb.data.vocabulary import Vocabulary


def _has_labels(estimator: Any) -> bool:
    return getattr(estimator, "vocabulary_", None) is not None


# `set_output` wraps `transform` only where the class that defines it is a TransformerMixin.
class Predictions(Queries, TransformerMixin):
    """Methods of a fitted estimator; `BaseEmbedding` gives it data and ingredients."""

    solver: str
    n_jobs: int | None
    parameters_: Parameters
    embedding_: Floats
    context_: Floats
    intercept_: Floats | None
    family_: Family
    history_: list[dict[str, Any]]
    vocabulary_: Vocabulary | None
    positions_: Floats | None
    n_features_in_: int
    _lists: tuple[Lists, ...] | None
    _kept_context: ContextSum | None
    _n_slots: int
    _n_features_out: int
    _optimizer_state: Any
    _optimizer: Any

    if TYPE_CHECKING:

        def _spec(self) -> Spec: ...
        def _binarizes(self) -> bool: ...
        def _read(self, X: Any, *, reset: bool, positions: Any = None) -> Any: ...

    def _fitted_spec(self) -> Spec:
        return self._with_kept(replace(self._spec(), family=self.family_))

    def _with_kept(self, spec: Spec) -> Spec:
        """The model with the lists that its fit found in a sum of contexts."""
        kept = getattr(self, "_kept_context", None)
        return spec if kept is None else replace(spec, context=kept)

    def _bind(self, X: Any) -> tuple[Spec, BoundContext, Factors]:
        check_is_fitted(self, "parameters_")
        data = self._read(X, reset=False)
        spec = self._fitted_spec()
        bound = self._bound(spec, data)
        space = ParameterSpace(spec, bound.n_entities, bound.n_slots, bound.n_dims, self._k())
        return spec, bound, space.vectors(self.parameters_)

    def _bound(self, spec: Spec, data: Any) -> BoundContext:
        """The contexts of data; after a fit, by the lists that it found."""
        lists = getattr(self, "_lists", None)
        return spec.context.bind(data) if lists is None else EntityLists(data, lists)

    def _k(self) -> int:
        return int(self.embedding_.shape[1])

    def transform(self, X: Any) -> Floats:
        """Embed rows: each row's whole context sum X alpha / d, (rows, K)."""
        fitted = self.fitted()
        return fitted._embedded(self._read(X, reset=False))

    def context_sums(self, X: Any, entries: Any) -> Floats:
        """s_tn / d_tn of some cells.

        Parameters
        ----------
        X : like in `fit`
        entries : pair of integer arrays (rows, entities)

        Returns
        -------
        array (n, K)
        """
        _, bound, vectors = self._bind(X)
        rows, entities = predict.check_entries(entries, bound.n_rows, bound.n_entities)
        return predict.context_sums(bound, vectors, rows, entities)

    def conditional(self, X: Any) -> Floats:
        """Conditional mean of every entry given its context, in the shape of X.

        A categorical model gives probabilities: each row sums to 1 over the entities, every one of
        which is predicted without its own units in the context.
        """
        return predict.conditional_means(*self._bind(X))

    def log_means(self, X: Any, rows: Any, entities: Any) -> Iterator[tuple[slice, Floats]]:
        """log E[x_j | row without the asked entity] of all entities j; see `evaluation`.

        Parameters
        ----------
        X : like in `fit`, counts or binary data on rows
        rows, entities : integer arrays (n,)
            The asked cells; an entity that is in its row is taken out of it first.

        Yields
        ------
        (slice of the asked cells, array (cells, N)), block by block
        """
        return predict.log_mean_blocks(*self._bind(X), rows, entities)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """How well the entries of X are predicted from their contexts; higher is better.

        Counts and binary data on rows: normalised log-likelihood per unit, leaving one entry out
        at a time. Otherwise: mean conditional log-density per observed entry.
        """
        spec, bound, vectors = self._bind(X)
        if isinstance(bound, WindowBags):
            checking.no_weights(sample_weight, None)
        weight = check_sample_weight(sample_weight, bound.n_rows)
        return predict.score(spec, bound, vectors, weight)

    def objective(
        self, X: Any, parameters: Parameters, positions: Any = None
    ) -> tuple[float, Parameters]:
        """Value and gradient of the full objective at any parameters, in float64.

        The gradient is with respect to the unconstrained parameters: the logarithms where the
        vectors are positive. Neighbours are those of the fit, if there was one; with `positions`,
        or before a fit, those of X.
        """
        data = self._read(X, reset=False, positions=positions)
        spec = scaled(self._spec(), data)
        if positions is None:
            spec = self._with_kept(spec)
            bound = self._bound(spec, data)
        else:
            bound = spec.context.bind(data)
        k = int(np.shape(parameters.rho)[1])
        space = ParameterSpace(spec, bound.n_entities, bound.n_slots, bound.n_dims, k)
        checked = space.checked(parameters)
        with workers(self.n_jobs) as pool:
            name = choose_solver(self.solver, bound, spec)
            solver = make_solver(name, bound, spec, pool, dtype=np.float64)
            return profile_objective(space, solver, checked)

    @available_if(_has_labels)
    def predict(self, context: Any, top: int = 10, **options: Any) -> Any:
        """Entities that belong into a context of labels; see `efemb.fitted.predict`.

        Only after a fit to labelled data: scikit-learn takes `predict` for something else.
        """
        return super().predict(context, top, **options)

    def fitted(self) -> FittedEmbedding:
        """The result of the fit as an object of its own, free of scikit-learn and numba."""
        check_is_fitted(self, "parameters_")
        return FittedEmbedding(
            parameters=self.parameters_,
            spec=self._fitted_spec(),
            vocabulary=self.vocabulary_,
            positions=self.positions_,
            lists=self._lists,
            history=self.history_,
            model=type(self).__name__,
            binarize=self._binarizes(),
        )

    def save(self, path: Any) -> None:
        """Write the fitted model to a folder; read it with `efemb.load`."""
        self.fitted().save(path)
