"""Prices by item and week: means by a loop, gaps by the rule, bad lines refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb import prices

OPTIONS: dict[str, Any] = {"value": "paid", "count": "units", "discount": "off", "by": "week"}


def lines(n: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    units = rng.integers(1, 4, n)
    return pd.DataFrame(
        {
            "item": rng.choice(["tea", "milk", "beer"], n, p=[0.05, 0.9, 0.05]),
            "week": rng.integers(1, 20, n),
            "units": units,
            "paid": units * rng.uniform(0.5, 2.0, n),
            "off": units * rng.choice([0.0, 0.3], n),
        }
    )


def test_prices_are_those_of_the_loop() -> None:
    table = lines()
    made = prices(table, **OPTIONS)
    items, weeks = list(made.paid.groups), sorted(set(table["week"]))
    assert items == weeks
    for column, item in enumerate(["beer", "milk", "tea"]):
        last: float | None = None
        mine = table[table["item"] == item]
        first = mine[mine["week"] == mine["week"].min()]
        start = (first["paid"] + first["off"]).sum() / first["units"].sum()
        for row, week in enumerate(weeks):
            now = mine[mine["week"] == week]
            if len(now):
                last = (now["paid"] + now["off"]).sum() / now["units"].sum()
                paid = now["paid"].sum() / now["units"].sum()
            else:
                paid = start if last is None else last
            regular = start if last is None else last
            assert made.paid.values[row, column] == pytest.approx(paid)
            assert made.regular.values[row, column] == pytest.approx(regular)
            assert made.log_ratio.values[row, column] == pytest.approx(np.log(paid / regular))
    observed = len(set(zip(table["item"], table["week"], strict=True)))
    assert made.report["observed"] == observed
    assert made.report["filled"] == 3 * len(weeks) - observed


def test_items_are_those_of_the_data() -> None:
    data = efemb.Dataset(np.ones((1, 3)), entities=["wine", "milk", "tea"])
    made = prices(lines(), entities=data, **OPTIONS)
    assert np.isnan(made.paid.values[:, 0]).all()
    assert made.report["items_without_price"] == 1
    assert made.report["unknown_items"] == int((lines()["item"] == "beer").sum())
    every = prices(lines(), **OPTIONS)
    assert_allclose(made.paid.values[:, 1], every.paid.values[:, 1])
    with_table = efemb.Dataset(np.ones((2, 3)), rows={"week": [3, 4]}, cells={"price": made.paid})
    assert with_table.cells["price"].n_entities == 3


@pytest.mark.parametrize(
    ("change", "options", "error", "rule"),
    [
        ({"paid": 0.0}, {}, efemb.DataError, "line 0 has paid=0 .*on_bad='drop'"),
        ({"paid": -2.0}, {}, efemb.DataError, "line 0 has paid=-2"),
        ({"paid": np.nan}, {}, efemb.DataError, "line 0 has paid=nan for"),
        ({"paid": np.inf}, {}, efemb.DataError, "line 0 has paid=inf for"),
        ({"units": 0}, {}, efemb.DataError, "for 0 units"),
        ({"units": np.inf}, {}, efemb.DataError, "for inf units"),
        ({"off": -0.5}, {}, efemb.DataError, r"line 0 has off=-0.5: a discount must be .*300 bad"),
        ({"off": np.inf}, {}, efemb.DataError, "line 0 has off=inf"),
        ({}, {"value": "cost"}, efemb.DataError, "no column 'cost'"),
        ({"paid": "much"}, {}, efemb.InputTypeError, "'paid' must hold numbers"),
        ({}, {"entities": ["wine"]}, efemb.DataError, "no line has a price"),
        ({}, {"on_bad": "guess"}, efemb.ParameterError, "on_bad"),
    ],
)
def test_bad_lines_are_refused(change: Any, options: Any, error: Any, rule: str) -> None:
    table = lines().assign(**change) if change else lines()
    with pytest.raises(error, match=rule):
        prices(table, **{**OPTIONS, **options})


def test_bad_lines_may_be_dropped_and_are_counted() -> None:
    table = lines()
    table.loc[5, "paid"] = 0.0
    made = prices(table, on_bad="drop", **OPTIONS)
    assert made.report["dropped"] == 1
    assert_allclose(made.paid.values, prices(table.drop(5), **OPTIONS).paid.values)
