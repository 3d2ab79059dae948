"""The splits of the count data against plain loops over dense arrays."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from efemb.baselines import Popularity
from efemb.data.dataset import Dataset
from efemb.reproduce.counts_fits import (
    predict_test_entries,
    shrink,
    split_movies,
    split_ratings,
    split_trips,
)


def ratings(n_rows: int = 45, n_columns: int = 12) -> np.ndarray:
    """Some ratings from 1 to 3."""
    rng = np.random.default_rng(5)
    return (
        rng.integers(1, 4, size=(n_rows, n_columns)) * (rng.random((n_rows, n_columns)) < 0.6)
    ).astype(float)


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_movies_split_is_the_one_of_the_protocol(seed):
    X = ratings()
    found = split_movies(Dataset(csr_array(X)), seed)
    rng = np.random.default_rng(seed)
    test = rng.permutation(len(X))[: int(0.2 * len(X))].tolist()
    rest = [row for row in range(len(X)) if row not in test]
    cells = [(i, j) for i, row in enumerate(rest) for j in range(X.shape[1]) if X[row, j]]
    held = rng.permutation(len(cells))[: round(0.05 * len(cells))]
    train, validation = X[rest].copy(), np.zeros_like(X[rest])
    for place in held:
        validation[cells[place]] = train[cells[place]]
        train[cells[place]] = 0
    assert np.array_equal(found.test.values.toarray(), X[test])
    assert np.array_equal(found.train.values.toarray(), train)
    assert np.array_equal(found.validation.values.toarray(), validation)
    # Zeros are not stored: they would be taken for ratings.
    assert found.train.values.nnz == np.count_nonzero(train)


def test_trips_split_cuts_one_permutation():
    X = ratings(200)
    found = split_trips(Dataset(csr_array(X)))
    order = np.random.default_rng(0).permutation(200)
    assert np.array_equal(found.test.values.toarray(), X[order[:10]])
    assert np.array_equal(found.validation.values.toarray(), X[order[10:12]])
    assert np.array_equal(found.train.values.toarray(), X[order[12:]])


def test_smaller_keeps_frequent_items_and_trips_of_two():
    X = np.array([[1, 0, 2, 0], [0, 1, 1, 0], [1, 0, 1, 1], [0, 0, 1, 0], [9, 9, 9, 9.0]])
    found = shrink(Dataset(csr_array(X), entities=list("abcd")), 4, 2)
    assert list(found.entities) == ["a", "c"]
    assert found.values.toarray().tolist() == [[1, 2], [1, 1]]


@pytest.mark.parametrize("seed", [0, 3])
def test_ratings_split_holds_out_a_fifth_of_the_ratings(seed):
    X = ratings()
    split = split_ratings(Dataset(csr_array(X)), seed)
    parts = [part.values.toarray() for part in (split.train, split.validation, split.requested)]
    assert np.array_equal(sum(parts), X)
    assert np.array_equal(split.test.values.toarray(), X)
    train, validation, asked = (np.count_nonzero(part) for part in parts)
    assert validation + asked == round(0.2 * np.count_nonzero(X))
    assert validation == round(0.05 * (validation + asked))
    assert train + validation + asked == np.count_nonzero(X), "no cell is in two parts"


def test_only_held_out_ratings_are_predicted():
    split = split_ratings(Dataset(csr_array(ratings())), 0)
    predictions = predict_test_entries(Popularity().fit(split.train), split, None)
    asked = split.requested.values.toarray()
    assert len(predictions) == np.count_nonzero(asked)
    assert np.array_equal(asked[predictions.row, predictions.entity], predictions.x)
