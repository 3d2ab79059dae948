"""Tables written by spreadsheets of other countries: separators and decimal commas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from efemb.data import read_baskets, read_matrix
from efemb.data.readers import transactions as baskets_module
from efemb.data.readers.guess import guess_contents
from efemb.data.readers.transactions import table_sources
from efemb.errors import DataError

COLUMNS = {"basket": "trip", "item": "what", "count": "n"}
X = np.array([[1.5, -0.25, 1234.5], [3.0, np.nan, 1e-07]])


@pytest.fixture(params=["fast", "plain"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "plain":
        monkeypatch.setattr(
            baskets_module, "table_sources", lambda *args: table_sources(*args)[-1:]
        )
    return str(request.param)


def file(folder: Path, text: str, name: str = "x.csv") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.tab"])
def test_any_separator_in_any_file(separator: str, name: str, way: str, tmp_path: Path) -> None:
    lines = pd.DataFrame({"trip": [1, 1, 2], "what": ["a, b", "c;d", "e|f"], "n": [2, 3, 4]})
    path = tmp_path / name
    lines.to_csv(path, sep=separator, index=False)
    data = read_baskets(path, **COLUMNS)
    assert data.values.toarray().tolist() == [[2, 3, 0], [0, 0, 4]]
    assert list(data.entities) == ["a, b", "c;d", "e|f"]
    assert guess_contents(path, item="what", basket="trip", count="n").kind == "baskets"
    pd.DataFrame(X).to_csv(path, sep=separator, index=False)
    np.testing.assert_array_equal(read_matrix(path).values, X)


def test_spaces_around_the_names_of_columns(way: str, tmp_path: Path) -> None:
    data = read_baskets(file(tmp_path, " trip , what ,n \n1,milk,2\n"), **COLUMNS)
    assert (list(data.entities), data.values.toarray().tolist()) == (["milk"], [[2.0]])


def test_one_column_and_ragged_lines(tmp_path: Path) -> None:
    assert read_matrix(file(tmp_path, "a\n1\n2\n")).shape == (2, 1)
    with pytest.raises(DataError, match="not 2 fields in line 3"):
        read_matrix(file(tmp_path, "a;b\n1;2\n3\n"))


def test_the_line_in_which_excel_tells_the_separator(way: str, tmp_path: Path) -> None:
    path = file(tmp_path, "sep=;\ntrip;what;n\n1;a;2\n1;b;-3\n")
    with pytest.raises(DataError, match="'n' is not positive in line 4"):
        read_baskets(path, **COLUMNS)
    data = read_baskets(path, **COLUMNS, on_bad="drop")
    assert data.values.toarray().tolist() == [[2]]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_decimal_commas(separator: str, way: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    pd.DataFrame(X, columns=list("abc")).to_csv(path, sep=separator, decimal=",", index=False)
    np.testing.assert_array_equal(read_matrix(path).values, X)
    assert guess_contents(path).kind == "matrix"
    lines = pd.DataFrame({"trip": [1, 1], "what": ["1,5", "2.5"], "n": [0.5, 1.125]})
    lines.to_csv(path, sep=separator, decimal=",", index=False)
    data = read_baskets(path, **COLUMNS)
    assert data.values.toarray().tolist() == [[0.5, 1.125]]
    assert list(data.entities) == ["1,5", "2.5"]
    assert guess_contents(file(tmp_path, "trip;item;units\n1;a;1,5\n")).count == "units"


def test_points_between_thousands(tmp_path: Path) -> None:
    path = file(tmp_path, "a;b\n1.234,5;-1.234.567,25\n7;,5\n")
    assert read_matrix(path).values.tolist() == [[1234.5, -1234567.25], [7.0, 0.5]]


@pytest.mark.parametrize("text", ["a;b\n1,234;2\n", "a;b\n1,5;1.234\n", "a;b\n1,5;1.5\n"])
def test_what_may_be_decimals_or_thousands_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a number, in line 2"):
        read_matrix(file(tmp_path, text))


def test_doubtful_counts_are_refused(way: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'n' is missing or not a number in line 2"):
        read_baskets(file(tmp_path, "trip;what;n\n1;a;1,234\n"), **COLUMNS)


@pytest.mark.parametrize("separator", [" ", "t", "e", "n"])
def test_a_separator_that_words_hold(separator: str, way: str, tmp_path: Path) -> None:
    """The mark at the end of the file must not be split."""
    path = file(tmp_path, "A B C\n1 2 3\n4 5 6\n".replace(" ", separator))
    assert read_matrix(path, separator=separator).values.tolist() == [[1, 2, 3], [4, 5, 6]]
    path = file(tmp_path, "A B\n1 X\n1 Y\n2 X\n".replace(" ", separator))
    data = read_baskets(path, basket="A", item="B", separator=separator)
    assert data.values.toarray().tolist() == [[1, 1], [1, 0]]


def test_a_separator_of_other_letters(way: str, tmp_path: Path) -> None:
    path = file(tmp_path, "trip§what§n\n1§a, b§2\n")
    data = read_baskets(path, **COLUMNS, separator="§")
    assert (list(data.entities), data.values.toarray().tolist()) == (["a, b"], [[2.0]])
