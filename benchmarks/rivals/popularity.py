"""Popularity: every row gets the shares of the training counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks.rivals.base import Completer


class Popularity(Completer):
    """log of each item's share."""

    name = "popularity"

    def fit(self, train: csr_array, k: int, seed: int, validation: csr_array | None = None) -> None:
        total = np.asarray(train.sum(axis=0), dtype=np.float64).ravel() + 1e-9
        self.log_share = np.log(total / total.sum())

    def block(self, context: csr_array, asked: NDArray[Any]) -> NDArray[Any]:
        return np.tile(self.log_share, (len(asked), 1))
