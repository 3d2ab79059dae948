"""Damaged, huge and forged files: a typed error, and no memory for contents that do not exist."""

from __future__ import annotations

import contextlib
import gzip
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_matrix

import efemb
from efemb.data import memory
from efemb.data.readers import dialect, input_file
from efemb.engine import limits
from efemb.errors import DataError, EfembError, MemoryEstimateError, ParameterError

LINES = pd.DataFrame({"trip": np.arange(600) // 3, "what": np.arange(600) % 17})


def test_flipped_bits_of_checked_parquet_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table(LINES.to_dict("list"))
    pq.write_table(table, path, write_page_checksum=True, compression="none", use_dictionary=False)
    whole = path.read_bytes()
    expected = efemb.read_baskets(path, basket="trip", item="what").values.toarray()
    silent = 0
    for place in range(8, len(whole) - 8, 97):
        flipped = bytearray(whole)
        flipped[place] ^= 16
        path.write_bytes(bytes(flipped))
        try:
            data = efemb.read_baskets(path, basket="trip", item="what", on_bad="drop")
        except EfembError:
            continue
        silent += data.shape != expected.shape or (data.values.toarray() != expected).any()
    assert silent == 0


@pytest.mark.parametrize("damaged", [b"bread", b"what"])  # a label, and the name of a column
def test_text_of_parquet_that_is_not_utf8(damaged: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table({"trip": [1, 1, 2], "what": ["milk", "bread", "beer"]})
    pq.write_table(table, path, compression="none", use_dictionary=False, store_schema=False)
    path.write_bytes(path.read_bytes().replace(damaged, b"\xff" + damaged[1:]))
    with pytest.raises(DataError, match="not a complete Parquet file"):
        efemb.read_baskets(path, basket="trip", item="what")


@pytest.mark.parametrize("value", [2**53 + 1, -(2**60), 2**63])
def test_whole_numbers_that_floats_cannot_hold(value: int, tmp_path: Path) -> None:
    kind = pa.uint64() if value > 2**62 else pa.int64()
    table = pa.table({"a": pa.array([3, value, None], kind), "b": [1.5, 2.0, 2.5]})
    pq.write_table(table, tmp_path / "x.parquet")
    for source in (tmp_path / "x.parquet", table):
        with pytest.raises(DataError, match=f"'a' holds {value}, beyond 2"):
            efemb.read_matrix(source)
    assert efemb.read_matrix(pa.table({"a": [2**53, 1], "b": [1, 2]})).values[0, 0] == 2.0**53


@pytest.mark.parametrize("notes", [b"{not json", b'{"index_columns": 5}', b"\xff\xfe"])
def test_damaged_notes_of_pandas(notes: bytes, tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2], "b": [3, 4]}).replace_schema_metadata({b"pandas": notes})
    pq.write_table(table, tmp_path / "x.parquet")
    for source in (tmp_path / "x.parquet", table):
        with pytest.raises(DataError, match="that pandas recorded is damaged"):
            efemb.read_matrix(source)


def test_a_cut_archive_of_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    noise = np.random.default_rng(0).integers(97, 122, 20_000).astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(b"trip,what\n1,\xff\n2," + noise)[:-100])
    readers: list[Any] = [
        lambda: efemb.read_baskets(path, basket="trip", item="what"),
        lambda: efemb.read_baskets(path, layout="lines"),
        lambda: efemb.read_matrix(path),
        lambda: efemb.read_text(path),
    ]
    for reader in readers:
        with pytest.raises(DataError, match=r"x\.csv\.gz"):
            reader()


def test_damaged_headers_of_arrays(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.ones((6, 6)))
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(300):
        changed = bytearray(whole)
        changed[rng.integers(0, 128)] = rng.integers(0, 256)
        path.write_bytes(bytes(changed))
        for reader in (efemb.read_matrix, lambda x: efemb.read_traces(x, np.eye(6))):
            with contextlib.suppress(EfembError):
                reader(path)
    path.write_bytes(whole.replace(b"(6, 6)", b"(9" + b"9" * 12 + b", 6)"))
    with pytest.raises(DataError, match=r"cannot be read"):
        efemb.read_matrix(path)


def test_an_archive_that_promises_more_than_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, a=np.ones((60, 60)))
    path.write_bytes(path.read_bytes().replace(b"(60, 60)", b"(9999999, 9999999)"[:8] + b""))
    with pytest.raises(DataError, match=r"cannot be read"):
        efemb.read_matrix(path)


@pytest.mark.parametrize("first", ["1 1000000000000", "9999999999999999999999 99999999999999999"])
def test_word_vectors_of_impossible_length(first: str, tmp_path: Path) -> None:
    path = tmp_path / "w.txt"
    path.write_text(f"{first}\na 1 2\n")
    with pytest.raises(DataError, match="at most 1,000,000 are read"):
        efemb.export.read_word2vec(path)


def test_a_small_file_with_a_huge_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_file, "LONGEST_LINE", 1 << 20)
    monkeypatch.setattr(dialect, "_HUGE", 1 << 18)
    path = tmp_path / "x.csv.gz"
    for huge in (b"a" * (1 << 21), b'"' + b"a\n" * (1 << 19) + b'"'):
        path.write_bytes(gzip.compress(b"trip,what\n1," + huge + b"\n"))
        for options in ({"basket": "trip", "item": "what"}, {"layout": "lines"}):
            if b"\n" in huge and "layout" in options:
                continue  # there, a quote does not continue on the next line
            with pytest.raises(DataError, match=r"x\.csv\.gz"):
                efemb.read_baskets(path, **options)  # type: ignore[arg-type]


ODD = ["idna", "punycode", "unicode_escape", "undefined", "base64", "rot13", "", "\0", "hex"]


@pytest.mark.parametrize("encoding", [*ODD, None, 5, "raw_unicode_escape"])
def test_odd_encodings(encoding: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("trip,what\n1,a\n2,b\n1,b\n")
    readers: list[Any] = [
        lambda: efemb.read_baskets(path, basket="trip", item="what", encoding=encoding),
        lambda: efemb.read_baskets(path, layout="lines", encoding=encoding),
        lambda: efemb.read_matrix(path, encoding=encoding),
        lambda: efemb.read_text(path, min_count=1, encoding=encoding),
    ]
    for reader in readers:
        with pytest.raises(EfembError, match="encoding="):
            reader()


@pytest.mark.parametrize("encoding", ["utf-16", "cp037", "utf-7", "big5", "iso2022_jp", "hz"])
def test_rare_encodings_work(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes("trip,what\n1,a\n2,b\n1,b\n".encode(encoding))
    data = efemb.read_baskets(path, basket="trip", item="what", encoding=encoding)
    assert data.values.toarray().tolist() == [[1, 1], [0, 1]]


WIDE = csr_matrix((np.ones(3), ([0, 1, 2], [0, 2 * 10**9, 5])), shape=(3, 3 * 10**9))


@pytest.mark.parametrize("name", ["PoissonEmbedding", "BernoulliEmbedding", "GaussianEmbedding"])
def test_columns_that_cannot_fit_are_refused_before_any_is_allocated(name: str) -> None:
    model = getattr(efemb, name)(2)
    for X in (WIDE, efemb.Dataset(WIDE)):
        for call in (model.fit, model.partial_fit):
            with pytest.raises(MemoryEstimateError, match="3,000,000,000 entities"):
                call(X)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_limits_of_the_process_count() -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30));"
        "from efemb.data.memory import available_memory; print(available_memory())"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert 0 < int(told.stdout) < 2 << 30
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_fit_that_runs_out_of_memory_ends_in_a_typed_error() -> None:
    """Memory for two copies of the data, as the estimate allows, but not for the hold-out."""
    code = (
        "import resource, numpy as np, efemb\n"
        "model = efemb.GaussianEmbedding(2, context=efemb.Neighbors(3), n_jobs=1)\n"
        "X = np.random.default_rng(0).normal(size=(40_000, 100))\n"
        "model.fit(X[:50, :6])\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, 2 * (used + 40_000_000,))\n"
        "try: model.fit(X)\n"
        "except efemb.MemoryEstimateError as error: print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "use fewer components" in told.stdout
    assert "are free" in told.stdout


def test_limits_of_a_container_count(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("400000\n")
    assert min(memory._group_memory(tmp_path), default=None) in (600_000, None)
    (tmp_path / "memory.max").write_text("max\n")
    assert list(memory._group_memory(tmp_path)) == []


def test_the_estimate_counts_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    data = efemb.Dataset(np.random.default_rng(0).normal(size=(2000, 20)))
    assert limits.data_size(data) == 2000 * 20 * 8
    sparse = efemb.Dataset(csr_matrix(np.eye(50)))
    parts = (sparse.values.data, sparse.values.indices, sparse.values.indptr)
    assert limits.data_size(sparse) == sum(part.nbytes for part in parts)
    monkeypatch.setattr(limits, "available_memory", lambda: 300_000)
    with pytest.raises(MemoryEstimateError, match="kB"):
        efemb.GaussianEmbedding(2).fit(data)


def test_counts_add_up_over_batches() -> None:
    trips = efemb.read_baskets([["a", "b"], ["b", "c"], ["a", "c"], ["b", "c"]] * 10)
    first, second = trips.take_rows(range(25)), trips.take_rows(range(25, 40))
    model = efemb.PoissonEmbedding(2, random_state=0)
    model.partial_fit(first).partial_fit(second)
    assert trips.entities is not None
    np.testing.assert_array_equal(model.vocabulary_.counts, trips.entities.counts)
    np.testing.assert_array_equal(model.fitted().vocabulary.counts, trips.entities.counts)
    more = efemb.read_baskets([["c", "d"], ["a", "d"], ["b", "d"]] * 4)
    model.partial_fit(more)
    assert dict(zip(model.vocabulary_, model.vocabulary_.counts, strict=True)) == {
        **{label: trips.entities.counts[n] + 4 for n, label in enumerate("abc")},
        "d": 12,
    }


def test_bad_separators_are_still_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ParameterError, match="separator"):
        efemb.read_baskets(path, basket="a", item="b", separator="\n")


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "/".join(["y" * 200] * 30)])
@pytest.mark.parametrize(
    "read",
    [
        efemb.read_suite2p,
        lambda path: efemb.shards.prepare(path, "store", basket="a", item="b"),
        lambda path: efemb.read_traces(path, np.eye(2)),
        lambda path: efemb.read_baskets(path, layout="lines"),
    ],
    ids=["suite2p", "shards", "traces", "lines"],
)
def test_paths_that_the_system_does_not_accept(read: Callable[[Any], Any], path: str) -> None:
    with pytest.raises(DataError):
        read(path)
