"""Jobs: the steps of a study, run one after another; finished ones are read back from disk."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from efemb import __version__
from efemb._files import complete_or_absent, open_regular
from efemb.engine.interrupt import interrupt_at_once
from efemb.engine.threads import one_blas_thread
from efemb.storage.folder import sha256
from efemb.table import Table

Found = tuple[dict[str, Any], dict[str, Any]]


@dataclass(frozen=True)
class Job:
    """One step of a study; its file name depends on settings and version: a change runs it again.

    study, label : the study it belongs to, and the name that people see
    settings : everything that the result depends on, as JSON
    work : returns (figures as JSON, arrays by name)
    """

    study: str
    label: str
    settings: Mapping[str, Any]
    work: Callable[[], Found] = field(repr=False, compare=False)

    @property
    def key(self) -> str:
        """Name of the files that hold the result."""
        identity = [__version__, self.study, self.label, dict(self.settings)]
        text = json.dumps(identity, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Outcome:
    """The result of a job; `seconds` is how long it took when it ran."""

    job: Job
    figures: dict[str, Any]
    arrays: dict[str, Any] = field(repr=False)
    seconds: float


class Runner:
    """Runs jobs and stores their results in a folder, so that an interrupted study can resume.

    Parameters
    ----------
    folder : Path
        Each result is stored as two files: figures (JSON) and arrays (NPZ, no pickle).
    announce : function of (text, done, total), optional
        Called before each job.
    """

    def __init__(
        self, folder: Path, announce: Callable[[str, int, int], None] | None = None
    ) -> None:
        self.folder, self.announce = folder, announce

    def run(self, jobs: Iterable[Job], at_once: int = 1) -> list[Outcome]:
        """Results in the order of the jobs; `at_once` of them run at the same time, in threads."""
        todo = list(jobs)
        outcomes: dict[int, Outcome] = {}

        def finish(number: int) -> None:
            job = todo[number]
            if self.announce is not None:
                self.announce(f"{job.study}: {job.label}", len(outcomes), len(todo))
            earlier = self._read(job)
            outcomes[number] = self._do(job) if earlier is None else earlier

        if at_once == 1:
            for number in range(len(todo)):
                finish(number)
        else:
            with one_blas_thread, ThreadPoolExecutor(at_once) as pool:
                try:
                    list(pool.map(finish, range(len(todo))))
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
        return [outcomes[number] for number in range(len(todo))]

    def _do(self, job: Job) -> Outcome:
        start = time.perf_counter()
        with interrupt_at_once():  # a stored result must be complete
            figures, arrays = job.work()
        seconds = time.perf_counter() - start
        # Arrays first: if the figures are on disk, the whole result is.
        with complete_or_absent(self._file(job, "npz")) as stream:
            np.savez_compressed(stream, **arrays)
        record: dict[str, Any] = {
            "study": job.study,
            "label": job.label,
            "settings": dict(job.settings),
            "seconds": seconds,
            "figures": figures,
            "sha256": sha256(self._file(job, "npz")),
        }
        record["checksum"] = _checksum(record)
        with complete_or_absent(self._file(job, "json")) as stream:
            stream.write(_written(record))
        return Outcome(job, figures, arrays, seconds)

    def _read(self, job: Job) -> Outcome | None:
        """The result of an earlier run; None if there is none, or if it changed since."""
        try:
            with open_regular(self._file(job, "json")) as stream:
                text = stream.read()
            record = json.loads(text)
            # As written, too: a changed digit may be beyond the precision of its number.
            if not isinstance(record, dict) or _written(record) != text:
                return None
            if record.pop("checksum", "") != _checksum(record):
                return None
            with open_regular(self._file(job, "npz")) as stream:
                content = stream.read()
        except (OSError, ValueError, RecursionError):
            return None
        # Checked before it is parsed: damaged archives raise errors of every kind.
        if hashlib.sha256(content).hexdigest() != record["sha256"]:
            return None
        with np.load(BytesIO(content)) as file:
            arrays = {name: file[name] for name in file.files}
        return Outcome(job, record["figures"], arrays, float(record["seconds"]))

    def _file(self, job: Job, kind: str) -> Path:
        return self.folder / job.study / f"{job.key}.{kind}"


def _written(record: dict[str, Any]) -> bytes:
    return json.dumps(record, indent=1, sort_keys=True).encode()


def _checksum(record: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


class Later:
    """A value that is computed when first needed, which may be never in a resumed study."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._made = make, False
        self._lock = threading.Lock()  # jobs may run in parallel

    @property
    def value(self) -> Any:
        """The value."""
        with self._lock:
            if not self._made:
                self._value, self._made = self._make(), True
        return self._value


# -- tables in result files: written next to the fit, shown in the report -------------------------


def pack_table(name: str, table: Table) -> dict[str, Any]:
    """A table as arrays for a result file; text without pickle."""
    arrays = {}
    for column in table.columns:
        values = table[column]
        arrays[f"{name}/{column}"] = values.astype(str) if values.dtype.kind == "O" else values
    return arrays


def unpack_table(name: str, arrays: dict[str, Any]) -> Table:
    """Undo `pack_table`."""
    start = f"{name}/"
    return Table({key[len(start) :]: arrays[key] for key in arrays if key.startswith(start)})
