"""Shards and clusters: memory out of core, overhead, one and two local workers, a killed worker.

Everything is measured on this machine; lines that are named a model are computed from constants.
`--only scaling` (or memory, killing, model, passes) measures a part. `passes` needs data; with
`--large` it fits 32 replicas as well.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import Counts, MissingDataError, baskets
from benchmarks.harness import Report, Settings, in_new_process, peak_memory

REPLICAS, SHARDS, ROUNDS, PASSES = 8, 32, 4, 3
REPEATS = 2  # of fits whose time is taken; the faster one counts
NEAR = 0.005  # nats per unit: two seeds of the same fit differ by as much
EVERY = 4  # of the entries of validation trips one is scored after each pass


def run(settings: Settings) -> Report:
    """Prepare a store, then fit it in memory, out of core, and by one and two workers."""
    report = Report("shards", settings)
    n_rows, n_items, k = (4_000, 200, 10) if settings.quick else (200_000, 4_000, 100)
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store")
        done = in_new_process(prepare, store=store, n_rows=n_rows, n_items=n_items)
        report.add("peak memory of prepare (MB)", done["peak_bytes"] / 1e6)
        for name, part in PARTS.items():
            if not settings.only or name in settings.only:
                part(report, {"store": store, "k": k}, (n_rows, n_items))
    return report


def _memory(report: Report, sizes: dict[str, Any], _: tuple[int, int]) -> None:
    for name, job in (("fit in memory", fit_memory), ("fit out of core", fit_serial)):
        done = in_new_process(job, **sizes)
        report.add(f"{name}: CPU-seconds per pass", done["seconds"])
        report.add(f"{name}: peak memory (MB)", done["peak_bytes"] / 1e6)


def _scaling(report: Report, sizes: dict[str, Any], shape: tuple[int, int]) -> None:
    of_workers = {n: in_new_process(fit_cluster, **sizes, n_workers=n) for n in (1, 2)}
    for n, measured in of_workers.items():
        report.add(f"{n} local workers: seconds per pass", measured["seconds"])
        report.add(f"{n} local workers: peak memory of a worker (MB)", measured["worker"])
    speed = of_workers[1]["seconds"] / of_workers[2]["seconds"]
    report.add("strong scaling: 2 workers against 1", speed, at_least=1.7)
    roofline = _side_by_side(sizes)
    report.add("two fits side by side that share nothing, against one after the other", roofline)
    report.add("strong scaling relative to that", speed / roofline)
    half = str(Path(sizes["store"]).parent / "half")
    in_new_process(prepare, store=half, n_rows=shape[0] // 2, n_items=shape[1])
    alone = in_new_process(fit_cluster, store=half, k=sizes["k"], n_workers=1)
    weak = alone["seconds"] / of_workers[2]["seconds"]
    report.add("weak scaling: half of the rows by 1 worker against all by 2", weak)


def _side_by_side(sizes: dict[str, Any]) -> float:
    """Fits by two processes in the time of one alone: they share caches and memory."""
    alone = in_new_process(fit_replicas, **sizes)["seconds"]
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(in_new_process, fit_replicas, **sizes) for _ in range(2)]
        together = max(one.result()["seconds"] for one in both)
    return 2 * float(alone) / float(together)


def _killing(report: Report, sizes: dict[str, Any], _: tuple[int, int]) -> None:
    killed = in_new_process(cost_of_a_kill, **sizes)
    report.add("seconds lost by one SIGKILL", killed["lost"], at_most=10.0 + killed["round"])


def _model_of_many(report: Report, *_: object) -> None:
    for workers in (10, 32, 100):
        report.add(f"model (not measured): efficiency of {workers} workers", efficiency(workers))


def _passes(report: Report, *_: object) -> None:
    """Test scores, and passes to a score, of a fit in memory and of replicas that are averaged."""
    try:
        trips = Trips.of(report.settings)
    except MissingDataError as error:
        print(f"passes: {error}", file=sys.stderr)
        return
    alone, averaged = [], []
    with tempfile.TemporaryDirectory() as folder:
        trips.prepare(folder)
        for seed in report.settings.seeds:
            alone.append(trips.fit(seed))
            averaged.append(trips.fit(seed, REPLICAS))
            aim = max(alone[-1].scores) - NEAR
            found = [passes_to(one.scores, aim) for one in (alone[-1], averaged[-1])]
            note = f"fit {alone[-1].test:.4f}; passes {found[1]:.1f}, fit {found[0]:.1f}"
            report.add(f"seed {seed}, {REPLICAS} replicas: test", averaged[-1].test, beside=note)
        many = trips.fit(report.settings.seeds[0], SHARDS) if report.settings.large else None
    aims = [max(one.scores) - NEAR for one in alone]
    test = float(np.mean([one.test for one in alone]))
    note = f"fit {test:.4f}, {len(alone)} seeds"
    mean = float(np.mean([one.test for one in averaged]))
    report.add(f"{REPLICAS} replicas: mean test", mean, beside=note, at_least=test - NEAR)
    needed = [
        np.mean([passes_to(one.scores, aim) for one, aim in zip(fits, aims, strict=True)])
        for fits in (averaged, alone)
    ]
    note = f"{needed[0]:.1f} passes, fit {needed[1]:.1f}"
    ratio = float(needed[0] / needed[1])
    report.add(f"{REPLICAS} replicas: passes against fit's", ratio, beside=note, at_most=1.3)
    if many is not None:
        note = f"{passes_to(many.scores, aims[0]):.1f} passes; fit {alone[0].test:.4f}"
        report.add(f"{SHARDS} replicas, one seed: test", many.test, beside=note)


def passes_to(scores: Sequence[float], aim: float) -> float:
    """Passes after which the scores reach an aim, by a straight line between two passes."""
    for n, score in enumerate(scores):
        if score >= aim:
            return n + (aim - scores[n - 1]) / (score - scores[n - 1]) if n else 1.0
    return float("inf")


@dataclass(frozen=True)
class Curve:
    """Validation scores after each pass, and the test score of the fitted model."""

    scores: list[float]
    test: float


class Trips:
    """Complete Journey: 5% of the trips to test, 5% for validation, a store of the rest."""

    def __init__(self, counts: Counts, k: int) -> None:
        self.counts, self.k = counts, k

    @classmethod
    def of(cls, settings: Settings) -> Trips:
        """Trips of the protocol, of which more are for validation."""
        from scipy.sparse import csr_array, vstack

        counts = baskets(settings)
        more = counts.test.shape[0] - counts.validation.shape[0]
        validation = csr_array(vstack([counts.validation, counts.train[:more]]))
        parts = Counts(counts.train[more:], validation, counts.test)
        return cls(parts, 4 if settings.quick else 20)

    def prepare(self, folder: str) -> None:
        """A store of the training trips; validation and test keep the columns that it knows."""
        import pandas as pd

        import efemb
        from efemb.engine.validation import rows_given_themselves

        train = self.counts.train.tocoo()
        trip, item = train.coords
        table = pd.DataFrame({"trip": trip, "what": item, "n": train.data.astype(int)})
        named = {"basket": "trip", "item": "what", "count": "n"}
        self.store = efemb.shards.prepare(table, folder, **named, n_shards=SHARDS)
        rows = [self.store.shard(i).values for i in range(SHARDS)]
        known = self.store.vocabulary.labels.astype(int)
        self.rows, self.test, validation = (
            efemb.Dataset(X.astype(np.float32), entities=self.store.vocabulary)
            for X in (_stack(rows), self.counts.test[:, known], self.counts.validation[:, known])
        )
        self.spec = efemb.PoissonEmbedding(self.k)._spec()
        cells = rows_given_themselves(self.spec, self.spec.context.bind(validation))
        self.cells = cells.take(np.arange(len(cells.x)) % EVERY == 0)

    def fit(self, seed: int, n_replicas: int = 0) -> Curve:
        """Fit in memory, or replicas in one process, which have the bits of a cluster."""
        import efemb
        from efemb.engine.threads import workers
        from efemb.engine.validation import EntryValidation
        from efemb.model.space import ParameterSpace

        scores: list[float] = []
        space = ParameterSpace(self.spec, self.store.n_entities, self.store.n_entities, 1, self.k)
        with workers(1) as pool:
            validation = EntryValidation(self.cells, self.spec, pool)

            def score(progress: Any) -> None:
                vectors = space.vectors(progress.parameters())
                scores.append(validation.score(vectors, self.spec.family))

            model = efemb.PoissonEmbedding(self.k, random_state=seed, callbacks=[score])
            if n_replicas:
                efemb.shards.fit(model, self.store, n_replicas=n_replicas, rounds_per_pass=ROUNDS)
            else:
                model.fit(self.rows)
        return Curve(scores, model.score(self.test))


def _stack(rows: list[Any]) -> Any:
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack(rows))


PARTS: dict[str, Callable[..., None]] = {
    "memory": _memory,
    "scaling": _scaling,
    "killing": _killing,
    "model": _model_of_many,
    "passes": _passes,
}


def prepare(store: str, n_rows: int, n_items: int) -> dict[str, Any]:
    """Lines of simulated baskets into a store."""
    import pandas as pd

    from efemb.shards import prepare as prepare_store

    rng = np.random.default_rng(0)
    n_lines = 10 * n_rows
    group = rng.integers(20, size=n_rows)
    trip = rng.integers(n_rows, size=n_lines)
    near = (group[trip] * n_items // 20 + rng.zipf(1.4, n_lines)) % n_items
    item = np.where(rng.random(n_lines) < 0.7, near, rng.integers(n_items, size=n_lines))
    lines = pd.DataFrame({"trip": trip, "what": item})
    prepare_store(lines, store, basket="trip", item="what", min_items_per_basket=2, n_shards=SHARDS)
    return {}


def fit_memory(store: str, k: int) -> dict[str, Any]:
    """All rows in memory: CPU-seconds per pass."""
    from scipy.sparse import csr_array, vstack

    import efemb

    opened = efemb.shards.open_store(store)
    rows = csr_array(vstack([opened.shard(i).values for i in range(opened.n_shards)]))
    model = _model(k)
    start = time.process_time()
    model.fit(efemb.Dataset(rows, entities=opened.vocabulary))
    return {"seconds": (time.process_time() - start) / model.n_iter_}


def fit_serial(store: str, k: int) -> dict[str, Any]:
    """One shard at a time."""
    import efemb

    start = time.process_time()
    model = efemb.shards.fit(_model(k), store)
    return {"seconds": (time.process_time() - start) / model.n_iter_}


def fit_cluster(store: str, k: int, n_workers: int) -> dict[str, Any]:
    """Wall seconds per pass after the first fit, and the largest peak memory of a worker in MB."""
    with _cluster(n_workers) as client:
        _fit(client, store, k)  # compiles
        seconds = min(_fit(client, store, k) for _ in range(REPEATS))
        peaks = client.run(peak_memory)
    return {"seconds": seconds, "worker": max(peaks.values()) / 1e6}


def fit_replicas(store: str, k: int) -> dict[str, Any]:
    """Wall seconds per pass of the work of a cluster in one process, after the first fit."""
    import efemb

    times = []
    for _ in range(1 + REPEATS):  # the first compiles
        start = time.perf_counter()
        model = efemb.shards.fit(_model(k), store, n_replicas=REPLICAS)
        times.append((time.perf_counter() - start) / model.n_iter_)
    return {"seconds": min(times[1:])}


def cost_of_a_kill(store: str, k: int) -> dict[str, Any]:
    """How much longer a fit takes in the middle of which a worker is killed; seconds of a round."""
    with _cluster(2) as client:
        _fit(client, store, k)
        usual = _fit(client, store, k) * PASSES
        victim = next(iter(client.run(os.getpid).values()))
        timer = threading.Timer(usual / 2, os.kill, (victim, signal.SIGKILL))
        timer.start()
        seconds = _fit(client, store, k) * PASSES
        timer.join()
    return {"lost": seconds - usual, "round": usual / PASSES / ROUNDS}


def efficiency(workers: int, gigabit: float = 10.0) -> float:
    """A model of 1e8 baskets of 100,000 items, K=100, exact zeros, in 16 rounds per pass.

    Constants: workers of 16 cores, of which 80% are used, 736 CPU-us per row, 0.3 s of scheduling
    and 3 x 160 MB per round, stragglers 10%.
    """
    compute = 1e8 * 736e-6 / (16 * 0.8)
    alone = compute * 1.1
    exchange = 16 * (0.3 + 3 * 160e6 * 8 / (gigabit * 1e9))
    return alone / (workers * (compute / workers * 1.1 + exchange))


def _model(k: int) -> Any:
    import warnings

    import efemb

    warnings.simplefilter("ignore")  # a few passes are enough for times
    return efemb.PoissonEmbedding(k, random_state=0, max_iter=PASSES)


def _cluster(n_workers: int) -> Any:
    from efemb.dask.cluster import open_cluster

    return open_cluster(f"local:{n_workers}")


def _fit(client: Any, store: str, k: int) -> float:
    import efemb

    start = time.perf_counter()
    model = efemb.dask.fit(_model(k), store, client=client, n_replicas=REPLICAS)
    return (time.perf_counter() - start) / model.n_iter_
