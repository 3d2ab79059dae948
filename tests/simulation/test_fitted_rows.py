"""Rows drawn from a fitted model follow its conditionals, tables and random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import efemb
from efemb.data import CellTable
from efemb.fitted.embedding import FittedEmbedding
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec

N, K = 5, 2
ITEMS = list("abcde")
SIZES = np.exp(np.random.default_rng(0).normal(0, 0.3, (3, N)))
PRICE = CellTable(SIZES, by="week", groups=[1, 2, 3])
SHELF = CellTable(np.ones((3, N)), by="week", groups=[1, 2, 3])


def model_of(family: str = "poisson", context: Any = "basket", size: float = 0.0) -> Any:
    """Terms of every kind; `size` of the vectors, whose products are symmetric and negative."""
    rng = np.random.default_rng(1)
    rows = {"week": [1, 2, 3, 3], "home": ["x", "y", "x", "y"]}
    cells = {"price": PRICE, "shelf": SHELF}
    data = efemb.Dataset(np.ones((4, N)), entities=ITEMS, rows=rows, cells=cells)
    terms = [
        efemb.CellCovariate("price", log=True),
        efemb.Available("shelf"),
        efemb.RowVectors("home", 2),
    ]
    spec = Spec.resolve(context=context, family=family, terms=terms).freeze_terms(data)
    layout = ParameterSpace(spec, N, 1, 1, K).layout
    arrays = {a.name: rng.normal(0, 0.4, a.shape) for a in layout}
    arrays["rho"] = size * np.abs(arrays["rho"])
    arrays["alpha"] = -arrays["rho"]
    arrays["intercept"] = rng.normal(-0.3, 0.3, N)
    arrays["price.common"], arrays["price.entities"] = np.array([-1.5]), np.zeros(N)
    return FittedEmbedding(Parameters.from_named(arrays), spec, efemb.Vocabulary(ITEMS))


def rows_of(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    return {"week": rng.integers(1, 4, n), "home": rng.choice(["x", "y", "unknown"], n)}


@pytest.mark.parametrize("family", ["poisson", "bernoulli"])
@pytest.mark.parametrize("scale", ["none", "total"])
def test_draws_agree_with_the_conditional_means(family: str, scale: str) -> None:
    """Where a joint distribution exists, x - E[x | rest] is 0 on average, in every group."""
    context = efemb.Basket(scale) if scale == "none" else efemb.Basket(scale, pseudo_count=3.0)
    model = model_of(family, context, size=0.8 if scale == "none" else 0.0)
    drawn = model.simulate(rows_of(4000), sweeps=6)
    assert drawn.report["sampler"] == "gibbs"
    x, mean = drawn.values.toarray(), model.conditional(drawn)
    if family == "bernoulli":
        assert set(np.unique(x)) == {0.0, 1.0}
    for week in (1, 2, 3):
        mine = drawn.rows["week"] == week
        error = (x - mean)[mine].mean(axis=0)
        noise = x[mine].std(axis=0) / np.sqrt(mine.sum())
        assert (np.abs(error) < 4.5 * noise).all()


def test_categorical_rows_keep_their_sizes_and_follow_shares() -> None:
    model = model_of("categorical")
    values = np.random.default_rng(3).poisson(1.0, (2000, N)) + np.eye(N)[0]
    trips = efemb.Dataset(values, entities=ITEMS, rows=rows_of(2000))
    drawn = model.simulate(trips, sweeps=3)
    assert_array_equal(drawn.values.sum(axis=1), values.sum(axis=1))
    for week in (1, 2, 3):
        mine = drawn.rows["week"] == week
        share = model.conditional(drawn)[mine]
        expected = (share * values.sum(axis=1)[mine, None]).sum(axis=0)
        assert_allclose(drawn.values[mine].sum(axis=0), expected, rtol=0.12)
    assert model.simulate(50, row_size=4.0).values.sum() == pytest.approx(200, rel=0.3)


def test_tables_change_the_draws_and_nothing_else_does() -> None:
    model = model_of()
    rows = rows_of(300)
    usual = model.simulate(rows, seed=3)
    assert_array_equal(usual.values.toarray(), model.simulate(rows, seed=3).values.toarray())
    same = model.simulate(rows, seed=3, price=PRICE, shelf={"a": 1})
    assert_array_equal(usual.values.toarray(), same.values.toarray())
    assert (model.simulate(rows, seed=4).values != usual.values).nnz
    cheap = model.simulate(rows, seed=3, price={"b": 0.5})
    change = cheap.values.toarray() - usual.values.toarray()
    assert (change[:, 1] >= 0).all()  # a larger mean, the same random numbers
    assert change[:, 1].sum() > 50
    assert not change[:, [0, 2, 3, 4]].any()  # without vectors, items do not affect one another
    gone = model.simulate(rows, seed=3, shelf={"c": 0})
    assert gone.values[:, [2]].nnz == 0
    assert gone.values.nnz < usual.values.nnz


def test_units_and_revenue_of_two_tables() -> None:
    model, rows = model_of(), rows_of(400)
    table = model.compare_prices(rows, {"b": 0.5}, draws=3, seed=7)
    assert table["label"][0] == "b"
    assert_allclose(table["units_after"] - table["units_before"], table["change"], atol=1e-12)
    assert (table["change"][1:] == 0).all()
    assert (table["standard_error"][1:] == 0).all()
    draws = [model.simulate(rows, seed=7 + turn, price={"b": 0.5}) for turn in range(3)]
    units = np.mean([d.values.toarray()[:, 1] for d in draws], axis=0)
    paid = 0.5 * PRICE.values[rows["week"] - 1, 1]
    assert table["units_after"][0] == pytest.approx(units.sum())
    assert table["revenue_after"][0] == pytest.approx((units * paid).sum())
    before = [model.simulate(rows, seed=7 + turn) for turn in range(3)]
    each = units - np.mean([d.values.toarray()[:, 1] for d in before], axis=0)
    assert table["standard_error"][0] == pytest.approx(each.std() * np.sqrt(400))
    ratio = table["units_after"][0] / table["units_before"][0]
    assert ratio == pytest.approx(0.5**-1.5, rel=0.15)  # the elasticity


def test_bad_scenarios_are_refused() -> None:
    model = model_of()
    with pytest.raises(efemb.InputTypeError, match="no table 'prices'"):
        model.simulate(3, prices={})
    with pytest.raises(efemb.DataError, match="positive factors"):
        model.simulate(3, price={"a": -1.0})
    with pytest.raises(efemb.InputTypeError, match="a CellTable or map items to numbers"):
        model.simulate(3, price=0.8)
    with pytest.raises(efemb.DataError, match="the table 'price' has 2 items"):
        model.simulate(3, price=CellTable([[1.0, 1.0]], by="week", groups=[1]))
    with pytest.raises(efemb.DataError, match="equally long"):
        model.simulate({"week": [1, 2], "home": ["x"]})
    with pytest.raises(efemb.InputTypeError, match="rows"):
        model.simulate("many")
    with pytest.raises(efemb.ParameterError, match="pass row_size="):
        model_of("categorical").simulate(3)
    spec = Spec.resolve(context=efemb.Basket("none"), family="gaussian")
    arrays = {a.name: np.zeros(a.shape) for a in ParameterSpace(spec, N, 1, 1, K).layout}
    with pytest.raises(efemb.ParameterError, match="draws counts"):
        FittedEmbedding(Parameters.from_named(arrays), spec).simulate(3)
