"""Elasticities and what_if on a market whose responses are planted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.data import CellTable
from efemb.inference.elasticities import standard_errors
from efemb.model.terms import CellCovariate, History

N, WEEKS, T = 6, 20, 6000
LABELS = [f"item {n}" for n in range(N)]
ELASTICITY = np.array([-1.0, -1.0, -1.0, -2.0, -2.0, -2.0])


def market() -> efemb.Dataset:
    rng = np.random.default_rng(0)
    week = rng.integers(0, WEEKS, T)
    price = np.exp(rng.normal(0.0, 0.25, (WEEKS, N)))
    z = np.log(price) - np.log(price).mean(axis=0)
    counts = rng.poisson(0.5 * np.exp(ELASTICITY * z[week]))
    return efemb.Dataset(
        counts.astype(float),
        entities=LABELS,
        rows={"week": week, "user": rng.integers(0, 50, T)},
        cells={"price": CellTable(price, by="week", groups=range(WEEKS))},
    )


DATA = market()
DATA = DATA.take_rows(DATA.filled_rows())  # a fit leaves empty rows out, `objective` does not


@pytest.fixture(scope="module")
def model() -> Any:
    terms = [CellCovariate("price", log=True), History("user")]
    options: dict[str, Any] = {"prior": efemb.Normal(100.0), "dtype": "float64"}
    return efemb.PoissonEmbedding(1, random_state=0, terms=terms, **options).fit(DATA)


@pytest.mark.slow
def test_intervals_hold_the_planted_elasticities(model: Any) -> None:
    table = model.elasticity(LABELS, errors=model.laplace(DATA))
    off = (table["elasticity"] - ELASTICITY) / table["standard_error"]
    assert np.abs(off).max() < 4.0
    assert (table["standard_error"] < 0.15).all()
    assert (table["low"] < table["elasticity"]).all()
    everything = model.elasticity()
    assert (np.diff(everything["elasticity"]) >= 0).all()
    assert model.elasticity("item 4")["elasticity"][0] == table["elasticity"][4]


def test_errors_by_finite_differences_of_the_objective(model: Any) -> None:
    """The response, the embedding and the intercept of an entity are one regression."""
    names = ["rho", "intercept", "price.entities"]
    at, n, h = model.parameters_, 2, 1e-4
    places = [("rho", (n, 0)), ("intercept", (n,)), ("price.entities", (n,))]
    hessian = np.empty((3, 3))
    for column, (name, place) in enumerate(places):
        ends = []
        for step in (-h, h):
            moved = at.copy()
            moved.named()[name][place] += step
            gradient = model.objective(DATA, moved)[1].named()
            ends.append([gradient[other][at_] for other, at_ in places])
        hessian[:, column] = (np.array(ends[0]) - np.array(ends[1])) / (2 * h)
    assert names == [name for name, _ in places]
    expected = np.sqrt(np.linalg.inv(hessian)[-1, -1])
    term = model.fitted().spec.terms[0]
    error = standard_errors(model.laplace(DATA), term, np.array([n]))
    assert_allclose(error, [expected], rtol=1e-3)


def test_what_if_multiplies_the_price(model: Any) -> None:
    table = model.what_if({"item 0": 1}, price={"item 3": 0.8}, week=7, user=3)
    changed = dict(zip(table["label"], table["ratio"], strict=True))
    c = model.elasticity("item 3")["elasticity"][0]
    assert changed["item 3"] == pytest.approx(0.8**c, rel=1e-9)
    assert changed["item 1"] == pytest.approx(1.0)
    with pytest.raises(efemb.DataError, match="pass week="):
        model.what_if({"item 0": 1}, price={"item 3": 0.8})
    with pytest.raises(efemb.DataError, match="positive factors"):
        model.what_if({"item 0": 1}, price={"item 3": -1.0}, week=7)
    with pytest.raises(efemb.InputTypeError, match="maps items to numbers"):
        model.what_if({"item 0": 1}, price=0.8, week=7)
    with pytest.raises(efemb.DataError, match="week=99"):
        model.what_if({"item 0": 1}, price={"item 3": 0.8}, week=99)


def test_cross_elasticities_go_through_the_basket(model: Any) -> None:
    table = model.cross_elasticity("item 3", DATA, n=2)
    assert len(table) == 2
    (n,) = [LABELS.index(label) for label in table["label"][:1]]
    p = model.parameters_
    X = np.asarray(DATA.values)
    share = (X[:, 3] / np.maximum(X.sum(axis=1), 1.0)).mean()
    c = model.elasticity("item 3")["elasticity"][0]
    assert table["elasticity"][0] == pytest.approx(c * share * float(p.rho[n] @ p.alpha[3]))


def test_categorical_items_share_what_others_lose() -> None:
    terms = [CellCovariate("price", log=True)]
    model = efemb.CategoricalEmbedding(
        1, random_state=0, terms=terms, prior=efemb.Normal(1000.0)
    ).fit(DATA)
    own = model.elasticity("item 3")["elasticity"][0]
    cross = model.cross_elasticity("item 3", DATA, n=5)["elasticity"]
    assert -2.0 < own < -1.2
    assert (cross > 0).all()
    with pytest.raises(efemb.ParameterError, match="softmax"):
        model.elasticity("item 3", errors=model.laplace(DATA))


def test_models_without_prices_have_no_elasticities() -> None:
    plain = efemb.PoissonEmbedding(1, random_state=0).fit(DATA.values)
    with pytest.raises(efemb.ParameterError, match="no prices"):
        plain.elasticity()


def test_bad_arguments_are_refused(model: Any) -> None:
    with pytest.raises(efemb.ParameterError, match="no table 'cost'"):
        model.elasticity(table="cost")
    with pytest.raises(efemb.InputTypeError, match=r"errors must be model.laplace\(data\)"):
        model.elasticity("item 1", errors=DATA)
