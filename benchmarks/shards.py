"""Shards and clusters: memory out of core, overhead, one and two local workers, a killed worker.

Everything is measured on this machine; lines that are named a model are computed from constants.
`--only scaling` (or memory, killing, model) measures a part.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Report, Settings, in_new_process, peak_memory

REPLICAS, SHARDS, ROUNDS, PASSES = 8, 32, 4, 3
REPEATS = 2  # of fits whose time is taken; the faster one counts


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


PARTS: dict[str, Callable[..., None]] = {
    "memory": _memory,
    "scaling": _scaling,
    "killing": _killing,
    "model": _model_of_many,
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
