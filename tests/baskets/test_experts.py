"""Experts and their mixtures against the definitions as loops."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize

from efemb.baskets import experts as module
from efemb.baskets.experts import BASES, Questions, SizeMixture, fit_log_linear, own_log_shares

N, ENTRIES = 7, 60
RNG = np.random.default_rng(0)


def questions(n: int = ENTRIES) -> Questions:
    logs = RNG.normal(size=(n, len(BASES), N))
    logs[:, module.POPULARITY] = RNG.normal(size=N)
    members = np.array([RNG.permutation(N)[:2] for _ in range(n)])
    entity = np.array([RNG.choice(np.setdiff1d(np.arange(N), row)) for row in members])
    cell = np.repeat(np.arange(n), 2)
    size = np.tile([1, 3, 10], n)[:n]
    known = np.ones(n, dtype=bool)
    bought = np.argwhere(RNG.random((n, N)) < 0.3)
    units = RNG.uniform(1, 3, n)
    return Questions(logs, entity, units, size, cell, members.ravel(), known, *bought.T)


def share_by_hand(asked: Questions, i: int, coefficients: Any, *, absent: bool) -> Any:
    """Shares of all entities in one expert, by its definition."""
    products = np.array([np.prod(np.exp(asked.logs[i, :, j]) ** coefficients) for j in range(N)])
    if absent:
        products[asked.member[asked.member_cell == i]] = 0.0
    return products / products.sum()


def test_own_shares_are_those_of_the_definition() -> None:
    asked, coefficients = questions(5), RNG.normal(size=(2, 3, len(BASES)))
    coefficients[:, 2] = 2.0 * np.eye(len(BASES))[1]  # the same at both sizes
    near = RNG.dirichlet(np.ones(2), 5)
    for scope, own in enumerate(own_log_shares(asked, coefficients, near)):
        for i in range(5):
            for e in range(3):
                shares = share_by_hand(asked, i, near[i] @ coefficients[:, e], absent=scope == 1)
                assert own[i, e] == pytest.approx(np.log(shares[asked.entity[i]]), rel=1e-9)


@pytest.mark.parametrize("absent", [False, True])
def test_log_linear_derivatives_and_maximum(absent: bool) -> None:
    asked, bases = questions(), (0, 2, 3)
    prior = module.Target(0.5 * np.isin(np.arange(len(BASES)), bases), 0.05)

    def value(active: Any) -> float:
        full = np.zeros(len(BASES))
        full[list(bases)] = active
        return module.expand(asked, full, bases, absent, prior)[0]

    start = np.array([0.4, -0.2, 0.7])
    full = np.zeros(len(BASES))
    full[list(bases)] = start
    _, gradient, curvature = module.expand(asked, full, bases, absent, prior)
    assert_allclose(gradient, approx_fprime(start, value, 1e-7), rtol=1e-4, atol=1e-6)

    def slope(active: Any, i: int) -> float:
        moved = np.zeros(len(BASES))
        moved[list(bases)] = active
        return float(module.expand(asked, moved, bases, absent, prior)[1][i])

    for i in range(3):
        wanted = -approx_fprime(start, lambda at, i=i: slope(at, i), 1e-7)
        assert_allclose(curvature[i], wanted, rtol=1e-4, atol=1e-6)
    best = minimize(lambda at: -value(at), start, method="BFGS")
    found = fit_log_linear(asked, bases, absent=absent, prior=prior)
    assert value(found[list(bases)]) == pytest.approx(-best.fun, abs=2e-4)


@pytest.mark.parametrize("bases", [module.LOG_LINEAR, module.LOG_LINEAR[:3]])
def test_mixtures_are_distributions_at_any_size(bases: tuple[int, ...]) -> None:
    mixture = SizeMixture.fit([questions(200), questions(30)], bases)
    asked = questions(12)
    asked = asked._replace(size=np.array([0, 1, 2, 3, 5, 8, 10, 30, 100, 999, 10**6, 0]))
    near = module.closeness(asked.size, mixture.sizes)
    for members in (None, (asked.member_cell, asked.member)):
        shares = np.exp(mixture.log_shares(asked.logs, asked.size, members))
        assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-9)
        weights = mixture.weights(asked.size, absent=members is not None)
        by_hand = sum(
            weights[4, e] * share_by_hand(asked, 4, near[4] @ table, absent=members is not None)
            for e, table in enumerate(mixture.experts.transpose(1, 0, 2))
        )
        assert_allclose(shares[4], by_hand, rtol=1e-6, atol=1e-12)
        if members is not None:
            assert (shares[members] == 0).all()
    assert_allclose(mixture.weights(np.array([10**6]), absent=False)[0], mixture.of_all[-1])


def test_weights_have_the_largest_posterior() -> None:
    own = np.log(RNG.dirichlet(np.ones(4), 300).T[:3].T + 1e-3)
    units = RNG.uniform(1, 2, 300)
    wide = np.column_stack([own, np.full((300, 6), np.log(1e-6))])
    weights = module._mixture_weights(wide, units)
    prior = np.full(9, module._EVEN_ENTRIES)
    prior[module.POPULARITY_EXPERT] += module._POPULAR_ENTRIES
    entries = units / units.mean()

    def posterior(w: Any) -> float:
        return float(entries @ np.log(np.exp(wide) @ w) + prior @ np.log(w))

    best = posterior(weights)
    for _ in range(50):
        moved = weights * np.exp(0.05 * RNG.normal(size=9))
        assert posterior(moved / moved.sum()) <= best + 1e-6


def test_popularity_is_where_the_prior_expects_it() -> None:
    sizes = np.array([1.0, 10.0])
    coefficients, names = module.propose_experts(questions(40), sizes, module.LOG_LINEAR)
    assert names[module.POPULARITY_EXPERT] == "popularity"
    assert (coefficients[:, module.POPULARITY_EXPERT, module.POPULARITY] == 1.0).all()


def test_products_follow_the_size_of_the_context() -> None:
    """Coefficients that are true at one size and reversed at another are found at both."""
    asked = questions(2000)
    sign = np.where(asked.size == 1, 1.0, -1.0)
    logits = 1.5 * sign[:, None] * asked.logs[:, module.VECTORS]
    gumbel = RNG.gumbel(size=logits.shape)
    gumbel[asked.member_cell, asked.member] = -np.inf
    asked = asked._replace(entity=(logits + gumbel).argmax(axis=1))
    sizes = np.array([1.0, 3.0, 10.0])
    table = module._fit_products(asked, sizes, module.LOG_LINEAR, absent=True)
    assert_allclose(table[:, module.VECTORS], [1.5, -1.5, -1.5], atol=0.3)


def test_large_counts_weigh_more_among_all_items_than_as_the_next_item() -> None:
    asked = questions(90)
    often = np.where(asked.entity == 3, 1.0, 0.0)
    sizes = np.array([1.0, 3.0, 10.0])
    (heavy, names), (heavier, _) = (
        module.propose_experts(asked._replace(units=1.0 + often * units), sizes, module.LOG_LINEAR)
        for units in (2.0, 9.0)
    )
    change = dict(zip(names, np.abs(heavier - heavy).max(axis=(0, 2)), strict=True))
    assert change.pop("product of all (all items)") > 0.01
    assert set(change.values()) == {0.0}


def test_two_products_are_found() -> None:
    """Half of the questions follow one base, the others another: each product takes one."""
    asked = questions(4000)
    first = RNG.random(4000) < 0.5
    bases = np.where(first, module.VECTORS, module.POPULARITY)
    logits = 2.0 * asked.logs[np.arange(4000), bases]
    gumbel = RNG.gumbel(size=logits.shape)
    gumbel[asked.member_cell, asked.member] = -np.inf
    asked = asked._replace(entity=(logits + gumbel).argmax(axis=1), units=np.ones(4000))
    pair = (module.VECTORS, module.POPULARITY)
    products, weights = module.fit_two_products(asked, pair)
    near = np.ones((4000, 1))
    single = module.fit_log_linear(asked, pair, absent=True)[None, None]
    of_two = np.exp(module.own_log_shares(asked, products[None], near)[1]) @ weights
    of_one = module.own_log_shares(asked, single, near)[1][:, 0]
    assert np.log(of_two).mean() > of_one.mean() + 0.01
    assert abs(weights.sum() - 1.0) < 1e-12
    assert set(products[:, list(pair)].argmax(axis=1)) == {0, 1}


@pytest.mark.parametrize(
    ("n", "bases", "words"),
    [
        (90, module.LOG_LINEAR[:4], "two products of the parts, fitted to 60 questions about"),
        (60, module.LOG_LINEAR[:4], "all sizes: 40 questions about .* items are fewer than 50"),
        (60, module.LOG_LINEAR, "one product of the parts for each size of the basket"),
    ],
)
def test_a_report_says_what_products_were_fitted_to(
    n: int, bases: tuple[int, ...], words: str
) -> None:
    """A third of the contexts have one item."""
    parts = [questions(20), questions(n)]
    assert re.search(words, module.describe_products(parts, bases))
