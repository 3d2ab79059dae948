"""Timers, peak memory, repeats and other processes: what every scenario measures with."""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import THREADS
from benchmarks.reporting import Report, Settings, Spread

__all__ = [
    "Mark",
    "Report",
    "Settings",
    "Spread",
    "Timing",
    "Watch",
    "Watched",
    "fit_watched",
    "in_new_process",
    "interleaved",
    "one_thread",
    "peak_memory",
    "run_python",
    "serve",
    "sgemm_rate",
    "stopwatch",
]

ROOT = Path(__file__).resolve().parent
Answer = TypeVar("Answer")


# -- time ------------------------------------------------------------------------------------------


@dataclass
class Timing:
    """Seconds of a block of code; CPU-seconds are those of all threads of the process."""

    cpu: float = 0.0
    wall: float = 0.0


@contextmanager
def stopwatch() -> Iterator[Timing]:
    """Time the block; the timing is filled when it ends."""
    timing = Timing()
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        yield timing
    finally:
        timing.cpu, timing.wall = time.process_time() - cpu, time.perf_counter() - wall


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS and OpenMP at one thread, so that CPU-seconds are those of one core."""
    with threadpool_limits(limits=1):
        yield


def sgemm_rate(size: int = 2048, repeats: int = 5) -> float:
    """GFLOP/s of a float32 matrix product on one core: the machine's own yardstick."""
    left, right = np.random.default_rng(0).random((2, size, size), dtype=np.float32)
    out = np.empty_like(left)
    seconds = []
    with one_thread():
        np.matmul(left, right, out=out)
        for _ in range(repeats):
            with stopwatch() as timing:
                np.matmul(left, right, out=out)
            seconds.append(timing.cpu)
    return 2.0 * size**3 / statistics.median(seconds) / 1e9


def interleaved(jobs: Mapping[str, Callable[[], Answer]], repeats: int) -> dict[str, list[Answer]]:
    """Run all jobs in turn, several times: a slow minute of the machine hits all of them alike."""
    found: dict[str, list[Answer]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            found[name].append(job())
    return found


# -- fits ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mark:
    """A validation score and what it had cost since the call of `fit`."""

    iteration: int
    score: float
    cpu: float
    wall: float


@dataclass
class Watch:
    """A callback that remembers when each iteration ended and each validation score came."""

    marks: list[Mark] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cpu, self.wall = time.process_time(), time.perf_counter()

    def __call__(self, progress: Any) -> None:
        """Note the time; called by `fit`."""
        self.note(progress.iteration, progress.validation)

    def note(self, iteration: int, score: float | None) -> None:
        """Note the time of an iteration."""
        cpu = time.process_time() - self.cpu
        self.ends.append(cpu)
        if score is not None:
            self.marks.append(Mark(iteration, score, cpu, time.perf_counter() - self.wall))

    def best(self) -> Mark:
        """The best validation score."""
        return max(self.marks, key=lambda mark: mark.score)

    def reaching(self, score: float) -> Mark | None:
        """The first validation score of at least `score`."""
        return next((mark for mark in self.marks if mark.score >= score), None)

    def per_pass(self) -> float:
        """Median CPU-seconds of a pass, the first (which includes the preparation) left out."""
        return float(np.median(np.diff(self.ends)))


@dataclass(frozen=True)
class Watched:
    """A fitted estimator, its watch and its whole cost."""

    model: Any
    watch: Watch
    timing: Timing
    converged: bool


def fit_watched(model: Any, X: Any, **options: Any) -> Watched:
    """Fit with a watch; a fit that ends at max_iter is no error here."""
    watch = Watch()
    model.set_params(callbacks=[watch])
    with warnings.catch_warnings(record=True) as caught, stopwatch() as timing:
        warnings.simplefilter("always")
        model.fit(X, **options)
    return Watched(model, watch, timing, not any("max_iter" in str(w.message) for w in caught))


# -- other processes -------------------------------------------------------------------------------


def peak_memory() -> int | None:
    """Largest resident size of this process so far in bytes, None where the system hides it."""
    try:  # The Linux figure of getrusage would count the parent from which we were started.
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        pass
    try:
        import resource
    except ImportError:
        return None
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(size if sys.platform == "darwin" else size * 1024)


def in_new_process(function: Callable[..., dict[str, Any]], **options: Any) -> dict[str, Any]:
    """Call a function of this package in a fresh process; adds `peak_bytes` to its answer."""
    name = f"{function.__module__}:{function.__qualname__}"
    code = "from benchmarks.harness import serve; serve()"
    found = run_python(code, json.dumps({"name": name, "options": options}))
    return dict(json.loads(found))


def serve() -> None:
    """Answer one call of `in_new_process`."""
    asked = json.loads(sys.argv[1])
    module, function = asked["name"].split(":")
    with one_thread():
        answer = getattr(importlib.import_module(module), function)(**asked["options"])
    print(json.dumps({**answer, "peak_bytes": peak_memory()}))


def run_python(code: str, *arguments: str) -> str:
    """Last line that a new interpreter prints for `code`."""
    path = os.pathsep.join([str(ROOT.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **dict.fromkeys(THREADS, "1"), "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.strip().splitlines()[-1]
