"""hpfrec: hierarchical Poisson factorisation, all rows in every iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_array

from benchmarks.rivals.folding import CLOSE, MOST_STEPS, Factorisation

Array = NDArray[Any]
ITERATIONS = 100
A, A_PRIME, B_PRIME = 0.3, 0.3, 1.0  # its defaults, and those of Gopalan et al. (2015)


class Hpfrec(Factorisation):
    """Its defaults, 100 iterations on one core; rows are folded in to convergence."""

    name = "hpfrec, 100 iterations"
    package = "hpfrec"

    def fit(self, train: csr_array, k: int, seed: int, validation: csr_array | None = None) -> None:
        from hpfrec import HPF

        self.model = HPF(
            k,
            maxiter=ITERATIONS,
            stop_crit="maxiter",
            check_every=ITERATIONS,
            random_seed=seed,
            ncores=1,
            verbose=False,
            reindex=False,
            produce_dicts=False,
            keep_all_objs=True,
            keep_data=False,
        )
        self.model.fit(coo_matrix(train))
        self._learned(self.model.Lambda_shp, self.model.Lambda_rte)

    def _learned(self, shape: Array, rate: Array) -> None:
        """Means and geometric means of the items' factors, Gamma(shape, rate) each."""
        from scipy.special import psi

        self.mean = np.asarray(shape / rate, dtype=np.float64)
        self.geometric = np.asarray(np.exp(psi(shape.astype(np.float64))) / rate)

    def folded(self, values: csr_array, rows: Array, entities: Array) -> Array:
        """theta ~ Gamma(a + its counts, xi + sum of the other items' means), xi ~ Gamma."""
        from efemb.kernels.poisson_factors import fold_in

        k = self.mean.shape[1]
        theta = np.empty((len(rows), k))
        counts = values.data.astype(np.float64)
        prior = (A, A_PRIME + k * A, A_PRIME / B_PRIME)
        items = (self.mean, self.geometric, self.mean.sum(axis=0))
        cells = (np.asarray(rows), np.asarray(entities))
        fold_in(
            values.indptr, values.indices, counts, *cells, *items, *prior, CLOSE, MOST_STEPS, theta
        )
        return theta

    def log_mean(self, theta: Array) -> Array:
        return np.asarray(np.log(theta @ self.mean.T))
