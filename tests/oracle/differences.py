"""Derivatives of the oracle's value by finite differences, in the unconstrained parameters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracle.loops import Problem, value
from oracle.model import Array, Model, Point


def unconstrain(model: Model, point: Point) -> Array:
    """One flat vector: the parameters, or their logarithms where positive."""
    pieces = [np.log(point.rho) if model.rho_positive else point.rho]
    if model.structure != "tied":
        pieces.append(np.log(point.alpha) if model.alpha_positive else point.alpha)
    if model.intercept:
        assert point.intercept is not None
        pieces.append(np.log(point.intercept) if model.intercept_positive else point.intercept)
    return np.concatenate([piece.ravel() for piece in pieces])


def constrain(model: Model, flat: Array, like: Point) -> Point:
    """The vectors themselves again, with the shapes of `like`."""
    rho = flat[: like.rho.size].reshape(like.rho.shape)
    rho = np.exp(rho) if model.rho_positive else rho
    at = like.rho.size
    alpha = rho
    if model.structure != "tied":
        alpha = flat[at : at + like.alpha.size].reshape(like.alpha.shape)
        alpha = np.exp(alpha) if model.alpha_positive else alpha
        at += like.alpha.size
    if not model.intercept:
        return Point(rho, alpha, None)
    assert like.intercept is not None
    intercept = flat[at:].reshape(like.intercept.shape)
    return Point(rho, alpha, np.exp(intercept) if model.intercept_positive else intercept)


def flatten(model: Model, slopes: Point) -> Array:
    """A gradient as one flat vector in the order of `unconstrain`."""
    pieces = [slopes.rho] if model.structure == "tied" else [slopes.rho, slopes.alpha]
    if model.intercept:
        assert slopes.intercept is not None
        pieces.append(slopes.intercept)
    return np.concatenate([np.asarray(piece).ravel() for piece in pieces])


def along(
    task: Problem,
    point: Point,
    direction: Array,
    step: float = 2e-3,
    objective: Callable[[Problem, Point], float] = value,
) -> float:
    """Derivative along a direction: Richardson's combination of two central differences."""
    flat = unconstrain(task.model, point)

    def central(h: float) -> float:
        up = objective(task, constrain(task.model, flat + h * direction, point))
        down = objective(task, constrain(task.model, flat - h * direction, point))
        return (up - down) / (2 * h)

    return (4 * central(step / 2) - central(step)) / 3


def differences(task: Problem, point: Point, step: float = 2e-3) -> Array:
    """The whole gradient, one coordinate at a time, as one flat vector."""
    size = unconstrain(task.model, point).size
    result = np.empty(size)
    for i in range(size):
        direction = np.zeros(size)
        direction[i] = 1.0
        result[i] = along(task, point, direction, step)
    return result
