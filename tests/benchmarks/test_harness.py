"""The arithmetic of the benchmarks: spreads, verdicts, watches, repeats."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.harness import Mark, Watch, in_new_process, interleaved, stopwatch
from benchmarks.plain_numpy import stopped
from benchmarks.reporting import Report, Settings, Spread, number

from benchmarks import reporting


def test_spread_is_median_and_extremes() -> None:
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0, 3)
    assert Spread.of([1.0, 2.0]) == Spread(1.5, 1.0, 2.0, 2)
    assert str(Spread.of([1.0, 2.0])) == "1.500 [1.000 .. 2.000] of 2"
    assert str(Spread.of([1.0])) == "1.000", "a single run has no spread"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.0"),
        (1234567.0, "1,234,567"),
        (3.14159, "3.142"),
        (-0.01234, "-0.01234"),
        (7, "7.000"),
    ],
)
def test_numbers_have_four_digits(value: float, shown: str) -> None:
    assert number(value) == shown
    assert number(float("inf")) == "inf"


def test_jobs_take_turns() -> None:
    order: list[str] = []
    jobs = {name: lambda name=name: order.append(name) or name for name in "ab"}
    assert interleaved(jobs, 2) == {"a": ["a", "a"], "b": ["b", "b"]}
    assert order == ["a", "b", "a", "b"]


def test_stopwatch_tells_cpu_from_waiting() -> None:
    import time

    with stopwatch() as timing:
        time.sleep(0.05)
    assert timing.wall >= 0.05
    assert timing.cpu < timing.wall


def test_watch_finds_best_first_and_pass() -> None:
    watch = Watch()
    watch.marks = [Mark(1, -3.0, 1.0, 1.0), Mark(2, -1.0, 2.0, 2.0), Mark(3, -2.0, 4.0, 4.0)]
    watch.ends = [5.0, 6.0, 8.0, 11.0]
    assert watch.best().iteration == 2
    assert watch.reaching(-2.5) == watch.marks[1]
    assert watch.reaching(0.0) is None
    assert watch.per_pass() == 2.0


def test_patience_of_the_yardstick() -> None:
    marks = [Mark(i, score, 0.0, 0.0) for i, score in enumerate([-2.0, -1.0, *[-1.0] * 5])]
    assert not stopped(marks[:-1])
    assert stopped(marks)


def report(quick: bool = False) -> Report:
    return Report("example", Settings(quick=quick, repeats=2))


@pytest.mark.parametrize(
    ("value", "bounds", "met"),
    [
        (1.0, {"at_most": 1.0}, True),
        (1.1, {"at_most": 1.0}, False),
        (1.1, {"at_least": 1.0}, True),
        (Spread(0.5, 0.1, 9.0), {"at_least": 1.0}, False),
        (np.inf, {"at_most": 1.0}, False),
        ("never", {"at_most": 1.0}, None),
        (1.0, {}, None),
    ],
)
def test_verdicts(value: float | Spread | str, bounds: dict[str, float], met: bool | None) -> None:
    full, quick = report(), report(quick=True)
    full.add("figure", value, **bounds)
    quick.add("figure", value, **bounds)
    assert full.rows[0]["met"] is met
    assert quick.rows[0]["met"] is None


def test_results_are_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "RESULTS", tmp_path)
    some = report()
    some.add("never ends", np.inf, at_most=2.0)
    some.add("spread", Spread(2.0, 1.0, 3.0), beside=4.0)
    path = some.save()
    found = json.loads(path.read_text("utf-8"), parse_constant=pytest.fail)
    assert path == tmp_path / "example.json"
    assert {"when", "revision", "efemb", "rivals"} <= set(found["machine"])
    spread = {"median": 2, "low": 1, "high": 3, "n": 1}
    assert [row["value"] for row in found["rows"]] == ["inf", spread]


def test_new_process_has_one_thread_and_tells_its_memory() -> None:
    from benchmarks.stored import describe

    found = in_new_process(describe, n_items=7, k=3)
    assert found["shape"] == [7, 3]
    assert found["threads"] == ["1", "1", "1"]
    assert found["peak_bytes"] is None or found["peak_bytes"] > 1e6
