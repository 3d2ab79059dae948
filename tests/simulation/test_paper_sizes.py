"""Simulators of the paper's two private data sets, at small sizes: laws against plain formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import efemb
from efemb.simulation import simulate_iri, simulate_zebrafish
from efemb.simulation.trips import _draw_next, _Shop

# -- zebrafish -------------------------------------------------------------------------------------


def test_recording_is_signal_and_rest() -> None:
    found = simulate_zebrafish(n_neurons=300, n_frames=2000, n_fields=40, width=60.0, seed=1)
    values = found.data.values
    assert values.shape == (2000, 300)
    assert values.dtype == found.loadings.dtype == found.activity.dtype == np.float32
    assert found.data.positions is not None
    assert found.data.positions.shape == (300, 3)
    near_a_field = (found.loadings**2).sum(axis=1) > 0.8
    assert near_a_field.mean() > 0.9
    rest = (values - found.activity @ found.loadings.T)[:, near_a_field]
    assert_allclose(rest.var(axis=0).mean(), 0.15, atol=0.01)
    assert_allclose(values[:, near_a_field].var(axis=0).mean(), 1.0, atol=0.1)
    # The rest is each neuron's own: no correlation beyond chance.
    others = np.corrcoef(rest.T)[np.triu_indices(rest.shape[1], 1)]
    assert_allclose(others.mean(), 0.0, atol=0.005)
    assert others.std() < 0.05


def test_activity_is_calcium() -> None:
    activity = simulate_zebrafish(n_neurons=5, n_frames=20_000, n_fields=20).activity
    assert_allclose(activity.var(axis=0).mean(), 1.0, atol=0.1)
    assert_allclose(activity.mean(), 0.0, atol=0.05)
    lagged = [np.corrcoef(column[1:], column[:-1])[0, 1] for column in activity.T]
    assert_allclose(lagged, 0.8, atol=0.02)
    assert stats.skew(activity, axis=0).min() > 1.0  # rises at once, falls slowly
    falls = activity[1:] < activity[:-1]
    assert 0.9 < falls.mean() < 0.97


def test_neighbors_are_alike() -> None:
    found = simulate_zebrafish(n_neurons=800, n_frames=600, n_fields=60, seed=3)
    together = np.abs(np.corrcoef(found.data.values.T))
    positions = found.data.positions
    assert positions is not None
    distance = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    off = ~np.eye(800, dtype=bool)
    assert together[(distance < 20) & off].mean() > 0.35
    assert together[distance > 200].mean() < 0.12
    signed = np.corrcoef(found.data.values.T)[(distance < 20) & off]
    assert 0.05 < (signed < -0.1).mean() < 0.5  # some neurons are silenced


def test_recordings_repeat_with_the_seed() -> None:
    sizes = {"n_neurons": 40, "n_frames": 30, "n_fields": 5}
    one, two, other = (simulate_zebrafish(**sizes, seed=seed) for seed in (4, 4, 5))
    assert_array_equal(one.data.values, two.data.values)
    assert_array_equal(one.data.positions, two.data.positions)
    assert (one.data.values != other.data.values).all()


# -- IRI -------------------------------------------------------------------------------------------


def test_trips_have_exact_sizes() -> None:
    found = simulate_iri(n_rows=3000, n_entities=500, n_components=4, n_lines=20_000, seed=2)
    values = found.data.values
    assert values.shape == (3000, 500)
    assert values.nnz == 20_000
    assert values.has_canonical_format
    assert np.diff(values.indptr).min() >= 2
    assert values.data.min() >= 1
    assert (values.data == np.floor(values.data)).all()
    rho, alpha = found.parameters.rho, found.parameters.alpha
    assert rho.shape == alpha.shape == (500, 4)
    assert found.parameters.intercept is not None
    assert found.parameters.intercept.shape == (500,)
    assert_allclose(rho @ alpha.T, alpha @ rho.T, atol=1e-12)
    assert len(set(found.data.report["categories"].values())) == 22
    assert found.data.entities is not None
    assert found.data.report["categories"][found.data.entities[0]] == "category 0"


@pytest.mark.parametrize("rounds", [2000, 0])
def test_the_next_item_follows_the_softmax(rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By rejection, and from all items where that would take too long."""
    monkeypatch.setattr("efemb.simulation.trips.ROUNDS", rounds)
    rng = np.random.default_rng(0)
    shop = _Shop.open(30, 3, 2.0, rng)
    parameters = shop.parameters
    basket = np.array([4, 17, 25])
    context = parameters.alpha[basket].mean(axis=0)
    assert parameters.intercept is not None
    weight = np.exp(parameters.intercept + parameters.rho @ context)
    weight[basket] = 0.0
    n = 40_000
    drawn = _draw_next(shop, np.tile(basket, (n, 1)), np.tile(context, (n, 1)), rng)
    expected = n * np.delete(weight / weight.sum(), basket)
    times = np.bincount(drawn, minlength=30)
    assert times[basket].tolist() == [0, 0, 0]
    assert stats.chisquare(np.delete(times, basket), expected).pvalue > 1e-3


def test_pairs_go_together_as_the_vectors_say() -> None:
    found = simulate_iri(n_rows=30_000, n_entities=200, n_components=3, seed=1)
    bought = (found.data.values != 0).astype(np.float64)
    together = (bought.T @ bought).toarray()
    times = bought.sum(axis=0)
    chance = np.outer(times, times) / len(found.data)
    pairs = np.triu_indices(200, 1)
    lift = np.log((together[pairs] + 1) / (chance[pairs] + 1))
    truth = (found.parameters.rho @ found.parameters.alpha.T)[pairs]
    often = chance[pairs] > 20
    assert np.corrcoef(lift[often], truth[often])[0, 1] > 0.6


def test_trips_repeat_with_the_seed_and_chunks_do_not_show(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = {"n_rows": 200, "n_entities": 60, "n_components": 3}
    one, two, other = (simulate_iri(**sizes, seed=seed) for seed in (4, 4, 5))
    assert (one.data.values != two.data.values).nnz == 0
    assert (one.data.values != other.data.values).nnz > 0
    monkeypatch.setattr("efemb.simulation.trips.CHUNK_TRIPS", 37)
    cut = simulate_iri(**sizes, seed=4)
    assert cut.data.values.nnz == one.data.values.nnz
    assert np.diff(cut.data.values.indptr).tolist() == np.diff(one.data.values.indptr).tolist()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"n_lines": 30}, efemb.ParameterError),
        ({"n_lines": 10**6}, efemb.ParameterError),
        ({"n_components": 0}, efemb.ParameterError),
        ({"strength": -1.0}, efemb.ParameterError),
        ({"strength": "a"}, efemb.InputTypeError),
        ({"n_rows": 2.5}, efemb.InputTypeError),
    ],
)
def test_bad_trips(change: dict[str, Any], error: type[Exception]) -> None:
    sizes = {"n_rows": 20, "n_entities": 50, "n_components": 3, "n_lines": 100}
    with pytest.raises(error):
        simulate_iri(**{**sizes, **change})


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"n_fields": 0}, efemb.ParameterError),
        ({"width": 0.0}, efemb.ParameterError),
        ({"width": "a"}, efemb.InputTypeError),
        ({"seed": -1}, efemb.ParameterError),
        ({"n_neurons": 3.0}, efemb.InputTypeError),
    ],
)
def test_bad_recordings(change: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        simulate_zebrafish(**{"n_neurons": 5, "n_frames": 5, **change})
