"""Timers, peak memory, repeats, tables and result files: what every scenario measures with."""

from __future__ import annotations

import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parent
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Settings:
    """What the command line asked for."""

    quick: bool = False
    data: Path | None = None
    repeats: int = 3
    seeds: tuple[int, ...] = (0, 1, 2)
    reference: Path | None = None
    large: bool = False


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


@dataclass(frozen=True)
class Spread:
    """Median of repeated figures and how far they lie apart."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        """Summarise repeats."""
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        return f"{number(self.median)} [{number(self.low)} .. {number(self.high)}]"


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
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.strip().splitlines()[-1]


# -- results ---------------------------------------------------------------------------------------


def number(value: float) -> str:
    """Four significant digits without exponents for everyday sizes."""
    if value == 0 or not np.isfinite(value):
        return str(value)
    digits = max(0, 3 - int(np.floor(np.log10(abs(value)))))
    return f"{value:,.{min(digits, 6)}f}"


class Report:
    """Rows of a table, printed as they come, and a JSON file in the end.

    Targets hold for the full data only; a quick run shows figures without a verdict.
    """

    def __init__(self, scenario: str, settings: Settings) -> None:
        self.scenario, self.settings = scenario, settings
        self.rows: list[dict[str, Any]] = []
        size = "quick, simulated stand-ins" if settings.quick else "full"
        print(f"\n== {scenario} ({size})", flush=True)

    def add(
        self,
        what: str,
        value: float | Spread | str,
        *,
        at_most: float | None = None,
        at_least: float | None = None,
        beside: float | str | None = None,
    ) -> None:
        """One figure, with what it should be and what it is compared with."""
        plain = value.median if isinstance(value, Spread) else value
        met: bool | None = None
        if not self.settings.quick and isinstance(plain, float | int):
            low = -np.inf if at_least is None else at_least
            high = np.inf if at_most is None else at_most
            met = bool(low <= plain <= high) if (at_least, at_most) != (None, None) else None
        row = {"what": what, "value": value, "at_least": at_least, "at_most": at_most}
        kept = asdict(value) if isinstance(value, Spread) else value
        if isinstance(kept, float) and not np.isfinite(kept):
            kept = str(kept)  # JSON has no infinity
        self.rows.append({**row, "value": kept, "beside": beside, "met": met})
        shown = number(value) if isinstance(value, float | int) else str(value)
        print(_line(self.rows[-1], shown), flush=True)

    def save(self) -> Path:
        """Write the rows to benchmarks/results/."""
        folder = ROOT / "results"
        folder.mkdir(exist_ok=True)
        path = folder / f"{self.scenario}{'-quick' if self.settings.quick else ''}.json"
        machine = {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "processor": platform.machine(),
            "cores": os.cpu_count(),
        }
        content = {"scenario": self.scenario, "machine": machine, "rows": self.rows}
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        return path


def _is_number(value: object) -> bool:
    return isinstance(value, float | int)


def _line(row: dict[str, Any], value: str) -> str:
    beside, notes = row["beside"], []
    if beside is not None:
        notes.append(f"beside {number(beside) if _is_number(beside) else beside}")
    if not (row["at_least"] is None and row["at_most"] is None):
        sign, bound = (">=", row["at_least"]) if row["at_most"] is None else ("<=", row["at_most"])
        verdict = {True: "ok", False: "MISS", None: "full run only"}[row["met"]]
        notes.append(f"target {sign} {number(bound)}: {verdict}")
    return f"{row['what']:<62} {value:>12}  {'; '.join(notes)}".rstrip()
