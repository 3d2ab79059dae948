"""simulate_shop: a small shop with households, prices and a product tree, and known effects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from efemb._files import complete_or_absent, expand_home, table_writer
from efemb._typing import Floats
from efemb.data.array_checks import generator
from efemb.errors import check_integer

KINDS = {  # department -> types
    "dairy": ("milk", "yogurt", "cheese"),
    "bakery": ("bread", "cake"),
    "drinks": ("beer", "soda", "juice"),
    "meat": ("ham", "turkey"),
}
BRANDS = ("Alpha", "Beta", "Gamma", "Delta")
TASTE = 1.0  # standard deviation of a household's preference for a department or type, in nats
TOGETHER = 1.2  # effect of a trip's purpose on its department
SEASON = 2.0  # effect of the last weeks on turkey
UNITS = 4.0  # mean units of a trip
LACKING = 0.15  # share of the products that the second store does not carry


@dataclass(frozen=True)
class SimulatedShop:
    """Lines of transactions and a table of products, as columns.

    Attributes
    ----------
    lines : dict of str to list
        One line per item of a basket: basket, household, week, store, item, count, paid (for the
        line, after the discount) and discount (of the line).
    products : dict of str to list
        One line per item: item, department, type, brand and price (the regular one).
    elasticity : float
        d log units / d log price, of every item.
    carried : dict of str to list of str
        The items of each store.
    """

    lines: dict[str, list[Any]]
    products: dict[str, list[Any]]
    elasticity: float
    carried: dict[str, list[str]]

    def write(self, folder: Any = ".") -> tuple[Path, Path]:
        """Write lines.csv and products.csv to a folder; returns their paths."""
        home = expand_home(folder)
        paths = home / "lines.csv", home / "products.csv"
        for path, columns in zip(paths, (self.lines, self.products), strict=True):
            with complete_or_absent(path) as stream, table_writer(stream, ",") as writer:
                writer.writerow(columns)
                writer.writerows(zip(*columns.values(), strict=True))
        return paths


def simulate_shop(
    n_trips: int = 3000,
    n_households: int = 100,
    n_weeks: int = 26,
    elasticity: float = -2.0,
    seed: int = 0,
) -> SimulatedShop:
    """Draw a year or so of a small shop: households, weeks, prices, stores, a tree of products.

    Forty products of four departments. Households differ in their preferences, trips in their
    purpose; turkey sells in the last weeks; in every week some products are 10 to 40% off. Prices
    do not depend on demand here, so that the elasticity is causal, as it never is in a real shop.

    Parameters
    ----------
    n_trips, n_households, n_weeks : int, default=3000, 100, 26
        Sizes.
    elasticity : float, default=-2.0
        Of the units of a product with respect to its price.
    seed : int, default=0
        The same seed gives the same shop.

    Returns
    -------
    SimulatedShop

    Examples
    --------
    >>> shop = simulate_shop(n_trips=10, seed=0)
    >>> list(shop.lines)
    ['basket', 'household', 'week', 'store', 'item', 'count', 'paid', 'discount']
    >>> len(shop.products["item"])
    40
    """
    sizes = {"n_trips": n_trips, "n_households": n_households, "n_weeks": n_weeks}
    for name, size in sizes.items():
        check_integer(name, size)
    rng = generator(seed)
    products = _draw_products(rng)
    n = len(products["item"])
    discount = np.where(rng.random((n_weeks, n)) < 0.2, rng.uniform(0.1, 0.4, (n_weeks, n)), 0.0)
    household = rng.integers(0, n_households, n_trips)
    week = np.sort(rng.integers(0, n_weeks, n_trips))
    store = rng.integers(0, 2, n_trips)
    carried = np.ones((2, n), dtype=bool)
    carried[1] = rng.random(n) >= LACKING
    rate = _draw_rates(products, household, week, n_weeks, rng)
    rate *= (1.0 - discount[week]) ** elasticity * carried[store]
    rate *= UNITS / rate.sum(axis=1).mean()
    counts = rng.poisson(rate)
    trip, code = np.nonzero(counts)
    units = counts[trip, code]
    full = units * np.array(products["price"])[code]
    off = np.round(full * discount[week[trip], code], 2)
    names = np.array(products["item"])
    lines = {
        "basket": (trip + 1).tolist(),
        "household": [f"h{number}" for number in household[trip] + 1],
        "week": (week[trip] + 1).tolist(),
        "store": np.array(["north", "south"])[store[trip]].tolist(),
        "item": names[code].tolist(),
        "count": units.tolist(),
        "paid": np.round(full - off, 2).tolist(),
        "discount": off.tolist(),
    }
    stores = {name: names[carried[i]].tolist() for i, name in enumerate(("north", "south"))}
    return SimulatedShop(lines, products, elasticity, stores)


def _draw_products(rng: np.random.Generator) -> dict[str, list[Any]]:
    """Every brand of every type."""
    rows = [
        (f"{brand} {kind}", department, kind, brand)
        for department, kinds in KINDS.items()
        for kind in kinds
        for brand in BRANDS
    ]
    names = ("item", "department", "type", "brand")
    columns: dict[str, list[Any]] = {
        name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }
    columns["price"] = np.round(rng.uniform(1.0, 6.0, len(rows)), 2).tolist()
    return columns


def _draw_rates(
    products: dict[str, list[Any]], household: Any, week: Any, n_weeks: int, rng: Any
) -> Floats:
    """Mean units of every product in every trip at regular prices, up to a factor."""
    department, kind = (
        np.unique(products[name], return_inverse=True)[1] for name in ("department", "type")
    )
    n_households = int(household.max()) + 1
    taste = rng.normal(0.0, TASTE, (n_households, department.max() + 1))[:, department]
    taste = taste + rng.normal(0.0, TASTE, (n_households, kind.max() + 1))[:, kind]
    errand = rng.integers(0, department.max() + 1, len(household))
    u = rng.normal(0.0, 0.7, len(kind)) + taste[household]
    u += TOGETHER * (errand[:, None] == department)
    late = week[:, None] >= n_weeks - max(1, n_weeks // 8)
    u += SEASON * (late & (np.array(products["type"]) == "turkey"))
    return np.asarray(np.exp(u))
