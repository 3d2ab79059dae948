"""Terms in partial_fit and from_fitted; columns that are missing, new or out of order."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import efemb
from efemb.data import CellTable
from model.terms.samples import TERMS, cells_of, rows_of

N = 8


def trips(n_rows: int = 150, seed: int = 0, **columns: Any) -> efemb.Dataset:
    values = np.random.default_rng(seed).poisson(0.7, (n_rows, N)).astype(float)
    labels = [f"i{n}" for n in range(N)]
    rows = {**rows_of(n_rows), **columns}
    return efemb.Dataset(values, entities=labels, rows=rows, cells=cells_of(N))


def fit(data: efemb.Dataset, *terms: Any, **options: Any) -> Any:
    settings: dict[str, Any] = {"random_state": 0, "max_iter": 4, **options}
    weight = settings.pop("sample_weight", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = efemb.PoissonEmbedding(2, terms=list(terms), **settings)
        return model.fit(data, sample_weight=weight)


@pytest.mark.parametrize("term", TERMS)
def test_partial_fits_continue_with_new_groups_and_new_entities(term: str) -> None:
    data = trips()
    model = efemb.PoissonEmbedding(2, terms=[TERMS[term]()], random_state=0)
    model.partial_fit(data)
    before = model.parameters_.named()
    others = trips(80, seed=1, user=["zoe", "ann"] * 40)
    model.partial_fit(others)
    after = model.parameters_.named()
    assert set(after) == set(before)
    assert any((after[name][: len(array)] != array).any() for name, array in before.items())
    if "user.rows" in after:
        assert len(after["user.rows"]) == 4
        assert after["user.rows"][3].any()  # zoe has a vector now
    labels = [f"i{n}" for n in range(N + 1)]
    values = np.random.default_rng(2).poisson(0.7, (60, N + 1)).astype(float)
    wider = efemb.Dataset(values, entities=labels, rows=rows_of(60), cells=cells_of(N + 1))
    model.partial_fit(wider)
    assert model.fitted().n_entities == N + 1
    assert np.isfinite(model.score(wider))


@pytest.mark.parametrize("term", TERMS)
def test_estimators_continue_from_a_saved_model(term: str, tmp_path: Any) -> None:
    data = trips()
    model = fit(data, TERMS[term]())
    model.save(tmp_path / "model")
    again = efemb.PoissonEmbedding.from_fitted(efemb.load(tmp_path / "model"))
    assert_array_equal(again.conditional(data), model.conditional(data))
    again.partial_fit(data)
    assert set(again.parameters_.named()) == set(model.parameters_.named())


def test_missing_and_new_households_have_the_prior_mean() -> None:
    data = trips(user=np.array(["ann", None, "bob"] * 50, dtype=object))
    model = fit(data, efemb.RowVectors("user", 2), efemb.History("user", kappa=2.0))
    assert model.fitted().spec.terms[0].groups == ["ann", "bob"]
    strangers = [
        trips(user=np.full(150, value, dtype=object)) for value in (None, np.nan, "", "new")
    ]
    means = [model.conditional(rows) for rows in strangers]
    for other in means[1:]:
        assert_array_equal(means[0], other)


def test_one_household_per_row() -> None:
    """A vector each, which the prior keeps small; but no history."""
    data = trips(user=np.arange(150))
    n_filled = int(data.filled_rows().sum())  # a fit leaves empty rows out
    assert len(fit(data, efemb.RowVectors("user", 2)).rows("user")) == n_filled
    with pytest.raises(efemb.DataError, match="no user has two training rows"):
        fit(data, efemb.History("user"))


def test_weeks_out_of_order_are_put_in_order() -> None:
    """Earlier rows are those of earlier weeks, wherever they are in the data."""
    data = trips(week=np.repeat([2.0, 0.0, 1.0], 50))
    order = np.random.default_rng(1).permutation(150)
    history = efemb.History("user", time="week", kappa=2.0)
    rows = np.arange(150)
    cells = [
        history.freeze(part).bind(part).cells({"coefficient": np.ones(1)}, rows)
        for part in (data, data.take_rows(order))
    ]
    dense = [np.zeros((150, N)) for _ in cells]
    for one, array in zip(cells, dense, strict=True):
        one.add_to(array)
    np.testing.assert_allclose(dense[0][order], dense[1], atol=1e-6)


def test_households_of_weight_0_are_not_learned() -> None:
    data = trips(user=np.repeat(["ann", "bob", "eve"], 50))
    weight = np.repeat([1.0, 1.0, 0.0], 50)
    terms = (efemb.RowVectors("user", 2), efemb.History("user", kappa=2.0))
    model = fit(data, *terms, sample_weight=weight)
    for term in model.fitted().spec.terms:
        assert term.groups == ["ann", "bob"]


@pytest.mark.parametrize("price", [0.0, -1.0])
def test_prices_that_are_not_positive_are_refused(price: float) -> None:
    values = np.ones((4, N))
    values[2, 3] = price
    table = CellTable(values, by="week", groups=[0.0, 1.0, 2.0, 3.0])
    data = trips()._replace(trips().values, cells={"price": table})
    with pytest.raises(efemb.DataError, match=r"positive numbers.*week 2, entity 3"):
        fit(data, efemb.CellCovariate("price", log=True))


def test_items_without_a_price_do_not_respond_and_missing_weeks_are_named() -> None:
    values = np.exp(np.random.default_rng(0).normal(0, 0.3, (4, N)))
    values[:, 5] = np.nan
    values[1, 2] = np.nan
    table = CellTable(values, by="week", groups=[0.0, 1.0, 2.0, 3.0])
    data = trips()._replace(trips().values, cells={"price": table})
    model = fit(data, efemb.CellCovariate("price", log=True))
    changed = model.what_if(["i0"], price={"i1": 0.5}, week=2.0)
    assert dict(zip(changed["label"], changed["change"], strict=True))["i5"] == 0.0
    with pytest.raises(efemb.DataError, match=r"week=3(\.0)?, which the table"):
        data._replace(
            data.values, cells={"price": CellTable(values[:3], by="week", groups=[0.0, 1.0, 2.0])}
        )
