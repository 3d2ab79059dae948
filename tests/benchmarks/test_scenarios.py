"""Scenarios that are quick enough to run as they are."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from benchmarks.data import (
    MissingDataError,
    baskets,
    groceries,
    instacart,
    invoices,
    movie_split,
    movies,
)
from benchmarks.harness import Settings, one_thread

QUICK = Settings(quick=True, repeats=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["limits", "storage"])
def test_quick_form_runs(name: str) -> None:
    with one_thread():
        report = importlib.import_module(f"benchmarks.{name}").run(QUICK)
    figures = [row["value"] for row in report.rows]
    medians = [one["median"] if isinstance(one, dict) else one for one in figures]
    assert len(medians) >= 4
    assert all(value > 0 and np.isfinite(value) for value in medians)
    assert all(row["met"] is None for row in report.rows)


def test_held_out_entries_are_not_trained_on() -> None:
    X = movies(QUICK)
    split = movie_split(X, seed=0)
    assert split.train.multiply(split.validation).nnz == 0
    assert split.train.nnz + split.validation.nnz + split.test.nnz == np.count_nonzero(X)


@pytest.mark.parametrize(
    ("read", "test", "both"),
    [(baskets, 0.05, 0.06), (instacart, 0.05, 0.06), (groceries, 0.15, 0.2), (invoices, 0.15, 0.2)],
)
def test_rows_are_split_once(read: object, test: float, both: float) -> None:
    assert callable(read)
    split = read(QUICK)
    sizes = [part.shape[0] for part in (split.test, split.validation, split.train)]
    assert sizes[0] == int(test * sum(sizes))
    assert sum(sizes[:2]) == int(both * sum(sizes))


def test_missing_data_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EFEMB_DATA", raising=False)
    with pytest.raises(MissingDataError, match="--data FOLDER"):
        movies(Settings())
