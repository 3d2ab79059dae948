"""Elasticities: how the mean of an item responds to its own price and to that of others."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import InputTypeError, ParameterError, check_integer
from efemb.fitted.selection import Choice
from efemb.inference.conditionals import curvature
from efemb.inference.uncertainty import Laplace
from efemb.model.predictor import affine
from efemb.model.terms.base import arrays_of
from efemb.model.terms.cell_covariate import CellCovariate
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding

LEVEL = 0.95


def elasticity(
    model: Any, item: Any = None, *, table: str | None = None, errors: Laplace | None = None
) -> Table:
    """Own elasticities of items; `model.elasticity` documents the parameters and the result."""
    fitted: FittedEmbedding = model.fitted()
    term, response = _response(fitted, table)
    codes = np.arange(fitted.n_entities)
    if item is not None:
        codes = np.atleast_1d(Choice(fitted.entities).codes(item))
    value = (response * _log_mean_slope(fitted))[codes]
    columns: dict[str, Any] = {"label": fitted.entities.labels[codes], "elasticity": value}
    if errors is not None:
        if not isinstance(errors, Laplace):
            raise InputTypeError(f"errors must be model.laplace(data), got {type(errors).__name__}")
        sd = standard_errors(errors, term, codes)
        reach = NormalDist().inv_cdf(0.5 + 0.5 * LEVEL) * sd
        columns.update(standard_error=sd, low=value - reach, high=value + reach)
    order = np.argsort(value, kind="stable") if item is None else np.arange(len(codes))
    return Table({name: np.asarray(column)[order] for name, column in columns.items()})


def cross_elasticity(
    model: Any, item: Any, data: Any, n: int = 10, *, table: str | None = None
) -> Table:
    """Responses of other items to the price of an item; see `model.cross_elasticity`."""
    fitted: FittedEmbedding = model.fitted()
    size = check_integer("n", n)
    _, response = _response(fitted, table)
    (code,) = np.atleast_1d(Choice(fitted.entities).codes(item))
    _, bound, vectors = model._bind(data)
    if not bound.shares_rows:
        raise ParameterError("cross_elasticity needs a context of rows: context='basket'")
    block = bound.block(np.arange(bound.n_rows))
    sold = np.flatnonzero(block.ids == code)
    share = float((block.own[sold] / block.total[block.row_of_entry[sold]]).sum() / bound.n_rows)
    k = fitted.n_components
    inner = vectors.target[:, :k].astype(np.float64) @ vectors.bag[code, :k].astype(np.float64)
    cross = response[code] * share * inner
    if fitted.spec.family.softmax:  # all others gain what it loses
        cross = cross - response[code] * _popularity(fitted)[code]
    others = np.delete(np.arange(fitted.n_entities), code)
    order = others[np.argsort(-np.abs(cross[others]), kind="stable")[:size]]
    return Table({"label": fitted.entities.labels[order], "elasticity": cross[order]})


def standard_errors(errors: Laplace, term: CellCovariate, codes: Ints) -> Floats:
    """Standard errors of the responses of some entities, given alpha and the shared responses.

    Embedding, intercept and response of an entity are one regression: the response is an additional
    column of it, with the centered values of the table.
    """
    spec, bound = errors._spec, errors._bound
    if not bound.shares_rows:
        raise ParameterError("standard errors of elasticities need a context of rows (Basket)")
    bound_term: Any = term.bind(bound.whole_data)
    prior = term.arrays(bound.n_entities)[-1].prior
    result = np.empty(len(codes))
    conditionals = errors._conditionals(codes)
    for i, code in enumerate(codes.tolist()):
        design = conditionals.design(i)
        target, intercept = errors._vectors.target[code], errors._vectors.intercept[code]
        u = affine(design.contexts.astype(np.float64), target.astype(np.float64), float(intercept))
        u = u - float(conditionals.noise[i])
        u = u if design.offset is None else u + design.offset
        each = design.weight * curvature(spec.family, spec.link, design.x.astype(np.float64), u)
        z = bound_term.rows.column(code)
        columns = np.column_stack([design.contexts, np.ones(len(u)), z]).astype(np.float64)
        information = (columns * each[:, None]).T @ columns
        information[np.diag_indices(len(information))] += _precisions(spec, columns.shape[1], prior)
        result[i] = np.sqrt(np.linalg.inv(information)[-1, -1])
    return result


def _precisions(spec: Any, size: int, prior: Any) -> Floats:
    """Diagonal of minus the second derivatives of normal priors; a small value for others."""
    precisions = np.full(size, 1e-6)
    if spec.prior_rho is not None:
        precisions[: size - 2] = max(spec.prior_rho.shrinkage, 1e-6)
    precisions[-1] = 0.0 if prior is None else prior.shrinkage
    return precisions


def _response(fitted: FittedEmbedding, table: str | None) -> tuple[CellCovariate, Floats]:
    """The model's term of a table, and the response of every entity to it."""
    terms = {term.table: term for term in fitted.spec.terms if isinstance(term, CellCovariate)}
    if not terms:
        raise ParameterError(
            "the model has no prices: fit it with terms=[CellCovariate('price', log=True)]"
        )
    if table is None and len(terms) > 1:
        raise ParameterError(f"the model has several tables: pass table=, one of {list(terms)}")
    name = next(iter(terms)) if table is None else table
    if name not in terms:
        raise ParameterError(f"the model has no table {name!r}; tables: {list(terms)}")
    term = terms[name]
    response = term.coefficients(arrays_of(term, fitted.parameters.terms))
    return term, response.astype(np.float64)


def _log_mean_slope(fitted: FittedEmbedding) -> Floats | float:
    """d log mean / d u at an empty context: less than 1 if means are bounded."""
    family = fitted.spec.family
    if family.softmax:
        return 1.0 - _popularity(fitted)
    if family.logistic and fitted.parameters.intercept is not None:
        return np.asarray(1.0 - family.mean(fitted.parameters.intercept.astype(np.float64)))
    return 1.0


def _popularity(fitted: FittedEmbedding) -> Floats:
    """Share of every entity without a context."""
    intercept = fitted.parameters.intercept
    u = np.zeros(fitted.n_entities) if intercept is None else intercept.astype(np.float64)
    share = np.exp(u - u.max())
    return np.asarray(share / share.sum())
