"""itembed: item2vec, skip-gram with negative samples on sets of items; ranks, but no shares."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks.rivals.base import Completer, mean_of_rows

Array = NDArray[Any]


class Itembed(Completer):
    """Its defaults: 10 epochs, 5 negatives, learning rate 0.025 falling to 0."""

    name = "itembed"
    package = "itembed"
    gives_shares = False

    def fit(self, train: csr_array, k: int, seed: int, validation: csr_array | None = None) -> None:
        from itembed import UnsupervisedTask, initialize_syn
        from itembed import train as fit_task

        rows = train[np.diff(train.indptr) >= 2]
        np.random.seed(seed)  # noqa: NPY002  # the only seed it listens to
        self.inner = initialize_syn(train.shape[1], k)
        self.outer = initialize_syn(train.shape[1], k)
        items, ends = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
        task = UnsupervisedTask(items, ends, self.inner, self.outer)
        with contextlib.redirect_stderr(io.StringIO()):  # its progress bar
            fit_task(task)

    def block(self, context: csr_array, asked: Array) -> Array:
        """Mean vector of the row's other items, times the second vectors of all items."""
        return np.asarray(mean_of_rows(context, self.inner) @ self.outer.T)
