"""Pieces: the lines of some input files, assigned to shards by a hash of their basket.

Stage 1 of a store. Lines of one basket may be in any number of files; the hash brings them
together. A piece job reads some files with bounded memory and writes one file per shard.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efemb._files import explain_full_disk, temporary_name
from efemb.data.readers.accumulators import CountTable, KeyTable, LabelTable
from efemb.data.readers.badlines import BadLines
from efemb.data.readers.several import SeveralTables, file_sources, table_source
from efemb.data.readers.shop_tables import NO_LABEL
from efemb.data.readers.source import Batch, NeedsTextReaderError, Source
from efemb.data.readers.transactions import (
    BasketColumn,
    Collected,
    LineColumns,
    usable_lines,
)
from efemb.data.store.remote import fetch, is_remote
from efemb.errors import DataError, EfembError, InputTypeError

PENDING = 1 << 17  # lines kept in memory: 4 MB
# Files of a job: its summary, which every shard reads, and its labels, which shards do not need.
SUMMARY, LABELS = "job.json", "labels.json"


def line_dtype(n_columns: int) -> np.dtype[Any]:
    """The stored parts of a line: two halves of the hash of its basket, its item, its count.

    Items, and the values of the row columns, are indices into the tables of the job; -1 is missing.
    """
    columns = ("columns", "<i4", (n_columns,))
    return np.dtype([("basket", "<u8", (2,)), ("item", "<i4"), ("count", "<f8"), columns])


@dataclass(frozen=True)
class Dealing:
    """Assignment of baskets to shards: a function of the label and the seed.

    n_test : shards of held-out baskets, which come after the `n_shards` of training baskets
    held_out : share of the baskets that is held out
    together : row column whose rows share a shard, None if every basket is assigned on its own
    """

    n_shards: int
    n_test: int
    held_out: float
    seed: int
    together: str | None = None

    def hash(self, labels: Iterable[bytes]) -> NDArray[np.uint64]:
        """128 bits of each label, in two columns."""
        salt = self.seed.to_bytes(8, "little")
        digests = b"".join(
            hashlib.blake2b(label, digest_size=16, salt=salt).digest() for label in labels
        )
        return np.frombuffer(digests, dtype="<u8").reshape(-1, 2)

    def shard(
        self, hashes: NDArray[np.uint64], group: NDArray[np.uint64] | None = None
    ) -> NDArray[np.int64]:
        """The shard of each basket; `group` are the hashes of what must stay together."""
        dealt = hashes if group is None else group
        shards = (dealt[:, 0] % np.uint64(self.n_shards)).astype(np.int64)
        if self.n_test:
            held = hashes[:, 1] < np.uint64(int(self.held_out * 2.0**63) * 2)
            test = hashes[:, 0] % np.uint64(self.n_test)
            shards[held] = self.n_shards + test[held].astype(np.int64)
        return shards


@dataclass(frozen=True)
class PieceJob:
    """Some files (or one table) that are cut into pieces.

    folder : folder for the pieces of the job
    """

    files: tuple[str, ...]
    columns: LineColumns
    dealing: Dealing
    folder: Path
    separator: str | None = None
    encoding: str = "utf-8"
    header: Sequence[str] | None = None
    net: bool = False
    on_bad: str = "error"
    table: Any = field(default=None, repr=False)


class Account(BadLines):
    """Counts every dropped line under its first problem only, so that the numbers add up."""

    def __init__(self, source: str, unit: str) -> None:
        super().__init__(source, unit)
        self.dropped: Counter[str] = Counter()
        self.lines = self.stored = 0
        self._places: NDArray[np.int64] | None = None
        self._counted: NDArray[np.bool_] = np.empty(0, dtype=bool)

    def open_batch(self, batch: Batch) -> Batch:
        """The batch, with its lines numbered from 0 in `places`."""
        n_lines = len(batch.places)
        self.lines += n_lines
        self._places, self._counted = batch.places, np.zeros(n_lines, dtype=bool)
        return Batch(batch.columns, np.arange(n_lines))

    def close_batch(self, stored: int) -> None:
        """Count the lines of the batch that were stored."""
        self.stored += stored
        self._places = None

    def add(self, problem: str, places: Any, example: str = "") -> None:
        """Record `problem` at `places`, which number the lines of an open batch."""
        if self._places is not None:
            lines = np.asarray(places, dtype=np.int64)
            new = lines[~self._counted[lines]]
            self._counted[new] = True
            if len(new):
                self.dropped[problem] += len(new)
            places = self._places[lines]
        super().add(problem, places, example)

    def leave_out(self, problem: str, place: int) -> None:
        """Record a line that could not be split into cells."""
        self.lines += 1
        self.dropped[problem] += 1
        super().leave_out(problem, place)


def cut_pieces(job: PieceJob) -> dict[str, Any]:
    """Run a job; its summary is also written beside the pieces, and marks them as complete."""
    summary, labels = (_read_json(job.folder / name) for name in (SUMMARY, LABELS))
    if summary is not None and labels is not None:
        return summary | labels
    with explain_full_disk(job.folder):
        try:
            return _cut(job, plain=False)
        except NeedsTextReaderError:
            return _cut(job, plain=True)


def _read_json(path: Path) -> dict[str, Any] | None:
    """The contents of a file, None if it is missing or damaged."""
    try:
        body: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return body


def read_piece(folder: Path, shard: int) -> NDArray[Any]:
    """The lines of a job that belong to a shard; a file that has changed is an error."""
    summary = _read_json(folder / SUMMARY)
    if summary is None:
        raise DataError(f"{folder} holds no complete pieces: prepare the store again")
    expected = summary["sha256"].get(str(shard))
    dtype = line_dtype(summary["n_columns"])
    if expected is None:
        return np.empty(0, dtype=dtype)
    path = folder / f"{shard}.lines"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if hashlib.sha256(content).hexdigest() != expected:
        raise DataError(
            f"{path} is damaged: its checksum does not match; delete {folder} and prepare the "
            "store again"
        )
    return np.frombuffer(content, dtype=dtype)


@dataclass(frozen=True)
class _Tables:
    """Labels of the items and of the values of each row column, in the order of a job."""

    items: LabelTable
    columns: dict[str, LabelTable]


def _cut(job: PieceJob, *, plain: bool) -> dict[str, Any]:
    job.folder.parent.mkdir(parents=True, exist_ok=True)
    partial = temporary_name(job.folder, "partial")
    partial.mkdir()
    try:
        writer = _Writer(partial)
        columns = {name: LabelTable(NO_LABEL) for name in job.columns.rows}
        tables = _Tables(LabelTable(NO_LABEL), columns)
        account = _read_job(job, writer, tables, plain=plain)
        writer.flush()
        summary = {
            "lines": account.lines,
            "stored": account.stored,
            "dropped": dict(sorted(account.dropped.items())),
            "n_columns": len(columns),
            "sha256": {str(s): digest.hexdigest() for s, digest in writer.digests.items()},
        }
        labels = {
            "items": tables.items.labels,
            "columns": {name: table.labels for name, table in columns.items()},
        }
        for name, body in ((LABELS, labels), (SUMMARY, summary)):
            (partial / name).write_text(json.dumps(body), encoding="utf-8")
        with suppress(OSError):  # another copy of the task finished first, with the same bits
            os.rename(partial, job.folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return summary | labels


def _read_job(job: PieceJob, writer: _Writer, tables: _Tables, *, plain: bool) -> Account:
    name = job.files[0] if job.files else "the table"
    others = f" and {len(job.files) - 1:,} further files" if len(job.files) > 1 else ""
    account = Account(f"{name}{others}", "line" if job.files else "row")
    numbers, places_known = CountTable(), True
    for source in _sources(job, plain=plain):
        places_known &= source.knows_places
        account.file = source.name if len(job.files) > 1 else ""
        with _named(source.name):
            batches = source.batches(job.columns.wanted, job.columns.numeric, account, _ignore)
            for batch in batches:
                lines, shards = _lines_of(account.open_batch(batch), job, tables, numbers, account)
                account.close_batch(len(lines))
                writer.add(lines, shards)
    if account and job.on_bad == "error":
        if not places_known:
            raise NeedsTextReaderError("bad lines")
        raise account.error('Correct them, or leave them out with on_bad="drop"')
    return account


def _lines_of(
    batch: Batch, job: PieceJob, tables: _Tables, numbers: CountTable, account: Account
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The usable lines of a batch and their shards; basket labels are not kept."""
    columns = {name: BasketColumn(table) for name, table in tables.columns.items()}
    keys = KeyTable(len(job.columns.keys), NO_LABEL)
    collected = Collected(columns, keys, job.net, tables.items)
    baskets, codes, counts = usable_lines(collected, batch, job.columns, numbers, account)
    lines = np.empty(len(baskets), dtype=line_dtype(len(columns)))
    hashes = job.dealing.hash(str(label).encode() for label in keys.labels)
    lines["basket"], lines["item"], lines["count"] = hashes[baskets], codes, counts
    for place, column in enumerate(columns.values()):
        lines["columns"][:, place] = column.codes[baskets]
    if job.dealing.together is None:
        return lines, job.dealing.shard(hashes)[baskets]
    column = columns[job.dealing.together]
    labels = [*column.table.labels, None]  # None: no line of the basket could be used
    group = job.dealing.hash(str(labels[code]).encode() for code in column.codes)
    return lines, job.dealing.shard(hashes, group)[baskets]


def _sources(job: PieceJob, *, plain: bool) -> Iterator[Source]:
    if not job.files:
        yield table_of(job.table)
        return
    for name in job.files:
        context = fetch(name) if is_remote(name) else nullcontext(Path(name))
        with context as path:
            with _named(name):  # it may have been deleted since it was listed
                empty = path.stat().st_size == 0
            if empty:  # a partition without rows
                continue
            ways = file_sources(path, job.separator, job.encoding, job.header)
            yield ways[-1] if plain else ways[0]


def table_of(table: Any) -> Source:
    """The source for a table in memory, or for the partitions of a Dask data frame in turn."""
    if not is_dask_frame(table):
        return table_source(table)
    partitions = (table.partitions[i].compute() for i in range(table.npartitions))
    return SeveralTables(frame for frame in partitions if len(frame))


def is_dask_frame(table: Any) -> bool:
    """Whether `table` is a data frame of Dask; does not import dask."""
    package = type(table).__module__.partition(".")[0]
    return package in {"dask", "dask_expr"} and hasattr(table, "npartitions")


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Add the name of a file to its errors."""
    try:
        yield
    except NeedsTextReaderError:
        raise
    except (DataError, InputTypeError) as error:
        if name in str(error):
            raise
        raise type(error)(f"{name}: {error}") from error
    except EfembError:
        raise
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error}") from error


def _ignore(step: int) -> None:
    """Ignore progress, which nobody watches within a job."""


class _Writer:
    """Appends lines to the file of their shard, buffered so that files are opened rarely."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: list[tuple[NDArray[Any], NDArray[np.int64]]] = []
        self._n_waiting = 0
        self.digests: dict[int, Any] = {}

    def add(self, lines: NDArray[Any], shards: NDArray[np.int64]) -> None:
        self._waiting.append((lines, shards))
        self._n_waiting += len(lines)
        if self._n_waiting >= PENDING:
            self.flush()

    def flush(self) -> None:
        if not self._n_waiting:
            return
        lines, shards = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        self._waiting, self._n_waiting = [], 0
        order = np.argsort(shards, kind="stable")
        lines, shards = lines[order], shards[order]
        edges = np.flatnonzero(np.r_[True, shards[1:] != shards[:-1], True])
        for start, end in pairwise(edges):
            shard, content = int(shards[start]), lines[start:end].tobytes()
            self.digests.setdefault(shard, hashlib.sha256()).update(content)
            with (self._folder / f"{shard}.lines").open("ab") as file:
                file.write(content)
