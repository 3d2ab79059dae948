"""Conditionals: each entity as a generalized linear model on given contexts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.model.contexts.base import BoundContext
from efemb.model.factors import Factors
from efemb.model.families.base import Family
from efemb.model.links import FLOOR, Link
from efemb.model.objective import residual, value_and_slope
from efemb.model.predictor import Predictor, affine, row_side
from efemb.model.spec import Spec
from efemb.model.support import check_sample_weight

Inverse = Callable[[Floats, Ints], Floats]  # (gradients (m, p), which (m,)) -> steps (m, p)
ROWS_AT_ONCE = 4096
DIFFERENCE = 1e-5
BLOCK_NUMBERS = 1 << 20
ROUNDING = 1e-14  # relative error of a sum over many rows
SUMS_AT_ONCE = 1 << 23  # context sums, of which three copies exist temporarily


@dataclass(frozen=True)
class Design:
    """u_t = rho . z_t + b + o_t for the observations x_t of one entity.

    contexts : (T, K) scaled context sums z, followed by the row side of further terms
    x, weight : (T,)
    offset : (T,) offsets o of further terms, None if there are none
    precision : (K, K) of a ridge on the weights of the members, None without one
    entity : the entity whose observations they are
    """

    contexts: Floats
    x: Floats
    weight: Floats
    offset: Floats | None = None
    precision: Floats | None = None
    entity: int = 0

    def evaluate(self, spec: Spec, rho: Floats, intercept: float) -> tuple[float, Floats, float]:
        """Log-likelihood (without base measures) and its gradient in rho and the intercept."""
        u = affine(self.contexts, rho, intercept)
        u = u if self.offset is None else u + self.offset
        value, slope = value_and_slope(self._family(spec), spec.link, self.x, u)
        slope = self.weight * slope
        total, gradient = float(self.weight @ value), slope @ self.contexts
        if self.precision is not None:
            pull = self.precision @ rho
            total, gradient = total - 0.5 * float(pull @ rho), gradient - pull
        return total, gradient, float(slope.sum())

    def information(self, spec: Spec, rho: Floats, intercept: float) -> Floats:
        """-d2 L / d(rho, b)2 = sum of w c (z, 1)(z, 1)', (K + 1, K + 1) in float64."""
        total: Any = 0.0
        for rows, x, u, weight in self._blocks(rho, intercept):
            each = weight * curvature(self._family(spec), spec.link, x, u)
            total = total + (rows * each[:, None]).T @ rows
        information = np.asarray(total)
        if self.precision is not None:
            information[:-1, :-1] += self.precision
        return information

    def row_scores(self, spec: Spec, rho: Floats, intercept: float) -> Floats:
        """Scores of the rows, (T, K + 1) in float64."""
        return np.concatenate(
            [
                rows * (weight * residual(self._family(spec), spec.link, x, u))[:, None]
                for rows, x, u, weight in self._blocks(rho, intercept)
            ]
        )

    def score_moments(self, spec: Spec, rho: Floats, intercept: float) -> Floats:
        """Sum over the rows of the outer products of their scores, (K + 1, K + 1)."""
        total: Any = 0.0
        for rows, x, u, weight in self._blocks(rho, intercept):
            each = weight * residual(self._family(spec), spec.link, x, u)
            total = total + (rows * (each**2)[:, None]).T @ rows
        return np.asarray(total)

    def _family(self, spec: Spec) -> Family:
        return spec.family.at(np.array(self.entity))

    def _blocks(
        self, rho: Floats, intercept: float
    ) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
        """Yield blocks of rows in float64: (z, 1), x, u, weight."""
        vector = rho.astype(np.float64)
        for start in range(0, len(self.x), ROWS_AT_ONCE):
            block = slice(start, start + ROWS_AT_ONCE)
            rows = np.ones((len(self.x[block]), len(vector) + 1))
            rows[:, :-1] = self.contexts[block]
            x, weight = self.x[block].astype(np.float64), self.weight[block].astype(np.float64)
            u = affine(rows[:, :-1], vector, intercept)
            yield rows, x, u if self.offset is None else u + self.offset[block], weight


def curvature(family: Family, link: Link, x: Floats, u: Floats) -> Floats:
    """-d2 log p / du2 by central differences of the slope, in float64.

    With the identity link and eta = u it is the variance of t(x).

    >>> from efemb import Bernoulli
    >>> from efemb.model.links import Identity
    >>> curvature(Bernoulli(), Identity(), np.zeros(1), np.zeros(1)).round(6)
    array([0.25])
    """
    # A positive u has no scale other than its size.
    size = np.maximum(np.abs(u), FLOOR) if link.needs_positive else 1.0 + np.abs(u)
    h = DIFFERENCE * size
    rise = residual(family, link, x, u - h) - residual(family, link, x, u + h)
    return np.asarray(rise / (2.0 * h))


def typical_curvature(family: Family, link: Link, total: Floats, n_rows: int) -> Floats:
    """Curvature of a zero of each entity at the mean of the data."""
    mean = total.astype(np.float64) / max(n_rows, 1)
    if family.support.low == 0:
        mean = np.maximum(mean, 0.1 / max(n_rows, 1))
    return np.abs(curvature(family, link, np.zeros(len(mean)), family.predictor(mean)))


def resolve_row_weights(sample_weight: Any, data: Any, spec: Spec) -> Floats:
    """Weights of the rows, 1 by default; 0 for empty baskets, which a fit ignores."""
    checked = check_sample_weight(sample_weight, data.n_rows)
    weight = np.ones(data.n_rows) if checked is None else checked
    return np.where(data.filled_rows(), weight, 0.0) if spec.context.rest_of_row else weight


class Conditionals(ABC):
    """The models of some entities on given contexts.

    n : number of entities;  k : length of their vectors, including entity sides of further terms
    noise : (n,) subtracted from their intercepts for the noise of sampled zeros
    dtype : of values and gradients
    """

    spec: Spec
    n: int
    k: int
    noise: Floats
    dtype: np.dtype[np.floating]

    @abstractmethod
    def evaluate(
        self, rho: Floats, intercept: Floats, which: Ints
    ) -> tuple[Floats, Floats, Floats]:
        """Log-likelihoods of some entities, and gradients in their vectors and intercepts.

        The noise is already subtracted from the intercepts.
        """

    @abstractmethod
    def design(self, i: int) -> Design:
        """The rows of one of the entities."""

    def thinned(self, every: int) -> Conditionals | None:
        """The models on a fraction of the rows; None if rows cannot be thinned."""
        return None

    @abstractmethod
    def inverse(self, rho: Floats, intercept: Floats, prior: Floats) -> Inverse:
        """Approximate inverse of each entity's information plus a diagonal `prior` (n, p)."""


def count_entities_at_once(bound: BoundContext, k: int, limit: int) -> int:
    """Number of entities whose own context sums fit into memory at a time."""
    return max(1, min(limit, SUMS_AT_ONCE // (bound.n_rows * k)))


class ListConditionals(Conditionals):
    """Entities with contexts of their own (neighbors, graphs, lags, explicit lists), a design each.

    Parameters
    ----------
    spec, bound : the model and the context of every observation
    factors : all vectors, of which only those of the contexts matter
    entities : numbers to predict, rows of the flat target vectors
    row_weight : (rows,)
    """

    def __init__(
        self, spec: Spec, bound: BoundContext, factors: Factors, entities: Ints, row_weight: Floats
    ) -> None:
        self.spec, self.n, self.k = spec, len(entities), factors.target.shape[1]
        self.dtype, self.noise = factors.bag.dtype, np.zeros(len(entities))
        self.designs = _make_designs(spec, bound, factors, entities, row_weight)

    def evaluate(
        self, rho: Floats, intercept: Floats, which: Ints
    ) -> tuple[Floats, Floats, Floats]:
        """Evaluate one entity after the other."""
        results = [
            self.designs[i].evaluate(self.spec, vector, float(b))
            for i, vector, b in zip(which.tolist(), rho, intercept, strict=True)
        ]
        value, gradient, slope = zip(*results, strict=True)
        return np.array(value), np.stack(gradient), np.array(slope)

    def design(self, i: int) -> Design:
        """The rows in which the entity is observed."""
        return self.designs[i]

    def inverse(self, rho: Floats, intercept: Floats, prior: Floats) -> Inverse:
        """Exact at the given vectors: for a Gaussian, the first step is the last one."""
        p = prior.shape[1]
        inverse = np.empty((self.n, p, p))
        for i, (vector, b) in enumerate(zip(rho, intercept, strict=True)):
            information = self.designs[i].information(self.spec, vector, float(b))[:p, :p]
            inverse[i] = _invert(information + np.diag(prior[i]))
        return lambda gradient, which: np.matmul(inverse[which], gradient[:, :, None])[:, :, 0]


def _invert(matrix: Floats) -> Floats:
    """Invert a matrix that is positive definite up to rounding errors.

    Contexts far from zero are almost collinear with the intercept: the small eigenvalues that
    distinguish them are above rounding errors, and must not be changed.
    """
    spread, basis = np.linalg.eigh(matrix)
    least = max(ROUNDING * float(spread[-1]), 1e-300)
    return np.asarray((basis / np.maximum(spread, least)) @ basis.T)


def _make_designs(
    spec: Spec, bound: Any, factors: Factors, entities: Ints, row_weight: Floats
) -> list[Design]:
    bag, side, named = factors.bag, row_side(spec, bound), entities
    if bound.lists is not None and bound.n_dims == 1:
        # Columns that are not used here would only cost time and memory.
        k, n_all = bag.shape[1], bound.n_entities
        bound, columns = bound.around(entities)
        bag = bag.reshape(-1, n_all, k)[:, columns].reshape(-1, k)
        entities = np.arange(len(entities))
    index = np.full(bound.n_entities * bound.n_dims, -1, dtype=np.int64)
    index[entities] = np.arange(len(entities))
    has_cells = side is not None and side.has_cells
    predictor = Predictor(replace(factors, bag=bag))
    size = max(1, BLOCK_NUMBERS // max(bound.cost_of_row(), 1))
    blocks: list[tuple[Ints, Floats, Floats, Floats, Floats]] = []
    for start in range(0, bound.n_rows, size):
        rows = np.arange(start, min(start + size, bound.n_rows))
        terms = bound.terms(rows)
        terms = terms.take(index[terms.vector] >= 0)
        weight = row_weight[start + terms.row] * np.where(terms.x == 0, spec.zeros.weight, 1.0)
        Z = predictor.contexts(terms, side, rows)
        offsets = None if side is None else side.offsets(factors.terms, rows)
        of_cells = (
            np.zeros(0) if offsets is None else offsets.at(terms.row, named[index[terms.vector]])
        )
        blocks.append((index[terms.vector], terms.x, Z, weight, of_cells))
    joined = (np.concatenate(column) for column in zip(*blocks, strict=True))
    owner, x, contexts, weight, offset = joined
    order = np.argsort(owner, kind="stable")
    edges = np.searchsorted(owner[order], np.arange(len(entities) + 1))
    contexts, x, weight = (array[order].astype(bag.dtype) for array in (contexts, x, weight))
    offset = offset[order] if has_cells else offset
    ridges = _ridge_precisions(spec, bound, bag, len(entities))
    return [
        Design(contexts[a:b], x[a:b], weight[a:b], offset[a:b] if has_cells else None, ridge, n)
        for (a, b), ridge, n in zip(pairwise(edges), ridges, entities.tolist(), strict=True)
    ]


def _ridge_precisions(spec: Spec, bound: Any, bag: Floats, n: int) -> list[Floats | None]:
    """Precisions that a ridge on the weights rho_n . alpha_m adds to those of the first n rho."""
    ridged = [lists for lists in bound.lists or () if lists.ridge is not None]
    if not ridged:
        return [None] * n
    precisions: list[Floats | None] = []
    for i in range(n):
        total = np.zeros((bag.shape[1], bag.shape[1]))
        for lists in ridged:
            edges = slice(lists.ptr[i], lists.ptr[i + 1])
            alpha = bag[lists.slot[edges] * bound.n_entities + lists.members[edges]]
            alpha = alpha.astype(np.float64)
            total += alpha.T @ (lists.ridge[edges, None] * alpha)
        precisions.append(total / spec.family.at(np.array(i)).variance)
    return precisions
