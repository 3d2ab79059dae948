"""Build a store: pieces of lines become summed rows of a shard, then rows of the kept items.

Three stages of tasks that read files and write files: *pieces* (one task for some input files),
*gather* and *store* (one task per shard). Finished work stays in a folder beside the shards, so
an interrupted preparation continues.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efemb._files import check_writable, complete_or_absent, explain_full_disk
from efemb.data.readers.accumulators import narrow
from efemb.data.readers.transactions import check_sums, popular_items
from efemb.data.store.executors import Executor, Watch
from efemb.data.store.pieces import PieceJob, cut_pieces, read_piece
from efemb.data.store.shard_store import (
    BUILDING,
    MANIFEST,
    ROWS,
    VOCABULARY,
    RowLabels,
    ShardFiles,
    ShardStore,
    write_array,
    write_manifest,
    write_shard,
)
from efemb.data.vocabulary import Label, sorted_order
from efemb.errors import DataError, ParameterError

SOURCE = "source.json"


@dataclass(frozen=True)
class Filters:
    """Filters of items and baskets, as in `read_baskets`."""

    min_count: int = 1
    top_n: int | None = None
    min_items: int = 1
    net: bool = False


@dataclass(frozen=True)
class Codes:
    """The labels of items, or of the values of a row column, in the order of all codes.

    labels : file with the labels;  codes : files with the code of every label of each piece job
    """

    name: str
    labels: Path
    codes: tuple[Path, ...]

    def of(self, job: int, indices: NDArray[Any]) -> NDArray[np.int32]:
        """Codes of indices into the table of a job; -1 stays -1."""
        codes = np.append(np.load(self.codes[job], allow_pickle=False), np.int32(-1))
        return np.asarray(codes[indices])

    def read_labels(self) -> list[Label]:
        """All labels."""
        labels: list[Label] = json.loads(self.labels.read_bytes())
        return labels


@dataclass(frozen=True)
class GatherTask:
    """A shard's lines, and the destination of its rows.

    pieces : folders of piece jobs;  items, columns : codes of labels
    """

    shard: int
    pieces: tuple[Path, ...]
    items: Codes
    columns: tuple[Codes, ...]
    n_items: int
    target: Path
    net: bool


@dataclass(frozen=True)
class StoreTask:
    """A gathered shard, and the items and rows of it that are kept."""

    shard: int
    source: Path
    codes: Path
    n_items: int
    min_items: int
    folder: Path
    name: str
    dtype: str


def build_store(
    path: Path,
    jobs: Sequence[PieceJob],
    filters: Filters,
    identity: Mapping[str, Any],
    executor: Executor,
    watch: Watch,
) -> ShardStore:
    """Run all stages; an existing store of the same source and settings is returned as it is."""
    work = _open_work(path, identity)
    if work is None:
        return ShardStore.open(path)
    dealing = jobs[0].dealing
    with explain_full_disk(path):
        summaries = executor.run("pieces", cut_pieces, jobs, _report_stage(watch, 0))
        account = _account(summaries)
        items = _merge_labels("items", [summary["items"] for summary in summaries], work)
        columns = tuple(
            _merge_labels(name, [summary["columns"][name] for summary in summaries], work)
            for name in jobs[0].columns.rows
        )
        labels, folders = items.read_labels(), tuple(job.folder for job in jobs)
        n_all = dealing.n_shards + dealing.n_test
        sources = (folders, items, columns, len(labels))
        gather = [
            GatherTask(shard, *sources, work / "gathered" / str(shard), filters.net)
            for shard in range(n_all)
        ]
        gathered = executor.run("gather", gather_shard, gather, _report_stage(watch, 1))
        tasks = _store_tasks(path, work, gathered, gather, labels, filters, dealing.n_shards)
        stored = executor.run("store", store_shard, tasks, _report_stage(watch, 2))
        rows = {column.name: column.read_labels() for column in columns}
        described = RowLabels(rows, dealing.together) if rows else None
        _finish(path, work, labels, gathered, stored, dealing.n_shards, account, described)
        shutil.rmtree(work, ignore_errors=True)
    return ShardStore.open(path)


def _report_stage(watch: Watch, stage: int) -> Watch:
    return lambda done: watch((stage + done) / 3)


def _open_work(path: Path, identity: Mapping[str, Any]) -> Path | None:
    """The working folder, with results of earlier attempts; None if the store is complete."""
    check_writable(path)
    expected = json.dumps(identity, sort_keys=True)
    work = path / BUILDING
    complete = (path / MANIFEST).exists()
    used_folder = path if complete else work
    try:
        present = (used_folder / SOURCE).read_text("utf-8")
    except OSError:
        present = None
    lasting = identity["source"] is not None  # a table cannot be recognized later
    if complete and lasting and present == expected:
        return None
    if not complete and not lasting:
        shutil.rmtree(work, ignore_errors=True)
    elif complete or (present is not None and present != expected):
        state = "holds a store" if complete else "holds an unfinished store"
        raise ParameterError(
            f"{path} {state} of another source or with other settings: choose another folder, or "
            "delete it"
        )
    strange = set(os.listdir(path)) - {BUILDING, "shards", VOCABULARY, ROWS, SOURCE}
    if strange:
        raise DataError(f"{path} holds {min(strange)!r}, which is not part of a store")
    work.mkdir(exist_ok=True)
    with complete_or_absent(work / SOURCE) as stream:
        stream.write(expected.encode())
    return work


def _account(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Numbers of lines read, stored, and dropped by reason."""
    dropped: Counter[str] = Counter()
    for summary in summaries:
        dropped.update(summary["dropped"])
    lines, stored = (sum(summary[name] for summary in summaries) for name in ("lines", "stored"))
    if not stored:
        reasons = "; ".join(f"{problem} in {n:,}" for problem, n in sorted(dropped.items()))
        raise DataError(f"none of the {lines:,} lines can be used: {reasons or 'there are none'}")
    return {"lines": lines, "lines_stored": stored, "lines_dropped": dict(sorted(dropped.items()))}


def _merge_labels(name: str, tables: Sequence[Sequence[Label]], work: Path) -> Codes:
    """All labels in sorted order, and files that map the codes of each job to theirs."""
    by_text: dict[str, Label] = {}
    for table in tables:
        for label in table:
            # A number and its text are one label: the text is kept, whichever file comes first.
            text = str(label)
            by_text[text] = text if by_text.get(text, label) != label else label
    unsorted = [by_text[text] for text in sorted(by_text)]
    labels = [unsorted[i] for i in sorted_order(unsorted)]
    code_of = {str(label): code for code, label in enumerate(labels)}
    folder = work / "codes" / hashlib.sha256(name.encode()).hexdigest()[:16]
    paths = []
    for number, table in enumerate(tables):
        codes = np.array([code_of[str(label)] for label in table], dtype=np.int32)
        paths.append(folder / f"{number}.npy")
        write_array(codes, paths[-1])
    with complete_or_absent(folder / "labels.json") as stream:
        stream.write(json.dumps(labels).encode())
    return Codes(name, folder / "labels.json", tuple(paths))


def gather_shard(task: GatherTask) -> dict[str, Any]:
    """Collect the lines of each basket: rows sorted by hash, their items by label."""
    lines = _read_lines(task)
    n_lines, new = len(lines), np.ones(len(lines), dtype=bool)
    lines = lines[np.lexsort((lines["basket"][:, 1], lines["basket"][:, 0]))]
    new[1:] = (lines["basket"][1:] != lines["basket"][:-1]).any(axis=1)
    columns = _columns_of_rows(lines["columns"], np.flatnonzero(new), task)
    row, item, count = _sum_lines(np.cumsum(new) - 1, lines["item"], lines["count"], task.shard)
    n_pairs = len(row)
    if task.net:
        row, item, count = row[count > 0], item[count > 0], count[count > 0]
    n_rows = int(row.max()) + 1 if len(row) else 0
    sizes = np.bincount(row, minlength=n_rows)
    arrays: dict[str, NDArray[Any]] = {
        "indptr": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
        "indices": item.astype(np.int32),
        "values": count,
        "columns": columns[:n_rows],
        "popularity": np.bincount(item, minlength=task.n_items),
    }
    for name, array in arrays.items():
        write_array(array, task.target / f"{name}.npy")
    exact = bool(narrow(count).dtype == np.float32)
    sizes_of = {"lines": n_lines, "pairs": n_pairs, "rows": n_rows, "entries": len(item)}
    return {**sizes_of, "narrow": exact}


def _read_lines(task: GatherTask) -> NDArray[Any]:
    """The lines of a shard, with the codes of each job mapped to common ones."""
    blocks = []
    for job, folder in enumerate(task.pieces):
        lines = read_piece(folder, task.shard).copy()
        lines["item"] = task.items.of(job, lines["item"])
        for place, codes in enumerate(task.columns):
            lines["columns"][:, place] = codes.of(job, lines["columns"][:, place])
        blocks.append(lines)
    return np.concatenate(blocks)


def _columns_of_rows(
    codes: NDArray[np.int32], starts: NDArray[np.int64], task: GatherTask
) -> NDArray[np.int32]:
    """The value of every row column, which must be the same in all lines that have one."""
    if not task.columns or not len(starts):
        return np.empty((len(starts), len(task.columns)), dtype=np.int32)
    largest: NDArray[np.int32] = np.maximum.reduceat(codes, starts)
    least = np.minimum.reduceat(np.where(codes < 0, np.iinfo(np.int32).max, codes), starts)
    for place, row in np.argwhere((least != largest).T & (largest >= 0).T)[:1]:
        column = task.columns[place]
        labels = column.read_labels()
        values = [repr(labels[code[row, place]]) for code in (least, largest)]
        raise DataError(
            f"the lines of a basket have different values of the row column {column.name!r}, such "
            f"as {' and '.join(values)}: correct them, or leave the column out of rows="
        )
    return largest


def _sum_lines(
    row: NDArray[np.int64], item: NDArray[np.int32], count: NDArray[np.float64], shard: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Row, item and sum of each distinct pair; sums do not depend on the order of the lines."""
    pair = (row.astype(np.int64) << 32) | item
    # Whole numbers add up exactly in any order; others are added from the smallest.
    all_whole = bool((count == np.floor(count)).all())
    order = np.argsort(pair, kind="stable") if all_whole else np.lexsort((count, pair))
    pair, count = pair[order], count[order]
    starts = np.flatnonzero(np.concatenate([[True], pair[1:] != pair[:-1]])[: len(pair)])
    sums = np.add.reduceat(count, starts) if len(starts) else count
    check_sums(sums, f"shard {shard}")
    pair = pair[starts]
    return pair >> 32, pair & 0xFFFFFFFF, sums


def _store_tasks(
    path: Path,
    work: Path,
    gathered: Sequence[Mapping[str, Any]],
    tasks: Sequence[GatherTask],
    labels: Sequence[Label],
    filters: Filters,
    n_shards: int,
) -> list[StoreTask]:
    """Select the items to keep by the number of training baskets that contain them."""
    popularity: NDArray[Any] = np.zeros(len(labels), dtype=np.int64)
    for task in tasks[:n_shards]:
        popularity += np.load(task.target / "popularity.npy", allow_pickle=False)
    kept_items = popular_items(popularity, np.arange(len(labels)), filters.min_count, filters.top_n)
    if not len(kept_items):
        raise DataError(
            f"no items remain: min_count={filters.min_count} is above the number of baskets that "
            f"hold the most frequent of {len(labels):,} items ({popularity.max():,})"
        )
    codes: NDArray[Any] = np.full(len(labels), -1, dtype=np.int32)
    codes[kept_items] = np.arange(len(kept_items))
    write_array(codes, work / "kept.npy")
    dtype = "float32" if all(shard["narrow"] for shard in gathered) else "float64"
    names = [_name(number, n_shards) for number in range(len(tasks))]
    own = (work / "kept.npy", len(kept_items), filters.min_items, path / "shards")
    return [
        StoreTask(task.shard, task.target, *own, name, dtype)
        for task, name in zip(tasks, names, strict=True)
    ]


def _name(number: int, n_shards: int) -> str:
    return f"{number:05d}" if number < n_shards else f"test-{number - n_shards:05d}"


def store_shard(task: StoreTask) -> dict[str, Any]:
    """Write the rows of a shard with the items to keep, without rows that are too small."""
    indptr, indices, values, rows = (
        np.load(task.source / f"{name}.npy", allow_pickle=False)
        for name in ("indptr", "indices", "values", "columns")
    )
    codes = np.load(task.codes, allow_pickle=False)[indices]
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    sizes = np.bincount(row[codes >= 0], minlength=len(indptr) - 1)
    large = sizes >= task.min_items
    is_kept = (codes >= 0) & large[row]
    columns = codes[is_kept].astype(np.int32)
    arrays = {
        "indptr": np.concatenate([[0], np.cumsum(sizes[large])]).astype(np.int32),
        "indices": columns,
        "values": values[is_kept].astype(task.dtype),
    }
    if rows.shape[1]:
        arrays["columns"] = rows[large]
    files = write_shard(task.folder, task.name, int(large.sum()), len(columns), arrays)
    counts = np.bincount(columns, minlength=task.n_items)
    digest = write_array(counts, task.source / "kept-popularity.npy")
    return {"files": vars(files), "counts": str(task.source / "kept-popularity.npy"), "sum": digest}


def _finish(
    path: Path,
    work: Path,
    labels: Sequence[Label],
    gathered: Sequence[Mapping[str, Any]],
    stored: Sequence[Mapping[str, Any]],
    n_shards: int,
    account: Mapping[str, Any],
    rows: RowLabels | None,
) -> None:
    """Write the manifest, and the identity of the source beside it."""
    files = [ShardFiles(**outcome["files"]) for outcome in stored]
    lines = sum(shard["lines"] for shard in gathered)
    if lines != account["lines_stored"]:
        raise DataError(
            f"{account['lines_stored']:,} lines were cut into pieces and {lines:,} gathered: a "
            f"piece is missing; delete {work} and prepare the store again"
        )
    codes = np.load(work / "kept.npy", allow_pickle=False)
    counts = sum(np.load(outcome["counts"], allow_pickle=False) for outcome in stored[:n_shards])
    entries, baskets = (sum(shard[name] for shard in gathered) for name in ("entries", "rows"))
    n_rows, n_entries = (sum(getattr(f, n) for f in files) for n in ("n_rows", "n_entries"))
    if not sum(shard.n_rows for shard in files[:n_shards]):
        raise DataError(
            f"no baskets remain of {baskets:,}: lower min_items_per_basket or min_count"
        )
    report = {
        **account,
        "duplicates_summed": lines - sum(shard["pairs"] for shard in gathered),
        "items": len(labels),
        "items_dropped": int((codes < 0).sum()),
        "baskets": baskets,
        "baskets_dropped": baskets - n_rows,
        "entries": n_entries,
        "entries_dropped": entries - n_entries,
    }
    kept_labels = [label for label, code in zip(labels, codes, strict=True) if code >= 0]
    with complete_or_absent(path / SOURCE) as stream:
        stream.write((work / SOURCE).read_bytes())
    shards = (files[:n_shards], files[n_shards:])
    write_manifest(
        path, "baskets", (kept_labels, np.asarray(counts).tolist()), *shards, report, rows
    )


def fingerprint_files(sizes: Mapping[str, int] | None) -> str | None:
    """A checksum of the names, sizes and times of files, to recognize them; None for a table."""
    if sizes is None:
        return None
    digest = hashlib.sha256()
    for name, size in sorted(sizes.items()):
        stamp = os.stat(name).st_mtime_ns if os.path.exists(name) else 0
        digest.update(f"{name}\n{size}\n{stamp}\n".encode())
    return digest.hexdigest()
