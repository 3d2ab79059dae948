"""Baskets that models of pairs stumble over: single items, equal rows, huge counts, strangers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

import efemb
from efemb import BasketEmbedding, Blend, Dataset, ItemPairs, PoissonEmbedding
from efemb.baselines import EASE, Popularity
from efemb.errors import DataError, MemoryEstimateError
from efemb.model import item_regressions
from efemb.model.score import log_sums

pytestmark = pytest.mark.slow
N = 20
LABELS = [f"item {i}" for i in range(N)]
MODELS: dict[str, Callable[[], Any]] = {
    "EASE": lambda: EASE(10.0),
    "ItemPairs": lambda: PoissonEmbedding(2, terms=[ItemPairs(10.0)], random_state=0),
    "sparse ItemPairs": lambda: PoissonEmbedding(
        2, terms=[ItemPairs(10.0, n_neighbors=5, sparse=True)], random_state=0
    ),
    "Blend": lambda: Blend({"pairs": EASE(10.0), "popularity": Popularity()}),
    "BasketEmbedding": lambda: BasketEmbedding(2, random_state=0, max_iter=10),
    "sparse BasketEmbedding": lambda: BasketEmbedding(
        2, n_neighbors=5, random_state=0, max_iter=10
    ),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


def simulate(n_rows: int = 120, seed: int = 0) -> Any:
    """Trips in which items 2k and 2k + 1 are bought together."""
    rng = np.random.default_rng(seed)
    kinds = rng.random((n_rows, N // 2)) < np.linspace(0.1, 0.4, N // 2)
    bought = np.repeat(kinds, 2, axis=1) & (rng.random((n_rows, N)) < 0.8)
    return np.where(bought, rng.integers(1, 4, (n_rows, N)), 0.0)


def labeled(values: Any) -> Dataset:
    return Dataset(csr_array(values), entities=LABELS)


def shares(model: Any, contexts: Any, asked: Any) -> Any:
    """Shares of all items given contexts, from log means."""
    logs = np.empty(np.shape(contexts))
    for cells, block in model.log_means(labeled(contexts), np.arange(len(asked)), np.array(asked)):
        logs[cells] = block - log_sums(np.asarray(block))[:, None]
    return np.exp(logs)


@every_model
def test_rows_of_one_item_are_used_and_predicted(make: Callable[[], Any]) -> None:
    values = np.concatenate([simulate(), np.eye(N)])
    model = make().fit(labeled(values))
    given_one = shares(model, np.eye(N)[[2]], [3])
    assert np.isfinite(given_one).all()
    assert_allclose(given_one.sum(), 1.0, rtol=1e-6)
    assert given_one[0, 3] > 1.0 / N


@every_model
def test_rows_of_one_item_only_hold_no_pairs(make: Callable[[], Any]) -> None:
    singles = labeled(np.tile(np.eye(N), (6, 1)))
    if make is MODELS["EASE"]:  # a backoff alone
        assert not make().fit(singles).weights_.any()
        return
    with pytest.raises(DataError, match=r"only one entity|two or more"):
        make().fit(singles)


@every_model
def test_rows_that_are_all_equal_are_predicted_as_they_are(make: Callable[[], Any]) -> None:
    row = np.zeros(N)
    row[:5] = 1.0
    model = make().fit(labeled(np.tile(row, (80, 1))))
    context = row.copy()
    context[0] = 0.0
    answer = shares(model, [context], [0])
    assert np.isfinite(answer).all()
    assert_allclose(answer.sum(), 1.0, rtol=1e-6)
    assert answer[0, 0] > answer[0, 5:].max()


def with_huge_count(values: Any) -> Any:
    """The same trips with 10^5 units of one item in one of them."""
    row = int(np.flatnonzero((values > 0).sum(axis=1) >= 4)[0])
    huge = values.copy()
    huge[row, np.flatnonzero(values[row])[0]] = 1e5
    return huge


@pytest.mark.parametrize("sparse", [False, True])
def test_a_huge_count_teaches_pairs_no_more_than_any_other(sparse: bool) -> None:
    values = simulate(300)
    plain, moved = (
        ItemPairs(10.0, n_neighbors=5, sparse=sparse).freeze(labeled(X)).pairs
        for X in (values, with_huge_count(values))
    )
    assert plain is not None
    assert moved is not None
    assert_array_equal(moved["weights"], plain["weights"])


def test_a_huge_count_leaves_the_weights_of_ease_alone() -> None:
    values = simulate(300)
    plain, moved = (EASE(10.0).fit(labeled(X)) for X in (values, with_huge_count(values)))
    assert_array_equal(moved.weights_, plain.weights_)


def test_a_huge_count_does_not_decide_the_weights_of_a_blend() -> None:
    values, held = simulate(300), simulate(100, seed=1)
    models = {"pairs": EASE(10.0), "popularity": Popularity()}
    plain, moved = (
        Blend(models, how="mixture").fit(labeled(values), validation=labeled(X))
        for X in (held, with_huge_count(held))
    )
    assert moved.weights_["pairs"] == pytest.approx(plain.weights_["pairs"], abs=0.1)


@pytest.mark.parametrize("n_neighbors", [None, 5])
def test_a_huge_count_changes_a_basket_model_little(n_neighbors: int | None) -> None:
    values = simulate(300)
    contexts, asked = np.eye(N)[::2], np.arange(1, N, 2)
    plain, moved = (
        BasketEmbedding(2, n_neighbors=n_neighbors, random_state=0, max_iter=10).fit(labeled(X))
        for X in (values, with_huge_count(values))
    )
    own = np.arange(len(asked))
    scores = [np.log(shares(model, contexts, asked)[own, asked]).mean() for model in (plain, moved)]
    assert scores[1] == pytest.approx(scores[0], abs=0.1)


@every_model
def test_a_context_of_unknown_items_only_is_refused(make: Callable[[], Any]) -> None:
    model = make().fit(labeled(simulate()))
    strangers = Dataset([[1.0, 2.0]], entities=["durian", "lychee"])
    with pytest.raises(DataError, match="unknown='skip'"):
        model.recommend(strangers)
    with pytest.raises(DataError, match="none of the 2 entities"):
        model.recommend(strangers, unknown="skip")


@every_model
def test_a_context_larger_than_any_seen_has_finite_shares(make: Callable[[], Any]) -> None:
    model = make().fit(labeled(simulate()))
    whole = np.full((1, N), 50.0)
    answer = shares(model, whole, [4])
    assert np.isfinite(answer).all()
    assert_allclose(answer.sum(), 1.0, rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "way_out"),
    [
        (EASE, "ItemKNN or RP3beta"),
        (lambda: BasketEmbedding(2, n_neighbors=None), "n_neighbors=100"),
        (lambda: PoissonEmbedding(2, terms=[ItemPairs(sparse=False)]), "sparse=True"),
        (lambda: PoissonEmbedding(2, terms=[ItemPairs(sparse=True)]), "smaller n_neighbors"),
        (lambda: BasketEmbedding(2, n_neighbors=9), "drop rare items"),
        (lambda: Blend({"pairs": EASE(), "popularity": Popularity()}), "ItemKNN or RP3beta"),
    ],
)
def test_too_many_items_are_refused_with_an_estimate(
    make: Callable[[], Any], way_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(item_regressions, "available_memory", lambda: 1000)
    with pytest.raises(MemoryEstimateError, match=rf"20 items.*needs about.*{way_out}"):
        make().fit(labeled(simulate()))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_fifty_rows_are_predicted_no_worse_than_by_popularity(seed: int) -> None:
    trips = efemb.simulation.simulate_baskets(
        n_rows=350, n_entities=60, n_lines=2100, n_topics=4, seed=seed
    )
    train, test = trips.take_rows(np.arange(350) < 50), trips.take_rows(np.arange(350) >= 50)
    model = BasketEmbedding(random_state=0).fit(train)
    assert model.score(test) > Popularity().fit(train).score(test)
    nothing = Dataset(np.zeros((1, 60)), entities=train.entities)
    ((_, logs),) = model.log_means(nothing, np.array([0]), np.array([0]))
    lines = np.maximum(np.asarray((train.values != 0).sum(axis=0)).ravel(), 0.5)
    apart = np.abs(logs[0] - log_sums(logs)[0] - np.log(lines / lines.sum()))
    assert np.median(apart) < 0.3  # an empty basket gets a default close to popularity
