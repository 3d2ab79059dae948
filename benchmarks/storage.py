"""Storage: saving and loading a model against the plain reading and writing of its bytes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.harness import Report, Settings, Spread, interleaved, stopwatch
from benchmarks.stored import stored_model


def run(settings: Settings) -> Report:
    """A million items (10,000 when quick); MB a second of wall time, all in turn."""
    report = Report("storage", settings)
    n_items = 10_000 if settings.quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        found = _timed(Path(folder), n_items, max(3, settings.repeats))
    report.add(f"{n_items:,} items, K=100: size, MB", found.pop("size")[0])
    rates = {name: Spread.of(values) for name, values in found.items()}
    for name, spread in rates.items():
        report.add(f"{name}: MB/s", spread)
    for ours, raw in (("save", "raw write and sync"), ("load", "raw read")):
        pairs = zip(found[ours], found[raw], strict=True)
        report.add(f"{ours} / {raw}, rate", Spread.of([mine / bare for mine, bare in pairs]))
    return report


def _timed(folder: Path, n_items: int, repeats: int) -> dict[str, list[float]]:
    import efemb

    fitted = stored_model(n_items, 100)
    model, raw = folder / "model", folder / "raw"
    fitted.save(model)
    size = sum(path.stat().st_size for path in model.rglob("*") if path.is_file()) / 1e6
    content = np.random.default_rng(0).bytes(int(size * 1e6))

    def write() -> None:
        with raw.open("wb") as file:
            file.write(content)
            os.fsync(file.fileno())

    jobs: dict[str, Callable[[], object]] = {
        "raw write and sync": write,
        "save": lambda: fitted.save(model),
        "raw read": raw.read_bytes,
        "load": lambda: efemb.load(model),
    }
    found = interleaved({name: _rate(job, size) for name, job in jobs.items()}, repeats)
    return {"size": [size], **found}


def _rate(job: Callable[[], object], size: float) -> Callable[[], float]:
    def rate() -> float:
        with stopwatch() as timing:
            job()
        return size / timing.wall

    return rate
