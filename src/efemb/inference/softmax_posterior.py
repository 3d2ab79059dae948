"""New vectors of a categorical model: all of them share every softmax, so they are one problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from efemb._typing import Floats, Ints
from efemb.engine.solvers.rows.solver import RowsSolver
from efemb.inference.posterior import Block, Posterior, block_edges
from efemb.model.factors import Factors


class SoftmaxPosterior(Posterior):
    """Some rows of rho with their intercepts, or of alpha, as one problem in all their numbers."""

    def __init__(
        self,
        solver: RowsSolver,
        vectors: Factors,
        new: Ints,
        blocks: Sequence[Block],
        *,
        context: bool,
    ) -> None:
        spec = solver.spec
        self.solver, self.fixed, self.new, self.context = solver, vectors, new, context
        self.intercept = spec.intercept and not context
        self.edges = block_edges(blocks)
        if self.intercept:
            blocks = [*blocks, (spec.intercept_prior, 1, spec.positive_intercept)]
        super().__init__([(prior, len(new) * size, sign) for prior, size, sign in blocks])

    def block(self, vectors: Factors) -> Floats:
        """The numbers in question, (1, p)."""
        side = (vectors.bag if self.context else vectors.target)[self.new]
        numbers = [side[:, a:b].ravel() for a, b in pairwise(self.edges)]
        if self.intercept:
            numbers.append(vectors.intercept[self.new])
        return np.concatenate(numbers)[None]

    def filled(self, v: Floats) -> Factors:
        """All vectors, with the numbers in question in place."""
        fixed, n = self.fixed, len(self.new)
        target, bag, intercept = fixed.target.copy(), fixed.bag.copy(), fixed.intercept.copy()
        side = bag if self.context else target
        for a, b in pairwise(self.edges):
            side[self.new, a:b] = v[0, n * a : n * b].reshape(n, b - a)
        if self.intercept:
            intercept[self.new] = v[0, n * self.edges[-1] :]
        return replace(fixed, target=target, bag=bag, intercept=intercept)

    def likelihood(self, v: Floats, which: Ints) -> tuple[Floats, Floats]:
        """Of the whole data."""
        value, slopes = self.solver.value_and_gradient(self.filled(v))
        return np.array([value]), self.block(slopes).astype(np.float64)
