"""ShardStore: rows on disk in shards, memory-mapped, each file with a checksum."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efemb._files import check_path, check_writable, complete_or_absent
from efemb.data.array_checks import make_csr
from efemb.data.corpus import Corpus
from efemb.data.dataset import Dataset
from efemb.data.vocabulary import Vocabulary
from efemb.errors import DataError, ParameterError

FORMAT, VERSION = "efemb shards", 1
MANIFEST, VOCABULARY, BUILDING = "manifest.json", "vocabulary.json", ".building"
ROWS = "rows.json"  # labels of the values of row columns


@dataclass(frozen=True)
class ShardFiles:
    """The files of a shard.

    n_rows : rows (of a text: documents);  n_entries : stored numbers
    arrays : file (relative to the store) and checksum of each array
    """

    n_rows: int
    n_entries: int
    arrays: dict[str, dict[str, str]]


@dataclass(frozen=True)
class RowLabels:
    """Row columns of a store.

    labels : labels of the values of each column, in the order of their codes
    together : column whose rows share a shard, None if rows are assigned one by one
    """

    labels: Mapping[str, Sequence[Any]]
    together: str | None


@dataclass(frozen=True)
class ShardStore:
    """Rows in shards on disk, made by `efemb.shards.prepare`.

    Parameters
    ----------
    path : path of the folder
    kind : {"baskets", "text", "recording"}
        Kind of the rows.
    shards : sequence of ShardFiles
        Training rows.
    test_shards : sequence of ShardFiles
        Rows that were held out when the store was made; `test` is a store of them.
    checksum : str
        Checksum of the contents: equal for stores with the same bits.
    report : dict
        The account of every line: read, stored, and dropped by reason.
    columns : tuple of str, default=()
        Names of the row columns.
    together : str, optional
        Row column whose rows share a shard.
    """

    path: Path
    kind: str
    shards: tuple[ShardFiles, ...]
    test_shards: tuple[ShardFiles, ...]
    checksum: str
    report: dict[str, Any]
    columns: tuple[str, ...] = ()
    together: str | None = None

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> ShardStore:
        """Read the manifest; files are verified when their shard is read."""
        folder = check_path(path, "a store is a folder: pass its path")
        body = _read_manifest(folder)
        files = {
            name: tuple(ShardFiles(**shard) for shard in body[name])
            for name in ("shards", "test_shards")
        }
        known = (body["checksum"], body["report"])
        rows = body.get("rows", {"columns": [], "together": None})
        columns = (tuple(rows["columns"]), rows["together"])
        return cls(folder, body["kind"], files["shards"], files["test_shards"], *known, *columns)

    def __getstate__(self) -> dict[str, Any]:
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @property
    def entities(self) -> Vocabulary:
        """The same as `vocabulary`."""
        return self.vocabulary

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return len(self.shards)

    @property
    def n_rows(self) -> int:
        """Number of rows of all shards; for text, of documents."""
        return sum(shard.n_rows for shard in self.shards)

    @property
    def n_entries(self) -> int:
        """Number of stored numbers of all shards; for text, of words."""
        return sum(shard.n_entries for shard in self.shards)

    @property
    def n_entities(self) -> int:
        """Number of items, words or cells."""
        return len(self.vocabulary)

    @property
    def test(self) -> ShardStore:
        """The rows that were held out."""
        if not self.test_shards:
            raise DataError(f"{self.path} holds no test rows: prepare it with held_out=0.05")
        return replace(self, shards=self.test_shards, test_shards=())

    @property
    def vocabulary(self) -> Vocabulary:
        """Labels of the entities, with their counts over the training rows."""
        return _read_vocabulary(self.path, self.checksum)

    def shard(self, number: int) -> Dataset | Corpus:
        """The rows of a shard, memory-mapped; a file that has changed is an error."""
        files = self.shards[number].arrays
        arrays = {name: self._array(number, name) for name in files}
        if self.kind == "text":
            return Corpus(arrays["tokens"], arrays["starts"], self.vocabulary)
        if self.kind == "recording":
            return Dataset(arrays["values"], entities=self.vocabulary, positions=self._positions)
        shape = (len(arrays["indptr"]) - 1, self.n_entities)
        triple = (arrays["values"], arrays["indices"], arrays["indptr"])
        rows = self._rows(arrays.get("columns"))
        return Dataset(make_csr(triple, shape=shape), entities=self.vocabulary, rows=rows)

    def columns_of_rows(self) -> Dataset:
        """All rows with their columns, but without their entries."""
        shards = [number for number, shard in enumerate(self.shards) if shard.n_rows]
        codes = np.concatenate([self._array(number, "columns") for number in shards])
        ends: NDArray[np.int32] = np.zeros(len(codes) + 1, dtype=np.int32)
        nothing = (np.empty(0, dtype=np.float32), np.empty(0, dtype=np.int32), ends)
        values = make_csr(nothing, shape=(len(codes), self.n_entities))
        return Dataset(values, entities=self.vocabulary, rows=self._rows(codes))

    def _rows(self, codes: NDArray[np.int32] | None) -> dict[str, NDArray[Any]]:
        """Row columns by name; None for missing values."""
        if codes is None:
            return {}
        labels = _read_row_labels(self.path, self.checksum)
        return {name: labels[name][codes[:, column]] for column, name in enumerate(self.columns)}

    @cached_property
    def _positions(self) -> NDArray[Any] | None:
        positions = self.report.get("positions")
        return None if positions is None else np.asarray(positions)

    def _array(self, number: int, name: str) -> NDArray[Any]:
        entry = self.shards[number].arrays[name]
        path = self.path / entry["file"]
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != entry["sha256"]:
                raise DataError(
                    f"shard {number} of {self.path} is damaged: the checksum of {path.name} does "
                    "not match; prepare the store again in another folder, or restore the file"
                )
            array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
            return array
        except (OSError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"shard {number} of {self.path} cannot be read: {path.name}: {error}"
            ) from error

    def _content(self) -> dict[str, Any]:
        """Everything that a fit depends on, for checksums."""
        return {"store": self.checksum, "shards": [shard.arrays for shard in self.shards]}

    def __repr__(self) -> str:
        rows = "documents" if self.kind == "text" else "rows"
        return (
            f"ShardStore({str(self.path)!r}, {self.kind}: {self.n_rows:,} {rows} x "
            f"{self.n_entities:,} entities, {self.n_entries:,} entries in {self.n_shards} shards)"
        )


def check_new(path: Path) -> None:
    """Reject a folder that is not writable, or already holds a store."""
    check_writable(path)
    if (path / MANIFEST).exists():
        raise ParameterError(f"{path} holds a store already: choose another folder, or delete it")


def write_array(array: NDArray[Any], path: Path) -> str:
    """Write an array completely or not at all, and return its checksum."""
    with complete_or_absent(path) as stream:
        np.save(stream, np.ascontiguousarray(array), allow_pickle=False)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_shard(
    folder: Path, name: str, n_rows: int, n_entries: int, arrays: Mapping[str, NDArray[Any]]
) -> ShardFiles:
    """Write the arrays of a shard into `folder`."""
    files = {}
    for part, array in arrays.items():
        path = folder / f"{name}.{part}.npy"
        files[part] = {"file": f"shards/{path.name}", "sha256": write_array(array, path)}
    return ShardFiles(n_rows, n_entries, files)


def write_manifest(
    folder: Path,
    kind: str,
    vocabulary: tuple[Sequence[Any], Sequence[float]],
    shards: Sequence[ShardFiles],
    test_shards: Sequence[ShardFiles],
    report: Mapping[str, Any],
    rows: RowLabels | None = None,
) -> None:
    """Complete a store; without a manifest it counts as being written."""
    labels, counts = vocabulary
    content_of_vocabulary = {"labels": list(labels), "counts": [float(count) for count in counts]}
    body = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "vocabulary": _write_checked(folder / VOCABULARY, content_of_vocabulary),
        "shards": [vars(shard) for shard in shards],
        "test_shards": [vars(shard) for shard in test_shards],
        "report": dict(report),
    }
    if rows is not None:
        digest = _write_checked(folder / ROWS, {n: list(own) for n, own in rows.labels.items()})
        names = {"columns": list(rows.labels), "together": rows.together}
        body["rows"] = {**names, "sha256": digest}
    body["checksum"] = hashlib.sha256(_render(body)).hexdigest()
    with complete_or_absent(folder / MANIFEST) as stream:
        stream.write(_render(body))


def _render(body: Any) -> bytes:
    return (json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        body: Any = json.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError as error:
        if (folder / BUILDING).is_dir():
            raise DataError(
                f"{folder} is being written, or its preparation was interrupted: wait, or call "
                "efemb.shards.prepare again with the same arguments to complete it"
            ) from error
        raise DataError(
            f"{folder} is not a store: it has no {MANIFEST}; make one with efemb.shards.prepare"
        ) from error
    except (OSError, ValueError) as error:
        raise DataError(f"{folder / MANIFEST} cannot be read: {error}") from error
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise DataError(f"{folder} is not a store: its {MANIFEST} was written by another program")
    if body.get("version") != VERSION:
        raise DataError(
            f"{folder} has format {body.get('version')}, this efemb reads {VERSION}: prepare it "
            "again"
        )
    claimed = body.pop("checksum", None)
    if claimed != hashlib.sha256(_render(body)).hexdigest():
        raise DataError(f"{folder / MANIFEST} is damaged: its checksum does not match")
    return {**body, "checksum": claimed}


@lru_cache(maxsize=4)
def _read_vocabulary(folder: Path, checksum: str) -> Vocabulary:
    """The labels, read only once per process."""
    content = _read_checked(folder / VOCABULARY, _read_manifest(folder)["vocabulary"])
    known = json.loads(content)
    return Vocabulary(known["labels"], counts=known["counts"])


@lru_cache(maxsize=4)
def _read_row_labels(folder: Path, checksum: str) -> dict[str, NDArray[Any]]:
    """The values of each row column by their codes; the last, for code -1, is None."""
    content = _read_checked(folder / ROWS, _read_manifest(folder)["rows"]["sha256"])
    arrays = {}
    for name, labels in json.loads(content).items():
        arrays[name] = np.empty(len(labels) + 1, dtype=object)
        arrays[name][:-1] = labels
    return arrays


def _write_checked(path: Path, body: Any) -> str:
    content = _render(body)
    with complete_or_absent(path) as stream:
        stream.write(content)
    return hashlib.sha256(content).hexdigest()


def _read_checked(path: Path, expected: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if hashlib.sha256(content).hexdigest() != expected:
        raise DataError(f"{path} is damaged: its checksum does not match; restore it from a copy")
    return content
