"""`make bench-compare BASE=<rev>`: time a base revision and this tree in one job, in turn."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import THREADS
from benchmarks.reporting import Spread
from benchmarks.revision_jobs import JOBS, PEAK

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
    asked = parser.parse_args(arguments)
    names = [name for name in JOBS if any(part in name for part in asked.only)]
    if not names:
        parser.error(f"no job has {asked.only} in its name; jobs: {', '.join(JOBS)}")
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        command = ["git", "worktree", "add", "--detach", "--quiet", str(base), asked.base]
        subprocess.run(command, cwd=ROOT, check=True)
        try:
            sources = (base / "src", ROOT / "src")
            figures = measure_in_turn(sources, names, asked.repeats, asked.share)
        finally:
            remove = ["git", "worktree", "remove", "--force", str(base)]
            subprocess.run(remove, cwd=ROOT, check=True)
    return report(figures, asked.base)


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


def run_jobs(source: Path, names: list[str], share: float, *options: str) -> dict[str, float]:
    """Figures of the package in `source`, in a process of its own."""
    # Safe path (-P): this folder has modules of common names.
    script = Path(__file__).with_name("revision_jobs.py")
    command = [sys.executable, "-P", str(script), str(source), *names, "--share", str(share)]
    done = subprocess.run(
        [*command, *options],
        env={**os.environ, **dict.fromkeys(THREADS, "1"), "PYTHONPATH": str(source)},
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
