"""Online Retail: invoices of a British gift shop, with returns and other noise (UCI 352)."""

from __future__ import annotations

import csv
import io
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files

import numpy as np

from efemb._deprecated import warn_renamed
from efemb._terminal import progress_bar
from efemb.data.dataset import Dataset
from efemb.datasets.download import Home, find_files
from efemb.datasets.lines import baskets_of_lines, distinct, provenance, relabel
from efemb.datasets.sources import Copy, DataSet, Found, github

_PACKED = "by-day.tar.xz"
# One file per day, each with its checksum.
_DAYS = dict(
    line.split()
    for line in (files("efemb.datasets") / "online_retail.sha256").read_text("utf-8").splitlines()
)
DATA = DataSet(
    name="online_retail",
    folder="online-retail",
    title="Online Retail (UCI 352; Chen 2015)",
    shape="18,252 invoices x 3,133 products with quantities",
    terms="CC BY 4.0; cite Chen 2015, doi 10.24432/C5BW33",
    size=45_017_000,
    copies=(
        Copy(
            _DAYS,
            urls=github(
                "databricks/Spark-The-Definitive-Guide",
                "4ba5601eb9b9aed1d01ab79775e3af228216ff6f",
                "data/retail-data/by-day",
                {name: name for name in _DAYS},
            ),
        ),
        Copy({_PACKED: "320b78aa81284d1d05e63ae8473f73625470f3dc4af52e8b2165b3eff47b469c"}),
    ),
)
# Postage, fees, samples, manual corrections; vouchers start with GIFT_.
NO_GOODS = {"AMAZONFEE", "B", "BANK CHARGES", "C2", "CRUK", "D", "DOT", "M", "POST", "S"}
LEAST_INVOICES = 10
LEAST_ITEMS = 2
_LINES = 541_909


def fetch_online_retail(
    data_home: Home = None, *, raw: bool = False, download: bool = True, progress: bool = True
) -> Dataset:
    """Invoices x products with quantities: 18,252 x 3,133, 513,040 non-zeros.

    The source is not clean. A line is dropped, and counted in ``report["dropped"]`` under the
    first reason that applies, if it is

    - ``canceled``: part of an invoice whose number starts with C (a return),
    - ``quantity_not_positive``: breakage, corrections of the inventory,
    - ``price_not_positive``: corrections, gifts, bad debts; all lines without a product name are
      dropped for this or an earlier reason,
    - ``no_goods``: postage, fees, samples, vouchers, manual corrections.

    Products in fewer than 10 invoices are then dropped, and after them invoices with fewer than two
    products. Stock codes that differ only in case are the same product, labeled by its most
    frequent name. Lines of the same product and invoice are summed.

    Parameters
    ----------
    data_home : path, optional
        Folder that holds `online-retail/` with one file for each of 305 days (2010-12-01.csv to
        2011-12-09.csv), or with by-day.tar.xz that contains them; by default the folder in the
        environment variable EFEMB_DATA. Otherwise the files come from the cache or GitHub.
    raw : bool, default=False
        Keep rare products and small invoices.
    download : bool, default=True
        Whether the files may be downloaded if they are not on this machine.
    progress : bool, default=True
        Show progress bars.

    Returns
    -------
    Dataset
        Sparse. Entities are labeled by name, with the stock code if several share it.
        ``report["lines_read"]`` and ``report["names_missing"]`` count lines of the source.

    Raises
    ------
    DataError
        If the files are not available, or one is not the published file.
    """
    data_files = find_files(DATA, data_home, download=download, progress=progress)
    sales = _Sales()
    with progress_bar("reading invoices", _LINES, progress) as advance:
        for file in _texts(data_files):
            advance(sales.read(csv.reader(file)))
    filters = {"min_count": LEAST_INVOICES, "min_items_per_basket": LEAST_ITEMS}
    data = baskets_of_lines(
        {"invoice": sales.invoice, "code": sales.code, "quantity": sales.quantity},
        basket="invoice",
        item="code",
        count="quantity",
        progress=progress,
        **({} if raw else filters),
    )
    assert data.entities is not None
    codes = [str(code) for code in data.entities]
    names = sales.names()
    report = {
        "lines_read": sales.lines,
        "names_missing": sales.names_missing,
        "dropped": Dropped(sales.dropped),
    }
    labels = distinct([names[code] for code in codes], codes)
    return relabel(data, labels, data.report | provenance(DATA, data_files) | report)


def _texts(data_files: Found) -> Iterator[io.TextIOBase]:
    """The daily files, in order."""
    if _PACKED in data_files:
        with tarfile.open(data_files[_PACKED]) as packed:
            for member in packed:
                stream = packed.extractfile(member)
                if stream is not None:  # the folder itself has none
                    yield io.TextIOWrapper(stream, encoding="utf-8", newline="")
        return
    for path in data_files.paths.values():
        with path.open(encoding="utf-8", newline="") as file:
            yield file


class Dropped(dict[str, int]):
    """Lines by the reason why they were dropped."""

    def __missing__(self, reason: str) -> int:
        if reason != "cancelled":
            raise KeyError(reason)
        warn_renamed("the reason 'cancelled'", "'canceled'")
        return self["canceled"]


@dataclass
class _Sales:
    """The lines of sales, and how many others were dropped for which reason."""

    invoice: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    quantity: list[int] = field(default_factory=list)
    lines: int = 0
    names_missing: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    _names: Counter[tuple[str, str]] = field(default_factory=Counter)

    def read(self, rows: Iterator[list[str]]) -> int:
        """Read the lines of a file and return their number."""
        header = next(rows)
        columns = dict(zip(header, zip(*rows, strict=True), strict=True))
        invoice, name = columns["InvoiceNo"], columns["Description"]
        code = [stock_code.upper() for stock_code in columns["StockCode"]]
        quantity = np.array(columns["Quantity"], dtype=np.int64)
        is_sale = np.ones(len(code), dtype=bool)
        for reason, applies in {
            "canceled": np.array([number.startswith("C") for number in invoice]),
            "quantity_not_positive": quantity <= 0,
            "price_not_positive": np.array(columns["UnitPrice"], dtype=np.float64) <= 0,
            "no_goods": np.array([_is_no_goods(stock_code) for stock_code in code]),
        }.items():
            self.dropped[reason] += int((is_sale & applies).sum())
            is_sale &= ~applies
        lines = np.flatnonzero(is_sale).tolist()
        self.invoice += [invoice[i] for i in lines]
        self.code += [code[i] for i in lines]
        self.quantity += quantity[lines].tolist()
        self.lines += len(code)
        self.names_missing += name.count("")
        self._names.update((code[i], name[i].strip()) for i in lines)
        return len(code)

    def names(self) -> dict[str, str]:
        """The most frequent name of each product."""
        return {code: name for (code, name), _ in reversed(self._names.most_common())}


def _is_no_goods(code: str) -> bool:
    return code in NO_GOODS or code.startswith("GIFT_")


ENTRIES = ((DATA, fetch_online_retail),)
