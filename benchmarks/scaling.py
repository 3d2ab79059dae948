"""Scaling: what a pass costs against rows, entities, non-zeros, K, threads and tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import (
    Report,
    Settings,
    Spread,
    Watched,
    fit_watched,
    interleaved,
    stopwatch,
)
from benchmarks.threads import two_threads

ALLOWED = (0.9, 1.1)


def run(settings: Settings) -> Report:
    """A curve for each size, and the exponent of the line through its logarithms."""
    report = Report("scaling", settings)
    small = settings.quick
    rows = (2_000, 4_000, 8_000) if small else (10_000, 20_000, 40_000, 80_000)
    items = 400 if small else 2_000
    k = 10 if small else 50
    _curve(report, "rows", rows, lambda n: _exact(n, items, k), ALLOWED)
    entities = (200, 400, 800) if small else (1_000, 2_000, 4_000, 8_000)
    _curve(report, "entities", entities, lambda n: _exact(rows[0], n, k), None)
    stored = (20_000, 40_000, 80_000) if small else (100_000, 200_000, 400_000, 800_000)
    name = "non-zeros (closed-form zeros)"
    _curve(report, name, stored, lambda n: _additive(n // 10, items, k, n), ALLOWED)
    _curve(report, f"{name}, same rows", stored, lambda n: _additive(rows[0], items, k, n), None)
    sizes = (8, 16, 32) if small else (25, 50, 100, 200)
    _curve(report, "K", sizes, lambda n: _exact(rows[0], items, n), None)
    tokens = (20_000, 40_000, 80_000) if small else (1_000_000, 2_000_000, 4_000_000, 8_000_000)
    _curve(report, "tokens", tokens, lambda n: _words(n, k), ALLOWED)
    _threads(report, rows[-1], items, k)
    return report


def _curve(
    report: Report,
    name: str,
    sizes: Sequence[int],
    cost: Callable[[int], float],
    allowed: tuple[float, float] | None,
) -> None:
    """CPU-milliseconds at each size, all sizes in turn, and an exponent for every turn."""
    cost(sizes[0])  # compiled and loaded
    jobs = {str(size): partial(cost, size) for size in sizes}
    found = interleaved(jobs, report.settings.repeats)
    for size, seconds in zip(sizes, found.values(), strict=True):
        spread = Spread.of([1e3 * each for each in seconds])
        report.add(f"{name} = {size:,}: CPU-ms a pass", spread)
    turns = zip(*found.values(), strict=True)
    slopes = [float(np.polyfit(np.log(sizes), np.log(turn), 1)[0]) for turn in turns]
    low, high = allowed or (None, None)
    report.add(f"{name}: exponent", Spread.of(slopes), at_least=low, at_most=high)


def _trips(n_rows: int, n_items: int, n_lines: int = 0) -> Any:
    from efemb.simulation import simulate_baskets

    n_lines = n_lines or 10 * n_rows
    return simulate_baskets(n_rows=n_rows, n_entities=n_items, n_lines=n_lines, seed=0)


def _per_pass(model: Any, data: Any) -> float:
    return fit_watched(model, data).watch.per_pass()


def _exact(n_rows: int, n_items: int, k: int) -> float:
    from efemb import PoissonEmbedding

    options: dict[str, Any] = {"max_iter": 4, "early_stopping": False, "random_state": 0}
    return _per_pass(PoissonEmbedding(k, batch_size=1024, **options), _trips(n_rows, n_items))


def _additive(n_rows: int, n_items: int, k: int, n_lines: int) -> float:
    from efemb import AdditivePoissonEmbedding

    options: dict[str, Any] = {"max_iter": 4, "early_stopping": False, "random_state": 0}
    model = AdditivePoissonEmbedding(k, batch_size=1024, **options)
    return _per_pass(model, _trips(n_rows, n_items, n_lines))


def _words(n_tokens: int, k: int) -> float:
    """A random text with Zipf's law: speed does not depend on what the words say."""
    from efemb import BernoulliTextEmbedding, Corpus

    rng = np.random.default_rng(0)
    share = 1.0 / np.arange(1, 5_001)
    tokens = rng.choice(5_000, n_tokens, p=share / share.sum())
    starts = np.append(np.arange(0, n_tokens, 200), n_tokens)
    corpus = Corpus(tokens, starts, [f"w{n}" for n in range(5_000)])
    model = BernoulliTextEmbedding(k, max_iter=1, random_state=0)
    with stopwatch() as timing:
        model.fit(corpus)
    return timing.cpu


def _threads(report: Report, n_rows: int, n_items: int, k: int) -> None:
    from efemb import AdditivePoissonEmbedding, PoissonEmbedding

    trips = _trips(n_rows, n_items)
    options: dict[str, Any] = {"max_iter": 4, "early_stopping": False, "random_state": 0}
    for name, preset in (("p-emb", PoissonEmbedding), ("ap-emb", AdditivePoissonEmbedding)):
        made = partial(preset, k, **options)
        two_threads(report, name, partial(_with_threads, made, trips), heavy=False)


def _with_threads(made: Any, trips: Any, n_jobs: int) -> Watched:
    return fit_watched(made(n_jobs=n_jobs), trips)
