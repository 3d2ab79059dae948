"""NeighborRidge against scikit-learn's ridge, entity by entity, and its choice of the penalty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

import efemb
from efemb import Graph, Lagged, Neighbors
from efemb.baselines import NeighborRidge
from efemb.model.contexts.neighbors import most_correlated, nearest

RNG = np.random.default_rng(5)
N = 9
PLACES = RNG.normal(size=(N, 2))
X = RNG.normal(size=(70, 3)) @ RNG.normal(size=(3, N)) + RNG.normal(size=(70, N)) + 4.0


def members_of(kind: str) -> Any:
    if kind == "positions":
        return nearest(PLACES, 4)
    return most_correlated(efemb.Dataset(X), 4)


@pytest.mark.parametrize("kind", ["positions", "correlation", "graph"])
@pytest.mark.parametrize("intercept", [True, False])
def test_weights_are_those_of_scikit_learn(kind: str, intercept: bool) -> None:
    members = members_of(kind)
    context: Any = Neighbors(4, positions=PLACES if kind == "positions" else None)
    if kind == "graph":
        edges = np.zeros((N, N))
        edges[np.repeat(np.arange(N), 4), members.ravel()] = 1.0
        context = Graph(edges)
    model = NeighborRidge(context, ridge=3.0, intercept=intercept).fit(X)
    expected = np.empty_like(X)
    for n in range(N):
        plain = Ridge(3.0, fit_intercept=intercept).fit(X[:, members[n]], X[:, n])
        expected[:, n] = plain.predict(X[:, members[n]])
    assert_allclose(model.conditional(X), expected, rtol=1e-6, atol=1e-8)
    residual = ((X - expected) ** 2).mean()
    assert model.family_.variance == pytest.approx(residual)
    assert model.score(X) == pytest.approx(-0.5 * np.log(2 * np.pi * residual) - 0.5)


def test_a_missing_member_counts_as_its_mean() -> None:
    model = NeighborRidge(Neighbors(4, positions=PLACES), ridge=3.0).fit(X)
    member = int(nearest(PLACES, 4)[0, 0])
    without, filled = X[:1].copy(), X[:1].copy()
    without[0, member], filled[0, member] = np.nan, X[:, member].mean()
    assert_allclose(model.conditional(without)[0, 0], model.conditional(filled)[0, 0])


def test_missing_values_are_left_out_of_the_fit() -> None:
    holes = X.copy()
    holes[RNG.random(X.shape) < 0.2] = np.nan
    model = NeighborRidge(Neighbors(4, positions=PLACES), ridge=3.0).fit(holes)
    means, members, n = np.nanmean(holes, axis=0), nearest(PLACES, 4), 2
    seen = ~np.isnan(holes[:, n])
    Z = np.nan_to_num(holes[:, members[n]] - means[members[n]])
    plain = Ridge(3.0).fit(Z[seen], holes[seen, n])
    assert_allclose(model.conditional(holes)[:, n], plain.predict(Z), rtol=1e-6)


def test_the_ridge_is_the_best_on_validation_rows() -> None:
    train, held = X[:50], X[50:]
    context = Neighbors(4, positions=PLACES)
    model = NeighborRidge(context).fit(train, validation=held)
    errors = {}
    for ridge, reported in model.validation_.items():
        fixed = NeighborRidge(context, ridge=ridge).fit(train)
        errors[ridge] = ((fixed.conditional(held) - held) ** 2).mean()
        assert reported == pytest.approx(errors[ridge], rel=1e-6)
    assert model.ridge_ == min(errors, key=lambda ridge: errors[ridge])
    assert len(set(errors)) >= 10
    assert model.family_.variance == pytest.approx(min(errors.values()))


def test_without_validation_the_ridge_is_chosen_on_held_out_rows() -> None:
    one, same = (NeighborRidge(Neighbors(4), random_state=3).fit(X) for _ in range(2))
    assert one.ridge_ == same.ridge_ in one.validation_
    refitted = NeighborRidge(Neighbors(4), ridge=one.ridge_).fit(X)
    assert_allclose(one.conditional(X), refitted.conditional(X))


def test_held_out_entries_choose_it_too() -> None:
    train, held = efemb.Dataset(X).split(test=0.1, by="entries")
    model = NeighborRidge(Neighbors(4)).fit(train, validation=held)
    predicted, observed = model.conditional(train), ~np.isnan(held.values)
    error = ((predicted - held.values)[observed] ** 2).mean()
    assert model.validation_[model.ridge_] == pytest.approx(error, rel=1e-6)


def test_lags_and_sums() -> None:
    context = Neighbors(2, positions=PLACES) + Lagged([-1])
    model = NeighborRidge(context, ridge=2.0).fit(X)
    members, n, means = nearest(PLACES, 2), 4, X.mean(axis=0)
    lagged = np.concatenate([[0.0], X[:-1, n] - means[n]])
    Z = np.column_stack([X[:, members[n]] - means[members[n]], lagged])
    plain = Ridge(2.0).fit(Z, X[:, n])
    assert_allclose(model.conditional(X)[:, n], plain.predict(Z), rtol=1e-6)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_saved_and_loaded(tmp_path: Any, n_jobs: int) -> None:
    model = NeighborRidge(Neighbors(3), n_jobs=n_jobs).fit(X)
    model.save(tmp_path / "model")
    assert np.array_equal(efemb.load(tmp_path / "model").conditional(X), model.conditional(X))


def test_scale_of_the_data_does_not_matter() -> None:
    small, large = (NeighborRidge(Neighbors(4)).fit(X * unit) for unit in (1.0, 1000.0))
    assert_allclose(large.conditional(X * 1000.0), 1000.0 * small.conditional(X), rtol=1e-6)
    assert large.ridge_ == pytest.approx(1e6 * small.ridge_)
