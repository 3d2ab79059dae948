"""`make bench-compare BASE=<rev>`: time a base revision and this tree in one job, in turn."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from scipy.sparse import vstack

from benchmarks import THREADS
from benchmarks.data import Counts, baskets
from benchmarks.reporting import Settings, Spread
from benchmarks.revision_jobs import JOBS, PEAK, SCORE, WHOLE_FIT

ROOT = Path(__file__).resolve().parent.parent
SLOWER = 1.03  # times as much in the median turn, and more in all, is called a regression
Figures = dict[str, tuple[list[float], list[float]]]


def main(arguments: list[str] | None = None) -> int:
    """1 if a job became slower, or needs more memory."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare_revisions")
    parser.add_argument("base", help="revision to compare this tree with")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=[""], help="parts of the names of jobs")
    parser.add_argument("--share", type=float, default=1.0, help="of the full size of the data")
    parser.add_argument(
        "--trips",
        action="store_true",
        help="instead of the jobs: the model that each revision recommends for trips (before "
        "BasketEmbedding: PoissonEmbedding), K=100, on Complete Journey",
    )
    parser.add_argument("--data", type=Path, help="folder of the trips (default: EFEMB_DATA)")
    asked = parser.parse_args(arguments)
    names = [name for name in JOBS if any(part in name for part in asked.only)]
    if not names:
        parser.error(f"no job has {asked.only} in its name; jobs: {', '.join(JOBS)}")
    with check_out(asked.base) as base:
        sources = (base / "src", ROOT / "src")
        if not asked.trips:
            return report(measure_in_turn(sources, names, asked.repeats, asked.share), asked.base)
        trips = baskets(Settings(data=asked.data))
        figures, scores = fit_in_turn(sources, trips, asked.repeats)
    worse = report(figures, asked.base)
    print(f"{SCORE:<34}{scores[0]:>12.3f}{scores[1]:>12.3f}")
    return worse


@contextmanager
def check_out(revision: str) -> Iterator[Path]:
    """A worktree of another revision, removed in the end."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "base"
        command = ["git", "worktree", "add", "--detach", "--quiet", str(tree), revision]
        subprocess.run(command, cwd=ROOT, check=True)
        try:
            yield tree
        finally:
            remove = ["git", "worktree", "remove", "--force", str(tree)]
            subprocess.run(remove, cwd=ROOT, check=True)


def measure_in_turn(
    sources: tuple[Path, Path], names: list[str], repeats: int, share: float
) -> Figures:
    """Every figure of both revisions, in turn: a slow minute hits both alike."""
    for source in sources:  # compiling takes time and memory, and the base is a fresh checkout
        run_jobs(source, names, 0.01, "--turns", "1")
    figures: Figures = {name: ([], []) for name in (*names, PEAK)}
    for _ in range(repeats):
        for side, source in enumerate(sources):
            for name, value in run_jobs(source, names, share).items():
                figures[name][side].append(value)
    return figures


def fit_in_turn(
    sources: tuple[Path, Path], trips: Counts, repeats: int
) -> tuple[Figures, tuple[float, ...]]:
    """Whole fits of the recommended models in turn, and their scores of all test trips."""
    figures: Figures = {WHOLE_FIT: ([], [])}
    with tempfile.TemporaryDirectory() as folder:
        few, whole = (str(Path(folder) / f"{name}.npz") for name in ("few", "whole"))
        write_trips(few, trips, 6000)  # compiles the kernels
        write_trips(whole, trips)
        for source in sources:
            run_script(source, "--trips", few)
        scores = []
        for turn in range(repeats):
            for side, source in enumerate(sources):
                scored = ["--score"] if turn == 0 else []
                answer = run_script(source, "--trips", whole, *scored)
                figures[WHOLE_FIT][side].append(answer[WHOLE_FIT])
                scores += [answer[SCORE]] if scored else []
    return figures, tuple(scores)


def write_trips(path: str, trips: Counts, most: int | None = None) -> None:
    """The file that `fit_trips` of the jobs reads; most : rows of each part."""
    parts = [part[:most] for part in (trips.train, trips.validation, trips.test)]
    cells, starts = vstack(parts).tocoo(), np.cumsum([0, *(part.shape[0] for part in parts)])
    columns = {"row": cells.row, "item": cells.col, "count": cells.data, "starts": starts}
    np.savez(path, **columns, shape=cells.shape)


def run_jobs(source: Path, names: list[str], share: float, *options: str) -> dict[str, float]:
    """Figures of the jobs with the package in `source`."""
    return run_script(source, *names, "--share", str(share), *options)


def run_script(source: Path, *options: str) -> dict[str, float]:
    """What `revision_jobs` prints with the package in `source`, in a process of its own."""
    # Safe path (-P): this folder has modules of common names.
    script = Path(__file__).with_name("revision_jobs.py")
    environment = {**os.environ, **dict.fromkeys(THREADS, "1"), "PYTHONPATH": str(source)}
    # As an installed package has its bytecode; else a start would measure the compiler of Python.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    # What is freed is kept: else whether pages are touched anew, which takes as long as the work of
    # short jobs, depends on the sizes that a process happened to free before.
    environment |= {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 31)}
    done = subprocess.run(
        [sys.executable, "-P", str(script), str(source), *options],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def report(figures: Figures, base: str) -> int:
    """Print a table; 1 if something is worse in every turn."""
    worse = 0
    print(f"{'CPU-seconds':<34}{base:>12}{'here':>12}  ratio in the same turn")
    for name, (before, now) in figures.items():
        turns = Spread.of([new / old for old, new in zip(before, now, strict=True)])
        verdict = "WORSE" if turns.median > SLOWER and turns.low > 1 else ""
        worse += bool(verdict)
        old, new = statistics.median(before), statistics.median(now)
        print(f"{name:<34}{old:>12.3f}{new:>12.3f}  {turns}  {verdict}".rstrip())
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main())
