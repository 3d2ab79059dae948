"""Value and gradient of the objective by loops over cells, members, components and dimensions.

`value` knows only densities (scipy.stats) and penalties. `gradient` is residual times context,
spelled out term by term, and is itself checked against differences of `value`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oracle.densities import conditional_mean, log_densities, slope
from oracle.members import Data, n_slots
from oracle.model import Array, Model, Penalty, Point
from oracle.terms import (
    Choice,
    Pull,
    Term,
    linear_choices,
    linear_terms,
    reverse_choices,
    reverse_terms,
)

Nested = list[list[list[float]]]  # [row][component][dimension]


@dataclass(frozen=True)
class Problem:
    """A model on data, with all its terms listed once."""

    model: Model
    terms: list[Term]
    choices: list[Choice]
    n_entities: int
    n_slots: int


def problem(
    model: Model,
    x: Array,
    recordings: Sequence[int] | None = None,
    row_weights: Sequence[float] | None = None,
) -> Problem:
    """List the terms of `model` on x, shaped (T, N) or (T, N, D)."""
    cube = x if x.ndim == 3 else x[:, :, None]
    data: Data = cube.tolist()
    same = [0] * len(data) if recordings is None else list(recordings)
    unit = [1.0] * len(data) if row_weights is None else list(row_weights)
    forward = model.combine == "linear"
    terms: list[Term] = []
    choices: list[Choice] = []
    if model.family == "categorical":
        choices = (linear_choices if forward else reverse_choices)(model, data, same, unit)
    else:
        terms = (linear_terms if forward else reverse_terms)(model, data, same, unit)
    return Problem(model, terms, choices, cube.shape[1], n_slots(model.parts))


class _Vectors:
    """The vectors as nested lists, always with a dimension axis."""

    def __init__(self, model: Model, point: Point, n_entities: int) -> None:
        rho = _nested(point.rho)
        alpha = rho if model.structure == "tied" else _nested(point.alpha)
        self.of: dict[str, Nested] = {"rho": rho, "alpha": alpha}
        self.n_components = len(rho[0])
        self.n_dims = len(rho[0][0])
        self.intercept = [[0.0] * self.n_dims for _ in range(n_entities)]
        if model.intercept:
            assert point.intercept is not None
            self.intercept = point.intercept.reshape(n_entities, self.n_dims).tolist()

    def context(self, tail: Sequence[Pull]) -> list[float]:
        """s_k / d: sum over members and dimensions of alpha_mkd x_md / d."""
        s = [0.0] * self.n_components
        for name, row, numbers in tail:
            vector = self.of[name][row]
            for k in range(self.n_components):
                for d in range(self.n_dims):
                    s[k] += vector[k][d] * numbers[d]
        return s

    def predictor(self, head: tuple[str, int], s: Sequence[float], entity: int) -> list[float]:
        """u_d = rho_d . s / d + intercept_d."""
        vector = self.of[head[0]][head[1]]
        u = list(self.intercept[entity])
        for d in range(self.n_dims):
            for k in range(self.n_components):
                u[d] += vector[k][d] * s[k]
        return u


def value(task: Problem, point: Point) -> float:
    """The objective: weighted log-densities less penalties."""
    model = task.model
    vectors = _Vectors(model, point, task.n_entities)
    total = _term_value(task, vectors) + _choice_value(task, vectors)
    total -= penalty(model.prior_rho, point.rho)
    if model.structure != "tied":
        total -= penalty(model.prior_alpha, point.alpha)
    if model.intercept:
        assert point.intercept is not None
        total -= penalty(model.prior_intercept, point.intercept)
    return total


def gradient(task: Problem, point: Point) -> Point:
    """Derivatives with respect to the unconstrained parameters (logarithms where positive)."""
    model = task.model
    vectors = _Vectors(model, point, task.n_entities)
    slopes = {name: _zeros(nested) for name, nested in vectors.of.items()}
    bias = [[0.0] * vectors.n_dims for _ in range(task.n_entities)]
    _add_term_slopes(task, vectors, slopes, bias)
    _add_choice_slopes(task, vectors, slopes, bias)
    rho = np.array(slopes["rho"]).reshape(point.rho.shape)
    alpha = np.array(slopes["alpha"]).reshape(point.alpha.shape)
    if model.structure == "tied":
        rho, alpha = rho + alpha, np.zeros_like(alpha)
    else:
        alpha = _unconstrained(alpha, point.alpha, model.alpha_positive, model.prior_alpha)
    rho = _unconstrained(rho, point.rho, model.rho_positive, model.prior_rho)
    if not model.intercept:
        return Point(rho, alpha, None)
    assert point.intercept is not None
    positive = model.intercept_positive
    b = np.array(bias).reshape(point.intercept.shape)
    return Point(rho, alpha, _unconstrained(b, point.intercept, positive, model.prior_intercept))


def predictors(task: Problem, point: Point) -> tuple[Array, Array, Array]:
    """x, u and weight of every number of every term: all that a density of any family needs."""
    return _predict(task, _Vectors(task.model, point, task.n_entities))


def penalty(prior: Penalty, theta: Array) -> float:
    """precision / 2 times the sum of squares of theta, or of log theta - center."""
    if prior is None:
        return 0.0
    name, precision, center = prior
    total = 0.0
    for one in theta.ravel().tolist():
        total += (math.log(one) - center) ** 2 if name == "lognormal" else one**2
    return precision / 2 * total


def _unconstrained(slopes: Array, theta: Array, positive: bool, prior: Penalty) -> Array:
    """Chain rule of the exponential where positive, plus the slope of the penalty."""
    result = slopes * theta if positive else slopes.copy()
    if prior is None:
        return result
    name, precision, center = prior
    if name == "normal":
        return result - precision * theta
    if name == "lognormal":
        return result - precision * (np.log(theta) - center)
    assert name == "halfnormal", name
    return result - precision * theta**2


def _nested(array: Array) -> Nested:
    cube = array if array.ndim == 3 else array[:, :, None]
    nested: Nested = cube.tolist()
    return nested


def _zeros(nested: Nested) -> Nested:
    return [[[0.0 for _ in number] for number in vector] for vector in nested]


def _variance(model: Model, x: Array, u: Array, w: Array) -> float:
    """sigma2, given or the weighted mean squared residual."""
    if model.family != "gaussian":
        return math.nan
    if model.sigma2 is not None:
        return model.sigma2
    residual = x - np.array([conditional_mean(model, float(one)) for one in u])
    return float(np.sum(w * residual**2) / np.sum(w))


def _predict(task: Problem, vectors: _Vectors) -> tuple[Array, Array, Array]:
    """x, u and weight of every number of every term, in order."""
    x: list[float] = []
    u: list[float] = []
    w: list[float] = []
    for term in task.terms:
        x.extend(term.x)
        w.extend(term.weight)
        u.extend(vectors.predictor(term.head, vectors.context(term.tail), term.entity))
    return np.array(x), np.array(u), np.array(w)


def _term_value(task: Problem, vectors: _Vectors) -> float:
    if not task.terms:
        return 0.0
    x, u, w = _predict(task, vectors)
    log_p = log_densities(task.model, x, u, _variance(task.model, x, u, w))
    return float(np.sum(w * log_p))


def _add_term_slopes(
    task: Problem, vectors: _Vectors, slopes: dict[str, Nested], bias: list[list[float]]
) -> None:
    if not task.terms:
        return
    x, u, w = _predict(task, vectors)
    # At the best sigma2 the objective is flat in it, so its own slope adds nothing.
    sigma2 = _variance(task.model, x, u, w)
    every = [w[i] * slope(task.model, float(x[i]), float(u[i]), sigma2) for i in range(len(x))]
    at = 0
    for term in task.terms:
        e = [float(one) for one in every[at : at + vectors.n_dims]]
        at += vectors.n_dims
        _add_slope(vectors, slopes, bias, term.head, term.tail, term.entity, e)


def _add_slope(
    vectors: _Vectors,
    slopes: dict[str, Nested],
    bias: list[list[float]],
    head: tuple[str, int],
    tail: Sequence[Pull],
    entity: int,
    e: Sequence[float],
) -> None:
    """Add dL/du = e of one predictor to the slopes of all that it is made of."""
    s = vectors.context(tail)
    vector = vectors.of[head[0]][head[1]]
    for d in range(vectors.n_dims):
        bias[entity][d] += e[d]
        for k in range(vectors.n_components):
            slopes[head[0]][head[1]][k][d] += e[d] * s[k]
            for name, row, numbers in tail:
                for c in range(vectors.n_dims):
                    slopes[name][row][k][c] += e[d] * numbers[c] * vector[k][d]


def _choice_value(task: Problem, vectors: _Vectors) -> float:
    total = 0.0
    for choice in task.choices:
        p = _softmax(choice, vectors)
        total += choice.units * math.log(p[choice.chosen])
    return total


def _softmax(choice: Choice, vectors: _Vectors) -> dict[int, float]:
    s = vectors.context(choice.tail)
    scores = {j: math.exp(vectors.predictor(head, s, j)[0]) for j, head in choice.heads.items()}
    whole = sum(scores.values())
    return {j: score / whole for j, score in scores.items()}


def _add_choice_slopes(
    task: Problem, vectors: _Vectors, slopes: dict[str, Nested], bias: list[list[float]]
) -> None:
    for choice in task.choices:
        p = _softmax(choice, vectors)
        for j, head in choice.heads.items():
            e = choice.units * ((1.0 if j == choice.chosen else 0.0) - p[j])
            _add_slope(vectors, slopes, bias, head, choice.tail, j, [e])
