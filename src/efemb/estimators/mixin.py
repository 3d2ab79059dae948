"""FittedMixin: attributes and methods of a fitted estimator, all taken from one fitted model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from efemb._typing import Floats
from efemb.engine.precision import scaled
from efemb.engine.prior_choice import choose_priors
from efemb.engine.search import profile_objective
from efemb.engine.solvers.choice import choose_solver, make_solver
from efemb.engine.statistics import centered
from efemb.engine.threads import workers
from efemb.estimators.inputs import read_data
from efemb.fitted.docstrings import documented_by
from efemb.fitted.embedding import DataMethods, FittedEmbedding
from efemb.fitted.queries import Queries
from efemb.model.contexts.bound.entities import EntityLists
from efemb.model.families import Family
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec

if TYPE_CHECKING:
    from efemb.data.vocabulary import Vocabulary


def _has_labels(estimator: Any) -> bool:
    return getattr(estimator, "vocabulary_", None) is not None


class FittedMixin(DataMethods, TransformerMixin):
    """Attributes and methods of a fitted estimator; `BaseEmbedding` makes the fit."""

    solver: str
    n_jobs: int | None
    vocabulary_: Vocabulary | None
    n_features_in_: int
    _fitted: FittedEmbedding
    _optimizer_state: Any = None
    _optimizer: Any = None
    _n_features_out: int

    if TYPE_CHECKING:

        def _spec(self) -> Spec: ...
        def _binarizes(self) -> bool: ...

    def fitted(self) -> FittedEmbedding:
        """The result of the fit as an object of its own, free of scikit-learn and numba.

        Returns
        -------
        FittedEmbedding
            The same object until the next fit, so that unit vectors, once made, are kept.
        """
        fitted: FittedEmbedding | None = vars(self).get("_fitted")
        if fitted is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")
        return fitted

    @property
    def parameters_(self) -> Parameters:
        """All learned arrays; assign those of a checkpoint, for example, to start a fit there."""
        return self.fitted().parameters

    @parameters_.setter
    def parameters_(self, parameters: Parameters) -> None:
        if "_fitted" in vars(self):
            self._fitted = replace(self._fitted, parameters=parameters)
        else:
            self._fitted = FittedEmbedding(
                parameters, self._spec(), model=type(self).__name__, binarize=self._binarizes()
            )

    @property
    def rho_(self) -> Floats:
        """The embeddings, (N, K)."""
        return self.parameters_.rho

    @property
    def alpha_(self) -> Floats:
        """The context vectors, (N, K)."""
        return self.parameters_.alpha

    @property
    def embedding_(self) -> Floats:
        """Alias of `rho_`."""
        return self.rho_

    @property
    def context_(self) -> Floats:
        """Alias of `alpha_`."""
        return self.alpha_

    @property
    def intercept_(self) -> Floats | None:
        """Intercepts, (N,)."""
        return self.parameters_.intercept

    @property
    def position_(self) -> Floats | None:
        """Weights of the positions of a positional `Window`."""
        return self.parameters_.position

    @property
    def positions_(self) -> Floats | None:
        """Positions of the entities, (N, p)."""
        return self.fitted().positions

    @property
    def family_(self) -> Family:
        """The family, with a learned dispersion."""
        return self.fitted().spec.family

    @property
    def history_(self) -> list[dict[str, Any]]:
        """One record per iteration."""
        return self.fitted().history

    def save(self, path: Any) -> None:
        """Write the fitted model to a folder; `efemb.load` reads it.

        Parameters
        ----------
        path : str or path
            A folder; a model that was saved there before is replaced as a whole.
        """
        self.fitted().save(path)

    # `set_output` only wraps methods that are defined in a TransformerMixin.
    def transform(self, X: Any) -> Floats:
        """Embed rows: the context sum X alpha / d of each whole row.

        Parameters
        ----------
        X : like the X of `fit`
            Rows of numbers, or documents for a text model.

        Returns
        -------
        array of shape (rows, K)
            Missing values are skipped; an empty row gives zeros.
        """
        return super().transform(X)

    @available_if(_has_labels)
    @documented_by(Queries.predict)
    def predict(self, context: Any, n: int = 10, **options: Any) -> Any:  # noqa: D102
        # Only after a fit to labeled data: scikit-learn expects something else of `predict`.
        return super().predict(context, n, **options)

    def objective(
        self, X: Any, parameters: Parameters, positions: Any = None
    ) -> tuple[float, Parameters]:
        """Value and gradient of the full objective at any parameters, in float64.

        Parameters
        ----------
        X : like the X of `fit`
        parameters : Parameters
            Where to evaluate; arrays in the shapes of `parameters_`.
        positions : array of shape (N, p), optional
            Neighbors are chosen again, by these positions. Otherwise they are those of the fit, or
            those of X before a fit.

        Returns
        -------
        value : float
        gradient : Parameters
            With respect to the unconstrained parameters: the logarithms of positive vectors.
        """
        data = read_data(self, X, reset=False, positions=positions)
        spec = self._spec()
        spec = scaled(replace(spec, family=spec.family.freeze(data)), data)
        lists = None
        if positions is None and "_fitted" in vars(self):
            spec, lists = self._with_frozen_context(spec), self._fitted.lists
        bound = spec.context.bind(data) if lists is None else EntityLists(data, lists)
        if lists is None and getattr(self, "center", False):
            bound = centered(bound, data)
        k = int(np.shape(parameters.rho)[1])
        with workers(self.n_jobs) as pool:
            name = choose_solver(self.solver, bound, spec)
            solver = make_solver(name, bound, spec, pool, dtype=np.float64)
            chosen = choose_priors(spec, solver, bound.lists, keep=lists is not None)
            space = ParameterSpace(chosen.spec, bound.n_entities, bound.n_slots, bound.n_dims, k)
            checked = space.checked(parameters)
            return profile_objective(space, solver, checked)

    def _with_frozen_context(self, spec: Spec) -> Spec:
        """The ingredients as the fit froze them: lists in a sum of contexts, groups of terms."""
        fitted: FittedEmbedding | None = vars(self).get("_fitted")
        if fitted is None:
            return spec
        spec = replace(spec, terms=fitted.spec.terms, structure=fitted.spec.structure)
        if fitted.spec.weight_ridge is not None and self._fitted.lists is not None:
            frozen = fitted.spec
            spec = replace(spec, prior_rho=frozen.prior_rho, prior_alpha=frozen.prior_alpha)
        return replace(spec, context=fitted.spec.context) if fitted.spec.context.is_sum else spec
