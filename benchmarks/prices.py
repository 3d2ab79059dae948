"""Prices: what a table of prices is worth where prices move, and how large predicted changes are.

30% of the trips are test trips; prices are those of the lines of the others. Judged are item-weeks
whose price changed by 10% or more against the week before: log shares of their purchases, with and
without prices, and the slope of realized on predicted changes of weekly units. A slope of 1 means
that predicted changes are as large as those that happen. Errors are clustered by trip and by item.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import file_of
from benchmarks.harness import Report, Settings, stopwatch
from benchmarks.questions import predict_entries

Array = NDArray[Any]
SHARE, CHANGE, COMPONENTS, ROWS_AT_ONCE = 0.3, np.log(1.1), 50, 2000
GAIN, SLOPE = 0.05, (0.8, 1.2)  # what is wanted
OTHERS = ("FUEL", "MISCELLANEOUS", "COUPON", "KIOSK-GAS")  # departments that are not goods


@dataclass(frozen=True)
class Shop:
    """Training and test trips, and where prices moved.

    tables : prices by name;  changed : (weeks, N) item-weeks whose price changed, both observed
    week : (test trips,) place of the week of each test trip
    """

    train: Any
    test: Any
    tables: dict[str, Any]
    changed: Array
    week: Array


def _lines(settings: Settings) -> tuple[Any, dict[str, str], Any]:
    """Lines of transactions, the names of their columns, and the category of each item."""
    import pandas as pd

    if settings.quick:
        from efemb.simulation import simulate_shop

        shop = simulate_shop(n_trips=6000, seed=0)
        names = {"basket": "basket", "item": "item", "count": "count"}
        names |= {"value": "paid", "discount": "discount"}
        return (
            pd.DataFrame(shop.lines),
            names,
            dict(zip(shop.products["item"], shop.products["type"], strict=True)),
        )
    lines = pd.read_parquet(file_of(settings, "complete-journey/transactions.parquet"))
    products = pd.read_parquet(file_of(settings, "complete-journey/products.parquet"))
    goods = products[~products.department.isin(OTHERS)]
    lines = lines[(lines.quantity > 0) & lines.product_id.isin(goods.product_id)]
    names = {"basket": "basket_id", "item": "product_id", "count": "quantity"}
    names |= {"value": "sales_value", "discount": "retail_disc"}
    return lines, names, dict(zip(goods.product_id, goods.product_category, strict=True))


def open_shop(settings: Settings, seed: int) -> Shop:
    """Trips and the prices of their training part."""
    import efemb
    from efemb.data import CellTable

    lines, names, category = _lines(settings)
    columns = {name: names[name] for name in ("basket", "item", "count")}
    least = 2 if settings.quick else 40
    trips = efemb.read_baskets(
        lines, **columns, rows={"week": "week"}, min_count=least, min_items_per_basket=2
    )
    kinds = np.array([str(category[label]) for label in trips.entities])
    trips = trips._replace(trips.values, features={"category": kinds})
    train, test = trips.split(test=SHARE, seed=seed)
    known = lines[lines[names["basket"]].isin(set(train.row_labels.tolist()))]
    money = {name: names[name] for name in ("value", "discount", "count", "item")}
    made = efemb.prices(known, **money, by="week", entities=trips, on_bad="drop")
    weeks = np.array([int(week) for week in made.paid.groups])
    cells, sold = train.values.tocoo(), np.zeros(made.paid.values.shape, dtype=bool)
    sold[_places(weeks, train)[cells.row], cells.col] = True
    changed = np.zeros_like(sold)
    moved = np.abs(np.diff(np.log(made.paid.values), axis=0)) >= CHANGE
    changed[1:] = sold[1:] & sold[:-1] & moved
    ratio = CellTable(np.exp(made.log_ratio.values), by="week", groups=made.paid.groups)
    tables = {"price": made.paid, "price_ratio": ratio}
    return Shop(train, test, tables, changed, _places(weeks, test))


def _places(weeks: Array, trips: Any) -> Array:
    return np.searchsorted(weeks, np.asarray(trips.rows["week"]).astype(np.int64))


def run(settings: Settings) -> Report:
    """Without prices, with paid prices and with their ratio to regular ones."""
    from efemb.evaluation import compare

    report = Report("prices", settings)
    for seed in settings.seeds[:1] if settings.quick else settings.seeds[:2]:
        shop, answers = open_shop(settings, seed), dict[str, Any]()
        for name in ("no prices", *shop.tables):
            with stopwatch() as timing:
                model, test = _fit(shop, name, seed, 5 if settings.quick else COMPONENTS)
            answers[name] = _ask(model, shop, test)
            slope, error, n = _slope(model, shop, test)
            beside = f"error {error:.3f}, {n:,} item-weeks, {timing.cpu:.0f} CPU-s of the fit"
            limits = {} if name == "no prices" else {"at_least": SLOPE[0], "at_most": SLOPE[1]}
            label = f"seed {seed}: {name}: slope of realized on predicted changes"
            report.add(label, slope, beside=beside, **limits)
        for row in compare(answers, reference="no prices", bootstrap=1):
            label = f"seed {seed}: {row['model']}"
            beside = f"error {row['row_error']:.4f}, n {row['n']:.0f} units"
            report.add(f"{label}: nats per unit where prices moved", row["score"], beside=beside)
            if row["model"] != "no prices":
                error = f"error {row['difference_error']:.4f}"
                report.add(f"{label}: gain", row["difference"], beside=error, at_least=GAIN)
    return report


def _fit(shop: Shop, name: str, seed: int, size: int) -> tuple[Any, Any]:
    """A fitted p-emb, and the test trips with the prices it needs."""
    import efemb

    train, test, terms = shop.train, shop.test, []
    if name in shop.tables:
        cells = {name: shop.tables[name]}
        train, test = (trips._replace(trips.values, cells=cells) for trips in (train, test))
        terms = [efemb.CellCovariate(name, by="category", log=True)]
    return efemb.PoissonEmbedding(size, terms=terms, random_state=seed).fit(train), test


def _ask(model: Any, shop: Shop, test: Any) -> Any:
    """Predictions of the test entries of item-weeks whose price changed."""
    cells = test.values.tocoo()
    asked = shop.changed[shop.week[cells.row], cells.col]
    asked &= np.diff(test.values.indptr)[cells.row] > 1
    row, entity = cells.row[asked].astype(np.int64), cells.col[asked].astype(np.int64)
    return predict_entries(model, test, row, entity, cells.data[asked].astype(np.float64))


def _slope(model: Any, shop: Shop, test: Any) -> tuple[float, float, int]:
    """Slope through 0, its error over items, and the number of item-weeks.

    What is predicted of a week is the sum over its trips of the shares of the items given the rest
    of the trip, times the units of the trip.
    """
    realized, predicted = (np.zeros(shop.changed.shape) for _ in range(2))
    cells = test.values.tocoo()
    np.add.at(realized, (shop.week[cells.row], cells.col), cells.data)
    for start in range(0, test.n_rows, ROWS_AT_ONCE):
        some = np.arange(start, min(start + ROWS_AT_ONCE, test.n_rows))
        trips = test.take_rows(some)
        means = model.conditional(trips)
        units = np.asarray(trips.values.sum(axis=1)).reshape(-1, 1)
        np.add.at(predicted, shop.week[some], means / means.sum(axis=1, keepdims=True) * units)
    chosen = shop.changed[1:]
    expected, happened = (np.diff(table, axis=0)[chosen] for table in (predicted, realized))
    square = float(expected @ expected)
    slope = float(expected @ happened) / square
    item = np.nonzero(chosen)[1]
    sums = np.bincount(item, expected * (happened - slope * expected))
    return slope, float(np.sqrt((sums**2).sum()) / square), len(item)
