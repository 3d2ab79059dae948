"""Plain NumPy: the project's own yardsticks of p-emb, stopped by their validation scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks.data import Counts
from benchmarks.plain_numpy import trained_baskets, trained_movies
from benchmarks.rivals.base import Completer

Array = NDArray[Any]


class NumpyBaskets(Completer):
    """Minibatches, intercepts, contexts divided by their totals; `validation` is other rows."""

    name = "plain NumPy p-emb"

    def fit(self, train: csr_array, k: int, seed: int, validation: csr_array | None = None) -> None:
        few = train[:1000] if validation is None else validation
        self.watch, self.arrays = trained_baskets(train, few, k, seed=seed)

    def block(self, context: csr_array, asked: Array) -> Array:
        rho, alpha, intercept = self.arrays
        total = np.maximum(np.asarray(context.sum(axis=1)).ravel(), 1e-6)[:, None]
        return np.asarray((context @ alpha / total) @ rho.T + intercept)


class NumpyMovies(Completer):
    """All rows at once, no intercepts, contexts divided by their items; `validation`: entries."""

    name = "plain NumPy p-emb, dense"

    def fit(self, train: csr_array, k: int, seed: int, validation: csr_array | None = None) -> None:
        held = train[:0] if validation is None else validation
        self.watch, self.arrays = trained_movies(Counts(train, held, train[:0]), k, seed=seed)

    def block(self, context: csr_array, asked: Array) -> Array:
        rho, alpha, _ = self.arrays
        items = np.maximum(np.diff(context.indptr), 1)[:, None]
        return np.asarray((context @ alpha / items) @ rho.T)
