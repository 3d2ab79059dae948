"""Instacart 2017: grocery orders with the names of the products, without quantities."""

from __future__ import annotations

from typing import Any

from efemb.data.dataset import Dataset
from efemb.data.readers.arrow import read_parquet
from efemb.data.readers.transactions import read_baskets
from efemb.datasets.download import Home, find_files
from efemb.datasets.lines import provenance, relabel
from efemb.datasets.sources import Copy, DataSet, github

_ORDERS = "order_products__train.parquet"
_SHA256 = {
    _ORDERS: "2e31fd37cd668309154cb8513e204734813fc5bb2c75ff20fe8e3b1273b00393",
    "products.parquet": "558390ce4b3cb1b214b60dfc22846924e930cdddde0032d5528c2b605ddded5c",
    "aisles.parquet": "bacdb2d179a5db00a1cc5d75b4bee60e50ac77726803ae566f6b0037deffc9ae",
    "departments.parquet": "4e1891c58a8ceab5586334748f900fec5a8cfc06aac5ab7676a6893209ac355d",
}
DATA = DataSet(
    name="instacart",
    folder="instacart-train",
    title="Instacart 2017, the orders of the train split",
    shape="123,136 orders x 14,127 products, 0/1",
    terms=(
        "the terms of Instacart for its 2017 data apply and could not be verified: treat as not "
        "redistributable"
    ),
    size=4_816_947,
    copies=(
        Copy(
            _SHA256,
            urls=github(
                "frandiego/instacart-kaggle",
                "84f839ef7558fb2c337dbdb57d45c2497c303c63",
                "data",
                {name: name for name in _SHA256},
            ),
        ),
    ),
)
LEAST_ORDERS = 10
LEAST_PRODUCTS = 2


def fetch_instacart(
    data_home: Home = None, *, raw: bool = False, download: bool = True, progress: bool = True
) -> Dataset:
    """Orders x products, 1 where a product was ordered: 123,136 x 14,127.

    Products in fewer than 10 orders are dropped (the paper's rule for its shopping data), then
    orders with fewer than two products. Rows are sorted by order, products by their numbers.

    Parameters
    ----------
    data_home : path, optional
        Folder that holds `instacart-train/order_products__train.parquet`, `products.parquet`,
        `aisles.parquet` and `departments.parquet`; by default the folder in the environment
        variable EFEMB_DATA. Otherwise the files come from the cache or from GitHub.
    raw : bool, default=False
        Return all orders and products: 131,209 x 39,123.
    download : bool, default=True
        Whether the files may be downloaded if they are not on this machine.
    progress : bool, default=True
        Show progress bars.

    Returns
    -------
    Dataset
        Sparse. Entities are labeled by the names of the products; ``report["aisles"]`` and
        ``report["departments"]`` give the aisle and the department of each label.

    Raises
    ------
    DataError
        If the files are not available, or one is not the published file.
    MissingExtraError
        If pyarrow is missing: ``pip install "efemb[io]"``.
    """
    files = find_files(DATA, data_home, download=download, progress=progress)
    tables = {
        name: read_parquet(files[f"{name}.parquet"]).to_pydict()
        for name in ("products", "aisles", "departments")
    }
    filters: dict[str, Any] = {"min_count": LEAST_ORDERS, "min_items_per_basket": LEAST_PRODUCTS}
    data = read_baskets(
        files[_ORDERS],
        basket="order_id",
        item="product_id",
        progress=progress,
        **({} if raw else filters),
    )
    assert data.entities is not None
    products = tables["products"]
    line_of = {number: i for i, number in enumerate(products["product_id"])}
    lines = [line_of[number] for number in data.entities]
    labels = [products["product_name"][i] for i in lines]
    groups = {}
    for kind in ("aisle", "department"):
        table = tables[f"{kind}s"]
        names = dict(zip(table[f"{kind}_id"], table[kind], strict=True))
        column = [names[products[f"{kind}_id"][i]] for i in lines]
        groups[f"{kind}s"] = dict(zip(labels, column, strict=True))
    return relabel(data, labels, data.report | provenance(DATA, files) | groups)


ENTRIES = ((DATA, fetch_instacart),)
