"""BaseEmbedding: fitting and the scikit-learn contract, for every model."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.exceptions import ConvergenceWarning

from efemb.combine import Combine
from efemb.contexts.base import Context, ContextSum
from efemb.contexts.window import Window
from efemb.data.corpus import Corpus
from efemb.data.readers.words import recoded
from efemb.domains import binarized, check_not_negative, check_sample_weight, check_support
from efemb.engine.fit import Fit, fit_model
from efemb.engine.options import Options
from efemb.engine.progress import ProgressBar
from efemb.errors import EfembError, InputTypeError, ParameterError
from efemb.estimators import checking
from efemb.estimators.growing import grown, leave_absent
from efemb.estimators.predicting import Predictions
from efemb.estimators.reading import read
from efemb.estimators.resuming import resumed
from efemb.estimators.words import read_words
from efemb.families import Family, Gaussian
from efemb.fitted import FittedEmbedding
from efemb.ingredient import Ingredient
from efemb.links import Link
from efemb.parameters import Parameters
from efemb.priors import Prior
from efemb.spec import Spec
from efemb.structures import Structure
from efemb.types import Floats
from efemb.zeros import Zeros

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
class BaseEmbedding(Predictions, ClassNamePrefixFeaturesOutMixin, BaseEstimator):
    """What every embedding shares; models say in `_spec` which ingredients they are made of."""

    n_components: int = 10
    _: KW_ONLY
    structure: Any = "per-entity"
    combine: Any = "linear"
    intercept: bool = True
    intercept_prior: Any = None
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
    _passes = 0  # so far, of `fit` and `partial_fit`

    @abstractmethod
    def _spec(self) -> Spec:
        """The checked ingredients."""

    def set_params(self, **params: Any) -> Self:
        """Set options; `context__k` and the like also work where a name was given."""
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
            Text models: a path, documents, a function that returns them or a `Corpus`, and neither
            `positions` nor `sample_weight`.
        y : ignored
        validation : like X, optional
            Entries of the same rows that X lacks, or other rows; replaces the internal hold-out.
        positions : array (entities, p), optional
            Shorthand for `Neighbors(k, positions=...)`.
        sample_weight : array (rows,), optional
            Rows of weight 0 are still context where the context reaches across rows.

        Returns
        -------
        self
        """
        before = dict(self.__dict__)
        try:
            start = self._start() if self.warm_start and hasattr(self, "parameters_") else None
            found = self._prepared(X, positions, sample_weight, validation, reset=True)
            data, weight, held, report = found
            if start is not None:
                checking.check_same_entities(data.entities, before.get("vocabulary_"))
            spec = self._spec()
            fit = fit_model(
                spec,
                data,
                self._options(),
                checking.generator(self.random_state),
                validation=held,
                sample_weight=weight,
                start=start,
            )
            self._keep(fit, spec, data, report)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        self._warn_unconverged(fit)
        return self

    def partial_fit(
        self, X: Any, y: Any = None, *, positions: Any = None, sample_weight: Any = None
    ) -> Self:
        """One pass over X from where the estimator stands, without a hold-out.

        Zeros, noise and order are drawn anew in every call. A `Checkpoint` keeps whole fits only.
        Only a `Dataset` with labels may bring new entities; they are added at the end.
        """
        before = dict(self.__dict__)
        try:
            first = not hasattr(self, "parameters_")
            start, state = None, None
            rng = checking.generator(self.random_state, 0 if first else self._passes)
            if not first:
                X, start, state = grown(self, X, rng)
            found = self._prepared(X, positions, sample_weight, None, reset=first)
            data, weight, _, report = found
            options = self._options(max_iter=1, early_stopping=False).without_checkpoints()
            if not first and self._auto_optimizer():  # the state of another one would be lost
                options = replace(options, optimizer=self._optimizer)
            spec = self._spec() if first else self._with_kept(self._spec())
            lists = None if first else self._lists
            extra: dict[str, Any] = {
                "start": start,
                "state": state,
                "sample_weight": weight,
                "lists": lists,
            }
            fit = fit_model(spec, data, options, rng, **extra)
            if start is not None and spec.family.missing:
                report["absent_entities"] = leave_absent(fit, start, data, spec.structure)
            self._keep(fit, spec, data, report)
            self._passes = before.get("_passes", 0) + 1
            if self.positions_ is None:
                self.positions_ = before.get("positions_")
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _options(self, **changes: Any) -> Options:
        if not isinstance(self.callbacks, (list, tuple, type(None))):
            raise InputTypeError(f"callbacks must be a list of callables, got {self.callbacks!r}")
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
        known = getattr(self, "_optimizer", None) is not None
        return known and isinstance(self.optimizer, str) and self.optimizer == "auto"

    def _start(self) -> Parameters:
        return self.parameters_.copy()

    def _read(self, X: Any, *, reset: bool, positions: Any = None) -> Any:
        spec = self._spec()
        if isinstance(spec.context, Window):
            return read_words(self, X, reset=reset)
        data = read(self, X, reset=reset, positions=positions)
        if self._binarizes():
            check_not_negative(data)
            data = binarized(data)
        allow_real = bool(getattr(self, "allow_real", self._allow_real))
        check_support(data, spec.family, allow_real=allow_real, way_out=self._way_out)
        return data

    def _binarizes(self) -> bool:
        return bool(getattr(self, "binarize", self._binarize))

    def _prepared(
        self, X: Any, positions: Any, sample_weight: Any, validation: Any, *, reset: bool
    ) -> tuple[Any, Floats | None, Any, dict[str, Any]]:
        """Checked data, weights, validation data and a report of what was left out."""
        checking.check_components(self.n_components)
        data = self._read(X, reset=reset, positions=positions)
        if isinstance(data, Corpus):
            checking.no_weights(sample_weight, positions)
            words = None if validation is None else recoded(validation, data.vocabulary)
            return data, None, words, dict(data.report)
        held = None if validation is None else self._read(validation, reset=False)
        weight = check_sample_weight(sample_weight, data.n_rows)
        checking.check_shape(data)
        report: dict[str, Any] = dict(data.report)
        spec = self._spec()
        if spec.context.name() == "basket":
            data, weight, held = checking.drop_empty_rows(data, weight, held, report)
            checking.check_row_contexts(data, report)
        if isinstance(spec.family, Gaussian):
            checking.check_variation(data, report, complete=reset)
        return data, weight, held, report

    def _keep(self, fit: Fit, spec: Spec, data: Any, report: dict[str, Any]) -> None:
        result = fit.result
        checking.still(result.parameters, spec, data.n_entities, report)
        self.parameters_ = result.parameters
        self.embedding_ = result.parameters.rho
        self.context_ = result.parameters.alpha
        self.intercept_ = result.parameters.intercept
        self.position_ = result.parameters.position
        self.family_ = result.family
        self.history_ = result.history
        self.n_iter_, self.best_iter_ = result.n_iter, result.best_iter
        self.converged_ = result.converged
        self.solver_, self.gradient_ = fit.solver, fit.gradient
        self.report_ = {**report, "held_out": fit.held_out, "interrupted": result.interrupted}
        self.vocabulary_ = data.entities
        self.positions_ = getattr(data, "positions", None)
        self._lists, self._n_slots = fit.lists, fit.n_slots
        self._kept_context = fit.context if isinstance(fit.context, ContextSum) else None
        self._optimizer_state, self._optimizer = result.state, fit.optimizer
        self._passes = result.n_iter
        self._n_features_out = int(self.embedding_.shape[1])

    def _warn_unconverged(self, fit: Fit) -> None:
        if not fit.result.converged and not fit.result.interrupted:
            warnings.warn(
                f"{type(self).__name__} was still improving after max_iter={fit.result.n_iter} "
                "iterations; the best parameters so far are kept: raise max_iter",
                ConvergenceWarning,
                stacklevel=3,
            )

    @classmethod
    def from_fitted(cls, fitted: FittedEmbedding, **params: Any) -> Self:
        """An estimator that continues from a fitted model (`warm_start` is on)."""
        found: Self = resumed(cls, fitted, params)
        return found

    def __sklearn_tags__(self) -> Any:
        """Sparse input; NaN where the family has missing values; positive where it needs them."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        try:
            family = self._spec().family
        except EfembError:  # `fit` will say what is wrong; asking for tags must not
            return tags
        tags.input_tags.allow_nan = family.missing
        tags.input_tags.positive_only = family.support.low == 0
        return tags
