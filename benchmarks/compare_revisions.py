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

ROOT = Path(__file__).resolve().parent.parent
SLOWER = 1.1  # times as long in the median turn, and longer in all, is called a regression
# Each job prints CPU-seconds; it must run on any revision, so it only uses the oldest interface.
JOBS = {
    "p-emb, exact zeros, 3 passes": "efemb.PoissonEmbedding(50, max_iter=3, early_stopping=False,"
    " random_state=0).fit(trips)",
    "p-emb, sampled zeros, 3 passes": "efemb.PoissonEmbedding(50, max_iter=3, early_stopping=False,"
    " zeros=efemb.Sampled(256), random_state=0).fit(trips)",
    "ap-emb, 3 passes": "efemb.AdditivePoissonEmbedding(50, max_iter=3, early_stopping=False,"
    " random_state=0).fit(trips)",
    "g-emb, 20 steps": "efemb.GaussianEmbedding(20, max_iter=20, early_stopping=False, tol=0.0,"
    " random_state=0).fit(frames)",
    "CBOW, one epoch": "efemb.BernoulliTextEmbedding(50, max_iter=1, random_state=0).fit(text)",
    "score": "model.score(trips)",
}
CODE = """
import json, statistics, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
import efemb
assert efemb.__file__.startswith(sys.argv[2]), efemb.__file__
trips = efemb.simulate_baskets(n_rows=40_000, n_entities=1_000, n_lines=400_000, seed=0)
rng = np.random.default_rng(0)
frames = rng.normal(size=(1000, 1000))
words = (5_000 * rng.random(1_200_000) ** 3).astype(np.int32)  # some far more often than others
text = efemb.Corpus(words, range(0, 1_200_001, 200), [f"w{n}" for n in range(5_000)])
model = efemb.PoissonEmbedding(50, max_iter=1, early_stopping=False, random_state=0).fit(trips)
jobs, found = json.loads(sys.argv[1]), {}
for name, code in jobs.items():
    exec(code)
    seconds = []
    for _ in range(5):  # jobs are short, and memory comes at a price of its own each time
        start = time.process_time()
        exec(code)
        seconds.append(time.process_time() - start)
    found[name] = statistics.median(seconds)
print(json.dumps(found))
"""


def main(given: list[str] | None = None) -> int:
    """1 if a job became slower."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare_revisions")
    parser.add_argument("base", help="revision to compare this tree with")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args(given)
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        command = ["git", "worktree", "add", "--detach", "--quiet", str(base), asked.base]
        subprocess.run(command, cwd=ROOT, check=True)
        try:
            found = _timed(base / "src", ROOT / "src", asked.repeats)
        finally:
            remove = ["git", "worktree", "remove", "--force", str(base)]
            subprocess.run(remove, cwd=ROOT, check=True)
    return _told(found, asked.base)


def _timed(base: Path, head: Path, repeats: int) -> dict[str, tuple[list[float], list[float]]]:
    """CPU-seconds of every job, base and head in turn: a slow minute hits both alike."""
    found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in JOBS}
    for _ in range(repeats):
        for side, source in enumerate((base, head)):
            for name, seconds in _run(source).items():
                found[name][side].append(seconds)
    return found


def _run(source: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps(JOBS), str(source)],
        env={**os.environ, **dict.fromkeys(THREADS, "1"), "PYTHONPATH": str(source)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _told(found: dict[str, tuple[list[float], list[float]]], base: str) -> int:
    slower = 0
    print(f"{'CPU-seconds':<34}{base:>12}{'here':>12}  ratio in the same turn")
    for name, (before, now) in found.items():
        old, new = statistics.median(before), statistics.median(now)
        turns = Spread.of([b / a for a, b in zip(before, now, strict=True)])
        verdict = "SLOWER" if turns.median > SLOWER and turns.low > 1 else ""
        slower += bool(verdict)
        print(f"{name:<34}{old:>12.3f}{new:>12.3f}  {turns}  {verdict}".rstrip())
    return int(slower > 0)


if __name__ == "__main__":
    sys.exit(main())
