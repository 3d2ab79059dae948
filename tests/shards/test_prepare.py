"""A store holds what `read_baskets` reads, whatever the files, and accounts for every line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import efemb
from efemb.data.store import build
from efemb.shards import ShardStore, open_store, prepare, stores

NAMES: dict[str, Any] = {"basket": "trip", "item": "what", "count": "n"}


def lines(n: int = 3000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "trip": rng.integers(n // 6, size=n),
            "what": [f"item {i}" for i in rng.zipf(1.6, n) % 60],
            "n": rng.integers(1, 4, n),
        }
    )


def rows_of(store: ShardStore) -> list[tuple[tuple[Any, float], ...]]:
    """Every row as pairs of label and count, sorted: shards have an order of their own."""
    rows = []
    for number in range(store.n_shards):
        data = store.shard(number)
        rows += as_pairs(data)
    return sorted(rows)


def as_pairs(data: Any) -> list[tuple[tuple[Any, float], ...]]:
    values, labels = data.values, data.entities.labels
    return [
        tuple(
            (labels[i], float(x))
            for i, x in zip(values.indices[a:b], values.data[a:b], strict=True)
        )
        for a, b in zip(values.indptr[:-1], values.indptr[1:], strict=True)
    ]


@pytest.mark.parametrize(
    "filters",
    [{}, {"min_count": 5, "min_items_per_basket": 2}, {"top_n": 7}, {"returns": "net"}],
    ids=["all", "rare", "top", "net"],
)
def test_a_store_holds_what_read_baskets_reads(tmp_path: Path, filters: dict[str, Any]) -> None:
    table = lines()
    if "returns" in filters:
        table.loc[::5, "n"] *= -1
    whole = efemb.read_baskets(table, **NAMES, **filters)
    store = prepare(table, tmp_path, **NAMES, **filters, n_shards=3)
    assert rows_of(store) == sorted(as_pairs(whole))
    assert list(store.vocabulary.labels) == list(whole.entities.labels)  # type: ignore[union-attr]
    assert store.vocabulary.counts is not None
    assert store.vocabulary.counts.tolist() == whole.entities.counts.tolist()  # type: ignore[union-attr]
    assert store.n_rows == whole.n_rows
    assert store.shard(0).values.indices.dtype == np.int32
    for name in ("duplicates_summed", "items_dropped"):
        assert store.report[name] == whole.report[name]


@pytest.mark.slow
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, 200), max_size=4), seed=st.integers(0, 5), data=st.data())
def test_bits_do_not_depend_on_files(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], seed: int, data: Any
) -> None:
    """Files cut anywhere, through baskets too, of any format and in any order."""
    table, folder = lines(200), tmp_path_factory.mktemp("files")
    expected = prepare(table, folder / "whole", **NAMES, n_shards=3, held_out=0.2)
    shuffled = table.sample(frac=1, random_state=seed)
    edges = [0, *sorted(cuts), len(table)]
    names = []
    for number, (a, b) in enumerate(pairwise(edges)):
        name = folder / f"{number}.{data.draw(st.sampled_from(['csv', 'parquet']))}"
        part = shuffled.iloc[a:b]
        if name.suffix == ".csv":
            part.to_csv(name, index=False)
        else:
            part.to_parquet(name)
        names.append(name)
    names = data.draw(st.permutations(names))
    store = prepare(names, folder / "parts", **NAMES, n_shards=3, held_out=0.2)
    assert store.checksum == expected.checksum


def test_fractions_add_up_alike_in_any_order(tmp_path: Path) -> None:
    table = lines(500)
    table["n"] = np.random.default_rng(0).gamma(1.0, 1.0, len(table))
    table["trip"] %= 20
    table["what"] = "a"
    stores = [
        prepare(table.sample(frac=1, random_state=s), tmp_path / str(s), **NAMES, n_shards=2)
        for s in range(3)
    ]
    assert len({store.checksum for store in stores}) == 1


def test_test_rows_are_held_out(tmp_path: Path) -> None:
    table = lines(6000)
    store = prepare(table, tmp_path, **NAMES, n_shards=4, held_out=0.2)
    n_rows = table.trip.nunique()
    assert store.n_rows + store.test.n_rows == n_rows
    assert 0.15 * n_rows < store.test.n_rows < 0.25 * n_rows
    rows = sorted(rows_of(store) + rows_of(store.test))
    assert rows == sorted(as_pairs(efemb.read_baskets(table, **NAMES)))
    assert "Store" in repr(store.test)
    with pytest.raises(efemb.DataError, match="held_out"):
        _ = store.test.test


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_every_line_is_accounted_for(tmp_path: Path, kind: str) -> None:
    table = lines(300).astype({"n": object, "what": object})
    table.loc[[3, 50], "what"] = None
    table.loc[[50, 70, 71], "n"] = -1  # line 50 has two problems and counts once
    path = tmp_path / f"lines.{kind}"
    if kind == "csv":
        table.to_csv(path, index=False)
        with path.open("a") as file:
            file.write("1,2,3,4,5\n")
    else:
        table.astype({"n": float}).to_parquet(path)
    with pytest.raises(efemb.DataError, match=r"not positive.*on_bad"):
        prepare(path, tmp_path / "strict", **NAMES, n_shards=2)
    store = prepare(path, tmp_path / "store", **NAMES, n_shards=2, on_bad="drop")
    report = store.report
    n_lines = 301 if kind == "csv" else 300
    assert report["lines"] == n_lines
    assert report["lines"] == report["lines_stored"] + sum(report["lines_dropped"].values())
    assert sum(report["lines_dropped"].values()) == n_lines - 296
    total = sum(store.shard(i).values.sum() for i in range(2))  # type: ignore[union-attr]
    good = table.drop(index=[3, 50, 70, 71])
    assert total == good["n"].astype(float).sum()


def test_files_by_pattern_folder_list_and_address(tmp_path: Path) -> None:
    table, folder = lines(300), tmp_path / "lines"
    folder.mkdir()
    for number in range(3):
        table.iloc[number::3].to_parquet(folder / f"{number}.parquet")
    sources: list[Any] = [
        folder,
        str(folder / "*.parquet"),
        [folder / "2.parquet", folder / "0.parquet", str(folder / "1.parquet")],
        folder.as_uri(),
        folder.as_uri() + "/*.parquet",
        [(folder / f"{number}.parquet").as_uri() for number in range(3)],
    ]
    sums = {
        prepare(source, tmp_path / f"store{i}", **NAMES, n_shards=2).checksum
        for i, source in enumerate(sources)
    }
    assert len(sums) == 1


def test_a_complete_store_is_reused_and_another_refused(tmp_path: Path) -> None:
    table = lines(300)
    table.to_parquet(tmp_path / "lines.parquet")
    first = prepare(tmp_path / "lines.parquet", tmp_path / "store", **NAMES, n_shards=2)
    stamp = (tmp_path / "store" / "manifest.json").stat().st_mtime_ns
    again = prepare(tmp_path / "lines.parquet", tmp_path / "store", **NAMES, n_shards=2)
    assert again.checksum == first.checksum == open_store(tmp_path / "store").checksum
    assert (tmp_path / "store" / "manifest.json").stat().st_mtime_ns == stamp
    with pytest.raises(efemb.ParameterError, match="other settings"):
        prepare(tmp_path / "lines.parquet", tmp_path / "store", **NAMES, n_shards=3)
    with pytest.raises(efemb.ParameterError, match="another source"):
        prepare(table, tmp_path / "store", **NAMES, n_shards=2)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(efemb.DataError, match=r"letter\.txt"):
        prepare(table, tmp_path / "mine", **NAMES, n_shards=2)


@pytest.mark.parametrize("stage", ["cut_pieces", "gather_shard", "store_shard"])
def test_an_interrupted_preparation_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    table = lines(300)
    table.to_parquet(tmp_path / "lines.parquet")
    expected = prepare(table, tmp_path / "whole", **NAMES, n_shards=3).checksum
    real, calls = getattr(build, stage), [0]

    def fail(task: Any) -> Any:
        calls[0] += 1
        if calls[0] > 1 or stage == "cut_pieces":
            raise KeyboardInterrupt
        return real(task)

    arguments: Any = (tmp_path / "lines.parquet", tmp_path / "store")
    with monkeypatch.context() as patch:
        patch.setattr(build, stage, fail)
        with pytest.raises(KeyboardInterrupt):
            prepare(*arguments, **NAMES, n_shards=3)
    with pytest.raises(efemb.DataError, match="being written"):
        open_store(tmp_path / "store")
    assert prepare(*arguments, **NAMES, n_shards=3).checksum == expected
    assert not (tmp_path / "store" / ".building").exists()


def test_pieces_that_are_done_are_not_cut_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines(300).to_parquet(tmp_path / "lines.parquet")

    def stop(task: Any) -> Any:
        raise KeyboardInterrupt

    arguments: Any = (tmp_path / "lines.parquet", tmp_path / "store")
    with monkeypatch.context() as patch:
        patch.setattr(build, "gather_shard", stop)
        with pytest.raises(KeyboardInterrupt):
            prepare(*arguments, **NAMES, n_shards=3)
    piece = next((tmp_path / "store" / ".building" / "pieces" / "0").glob("*.lines"))
    content = bytearray(piece.read_bytes())
    content[5] ^= 1
    piece.write_bytes(content)
    with pytest.raises(efemb.DataError, match=f"{piece.name} is damaged"):
        prepare(*arguments, **NAMES, n_shards=3)


def test_a_damaged_store_names_what_is_damaged(tmp_path: Path) -> None:
    store = prepare(lines(300), tmp_path, **NAMES, n_shards=2)
    path = tmp_path / "shards" / "00001.indices.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    store.shard(0)
    with pytest.raises(efemb.DataError, match=r"shard 1 .*00001\.indices\.npy"):
        store.shard(1)
    path.unlink()
    with pytest.raises(efemb.DataError, match=r"shard 1 .*cannot be read"):
        store.shard(1)
    manifest = tmp_path / "manifest.json"
    body = json.loads(manifest.read_text())
    body["report"]["lines"] += 1
    manifest.write_text(json.dumps(body, indent=1) + "\n")
    with pytest.raises(efemb.DataError, match="damaged"):
        open_store(tmp_path)
    with pytest.raises(efemb.DataError, match="not a store"):
        open_store(tmp_path / "shards")


def test_bad_files_are_named(tmp_path: Path) -> None:
    table, folder = lines(100), tmp_path / "lines"
    folder.mkdir()
    table.to_parquet(folder / "0.parquet")
    table.rename(columns={"what": "sku"}).to_parquet(folder / "1.parquet")
    with pytest.raises(efemb.DataError, match=r"1\.parquet has no column 'what'"):
        prepare(folder, tmp_path / "a", **NAMES, n_shards=2)
    (folder / "1.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(efemb.DataError, match=r"1\.parquet"):
        prepare(folder, tmp_path / "b", **NAMES, n_shards=2)
    with pytest.raises(efemb.DataError, match="no file matches"):
        prepare(str(tmp_path / "*.parquet"), tmp_path / "c", **NAMES)
    with pytest.raises(efemb.DataError, match=r"gone\.parquet"):
        prepare([folder / "0.parquet", folder / "gone.parquet"], tmp_path / "d", **NAMES)
    with pytest.raises(efemb.InputTypeError, match="shared file system"):
        prepare(table, "s3://shop/store", **NAMES)
    with pytest.raises(efemb.DataError, match="none of the 0 lines"):
        prepare(table.iloc[:0], tmp_path / "e", **NAMES)


def test_empty_partitions_and_tiny_files(tmp_path: Path) -> None:
    """One basket in a hundred files, some of which are empty."""
    folder = tmp_path / "lines"
    folder.mkdir()
    table = pd.DataFrame({"trip": 1, "what": [f"item {i}" for i in range(100)], "n": 2})
    for number in range(100):
        table.iloc[number : number + 1].to_csv(folder / f"{number}.csv", index=False)
    table.iloc[:0].to_parquet(folder / "empty.parquet")
    (folder / "nothing.csv").touch()
    names = sorted(folder.iterdir())
    store = prepare(names, tmp_path / "store", **NAMES, n_shards=2)
    assert (store.n_rows, store.n_entries, store.report["lines"]) == (1, 100, 100)


def test_a_file_that_vanishes_after_it_was_listed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("0.csv", "1.csv"):
        lines(50).to_csv(tmp_path / name, index=False)
    real = stores.list_files

    def list_and_lose(source: Any) -> Any:
        sizes = real(source)
        (tmp_path / "1.csv").unlink()
        return sizes

    monkeypatch.setattr(stores, "list_files", list_and_lose)
    with pytest.raises(efemb.DataError, match=r"1\.csv cannot be read"):
        prepare(str(tmp_path / "*.csv"), tmp_path / "store", **NAMES, n_shards=2)


@pytest.mark.slow
def test_a_million_tiny_files_are_a_thousand_tasks() -> None:
    sizes = {f"lines/{number}.csv": 90 for number in range(1_000_000)}
    groups = stores._groups(sizes)
    assert len(groups) == 1000
    assert [name for group in groups for name in group] == list(sizes)
    large = {f"lines/{number}.parquet": 200 << 20 for number in range(3)}
    assert [len(group) for group in stores._groups(large)] == [1, 1, 1]


@pytest.mark.slow
def test_memory_is_bounded_by_a_shard(tmp_path: Path) -> None:
    """Three times the lines in three times the shards take about the same memory."""
    script = (
        "import sys, resource, efemb.shards as s\n"
        "s.prepare(sys.argv[1], sys.argv[2], basket='trip', item='what', count='n',"
        " n_shards=int(sys.argv[3]))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peaks = []
    for size in (2, 6):
        folder = tmp_path / str(size)
        folder.mkdir()
        for number in range(size):
            rng = np.random.default_rng(number)
            table = lines(100_000, seed=number)
            table["trip"] = rng.integers(15_000 * size, size=len(table))
            table.to_parquet(folder / f"{number}.parquet")
        command = [sys.executable, "-c", script, str(folder), f"{folder}-store", str(8 * size)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ)
        peaks.append(int(done.stdout))
    assert peaks[1] < 1.2 * peaks[0]
