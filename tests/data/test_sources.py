"""Where transactions may come from: lists, lines, several files, streams, archives."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import efemb
from efemb import read_baskets
from efemb.data.readers.guess import guess_contents, sniff
from efemb.errors import DataError, InputTypeError, ParameterError

LINES = pd.DataFrame(
    {"trip": [1, 1, 2, 3, 3], "what": ["a", "b", "a", "b", "c"], "n": [2, 1, 1, 4, 1]}
)
COLUMNS = {"basket": "trip", "item": "what", "count": "n"}
EXPECTED = [[2, 1, 0], [1, 0, 0], [0, 4, 1]]


class Stream:
    """Only the protocol of Arrow's C streams, as a query of DuckDB."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


TABLES: dict[str, Callable[[], Any]] = {
    "lazy polars": lambda: pl.from_pandas(LINES).lazy(),
    "reader": lambda: pa.Table.from_pandas(LINES).to_reader(),
    "stream": lambda: Stream(pa.Table.from_pandas(LINES)),
    "iterator": lambda: (LINES[start : start + 2] for start in (0, 2, 4)),
    "record batches": lambda: iter(pa.Table.from_pandas(LINES).to_batches(max_chunksize=2)),
    "iterator of lazy ones": lambda: iter([pl.from_pandas(LINES).lazy()]),
    "list of frames": lambda: [LINES[:3], pl.from_pandas(LINES[3:])],
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_every_kind(name: str) -> None:
    data = read_baskets(TABLES[name](), **COLUMNS)
    assert data.values.toarray().tolist() == EXPECTED


@pytest.mark.parametrize("name", TABLES)
def test_columns_that_a_table_lacks(name: str) -> None:
    with pytest.raises(DataError, match="no column 'whta'; did you mean 'what'"):
        read_baskets(TABLES[name](), basket="trip", item="whta")


def test_a_stream_as_a_matrix() -> None:
    table = Stream(pa.table({"a": [1.0, 2.0], "b": [3.0, None]}))
    np.testing.assert_array_equal(efemb.read_matrix(table).values, [[1, 3], [2, np.nan]])


def test_a_lazy_table_that_fails(tmp_path: Path) -> None:
    broken = pl.from_pandas(LINES).lazy().with_columns(pl.col("what").cast(pl.Int64))
    with pytest.raises(DataError, match="lazy table cannot be collected"):
        read_baskets(broken, **COLUMNS)


def test_a_stream_whose_program_fails() -> None:
    class Failing:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            raise RuntimeError("connection closed")

    for call in (lambda: read_baskets(Failing(), **COLUMNS), lambda: efemb.Dataset(Failing())):
        with pytest.raises(DataError, match="the table cannot be read: connection closed"):
            call()


def write_parts(folder: Path) -> list[Path]:
    paths = [folder / "part-1.csv", folder / "part-2.csv.gz"]
    LINES[:3].to_csv(paths[0], index=False)
    with gzip.open(paths[1], "wt") as file:  # another order of columns, another separator
        LINES[3:][["n", "what", "trip"]].to_csv(file, index=False, sep=";")
    return paths


def test_several_files(tmp_path: Path) -> None:
    paths = write_parts(tmp_path)
    for source in (paths, [str(path) for path in paths], str(tmp_path / "part-*"), tuple(paths)):
        data = read_baskets(source, **COLUMNS)
        assert data.values.toarray().tolist() == EXPECTED
    assert data.report["lines"] == 5


def test_bad_lines_of_several_files_are_named(tmp_path: Path) -> None:
    write_parts(tmp_path)
    (tmp_path / "part-3.csv").write_text("trip,what,n\n7,a,-1\n")
    with pytest.raises(DataError, match=r"not positive in line 2 of .*part-3\.csv"):
        read_baskets(str(tmp_path / "part-*"), **COLUMNS)
    (tmp_path / "part-0.csv").write_text("trip,what,n\n7,a,-1\n7,b,1\n7,c,-1\n")
    with pytest.raises(
        DataError, match=r"in 3 lines \(2, 4 of \S*part-0\.csv, 2 of \S*part-3\.csv\)"
    ):
        read_baskets(str(tmp_path / "part-*"), **COLUMNS)
    (tmp_path / "part-4.csv").write_text("trip,item\n7,a\n")
    with pytest.raises(DataError, match=r"part-4\.csv has no column 'what'"):
        read_baskets(str(tmp_path / "part-*"), **COLUMNS)


def test_a_folder_of_parquet(tmp_path: Path) -> None:
    (tmp_path / "year=2020").mkdir()
    LINES[:3].to_parquet(tmp_path / "a.parquet")
    LINES[3:].to_parquet(tmp_path / "year=2020" / "b.parquet")
    (tmp_path / "_SUCCESS").touch()
    assert read_baskets(tmp_path, **COLUMNS).values.toarray().tolist() == EXPECTED
    assert guess_contents(tmp_path, item="what").basket == "trip"
    with pytest.raises(DataError, match="no file matches"):
        read_baskets(str(tmp_path / "*.csv"), **COLUMNS)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="is a directory without Parquet files"):
        read_baskets(tmp_path / "empty", **COLUMNS)
    for name in ("a.1.csv.gz", "b.2.csv.gz", "README.txt"):
        (tmp_path / "empty" / name).touch()
    with pytest.raises(DataError, match=r"such as '.*empty/\*\.csv\.gz'"):
        read_baskets(tmp_path / "empty", **COLUMNS)


def test_an_archive_of_one_file(tmp_path: Path) -> None:
    LINES.to_csv(tmp_path / "t.csv", index=False)
    path = tmp_path / "lines.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(tmp_path / "t.csv", "folder/t.csv")
        archive.writestr("__MACOSX/folder/._t.csv", b"\0")
    assert read_baskets(path, **COLUMNS).values.toarray().tolist() == EXPECTED
    assert guess_contents(path, item="what").basket == "trip"
    content = bytearray(path.read_bytes())
    content[60] ^= 255
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"lines\.zip"):
        read_baskets(path, **COLUMNS)
    path.write_bytes(b"PK\x03\x04 and nothing else")
    with pytest.raises(DataError, match="cannot be read"):
        read_baskets(path, **COLUMNS)
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(tmp_path / "t.csv", "a.csv")
        archive.write(tmp_path / "t.csv", "b.csv")
    with pytest.raises(DataError, match=r"holds 2 files, not one.*a\.csv, b\.csv"):
        read_baskets(path, **COLUMNS)


def test_lists_of_items() -> None:
    baskets: Any = [["milk", "bread"], ("beer", "beer"), {"milk"}, np.array(["tea"]), []]
    data = read_baskets(baskets)
    assert list(data.entities or ()) == ["beer", "bread", "milk", "tea"]
    assert data.values.toarray().tolist() == [
        [0, 1, 1, 0],
        [2, 0, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
    ]
    assert data.row_labels is not None
    assert data.row_labels.tolist() == [0, 1, 2, 3]
    again = read_baskets(iter(baskets), min_count=2, min_items_per_basket=1)
    assert list(again.entities or ()) == ["milk"]


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        ([], {}, DataError, "no baskets"),
        ([["a"], 5], {}, InputTypeError, "basket 1 is int, not a list"),
        ([["a"], {"a": 2}], {}, InputTypeError, "column of counts"),
        ([["a"]], {"basket": "b"}, ParameterError, "has no columns"),
        ([["a", None]], {}, DataError, "'item' is missing in basket 0"),
        ([[object()]], {}, InputTypeError, "a label must be text"),
        (LINES, {}, ParameterError, "basket= and item= name the columns"),
        (LINES, {"layout": "lines"}, InputTypeError, "reads a text file, or lists of items"),
        (LINES, {**COLUMNS, "layout": "rows"}, ParameterError, "layout='rows' is unknown"),
        (LINES, {**COLUMNS, "returns": "drop"}, ParameterError, "returns='drop' is unknown"),
        (LINES, {**COLUMNS, "header": ["a"]}, ParameterError, "header= names the columns"),
        (LINES, {**COLUMNS, "basket": []}, InputTypeError, "by its name"),
        (LINES, {**COLUMNS, "basket": ["trip", 5]}, InputTypeError, "by its name"),
        (LINES, {**COLUMNS, "basket": ["trip", "what"]}, ParameterError, "only one of"),
    ],
)
def test_bad_sources(
    source: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_baskets(source, **options)


def test_two_columns_identify_a_basket(tmp_path: Path) -> None:
    lines = pd.DataFrame(
        {
            "customer": [7, 7, 7, 8, 8, None],
            "day": ["mo", "mo", "tu", "mo", "mo", "mo"],
            "what": ["a", "b", "a", "a", "a", "b"],
        }
    )
    lines.to_csv(tmp_path / "x.csv", index=False)
    for source in (lines, pl.from_pandas(lines), tmp_path / "x.csv"):
        with pytest.raises(DataError, match="column 'customer' is missing in"):
            read_baskets(source, basket=["customer", "day"], item="what")
        data = read_baskets(source, basket=["customer", "day"], item="what", on_bad="drop")
        assert data.values.toarray().tolist() == [[1, 1], [1, 0], [2, 0]]
        assert data.rows["day"].tolist() == ["mo", "tu", "mo"]
        assert [str(value)[0] for value in data.rows["customer"]] == ["7", "7", "8"]
        assert data.row_labels is not None
        assert data.row_labels[1].endswith(" tu")


def test_equal_texts_of_different_keys_stay_apart() -> None:
    lines = pd.DataFrame({"p": ["a b", "a"], "q": ["c", "b c"], "what": ["x", "y"]})
    data = read_baskets(lines, basket=["p", "q"], item="what")
    assert data.values.toarray().tolist() in ([[1, 0], [0, 1]], [[0, 1], [1, 0]])


def test_returns_are_netted_on_request() -> None:
    lines = pd.DataFrame({"trip": [1, 1, 1, 2], "what": list("aaba"), "n": [3, -1, 2, -2]})
    with pytest.raises(DataError, match="not positive in 2 rows"):
        read_baskets(lines, **COLUMNS)
    data = read_baskets(lines, **COLUMNS, returns="net")
    assert data.values.toarray().tolist() == [[2, 2]]
    assert data.report["returned"] == 1
    zero = pd.DataFrame({"trip": [1], "what": ["a"], "n": [0]})
    with pytest.raises(DataError, match="not positive"):
        read_baskets(zero, **COLUMNS, returns="net")
    with pytest.raises(DataError, match="nothing is left after returns"):
        read_baskets(lines[1:2], **COLUMNS, returns="net")


def test_a_table_without_header(tmp_path: Path) -> None:
    path = tmp_path / "u.data"
    path.write_text("1\ta\t2\n1\tb\t1\n2\ta\t1\n3\tb\t4\n3\tc\t1\n")
    names = ["trip", "what", "n"]
    assert read_baskets(path, **COLUMNS, header=names).values.toarray().tolist() == EXPECTED
    with pytest.raises(DataError, match=r"no line has 2 fields.*header=\['trip', 'what'\]"):
        read_baskets(path, basket="trip", item="what", header=["trip", "what"])
    with pytest.raises(InputTypeError, match="list of the names"):
        read_baskets(path, **COLUMNS, header=[1, 2])  # type: ignore[list-item]


def random_baskets(names: list[str], separator: str, n: int = 60) -> str:
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 6, n)
    baskets = [rng.choice(names, size, replace=False) for size in sizes]
    return "\n".join(separator.join(basket) for basket in baskets) + "\n"


NUMBERS = [str(n) for n in range(30)]
GOODS = ["whole milk", "rolls", "soda", "citrus fruit", "beer", "tea", "yogurt"]


@pytest.mark.parametrize("name", ["retail.dat", "retail.txt", "retail", "retail.csv"])
def test_a_basket_per_line_is_recognized(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    for names, separator in ((NUMBERS, " "), (GOODS, ","), (GOODS, ";"), (NUMBERS, ",")):
        path.write_text(random_baskets(names, separator))
        guess = guess_contents(path)
        assert (guess.kind, guess.lines, guess.separator) == ("baskets", True, separator)
        data = read_baskets(path, layout="lines")
        lines = path.read_text().splitlines()
        assert data.values.sum() == sum(line.count(separator) + 1 for line in lines)
        assert set(data.entities or ()) <= set(names)


def test_lines_with_quotes_blanks_and_gaps(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text('milk,"bread, white" ,\n\n,tea, milk\n')
    data = read_baskets(path, layout="lines")
    assert list(data.entities or ()) == ["bread, white", "milk", "tea"]
    assert data.row_labels is not None
    assert data.row_labels.tolist() == [1, 3]
    spaced = read_baskets(path, layout="lines", separator=" ")
    assert "milk" in (spaced.entities or ())
    for separator in ("", '"', "ab"):
        with pytest.raises(ParameterError, match="separator"):
            read_baskets(path, layout="lines", separator=separator)


PROSE = [
    "It was the best of times, it was the worst of times,",
    "it was the age of wisdom, it was the age of foolishness, it was",
    "the epoch of belief",
    "in short, the period was so far like the present period, that some",
]


def test_prose_is_text() -> None:
    assert sniff(PROSE).kind == "prose"
    assert sniff([line.replace(",", "") for line in PROSE]).kind == "prose"
    assert sniff(["to be", "or not to be"]).kind == "prose"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("196\t242\t3\n186\t302\t3\n22\t377\t1\n", "3 columns of numbers, separated by tabs"),
        ("196 242 3\n186 302 3\n22 377 1\n", "3 columns of whole numbers, without a header"),
        ("5 5 2\n1 2\n9 1 1 1\n", "whole numbers, some of which are repeated"),
        ("ham\tGo until jurong\nham\tOk lar\nspam\tFree entry\n", "looks like a table"),
        ("a,b\nc\nd,e,f\ng,h\n", "cells separated by ','"),
    ],
)
@pytest.mark.parametrize("name", ["users.dat.gz", "users.txt"])
def test_what_may_be_several_things_is_asked(
    name: str, text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    with pytest.raises(DataError, match=message) as caught:
        guess_contents(path)
    assert "--layout" in str(caught.value)
    assert guess_contents(path, layout="text").kind == "text"
    assert guess_contents(path, layout="lines").lines
    with pytest.raises(ParameterError, match="layout='bags' is unknown"):
        guess_contents(path, layout="bags")


def test_a_table_in_a_text_file_is_read_as_one(tmp_path: Path) -> None:
    path = tmp_path / "orders.dat"
    for separator in "\t;|,":
        path.write_text("\n".join(separator.join(row) for row in _orders()))
        guess = guess_contents(path)
        assert (guess.basket, guess.item, guess.count) == ("order", "product", "quantity")


def _orders() -> Iterator[list[str]]:
    yield ["order", "product", "quantity"]
    for number in range(20):
        yield [str(number // 3), f"p{number % 7}", "2"]


def test_a_folder_of_suite2p_is_known(tmp_path: Path) -> None:
    (tmp_path / "suite2p" / "plane0").mkdir(parents=True)
    np.save(tmp_path / "suite2p" / "plane0" / "F.npy", np.ones((2, 3)))
    assert guess_contents(tmp_path / "suite2p").kind == "recording"
    assert guess_contents(tmp_path / "suite2p" / "plane0").kind == "recording"


@pytest.mark.parametrize(
    ("name", "way_out"),
    [("a.h5ad", "anndata.read_h5ad"), ("a.nwb", "pynwb"), ("a.mat", "scipy.io.loadmat")],
)
def test_files_of_other_packages_are_named(name: str, way_out: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(DataError, match=way_out):
        guess_contents(tmp_path / name)


def test_counts_with_separators_of_thousands(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('trip,what,n\n1,a,"1,200"\n1,b,"1,234,567"\n2,a,3\n')
    assert read_baskets(path, **COLUMNS).values.toarray().tolist() == [[1200, 1234567], [3, 0]]
    path.write_text("trip;what;n\n1;a;1,200\n1;b;1,234.5\n2;a;3\n")
    assert read_baskets(path, **COLUMNS).values.toarray().tolist() == [[1200, 1234.5], [3, 0]]
    path.write_text("trip;what;n\n1;a;1,200\n2;a;3\n")  # 1.2 or 1200
    with pytest.raises(DataError, match="not a number in line 2"):
        read_baskets(path, **COLUMNS)
