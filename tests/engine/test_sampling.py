"""Sampled zeros are unbiased; negative sampling is biased in the way the paper says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.engine.plan import Plan, Shard
from efemb.engine.random import RoundKey
from efemb.engine.round import merge, run_round
from efemb.engine.solvers.rows.zero_stages import Draws
from efemb.engine.state import TrainState
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.zeros import probabilities
from engine import models, plain

N_DRAWS = 1000
OWN = np.array([0.0, 3.0, 1.0, 0.5, 2.0, 0.1, 1.0, 1.0])
DISTRIBUTIONS: dict[str, Any] = {
    "popularity": "popularity",
    "sqrt": "sqrt",
    "uniform": "uniform",
    "own": OWN,
}


def mean_gradient(solver: Any, rows: Any = None) -> tuple[Any, Any]:
    """Mean over draws, and its standard error as if the draws were independent."""
    vectors = models.vectors(8)
    found = []
    for _ in range(N_DRAWS):
        value, slopes = solver.value_and_gradient(vectors, rows)
        found.append(np.append(plain.flat(slopes, 8), value))
    return np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(N_DRAWS)


def assert_unbiased(exact: Any, mean: Any, error: Any) -> None:
    assert (error > 0).any(), "nothing was drawn"
    assert_allclose((mean - exact) / (4 * error + 1e-9 * np.abs(exact).max()), 0, atol=1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "distribution"),
    [*(("p-emb", name) for name in DISTRIBUTIONS), ("b-emb", "sqrt"), ("nb-emb", "popularity")],
)
@pytest.mark.parametrize("per", ["batch", "row"])
def test_sampled_gradients_are_unbiased(model: str, distribution: str, per: str) -> None:
    """Rows with different numbers of zeros, one without any; the weight of a zero is not 1."""
    X = models.counts(model, 9, 8)
    X[2] = np.maximum(X[2], 1)
    zeros = efemb.Sampled(3, DISTRIBUTIONS[distribution], weight=0.6, per=per)
    spec = models.spec(model, zeros=zeros)
    solver = models.solver("rows", models.bind(X, spec), spec)
    W = np.where(X == 0, 0.6, 1.0)
    arguments = (X, W, models.vectors(8), "total", models.MODELS[model][3])
    exact = np.append(plain.flat(plain.gradient(*arguments), 8), plain.value(*arguments))
    assert_unbiased(exact, *mean_gradient(solver))


@pytest.mark.slow
@pytest.mark.parametrize("per", ["batch", "row"])
@pytest.mark.parametrize("model", ["ap-emb", "g-emb"])
def test_sampling_also_serves_families_with_closed_forms(model: str, per: str) -> None:
    X = models.counts(model, 9, 8)
    spec = models.spec(model, zeros=efemb.Sampled(3, "sqrt", per=per))
    solver = models.solver("rows", models.bind(X, spec), spec)
    value, slopes = solver.value_and_gradient(models.vectors(8), exact=True)
    exact = np.append(plain.flat(slopes, 8), value)
    assert_unbiased(exact, *mean_gradient(solver))


@pytest.mark.slow
@pytest.mark.parametrize("per", ["batch", "row"])
def test_sampled_gradients_of_a_minibatch_with_masked_cells_are_unbiased(per: str) -> None:
    X = models.counts("p-emb", 9, 8)
    hidden = np.random.default_rng(2).random(X.shape) < 0.15
    spec = models.spec("p-emb", zeros=efemb.Sampled(3, per=per))
    weight = np.linspace(0.2, 2, 9)
    bound = models.bind(np.where(hidden, 0.0, X), spec, masked=hidden)
    solver = models.solver("rows", bound, spec, row_weight=weight)
    rows = np.array([7, 1, 4])
    W = np.zeros_like(X)
    W[rows] = weight[rows, None]
    arguments = (np.where(hidden, np.nan, X), W, models.vectors(8), "total", plain.poisson)
    exact = np.append(plain.flat(plain.gradient(*arguments), 8), plain.value(*arguments))
    assert_unbiased(exact, *mean_gradient(solver, rows))


@pytest.mark.parametrize("combine", ["linear", "reverse"])
def test_enough_draws_are_all_zeros(combine: str) -> None:
    X = models.counts("p-emb", 9, 8)
    answers = []
    for zeros in (
        efemb.All(0.6),
        efemb.Sampled(8, weight=0.6),
        efemb.Sampled(8, weight=0.6, per="row"),
    ):
        spec = models.spec("p-emb", zeros=zeros, combine=combine)
        solver = models.solver("rows", models.bind(X, spec), spec)
        value, slopes = solver.value_and_gradient(models.vectors(8))
        answers.append(np.append(plain.flat(slopes, 8), value))
    assert_allclose(answers[1:], [answers[0], answers[0]], rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("distribution", ["popularity", "uniform"])
def test_negative_sampling_weights_zeros_by_positives_and_popularity(distribution: str) -> None:
    """The expected gradient is that of zeros of weight n * positives_t * q_j: biased.

    The noise is known: log(n q_j) is taken off the intercepts.
    """
    X = models.counts("b-emb", 9, 8)
    spec = models.spec("b-emb", zeros=efemb.NegativeSampling(2, distribution))
    solver = models.solver("rows", models.bind(X, spec), spec)
    q = (X > 0).sum(axis=0) if distribution == "popularity" else np.ones(8)
    negatives = 2 * (X > 0).sum(axis=1)[:, None] * (q / q.sum())
    vectors = models.vectors(8)
    vectors.intercept -= np.log(2 * q / q.sum())
    arguments = (
        X,
        np.where(X == 0, negatives, 1.0),
        vectors,
        "total",
        plain.bernoulli,
    )
    expected = np.append(plain.flat(plain.gradient(*arguments), 8), plain.value(*arguments))
    mean, error = mean_gradient(solver)
    assert_unbiased(expected, mean, error)
    unweighted = (X, np.ones_like(X), *arguments[2:])
    true = np.append(plain.flat(plain.gradient(*unweighted), 8), plain.value(*unweighted))
    assert (np.abs(mean - true) > 20 * error + 1e-6).any(), "the bias must be visible"


def skewed(seed: int) -> Any:
    """Rows of independent entities, the first 30 times as popular as the last; none is empty."""
    rng = np.random.default_rng(seed)
    X = (rng.random((3000, 20)) < np.geomspace(0.3, 0.01, 20)).astype(float)
    return X[X.sum(axis=1) > 1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("distribution", ["popularity", "sqrt"])
@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
def test_shares_do_not_depend_on_the_noise(family: str, distribution: str) -> None:
    """Of entities that go together by chance they are the popularities, to a fifth or better."""
    X, new = skewed(0), skewed(1)
    zeros = efemb.NegativeSampling(5, distribution)
    model = efemb.Embedding(2, family=family, zeros=zeros, random_state=0).fit(X)
    share = X.sum(axis=0) / X.sum()
    best = float((new @ np.log(share)).sum() / new.sum())
    assert best - 0.05 < model.score(new) < best + 0.05
    held = [one["validation"] for one in model.history_ if one["validation"] is not None]
    assert max(held) == pytest.approx(best, abs=0.2), "the score that tells when to stop"
    found = model.conditional(np.zeros((1, 20)))[0]
    distance = np.abs(np.log(found / found.sum()) - np.log(share))
    assert np.median(distance) < 0.2
    assert distance.max() < 0.6


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"family": "bernoulli"}, True),
        ({"family": efemb.NegativeBinomial(2.0)}, True),
        ({"family": "gaussian"}, False),
        ({"intercept": False}, False),
        ({"link": "log", "prior": "half-normal"}, False),
        ({"prior": "half-normal"}, False),
        ({"zeros": efemb.Sampled(5)}, False),
        ({"context": efemb.Window(2)}, False),
    ],
    ids=repr,
)
def test_noise_is_taken_off_where_an_intercept_can_make_up_for_it(
    options: dict[str, Any], expected: bool
) -> None:
    spec = models.spec("p-emb", **{"zeros": efemb.NegativeSampling(5), **options})
    found = spec.noise_offset(np.array([2.0, 0.0, 6.0]))
    if expected:
        assert_allclose(found, np.log([5 * 0.25, 5 * 0.025, 5 * 0.75]))
    else:
        assert found is None


def weights_of(zeros: Any, X: Any) -> Any:
    """Weight of every cell, in expectation."""
    weight = zeros.weight * np.ones_like(X)
    if isinstance(zeros, efemb.NegativeSampling):
        seen = X != 0
        weight = zeros.n * seen.sum(axis=1)[:, None] * (seen.sum(axis=0) / seen.sum())
    return np.where(X == 0, weight, 1.0)


DRAWN = [
    efemb.Sampled(3),
    efemb.Sampled(3, weight=0.4),
    efemb.Sampled(3, weight=0.4, per="row"),
    efemb.NegativeSampling(2),
]


@pytest.mark.parametrize("zeros", DRAWN, ids=repr)
def test_the_weights_of_all_terms_are_those_of_the_draws(zeros: Any) -> None:
    X = models.counts("g-emb", 9, 8)
    hidden = np.random.default_rng(2).random(X.shape) < 0.15
    weight = np.linspace(0.2, 2, 9)
    spec = models.spec("g-emb", zeros=zeros)
    bound = models.bind(np.where(hidden, 0.0, X), spec, masked=hidden)
    solver = models.solver("rows", bound, spec, row_weight=weight)
    cells = weights_of(zeros, np.where(hidden, 0.0, X))
    expected = (weight[:, None] * cells)[~hidden].sum()
    assert solver.total_weight == pytest.approx(expected, rel=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("zeros", DRAWN, ids=repr)
def test_a_variance_is_learned_from_all_cells_whatever_is_drawn(zeros: Any) -> None:
    rng = np.random.default_rng(0)
    X = 0.01 * rng.normal(size=(60, 12)) * (rng.random((60, 12)) < 0.4)
    model = efemb.Embedding(
        2,
        family=efemb.Gaussian("learned"),
        context=efemb.Basket(scale="items"),
        zeros=zeros,
        early_stopping=False,
        max_iter=5,
        random_state=0,
        dtype="float64",
    ).fit(X)
    squares = (X - model.conditional(X)) ** 2
    expected = np.average(squares, weights=weights_of(zeros, X))
    assert model.family_.variance == pytest.approx(expected, rel=1e-6)


def test_every_entity_is_visited_at_its_inclusion_probability() -> None:
    popularity = np.array([100.0, 30.0, 5.0, 1.0, 1.0, 0.0, 2.0, 1.0])
    draws = Draws(efemb.Sampled(3), popularity, seed=0, dtype=np.float64)
    visits, weights = np.zeros(8), np.zeros(8)
    gaps: list[list[int]] = [[] for _ in range(8)]
    for i in range(4000):
        columns = draws(10)
        assert columns.index is not None
        assert len(columns.index) == 3
        visits[columns.index] += 1
        weights[columns.index] += columns.weight
        for j in columns.index:
            gaps[j].append(i)
    mixed = 0.5 * probabilities("popularity", popularity) + 0.5 / 8
    rare = visits.argmin()
    assert_allclose(weights / 4000, 1.0, atol=0.02)
    assert visits[rare] / 4000 == pytest.approx((3 - 1) * mixed[rare] / (1 - mixed[0]), rel=0.1), (
        "what is left of the popular one's surplus is shared out in proportion"
    )
    longest = max(np.diff(gaps[rare]))
    assert longest < 5 * 4000 / visits[rare], "nobody is forgotten for long"


def test_every_row_draws_n_different_entities_at_their_inclusion_probabilities() -> None:
    popularity = np.array([100.0, 30.0, 5.0, 1.0, 1.0, 0.0, 2.0, 1.0])
    draws = Draws(efemb.Sampled(3, per="row"), popularity, seed=0, dtype=np.float64)
    visits, patterns = np.zeros(8), set()
    for _ in range(50):
        drawn, weight = draws.of_rows(100)
        assert drawn.shape == (100, 3)
        assert all(len(set(row)) == 3 for row in drawn.tolist())
        patterns.add(drawn.tobytes())
        visits += np.bincount(drawn.ravel(), minlength=8)
        # What a minibatch draws is spread evenly over its rows.
        assert_allclose(np.bincount(drawn.ravel(), minlength=8) * weight / 100, 1.0, atol=0.35)
    assert len(patterns) > 40, "every minibatch draws anew"
    assert_allclose(visits * weight / 5000, 1.0, atol=0.03)


def test_rows_draw_the_same_in_the_same_round_whatever_was_drawn_before() -> None:
    popularity, zeros = np.arange(1.0, 9.0), efemb.Sampled(3, per="row")
    fresh, used = (Draws(zeros, popularity, 4, np.float64) for _ in range(2))
    used.of_rows(7)
    key = RoundKey(4, round=3, shard=1, n_shards=2, first_step=40)
    drawn = []
    for draws in (fresh, used):
        draws.start_round(key)
        drawn.append([draws.of_rows(5)[0].tolist() for _ in range(3)])
    assert drawn[0] == drawn[1]
    fresh.start_round(replace(key, shard=0))
    assert fresh.of_rows(5)[0].tolist() != drawn[0][0]


def test_the_same_seed_gives_the_same_draws() -> None:
    popularity = np.arange(1.0, 9.0)
    for zeros in (efemb.Sampled(3), efemb.NegativeSampling(2)):
        runs = [Draws(zeros, popularity, seed, np.float64) for seed in (4, 4, 5)]
        drawn = [[run(5).index.tolist() for _ in range(20)] for run in runs]
        assert drawn[0] == drawn[1] != drawn[2]


def test_a_round_draws_the_same_whatever_was_drawn_before() -> None:
    popularity = np.arange(1.0, 9.0)
    for zeros in (efemb.Sampled(3), efemb.NegativeSampling(2)):
        key = RoundKey(4, round=3, shard=1, n_shards=2, first_step=40)
        fresh, used = (Draws(zeros, popularity, 4, np.float64) for _ in range(2))
        for _ in range(7):
            used(5)
        rounds = []
        for draws in (fresh, used):
            draws.start_round(key)
            rounds.append([draws(5).index.tolist() for _ in range(20)])
        assert rounds[0] == rounds[1]
        fresh.start_round(replace(key, shard=0))
        assert [fresh(5).index.tolist() for _ in range(20)] != rounds[0]


def test_shards_take_turns_in_visiting_entities() -> None:
    """What two shards draw side by side is what one draws in twice as many steps."""
    popularity = np.arange(1.0, 9.0)
    one = Draws(efemb.Sampled(3), popularity, 4, np.float64)
    drawn = [one(5).index.tolist() for _ in range(20)]
    for shard in range(2):
        part = Draws(efemb.Sampled(3), popularity, 4, np.float64)
        part.start_round(RoundKey(4, round=1, shard=shard, n_shards=2))
        assert [part(5).index.tolist() for _ in range(9)] == drawn[1 + shard :: 2][:9]


def test_waiting_rows_catch_up_with_the_prior_when_a_round_ends() -> None:
    """To first order as if each of the steps, which draw one entity each, had shrunk all rows."""
    spec = models.spec("p-emb", zeros=efemb.Sampled(1, "uniform"), prior=efemb.Normal(30.0))
    empty = np.zeros((40, 8))  # no context: the data say nothing about rho and alpha
    solver = models.solver("rows", models.bind(empty, spec), spec)
    space = ParameterSpace(spec, 8, 1, 1, models.K)
    start = models.vectors(8)
    step = 1e-4
    sgd = efemb.engine.optimizers.SGD(step)
    plan = Plan(space, sgd, 1, n_rounds=1, seed=0, total_rows=40)
    begin = Parameters(start.target, start.bag, start.intercept)
    update = run_round(TrainState.start(space, begin, None), Shard(solver), plan)
    moves = ((update.theta.rho, start.target), (update.theta.alpha, start.bag))
    for moved, before in moves:
        assert_allclose(moved / before, 1 - 40 * 30.0 * step / 40, rtol=1e-5)


@pytest.mark.parametrize("prior", ["half-normal", "log-normal", None])
@pytest.mark.parametrize(
    "optimizer",
    [
        efemb.engine.optimizers.Adagrad(),
        efemb.engine.optimizers.Adam(0.1),
        efemb.engine.optimizers.SGD(0.1),
    ],
)
def test_positive_vectors_follow_their_logarithms(optimizer: Any, prior: str | None) -> None:
    """Also vectors of entities that a step did not draw, because moments move them."""
    spec = models.spec("ap-emb", zeros=efemb.Sampled(2, "uniform"), prior=prior)
    bound = models.bind(models.counts("ap-emb", 9, 8), spec)
    solver = models.solver("rows", bound, spec)
    space = ParameterSpace(spec, 8, 1, 1, models.K)
    start = models.vectors(8)
    plan = Plan(space, optimizer, 1, n_rounds=3, seed=0, total_rows=9)
    begin = Parameters(start.target, start.bag, start.intercept)
    state, shard = TrainState.start(space, begin, None), Shard(solver)
    for _ in range(3):
        state = merge(state, [run_round(state, shard, plan)], plan)
    assert (state.round, state.steps) == (3, 27)
    for vectors, logarithms in zip(state.parameters.arrays(), state.theta.arrays(), strict=True):
        assert_allclose(vectors, np.exp(logarithms), rtol=1e-12)
