"""Instacart, Online Retail and Groceries, on a few lines each."""

from __future__ import annotations

import dataclasses
import gzip
import io
import lzma
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import efemb
from efemb.datasets import (
    fetch_groceries,
    fetch_instacart,
    fetch_online_retail,
    groceries,
    instacart,
    online_retail,
)
from efemb.datasets.sources import Copy

# -- Instacart -------------------------------------------------------------------------------------


def write_instacart(folder: Path) -> None:
    """Product 3 is bought twelve times, 1 ten times, 2 nine times; order 20 has one product."""
    lines = [(order, 3) for order in range(12)] + [(order, 1) for order in range(2, 12)]
    lines += [(order, 2) for order in range(9)]
    orders, products = zip(*lines, strict=True)
    tables = {
        "order_products__train": {"order_id": orders, "product_id": products, "reordered": orders},
        "products": {
            "product_id": [1, 2, 3],
            "product_name": ["Milk", "Ice", "Yogurt"],
            "aisle_id": [1, 2, 1],
            "department_id": [7, 8, 7],
        },
        "aisles": {"aisle_id": [1, 2], "aisle": ["fridge", "freezer"]},
        "departments": {"department_id": [7, 8], "department": ["dairy", "frozen"]},
    }
    folder.mkdir(parents=True)
    for name, columns in tables.items():
        table = pa.table({key: list(values) for key, values in columns.items()})
        pq.write_table(table, folder / f"{name}.parquet")


def test_instacart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: Any) -> None:
    folder = tmp_path / "instacart-train"
    write_instacart(folder)
    monkeypatch.setattr(instacart, "DATA", published(instacart.DATA, folder))
    data = fetch_instacart(tmp_path, progress=False)
    assert data.entities is not None
    assert list(data.entities) == ["Milk", "Yogurt"]
    assert data.values.toarray().tolist() == [[1.0, 1.0]] * 10  # orders 0 and 1 have Yogurt only
    assert data.report["aisles"] == {"Milk": "fridge", "Yogurt": "fridge"}
    assert data.report["departments"] == {"Milk": "dairy", "Yogurt": "dairy"}
    assert (data.report["items_dropped"], data.report["baskets_dropped"]) == (1, 2)
    raw = fetch_instacart(tmp_path, raw=True, progress=False)
    assert raw.shape == (12, 3)
    assert raw.values.nnz == 31


# -- Online Retail ---------------------------------------------------------------------------------

HEADER = "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country\n"
DAYS = {
    "2010-12-01.csv": [
        '536365,85123A,"WHITE, HANGING HOLDER ",6,2010-12-01 08:26:00,2.55,17850.0,United Kingdom',
        "536365,71053,LANTERN,2,2010-12-01 08:26:00,3.39,17850.0,United Kingdom",
        "536365,85123a,WHITE,1,2010-12-01 08:26:00,2.55,17850.0,United Kingdom",
        "536366,POST,POSTAGE,1,2010-12-01 08:28:00,15.0,,France",
        "536366,gift_0001_20,VOUCHER,1,2010-12-01 08:28:00,15.0,,France",
        "536367,71053,LANTERN,5,2010-12-01 08:34:00,3.39,13047.0,United Kingdom",
    ],
    "2010-12-02.csv": [
        "C536379,71053,LANTERN,-1,2010-12-02 09:41:00,3.39,14527.0,United Kingdom",
        "536380,71053,,-10,2010-12-02 09:41:00,0.0,,United Kingdom",
        "536381,71053,,3,2010-12-02 09:41:00,0.0,,United Kingdom",
        '536382,85123A,"WHITE, HANGING HOLDER",4,2010-12-02 09:42:00,2.55,,United Kingdom',
        "536382,22111,LANTERN,7,2010-12-02 09:42:00,2.55,,United Kingdom",
        "C536383,D,Discount,-1,2010-12-02 09:45:00,27.5,14527.0,United Kingdom",
    ],
}


def write_days(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, lines in DAYS.items():
        (folder / name).write_text(HEADER + "".join(f"{line}\n" for line in lines), "utf-8")


def write_packed(folder: Path) -> None:
    folder.mkdir(parents=True)
    with lzma.open(folder / "by-day.tar.xz", "wb") as xz, tarfile.open(fileobj=xz, mode="w") as tar:
        inside = tarfile.TarInfo("by-day")
        inside.type = tarfile.DIRTYPE
        tar.addfile(inside)
        for name, lines in DAYS.items():
            content = (HEADER + "".join(f"{line}\n" for line in lines)).encode()
            member = tarfile.TarInfo(f"by-day/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


@pytest.mark.parametrize("write", [write_days, write_packed])
def test_online_retail_drops_and_counts(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: Any
) -> None:
    folder = tmp_path / "online-retail"
    write(folder)
    copies = (Copy(dict.fromkeys(DAYS, "0" * 64)), Copy({"by-day.tar.xz": "0" * 64}))
    small = dataclasses.replace(online_retail.DATA, copies=copies)
    monkeypatch.setattr(online_retail, "DATA", published(small, folder))
    data = fetch_online_retail(tmp_path, raw=True, progress=False)
    assert data.entities is not None
    assert data.row_labels is not None
    # Two products are called LANTERN; the holder has one spelling more often than the other.
    assert list(data.entities) == ["LANTERN #22111", "LANTERN #71053", "WHITE, HANGING HOLDER"]
    assert data.row_labels.tolist() == ["536365", "536367", "536382"]
    assert data.values.toarray().tolist() == [[0, 2, 7], [0, 5, 0], [7, 0, 4]]
    assert data.report["lines_read"] == 12
    assert data.report["names_missing"] == 2
    assert data.report["dropped"] == {
        "canceled": 2,
        "quantity_not_positive": 1,
        "price_not_positive": 1,
        "no_goods": 2,
    }
    with pytest.warns(FutureWarning, match="'cancelled' is now 'canceled'"):
        assert data.report["dropped"]["cancelled"] == 2
    assert data.report["duplicates_summed"] == 1
    with pytest.raises(efemb.DataError, match="min_count=10"):
        fetch_online_retail(tmp_path, progress=False)


def test_online_retail_lists_a_file_for_each_day() -> None:
    days = online_retail.DATA.copies[0]
    assert len(days.sha256) == 305
    assert list(days.sha256) == sorted(days.sha256)
    assert days.urls["2011-12-09.csv"].endswith("/data/retail-data/by-day/2011-12-09.csv")


# -- Groceries -------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_groceries(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: Any
) -> None:
    folder = tmp_path / "groceries"
    folder.mkdir()
    lines = b"0\t2\t1\n1\t0\t0\n0\t0\t3\n0\t0\t0\n"
    if packed:
        (folder / "Groceries.data.gz").write_bytes(gzip.compress(lines))
    else:
        (folder / "Groceries.data").write_bytes(lines)
    (folder / "Groceries.labels").write_text(
        "011\tfrankfurter\tWUERSTEL\n012\tsausage\tWURST\n111\tcitrus fruit\tZITRUS\n"
    )
    (folder / "Groceries.cat1.labels").write_text("0\tmeat\tFLEISCH\n1\tfruit\tOBST\n")
    (folder / "Groceries.cat2.labels").write_text("01\tsausages\tWURST\n11\tfruits\tOBST\n")
    monkeypatch.setattr(groceries, "DATA", published(groceries.DATA, folder))
    data = fetch_groceries(tmp_path, progress=False)
    assert data.values.toarray().tolist() == [[0, 2, 1], [1, 0, 0], [0, 0, 3], [0, 0, 0]]
    assert data.values.dtype == np.float32
    assert data.entities is not None
    assert list(data.entities) == ["frankfurter", "sausage", "citrus fruit"]
    assert data.entities.counts is not None
    assert data.entities.counts.tolist() == [1, 1, 2]
    assert data.report["departments"]["citrus fruit"] == "fruit"
    assert data.report["sections"]["frankfurter"] == "sausages"
