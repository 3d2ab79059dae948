"""Threads of the text solver, which share vectors without locks: wall time, in turns."""

from __future__ import annotations

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
    several = 1 if settings.quick else 4 if train.n_tokens < SHORT else 2
    one, two = (partial(ours, train, 5, 0, n_jobs=n_jobs) for n_jobs in (1, 2))
    two()  # compiles, or loads what was compiled
    found = interleaved({"two": two, "one": one}, several * settings.repeats)
    had = [each.wall_speed / each.speed for each in found["two"]]
    note = f"the two threads had {Spread.of(had)} cores"
    label = f"{name}: two threads over one, wall"
    report.add(label, _gain(found), at_least=1.8, beside=note)
    label = f"{name}: two threads over gensim's two workers, wall"
    if not Gensim.available():
        report.add(label, Gensim.missing())
        return
    theirs = partial(gensim, train, 5, 0, n_jobs=2)
    found = interleaved({"two": two, "gensim": theirs}, settings.repeats)
    report.add(label, _gain(found), at_least=3.5)


def _gain(found: dict[str, list[Trained]]) -> Spread:
    """How much sooner the first of two sides was ready, turn by turn."""
    fast, slow = found.values()
    return Spread.of([a.wall_speed / b.wall_speed for a, b in zip(fast, slow, strict=True)])
