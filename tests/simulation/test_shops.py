"""A simulated shop: the models of its documentation page find the planted effects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import efemb
from efemb.simulation import simulate_shop


def test_lines_agree_with_the_products_and_stores(tmp_path: Path) -> None:
    shop = simulate_shop(n_trips=400, seed=3)
    assert simulate_shop(n_trips=400, seed=3) == shop
    price = dict(zip(shop.products["item"], shop.products["price"], strict=True))
    columns = (shop.lines[name] for name in ("item", "count", "paid", "discount", "store"))
    for item, count, paid, discount, store in zip(*columns, strict=True):
        assert paid + discount == pytest.approx(count * price[item], abs=0.011)
        assert 0.0 <= discount <= 0.41 * count * price[item]
        assert item in shop.carried[store]
    lines, products = shop.write(tmp_path)
    data = efemb.read_baskets(
        lines,
        basket="basket",
        item="item",
        count="count",
        rows={"week": "week"},
        price={"value": "paid", "discount": "discount", "by": "week"},
        features=products,
    )
    assert data.values.sum() == sum(shop.lines["count"])
    assert data.report["features"]["missing"] == {
        "department": 0, "type": 0, "brand": 0, "price": 0
    }  # fmt: skip


@pytest.mark.slow
def test_the_elasticity_is_found(tmp_path: Path) -> None:
    lines, _ = simulate_shop(elasticity=-1.5).write(tmp_path)
    data = efemb.read_baskets(
        lines,
        basket="basket",
        item="item",
        count="count",
        rows={"week": "week"},
        price={"value": "paid", "discount": "discount", "by": "week"},
    )
    terms = [efemb.CellCovariate("price", log=True)]
    model = efemb.PoissonEmbedding(2, terms=terms, random_state=0).fit(data)
    assert np.median(model.elasticity()["elasticity"]) == pytest.approx(-1.5, abs=0.2)
