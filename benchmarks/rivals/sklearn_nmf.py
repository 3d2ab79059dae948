"""scikit-learn's NMF with the Kullback-Leibler loss: Poisson factorisation without priors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks.rivals.folding import Factorisation, multiplicative

Array = NDArray[Any]
FROM_POPULARITY = 0.01  # NMF gives zeros, whose logarithm would end any comparison


class KullbackLeiblerNMF(Factorisation):
    """Multiplicative updates; its means are mixed with 1% popularity."""

    name = "scikit-learn NMF (KL)"
    package = "sklearn"

    @classmethod
    def missing(cls) -> str:
        return "not installed: pip install scikit-learn"

    def fit(self, train: csr_array, k: int, seed: int, validation: csr_array | None = None) -> None:
        from sklearn.decomposition import NMF

        options = {"solver": "mu", "beta_loss": "kullback-leibler", "init": "random"}
        model = NMF(k, max_iter=100, random_state=seed, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that 100 iterations are few
            model.fit(train)
        self.columns = np.ascontiguousarray(model.components_.T, dtype=np.float64)
        popular = np.asarray(train.sum(axis=0), dtype=np.float64).ravel() + 1e-9
        self.popular = popular / popular.sum()

    def folded(self, values: csr_array, rows: Array, entities: Array) -> Array:
        """By the same multiplicative updates."""
        return multiplicative(values, np.asarray(rows), np.asarray(entities), self.columns)

    def log_mean(self, theta: Array) -> Array:
        mean = theta @ self.columns.T
        total = mean.sum(axis=1, keepdims=True)
        mixed = (1 - FROM_POPULARITY) * mean + FROM_POPULARITY * total * self.popular
        return np.asarray(np.log(mixed))
