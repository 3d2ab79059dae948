"""Out of core: peak memory of preparing and fitting a store, with ten times the lines and shards.

Lines are simulated file by file. Every step is a process of its own, so that its peak is known.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Report, Settings, in_new_process, stopwatch

N_ITEMS, K, LINES_OF_BASKET, SHARDS_OF_UNIT, FILES_OF_UNIT = 50_000, 20, 10, 32, 10


def run(settings: Settings) -> Report:
    """One unit of lines, then ten, in shards of the same size."""
    report = Report("out_of_core", settings)
    unit = 200_000 if settings.quick else 20_000_000
    peaks: dict[int, dict[str, float]] = {}
    for n_units in (1, 10):
        with tempfile.TemporaryDirectory() as folder:
            peaks[n_units] = _peaks(report, Path(folder), unit, n_units)
    for step in ("prepare", "fit"):
        growth = peaks[10][step] / peaks[1][step]
        report.add(f"{step}: peak with ten times the lines", growth, at_most=1.2)
    return report


def _peaks(report: Report, folder: Path, unit: int, n_units: int) -> dict[str, float]:
    """Megabytes of each step, and its CPU-seconds in the report."""
    n_lines = unit * n_units
    lines, store = str(folder / "lines"), str(folder / "store")
    in_new_process(write_lines, folder=lines, n_lines=n_lines, n_files=FILES_OF_UNIT * n_units)
    peaks = {}
    n_shards = SHARDS_OF_UNIT * n_units
    for step, job, options in (
        ("prepare", prepare, {"lines": lines, "store": store, "n_shards": n_shards}),
        ("fit", fit_one_pass, {"store": store}),
    ):
        done = in_new_process(job, **options)
        peaks[step] = done["peak_bytes"] / 1e6
        label = f"{n_lines:,} lines, {n_shards} shards, {step}"
        report.add(f"{label}: peak memory (MB)", peaks[step])
        report.add(f"{label}: CPU-seconds", done["cpu"])
    return peaks


def write_lines(folder: str, n_lines: int, n_files: int) -> dict[str, Any]:
    """Parquet files of lines with text labels; the baskets of a file are its own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    Path(folder).mkdir(parents=True)
    items = pa.array([f"item {number}" for number in range(N_ITEMS)])
    per_file = n_lines // n_files
    n_baskets = per_file // LINES_OF_BASKET
    for number in range(n_files):
        rng = np.random.default_rng(number)
        basket = np.sort(rng.integers(n_baskets, size=per_file)).astype(np.int32)
        item = (rng.zipf(1.3, size=per_file) % N_ITEMS).astype(np.int32)
        names = pa.array([f"basket {number}-{place}" for place in range(n_baskets)])
        columns = {
            "trip": pa.DictionaryArray.from_arrays(basket, names),
            "what": pa.DictionaryArray.from_arrays(item, items),
        }
        pq.write_table(pa.table(columns), f"{folder}/{number:05d}.parquet")
    return {}


def prepare(lines: str, store: str, n_shards: int) -> dict[str, Any]:
    """All files into a store."""
    from efemb import shards

    with stopwatch() as timing:
        shards.prepare(f"{lines}/*.parquet", store, basket="trip", item="what", n_shards=n_shards)
    return {"cpu": timing.cpu}


def fit_one_pass(store: str) -> dict[str, Any]:
    """One pass over all shards, with the score of what is held out."""
    import warnings

    import efemb

    warnings.simplefilter("ignore")  # one pass does not converge
    model = efemb.AdditivePoissonEmbedding(K, random_state=0, max_iter=1)
    with stopwatch() as timing:
        efemb.shards.fit(model, store)
    return {"cpu": timing.cpu}
