"""Contracts of user-defined ingredients: what they must return, checked before any work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb.errors import EfembError, InputTypeError
from efemb.model.combine import Combine
from efemb.model.contexts.base import BoundContext, Context
from efemb.model.families.base import Family
from efemb.model.links import Link
from efemb.model.priors import Prior
from efemb.model.structures import Structure
from efemb.model.terms.base import BoundTerm, Term, TermArray
from efemb.model.terms.cell_values import CellValues

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

WAY_OUT = "for details, use the function of efemb.checks for this kind of ingredient"


def check_family_contract(family: Family) -> None:
    """Reject a family whose methods do not return one number per value."""
    if family.is_shipped() or family.softmax:
        return
    low = family.support.low
    x = np.full((2, 3), 1.0 if low == -np.inf else min(low + 1.0, family.support.high))
    v = np.zeros(x.shape)
    if type(family).value_and_slope is Family.value_and_slope:  # broadcasting would hide a number
        _check_shape(family, "statistic", _call(family, "statistic", x), x)
        eta = _call(family, "natural", v)
        _check_shape(family, "natural", eta, x)
        for method in ("log_normalizer", "mean"):
            _check_shape(family, method, _call(family, method, eta), x)
    value = _call(family, "value_and_slope", x, v)
    if not isinstance(value, tuple) or len(value) != 2:
        raise InputTypeError(f"{_name(family)}.value_and_slope must return two arrays; {WAY_OUT}")
    for array in value:
        _check_shape(family, "value_and_slope", array, x)
    _check_shape(family, "log_base_measure", _call(family, "log_base_measure", x), x)
    expected = _call(family, "expected_value", _call(family, "natural", v))
    _check_shape(family, "expected_value", expected, x)


def check_link_contract(link: Link) -> None:
    """Reject a link that does not return one number per value."""
    if link.is_shipped():
        return
    u = np.full(3, 0.5)
    for method in ("__call__", "derivative"):
        _check_shape(link, method, _call(link, method, u), u)


def check_combine_contract(combine: Combine, n_beside: int) -> None:
    """Reject a combination that does not return one number per observation, or its gradients."""
    if combine.is_shipped():
        return
    target = np.full((3, 4 + n_beside), 0.5)
    slope = np.ones(3)
    _check_shape(combine, "value", _call(combine, "value", target, target), slope)
    gradients = _call(combine, "pull_back", target, target, slope)
    if not isinstance(gradients, tuple) or len(gradients) != 2:
        raise InputTypeError(
            f"{_name(combine)}.pull_back must return the gradients in target and context; {WAY_OUT}"
        )
    for gradient in gradients:
        _check_shape(combine, "pull_back", gradient, target)


def check_prior_contract(prior: Prior | None) -> None:
    """Reject a prior whose log-density is not a number, or whose gradient has another shape."""
    if prior is None or prior.is_shipped():
        return
    theta = np.full((2, 3), 0.5)
    value = _call(prior, "log_density", theta)
    if np.ndim(value) != 0:
        raise InputTypeError(
            f"{_name(prior)}.log_density must return one number, the sum over all of theta, got "
            f"shape {np.shape(value)}; {WAY_OUT}"
        )
    _check_shape(prior, "gradient", _call(prior, "gradient", theta), theta)


def check_context_contract(context: Context, bound: object) -> None:
    """Reject a context whose `bind` does not return one of the shapes that solvers know."""
    if not isinstance(bound, BoundContext):
        raise InputTypeError(
            f"{_name(context)}.bind must return RowBags, EntityLists or CellLists, got "
            f"{type(bound).__name__}; {WAY_OUT}"
        )


def check_structure_contract(structure: Structure, n_entities: int) -> None:
    """Reject a structure whose two maps do not match the vectors of the entities."""
    if structure.is_shipped():
        return
    sizes = _call(structure, "sizes", n_entities)
    if np.shape(sizes) != (2,):
        raise InputTypeError(
            f"{_name(structure)}.sizes must return the rows of rho and of alpha, got {sizes!r}; "
            f"{WAY_OUT}"
        )
    arrays = tuple(np.zeros((int(size), 2)) for size in sizes)
    vectors = tuple(np.zeros((n_entities, 2)) for _ in arrays)
    for method, inputs, like in (("spread", arrays, vectors), ("collect", vectors, arrays)):
        result = _call(structure, method, *inputs, n_entities)
        shapes = [np.shape(array) for array in result] if isinstance(result, tuple) else None
        if shapes != [array.shape for array in like]:
            raise InputTypeError(
                f"{_name(structure)}.{method} must return two arrays of shapes {like[0].shape} "
                f"and {like[1].shape} here, got {shapes or type(result).__name__}; {WAY_OUT}"
            )


def check_term_contract(term: Term, data: Dataset) -> None:
    """Reject a frozen term whose arrays, columns or gradients do not match one another."""
    if term.is_shipped():
        return
    n_entities, rows = data.n_entities, np.arange(min(2, data.n_rows))
    layout = _call(term, "arrays", n_entities)
    if not all(isinstance(array, TermArray) for array in layout):
        raise InputTypeError(f"{_name(term)}.arrays must return TermArray objects; {WAY_OUT}")
    arrays = {array.name: np.zeros(array.shape) for array in layout}
    entities = np.zeros((n_entities, term.width))
    _check_shape(
        term, "entity_columns", _call(term, "entity_columns", arrays, n_entities), entities
    )
    _check_gradients(term, "pull_back_entities", (entities,), arrays)
    bound = _call(term, "bind", data)
    if not isinstance(bound, BoundTerm):
        raise InputTypeError(
            f"{_name(term)}.bind must return a BoundTerm, got {type(bound).__name__}; {WAY_OUT}"
        )
    of_rows = np.zeros((len(rows), term.width))
    _check_shape(bound, "row_columns", _call(bound, "row_columns", arrays, rows), of_rows)
    _check_gradients(bound, "pull_back_rows", (arrays, rows, of_rows), arrays)
    cells = _call(bound, "cells", arrays, rows)
    if not term.has_cells:
        return
    if not isinstance(cells, CellValues):
        raise InputTypeError(
            f"{_name(bound)}.cells must return SparseRows, ScaledRows or a GroupTable, got "
            f"{type(cells).__name__}; {WAY_OUT}"
        )
    misfit = cells.misfit(len(rows), n_entities)
    if misfit:
        raise InputTypeError(f"{_name(bound)}.cells {misfit}; {WAY_OUT}")
    of_cells = np.zeros_like(cells.values)
    _check_gradients(bound, "pull_back_cells", (arrays, rows, of_cells), arrays)


def _check_gradients(
    owner: object, method: str, arguments: tuple[Any, ...], arrays: Mapping[str, Any]
) -> None:
    """Reject gradients that do not belong to the arrays of the term."""
    gradients = _call(owner, method, *arguments)
    shapes = {name: array.shape for name, array in arrays.items()}
    returned = {name: np.shape(array) for name, array in dict(gradients).items()}
    if any(shapes.get(name) != shape for name, shape in returned.items()):
        raise InputTypeError(
            f"{_name(owner)}.{method} must return gradients of its arrays {shapes}, got "
            f"{returned}; {WAY_OUT}"
        )


def _name(ingredient: object) -> str:
    return type(ingredient).__name__


def _call(ingredient: object, method: str, *arguments: Any) -> Any:
    try:
        with np.errstate(all="ignore"):  # only shapes matter, at any point
            return getattr(ingredient, method)(*arguments)
    except EfembError:
        raise
    except Exception as error:
        raise InputTypeError(
            f"{_name(ingredient)}.{method} fails on small arrays: {type(error).__name__}: {error}; "
            f"{WAY_OUT}"
        ) from error


def _check_shape(ingredient: object, method: str, result: Any, like: Any) -> None:
    if np.shape(result) != like.shape:
        raise InputTypeError(
            f"{_name(ingredient)}.{method} must return an array of shape {like.shape} here, "
            f"got {np.shape(result)}; {WAY_OUT}"
        )
