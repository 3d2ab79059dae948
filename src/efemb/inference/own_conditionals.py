"""Entities whose contexts are their own (neighbours, graphs, lags, explicit lists)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from efemb._typing import Floats, Ints
from efemb.inference.design import Conditionals, Design, Inverse
from efemb.model.contexts.base import BoundContext
from efemb.model.contexts.bound.entities import EntityLists
from efemb.model.factors import Factors
from efemb.model.predictor import Predictor, row_side
from efemb.model.spec import Spec

BLOCK_NUMBERS = 1 << 20
ROUNDING = 1e-14  # of a sum over many rows
SUMS_AT_ONCE = 1 << 23  # context sums, of which three copies live for a moment


def entities_at_once(bound: BoundContext, k: int, most: int) -> int:
    """How many entities' own context sums are made at a time."""
    return max(1, min(most, SUMS_AT_ONCE // (bound.n_rows * k)))


class OwnConditionals(Conditionals):
    """A design for each entity.

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
        self.spec, self.n, self.k = spec, len(entities), factors.bag.shape[1]
        self.dtype, self.noise = factors.bag.dtype, np.zeros(len(entities))
        self.designs = _designs(spec, bound, factors, entities, row_weight)

    def evaluate(
        self, rho: Floats, intercept: Floats, which: Ints
    ) -> tuple[Floats, Floats, Floats]:
        """One entity after the other."""
        found = [
            self.designs[place].evaluate(self.spec, one, float(b))
            for place, one, b in zip(which.tolist(), rho, intercept, strict=True)
        ]
        value, gradient, slope = zip(*found, strict=True)
        return np.array(value), np.stack(gradient), np.array(slope)

    def design(self, place: int) -> Design:
        """The rows in which the entity is observed."""
        return self.designs[place]

    def inverse(self, rho: Floats, intercept: Floats, prior: Floats) -> Inverse:
        """Exact at the given vectors: of a Gaussian, the first step is the last one."""
        p = prior.shape[1]
        found = np.empty((self.n, p, p))
        for place, (one, b) in enumerate(zip(rho, intercept, strict=True)):
            information = self.designs[place].information(self.spec, one, float(b))[:p, :p]
            found[place] = _inverse(information + np.diag(prior[place]))
        return lambda gradient, which: np.matmul(found[which], gradient[:, :, None])[:, :, 0]


def _inverse(matrix: Floats) -> Floats:
    """The inverse of a matrix that is positive, or would be without rounding.

    Contexts far from zero are almost collinear with the intercept: what little of the spectrum
    tells them apart is above rounding, and must stay as it is.
    """
    spread, basis = np.linalg.eigh(matrix)
    least = max(ROUNDING * float(spread[-1]), 1e-300)
    return np.asarray((basis / np.maximum(spread, least)) @ basis.T)


def _designs(
    spec: Spec, bound: BoundContext, factors: Factors, entities: Ints, row_weight: Floats
) -> list[Design]:
    bag, side = factors.bag, row_side(spec, bound)
    if isinstance(bound, EntityLists) and bound.n_dims == 1:
        # Columns that nothing here depends on would only take time and memory.
        k, n_all = bag.shape[1], bound.n_entities
        bound, columns = bound.around(entities)
        bag = bag.reshape(-1, n_all, k)[:, columns].reshape(-1, k)
        entities = np.arange(len(entities))
    wanted = np.full(bound.n_entities * bound.n_dims, -1, dtype=np.int64)
    wanted[entities] = np.arange(len(entities))
    predictor = Predictor(replace(factors, bag=bag))
    size = max(1, BLOCK_NUMBERS // max(bound.cost_of_row(), 1))
    parts: list[tuple[Ints, Floats, Floats, Floats]] = []
    for start in range(0, bound.n_rows, size):
        rows = np.arange(start, min(start + size, bound.n_rows))
        terms = bound.terms(rows)
        mine = terms.take(wanted[terms.vector] >= 0)
        weight = row_weight[start + mine.row] * np.where(mine.x == 0, spec.zeros.weight, 1.0)
        Z = predictor.contexts(mine, side, rows)
        parts.append((wanted[mine.vector], mine.x, Z, weight))
    place, x, contexts, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(place, kind="stable")
    edges = np.searchsorted(place[order], np.arange(len(entities) + 1))
    contexts, x, weight = (array[order].astype(bag.dtype) for array in (contexts, x, weight))
    return [Design(contexts[a:b], x[a:b], weight[a:b]) for a, b in pairwise(edges)]
