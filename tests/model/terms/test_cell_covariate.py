"""Cell tables in u: a planted elasticity is found; tables and categories of all kinds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import efemb
from efemb import checks
from efemb.data import CellTable
from efemb.model.terms import CellCovariate, Offset

N, WEEKS = 8, 30


def market(n_rows: int = 4000, seed: int = 0) -> efemb.Dataset:
    """Items of two categories, whose elasticities are -1 and -3."""
    rng = np.random.default_rng(seed)
    week = rng.integers(0, WEEKS, n_rows)
    price = np.exp(rng.normal(0.0, 0.2, (WEEKS, N))) * np.linspace(1.0, 9.0, N)
    category = np.repeat(["staple", "luxury"], N // 2)
    elasticity = np.where(category == "staple", -1.0, -3.0)
    z = np.log(price) - np.log(price).mean(axis=0)
    counts = rng.poisson(0.5 * np.exp(elasticity * z[week]))
    return efemb.Dataset(
        counts.astype(float),
        rows={"week": week},
        features={"category": category},
        cells={"price": CellTable(price, by="week", groups=range(WEEKS))},
    )


@pytest.mark.slow
@pytest.mark.parametrize("make", [efemb.PoissonEmbedding, efemb.CategoricalEmbedding])
def test_a_planted_elasticity_is_found_and_predicts(make: Any) -> None:
    train, test = market(12_000).split(test=0.25, seed=0)
    # Items are independent: a free context would learn from what is missing in it.
    options: dict[str, Any] = {"random_state": 1, "prior": efemb.Normal(1000.0)}
    plain = make(1, **options).fit(train)
    term = CellCovariate("price", by="category", log=True)
    model = make(1, terms=[term], **options).fit(train)
    assert model.score(test) > plain.score(test) + 0.03
    frozen = model.fitted().spec.terms[0]
    arrays = {name.partition(".")[2]: a for name, a in model.parameters_.terms.items()}
    c = frozen.coefficients(arrays)
    assert_allclose(c[: N // 2], -1.0, atol=0.35)
    assert_allclose(c[N // 2 :], -3.0, atol=0.35)


@pytest.mark.parametrize("by", [None, "category"])
@pytest.mark.parametrize("sparse", [False, True])
def test_contracts(by: str | None, sparse: bool) -> None:
    data = market(14)
    price = data.cells["price"].values
    table = (
        csr_array(np.where(price > 4, price, 0.0)) if sparse else np.where(price > 8, np.nan, price)
    )
    category = np.array(["a", None, "b", "a", "b", "b", None, "a"], dtype=object)
    cells = {"price": CellTable(table, by="week", groups=range(WEEKS))}
    data = efemb.Dataset(
        data.values, rows=dict(data.rows), features={"category": category}, cells=cells
    )
    checks.check_term(CellCovariate("price", by=by, log=not sparse), data)
    checks.check_term(Offset("price"), data)
    checks.check_term(Offset("week"), data)


def test_offsets_are_added_to_the_predictor() -> None:
    """With u by hand, and a known exposure of the rows that the intercept need not explain."""
    rng = np.random.default_rng(1)
    exposure = np.exp(rng.normal(0.0, 1.0, 3000))
    counts = rng.poisson(exposure[:, None] * np.array([0.2, 0.5, 1.0]))
    rows = {"logarithm": np.log(exposure)}
    data = efemb.Dataset(counts.astype(float), rows=rows)
    options: dict[str, Any] = {"random_state": 0, "dtype": "float64"}
    model = efemb.PoissonEmbedding(1, terms=[Offset("logarithm")], **options).fit(data)
    means = model.conditional(data)
    without = replace(model.fitted(), spec=replace(model.fitted().spec, terms=()))
    assert_allclose(means, without.conditional(data) * exposure[:, None], rtol=1e-8)


def test_data_may_bring_a_table_of_their_own() -> None:
    data = market(500)
    term = CellCovariate("price", log=True)
    model = efemb.PoissonEmbedding(1, random_state=0, terms=[term]).fit(data)
    doubled = CellTable(2.0 * data.cells["price"].values, by="week", groups=range(WEEKS))
    dearer = data._replace(data.values, cells={"price": doubled})
    bare = data._replace(data.values, cells={})
    assert_allclose(model.conditional(bare), model.conditional(data))
    frozen = model.fitted().spec.terms[0]
    arrays = {name.partition(".")[2]: a for name, a in model.parameters_.terms.items()}
    factor = 2.0 ** frozen.coefficients(arrays)
    ratio = model.conditional(dearer) / model.conditional(data)
    assert_allclose(ratio, np.broadcast_to(factor, ratio.shape), rtol=1e-4)


def with_price(price: Any) -> efemb.Dataset:
    data = market(20)
    table = CellTable(price, by="week", groups=range(WEEKS))
    return data._replace(data.values, cells={"price": table})


GOOD = np.exp(np.random.default_rng(0).normal(size=(WEEKS, N)))
BAD = np.where(np.arange(N) == 2, 0.0, GOOD)


@pytest.mark.parametrize(
    ("term", "data", "error", "rule"),
    [
        (CellCovariate("cost"), market(20), efemb.DataError, r"'cost'.*tables: 'price'"),
        (Offset("cost"), market(20), efemb.DataError, r"'cost'.*tables: 'price'"),
        (CellCovariate("price", by="brand"), market(20), efemb.DataError, "features: 'category'"),
        (CellCovariate("price", log=True), with_price(BAD), efemb.DataError, "0 in week 0, entity"),
        (
            CellCovariate("price", log=True),
            with_price(csr_array(GOOD)),
            efemb.DataError,
            "the table is sparse",
        ),
        (CellCovariate("price"), with_price(GOOD[:1] + 0 * GOOD), efemb.DataError, "does not vary"),
        (CellCovariate(3), market(20), efemb.InputTypeError, "table must be a name"),
        (CellCovariate("price", log=1), market(20), efemb.InputTypeError, "True or False"),
        (CellCovariate("price", prior="half-normal"), market(20), efemb.ParameterError, "signed"),
    ],
)
def test_bad_tables_are_refused(term: Any, data: Any, error: Any, rule: str) -> None:
    with pytest.raises(error, match=rule):
        efemb.PoissonEmbedding(1, terms=[term]).fit(data)


def test_a_week_that_the_table_lacks_is_named() -> None:
    data = market(200)
    model = efemb.PoissonEmbedding(1, random_state=0, terms=[CellCovariate("price", log=True)])
    model.fit(data)
    later = efemb.Dataset(data.values, rows={"week": np.full(200, 99)})
    with pytest.raises(efemb.DataError, match="week=99, which the table does not describe"):
        model.score(later)
    unknown = efemb.Dataset(data.values, rows={"week": np.full(200, np.nan)})
    assert np.isfinite(model.score(unknown))
