"""transform, context_sums, conditional and score against plain loops."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse, stats
from scipy.special import softmax

import efemb
from efemb.model.parameters import Parameters
from estimators.samples import PRESETS, baskets, data_for, neurons

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
Array = Any
QUICK: dict[str, Any] = {"max_iter": 8, "random_state": 0, "dtype": "float64"}
MEANS = {
    "poisson": np.exp,
    "bernoulli": lambda u: 1 / (1 + np.exp(-u)),
    "gaussian": lambda u: u,
}


def context(x: Array, n: int, alpha: Array, scale: str, binary: bool = False) -> Array:
    """s / d of entity n in a basket, item by item."""
    total, divisor = np.zeros(alpha.shape[1]), 0.0
    for m, value in enumerate(x):
        if m == n or value == 0 or np.isnan(value):
            continue
        share = 1.0 if binary else value
        total += share * alpha[m]
        divisor += {"items": 1.0, "total": share, "none": 0.0}[scale]
    return total / (divisor or 1.0)


@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("scale", ["items", "total", "none"])
def test_transform_is_the_whole_row_in_context_vectors(scale: str, binary: bool, make: Any) -> None:
    model = efemb.PoissonEmbedding(2, context=efemb.Basket(scale, binary), **QUICK)
    model.fit(baskets())
    X = baskets(seed=3)
    X[4] = 0.0
    expected = [context(x, -1, model.context_, scale, binary) for x in X]
    found = model.transform(make(X))
    assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert (found[4] == 0).all(), "an empty row is at the origin"


def test_transform_skips_missing_values() -> None:
    model = efemb.GaussianEmbedding(2, context=efemb.Neighbors(5, scale="items"), **QUICK)
    model.fit(neurons())
    X = neurons(seed=3)
    X[0, 2], X[1] = np.nan, np.nan
    centered = X - neurons().mean(axis=0)
    expected = [context(x, -1, model.context_, "items") for x in centered]
    found = model.transform(X)
    assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert (found[1] == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transform_keeps_the_precision_of_the_data(dtype: Any) -> None:
    model = efemb.PoissonEmbedding(2, **QUICK).fit(baskets())
    assert model.transform(baskets().astype(dtype)).dtype == dtype


def test_transform_of_shared_vectors_uses_each_entitys_own() -> None:
    of = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    model = efemb.PoissonEmbedding(2, structure=efemb.Shared(of, of), **QUICK).fit(baskets())
    expected = [context(x, -1, model.context_[of], "total") for x in baskets(seed=3)]
    assert_allclose(model.transform(baskets(seed=3)), expected, rtol=1e-10)


@pytest.mark.parametrize("scale", ["items", "total", "none"])
def test_context_sums_leave_the_entry_out(scale: str) -> None:
    model = efemb.PoissonEmbedding(2, context=efemb.Basket(scale), **QUICK).fit(baskets())
    X = baskets(seed=3)
    rows, entities = np.array([5, 0, 5, 9]), np.array([0, 3, 7, 1])
    expected = [
        context(X[t], n, model.context_, scale) for t, n in zip(rows, entities, strict=True)
    ]
    assert_allclose(model.context_sums(X, (rows, entities)), expected, rtol=1e-10)


def test_context_sums_of_a_missing_observation_are_missing() -> None:
    model = efemb.GaussianEmbedding(
        2, context=efemb.Graph(1 - np.eye(6)), center=False, **QUICK
    ).fit(neurons())
    X = neurons(seed=3)
    X[0, 2] = np.nan
    found = model.context_sums(X, ([0, 0], [2, 1]))
    assert np.isnan(found[0]).all()
    assert_allclose(found[1], context(X[0], 1, model.context_, "none"))


@pytest.mark.parametrize(
    "entries",
    [
        ([60], [0]),
        ([0], [8]),
        ([-1], [0]),
        ([0], [-1]),
        ([0.5], [0]),
        ([0, 1], [0]),
        ([[0]], [[0]]),
        None,
        (["a"], ["b"]),
        ([0],),
    ],
    ids=repr,
)
def test_entries_that_do_not_exist_are_refused(entries: Any) -> None:
    model = efemb.PoissonEmbedding(2, **QUICK).fit(baskets())
    with pytest.raises(efemb.EfembError, match="entries") as caught:
        model.context_sums(baskets(), entries)
    assert isinstance(caught.value, (ValueError, TypeError))


@pytest.mark.parametrize("family", ["poisson", "bernoulli", "gaussian"])
@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_conditional_means_of_baskets_are_those_of_the_loop(family: str, make: Any) -> None:
    X = np.minimum(baskets(), 1) if family == "bernoulli" else baskets()
    model = efemb.Embedding(2, family=family, **QUICK).fit(X)
    found = model.conditional(make(X[:10]))
    assert found.shape == (10, 8)
    for t in range(10):
        for n in range(8):
            s = context(X[t], n, model.context_, "total")
            u = model.embedding_[n] @ s + model.intercept_[n]
            assert found[t, n] == pytest.approx(MEANS[family](u), rel=1e-9)


@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_a_categorical_model_gives_each_row_probabilities(make: Any) -> None:
    X = baskets()
    X[3] = 0.0
    data = efemb.Dataset(X, entities=[f"item {n}" for n in range(8)])
    model = efemb.CategoricalEmbedding(2, **QUICK).fit(data)
    for form in (model, model.fitted()):
        found = form.conditional(make(X[:10]))
        for t in range(10):
            s = [context(X[t], n, model.context_, "total") for n in range(8)]
            u = np.einsum("nk,nk->n", model.embedding_, s) + model.intercept_
            assert_allclose(found[t], softmax(u), rtol=1e-9)
        assert_allclose(found.sum(axis=1), 1.0)
        told = form.predict({f"item {n}": x for n, x in enumerate(X[0]) if x}, n=8)
        places = [int(label.split()[1]) for label in told["label"]]
        assert_allclose(told["probability"], found[0, places], rtol=1e-9)


def test_additive_means_are_the_inner_products() -> None:
    model = efemb.AdditivePoissonEmbedding(2, **QUICK).fit(baskets())
    X = baskets(seed=3)
    found = model.conditional(X)
    s = context(X[2], 5, model.context_, "total")
    assert found[2, 5] == pytest.approx(model.embedding_[5] @ s + model.intercept_[5], rel=1e-9)


def test_conditional_means_of_neighbors_and_lags_are_those_of_the_loop() -> None:
    ring = np.roll(np.eye(6), 1, axis=1)
    lagged = efemb.Graph(ring) + efemb.Lagged((-1,))
    X = neurons()
    X[3, 2] = np.nan
    recordings = np.repeat([0, 1], 30)
    data = efemb.Dataset(X, recordings=recordings)
    model = efemb.GaussianEmbedding(2, context=lagged, **QUICK).fit(data)
    found, means = model.conditional(data), np.nanmean(X, axis=0)
    for t in range(60):
        for n in range(6):
            s = np.zeros(2)
            near, before = X[t, (n + 1) % 6], X[t - 1, n]
            if not np.isnan(near):
                s += (near - means[(n + 1) % 6]) * model.context_[(n + 1) % 6]
            if t > 0 and recordings[t - 1] == recordings[t] and not np.isnan(before):
                s += (before - means[n]) * model.context_[6 + n]
            u = model.embedding_[n] @ s + model.intercept_[n]
            assert found[t, n] == pytest.approx(u, rel=1e-9), "also where x itself is missing"


def test_a_reverse_model_predicts_as_it_was_trained() -> None:
    """Entity 1 is in the list of 0, and so predicted from it; nothing predicts 0."""
    first = np.random.default_rng(0).normal(size=200)
    X = np.column_stack([first, 2.0 * first])
    context = efemb.Graph(np.array([[0, 1], [0, 0]]))
    options = {**QUICK, "max_iter": 200, "early_stopping": False, "prior": None}
    model = efemb.Embedding(1, family="gaussian", context=context, combine="reverse", **options)
    found = model.fit(X).conditional(X)
    assert_allclose(found[:, 1], X[:, 1], atol=0.01)
    assert_allclose(found[:, 0], model.intercept_[0])


AROUND = [[1, 2], [2], [0, 3, 4], [], [0], [4, 1]]


def _graph(**options: Any) -> efemb.Graph:
    adjacency = np.zeros((6, 6))
    for n, members in enumerate(AROUND):
        adjacency[n, members] = 1
    return efemb.Graph(adjacency, **options)


REVERSED: dict[str, tuple[Any, list[int]]] = {
    "graph": (_graph(), [0]),
    "mean": (_graph(scale="items"), [0]),
    "binary": (_graph(binary=True), [0]),
    "lagged": (efemb.Lagged((-1,), of=_graph(), include_self=False), [-1]),
    "two lags": (efemb.Lagged((-2, 1), of=_graph(), include_self=False, shared=True), [-2, 1]),
    "sum": (_graph() + efemb.Lagged((1,), of=_graph(), include_self=False, shared=True), [0, 1]),
}


@pytest.mark.parametrize("case", REVERSED)
def test_reverse_means_of_lists_are_the_mean_of_what_each_owner_says(case: str) -> None:
    context, offsets = REVERSED[case]
    X = neurons()
    X[3, 2] = np.nan
    data = efemb.Dataset(X, recordings=np.repeat([0, 1], 30))
    model = efemb.Embedding(2, family="gaussian", context=context, combine="reverse", **QUICK)
    found = model.fit(data).conditional(data)
    for t in range(60):
        for n in range(6):
            said = []
            for offset in offsets:
                row = t - offset
                if not 0 <= row < 60 or row // 30 != t // 30:
                    continue
                for owner in (m for m in range(6) if n in AROUND[m]):
                    x = float(X[row, owner] != 0) if case == "binary" else X[row, owner]
                    if not np.isnan(X[row, owner]):
                        said.append(x * (model.context_[n] @ model.embedding_[owner]))
            u = (np.mean(said) if said else 0.0) + model.intercept_[n]
            assert found[t, n] == pytest.approx(u, rel=1e-9)
    density = stats.norm.logpdf(X, found)
    assert model.score(data) == pytest.approx(np.nanmean(density), rel=1e-9)


def fixed(model: Any, rho: Array, alpha: Array, intercept: Array | None, X: Array) -> Any:
    """The model with parameters of our own, through the object that a fit leaves behind."""
    model.fit(X)
    fitted = model.fitted()
    own = Parameters(np.array(rho, float), np.array(alpha, float), intercept)
    from dataclasses import replace

    return type(model).from_fitted(replace(fitted, parameters=own), context=model.context)


def test_score_is_the_normalized_log_likelihood_per_unit_by_hand() -> None:
    """rho, alpha and data so simple that every mean is e^0, e^1 or e^-1."""
    X = np.array([[2.0, 1.0, 0.0], [0.0, 0.0, 5.0], [0.0, 3.0, 1.0]])
    start = np.array([[2.0, 1.0, 1.0]] * 12)
    model = efemb.PoissonEmbedding(1, max_iter=1, random_state=0)
    model = fixed(model, [[1.0], [0.0], [-1.0]], [[1.0], [1.0], [0.0]], np.zeros(3), start)
    # Row 0: item 0 (2 units) sees item 1, s = 1: means e, 1, 1/e. Item 1 (1 unit) the same.
    # Row 1: one item, no context: left out. Row 2: item 1 (3 units) sees item 2, s = 0: all 1.
    # Item 2 (1 unit) sees item 1, s = 1.
    e = np.e
    total = e + 1 + 1 / e
    units = 2 * np.log(e / total) + np.log(1 / total) + 3 * np.log(1 / 3) + np.log(1 / e / total)
    assert model.score(X) == pytest.approx(units / 7, rel=1e-9)
    weight = np.array([1.0, 9.0, 0.5])
    half = 2 * np.log(e / total) + np.log(1 / total)
    half += 0.5 * (3 * np.log(1 / 3) + np.log(1 / e / total))
    assert model.score(X, sample_weight=weight) == pytest.approx(half / 5, rel=1e-9)


@pytest.mark.parametrize(
    "preset", [p for p in PRESETS if not issubclass(p, efemb.GaussianEmbedding)]
)
def test_score_of_baskets_is_that_of_the_loop(preset: Any) -> None:
    model = preset(2, **QUICK)
    X = data_for(model)
    model.fit(X)
    total = units = 0.0
    for t, n in np.argwhere(X[:20] > 0):
        others = np.count_nonzero(X[t]) - 1
        if not others:
            continue
        s = context(X[t], n, model.context_, "total")
        u = model.embedding_ @ s + model.intercept_
        if preset is efemb.AdditivePoissonEmbedding:
            means = np.maximum(u, 1e-6)
        else:
            means = 1 / (1 + np.exp(-u)) if preset is efemb.BernoulliEmbedding else np.exp(u)
        total += X[t, n] * np.log(means[n] / means.sum())
        units += X[t, n]
    assert model.score(X[:20]) == pytest.approx(total / units, rel=1e-9)
    assert model.score(sparse.csr_array(X[:20])) == pytest.approx(total / units, rel=1e-9)


def test_popularity_scores_what_its_shares_say() -> None:
    """Without vectors, the intercepts alone are a popularity model."""
    X = baskets()
    share = X.sum(axis=0) / X.sum()
    model = efemb.PoissonEmbedding(1, max_iter=1, random_state=0)
    model = fixed(model, np.zeros((8, 1)), np.zeros((8, 1)), np.log(share), X)
    assert model.score(X) == pytest.approx((X @ np.log(share)).sum() / X.sum(), rel=1e-9)


@pytest.mark.parametrize("sigma2", [1.0, 0.6, "learned"])
def test_score_of_real_numbers_is_the_mean_log_density_of_what_is_observed(sigma2: Any) -> None:
    X = neurons()
    X[4, 1] = np.nan
    model = efemb.GaussianEmbedding(2, family=efemb.Gaussian(sigma2), **QUICK).fit(X)
    means = model.conditional(X)
    density = stats.norm.logpdf(X, means, np.sqrt(model.family_.variance))
    assert model.score(X) == pytest.approx(np.nanmean(density), rel=1e-9)
    weight = np.linspace(0.1, 2, 60)
    both = np.broadcast_to(weight[:, None], X.shape)[~np.isnan(X)]
    expected = np.average(density[~np.isnan(X)], weights=both)
    assert model.score(X, sample_weight=weight) == pytest.approx(expected, rel=1e-9)


def test_a_learned_variance_is_the_mean_squared_residual() -> None:
    X = neurons(200)
    model = efemb.GaussianEmbedding(
        2, prior=efemb.Normal(1.0), early_stopping=False, random_state=0, dtype="float64"
    ).fit(X)
    squares = np.mean((X - model.conditional(X)) ** 2)
    assert model.family_.variance == pytest.approx(squares, rel=1e-3)


def test_score_without_any_context_says_so() -> None:
    model = efemb.PoissonEmbedding(2, **QUICK).fit(baskets())
    with pytest.raises(efemb.DataError, match="no context"):
        model.score(np.eye(8))


def test_context_sums_come_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    X = baskets()
    model = efemb.PoissonEmbedding(2, random_state=0, max_iter=2).fit(X)
    rng = np.random.default_rng(0)
    cells = rng.integers(len(X), size=40), rng.integers(X.shape[1], size=40)
    whole = model.context_sums(X, cells)
    monkeypatch.setattr("efemb.model.predict.BLOCK_NUMBERS", 3 * X.shape[1] * 2)
    assert_allclose(model.context_sums(X, cells), whole, rtol=1e-12)


def test_an_estimator_holds_one_fitted_model_until_the_next_fit() -> None:
    model = efemb.PoissonEmbedding(2, **QUICK).fit(baskets())
    fitted, vectors = model.fitted(), model.vectors()
    assert model.fitted() is fitted
    assert model.vectors() is vectors
    assert model.vectors().unit_vectors is vectors.unit_vectors, "kept between questions"
    assert model.embedding_ is fitted.parameters.rho
    assert_allclose(vectors.vectors, model.embedding_)
    model.partial_fit(baskets(seed=1))
    assert model.fitted() is not fitted
    assert_allclose(model.vectors().vectors, model.embedding_)
    assert np.abs(model.embedding_ - vectors.vectors).max() > 0, "the old model stays as it was"


def test_options_set_after_the_fit_are_for_the_next_one() -> None:
    model = efemb.PoissonEmbedding(2, **QUICK).fit(baskets())
    before = model.score(baskets(seed=1))
    model.set_params(context=efemb.Basket("none"))
    assert model.score(baskets(seed=1)) == before


def test_a_pickled_estimator_carries_no_derived_vectors() -> None:
    model = efemb.PoissonEmbedding(2, **QUICK).fit(baskets())
    before = pickle.dumps(model)
    model.similar(0)
    assert pickle.dumps(model) == before
    again = pickle.loads(before)
    assert list(again.similar(0).columns) == list(model.similar(0).columns)
    assert_allclose(again.vectors().vectors, model.embedding_)


def test_a_loaded_model_is_scored_with_weights_like_its_estimator() -> None:
    X, weight = baskets(seed=2), np.linspace(0.0, 2.0, len(baskets()))
    model = efemb.PoissonEmbedding(2, **QUICK).fit(baskets())
    assert model.fitted().score(X, sample_weight=weight) == model.score(X, sample_weight=weight)
    cells = (np.array([0, 3]), np.array([1, 2]))
    assert_allclose(model.fitted().context_sums(X, cells), model.context_sums(X, cells))
