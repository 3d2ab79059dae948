"""BaseEmbedding: fitting and the scikit-learn contract, for every model."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.exceptions import ConvergenceWarning

from efemb.engine.fit import Fit, fit_model
from efemb.engine.options import Options
from efemb.engine.progress import ProgressBar
from efemb.errors import EfembError, InputTypeError, ParameterError, check_integer
from efemb.estimators import checks as checking
from efemb.estimators.continuation import add_counts, add_groups, grow, leave_absent, resume
from efemb.estimators.inputs import Prepared, prepare, read_data
from efemb.estimators.mixin import FittedMixin
from efemb.fitted.embedding import FittedEmbedding
from efemb.model.combine import Combine
from efemb.model.contexts.base import Context
from efemb.model.families import Family
from efemb.model.ingredient import Ingredient, flag
from efemb.model.links import Link
from efemb.model.priors import Prior
from efemb.model.spec import Spec
from efemb.model.structures import Structure
from efemb.model.zeros import Zeros

KINDS: dict[str, type[Ingredient]] = {
    "context": Context,
    "family": Family,
    "link": Link,
    "prior": Prior,
    "zeros": Zeros,
    "structure": Structure,
    "combine": Combine,
}


@dataclass(eq=False, repr=False)
class BaseEmbedding(FittedMixin, ClassNamePrefixFeaturesOutMixin, BaseEstimator):
    """Base of all estimators; a subclass defines its ingredients in `_spec`.

    `fit` stores a `FittedEmbedding`, which answers all questions.
    """

    n_components: int = 10
    _: KW_ONLY
    structure: Any = "per-entity"
    combine: Any = "linear"
    intercept: bool = True
    intercept_prior: Any = None
    terms: Any = None
    solver: str = "auto"
    optimizer: Any = "auto"
    batch_size: int | str | None = "auto"
    max_iter: int | None = None
    early_stopping: bool | str = True
    validation_fraction: float | None = None
    n_iter_no_change: int = 5
    tol: float = 1e-4
    warm_start: bool = False
    n_jobs: int | None = 1
    random_state: Any = None
    dtype: str = "float32"
    verbose: int = 0
    callbacks: Any = None

    _allow_real = False
    _binarize = False
    _way_out = "remove or correct such values"
    _passes = 0  # calls of `fit` and `partial_fit` so far

    @abstractmethod
    def _spec(self) -> Spec:
        """The checked ingredients."""

    def set_params(self, **params: Any) -> Self:
        """Set options of the estimator and of its ingredients.

        Parameters
        ----------
        **params
            Options by name; `context__k` sets the option `k` of the context, also if the context
            was passed as a string.

        Returns
        -------
        self
        """
        for key in params:
            name, _, inner = key.partition("__")
            if not inner or not hasattr(self, name):
                continue
            kind, value = KINDS.get(name), getattr(self, name)
            if kind is not None and isinstance(value, str):
                setattr(self, name, kind.resolve(value))
            elif not hasattr(value, "set_params"):
                raise ParameterError(
                    f"{key} cannot be set: {name} is {value!r}; pass an object first"
                )
        super().set_params(**params)
        return self

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        validation: Any = None,
        positions: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Fit the embedding.

        Parameters
        ----------
        X : Dataset, array, sparse matrix or data frame, rows x entities
            Training data. Text models take a path, documents, a function that returns documents,
            or a `Corpus`.
        y : ignored
            Present for compatibility with scikit-learn.
        validation : like X, optional
            Held-out entries of the same rows, or other rows; replaces the internal hold-out.
        positions : array of shape (N, p), optional
            Shorthand for `Neighbors(k, positions=...)`; not for text models.
        sample_weight : array of shape (rows,), optional
            Finite weights >= 0; not for text models. Rows of weight 0 still serve as context for
            other rows if the context reaches across rows.

        Returns
        -------
        self
        """
        with checking.all_or_nothing(self) as before:
            continues = self.warm_start and hasattr(self, "parameters_")
            start = self.parameters_.copy() if continues else None
            inputs = prepare(self, X, positions, sample_weight, validation, reset=True)
            if continues:
                checking.check_same_entities(inputs.data.entities, before.get("vocabulary_"))
            spec = self._spec()
            fit = fit_model(
                spec,
                inputs.data,
                self._options(),
                checking.generator(self.random_state),
                validation=inputs.validation,
                sample_weight=inputs.weight,
                start=start,
                center=self._centers(),
            )
            self._keep(fit, spec, inputs)
        self._warn_unconverged(fit)
        return self

    def partial_fit(
        self, X: Any, y: Any = None, *, positions: Any = None, sample_weight: Any = None
    ) -> Self:
        """Make one pass over X from the current parameters, without a hold-out.

        Zeros, noise and the order of rows are drawn again in every call. A `Checkpoint` only
        records complete fits. A schedule of steps (that of `SkipGram`) restarts with every
        call: pass a smaller step, `optimizer=SGD(0.005, decay="linear")`, for a batch of a few
        hundred documents, or the noise undoes a part of what was learned.

        Parameters
        ----------
        X : like the X of `fit`
            A labeled `Dataset` may contain new entities and, for models with `RowVectors` or
            `History`, new groups of rows, which are appended to the model. Counts
            of labels add up over the calls; words keep those of the first text, which define the
            noise and the tree of a text model.
        y : ignored
            Present for compatibility with scikit-learn.
        positions : array of shape (N, p), optional
            Shorthand for `Neighbors(k, positions=...)`; not for text models.
        sample_weight : array of shape (rows,), optional
            Finite weights >= 0; not for text models.

        Returns
        -------
        self
        """
        with checking.all_or_nothing(self) as before:
            first = not hasattr(self, "parameters_")
            lists, start, state = None, None, None
            rng = checking.generator(self.random_state, 0 if first else self._passes)
            if not first:
                lists = self.fitted().lists
                X, start, state = grow(self, X, rng)
            inputs = prepare(self, X, positions, sample_weight, None, reset=first)
            options = self._options(max_iter=1, early_stopping=False).without_checkpoints()
            if not first and self._auto_optimizer():  # so that its state remains valid
                options = replace(options, optimizer=self._optimizer)
            spec = self._with_frozen_context(self._spec())
            if start is not None and spec.terms:
                spec, start, state = add_groups(spec, start, state, inputs.data)
            fit = fit_model(
                spec,
                inputs.data,
                options,
                rng,
                start=start,
                state=state,
                sample_weight=inputs.weight,
                lists=lists,
                center=self._centers(),
            )
            if start is not None and spec.family.missing:
                absent = leave_absent(fit, start, inputs.data, spec.structure)
                inputs.report["absent_entities"] = absent
            self._keep(fit, spec, inputs, before.get("_fitted"))
            self._passes = before.get("_passes", 0) + 1
        return self

    def _options(self, **changes: Any) -> Options:
        if not isinstance(self.callbacks, (list, tuple, type(None))):
            raise InputTypeError(f"callbacks must be a list of callables, got {self.callbacks!r}")
        flag("warm_start", self.warm_start)
        if not isinstance(self.verbose, bool):
            check_integer("verbose", self.verbose, 0)
        bar = [ProgressBar(self.max_iter)] if self.verbose else []
        options: dict[str, Any] = {
            "n_components": checking.check_components(self.n_components),
            "solver": self.solver,
            "optimizer": self.optimizer,
            "batch_size": self.batch_size,
            "max_iter": self.max_iter,
            "early_stopping": self.early_stopping,
            "validation_fraction": self.validation_fraction,
            "n_iter_no_change": self.n_iter_no_change,
            "tol": self.tol,
            "n_jobs": self.n_jobs,
            "dtype": self.dtype,
            "callbacks": (*(self.callbacks or ()), *bar),
            "deterministic": getattr(self, "deterministic", False),
            "seeded": self.random_state is not None,
        }
        return Options(**{**options, **changes})

    def _auto_optimizer(self) -> bool:
        return (
            self._optimizer is not None
            and isinstance(self.optimizer, str)
            and self.optimizer == "auto"
        )

    def _read(self, X: Any, as_context: bool = False) -> Any:
        """X as `fit` reads it; the same rules hold whatever X is used for."""
        return read_data(self, X, reset=False)

    def _centers(self) -> bool:
        return flag("center", getattr(self, "center", False))

    def _binarizes(self) -> bool:
        return flag("binarize", getattr(self, "binarize", self._binarize))

    def _keep(
        self, fit: Fit, spec: Spec, inputs: Prepared, earlier: FittedEmbedding | None = None
    ) -> None:
        """Store the result of a fit; `earlier` is the model that `partial_fit` continued."""
        result, data = fit.result, inputs.data
        vocabulary = add_counts(data, None if earlier is None else earlier.vocabulary)
        checking.zero_constant_vectors(result.parameters, spec, data.n_entities, inputs.report)
        positions = getattr(data, "positions", None)
        if positions is None and earlier is not None:
            positions = earlier.positions
        self._fitted = FittedEmbedding(
            parameters=result.parameters,
            spec=replace(
                spec,
                family=result.family,
                context=fit.context,
                terms=fit.terms,
                structure=fit.spec.structure,
                prior_rho=fit.spec.prior_rho,
                prior_alpha=fit.spec.prior_alpha,
                weight_ridge=fit.spec.weight_ridge,
            ),
            vocabulary=vocabulary,
            positions=positions,
            lists=fit.lists,
            history=result.history,
            model=type(self).__name__,
            binarize=self._binarizes(),
        )
        self.vocabulary_ = vocabulary
        self.n_iter_, self.best_iter_ = result.n_iter, result.best_iter
        self.converged_ = result.converged
        self.solver_, self.gradient_ = fit.solver, fit.gradient
        self.report_ = {
            **inputs.report,
            **fit.report,
            "held_out": fit.held_out,
            "interrupted": result.interrupted,
        }
        self._optimizer_state, self._optimizer = result.state, fit.optimizer
        self._passes = result.n_iter
        self._n_features_out = self._fitted.n_components

    def _warn_unconverged(self, fit: Fit) -> None:
        result = fit.result
        if not result.converged and not result.interrupted:
            rising = result.best_iter == result.n_iter
            state = "was still improving" if rising else "had not converged"
            advice = "raise max_iter" if rising else "raise max_iter, or lower the optimizer's step"
            warnings.warn(
                f"{type(self).__name__} {state} after max_iter={result.n_iter} iterations; the "
                f"best parameters so far were kept: {advice}",
                ConvergenceWarning,
                stacklevel=3,
            )

    @classmethod
    def from_fitted(cls, fitted: FittedEmbedding, **params: Any) -> Self:
        """Create an estimator that continues from a fitted model.

        Parameters
        ----------
        fitted : FittedEmbedding
            Such as the result of `efemb.load`; its ingredients become those of the estimator.
        **params
            Options of the estimator, which take precedence over those of the model.

        Returns
        -------
        estimator
            With `warm_start=True`: `fit` and `partial_fit` continue from the model's parameters.
        """
        estimator: Self = resume(cls, fitted, params)
        return estimator

    def __sklearn_tags__(self) -> Any:
        """Sparse input; NaN if the family supports missing values; positive if it requires them."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        try:
            family = self._spec().family
        except EfembError:  # `fit` reports invalid ingredients; tags must not raise
            return tags
        tags.input_tags.allow_nan = family.missing
        tags.input_tags.positive_only = family.support.low == 0
        return tags
