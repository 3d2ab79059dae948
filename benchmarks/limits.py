"""Limits: what this machine can do at best, on one core, and what a second one adds."""

from __future__ import annotations

import statistics
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Report, Settings, Spread, sgemm_rate, stopwatch


def run(settings: Settings) -> Report:
    """Matrix products, streaming through memory, random rows of a table."""
    report = Report("limits", settings)
    repeats = settings.repeats
    size = 512 if settings.quick else 2048
    report.add("sgemm, GFLOP/s", Spread.of([sgemm_rate(size, 3) for _ in range(repeats)]))
    gains = Spread.of([second_core(size) for _ in range(repeats)])
    report.add("sgemm on two cores, times one", gains)
    numbers = 1 << (22 if settings.quick else 26)
    report.add("triad a = b + 2 c, GB/s", Spread.of([triad(numbers) for _ in range(repeats)]))
    rows = 10_000 if settings.quick else 1_000_000
    for width in (20, 100):
        rates = Spread.of([gather(rows, width) for _ in range(repeats)])
        report.add(f"random rows of {rows:,} x {width} float32, GB/s", rates)
    return report


def second_core(size: int) -> float:
    """Products that two threads make in the time of one: two, on a machine that is ours alone."""
    table = np.ones((size, size), dtype=np.float32)

    def work(out: NDArray[np.float32]) -> None:
        for _ in range(5):
            np.matmul(table, table, out=out)

    spaces = [np.zeros_like(table) for _ in range(2)]
    work(spaces[0])
    with stopwatch() as one:
        work(spaces[0])
    with ThreadPoolExecutor(2) as pool, stopwatch() as two:
        list(pool.map(work, spaces))
    return 2 * one.wall / two.wall


def triad(numbers: int) -> float:
    """GB/s read and written: NumPy multiplies first, then adds, and so goes twice through `a`."""
    a, b, c = (np.ones(numbers, dtype=np.float32) for _ in range(3))
    seconds = []
    for _ in range(5):
        with stopwatch() as timing:
            np.multiply(c, 2.0, out=a)
            np.add(a, b, out=a)
        seconds.append(timing.cpu)
    return 5 * a.nbytes / statistics.median(seconds) / 1e9


def gather(rows: int, width: int) -> float:
    """GB/s read and written by copying rows in random order."""
    rng = np.random.default_rng(0)
    table = np.ones((rows, width), dtype=np.float32)
    order = rng.permutation(rows)
    out = np.zeros_like(table)  # its pages are there before the clock runs
    with stopwatch() as timing:
        np.take(table, order, axis=0, out=out, mode="clip")  # "raise" would copy once more
    return 2 * table.nbytes / timing.cpu / 1e9
