"""Table: columns, rows, equality, printing and conversion."""

from __future__ import annotations

import csv
import pickle
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import efemb
from efemb.errors import DataError, InputTypeError, MissingExtraError, ParameterError
from efemb.table import Table

FOUND = Table({"label": ["milk", "bread"], "similarity": [0.91234, 0.5], "count": [1200.0, 3.0]})


def test_columns_rows_and_slices() -> None:
    assert FOUND.columns == ["label", "similarity", "count"]
    assert len(FOUND) == 2
    assert FOUND["label"].tolist() == ["milk", "bread"]
    assert list(FOUND)[1] == {"label": "bread", "similarity": 0.5, "count": 3.0}
    assert FOUND[-1] == list(FOUND)[-1]
    assert FOUND[:1] == Table({"label": ["milk"], "similarity": [0.91234], "count": [1200.0]})


def test_prints_aligned_with_few_digits() -> None:
    assert repr(FOUND).splitlines() == [
        "label  similarity  count",
        "milk       0.9123  1,200",
        "bread      0.5000      3",
    ]


def test_wide_signs_take_two_columns_and_accents_none() -> None:
    lines = repr(Table({"label": ["日本茶", "cafe\u0301", "tea"], "n": [1, 2, 3]})).splitlines()
    assert lines == ["label   n", "日本茶  1", "cafe\u0301    2", "tea     3"]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([1e-9, 1.0], ["1e-09", "1"]),
        ([123.456, 1.5], ["123.5", "1.5"]),
        ([float("nan"), 0.25], ["", "0.2500"]),
        ([float("inf"), 0.5], ["inf", "0.5000"]),
        ([2.5e9 + 0.5, 1.0], ["2.5e+09", "1"]),
        ([0.0, 0.0], ["0", "0"]),
        ([1, 20000], ["1", "20,000"]),
        ([True, False], ["True", "False"]),
        (["a\nb", "x" * 100], ["a\\nb", "x" * 57 + "..."]),
    ],
)
def test_cells(values: list[object], shown: list[str]) -> None:
    lines = repr(Table({"v": values})).splitlines()[1:]
    assert [line.strip() for line in lines] == shown


def test_long_and_empty_tables_say_so() -> None:
    assert "... 60 more rows" in repr(Table({"v": list(range(100))}))
    empty = Table({"label": [], "similarity": np.empty(0)})
    assert len(empty) == 0
    assert list(empty) == []
    assert "(no rows)" in repr(empty)
    assert "(no rows)" in empty._repr_html_()


def test_html_is_escaped() -> None:
    html = Table({"<b>": ["<script>", "a & b"]})._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "a &amp; b" in html
    assert "&lt;b&gt;" in html


def test_equality() -> None:
    nan = float("nan")
    assert Table({"v": [1.0, nan]}) == Table({"v": [1.0, nan]})
    assert Table({"v": [1.0]}) != Table({"v": [2.0]})
    assert Table({"v": [1.0]}) != Table({"w": [1.0]})
    assert Table({"v": [1.0]}) != Table({"v": [1.0, 1.0]})
    assert Table({"v": ["a", 1]}) == Table({"v": ["a", 1]})
    assert Table({"v": [1.0]}) != [1.0]
    with pytest.raises(TypeError):
        hash(FOUND)


def test_immutable_and_picklable() -> None:
    values = np.array([1.0, 2.0])
    table = Table({"v": values})
    values[0] = 9.0
    assert table["v"][0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        table["v"][0] = 3.0
    with pytest.raises(AttributeError, match="immutable"):
        table.v = 1
    assert pickle.loads(pickle.dumps(table)) == table


def test_to_pandas_and_polars() -> None:
    mixed = Table({"label": ["a", 1], "v": [0.5, 1.5]})
    frame = mixed.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert frame.to_dict("list") == {"label": ["a", 1], "v": [0.5, 1.5]}
    frame.loc[0, "v"] = 7.0
    assert mixed["v"][0] == 0.5
    other = mixed.to_polars()
    assert isinstance(other, pl.DataFrame)
    assert other.to_dict(as_series=False) == {"label": ["a", "1"], "v": [0.5, 1.5]}


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_missing_package_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=f"pip install {name}"):
        getattr(FOUND, f"to_{name}")()


@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        ({}, InputTypeError, "at least one"),
        ([("a", [1])], InputTypeError, "mapping"),
        ({1: [1]}, InputTypeError, "name of a column"),
        ({"a": "text"}, InputTypeError, "sequence"),
        ({"a": 3}, InputTypeError, "sequence"),
        ({"a": [1], "b": [1, 2]}, DataError, "same length"),
        ({"a": np.ones((2, 2))}, DataError, "one-dimensional"),
    ],
)
def test_bad_columns(columns: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Table(columns)  # type: ignore[arg-type]


def test_unknown_column_names_the_nearest() -> None:
    with pytest.raises(DataError, match="did you mean 'label'"):
        FOUND["lable"]


def test_head_and_order() -> None:
    table = Table({"label": ["a", "b", "c", "d"], "n": [2.0, np.nan, 5.0, 2.0]}, note="counts")
    assert table.head(2)["label"].tolist() == ["a", "b"]
    assert table.sort_by("n")["label"].tolist() == ["a", "d", "c", "b"]
    assert table.sort_by("n", descending=True)["label"].tolist() == ["c", "a", "d", "b"]
    assert table.sort_by("label", descending=True)["label"].tolist() == ["d", "c", "b", "a"]
    assert table.head(3).note == table.sort_by("n").note == "counts"
    with pytest.raises(DataError, match="no column 'm'"):
        table.sort_by("m")
    with pytest.raises(ParameterError, match="n must be >= 0"):
        table.head(-1)


def test_csv_can_be_read_again(tmp_path: Path) -> None:
    cells = {"label": ["tea", 'a "b", c', "café\nné"], "n": [1, 2, 3], "x": [0.5, np.nan, 1e-300]}
    table = Table(cells)
    table.to_csv(tmp_path / "t.csv.gz")
    table.to_csv(tmp_path / "t.tsv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "t.csv.gz"), table.to_pandas())
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "t.tsv", sep="\t"), table.to_pandas())
    with pytest.raises(DataError, match="is a directory"):
        table.to_csv(tmp_path)


def test_csv_protects_labels_that_look_like_formulas(tmp_path: Path) -> None:
    """Numbers keep their signs; transactions that are read back have the labels of the table."""
    risky = ["=cmd()", "+1", "-1.5", "@x", "\ttab", "'=quoted", "'n Sync", "tea"]
    table = Table({"row": [f"={k}" for k in range(8)], "item": risky, "x": [-1.5] * 8})
    table.to_csv(tmp_path / "t.csv")
    table.to_csv(tmp_path / "t.csv.gz", formulas="keep")
    with (tmp_path / "t.csv").open(newline="") as stream:
        cells = list(csv.DictReader(stream))
    assert [row["item"] for row in cells] == [
        *("'=cmd()", "'+1", "'-1.5", "'@x", "'\ttab", "''=quoted", "'n Sync", "tea")
    ]
    assert {row["x"] for row in cells} == {"-1.5"}
    for name in ("t.csv", "t.csv.gz"):
        assert [*pd.read_csv(tmp_path / name)["x"]] == [-1.5] * 8
    for read in (tmp_path / "t.csv", pd.read_csv(tmp_path / "t.csv")):
        trips = efemb.data.read_baskets(
            read, basket="row", item="item", min_count=1, min_items_per_basket=1
        )
        assert sorted(trips.entities) == sorted(risky)
        assert sorted(trips.row_labels) == sorted(table["row"])
    with pytest.raises(DataError, match="6 labels look like formulas"):
        Table({"item": risky}).to_csv(tmp_path / "no.csv", formulas="error")
    with pytest.raises(ParameterError, match="quote"):
        table.to_csv(tmp_path / "no.csv", formulas="quota")


def test_a_note_is_one_line_below_the_table() -> None:
    table = Table({"n": [1]}, note="one\x1b[31m\nline")
    assert repr(table).splitlines() == ["n", "1", "one\\x1b[31m\\nline"]
    assert "<caption" in table._repr_html_()
    assert pickle.loads(pickle.dumps(table)).note == table.note
    assert table == Table({"n": [1]})
