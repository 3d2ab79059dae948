"""Queries: exact search at the speed of matrix products, and a question to a model on disk."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cold_start import HEAVY
from benchmarks.harness import (
    Report,
    Settings,
    Spread,
    interleaved,
    run_python,
    sgemm_rate,
    stopwatch,
)
from benchmarks.stored import stored_model

ASK = f"""
import json, sys, time
import efemb
fitted = efemb.load(sys.argv[1])
label = fitted.entities[17]
fitted.similar(label); fitted.complements(label); fitted.substitutes(label)
heavy = sorted(set({HEAVY!r}) & set(sys.modules))
print(json.dumps(dict(cpu=time.process_time(), heavy=heavy)))
"""
N_QUERIES, TOP = 1000, 10


def run(settings: Settings) -> Report:
    """Search among a million vectors; then all pairs and a cold start with 8,000 items."""
    report = Report("queries", settings)
    shape = (20_000, 20) if settings.quick else (1_000_000, 100)
    _search(report, shape)
    _estimator(report, shape)
    _small_model(report, 1000 if settings.quick else 8000, 100)
    return report


def _search(report: Report, shape: tuple[int, int]) -> None:
    """Share of the rate of a square matrix product, both timed in turn."""
    from efemb.fitted import LabeledVectors

    rng = np.random.default_rng(0)
    vectors = LabeledVectors(range(shape[0]), rng.standard_normal(shape, dtype=np.float32))
    asked = rng.choice(shape[0], N_QUERIES, replace=False).tolist()
    name = f"{N_QUERIES:,} queries among {shape[0]:,} x {shape[1]}, top {TOP}"
    with stopwatch() as first:
        vectors.similar(asked, TOP)
    jobs: dict[str, Any] = {
        "sgemm": sgemm_rate,
        "batch": lambda: _cpu(vectors, asked),
        "one": lambda: _cpu(vectors, asked[0]),
    }
    found = interleaved(jobs, max(3, report.settings.repeats))
    work = 2.0 * N_QUERIES * shape[0] * shape[1] / 1e9
    shares = [work / cpu / rate for cpu, rate in zip(found["batch"], found["sgemm"], strict=True)]
    report.add("sgemm: GFLOP/s", Spread.of(found["sgemm"]))
    report.add(f"{name}: CPU-s", Spread.of(found["batch"]), beside=f"first {first.cpu:.2f}")
    report.add("    share of the sgemm rate", Spread.of(shares), at_least=0.5)
    cold = work / first.cpu / Spread.of(found["sgemm"]).median
    report.add("    share with the unit vectors made", cold)
    report.add("    one query: CPU-ms", Spread.of([1e3 * cpu for cpu in found["one"]]))


def _estimator(report: Report, shape: tuple[int, int]) -> None:
    """An estimator keeps its unit vectors between questions: only the first call makes them."""
    from efemb import PoissonEmbedding
    from efemb.model.parameters import Parameters

    rho = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    model = PoissonEmbedding(shape[1], intercept=False)
    model.parameters_ = Parameters(rho, rho)
    first = _cpu(model, 17)
    later = Spread.of([_cpu(model, 17) for _ in range(max(3, report.settings.repeats))])
    name = f"estimator.similar among {shape[0]:,} x {shape[1]}: first call, CPU-ms"
    report.add(name, 1e3 * first)
    limit = None if report.settings.quick else 0.05
    report.add("    a later call / the first", later.median / first, at_most=limit)


def _cpu(vectors: Any, asked: Any) -> float:
    with stopwatch() as timing:
        vectors.similar(asked, TOP)
    return timing.cpu


def _small_model(report: Report, n_items: int, k: int) -> None:
    fitted = stored_model(n_items, k)
    with stopwatch() as timing:
        fitted.pairs(TOP)
    report.add(f"{n_items:,} items, K={k}: largest and smallest of all pairs, CPU-s", timing.cpu)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        fitted.save(path)
        jobs: dict[str, Any] = {"ask": lambda: json.loads(run_python(ASK, path))}
        found = interleaved(jobs, 1 + max(3, report.settings.repeats))["ask"][1:]
    spread = Spread.of([one["cpu"] for one in found])
    note = f"heavy packages: {', '.join(found[-1]['heavy']) or 'none'}"
    report.add("    new process, load, three questions: CPU-s", spread, at_most=0.6, beside=note)
