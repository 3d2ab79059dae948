"""`read_matrix` gives back what numpy, scipy and pandas wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from efemb.data import read_matrix, read_traces
from efemb.errors import DataError, InputTypeError, ParameterError

X = np.array([[1.5, 0.0, np.nan], [-2.0, 3.25, 4.0]])
FRAME = pd.DataFrame(X, columns=["a", "b, c", "ü"])


def test_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    data = read_matrix(tmp_path / "x.npy", entities=["p", "q", "r"], row_labels=[7, 8])
    np.testing.assert_array_equal(data.values, X)
    assert data.values.dtype == np.float32
    assert data.row_labels.tolist() == [7, 8]
    np.testing.assert_array_equal(read_matrix(X).values, X)
    np.savez(tmp_path / "one.npz", X)
    np.testing.assert_array_equal(read_matrix(str(tmp_path / "one.npz")).values, X)
    np.savez(tmp_path / "two.npz", counts=X, other=X + 1)
    np.testing.assert_array_equal(read_matrix(tmp_path / "two.npz", key="other").values, X + 1)
    with pytest.raises(DataError, match=r"select one with key=.*: counts, other"):
        read_matrix(tmp_path / "two.npz")
    with pytest.raises(DataError, match="did you mean 'counts'"):
        read_matrix(tmp_path / "two.npz", key="count")
    with pytest.raises(ParameterError, match="key="):
        read_matrix(tmp_path / "x.npy", key="count")
    with pytest.raises(InputTypeError, match="arrays have none"):
        read_matrix(X, row_labels="name")


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array, sparse.coo_array])
def test_sparse(make: Any, tmp_path: Path) -> None:
    matrix = make(np.array([[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]]))
    sparse.save_npz(tmp_path / "x.npz", matrix)
    for data in (read_matrix(tmp_path / "x.npz"), read_matrix(matrix)):
        assert data.is_sparse
        np.testing.assert_array_equal(data.values.toarray(), matrix.toarray())


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "pandas", "polars", "pyarrow"])
def test_tables(kind: str, tmp_path: Path) -> None:
    frame = FRAME.assign(block=["s", "t"])
    frame.insert(1, "day", ["mon", "tue"])
    source: Any = tmp_path / f"x.{kind}"
    if kind in ("csv", "tsv"):
        frame.to_csv(source, index=False, sep="," if kind == "csv" else "\t")
    elif kind == "parquet":
        frame.to_parquet(source)
    else:
        make = {"pandas": lambda f: f, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}
        source = make[kind](frame)
    data = read_matrix(source, row_labels="day", recordings="block", positions=[0, 1, 2])
    np.testing.assert_array_equal(data.values, X)
    assert list(data.entities) == ["a", "b, c", "ü"]
    assert list(data.row_labels) == ["mon", "tue"]
    assert data.recordings.tolist() == [0, 1]
    with pytest.raises(DataError, match=r"'day'.*row_labels="):
        read_matrix(source)
    with pytest.raises(DataError, match="did you mean 'day'"):
        read_matrix(source, row_labels="dayy")
    with pytest.raises(ParameterError, match="key="):
        read_matrix(source, key="x")


def test_kinds_of_numbers_in_tables() -> None:
    from decimal import Decimal

    flags = [True, False, None]
    amounts = [Decimal("1.5"), Decimal("0.25"), None]
    expected = np.array([[1.0, 1.5, 3.0], [0.0, 0.25, np.nan], [np.nan, np.nan, 4.0]])
    counts = [3, None, 4]
    columns = {"a": flags, "b": amounts, "c": counts}
    arrow = pa.table(columns)
    nullable = pd.DataFrame(
        {"a": pd.array(flags, "boolean"), "b": [1.5, 0.25, None], "c": pd.array(counts, "Int32")}
    )
    of_arrow = arrow.to_pandas(types_mapper=pd.ArrowDtype)
    for table in (arrow, of_arrow, pl.DataFrame(columns), nullable):
        np.testing.assert_array_equal(read_matrix(table).values, expected)
    frame = pd.DataFrame({"a": [True, False], "b": [1, 2]})
    assert read_matrix(frame).values.tolist() == [[1.0, 1.0], [0.0, 2.0]]


@pytest.mark.parametrize("name", ["p.npy", "p.csv", "header.csv", "p.tsv", "p.parquet"])
def test_positions_from_files(name: str, tmp_path: Path) -> None:
    places = np.array([[0.0, 1.0], [2.0, 3.5], [4.0, 5.0]])
    path = tmp_path / name
    if name == "p.npy":
        np.save(path, places)
    elif name == "p.parquet":
        pd.DataFrame(places, columns=["x", "y"]).to_parquet(path)
    else:
        separator = "\t" if name.endswith("tsv") else ","
        header = "x,y" if name == "header.csv" else ""
        np.savetxt(path, places, delimiter=separator, header=header, comments="")
        path.write_text(path.read_text().lstrip())
    data = read_matrix(X, positions=path)
    np.testing.assert_array_equal(data.positions, places)
    with pytest.raises(DataError, match="positions has 3 rows, but there are 2 entities"):
        read_matrix(X[:, :2], positions=path)


@pytest.mark.parametrize("cells", [[7, 8, 9], ["a", "b", "c"]])
@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_names_of_cells_are_no_coordinates(cells: list[Any], name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"cell": cells, "x": [0.0, 2.0, 4.0], "y": [1.0, 3.5, 5.0]})
    path = tmp_path / name
    frame.to_parquet(path) if name == "p.parquet" else frame.to_csv(path, index=False)
    data = read_matrix(X, positions=path)
    np.testing.assert_array_equal(data.positions, frame[["x", "y"]])
    moved = pd.DataFrame(X, columns=[str(cells[i]) for i in (2, 0, 1)])
    named = read_matrix(moved, positions=path)
    np.testing.assert_array_equal(named.positions, frame[["x", "y"]].to_numpy()[[2, 0, 1]])
    others = read_matrix(pd.DataFrame(X, columns=list("pqr")), positions=path)
    np.testing.assert_array_equal(others.positions, frame[["x", "y"]])


FIRST_LINES = {
    "nan": "nan,1.5,2",
    "NA": "NA,7,NA",
    "blank": ",1.5,2",
    "blank before whole numbers": ",3,5",
    "blank within": "3,,5",
    "blanks": ",,",
    "decimals": "2.5,1.5,3",
    "negative": "-1,3,2",
    "twice": "1,1,0",
}


@pytest.mark.parametrize("name", FIRST_LINES)
def test_a_first_line_of_data_is_no_header(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"{FIRST_LINES[name]}\n9,5,6\n1,7,8.5\n")
    expected = np.genfromtxt(path, delimiter=",")
    for data in (read_matrix(path), read_traces(path, np.eye(3), neurons_first=False)):
        np.testing.assert_array_equal(data.values, expected)
    assert read_matrix(path).entities is None
    if not np.isnan(expected).any():
        np.testing.assert_array_equal(read_matrix(X, positions=path).positions, expected)


@pytest.mark.parametrize("header", ["4,17,3", "0.5,1.5,2.5", ",0,1", "a,1,2"])
def test_numbers_that_are_labels(header: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"{header}\n0,5,6\n1,7,8.5\n")
    data = read_matrix(path)
    assert list(data.entities) == header.lstrip(",").split(",")
    assert data.n_rows == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n3\n", "not 2 fields in line 3. Correct"),
        ("a,b\n1,2\n3,x\n", "column 'b' holds .x., which is not a number, in line 3"),
        ("a,b\n", "no rows"),
        ("a,a\n1,2\n", "'a' occurs more than once"),
        ("a,b\n1,inf\n", "infinite entries, the first in row 0, entity 1"),
        ("", "is empty"),
    ],
)
def test_bad_text(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        read_matrix(path)


def test_bad_files(tmp_path: Path) -> None:
    np.save(tmp_path / "whole.npy", np.ones((50, 50)))
    content = (tmp_path / "whole.npy").read_bytes()
    for name, wrong in {
        "cut.npy": content[:500],
        "text.npy": b"1,2,3\n",
        "text.npz": b"PK\x03\x04nonsense",
        "npy.npz": content[:90],
    }.items():
        (tmp_path / name).write_bytes(wrong)
        with pytest.raises(DataError, match="cannot be read"):
            read_matrix(tmp_path / name)
    with pytest.raises(DataError, match="no file"):
        read_matrix(tmp_path / "nothing.npy")
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(DataError, match="not a complete Parquet"):
        read_matrix(tmp_path / "x.parquet")
    with pytest.raises(InputTypeError):
        read_matrix(5)


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[object()]], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="cannot be read"):
        read_matrix(tmp_path / "x.npy")
    np.savez(tmp_path / "x.npz", np.array([[{}]], dtype=object))
    with pytest.raises(DataError, match="cannot be read"):
        read_matrix(tmp_path / "x.npz")


def test_a_row_without_recording(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("rec,a,b\ns1,1,2\n,3,4\ns2,5,6\n")
    with pytest.raises(DataError, match=r"recordings is missing \(''\) in row 1"):
        read_matrix(path, recordings="rec")


def test_sparse_files_whose_columns_count_from_one(tmp_path: Path) -> None:
    parts = (np.ones(2), np.array([1, 3]), np.array([0, 1, 2]))
    sparse.save_npz(tmp_path / "x.npz", sparse.csr_array(parts, shape=(2, 3)))
    with pytest.raises(DataError, match="row 1 has an entry in column 3"):
        read_matrix(tmp_path / "x.npz")
