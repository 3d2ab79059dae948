"""`read_baskets` equals pandas' groupby, whatever the source and whichever way it is read."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from efemb.data import Dataset, read_baskets
from efemb.data.readers import accumulators as sums_module
from efemb.data.readers import csv as text_module
from efemb.data.readers import transactions as baskets_module
from efemb.data.readers.transactions import table_sources
from efemb.errors import DataError

COLUMNS = {"basket": "trip", "item": "what", "count": "n"}


def transactions(n_lines: int = 3000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    trip = rng.integers(0, 300, n_lines)
    return pd.DataFrame(
        {
            "n": rng.integers(1, 5, n_lines),
            "trip": trip,
            "household": trip // 7,
            "what": [f"item {i}" for i in np.minimum(rng.geometric(0.03, n_lines), 150)],
        }
    )


def written(lines: pd.DataFrame, kind: str, folder: Path) -> Any:
    if kind in ("pandas", "polars", "pyarrow"):
        make = {"pandas": lambda f: f, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}
        return make[kind](lines)
    path = folder / f"lines.{kind}"
    if kind == "parquet":
        lines.to_parquet(path, index=False)
        return path
    text = lines.to_csv(index=False, sep="\t" if "tsv" in kind else ",").encode()
    pack = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
    path.write_bytes(pack.get(kind.rpartition(".")[2], bytes)(text))
    return str(path)


def as_dict(data: Dataset) -> dict[tuple[str, str], float]:
    matrix = data.values.tocoo()
    labels = zip(data.row_labels[matrix.row], data.entities.labels[matrix.col], strict=True)
    return {
        (str(row), str(item)): float(value)
        for (row, item), value in zip(labels, matrix.data, strict=True)
    }


def same(one: Dataset, two: Dataset) -> None:
    assert one.shape == two.shape
    assert (one.values != two.values).nnz == 0
    assert one.values.dtype == two.values.dtype
    assert list(one.entities) == list(two.entities)
    assert list(one.row_labels) == list(two.row_labels)
    assert one.report == two.report


SOURCES = [
    *("csv", "tsv", "csv.gz", "tsv.bz2", "csv.xz"),
    *("parquet", "pandas", "polars", "pyarrow"),
]


@pytest.mark.parametrize("kind", SOURCES)
def test_row_columns_are_those_of_a_groupby(kind: str, tmp_path: Path) -> None:
    lines = transactions()
    lines["week"] = (lines.trip // 50).where(lines.index % 3 > 0).astype("Int64")
    columns = {"user": "household", "rows": {"week": "week", "home": "household"}}
    data = read_baskets(written(lines, kind, tmp_path), **COLUMNS, **columns)
    expected = lines.groupby("trip")[["household", "week"]].first()
    assert [int(trip) for trip in data.row_labels] == expected.index.tolist()
    assert list(data.rows) == ["row", "user", "week", "home"]
    assert [int(user) for user in data.users] == expected.household.tolist()
    assert data.rows["home"].tolist() == data.users.tolist()
    weeks = [None if week is None else int(week) for week in data.rows["week"]]
    assert weeks == [None if pd.isna(week) else week for week in expected.week]


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_equals_groupby(kind: str, tmp_path: Path) -> None:
    lines = transactions()
    data = read_baskets(written(lines, kind, tmp_path), **COLUMNS)
    sums = lines.groupby(["trip", "what"])["n"].sum()
    expected = {(str(trip), item): float(total) for (trip, item), total in sums.items()}
    assert as_dict(data) == expected
    assert [str(label) for label in data.row_labels] == [str(i) for i in sorted(set(lines.trip))]
    assert list(data.entities) == sorted(set(lines.what))
    assert data.report["lines"] == 3000
    assert data.report["duplicates_summed"] == 3000 - len(sums)
    assert data.values.dtype == np.float32
    assert data.values.has_canonical_format


@pytest.mark.parametrize("min_count", [1, 5, 25])
@pytest.mark.parametrize("top_n", [None, 12, 1000])
@pytest.mark.parametrize("min_items", [1, 2, 3])
def test_filters_equal_plain_loops(min_count: int, top_n: int | None, min_items: int) -> None:
    lines = transactions(1500, seed=1)
    data = read_baskets(
        lines, **COLUMNS, min_count=min_count, top_n=top_n, min_items_per_basket=min_items
    )
    rows: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for line in lines.itertuples():
        rows[line.trip][line.what] += line.n
    popularity = {item: sum(item in row for row in rows.values()) for item in set(lines.what)}
    kept = sorted(item for item, total in popularity.items() if total >= min_count)
    kept = sorted(sorted(kept, key=lambda item: -popularity[item])[:top_n])
    left = {trip: {i: row[i] for i in kept if i in row} for trip, row in rows.items()}
    left = {trip: row for trip, row in left.items() if len(row) >= min_items}
    assert as_dict(data) == {(str(t), i): n for t, row in left.items() for i, n in row.items()}
    assert list(data.entities) == kept
    assert list(data.row_labels) == sorted(left)
    in_baskets = [sum(item in row for row in left.values()) for item in kept]
    assert data.entities.counts.tolist() == in_baskets
    report = data.report
    assert report["items_dropped"] == len(popularity) - len(kept)
    assert report["baskets_dropped"] == len(rows) - len(left)
    assert report["items_without_basket"] == in_baskets.count(0)
    assert report["entries"] == data.values.nnz == sum(map(len, left.values()))
    assert report["entries"] + report["entries_dropped"] == sum(map(len, rows.values()))


@pytest.mark.parametrize("kind", ["csv", "parquet", "polars"])
def test_users_and_lines_without_counts(kind: str, tmp_path: Path) -> None:
    lines = transactions(500)
    source = written(lines, kind, tmp_path)
    data = read_baskets(source, basket="trip", item="what", user="household")
    user_of = dict(zip(lines.trip, lines.household, strict=True))
    assert [str(user) for user in data.users] == [str(user_of[int(t)]) for t in data.row_labels]
    assert data.values.sum() == 500
    assert data.take_rows([0]).users is not None


def test_labels_of_numbers_sort_by_value(tmp_path: Path) -> None:
    path = tmp_path / "lines.csv"
    path.write_text("trip,what\n10,b\n9,b\n100,a\n")
    assert list(read_baskets(path, basket="trip", item="what").row_labels) == ["9", "10", "100"]
    frame = pd.DataFrame({"trip": [10.0, 9.0, 100.0], "what": list("bba")})
    assert list(read_baskets(frame, basket="trip", item="what").row_labels) == [9, 10, 100]


def test_a_number_and_its_text_are_one_label() -> None:
    items = pd.Series(["a", 1, "1", "1.5", 1.5], dtype="O")
    data = read_baskets(
        pd.DataFrame({"trip": [1, "1", 2.0, 2, "2"], "what": items}), basket="trip", item="what"
    )
    assert list(data.row_labels) == [1, 2]
    assert list(data.entities) == [1, "1.5", "a"]
    assert as_dict(data) == {("1", "a"): 1, ("1", "1"): 1, ("2", "1"): 1, ("2", "1.5"): 2}


def test_dates_categories_and_missing_integers() -> None:
    frame = pd.DataFrame(
        {
            "trip": pd.to_datetime(["2020-01-02", "2020-01-01"]),
            "what": pd.Categorical(["b", "a"]),
            "n": pd.array([2, 3], dtype="Int64"),
        }
    )
    data = read_baskets(frame, **COLUMNS)
    assert list(data.row_labels) == ["2020-01-01T00:00:00", "2020-01-02T00:00:00"]
    assert as_dict(data)["2020-01-01T00:00:00", "a"] == 3
    polars = pl.from_pandas(frame).with_columns(pl.col("trip").dt.date())
    assert list(read_baskets(polars, **COLUMNS).row_labels) == ["2020-01-01", "2020-01-02"]


def test_kinds_of_columns_in_arrow() -> None:
    table = pa.table(
        {
            "trip": pa.array([b"x", b"y"], pa.binary()),
            "what": pa.array(["a", "b"]).dictionary_encode(),
            "n": pa.array(["2", " 3 "]),
        }
    )
    assert as_dict(read_baskets(table, **COLUMNS)) == {("x", "a"): 2.0, ("y", "b"): 3.0}
    table = table.set_column(2, "n", pa.array([True, True]))
    assert read_baskets(table, **COLUMNS).values.sum() == 2


def test_real_counts_are_kept_in_float64_only_if_needed() -> None:
    frame = pd.DataFrame({"trip": [1, 2], "what": ["a", "a"], "n": [0.5, 0.25]})
    assert read_baskets(frame, **COLUMNS).values.dtype == np.float32
    frame["n"] = [0.1, 0.2]
    assert read_baskets(frame, **COLUMNS).values.data.tolist() == [0.1, 0.2]
    frame["n"] = [2**53, 2**24 + 1]
    assert read_baskets(frame, **COLUMNS).values.data.tolist() == [2.0**53, 2.0**24 + 1]


def plain_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baskets_module, "table_sources", lambda *args: table_sources(*args)[-1:])


def test_both_ways_to_read_csv_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(transactions(20_000), "csv", tmp_path)
    fast = read_baskets(path, **COLUMNS, user="household")
    plain_only(monkeypatch)
    same(fast, read_baskets(path, **COLUMNS, user="household"))


CELL = st.text(
    st.one_of(st.sampled_from('a,"\n\r\t\x00;é日 \\'), st.characters(codec="utf-8")), max_size=6
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(st.tuples(CELL, CELL, st.integers(1, 9)), min_size=1), newline=st.booleans())
def test_any_text_makes_the_round_trip(
    lines: list[tuple[str, str, int]], newline: bool, tmp_path: Path
) -> None:
    lines = [(f"a{trip}", f"b{item}", n) for trip, item, n in lines]
    text = io.StringIO(newline="")
    # The csv module forgets to quote a lone \r where lines end in \n alone.
    style: Any = {} if newline else {"lineterminator": "\n", "quoting": csv.QUOTE_ALL}
    csv.writer(text, **style).writerows([("trip", "what", "n"), *lines])
    path = tmp_path / "lines.csv"
    path.write_bytes(text.getvalue().encode())
    expected: dict[tuple[str, str], float] = defaultdict(float)
    for trip, item, n in lines:
        expected[trip, item] += n
    with pytest.MonkeyPatch.context() as patch:
        try:
            fast = read_baskets(path, **COLUMNS)
        except DataError as error:
            if "takes in" not in str(error):
                raise
            reject()  # by chance each line of a label looks like a record
        plain_only(patch)
        same(fast, read_baskets(path, **COLUMNS))
    assert as_dict(fast) == expected


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(text=st.text(st.sampled_from('ab1,"\n\r '), max_size=30))
def test_any_file_gives_the_same_result_or_error_both_ways(text: str, tmp_path: Path) -> None:
    path = tmp_path / "lines.csv"
    path.write_bytes(b"a,b\n" + text.encode())

    def outcome(on_bad: Any) -> Any:
        try:
            data = read_baskets(path, basket="a", item="b", on_bad=on_bad)
        except ValueError as error:
            return str(error)
        return as_dict(data), list(data.row_labels), data.report

    for on_bad in ("error", "drop"):
        with pytest.MonkeyPatch.context() as patch:
            fast = outcome(on_bad)
            plain_only(patch)
            assert fast == outcome(on_bad)


@pytest.mark.slow
def test_a_record_longer_than_a_block_and_a_huge_label(tmp_path: Path) -> None:
    path = tmp_path / "lines.csv"
    huge = "x" * 9_000_000
    path.write_text(f'trip,what\n1,"{huge}"\n2,a\n')
    limit = csv.field_size_limit()
    data = read_baskets(path, basket="trip", item="what")
    assert list(data.entities) == ["a", huge]
    assert csv.field_size_limit() == limit


def test_byte_order_mark_blank_lines_and_other_encodings(tmp_path: Path) -> None:
    text = "\n\ntrip;what\n\n1;Käse\n\n"
    for encoding in ("utf-8-sig", "utf-8", "utf-16", "cp1252"):
        path = tmp_path / f"{encoding}.csv"
        path.write_bytes(text.lstrip().encode(encoding))
        asked = "utf-8" if encoding == "utf-8-sig" else encoding
        data = read_baskets(path, basket="trip", item="what", separator=";", encoding=asked)
        assert as_dict(data) == {("1", "Käse"): 1.0}
        path.write_bytes(text.encode(encoding))
        data = read_baskets(path, basket="trip", item="what", separator=";", encoding=asked)
        assert as_dict(data) == {("1", "Käse"): 1.0}


def test_streaming_in_small_batches_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = transactions()
    whole = read_baskets(written(lines, "csv", tmp_path), **COLUMNS)
    plain_only(monkeypatch)
    original = text_module.CsvSource._number_records
    monkeypatch.setattr(
        text_module.CsvSource, "_number_records", lambda self, text, size: original(self, text, 7)
    )
    compactions = []
    compact = sums_module.PairSums._compact

    def counted(self: Any) -> None:
        compactions.append(1)
        compact(self)

    monkeypatch.setattr(sums_module.PairSums, "_compact", counted)
    monkeypatch.setattr(sums_module.PairSums.__init__, "__defaults__", (50,))
    same(whole, read_baskets(written(lines, "csv", tmp_path), **COLUMNS))
    assert 5 < len(compactions) < 60


def test_memory_does_not_grow_with_repeated_lines() -> None:
    sums = sums_module.PairSums(pending=1000)
    pair = np.arange(100)
    for _ in range(1000):
        sums.add(pair, pair, np.ones(100))
        assert sum(len(part[0]) for part in sums._parts) <= 1200
    rows, columns, counts = sums.finish()
    assert rows.tolist() == columns.tolist() == pair.tolist()
    assert (counts == 1000).all()
    assert sums.lines == 100_000


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "pandas"])
def test_a_progress_bar_changes_nothing(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = written(transactions(100), kind, tmp_path)
    same(read_baskets(source, **COLUMNS, progress=True), read_baskets(source, **COLUMNS))
    assert capsys.readouterr().out == ""


def test_a_parquet_file_of_several_row_groups(tmp_path: Path) -> None:
    lines = transactions()
    pq.write_table(pa.Table.from_pandas(lines), tmp_path / "a.parquet", row_group_size=100)
    one = read_baskets(tmp_path / "a.parquet", **COLUMNS)
    two = read_baskets(lines, **COLUMNS)
    assert as_dict(one) == as_dict(two)


@pytest.mark.parametrize("width", [pa.uint8(), pa.uint32(), pa.uint64()])
def test_categories_whose_codes_have_no_sign(width: Any) -> None:
    codes = pa.array([1, 0, None], width)
    what = pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b"]))
    table = pa.table({"trip": [1, 2, 2], "what": what})
    data = read_baskets(table, basket="trip", item="what", on_bad="drop")
    assert data.values.toarray().tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert data.report["bad"] == {"column 'what' is missing": 1}
