"""Nonsensical arguments of readers and data sets raise typed errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import efemb
from efemb.data import read_baskets, read_suite2p, read_text, read_traces

T, P = np.arange(12.0).reshape(4, 3), np.eye(4)
DATA = efemb.Dataset(np.ones((30, 3)))
LINES = pd.DataFrame({"trip": [1, 1, 2], "what": list("aba"), "n": [1, 2, 3]})
TEXT = read_text([["a", "b", "c"]] * 20, min_count=1)

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "traces without positions": (lambda: read_traces(T, None), "positions must be an array"),
    "one number as positions": (lambda: read_traces(T, 3), "positions must be an array"),
    "ragged positions": (lambda: read_traces(T, [[1, 2], [3]]), "positions must be an array"),
    "ragged traces": (lambda: read_traces([[1, 2], [3]], P), "traces must be an array"),
    "a negative seed": (lambda: read_traces(T, P, neurons=2, seed=-1), "seed=-1 must be"),
    "text as a seed": (lambda: read_traces(T, P, neurons=2, seed="x"), "seed='x' must be"),
    "no folder": (lambda: read_suite2p(None), "folder must be a path, not None"),
    "text as a share of light": (
        lambda: read_suite2p(".", neuropil="x"),
        "neuropil must be a number >= 0, got 'x'",
    ),
    "a seed of a split": (lambda: DATA.split(test=0.5, seed=1.5), "seed=1.5 must be"),
    "a seed of subsampling": (lambda: TEXT.subsampled(0.1, seed=-1), "seed=-1 must be"),
    "text as a share": (lambda: DATA.split(test="x"), "test='x' must be a number"),
    "no share": (lambda: DATA.split(test=None), "test=None must be a number"),
    "a flag as a share": (lambda: DATA.split(test=True), "test=True must be a number"),
    "ragged values": (lambda: efemb.Dataset([[1, 2], [3]]), "values must be an array"),
    "a number as labels": (lambda: efemb.Dataset(T, entities=5), "sequence of labels, not 5"),
    "a missing recording": (
        lambda: efemb.Dataset(T, recordings=[1, 1, None, None]),
        r"missing \(None\) in row 2",
    ),
    "a missing time": (
        lambda: efemb.Dataset(T, recordings=np.array(["2020", "NaT", "NaT", "NaT"], "M8[s]")),
        "missing .* in row 1",
    ),
    "one column twice": (
        lambda: read_baskets(LINES, basket="trip", item="trip"),
        "'trip' can be only one of basket, item and count",
    ),
    "counts that are items": (
        lambda: read_baskets(LINES, basket="trip", item="n", count="n"),
        "'n' can be only one of basket, item and count",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    act, message = REFUSED[name]
    with pytest.raises(efemb.EfembError, match=message):
        act()


def test_masked_traces_are_missing_and_users_may_be_baskets() -> None:
    masked = np.ma.masked_array(T, T == 5)
    np.testing.assert_array_equal(read_traces(masked, P).values, np.where(T == 5, np.nan, T).T)
    with pytest.raises(efemb.DataError, match="positions of entities 0 are NaN"):
        read_traces(T, np.ma.masked_array(P, [[1, 0, 0, 0]] + [[0] * 4] * 3))
    data = read_baskets(LINES, basket="trip", item="what", user="trip")
    assert list(data.users) == list(data.row_labels) == [1, 2]
