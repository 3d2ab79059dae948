"""Splits of trips by household and week; quick forms of the scenarios of a shop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.harness import Settings, one_thread
from benchmarks.households import LATER, NEW, RANDOM, split_trips, trips_of

from benchmarks import new_items, prices

QUICK = Settings(quick=True, repeats=1)


def columns(split: str, seed: int) -> dict[str, list[Any]]:
    parts = split_trips(trips_of(QUICK), split, seed)
    return {
        name: [np.asarray(part.rows[name]) for part in (parts.train, parts.validation, parts.test)]
        for name in ("user", "week")
    }


@pytest.mark.parametrize("split", [RANDOM, LATER, NEW])
def test_trips_are_in_one_part_at_most(split: str) -> None:
    trips = trips_of(QUICK)
    parts = split_trips(trips, split, 0)
    sizes = [part.n_rows for part in (parts.train, parts.validation, parts.test)]
    units = sum(float(part.values.sum()) for part in (parts.train, parts.validation, parts.test))
    assert min(sizes) > 0
    assert sum(sizes) <= trips.n_rows
    assert units <= float(trips.values.sum())
    if split != LATER:  # other trips of the week before the test are left out
        assert sum(sizes) == trips.n_rows


def test_later_weeks_are_later() -> None:
    train, validation, test = (week.astype(int) for week in columns(LATER, 0)["week"])
    assert train.max() < validation.min() == validation.max() < test.min()
    assert len(np.unique(test)) == 5


def test_new_households_are_new() -> None:
    train, validation, test = columns(NEW, 1)["user"]
    assert not set(test) & (set(train) | set(validation))
    assert len(set(test)) == len(set(trips_of(QUICK).rows["user"])) // 10


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [prices, new_items], ids=["prices", "new items"])
def test_what_is_planted_is_found(scenario: Any) -> None:
    """The simulated shop has prices and a hierarchy that matter."""
    with one_thread():
        report = scenario.run(QUICK)
    figures = {row["what"]: row["value"] for row in report.rows}
    gains = [value for what, value in figures.items() if "gain" in what or "above" in what]
    assert max(gains) > 0.05
    assert min(gains) > -0.05
