"""Splits of the count data: what is trained on, what tells when to stop, what is predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from efemb.data.dataset import Dataset
from efemb.types import Bools

TEST_USERS = 0.2
VALIDATION_ENTRIES = 0.05
TEST_TRIPS, VALIDATION_TRIPS = 0.05, 0.01


@dataclass(frozen=True)
class Split:
    """Training rows, validation data (entries of the same rows, or other rows) and test rows."""

    train: Dataset
    validation: Dataset
    test: Dataset


def movies_split(data: Dataset, seed: int) -> Split:
    """A fifth of the users are for testing, 5% of the other users' ratings for validation.

    The paper holds out "20% of the ratings"; holding out users is the reading that matches its
    "we recover the factor loadings using the other test entries".
    """
    rng = np.random.default_rng(seed)
    n_users = data.n_rows
    test = rng.permutation(n_users)[: int(n_users * TEST_USERS)]
    kept = data.take_rows(np.setdiff1d(np.arange(n_users), test))
    stored = kept.values.copy()
    stored.sort_indices()  # entries are drawn by their place, row by row
    held = np.zeros(stored.nnz, dtype=bool)
    held[rng.permutation(stored.nnz)[: round(VALIDATION_ENTRIES * stored.nnz)]] = True
    train, validation = (kept._replace(_only(stored, mine)) for mine in (~held, held))
    return Split(train, validation, data.take_rows(test))


def _only(stored: Any, mine: Bools) -> Any:
    """Some of the stored entries."""
    found = stored.copy()
    found.data = np.where(mine, stored.data, 0)
    found.eliminate_zeros()
    return found


def trips_split(data: Dataset, seed: int = 0) -> Split:
    """5% of the trips for testing, 1% for validation, the rest for training."""
    order = np.random.default_rng(seed).permutation(data.n_rows)
    first = int(TEST_TRIPS * data.n_rows)
    second = int((TEST_TRIPS + VALIDATION_TRIPS) * data.n_rows)
    parts = (order[second:], order[first:second], order[:first])
    return Split(*(data.take_rows(part) for part in parts))


def smaller(data: Dataset, n_rows: int, n_entities: int) -> Dataset:
    """The first rows and the most frequent entities, for a quick look; rows of one item go."""
    sold = np.asarray((data.values[:n_rows] > 0).sum(axis=0)).ravel()
    often = np.sort(np.argsort(-sold, kind="stable")[:n_entities])
    found = data.take_rows(slice(0, n_rows)).take_entities(often)
    return found.take_rows(np.flatnonzero(np.diff(found.values.tocsr().indptr) >= 2))
