"""The jobs of `compare_revisions`, timed on whatever revision of the package is on the path.

The file is of the newer revision and runs on both, so it takes public names only: where modules lie
may differ.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import efemb

TURNS = 5  # jobs are short, and memory comes at a price of its own each time
PEAK = "peak memory, MiB"
WHOLE_FIT, SCORE = "model of trips, whole fit", "score of all test trips"


@dataclass(frozen=True)
class Inputs:
    """Data and a model of the full size, or of a share of it."""

    trips: Any
    frames: Any
    text: Any
    short_text: Any
    model: Any
    folder: str

    @classmethod
    def make(cls, share: float, folder: str) -> Inputs:
        """Simulated; the same in every revision."""
        rng = np.random.default_rng(0)
        n_trips, n_items = max(int(40_000 * share), 60), max(int(1_000 * share), 20)
        bought = (n_items * rng.random(10 * n_trips) ** 2).astype(np.int64)  # some more often
        trips = _baskets(bought.reshape(n_trips, 10), n_items)
        n_words = max(int(5_000 * share), 50)
        tokens = (n_words * rng.random(max(int(1_200_000 * share), 2_000)) ** 3).astype(np.int32)
        model = efemb.PoissonEmbedding(50, max_iter=1, early_stopping=False, random_state=0)
        model.fit(trips).save(folder)
        return cls(
            trips=trips,
            frames=rng.normal(size=(max(int(1000 * share), 50), max(int(1000 * share), 20))),
            text=_corpus(tokens, n_words),
            short_text=_corpus(tokens[: len(tokens) // 20 // 200 * 200], n_words),
            model=model,
            folder=folder,
        )


def _baskets(bought: Any, n_items: int) -> efemb.Dataset:
    n_trips, n_lines = bought.shape
    row, ones = np.repeat(np.arange(n_trips), n_lines), np.ones(bought.size)
    counts = csr_array((ones, (row, bought.ravel())), shape=(n_trips, n_items))
    return efemb.Dataset(counts, entities=[f"item {n}" for n in range(n_items)])


def _corpus(tokens: Any, n_words: int) -> efemb.Corpus:
    starts = [*range(0, len(tokens), 200), len(tokens)]
    return efemb.Corpus(tokens, starts, [f"w{n}" for n in range(n_words)])


def _fit(model: Callable[..., Any], data: Any, k: int, max_iter: int, **options: Any) -> None:
    model(k, max_iter=max_iter, early_stopping=False, random_state=0, **options).fit(data)


def _command(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


JOBS: dict[str, Callable[[Inputs], Any]] = {
    "p-emb, exact zeros, 3 passes": lambda i: _fit(efemb.PoissonEmbedding, i.trips, 50, 3),
    "p-emb, sampled zeros, 3 passes": lambda i: _fit(
        efemb.PoissonEmbedding, i.trips, 50, 3, zeros=efemb.Sampled(256)
    ),
    "ap-emb, 3 passes": lambda i: _fit(efemb.AdditivePoissonEmbedding, i.trips, 50, 3),
    "softmax of rows, 1 pass": lambda i: _fit(efemb.CategoricalEmbedding, i.trips, 20, 1),
    # The paper's settings: defaults have changed, they choose the prior and learn the variance.
    "g-emb, 20 steps": lambda i: _fit(
        efemb.GaussianEmbedding.paper, i.frames, 20, 20, tol=0.0, context=efemb.Neighbors(10)
    ),
    "generic solver, 1 pass": lambda i: _fit(
        efemb.PoissonEmbedding, i.trips.take_rows(slice(0, 1000)), 10, 1, solver="generic"
    ),
    "negative sampling, 1 pass": lambda i: _fit(efemb.BernoulliTextEmbedding, i.text, 50, 1),
    "skip-gram, 1 pass": lambda i: _fit(efemb.SkipGram, i.text, 50, 1),
    "softmax of words, 1 pass": lambda i: _fit(efemb.CBOW, i.short_text, 20, 1),
    "score": lambda i: i.model.score(i.trips),
    "conditional": lambda i: i.model.conditional(i.trips.take_rows(slice(0, 2000))),
    "leave one out": lambda i: efemb.evaluation.leave_one_out(
        i.model, i.trips.take_rows(slice(0, 2000))
    ),
    "similar, 20 of an estimator": lambda i: [i.model.similar(f"item {n}") for n in range(20)],
    "complete, 20 of an estimator": lambda i: [i.model.complete([f"item {n}"]) for n in range(20)],
    "save and load": lambda i: (i.model.save(i.folder), efemb.load(i.folder)),
    "import efemb": lambda i: _command("-c", "import efemb"),
    "efemb similar": lambda i: _command("-m", "efemb", "similar", i.folder, "item 1"),
}


def cpu_seconds() -> float:
    """CPU time of this process and of those it waited for."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in spent)


def measure(names: list[str], share: float, turns: int) -> dict[str, float]:
    """Median CPU-seconds of each job, after one turn to compile, and the peak of memory."""
    measured = {}
    with tempfile.TemporaryDirectory() as folder:
        inputs = Inputs.make(share, str(Path(folder) / "model"))
        for name in names:
            JOBS[name](inputs)
            seconds = []
            for _ in range(turns):
                start = cpu_seconds()
                JOBS[name](inputs)
                seconds.append(cpu_seconds() - start)
            measured[name] = statistics.median(seconds)
    measured[PEAK] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return measured


def fit_trips(path: str, *, scored: bool) -> dict[str, float]:
    """CPU-seconds of the model that the revision recommends for trips, K=100, and its score.

    path : train, validation and test as one COO array, the first row of each part in `starts`
    """
    with np.load(path) as file:
        cells = (file["count"], (file["row"], file["item"]))
        trips, starts = csr_array(cells, shape=tuple(file["shape"].tolist())), file["starts"]
    train, validation, test = (trips[slice(*ends)] for ends in pairwise(starts.tolist()))
    make = getattr(efemb, "BasketEmbedding", efemb.PoissonEmbedding)
    make(10, random_state=0).fit(train[:200], validation=validation[:200])  # loads the kernels
    model, start = make(100, random_state=0), cpu_seconds()
    model.fit(train, validation=validation)
    figures = {WHOLE_FIT: cpu_seconds() - start}
    return {**figures, SCORE: model.score(test)} if scored else figures


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("source", help="folder that the package must be imported from")
    parser.add_argument("jobs", nargs="*")
    parser.add_argument("--trips", help="file of trips to fit, in place of the jobs")
    parser.add_argument("--score", action="store_true", help="the test trips, too")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--turns", type=int, default=TURNS)
    asked = parser.parse_args()
    assert Path(efemb.__file__).is_relative_to(asked.source), efemb.__file__
    warnings.simplefilter("ignore")
    if asked.trips:
        print(json.dumps(fit_trips(asked.trips, scored=asked.score)))
    else:
        print(json.dumps(measure(asked.jobs, asked.share, asked.turns)))


if __name__ == "__main__":
    main()
