"""Laws of `split`: the documented permutation, and parts that make up the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from efemb.data import Dataset, split
from efemb.errors import DataError, ParameterError


def counts(kind: Any = sparse.csr_array, shape: tuple[int, ...] = (40, 7)) -> Dataset:
    values = np.random.default_rng(5).poisson(0.8, shape).astype(float)
    return Dataset(kind(values), row_labels=np.arange(shape[0]))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("seed", [0, 3])
def test_rows(kind: Any, seed: int) -> None:
    data = counts(kind)
    train, validation, test = data.split(test=0.2, validation=0.1, seed=seed)
    order = np.random.default_rng(seed).permutation(40)
    assert test.row_labels.tolist() == sorted(order[:8])
    assert validation.row_labels.tolist() == sorted(order[8:12])
    assert train.row_labels.tolist() == sorted(order[12:])
    whole = data.values if kind is np.asarray else data.values.toarray()
    part = test.values if kind is np.asarray else test.values.toarray()
    np.testing.assert_array_equal(part, whole[sorted(order[:8])])


def test_two_parts_without_validation_and_whole_numbers_as_sizes() -> None:
    parts = split(counts(), test=0.05)
    assert [part.n_rows for part in parts] == [38, 2]
    assert [part.n_rows for part in split(counts(), test=5, validation=2)] == [33, 2, 5]


@pytest.mark.parametrize("validation", [0.0, 0.25])
def test_entries_of_sparse_data(validation: float) -> None:
    data = counts()
    whole = data.values.toarray()
    parts = data.split(test=0.3, validation=validation, seed=1, by="entries")
    assert len(parts) == (3 if validation else 2)
    rows, columns = np.nonzero(whole)
    order = np.random.default_rng(1).permutation(len(rows))
    held = order[: int(0.3 * len(rows))]
    expected = np.zeros_like(whole)
    expected[rows[held], columns[held]] = whole[rows[held], columns[held]]
    np.testing.assert_array_equal(parts[-1].values.toarray(), expected)
    np.testing.assert_array_equal(sum(part.values.toarray() for part in parts), whole)
    assert sum(part.values.nnz for part in parts) == data.values.nnz
    assert all(part.shape == data.shape for part in parts)


@pytest.mark.parametrize("shape", [(12, 5), (12, 5, 2)])
def test_entries_of_dense_data(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(2).normal(size=shape)
    values[3, 1] = np.nan
    train, test = Dataset(values).split(test=0.25, by="entries")
    seen = [~np.isnan(part.values) for part in (train, test)]
    assert not (seen[0] & seen[1]).any()
    np.testing.assert_array_equal(seen[0] | seen[1], ~np.isnan(values))
    together = np.where(seen[0], train.values, test.values)
    np.testing.assert_array_equal(together, values)
    per_cell = seen[1] if len(shape) == 2 else seen[1].all(axis=2)
    assert per_cell.sum() == int(0.25 * 59)
    if len(shape) == 3:
        np.testing.assert_array_equal(seen[1].all(axis=2), seen[1].any(axis=2))


def test_parts_keep_the_other_properties() -> None:
    data = Dataset(np.ones((20, 2)), entities=["a", "b"], recordings=np.repeat([0, 1], 10))
    for part in data.split(test=0.5):
        assert list(part.entities) == ["a", "b"]
        assert part.recordings is not None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"by": "row"}, ParameterError, "did you mean 'rows'"),
        ({"test": -0.1}, ParameterError, "test=-0.1"),
        ({"test": 1.5}, ParameterError, "test=1.5"),
        ({"validation": float("nan")}, ParameterError, "validation=nan"),
        ({"test": 0.0}, DataError, "0 for test"),
        ({"test": 0.001}, DataError, "0 for test"),
        ({"test": 0.5, "validation": 0.001}, DataError, "0 for validation"),
        ({"test": 0.6, "validation": 0.6}, DataError, "every part needs at least one"),
        ({"test": 41}, DataError, "every part needs at least one"),
    ],
)
def test_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        counts().split(**options)
