"""Threads of the text solver, which share vectors without locks: wall time, in turns.

Beside them, what the machine has to give at that moment: two fits by one thread each, at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from benchmarks.harness import Report, Settings, Spread, interleaved
from benchmarks.rivals.gensim import Gensim
from benchmarks.text import SHORT, Trained, gensim, ours
from benchmarks.text_data import imdb, newsgroups


def run(settings: Settings) -> Report:
    """Two threads against one, and against gensim's two workers."""
    report = Report("text_threads", settings)
    for name, read in (("imdb", imdb), ("20newsgroups", newsgroups)):
        train, _ = read(settings)
        _two_threads(report, name, train)
        if settings.quick:
            break
    return report


def _two_threads(report: Report, name: str, train: Any) -> None:
    settings = report.settings
    several = 1 if settings.quick else 8 if train.n_tokens < SHORT else 3
    one, two = (partial(ours, train, 5, 0, n_jobs=n_jobs) for n_jobs in (1, 2))
    two()  # compiles, or loads what was compiled
    sides: dict[str, Any] = {"two": two, "one": one, "apart": partial(_side_by_side, one)}
    found = interleaved(sides, several * settings.repeats)
    pairs = zip(found.pop("apart"), found["one"], strict=True)
    given = Spread.of([both / single.wall_speed for both, single in pairs])
    note = f"two fits side by side {given}"
    label = f"{name}: two threads over one, wall"
    report.add(label, _gain(found), at_least=1.8, beside=note)
    label = f"{name}: two threads over gensim's two workers, wall"
    if not Gensim.available():
        report.add(label, Gensim.missing())
        return
    theirs = partial(gensim, train, 5, 0, n_jobs=2)
    found = interleaved({"two": two, "gensim": theirs}, several * settings.repeats)
    report.add(label, _gain(found), at_least=3.5)


def _side_by_side(fit: Callable[[], Trained]) -> float:
    """Speed of two fits together that share the machine and the interpreter, but no vectors."""
    with ThreadPoolExecutor(2) as pool:
        return sum(each.result().wall_speed for each in [pool.submit(fit) for _ in range(2)])


def _gain(found: dict[str, list[Trained]]) -> Spread:
    """How much sooner the first of two sides was ready, turn by turn."""
    fast, slow = found.values()
    return Spread.of([a.wall_speed / b.wall_speed for a, b in zip(fast, slow, strict=True)])
