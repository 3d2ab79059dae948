"""Two threads against one: the same bits, and how much sooner."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.harness import Report, Spread, Watched, interleaved

MORE = 2  # turns: what other programs do shows in wall times above all


def two_threads(
    report: Report, name: str, fit: Callable[[int], Watched], *, heavy: bool = True
) -> None:
    """Time fit(n_jobs) with one and two threads in turn; both must leave the same numbers.

    Work that is not heavy, less than a second a pass, has no target.
    """
    fit(2)  # compiles, or loads what was compiled
    turns = report.settings.repeats + (0 if report.settings.quick else MORE)
    found = interleaved({"1": lambda: fit(1), "2": lambda: fit(2)}, turns)
    one, two = found["1"][0].model.parameters_, found["2"][0].model.parameters_
    same = all(np.array_equal(a, b) for a, b in zip(one.arrays(), two.arrays(), strict=True))
    report.add(f"{name}: n_jobs=1 and 2 give the same bits", "yes" if same else "NO")
    pairs = zip(found["1"], found["2"], strict=True)
    gains = [single.timing.wall / double.timing.wall for single, double in pairs]
    # Where something else runs, two threads do not get two cores.
    had = [double.timing.cpu / double.timing.wall for double in found["2"]]
    note = f"the two threads had {Spread.of(had)} cores"
    label = f"{name}: wall-clock speed-up of n_jobs=2"
    report.add(label, Spread.of(gains), beside=note, at_least=1.7 if heavy else None)
