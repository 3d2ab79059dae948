"""Laws of `Dataset`: what it keeps, what it refuses, what its parts are."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from efemb.data import Dataset, Vocabulary, read_matrix, read_text
from efemb.errors import DataError, InputTypeError

KINDS = [np.asarray, sparse.csr_array, sparse.csc_matrix, sparse.coo_array]


def compressed(kind: str, indices: list[int], indptr: list[int]) -> Any:
    """Two rows, three columns; scipy does not check indices."""
    make = sparse.csr_array if kind == "csr" else sparse.csc_array
    return make((np.ones(2), indices, indptr), shape=(2, 3))


def dense(values: Any) -> np.ndarray[Any, Any]:
    return values.toarray() if sparse.issparse(values) else values


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_kept(kind: Any) -> None:
    numbers = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]])
    data = Dataset(kind(numbers), entities=["a", "b", "c"])
    np.testing.assert_array_equal(dense(data.values), numbers)
    assert data.shape == (2, 3)
    assert (data.n_rows, data.n_entities, data.n_dims, len(data)) == (2, 3, 1, 2)
    assert data.is_sparse == (kind is not np.asarray)
    assert isinstance(data.entities, Vocabulary)


def test_sparse_values_become_canonical_and_the_callers_stay_untouched() -> None:
    given_values = sparse.csr_array(
        (np.array([1.0, 2.0, 3.0, 0.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), shape=(2, 3)
    )
    before = [part.copy() for part in (given_values.data, given_values.indices)]
    values = Dataset(given_values).values
    assert isinstance(values, sparse.csr_array)
    assert values.indices.tolist() == [0, 2]
    assert values.data.tolist() == [2.0, 4.0]
    np.testing.assert_array_equal(before[0], given_values.data)
    np.testing.assert_array_equal(before[1], given_values.indices)


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [("f4", "f4"), ("f8", "f8"), ("i4", "f8"), ("u1", "f8"), ("?", "f8"), ("f2", "f4")],
)
def test_types_of_numbers(dtype: str, kept: str) -> None:
    assert Dataset(np.ones((2, 2), dtype)).values.dtype == kept
    if dtype != "f2":  # scipy has no sparse float16
        assert Dataset(sparse.csr_array(np.ones((2, 2), dtype))).values.dtype == kept


def test_objects_that_are_numbers_are_taken_and_others_not() -> None:
    assert Dataset(np.array([[1, 2.5]], dtype=object)).values.dtype == np.float64
    for wrong in ([["a"]], np.array([[1j]]), np.array([[None, "x"]], dtype=object)):
        with pytest.raises(InputTypeError, match="must be numbers"):
            Dataset(wrong)
    with pytest.raises(InputTypeError, match="already"):
        Dataset(Dataset([[1.0]]))


def test_indices_of_64_bits_are_accepted_as_they_are() -> None:
    parts = (np.ones(2), np.array([0, 1], np.int64), np.array([0, 1, 2], np.int64))
    values = sparse.csr_array(parts, shape=(2, 3_000_000_000))
    data = Dataset(values)
    assert data.values.indices.dtype == np.int64
    assert data.take_rows([1]).values.indices.dtype == np.int64
    assert data.n_entities == 3_000_000_000


def test_it_is_frozen_and_can_be_pickled() -> None:
    data = Dataset([[1.0]], report={"lines": 1})
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.values = 1
    again = pickle.loads(pickle.dumps(data))
    assert again.report == {"lines": 1}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.empty((0, 3)), "no rows"),
        (np.empty((3, 0)), "no entities"),
        (np.empty((3, 2, 0)), "no numbers per entity"),
        (sparse.csr_array((0, 3)), "no rows"),
        (np.ones(3), "1-dimensional"),
        (np.ones((1, 1, 1, 1)), "4-dimensional"),
        (np.array([[1.0, 2.0], [3.0, np.inf]]), "first in row 1, entity 1"),
        (np.array([[[1.0], [-np.inf]]]), "first in row 0, entity 1"),
        (sparse.csr_array([[0.0, 1.0], [0.0, np.nan]]), "row 1, entity 1; missing values need"),
        (sparse.csr_array([[0.0, np.inf]]), "first in row 0, entity 1"),
        (compressed("csr", [0, 3], [0, 1, 2]), "row 1 has an entry in column 3, but there are 3"),
        (compressed("csr", [0, -1], [0, 1, 2]), "row 1 has an entry in column -1"),
        (compressed("csr", [0, 1], [0, 2, 1]), "that of row 0 does not"),
        (
            compressed("csc", [0, 2], [0, 1, 2, 2]),
            "column 1 has an entry in row 2, but there are 2",
        ),
    ],
)
def test_values_that_are_refused(values: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Dataset(values)


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        (np.zeros((2, 3)), "positions has 2 rows, but there are 3 entities"),
        ([[0.0], [np.nan], [1.0]], "entities 1 are NaN or infinite"),
        ([0.0, np.inf, -np.inf], "entities 1, 2 are NaN or infinite"),
        ([[0, 1], [2, 3], [0, 1]], "entities 0, 2 share a position"),
        (np.zeros((3, 0)), "entities x coordinates"),
        (np.zeros((3, 1, 1)), "entities x coordinates"),
    ],
)
def test_positions_that_are_refused(positions: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Dataset(np.ones((2, 3)), positions=positions)


def test_side_arrays_of_the_wrong_length() -> None:
    for name in ("row_labels", "users", "recordings"):
        with pytest.raises(DataError, match=f"{name} has shape"):
            Dataset(np.ones((2, 3)), **{name: [1, 2, 3]})
    with pytest.raises(DataError, match="2 labels for 3 entities"):
        Dataset(np.ones((2, 3)), entities=["a", "b"])
    with pytest.raises(InputTypeError, match="not a single string"):
        Dataset(np.ones((2, 3)), entities="abc")


def test_recordings_must_be_contiguous() -> None:
    with pytest.raises(DataError, match=r"recording 4 .*starts in row 0 and again in row 2"):
        Dataset(np.ones((3, 1)), recordings=[4, 7, 4])
    with pytest.raises(DataError, match="NaN"):
        Dataset(np.ones((2, 1)), recordings=[1.0, np.nan])
    for missing in (["a", "", "b"], pd.array(["a", None, "b"], dtype="string")):
        with pytest.raises(DataError, match=r"recordings is missing \(.*\) in row 1"):
            Dataset(np.ones((3, 1)), recordings=missing)
    assert Dataset(np.ones((3, 1)), recordings=["b", "b", "a"]).recordings.tolist() == [0, 0, 1]
    assert Dataset(np.ones((3, 1)), recordings=[7, 7, 3]).recordings.tolist() == [7, 7, 3]


def everything(kind: Any) -> Dataset:
    return Dataset(
        kind(np.arange(12.0).reshape(4, 3)),
        entities=["a", "b", "c"],
        positions=[0.0, 1.0, 2.0],
        row_labels=["r0", "r1", "r2", "r3"],
        users=[5, 5, 6, 7],
        recordings=[0, 0, 1, 1],
        report={"lines": 12},
    )


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    "index", [[1, 3], slice(1, None, 2), np.array([0, 1, 0, 1], bool), [-3, -1]]
)
@pytest.mark.parametrize("take", [Dataset.take_rows, Dataset.__getitem__])
def test_take_rows(kind: Any, index: Any, take: Any) -> None:
    data = take(everything(kind), index)
    np.testing.assert_array_equal(dense(data.values), [[3, 4, 5], [9, 10, 11]])
    assert data.row_labels.tolist() == ["r1", "r3"]
    assert data.users.tolist() == [5, 7]
    assert data.recordings.tolist() == [0, 1]
    assert list(data.entities) == ["a", "b", "c"]
    assert data.report == {"lines": 12}


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_take_entities(kind: Any) -> None:
    data = everything(kind).take_entities([2, 0])
    np.testing.assert_array_equal(dense(data.values), np.arange(12).reshape(4, 3)[:, [2, 0]])
    assert list(data.entities) == ["c", "a"]
    assert data.positions.tolist() == [[2.0], [0.0]]
    assert data.row_labels.tolist() == ["r0", "r1", "r2", "r3"]


@pytest.mark.parametrize(
    ("index", "error"),
    [
        ([9], DataError),
        ([-5], DataError),
        ([], DataError),
        ([True], DataError),
        (np.zeros(4, bool), DataError),
        ([0.5], InputTypeError),
        ([[0]], InputTypeError),
    ],
)
def test_indices_that_are_refused(index: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        everything(np.asarray).take_rows(index)


def test_brackets_are_for_rows_and_make_no_list() -> None:
    data = everything(np.asarray)
    with pytest.raises(InputTypeError, match="take_entities"):
        data[:, 0]
    with pytest.raises(TypeError):
        np.asarray(data)


@given(
    arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 3)), elements=st.floats(-9, 9)),
    st.data(),
)
def test_difference_is_the_loop_definition(values: np.ndarray[Any, Any], draw: Any) -> None:
    lengths = draw.draw(st.lists(st.integers(0, 3), min_size=len(values), max_size=len(values)))
    recordings = np.sort(lengths)
    expected, labels = [], []
    for t in range(1, len(values)):
        if recordings[t] == recordings[t - 1]:
            expected.append(values[t] - values[t - 1])
            labels.append(t)
    for kind in (np.asarray, sparse.csr_array):
        data = Dataset(kind(values), recordings=recordings, row_labels=np.arange(len(values)))
        if not expected:
            with pytest.raises(DataError, match="at least two rows"):
                data.difference()
            continue
        result = data.difference()
        np.testing.assert_array_equal(dense(result.values), expected)
        assert result.row_labels.tolist() == labels
        assert result.recordings.tolist() == recordings[labels].tolist()


def test_difference_of_vectors_and_missing_values_without_recordings() -> None:
    values = np.array([[[1.0, 2.0]], [[4.0, np.nan]], [[9.0, 9.0]]])
    result = Dataset(values).difference()
    np.testing.assert_array_equal(result.values, [[[3.0, np.nan]], [[5.0, np.nan]]])
    assert result.n_dims == 2


def test_the_repr_tells_what_is_there() -> None:
    text = repr(everything(sparse.csr_array))
    for part in ("4 rows x 3 entities", "sparse 11 non-zeros", "'a'", "1-d", "users", "2 record"):
        assert part in text
    assert "x 2, dense float32" in repr(Dataset(np.ones((1, 1, 2), np.float32)))


def test_importing_the_data_layer_is_cheap() -> None:
    code = (
        "import sys; from efemb.data import Dataset, Vocabulary, split, read_baskets, read_matrix;"
        "Dataset([[1.0]]).take_rows([0]);"
        "heavy = {'scipy', 'pandas', 'narwhals', 'pyarrow', 'polars', 'rich'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_namespace_is_what_it_says() -> None:
    import efemb.data

    assert dir(efemb.data) == sorted(efemb.data.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = efemb.data.nothing


CORPUS = read_text(["a b c a b", "b c d a"] * 9)
DATA = Dataset(np.arange(12.0).reshape(3, 4))


@pytest.mark.parametrize(
    "ask",
    [
        lambda: Dataset(CORPUS),
        lambda: read_matrix([CORPUS, CORPUS]),
        lambda: Dataset(np.eye(3), row_labels=DATA),
        lambda: DATA[:, np.array([0, 1])],
        lambda: DATA[()],
        lambda: CORPUS[()],
        lambda: CORPUS[:, 0],
    ],
)
def test_containers_are_neither_arrays_nor_tables_of_columns(ask: Any) -> None:
    with pytest.raises(InputTypeError):
        ask()


def test_blocks_that_lie_outside_are_refused() -> None:
    blocks = sparse.bsr_array((np.ones((1, 2, 2)), [2], [0, 1]), shape=(2, 4))
    with pytest.raises(DataError, match="column of blocks 2, but there are 2"):
        Dataset(blocks)


def test_columns_that_are_called_like_parts_of_a_masked_array() -> None:
    data = Dataset(pd.DataFrame({"filled": [1.0, 2.0], "mask": [3.0, 4.0]}))
    np.testing.assert_array_equal(data.values, [[1, 3], [2, 4]])


def test_gaps_of_nullable_columns_are_missing() -> None:
    columns = {"a": pd.array([1, None, 3], "Int64"), "b": pd.array([0.5, None, None], "Float64")}
    expected = np.array([[1, 0.5], [np.nan, np.nan], [3, np.nan]])
    np.testing.assert_array_equal(Dataset(pd.DataFrame(columns)).values, expected)
    objects = np.array([[1, 0.5], [pd.NA, None], [3, np.nan]], dtype=object)
    np.testing.assert_array_equal(Dataset(objects).values, expected)


@pytest.mark.parametrize(("dtype", "cells", "whole"), [("u1", [200, 100], 300), ("?", [1, 1], 2)])
def test_small_numbers_of_one_cell_do_not_overflow(
    dtype: str, cells: list[int], whole: int
) -> None:
    values = sparse.coo_array((np.array(cells, dtype), ([0, 0], [0, 0])), shape=(1, 2))
    assert Dataset(values).values.toarray().tolist() == [[whole, 0]]
