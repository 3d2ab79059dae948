"""implicit: alternating least squares on confidence-weighted counts; ranks, but no shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix

from benchmarks.rivals.base import Completer

Array = NDArray[Any]


class Implicit(Completer):
    """Its defaults (15 iterations, regularisation 0.01, alpha 1), one thread."""

    name = "implicit ALS"
    package = "implicit"
    gives_shares = False

    def fit(self, train: csr_array, k: int, seed: int, validation: csr_array | None = None) -> None:
        from implicit.cpu.als import AlternatingLeastSquares

        self.model = AlternatingLeastSquares(factors=k, random_state=seed, num_threads=1)
        self.model.fit(csr_matrix(train, dtype=np.float32), show_progress=False)

    def block(self, context: csr_array, asked: Array) -> Array:
        """The row's factors from its other items, times those of all items."""
        rows = csr_matrix(context, dtype=np.float32)
        factors = self.model.recalculate_user(np.arange(len(asked)), rows)
        return np.asarray(factors @ self.model.item_factors.T)
