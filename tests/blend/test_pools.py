"""Weights of pools against a grid, against scipy, and against plain loops."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from efemb.blend.pools import NORMALIZER, POOLS, RIDGE, LogLinear, Mixture, Sample


def toy(
    n_models: int = 2, n: int = 80, n_entities: int = 6, seed: int = 0
) -> tuple[Sample, Sample]:
    """The same entries in one block and in three, float64: entries follow the first model most."""
    rng = np.random.default_rng(seed)
    logs = log_softmax(rng.normal(size=(n, n_models, n_entities)), axis=2)
    mean = np.exp(logs).mean(axis=1) + np.exp(logs[:, 0])
    entities = np.array([rng.choice(n_entities, p=row / row.sum()) for row in mean])
    units = rng.integers(1, 4, size=n).astype(np.float64)

    def blocks(edges: list[int]) -> Iterator[tuple[slice, np.ndarray]]:
        for start, end in pairwise(edges):
            yield slice(start, end), logs[start:end]

    whole = Sample(entities, units, lambda: blocks([0, n]))
    return whole, Sample(entities, units, lambda: blocks([0, 7, 50, n]))


def logs_of(sample: Sample) -> np.ndarray:
    return np.concatenate([logs for _, logs in sample.blocks()])


def test_mixture_weight_is_the_best_of_a_grid() -> None:
    sample, _ = toy()
    shares = np.exp(logs_of(sample))[np.arange(80), :, sample.entities]
    grid = np.linspace(0, 1, 10_001)
    values = [sample.units @ np.log(w * shares[:, 0] + (1 - w) * shares[:, 1]) for w in grid]
    best = grid[int(np.argmax(values))]
    assert 0.05 < best < 0.95
    pool = Mixture.fit(sample)
    assert_allclose(pool.weights, [best, 1 - best], atol=2e-4)
    assert_allclose(pool.score(sample), max(values) / sample.units.sum(), atol=1e-7)


def test_log_linear_weights_are_those_of_scipy() -> None:
    sample, _ = toy(n_models=3)
    logs = logs_of(sample)

    def loss(weights: np.ndarray) -> float:
        total = 0.0
        for i, (entity, units) in enumerate(zip(sample.entities, sample.units, strict=True)):
            u = sum(w * row for w, row in zip(weights, logs[i], strict=True))
            total += units * (u[entity] - logsumexp(u))
        return -total / sample.units.sum() + 0.5 * RIDGE * float(weights @ weights)

    found = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-7})
    pool = LogLinear.fit(sample)
    assert_allclose(pool.weights, found.x, atol=1e-4)
    ridge = 0.5 * RIDGE * pool.weights @ pool.weights
    assert_allclose(pool.score(sample), -(found.fun - ridge), atol=1e-6)


@pytest.mark.parametrize("name", POOLS)
def test_blocks_do_not_matter(name: str) -> None:
    whole, cut = toy(n_models=3)
    assert_allclose(POOLS[name].fit(whole).weights, POOLS[name].fit(cut).weights, atol=1e-8)


@pytest.mark.parametrize("name", POOLS)
def test_combined_shares_are_those_of_loops(name: str) -> None:
    logs = logs_of(toy(n_models=3)[0])[:5]
    weights = np.array([0.5, 0.3, 0.2])
    combined = POOLS[name](weights).combine(logs)
    for row, models in zip(combined, logs, strict=True):
        if name == "mixture":
            wanted = sum(w * np.exp(one) for w, one in zip(weights, models, strict=True))
        else:
            wanted = np.prod([np.exp(one) ** w for w, one in zip(weights, models, strict=True)], 0)
        assert_allclose(np.exp(row), wanted / wanted.sum(), rtol=1e-12)


def test_a_mixture_keeps_shares_that_underflow() -> None:
    logs = np.array([[[0.0, -900.0], [0.0, -1000.0]]])
    assert_allclose(Mixture(np.array([0.5, 0.5])).combine(logs)[0, 1], -900 + np.log(0.5))


def test_a_model_of_weight_zero_does_not_poison_a_mixture() -> None:
    logs = np.log([[[0.5, 0.5], [1.0, 1e-300]]])
    logs[0, 1, 1] = -np.inf
    assert_allclose(Mixture(np.array([1.0, 0.0])).combine(logs), np.log([[0.5, 0.5]]))


def test_what_one_model_thinks_impossible_stays_possible() -> None:
    """-inf: a mixture takes the other models' share, a log-linear pool a share of 1e-12."""
    logs = np.log([[[0.2, 0.8], [1.0, 1.0]]])
    logs[0, 1, 1] = -np.inf
    half = np.array([0.5, 0.5])
    assert_allclose(np.exp(Mixture(half).combine(logs)), [[0.6, 0.4]])
    u = np.sqrt([0.2 * 1.0, 0.8 * 1e-12])
    assert_allclose(np.exp(LogLinear(half).combine(logs)), [u / u.sum()])


def test_entries_that_no_model_thinks_possible_leave_the_weights_alone() -> None:
    whole, _ = toy()
    logs = np.concatenate([logs_of(whole), np.full((1, 2, 6), -np.inf)])
    entities, units = np.append(whole.entities, 0), np.append(whole.units, 1.0)
    sample = Sample(entities, units, lambda: iter([(slice(0, 81), logs)]))
    assert_allclose(Mixture.fit(sample).weights, Mixture.fit(whole).weights, atol=1e-7)
    assert np.isfinite(LogLinear.fit(sample).weights).all()


def test_explanations_add_up() -> None:
    logs = logs_of(toy(n_models=3)[0])[:1]
    weights = np.array([1.5, -0.5, 0.25])
    columns = LogLinear(weights).explain(logs[0], 4, ["a", "b", "c"])
    assert columns["model"] == ["a", "b", "c", NORMALIZER]
    assert_allclose(sum(columns["contribution"]), LogLinear(weights).combine(logs)[0, 4])
    share = np.array([0.5, 0.4, 0.1])
    columns = Mixture(share).explain(logs[0], 4, ["a", "b", "c"])
    p = np.exp(Mixture(share).combine(logs)[0, 4])
    assert_allclose(columns["responsibility"], share * np.exp(logs[0, :, 4]) / p)
    assert_allclose(sum(columns["responsibility"]), 1)


def test_weights_without_a_maximum_stay_finite() -> None:
    """Entries that a model always ranks first would have an infinite log-linear weight."""
    logs = np.tile(np.log([[0.6, 0.4]]), (10, 1, 1))
    sample = Sample(np.zeros(10, dtype=np.int64), np.ones(10), lambda: iter([(slice(0, 10), logs)]))
    weight = LogLinear.fit(sample).weights[0]
    assert 1 < weight < 100
