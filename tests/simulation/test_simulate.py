"""Simulated data: shapes, support, seeds, sizes and bad arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import efemb
from efemb.simulation.observation_graph import color_groups, graph_of

NAMES = ["g-emb", "ng-emb", "p-emb", "ap-emb", "b-emb", "categorical", "negative-binomial"]
RING = np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0)
CONTEXTS: dict[str, Any] = {
    "sum": efemb.Basket("none"),
    "items": efemb.Basket("items", binary=True),
    "graph": efemb.Graph(RING),
    "averaged graph": efemb.Graph(RING, scale="items"),
    "past": efemb.Lagged((-1, -2), of=efemb.Graph(RING)),
    "future": efemb.Lagged((1,)),
    "both": efemb.Lagged((-1, 1), shared=True),
    "now and past": efemb.Graph(RING) + efemb.Lagged((-1,)),
    "basket and past": efemb.Basket("none") + efemb.Lagged((-1,)),
}


def draw(model: Any = "p-emb", **options: Any) -> efemb.simulation.Simulation:
    sizes = {"n_rows": 30, "n_entities": 6, "n_components": 2, "sweeps": 2}
    return efemb.simulation.simulate(model, **{**sizes, **options})


def dense(data: efemb.Dataset) -> np.ndarray:
    return np.asarray(data.values.toarray() if data.is_sparse else data.values)


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_data(name: str) -> None:
    one, two, other = draw(name, seed=5), draw(name, seed=5), draw(name, seed=6)
    np.testing.assert_array_equal(dense(one.data), dense(two.data))
    for left, right in zip(one.parameters.arrays(), two.parameters.arrays(), strict=True):
        np.testing.assert_array_equal(left, right)
    assert not np.array_equal(dense(one.data), dense(other.data))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_lie_in_the_support(name: str, dtype: str) -> None:
    found = draw(name, dtype=dtype)
    values = dense(found.data)
    assert values.dtype == dtype
    assert not found.spec.family.support.broken_by(values).any()
    assert found.data.shape == (30, 6)
    assert found.parameters.rho.shape == found.parameters.alpha.shape == (6, 2)
    assert found.parameters.is_finite()
    if found.spec.positive_rho:
        assert min(array.min() for array in found.parameters.arrays()) > 0


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("family", ["poisson", "bernoulli", "gaussian", "negative-binomial"])
def test_any_context(context: str, family: str) -> None:
    found = draw(context=CONTEXTS[context], family=family)
    values = dense(found.data)
    assert np.isfinite(values).all()
    assert not found.spec.family.support.broken_by(values).any()
    exact = context in ("past", "future")
    assert found.sampler == ("sequential" if exact else "gibbs")
    model = efemb.fitted.FittedEmbedding(found.parameters, found.spec)
    assert model.conditional(found.data).shape == (30, 6)


@pytest.mark.parametrize("context", ["sum", "graph", "past", "basket and past", "both"])
def test_every_entity_has_its_own_variance(context: str) -> None:
    """Also with as many rows as entities, where arrays of either size broadcast."""
    variance = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 400.0])
    options = {"context": CONTEXTS[context], "family": efemb.Gaussian(variance), "strength": 1e-4}
    runs = [draw(n_rows=6, seed=seed, **options).data for seed in range(80)]
    spread = np.concatenate([dense(data) for data in runs]).var(axis=0)
    np.testing.assert_allclose(spread, variance, rtol=0.35)


def test_exposures_are_those_of_each_item() -> None:
    exposure = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.05])
    family = efemb.ZeroInflated("poisson", exposure=exposure)
    counts = dense(draw(n_rows=2000, family=family, row_size=12.0, strength=1e-3).data)
    plain = dense(draw(n_rows=2000, row_size=12.0, strength=1e-3).data)
    assert (counts[:, 5] > 0).mean() == pytest.approx(0.05, abs=0.02)
    assert ((counts[:, :5] > 0).mean(axis=0) > 0.5 * (plain[:, :5] > 0).mean(axis=0)).all()


@pytest.mark.parametrize(
    "ingredients",
    [
        {"structure": "tied"},
        {"structure": efemb.Shared(rho_of=[0, 0, 1, 1, 2, 2])},
        {"link": "softplus"},
        {"link": "log", "prior": None},
        {"prior": ("half-normal", "normal")},
        {"intercept": False, "family": "bernoulli"},
        {"family": "gaussian", "link": "softplus", "context": "neighbors"},
    ],
    ids=str,
)
def test_any_ingredients(ingredients: dict[str, Any]) -> None:
    found = draw(**ingredients)
    model = efemb.fitted.FittedEmbedding(
        found.parameters, found.spec, vocabulary=efemb.Vocabulary(range(6))
    )
    assert np.isfinite(model.conditional(found.data)).all()


def test_explicit_context_and_vectors() -> None:
    ptr = np.arange(30 * 6 + 1)
    ptr[:7] = 0
    ptr[7:] -= 6
    found = draw("g-emb", context=efemb.Explicit(ptr, np.arange(29 * 6)))
    assert found.sampler == "sequential"
    vectors = draw("g-emb", context=efemb.Basket("none"), n_dims=3, n_rows=8)
    assert vectors.data.shape == (8, 6, 3)
    assert vectors.parameters.rho.shape == (6, 2, 3)


def test_a_spec_is_a_model() -> None:
    spec = draw("b-emb").spec
    assert draw(spec).spec is spec
    with pytest.raises(efemb.ParameterError, match="not both"):
        draw(spec, link="log")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["p-emb", "ap-emb", "b-emb", "categorical"])
def test_row_size_is_the_average_sum(name: str) -> None:
    data = draw(name, n_rows=3000, n_entities=60, row_size=5.0, sweeps=8).data
    assert data.values.sum() / data.n_rows == pytest.approx(5.0, rel=0.2)
    assert data.is_sparse


def test_neighbors_get_positions() -> None:
    assert draw("g-emb").data.positions is not None
    own = np.arange(6.0)[:, None]
    np.testing.assert_array_equal(draw("g-emb", positions=own).data.positions, own)
    assert draw("p-emb").data.positions is None


def test_groups_have_no_inner_edge() -> None:
    rng = np.random.default_rng(0)
    data = efemb.Dataset(np.zeros((2, 50)), positions=rng.random((50, 2)))
    graph = graph_of(efemb.Neighbors(5).bind(data))
    assert graph is not None
    groups = color_groups(graph.parts, 50)
    assert sorted(np.concatenate(groups).tolist()) == list(range(50))
    for group in groups:
        inside = np.isin(graph.parts[0].owner, group) & np.isin(graph.parts[0].member, group)
        assert not inside.any()


class Mute(efemb.Poisson):
    """A family of the user's that cannot draw."""

    sample = efemb.model.families.Family.sample


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"model": "p-embb"}, efemb.ParameterError, "did you mean 'p-emb'"),
        ({"model": 3}, efemb.InputTypeError, "a name or a Spec"),
        ({"famly": "poisson"}, efemb.ParameterError, "did you mean 'family'"),
        ({"n_rows": 0}, efemb.ParameterError, "n_rows must be >= 1"),
        ({"n_rows": 2.5}, efemb.InputTypeError, "n_rows must be an integer"),
        ({"n_entities": 1}, efemb.ParameterError, "n_entities must be >= 2"),
        ({"n_components": True}, efemb.InputTypeError, "n_components"),
        ({"sweeps": 0}, efemb.ParameterError, "sweeps"),
        ({"seed": -1}, efemb.ParameterError, "seed"),
        ({"seed": "x"}, efemb.InputTypeError, "seed"),
        ({"row_size": -1.0}, efemb.ParameterError, "row_size must be > 0"),
        ({"row_size": "big"}, efemb.InputTypeError, "row_size"),
        ({"model": "g-emb", "row_size": 3.0}, efemb.ParameterError, "counts and binary"),
        ({"model": "g-emb", "strength": 2.0}, efemb.ParameterError, "below 1.4"),
        ({"strength": np.nan}, efemb.ParameterError, "strength"),
        ({"dtype": "int8"}, efemb.ParameterError, "float32 or float64"),
        ({"combine": "reverse"}, efemb.ParameterError, "reverse"),
        ({"model": "categorical", "context": "neighbors"}, efemb.ParameterError, "row context"),
        ({"model": "g-emb", "context": "basket"}, efemb.ParameterError, "data >= 0"),
        ({"family": Mute()}, efemb.ParameterError, "has no `sample`"),
        (
            {"context": efemb.Basket("none"), "strength": 500.0},
            efemb.DivergenceError,
            "without bound",
        ),
    ],
)
def test_bad_arguments(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        draw(**options)
