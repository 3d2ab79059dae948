"""An index that pandas wrote labels the rows of a matrix; it is never an entity."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from efemb.data import read_baskets, read_matrix
from efemb.data.readers.guess import guess_contents
from efemb.errors import DataError, InputTypeError

X = np.array([[1.5, 0.0], [3.0, 7.0], [2.0, 2.0]])
FRAME = pd.DataFrame(X, columns=["a", "b"])


def through_csv(frame: pd.DataFrame, folder: Path) -> Path:
    frame.to_csv(folder / "x.csv")
    return folder / "x.csv"


def read_again(frame: pd.DataFrame, folder: Path) -> pd.DataFrame:
    return pd.read_csv(through_csv(frame, folder))


def saved_again(frame: pd.DataFrame, folder: Path) -> Path:
    return through_csv(read_again(frame, folder), folder)


def through_parquet(frame: pd.DataFrame, folder: Path) -> Path:
    frame.to_parquet(folder / "x.parquet", index=True)
    return folder / "x.parquet"


WAYS: list[Callable[[pd.DataFrame, Path], Any]] = [
    through_csv,
    read_again,
    saved_again,
    through_parquet,
    lambda frame, folder: pa.Table.from_pandas(frame, preserve_index=True),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("labels", [[0, 1, 2], [5, 6, 9], ["p", "q", "r"]])
def test_an_index_gives_row_labels(way: Any, labels: list[Any], tmp_path: Path) -> None:
    data = read_matrix(way(FRAME.set_axis(labels), tmp_path))
    np.testing.assert_array_equal(data.values, X)
    assert list(data.entities) == ["a", "b"]
    expected = [0, 1, 2] if way is saved_again else labels
    assert [str(label) for label in data.row_labels] == [str(label) for label in expected]


def test_a_named_index_in_parquet(tmp_path: Path) -> None:
    frame = FRAME.set_axis(pd.Index([5, 6, 9], name="frame"))
    data = read_matrix(through_parquet(frame, tmp_path))
    assert list(data.entities) == ["a", "b"]
    assert list(data.row_labels) == [5, 6, 9]
    lines = pd.DataFrame({"trip": [1, 1, 2], "item": list("aba")}).set_index("trip")
    baskets = read_baskets(through_parquet(lines, tmp_path), basket="trip", item="item")
    assert baskets.values.toarray().tolist() == [[1, 1], [1, 0]]


def test_what_reset_index_leaves() -> None:
    data = read_matrix(FRAME.reset_index())
    assert list(data.entities) == ["a", "b"]
    assert list(data.row_labels) == [0, 1, 2]
    # An entity may well be called like that: only a column that counts the rows is an index.
    shares = pd.DataFrame({"index": [1.5, 2.5, 0.5], "bond": [1.0, 2.0, 3.0]})
    assert list(read_matrix(shares).entities) == ["index", "bond"]


def test_other_row_labels_win_over_the_index(tmp_path: Path) -> None:
    path = through_csv(FRAME.assign(day=["mon", "tue", "wed"]), tmp_path)
    data = read_matrix(path, row_labels="day")
    assert list(data.entities) == ["a", "b"]
    assert list(data.row_labels) == ["mon", "tue", "wed"]
    assert list(read_matrix(through_csv(FRAME, tmp_path), row_labels=[7, 8, 9]).row_labels) == [
        *(7, 8, 9)
    ]


@pytest.mark.parametrize("labels", [[0, 1, 2], ["p", "q", "r"]])
def test_guesses_see_no_index(labels: list[Any], tmp_path: Path) -> None:
    assert guess_contents(through_csv(FRAME.set_axis(labels), tmp_path)).kind == "matrix"


def test_columns_that_are_numbers_or_levels() -> None:
    assert list(read_matrix(pd.DataFrame(X)).entities) == [0, 1]
    levels = pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])
    with pytest.raises(InputTypeError, match="a label must be text, a number or a date, not tuple"):
        read_matrix(pd.DataFrame(X, columns=levels))


def test_an_empty_name_elsewhere_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,,b\n1,2,3\n")
    with pytest.raises(DataError, match="label 1 is missing"):
        read_matrix(tmp_path / "x.csv")
