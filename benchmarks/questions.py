"""Questions: held-out entries, each with what is known of its row, asked of every model alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks.data import Counts

Array = NDArray[Any]


@dataclass(frozen=True)
class Questions:
    """Entry i is to be predicted from row i of `contexts`.

    contexts, entries : csr_array (n, N), the latter with a single entry per row
    row : (n,) the row that an entry comes from, by which errors are clustered
    users : (n,) who that row belongs to, where that is known
    """

    contexts: csr_array
    entries: csr_array
    row: Array
    users: Array | None = None

    @classmethod
    def leave_one_out(
        cls, X: csr_array, cap: int | None, users: Array | None, size: int | None = None
    ) -> Questions:
        """At most `cap` random entries per row, each given `size` others (or all) of its row.

        `default_rng(row)` first orders the entries of the row, of which the first `cap` are asked
        for, then draws the context of each.
        """
        asked = []
        for row in range(X.shape[0]):
            stored = np.arange(*X.indptr[row : row + 2])
            rng = np.random.default_rng(row)
            for entry in rng.permutation(stored)[:cap]:
                others = stored[stored != entry]
                context = others if size is None else rng.permutation(others)[:size]
                if len(context):
                    asked.append((row, int(entry), np.sort(context)))
        row, entry = (np.array([ask[i] for ask in asked]) for i in (0, 1))
        ends = np.concatenate([[0], np.cumsum([len(ask[2]) for ask in asked])])
        where = np.concatenate([ask[2] for ask in asked])
        shape = (len(asked), X.shape[1])
        contexts = csr_array((X.data[where], X.indices[where], ends), shape=shape)
        single = np.arange(len(asked) + 1)
        entries = csr_array((X.data[entry], X.indices[entry], single), shape=shape)
        return cls(contexts, entries, row, None if users is None else users[row])

    def sample(self, size: int) -> Questions:
        """At most `size` of the questions, drawn by `default_rng(0)`."""
        drawn = np.sort(np.random.default_rng(0).permutation(len(self.row))[:size])
        users = None if self.users is None else self.users[drawn]
        return Questions(self.contexts[drawn], self.entries[drawn], self.row[drawn], users)

    @property
    def data(self) -> Any:
        """The contexts as a Dataset."""
        from efemb import Dataset

        return Dataset(self.contexts, users=self.users)

    def judge(self, model: Any) -> Any:
        """Predictions of a model, by units and rows of the original data."""
        from efemb.evaluation import held_out_entries

        judged = held_out_entries(model, self.data, self.entries)
        return replace(judged, row=self.row, x=self.entries.data.astype(np.float64))


def predict_entries(model: Any, trips: Any, row: Array, entity: Array, units: Array) -> Any:
    """Predictions of some entries, each given the rest of its row; without ranks."""
    from efemb.evaluation import Predictions

    log_share = np.empty(len(row))
    for place, logs in model.log_means(trips, row, entity):
        values = logs.astype(np.float64)
        own = values[np.arange(len(values)), entity[place]]
        log_share[place] = own - np.logaddexp.reduce(values, axis=1)
    return Predictions(row, entity, units, log_share=log_share)


def question_sets(
    counts: Counts, n_rows: int, cap: int, validation_cap: int | None
) -> Iterator[tuple[str, Questions]]:
    """Validation and test entries, at most so many per row."""
    users = (None, None, None) if counts.users is None else counts.users
    yield "validation", Questions.leave_one_out(counts.validation, validation_cap, users[1])
    yield "test", Questions.leave_one_out(counts.test[:n_rows], cap, users[2])


def further_sets(
    counts: Counts, n_rows: int, cap: int, sizes: tuple[int, ...]
) -> Iterator[tuple[str, Questions]]:
    """All entries of the test rows, and the capped ones given short contexts."""
    test, users = counts.test[:n_rows], None if counts.users is None else counts.users[2]
    yield "all", Questions.leave_one_out(test, None, users)
    for size in sizes:
        yield f"context {size}", Questions.leave_one_out(test, cap, users, size)
