"""New vectors of a categorical model: all of them share every softmax, so they are one problem."""

from __future__ import annotations

import numpy as np

from efemb._typing import Floats, Ints
from efemb.engine.solvers.rows.solver import RowsSolver
from efemb.inference.posterior import Posterior
from efemb.model.factors import Factors


class SoftmaxPosterior(Posterior):
    """Some rows of rho with their intercepts, or of alpha, as one problem in all their numbers."""

    def __init__(self, solver: RowsSolver, vectors: Factors, new: Ints, *, context: bool) -> None:
        spec, k = solver.spec, vectors.bag.shape[1]
        self.solver, self.fixed, self.new, self.context = solver, vectors, new, context
        self.intercept = spec.intercept and not context
        size = len(new) * k
        prior = spec.prior_alpha if context else spec.prior_rho
        positive = np.full(size, spec.positive_alpha if context else spec.positive_rho)
        priors = [(prior, slice(0, size))]
        if self.intercept:
            positive = np.append(positive, np.full(len(new), spec.positive_intercept))
            priors.append((spec.intercept_prior, slice(size, size + len(new))))
        super().__init__(positive, priors)

    def block(self, vectors: Factors) -> Floats:
        """The numbers in question, (1, p)."""
        side = vectors.bag if self.context else vectors.target
        found = side[self.new].reshape(1, -1)
        if not self.intercept:
            return found
        return np.concatenate([found, vectors.intercept[self.new][None]], axis=1)

    def filled(self, v: Floats) -> Factors:
        """All vectors, with the numbers in question in place."""
        fixed, size = self.fixed, len(self.new) * self.fixed.bag.shape[1]
        found = Factors(fixed.target.copy(), fixed.bag.copy(), fixed.intercept.copy())
        side = found.bag if self.context else found.target
        side[self.new] = v[0, :size].reshape(len(self.new), -1)
        if self.intercept:
            found.intercept[self.new] = v[0, size:]
        return found

    def likelihood(self, v: Floats, which: Ints) -> tuple[Floats, Floats]:
        """Of the whole data."""
        value, slopes = self.solver.value_and_gradient(self.filled(v))
        return np.array([value]), self.block(slopes).astype(np.float64)
