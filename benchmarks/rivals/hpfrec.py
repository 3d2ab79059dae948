"""hpfrec: hierarchical Poisson factorization, all rows in every iteration."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_array

from benchmarks.rivals.base import Rival, counts_of

Array = NDArray[Any]
ITERATIONS = 100
A, A_PRIME, B_PRIME = 0.3, 0.3, 1.0  # its defaults, and those of Gopalan et al. (2015)
MAX_STEPS, TOLERANCE = 300, 1e-3  # of the fold-in


class Hpfrec(Rival):
    """Its defaults, 100 iterations on one core; rows are folded in to convergence."""

    package = "hpfrec"

    def __init__(self, factors: int) -> None:
        self.factors = factors

    def fit(self, X: Any, *, validation: Any = None) -> Self:
        """All 100 iterations."""
        from hpfrec import HPF

        model = HPF(
            self.factors,
            maxiter=ITERATIONS,
            stop_crit="maxiter",
            check_every=ITERATIONS,
            random_seed=0,
            ncores=1,
            verbose=False,
            reindex=False,
            produce_dicts=False,
            keep_all_objs=True,
            keep_data=False,
        )
        model.fit(coo_matrix(counts_of(X)))
        self.set_factors(model.Lambda_shp, model.Lambda_rte)
        return self

    def set_factors(self, shape: Array, rate: Array) -> None:
        """Means and geometric means of the items' factors, Gamma(shape, rate) each."""
        from scipy.special import psi

        self.mean = np.asarray(shape / rate, dtype=np.float64)
        self.geometric = np.asarray(np.exp(psi(shape.astype(np.float64))) / rate)

    def block(self, context: csr_array, asked: Array) -> Array:
        """log(theta . beta) of all items."""
        return np.asarray(np.log(self.fold_in(context, asked) @ self.mean.T))

    def fold_in(self, context: csr_array, asked: Array) -> Array:
        """theta ~ Gamma(a + its counts, xi + sum of the other items' means), xi ~ Gamma."""
        from efemb.kernels.poisson_factors import fold_in

        k = self.mean.shape[1]
        theta = np.empty((len(asked), k))
        counts = context.data.astype(np.float64)
        prior = (A, A_PRIME + k * A, A_PRIME / B_PRIME)
        items = (self.mean, self.geometric, self.mean.sum(axis=0))
        cells = (np.arange(len(asked)), np.asarray(asked, dtype=np.int64))
        rows = (context.indptr, context.indices, counts)
        fold_in(*rows, *cells, *items, *prior, TOLERANCE, MAX_STEPS, theta)
        return theta
