"""Huge: one pass over a million items and two million trips with sampled zeros."""

from __future__ import annotations

from typing import Any

from benchmarks.harness import Report, Settings, in_new_process, stopwatch

ZEROS = 1024


def run(settings: Settings) -> Report:
    """Time and memory of the pass, and of shorter passes over fewer items."""
    report = Report("huge", settings)
    sizes = (20_000, 10_000) if settings.quick else (2_000_000, 1_000_000)
    k = 10 if settings.quick else 100
    empty = in_new_process(one_pass, n_rows=sizes[0], n_items=sizes[1], k=k, fit=False)
    found = in_new_process(one_pass, n_rows=sizes[0], n_items=sizes[1], k=k)
    label = f"{sizes[1]:,} items x {sizes[0]:,} trips, {found['n_lines']:,} lines, K={k}"
    report.add(f"{label}: CPU-s of the pass", found["cpu"], beside=f"{found['wall']:.0f} s wall")
    report.add("    trips a CPU-second", sizes[0] / found["cpu"])
    if found["peak_bytes"] is not None:
        note = f"simulating the trips alone {empty['peak_bytes'] / 1e9:.2f}"
        report.add("    peak memory, GB", found["peak_bytes"] / 1e9, beside=note, at_most=8.0)
        vectors = 2 * 4 * sizes[1] * k / 1e9
        report.add("    rho and alpha alone, GB", vectors)
    _growth(report, sizes, k)
    return report


def _growth(report: Report, sizes: tuple[int, int], k: int) -> None:
    """Were a dense gradient made for every batch, its cost would grow with the items."""
    costs = []
    n_rows = sizes[0] if report.settings.quick else sizes[0] // 20
    for part in (16, 4, 1):
        n_items = sizes[1] // part
        found = in_new_process(one_pass, n_rows=n_rows, n_items=n_items, k=k)
        costs.append(found["cpu_batches"])
        label = f"{n_items:,} items x {n_rows:,} trips: CPU-ms a minibatch"
        report.add(label, 1e3 * found["cpu_batches"])
    report.add("16 times the items: cost of a minibatch grows by", costs[-1] / costs[0])


class _Steps:
    """A callback that times minibatches from the second one on."""

    def __init__(self) -> None:
        import time

        self.clock = time.process_time
        self.ends: list[float] = []

    def __call__(self, progress: Any) -> None:
        """Nothing to do after the pass."""

    def step(self, done: float) -> None:
        """Note the end of a minibatch."""
        self.ends.append(self.clock())


def one_pass(n_rows: int, n_items: int, k: int, fit: bool = True) -> dict[str, Any]:
    """Runs in a process of its own: simulate ten lines a trip and fit once over them."""
    from efemb import PoissonEmbedding, Sampled
    from efemb.simulation import simulate_baskets

    n_lines = 10 * n_rows
    trips = simulate_baskets(n_rows=n_rows, n_entities=n_items, n_lines=n_lines, seed=0)
    if not fit:
        return {}
    steps = _Steps()
    options: dict[str, Any] = {"zeros": Sampled(ZEROS), "random_state": 0}
    warm = trips.take_rows(slice(0, 100))
    PoissonEmbedding(2, **options).partial_fit(warm)  # load the compiled kernels
    model = PoissonEmbedding(k, callbacks=[steps], **options)
    with stopwatch() as timing:
        model.partial_fit(trips)
    each = (steps.ends[-1] - steps.ends[0]) / max(1, len(steps.ends) - 1)
    cost = {"cpu": timing.cpu, "wall": timing.wall, "cpu_batches": each}
    return {**cost, "n_lines": n_lines}
