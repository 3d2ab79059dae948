"""Bad input raises a typed error that names the place and the way out."""

from __future__ import annotations

import gzip
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import efemb
from efemb.data import read_baskets, read_suite2p
from efemb.data.readers import transactions as baskets_module
from efemb.data.readers.guess import guess_contents
from efemb.data.readers.transactions import table_sources
from efemb.errors import DataError, InputTypeError, MissingExtraError, ParameterError

COLUMNS = {"basket": "trip", "item": "what", "count": "n"}


@pytest.fixture(params=["with pyarrow", "without pyarrow"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "without pyarrow":
        hide_pyarrow(monkeypatch)
    return str(request.param)


def hide_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "pyarrow.csv", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)


def file(folder: Path, content: str | bytes, name: str = "lines.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


CSV_ERRORS = {
    "renamed column": ("trip,item,n\n1,a,1\n", r"no column 'what'; .*choices: trip, item, n"),
    "near column": ("trip,whatt,n\n1,a,1\n", r"no column 'what'; did you mean 'whatt'\?"),
    "double column": ("trip,what,n,n\n1,a,1,1\n", "2 columns named 'n'"),
    "ragged": ("trip,what,n\n1,a,1\n1,b\n2,c,1,5\n", r"not 3 fields in 2 lines \(3, 4\).*on_bad"),
    "ragged below quoted line ends": ('trip,what,n\n1,"a\n\nb",1\n1,b\n', "not 3 fields in line 5"),
    "blank with spaces": ("trip,what,n\n1,a,1\n  \n", "not 3 fields in line 3"),
    "empty cell": ("trip,what,n\n1,,1\n,a,1\n", "'trip' is missing in line 3; .*'what' .* line 2"),
    "negative": ("trip,what,n\n1,a,1\n1,b,-2\n", "'n' is not positive in line 3.*on_bad"),
    "zero": ("trip,what,n\n1,b,0\n", "'n' is not positive in line 2"),
    "no number": ("trip,what,n\n1,b,two\n", "'n' is missing or not a number in line 2"),
    "no thousands": ('trip,what,n\n1,b,"1,00"\n', "not a number in line 2"),
    "underscore": ("trip,what,n\n1,b,1_000\n", "not a number in line 2"),
    "empty count": ("trip,what,n\n1,b,\n", "not a number in line 2"),
    "nan": ("trip,what,n\n1,b,NaN\n", "not a number in line 2"),
    "infinite": ("trip,what,n\n1,b,inf\n2,b,-inf\n", r"infinite in 2 lines \(2, 3\)"),
    "1e30": ("trip,what,n\n1,b,1e30\n", r"'n' is above 2\*\*53.* in line 2"),
    "1e400": ("trip,what,n\n1,b,1e400\n", "infinite in line 2"),
    "sum too large": (f"trip,what,n\n1,b,{2**53}\n1,b,{2**53}\n", "add up to 1.801e[+]16"),
    "header only": ("trip,what,n\n", "a header but no lines below it"),
    "header only, no line end": ("trip,what,n", "a header but no lines below it"),
    "empty": ("", "is empty"),
    "blank": ("\n\n\n", "not even have a header"),
    "open quote": ('trip,what,n\n1,a,1\n1,b,"2\n1,c,1\n', "quote opened in line 3 or below"),
    "open quote early": ('trip,what,n\n1,"a,1\n1,b,2\n', "quote opened in line 2 or below"),
    "open quote in the header": ('trip,"what,n\n1,b,2\n', "quote opened in line 1 or below"),
    "encoding": ("trip,what,n\n1,a,1\n1,Käse,1\n".encode("cp1252"), "line 3 .* 0xe4 at byte 21 "),
    "encoding elsewhere": (
        "trip,what,n,z\n1,a,1,\r\n1,b,1,é\n".encode("cp1252"),
        "line 3 .* byte 0xe9",
    ),
    "utf-16": ("trip,what,n\n1,a,1\n".encode("utf-16"), 'encoding="utf-16"'),
    "packed": (gzip.compress(b"trip,what,n\n1,a,1\n"), r"is compressed; .* must end in \.gz"),
    "cut character": ("trip,what,n\n1,a,1\n1,Kä".encode()[:-1], "line 3 .* byte 0xc3"),
}


@pytest.mark.parametrize("name", CSV_ERRORS)
def test_csv(name: str, way: str, tmp_path: Path) -> None:
    content, message = CSV_ERRORS[name]
    with pytest.raises(DataError, match=f"(?s){message}") as caught:
        read_baskets(file(tmp_path, content), **COLUMNS)
    assert "lines.csv" in str(caught.value)


def test_a_separator_that_separates_nothing(tmp_path: Path) -> None:
    path = file(tmp_path, "trip;what;n\n1;a;1\n")
    with pytest.raises(DataError, match="Then pass separator=';'"):
        read_baskets(path, **COLUMNS, separator=",")


STRAY_QUOTES = {
    "closed by the next one": '1,"pizza 12,2\n2,beer,1\n3,"x",1\n',
    "closed at a cell's end": '1,"pizza 12,2\n2,beer,1\n3,pizza 12",1\n',
    "closed in the next line": '1,"pizza,2\n2,beer",1\n3,milk,1\n',
    "closed amid a cell in quotes": '1,"pizza 12,2\n2,beer,1\n3,"x, y",1\n',
    "behind one that is harmless": '1,12" "pizza,1\n1,"pizza 12,2\n2,beer,1\n3,"x",1\n',
}


@pytest.mark.parametrize("on_bad", ["error", "drop"])
@pytest.mark.parametrize("name", STRAY_QUOTES)
def test_a_stray_quote_merges_no_lines(name: str, on_bad: Any, way: str, tmp_path: Path) -> None:
    path = file(tmp_path, "trip,what,n\n" + STRAY_QUOTES[name])
    line = 3 if "behind" in name else 2
    with pytest.raises(DataError, match=f"a quote opened in line {line} spans .* is doubled"):
        read_baskets(path, **COLUMNS, on_bad=on_bad)


def test_quotes_within_a_line_and_labels_of_several_lines(way: str, tmp_path: Path) -> None:
    path = file(tmp_path, 'trip,what,n\n1,12" pizza,1\n1,"12"" pie",1\n1,"milk,\n1 l, fresh",2\n')
    found = read_baskets(path, **COLUMNS).entities
    assert list(found) == ['12" pie', '12" pizza', "milk,\n1 l, fresh"]


@pytest.mark.slow
def test_the_encoding_error_is_found_in_a_long_file(way: str, tmp_path: Path) -> None:
    head = b"trip,what,n\r\n" + b"1,milk and honey,1\r\n" * 200_000
    with pytest.raises(DataError, match=f"line 200002 .* byte 0xff at byte {len(head) + 2} "):
        read_baskets(file(tmp_path, head + b"1,\xff,1\n"), **COLUMNS)


@pytest.mark.slow
def test_how_many_are_told_and_the_first_five(way: str, tmp_path: Path) -> None:
    text = "trip,what,n\n" + "1,a,1\n" * 10 + "1,b,-1\n" * 20_000
    with pytest.raises(DataError, match=r"in 20,000 lines \(12, 13, 14, 15, 16, \.\.\.\)"):
        read_baskets(file(tmp_path, text), **COLUMNS)


def test_dropping_bad_lines(way: str, tmp_path: Path) -> None:
    text = "trip,what,n\n1,a,1\n1,b,-2\n1\n,c,x\n2,a,3\n"
    data = read_baskets(file(tmp_path, text), **COLUMNS, on_bad="drop")
    assert data.values.toarray().tolist() == [[1.0], [3.0]]
    assert data.report["lines"] == 5
    assert data.report["lines_dropped"] == 3
    assert data.report["bad"] == {
        "not 3 fields": 1,
        "column 'n' is missing or not a number": 1,
        "column 'n' is not positive": 1,
        "column 'trip' is missing": 1,
    }
    with pytest.raises(DataError, match="lines can be used: column 'n' is not positive in 1"):
        read_baskets(file(tmp_path, "trip,what,n\n1,b,-2\n"), **COLUMNS, on_bad="drop")


def test_columns_that_pandas_has_in_its_index() -> None:
    lines = pd.DataFrame({"trip": [1, 1, 2], "what": ["a", "b", "a"], "n": [1, 1, 1]})
    for index in (["trip"], ["trip", "what"]):
        with pytest.raises(DataError, match=r"'trip' in its index.*reset_index\(\)"):
            read_baskets(lines.set_index(index), **COLUMNS)
    assert read_baskets(lines.groupby(["trip", "what"]).sum().reset_index(), **COLUMNS).n_rows == 2


def test_what_databases_write_for_nothing_is_no_label(way: str, tmp_path: Path) -> None:
    marks = ["NULL", "nan", "NaN", "<NA>", "#N/A", ""]
    lines = [*(f"1,{mark},1" for mark in marks), *(f"{mark},a,1" for mark in marks), "2,NA,3"]
    path = file(tmp_path, "\n".join(["trip,what,n", *lines]) + "\n")
    with pytest.raises(DataError, match=r"column 'trip' is missing in 6 lines .8, 9.*'what'.*2, 3"):
        read_baskets(path, **COLUMNS)
    data = read_baskets(path, **COLUMNS, on_bad="drop")
    assert (list(data.entities), data.row_labels.tolist()) == (["NA"], ["2"])


def test_a_basket_of_two_users(way: str, tmp_path: Path) -> None:
    path = file(tmp_path, "trip,what,who\n1,a,x\n2,a,y\n1,b,y\n1,c,x\n")
    names = {"basket": "trip", "item": "what", "user": "who"}
    message = "'who' differs within a basket in line 4: basket '1' has 'x' and 'y'"
    with pytest.raises(DataError, match=message):
        read_baskets(path, **names)
    data = read_baskets(path, **names, on_bad="drop")
    assert list(data.users) == ["x", "y"]
    assert list(data.entities) == ["a", "c"]


def test_a_basket_of_two_weeks(way: str, tmp_path: Path) -> None:
    """The later lines are dropped; a missing week is no conflict."""
    lines = ["1,a,w1,s1", "2,a,w2,", "1,b,w2,s1", "1,c,,s1", "1,d,w1,s2", "1,e,w9,s9", "2,b,NULL,"]
    path = file(tmp_path, "\n".join(["trip,what,week,shop", *lines]) + "\n")
    names: dict[str, Any] = {"basket": "trip", "item": "what"}
    names["rows"] = {"week": "week", "store": "shop"}
    weeks = r"'week' differs within a basket in 2 lines \(4, 7\): basket '1' has 'w1' and 'w2'"
    stores = r"'shop' differs within a basket in line 6: basket '1' has 's1' and 's2'"
    for message in (weeks, stores):
        with pytest.raises(DataError, match=message):
            read_baskets(path, **names)
    data = read_baskets(path, **names, on_bad="drop")
    assert data.rows["week"].tolist() == ["w1", "w2"]
    assert data.rows["store"].tolist() == ["s1", None]
    assert list(data.entities) == ["a", "b", "c"]
    assert data.report["lines_dropped"] == 3


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rows": {"week": "Week"}}, DataError, "no column 'Week'.*did you mean 'week'"),
        ({"rows": ["week"]}, InputTypeError, "must map names to columns"),
        ({"rows": {"user": "week"}, "user": "what"}, ParameterError, "are the same column"),
    ],
)
def test_row_columns_that_are_refused(
    way: str, tmp_path: Path, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    path = file(tmp_path, "trip,what,week\n1,a,1\n")
    with pytest.raises(error, match=message):
        read_baskets(path, basket="trip", item="what", **options)


FRAMES: dict[str, Any] = {
    "pandas": pd.DataFrame,
    "polars": lambda columns: pl.DataFrame(columns, strict=False),
    "pyarrow": pa.table,
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize(
    ("count", "message"),
    [
        ([1.0, -3.5, 1.0], "'n' is not positive in row 1"),
        ([1.0, 1.0, math.nan], "missing or not a number in row 2"),
        ([1.0, math.inf, 1.0], "infinite in row 1"),
        ([1e30, 1.0, 1.0], r"above 2\*\*53.*row 0"),
        ([1, 2**60, 1], r"above 2\*\*53.*row 1"),
        ([1, None, 0], r"'n' is missing or not a number in row 1; .* not positive in row 2"),
        (["1", "x", "3"], "not a number in row 1"),
    ],
)
def test_counts_of_tables(kind: str, count: list[Any], message: str) -> None:
    table = FRAMES[kind]({"trip": [1, 1, 2], "what": ["a", "b", "c"], "n": count})
    with pytest.raises(DataError, match=message):
        read_baskets(table, **COLUMNS)


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (
            ["1", "10,00", "1.234"],
            r"in row 1: '10,00' has a decimal comma: write 10\.00 \(",
        ),
        (["1.234,5", "2", ""], r"in 2 rows \(0, 2\): '1\.234,5' .* write 1234\.5"),
        (["1", "1,234", "2"], r"in row 1: '1,234' has a comma: write 1234 or 1\.234 \(in pandas"),
        (["1", "1,234,567", "2"], "in row 1: .* has commas: write 1234567"),
        ([None, "two", "2"], r"in 2 rows \(0, 1\): 'two'\. Correct them"),
    ],
)
def test_text_in_a_column_of_counts(kind: str, cells: list[Any], words: str) -> None:
    """The error names the column, the first rows, and how to write the cell."""
    table = FRAMES[kind]({"trip": [1, 1, 2], "what": ["a", "b", "c"], "n": cells})
    with pytest.raises(DataError, match="column 'n' is missing or not a number " + words):
        read_baskets(table, **COLUMNS)


def test_text_in_a_wide_table() -> None:
    table = pd.DataFrame({"milk": [1.0, 2.0, 3.0], "beer": ["1", "10,00", "x"]})
    with pytest.raises(DataError, match=r"'beer'.*'10,00' has .* in row 1, 2; correct"):
        efemb.data.read_matrix(table)
    with pytest.raises(InputTypeError, match=r"column 'beer' has '10,00' .* in row 1"):
        efemb.Dataset(table)
    with pytest.raises(DataError, match=r"'beer' holds text.*'10,00' .* in row 1, 2; X"):
        efemb.PoissonEmbedding(2).fit(table)


@pytest.mark.parametrize("kind", FRAMES)
def test_labels_and_columns_of_tables(kind: str) -> None:
    make = FRAMES[kind]
    table = make({"trip": [1, None, 2], "what": ["a", "", None]})
    with pytest.raises(DataError, match=r"'trip' is missing in row 1; .* in 2 rows \(1, 2\)"):
        read_baskets(table, basket="trip", item="what")
    with pytest.raises(DataError, match="did you mean 'trip'"):
        read_baskets(table, basket="trips", item="what")
    with pytest.raises(InputTypeError, match="by its name"):
        read_baskets(table, basket=0, item="what")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no lines below it"):
        read_baskets(make({"trip": [], "what": []}), basket="trip", item="what")
    with pytest.raises(InputTypeError):
        read_baskets(make({"trip": [[1]], "what": ["a"]}), basket="trip", item="what")
    with pytest.raises(DataError, match=r"'what' is missing in 2 rows"):
        read_baskets(make({"trip": [1, 2], "what": [None, None]}), basket="trip", item="what")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    table = pa.table({"trip": [1], "what": pa.array([b"\xff"], pa.binary())})
    pa.parquet.write_table(table, tmp_path / "x.parquet")
    for source in (table, tmp_path / "x.parquet"):
        with pytest.raises(InputTypeError, match="column 'what' holds binary, not text"):
            read_baskets(source, basket="trip", item="what")


def test_other_sources() -> None:
    for wrong in (5, None, [1, 2], object()):
        with pytest.raises(InputTypeError, match="pandas, polars or pyarrow"):
            read_baskets(wrong, basket="a", item="b")
    twice = pd.DataFrame([[1, 2, 3]], columns=["a", "b", "b"])
    with pytest.raises(DataError, match="b"):
        read_baskets(twice, basket="a", item="b")


def test_paths(tmp_path: Path) -> None:
    file(tmp_path, "trip,what\n1,a\n", "trips.csv")
    with pytest.raises(DataError, match=r"no file .*trip\.csv; did you mean 'trips\.csv'"):
        read_baskets(tmp_path / "trip.csv", basket="trip", item="what")
    with pytest.raises(DataError, match="folder does not exist"):
        read_baskets(tmp_path / "nowhere" / "trip.csv", basket="trip", item="what")
    with pytest.raises(DataError, match="is a directory"):
        read_baskets(tmp_path, basket="trip", item="what")


def test_damaged_files(way: str, tmp_path: Path) -> None:
    packed = gzip.compress(b"trip,what,n\n" + np.random.default_rng(0).bytes(9999).hex().encode())
    with pytest.raises(DataError, match="cannot be read"):
        read_baskets(file(tmp_path, packed[:-500], "cut.csv.gz"), **COLUMNS)
    with pytest.raises(DataError, match="cannot be read"):
        read_baskets(file(tmp_path, b"no gzip at all", "not.csv.gz"), **COLUMNS)


def test_damaged_parquet(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"trip": rng.integers(0, 9999, 5000), "what": rng.integers(0, 99, 5000)})
    whole = tmp_path / "whole.parquet"
    frame.to_parquet(whole)
    content = whole.read_bytes()
    for name, damaged in {
        "cut": content[: len(content) // 2],
        "text": b"trip,what\n1,a\n",
        "scrambled": content[:4] + b"\xff" * 20_000 + content[20_004:],
    }.items():
        with pytest.raises(DataError, match="not a complete Parquet file"):
            read_baskets(file(tmp_path, damaged, f"{name}.parquet"), basket="trip", item="what")
    with pytest.raises(DataError, match="is empty"):
        read_baskets(file(tmp_path, b"", "none.parquet"), basket="trip", item="what")


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide_pyarrow(monkeypatch)
    with pytest.raises(MissingExtraError, match=r'pip install "efemb\[io\]"') as caught:
        read_baskets(file(tmp_path, "x", "a.parquet"), basket="trip", item="what")
    assert isinstance(caught.value, ImportError)
    path = file(tmp_path, "trip,what\n1,a\n")
    assert len(table_sources(path, None, "utf-8")) == 1
    assert read_baskets(path, basket="trip", item="what").shape == (1, 1)
    frame = pl.DataFrame({"trip": [1, 2], "what": ["a", None]})
    assert read_baskets(frame, basket="trip", item="what", on_bad="drop").shape == (1, 1)


def test_a_fresh_interpreter_without_pyarrow(tmp_path: Path) -> None:
    path = file(tmp_path, "trip,what\n1,a\n1,b\n")
    code = (
        "import sys; sys.modules['pyarrow'] = None; from efemb.data import read_baskets;"
        f"print(read_baskets({str(path)!r}, basket='trip', item='what').shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "(1, 2)"


@pytest.mark.parametrize(
    "options",
    [
        {"min_count": 0},
        {"min_count": 1.5},
        {"top_n": 0},
        {"min_items_per_basket": 0},
        {"min_items_per_basket": None},
        {"on_bad": "ignore"},
        {"separator": "ab"},
        {"separator": '"'},
        {"separator": "\x00"},
        {"encoding": "utf-9"},
    ],
)
def test_options(options: dict[str, Any], tmp_path: Path) -> None:
    path = file(tmp_path, "trip,what,n\n1,a,1\n")
    with pytest.raises(ParameterError, match=next(iter(options))):
        read_baskets(path, **COLUMNS, **options)


def test_columns_that_are_numbered() -> None:
    frame = pd.DataFrame([[1, "a"], [1, "b"]])
    with pytest.raises(DataError, match=r"no column 'trip'; choices: 0, 1"):
        read_baskets(frame, basket="trip", item="what")


def test_tables_that_are_still_on_disk(tmp_path: Path) -> None:
    from pyarrow import dataset

    pa.parquet.write_table(pa.table({"trip": [1], "what": ["a"]}), tmp_path / "x.parquet")
    lazy = dataset.dataset(tmp_path / "x.parquet")
    for source in (lazy, lazy.scanner()):
        assert read_baskets(source, basket="trip", item="what").shape == (1, 1)


def test_the_contents_of_a_file_in_place_of_its_name() -> None:
    with pytest.raises(DataError, match="there is no file 'trip,what"):
        read_baskets("trip,what\n" + "1,a\n" * 200, basket="trip", item="what")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes among files here")
def test_a_pipe_is_not_called_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.csv")
    with pytest.raises(DataError, match="is a pipe or a device"):
        read_baskets(tmp_path / "x.csv", basket="trip", item="what")


def test_labels_of_spaces_are_missing(tmp_path: Path, way: str) -> None:
    path = file(tmp_path, "trip,what\n   ,a\n   ,b\n1,c\n1,  \n")
    with pytest.raises(
        DataError, match=r"'trip' is missing in 2 lines .*'what' is missing in line 5"
    ):
        read_baskets(path, basket="trip", item="what")
    data = read_baskets(path, basket="trip", item="what", on_bad="drop")
    assert (list(data.entities), data.n_rows) == (["c"], 1)


def test_nothing_left_after_the_filters(tmp_path: Path) -> None:
    path = file(tmp_path, "trip,what,n\n1,a,1\n2,a,1\n")
    with pytest.raises(DataError, match="min_count=3 keeps 0 of 1 items, and none of the 2 b"):
        read_baskets(path, **COLUMNS, min_count=3)
    with pytest.raises(DataError, match="baskets has 2 of them"):
        read_baskets(path, **COLUMNS, min_items_per_basket=2)


def test_the_fast_reader_leaves_the_telling_to_the_plain_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baskets_module, "table_sources", lambda *args: table_sources(*args)[:1])
    path = file(tmp_path, "trip,what,n\n1,a,-1\n")
    with pytest.raises(AssertionError):
        read_baskets(path, **COLUMNS)


def test_a_missing_file_is_told_with_the_nearest_names_only(tmp_path: Path) -> None:
    for name in (*(f"a{number}.bin" for number in range(30)), "trips.csv"):
        (tmp_path / name).touch()
    (tmp_path / "trips").mkdir()
    with pytest.raises(DataError) as caught:
        read_baskets(tmp_path / "trips.cvs", basket="a", item="b")
    assert str(caught.value).endswith("trips.cvs; did you mean 'trips.csv'?")
    with pytest.raises(DataError, match="its folder does not exist"):
        read_baskets(tmp_path / "nowhere" / "trips.csv", basket="a", item="b")


def test_codecs_that_are_not_of_text_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a b\n")
    for read in (guess_contents, lambda f, **o: read_baskets(f, basket="a", item="b", **o)):
        with pytest.raises(ParameterError, match="base64"):
            read(tmp_path / "a.txt", encoding="base64")


def test_what_mysql_writes_for_no_label_is_no_basket(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("o,i\n1,x\n1,y\n\\N,x\n\\N,y\n\\N,z\n")
    found = read_baskets(tmp_path / "a.csv", basket="o", item="i", on_bad="drop")
    assert found.row_labels.tolist() == ["1"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_missing_byte_order_mark(encoding: str, way: str, tmp_path: Path) -> None:
    path = file(tmp_path, "trip,what,n\n1,a,1\n".encode(f"{encoding}-le"))
    for read in (guess_contents, lambda f, **o: read_baskets(f, **COLUMNS, **o)):
        with pytest.raises(DataError, match=rf"lines\.csv is not {encoding}: .*BOM"):
            read(path, encoding=encoding)


def test_a_home_that_nobody_has() -> None:
    with pytest.raises(DataError, match="there is no file ~no-such-user-here"):
        read_baskets("~no-such-user-here/trips.csv", basket="a", item="b")
    with pytest.raises(DataError, match="~no-such-user-here"):
        read_suite2p("~no-such-user-here/suite2p")
