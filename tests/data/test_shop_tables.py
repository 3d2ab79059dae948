"""Prices and features beside baskets: the same tables from every source, gaps counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.data import CellTable, read_features

ITEMS = ["beer", "milk", "tea", "rare"]
OPTIONS: dict[str, Any] = {
    "basket": "trip",
    "item": "sku",
    "count": "units",
    "rows": {"household": "home", "week": "week_no"},
    "price": {"value": "paid", "discount": "off", "by": "week"},
}


def shop(n_trips: int = 60, seed: int = 0) -> pd.DataFrame:
    """Lines of trips; weeks 1 to 12, so that their order as text is not that of numbers."""
    rng = np.random.default_rng(seed)
    trips = np.repeat(np.arange(n_trips), 4)
    units = rng.integers(1, 4, len(trips))
    return pd.DataFrame(
        {
            "trip": trips,
            "home": 100 + trips % 7,
            "week_no": 1 + trips % 12,
            "sku": rng.choice(
                ["beer", "milk", "tea", "rare"], len(trips), p=[0.4, 0.4, 0.17, 0.03]
            ),
            "units": units,
            "paid": np.round(units * rng.uniform(0.5, 2.0, len(trips)), 2),
            "off": np.round(units * rng.choice([0.0, 0.3], len(trips)), 2),
        }
    )


PRODUCTS = pd.DataFrame(
    {
        "sku": ["milk", "beer", "tea", "unsold"],
        "department": ["fresh", "drinks", None, "x"],
        "grams": [1000, 500, 100, 1],
    }
)


def write(folder: Path, table: pd.DataFrame, name: str) -> Path:
    path = folder / name
    table.to_csv(path, index=False) if path.suffix == ".csv" else table.to_parquet(path)
    return path


@pytest.mark.parametrize("kind", ["table", "csv", "parquet"])
def test_prices_are_those_of_the_lines(kind: str, tmp_path: Path) -> None:
    lines = shop()
    source: Any = lines if kind == "table" else write(tmp_path, lines, f"lines.{kind}")
    data = efemb.read_baskets(source, **OPTIONS)
    assert list(data.cells) == ["price", "price_ratio"]
    table = data.cells["price"]
    assert [int(week) for week in table.groups] == list(range(1, 13))  # "9" before "10"
    expected = efemb.prices(
        lines, value="paid", discount="off", count="units", by="week_no", item="sku", entities=data
    )
    assert_allclose(table.values, expected.paid.values)
    assert_allclose(data.cells["price_ratio"].values, np.exp(expected.log_ratio.values))
    assert data.report["price"] == expected.report
    assert data.report["price"]["filled"] > 0
    train, test = data.split(test=3, by="time", column="week")
    assert {int(week) for week in test.rows["week"]} == {10, 11, 12}
    assert isinstance(train.cells["price"], CellTable)


def test_a_model_of_the_prices_is_fitted_and_saved(tmp_path: Path) -> None:
    data = efemb.read_baskets(write(tmp_path, shop(), "lines.csv"), **OPTIONS)
    terms = [efemb.CellCovariate("price", log=True), efemb.RowVectors("household", 2)]
    model = efemb.PoissonEmbedding(2, random_state=0, terms=terms).fit(data)
    model.save(tmp_path / "model")
    again = efemb.load(tmp_path / "model").what_if(["milk"], price={"tea": 0.5}, week="11")
    assert again == model.what_if(["milk"], price={"tea": 0.5}, week="11")


@pytest.mark.parametrize("kind", ["table", "csv", "parquet"])
def test_features_are_assigned_by_item(kind: str, tmp_path: Path) -> None:
    products: Any = PRODUCTS
    if kind != "table":
        products = write(tmp_path, PRODUCTS, f"products.{kind}")
    data = efemb.read_baskets(shop(), **{**OPTIONS, "price": None}, features=products)
    labels = list(data.entities)
    assert labels == ["beer", "milk", "rare", "tea"]
    assert data.features["department"].tolist() == ["drinks", "fresh", None, None]
    assert_allclose(data.features["grams"], [500.0, 1000.0, np.nan, 100.0])
    assert data.report["features"] == {"missing": {"department": 2, "grams": 1}}


def test_features_are_in_the_encoding_of_the_lines(tmp_path: Path) -> None:
    lines, products = tmp_path / "lines.csv", tmp_path / "products.csv"
    lines.write_text("trip;sku\n1;thé\n1;lait\n2;lait\n", "cp1252")
    products.write_text("sku;rayon\nthé;épicerie\nlait;crèmerie\n", "cp1252")
    options = {"basket": "trip", "item": "sku", "encoding": "cp1252"}
    data = efemb.read_baskets(lines, **options, features=products)
    assert data.features["rayon"].tolist() == ["crèmerie", "épicerie"]
    assert list(data.entities) == ["lait", "thé"]


def test_bad_tables_are_refused(tmp_path: Path) -> None:
    lines = shop()
    with pytest.raises(efemb.ParameterError, match="prices are by 'week', which is not"):
        efemb.read_baskets(lines, basket="trip", item="sku", price="paid")
    with pytest.raises(efemb.ParameterError, match="price has no column 'disc'"):
        efemb.read_baskets(lines, **{**OPTIONS, "price": {"value": "paid", "disc": "off"}})
    with pytest.raises(efemb.DataError, match="no column 'cost'"):
        efemb.read_baskets(lines, **{**OPTIONS, "price": "cost"})
    free = lines.assign(paid=lines["paid"].where(lines.index != 3, 0.0))
    with pytest.raises(efemb.DataError, match=r"line 3 has value=0 .*a price must be positive"):
        efemb.read_baskets(free, **OPTIONS)
    dropped = efemb.read_baskets(free, **OPTIONS, on_bad="drop")
    assert dropped.report["price"]["dropped"] == 1
    with pytest.raises(efemb.InputTypeError, match="second pass"):
        efemb.read_baskets(iter([lines]), **OPTIONS)
    with pytest.raises(efemb.DataError, match="no column 'sku', by which"):
        efemb.read_baskets(lines, **OPTIONS, features=PRODUCTS.rename(columns={"sku": "id"}))
    twice = pd.concat([PRODUCTS, PRODUCTS.assign(grams=7)])
    with pytest.raises(efemb.DataError, match="two lines of item 'milk' that differ"):
        read_features(twice, item="sku", entities=["milk"])
    with pytest.raises(efemb.DataError, match="no item of the data is in column 'sku'"):
        read_features(PRODUCTS, item="sku", entities=["bread"])
    broken = tmp_path / "products.csv"
    broken.write_text("sku,department\nmilk,fresh\nbeer,drinks,x\n")
    with pytest.raises(efemb.DataError, match="line 3"):
        read_features(broken, item="sku", entities=["milk"])
    with pytest.raises(efemb.ParameterError, match="features= and header="):
        efemb.read_baskets([["milk"], ["beer"]], features=PRODUCTS)


def test_weeks_of_text_are_in_the_order_of_numbers() -> None:
    data = efemb.Dataset(np.eye(4), rows={"week": ["10", "9", "2", "1"]})
    _, test = data.split(test=1, by="time", column="week")
    assert test.rows["week"].tolist() == ["10"]
