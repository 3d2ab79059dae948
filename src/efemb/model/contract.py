"""Contracts at the door: what a user's own ingredient must return, checked before any work."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb.errors import EfembError, InputTypeError
from efemb.model.families.base import Family
from efemb.model.ingredient import Ingredient
from efemb.model.links import Link
from efemb.model.priors import Prior

WAY_OUT = "efemb.checks has a function for each kind of ingredient that says more"


def check_family_contract(family: Family) -> None:
    """Refuse a family whose methods do not return one number per value."""
    if _is_shipped(family) or family.softmax:
        return
    low = family.support.low
    x = np.full(3, 1.0 if low == -np.inf else min(low + 1.0, family.support.high))
    value = _call(family, "value_and_slope", x, np.zeros(3))
    if not isinstance(value, tuple) or len(value) != 2:
        raise InputTypeError(f"{_name(family)}.value_and_slope must return two arrays; {WAY_OUT}")
    for array in value:
        _check_shape(family, "value_and_slope", array, x)
    _check_shape(family, "log_base_measure", _call(family, "log_base_measure", x), x)


def check_link_contract(link: Link) -> None:
    """Refuse a link that does not return one number per value."""
    if _is_shipped(link):
        return
    u = np.full(3, 0.5)
    for method in ("__call__", "derivative"):
        _check_shape(link, method, _call(link, method, u), u)


def check_prior_contract(prior: Prior | None) -> None:
    """Refuse a prior whose log-density is not a number, or whose gradient has another shape."""
    if prior is None or _is_shipped(prior):
        return
    theta = np.full((2, 3), 0.5)
    value = _call(prior, "log_density", theta)
    if np.ndim(value) != 0:
        raise InputTypeError(
            f"{_name(prior)}.log_density must return one number, the sum over all of theta, got "
            f"shape {np.shape(value)}; {WAY_OUT}"
        )
    _check_shape(prior, "gradient", _call(prior, "gradient", theta), theta)


def _is_shipped(ingredient: Ingredient) -> bool:
    return type(ingredient).__module__.startswith("efemb.")


def _name(ingredient: Ingredient) -> str:
    return type(ingredient).__name__


def _call(ingredient: Ingredient, method: str, *arguments: Any) -> Any:
    try:
        with np.errstate(all="ignore"):  # only shapes are looked at, at whatever point
            return getattr(ingredient, method)(*arguments)
    except EfembError:
        raise
    except Exception as error:
        raise InputTypeError(
            f"{_name(ingredient)}.{method} fails on an array of {arguments[0].size} numbers: "
            f"{error}; {WAY_OUT}"
        ) from error


def _check_shape(ingredient: Ingredient, method: str, result: Any, like: Any) -> None:
    if np.shape(result) != like.shape:
        raise InputTypeError(
            f"{_name(ingredient)}.{method} must return an array of the shape of its argument, "
            f"{like.shape}, got {np.shape(result)}; {WAY_OUT}"
        )
