"""The Complete Journey loader, on a table of a few lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import efemb
from efemb.datasets import complete_journey, download, fetch_complete_journey

PRODUCTS: dict[str, list[Any]] = {
    "product_id": [1, 2, 3, 4, 5],
    "department": ["GROCERY", "GROCERY", "FUEL", "MEAT", "DELI"],
    "brand": ["Private", "Private", "National", "National", None],
    "product_type": ["YOGURT", "YOGURT", "GASOLINE", "HAM", None],
    "package_size": ["6 OZ", "6 OZ", None, None, "1 LB"],
}


def lines() -> list[tuple[int, int, int, int]]:
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


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(efemb.DataError, match="not the published file"):
        fetch_complete_journey(written(tmp_path))


def test_missing_data_name_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "installed_paths", lambda wheel: None)
    with pytest.raises(efemb.MissingExtraError, match=r"efemb\[data\]"):
        fetch_complete_journey(tmp_path, download=False)
