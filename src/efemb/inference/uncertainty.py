"""Laplace: the uncertainty of embeddings, given the context vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Floats, Ints
from efemb.errors import DataError, ParameterError, check_number
from efemb.fitted.docstrings import as_function_of
from efemb.fitted.embedding import FittedEmbedding
from efemb.fitted.queries.model_queries import ModelQueries
from efemb.inference.conditionals import (
    Conditionals,
    Design,
    ListConditionals,
    count_entities_at_once,
    resolve_row_weights,
)
from efemb.inference.lbfgs import warn_exhausted
from efemb.inference.posterior import EntityPosterior, explain_coupling, vector_blocks
from efemb.inference.row_conditionals import RowConditionals
from efemb.model.ingredient import flag
from efemb.table import Table

AT_ONCE = 64  # entities


@as_function_of(ModelQueries.laplace)
def laplace(
    model: Any,
    data: Any,
    *,
    sandwich: bool = False,
    refit: bool = False,
    sample_weight: Any = None,
    progress: bool = False,
) -> Laplace:
    """A linear model with an embedding per item; neither text nor categorical."""
    fitted: FittedEmbedding = model.fitted()
    for name, value in (("sandwich", sandwich), ("refit", refit)):
        flag(name, value)
    _check_model(fitted)
    options = {"sandwich": bool(sandwich), "refit": bool(refit), "progress": progress}
    return Laplace(model, data, weight=sample_weight, **options)


@dataclass(frozen=True)
class Interval:
    """An inner product of two vectors, with its standard error and limits.

    Examples
    --------
    >>> Interval(value=-1.62689, standard_error=0.129397, low=-1.8805, high=-1.37327, level=0.95)
    Interval(-1.627 +- 0.1294, 95% from -1.88 to -1.373)
    """

    value: float
    standard_error: float
    low: float
    high: float
    level: float

    def __repr__(self) -> str:
        about = f"{self.value:.4g} +- {self.standard_error:.4g}"
        return f"Interval({about}, {100 * self.level:g}% from {self.low:.4g} to {self.high:.4g})"


class Laplace:
    """Covariances of embeddings given alpha; make one with `laplace`."""

    def __init__(
        self, model: Any, data: Any, *, sandwich: bool, refit: bool, progress: bool, weight: Any
    ) -> None:
        self.model: FittedEmbedding = model.fitted()
        self.sandwich, self.refit, self.progress = sandwich, refit, progress
        self._spec, self._bound, self._vectors = model._bind(data)  # as the model reads its data
        if self._bound.n_dims > 1:
            raise ParameterError("laplace takes scalar data")
        self._weight = resolve_row_weights(weight, self._bound.data, self._spec)
        self._rows: RowConditionals | None = None
        self._known: dict[int, tuple[Floats, Floats]] = {}

    def __repr__(self) -> str:
        """Kind and size."""
        kind = "sandwich" if self.sandwich else "Laplace"
        return f"<{kind} covariances of {self.model.n_entities:,} embeddings given alpha>"

    def embedding(self, n: Any) -> Floats:
        """Center rho_n of the intervals, (K,): the fitted one unless `refit`.

        Parameters
        ----------
        n : label or int
            An entity.
        """
        vectors, _ = self._moments(self._codes(n))
        return np.asarray(vectors[0, : self.model.n_components])

    def covariance(self, n: Any) -> Floats:
        """Marginal covariance of rho_n, (K, K), or of several entities, (len, K, K).

        Parameters
        ----------
        n : label or int, or a list of them
            One or several entities.
        """
        k, (_, covariance) = self.model.n_components, self._moments(self._codes(n))
        return covariance[:, :k, :k] if _is_list(n) else covariance[0, :k, :k]

    def standard_error(self, n: Any, m: Any = None) -> Any:
        """Standard error of rho_n . alpha_m, or, without m, of the K numbers of rho_n.

        Parameters
        ----------
        n : label or int, or a list of them
            Predicted entities.
        m : label or int, or a list of them, optional
            Context members: equally many, or a single one.
        """
        if m is not None:
            _, error = self._products(n, m)
            return error if _is_list(n) or _is_list(m) else float(error[0])
        covariance = np.asarray(self.covariance(n))
        return np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))

    def interval(self, n: Any, m: Any, level: float = 0.95) -> Any:
        """Interval of rho_n . alpha_m: the effect of m in the context on n.

        Parameters
        ----------
        n, m : labels (indices if the model has none), or lists of them
            Either may be a list, or both of the same length.
        level : float, default=0.95
            Coverage probability.

        Returns
        -------
        Interval, or for lists a Table of entity, context, value, standard_error, low and high
        """
        level = check_number("level", level, above=0, below=1)
        value, error = self._products(n, m)
        reach = NormalDist().inv_cdf(0.5 + 0.5 * level) * error
        low, high = value - reach, value + reach
        if not _is_list(n) and not _is_list(m):
            first = [float(array[0]) for array in (value, error, low, high)]
            return Interval(first[0], first[1], first[2], first[3], level)
        entity, context = (self.model.entities.labels[codes] for codes in self._pairs(n, m))
        columns = {"entity": entity, "context": context}
        numbers = {"value": value, "standard_error": error, "low": low, "high": high}
        return Table({**columns, **numbers})

    def standard_errors(self, entities: Ints, given: Ints) -> Floats:
        """Standard errors of rho_n . alpha_m for pairs of codes: `complements(errors=)`."""
        return self._products_of(entities, given)[1]

    def _products(self, n: Any, m: Any) -> tuple[Floats, Floats]:
        """Inner products and their standard errors."""
        return self._products_of(*self._pairs(n, m))

    def _products_of(self, entity: Ints, context: Ints) -> tuple[Floats, Floats]:
        if self._bound.n_slots > 1:
            raise ParameterError("alpha_m is not a single vector here: there is one per offset")
        if len(entity) == 0:
            return np.zeros(0), np.zeros(0)
        entities, index = np.unique(entity, return_inverse=True)
        k = self.model.n_components
        vectors, covariance = self._moments(entities)
        alpha = self._vectors.bag[context, :k].astype(np.float64)
        value = np.einsum("ik,ik->i", vectors[index, :k], alpha)
        spread = np.einsum("ik,ikl,il->i", alpha, covariance[index, :k, :k], alpha)
        return value, np.sqrt(np.maximum(spread, 0.0))

    def _pairs(self, n: Any, m: Any) -> tuple[Ints, Ints]:
        entity, context = self._codes(n), self._codes(m)
        if len(entity) != len(context) and 1 not in (len(entity), len(context)):
            raise ParameterError(
                f"{len(entity)} entities and {len(context)} contexts cannot be paired: pass "
                "equally many of each, or a single one of either"
            )
        return tuple(np.broadcast_arrays(entity, context))  # type: ignore[return-value]

    def _codes(self, labels: Any) -> Ints:
        listed = list(labels) if _is_list(labels) else [labels]
        if not listed:
            raise DataError("no entity was requested; at least one is needed")
        entities = self.model.entities
        return np.array([entities.index_of(label) for label in listed], dtype=np.int64)

    def _moments(self, codes: Ints) -> tuple[Floats, Floats]:
        """Vectors (n, p) and covariances (n, p, p) of some entities."""
        missing = np.array(sorted(set(codes.tolist()) - set(self._known)), dtype=np.int64)
        step = AT_ONCE
        if not self._bound.shares_rows:
            step = count_entities_at_once(self._bound, self.model.n_components, step)
        with progress_bar("covariances", len(missing), self.progress) as advance:
            for start in range(0, len(missing), step):
                block = missing[start : start + step]
                self._compute(block)
                advance(len(block))
        vectors, covariances = zip(*(self._known[code] for code in codes.tolist()), strict=True)
        return np.stack(vectors), np.stack(covariances)

    def _compute(self, codes: Ints) -> None:
        posterior = self._posterior(codes)
        theta = posterior.theta(self._joined(posterior, codes))
        if self.refit:
            solved = posterior.begin(theta).run(1e-6)
            theta = solved.theta
            warn_exhausted(int(solved.exhausted.sum()), "intervals need a maximum of the posterior")
        v = posterior.vectors(theta)
        own, meat = np.empty((2, *theta.shape, theta.shape[1]))
        for i, (rho, b) in enumerate(zip(*posterior.predicting(v), strict=True)):
            # Only one design exists at a time, because each may be a copy of all rows.
            own[i], meat[i] = self._information(posterior.conditionals.design(i), rho, b)
        information = posterior.information(own, theta)
        scale = np.where(posterior.positive, v, 1.0)
        for i, code in enumerate(codes.tolist()):
            covariance = _invert(information[i], self.model.entities[code])
            outer = np.outer(scale[i], scale[i])
            if self.sandwich:
                covariance = covariance @ (meat[i] * outer) @ covariance
            self._known[code] = (v[i], covariance * outer)  # of logarithms: the delta method

    def row_scores(self, code: int) -> tuple[Floats, Floats]:
        """Scores of the rows, (rows, p), and their information (p, p) about one entity."""
        design = self._conditionals(np.array([code])).design(0)
        rho, b = self._vectors.target[code], float(self._vectors.intercept[code])
        scores = design.row_scores(self._spec, rho, b)
        information = design.information(self._spec, rho, b)
        p = len(information) if self._spec.intercept else len(rho)
        return scores[:, :p], information[:p, :p]

    def vectors_of(self, codes: Ints) -> Floats:
        """Vectors of some entities in the model (n, p), with the intercept, if any, last."""
        return self._joined(self._posterior(codes), codes)

    def _posterior(self, codes: Ints) -> EntityPosterior:
        blocks = vector_blocks(self._spec, self.model.n_components)
        return EntityPosterior(self._conditionals(codes), blocks)

    def _joined(self, posterior: EntityPosterior, codes: Ints) -> Floats:
        target, intercept = self._vectors.target[codes], self._vectors.intercept[codes]
        return posterior.joined(target, intercept if self._spec.intercept else None)

    def scores(self, codes: Ints, at: Floats | None = None) -> tuple[Floats, Floats, Floats]:
        """Score (n, p), information and moments of the scores of the rows (n, p, p), no prior.

        at : vectors as returned by `vectors_of`; by default those of the model
        """
        posterior = self._posterior(codes)
        conditionals = posterior.conditionals
        vectors = self._joined(posterior, codes) if at is None else at
        _, score = posterior.likelihood(vectors, np.arange(len(codes)))
        shape = (*vectors.shape, vectors.shape[1])
        information, moments = np.empty(shape), np.empty(shape)
        for i, (rho, b) in enumerate(zip(*posterior.predicting(vectors), strict=True)):
            information[i], moments[i] = self._information(conditionals.design(i), rho, b)
        return score, information, moments

    def _information(self, design: Design, rho: Floats, b: float) -> tuple[Floats, Floats]:
        """Information of the rows about an entity, and the moments of their scores, or the same."""
        # The last column of a design is that of the intercept, which a model may lack.
        p = len(rho) + 1 if self._spec.intercept else len(rho)
        own = design.information(self._spec, rho, b)[:p, :p]
        meat = design.score_moments(self._spec, rho, b)[:p, :p] if self.sandwich else own
        return own, meat

    def _conditionals(self, codes: Ints) -> Conditionals:
        vectors = replace(self._vectors, bag=self._vectors.bag.astype(np.float64))
        bound: Any = self._bound
        if not bound.shares_rows:
            return ListConditionals(self._spec, bound, vectors, codes, self._weight)
        if self._rows is None:
            every = np.arange(bound.n_entities)
            self._rows = RowConditionals(self._spec, bound, vectors, every, self._weight)
        return self._rows.subset(codes)


def _invert(information: Floats, name: Any) -> Floats:
    """The inverse of a positive definite matrix."""
    try:
        np.linalg.cholesky(information)
    except np.linalg.LinAlgError as error:
        raise DataError(
            f"the embedding of {name!r} is not at a maximum of its posterior, or the rows do not "
            "determine one: pass refit=True, or fit with a prior"
        ) from error
    return np.asarray(np.linalg.inv(information))


def _is_list(labels: Any) -> bool:
    return isinstance(labels, (list, tuple, range)) or (
        isinstance(labels, np.ndarray) and labels.ndim > 0
    )


def _check_model(fitted: FittedEmbedding) -> None:
    spec, reason = fitted.spec, ""
    if spec.context.reads_text:
        reason = "text has too many rows to process one by one"
    elif spec.family.softmax:
        reason = "a softmax couples all embeddings"
    else:
        reason = explain_coupling(spec)
    if not reason and fitted.parameters.rho.ndim > 2:
        reason = "it takes scalar data"
    if reason:
        raise ParameterError(
            f"laplace treats each embedding as a regression, but {reason}; stability() compares "
            "fits with several seeds, for any model"
        )
