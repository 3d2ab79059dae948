"""Items that are new to a customer: shares by kind against their definition as a loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import efemb
from efemb import BasketEmbedding, Dataset
from efemb.baselines import PersonalPopularity
from efemb.baskets import new_items as module
from efemb.baskets.experts import BASES, LOG_LINEAR, Questions, SizeMixture
from efemb.baskets.new_items import fit_new_items, log_shares_by_kind

N, F = 12, len(BASES)


def make_questions(n: int, rng: np.random.Generator) -> Questions:
    """Contexts of two items; a third of all items were bought before."""
    logs = rng.normal(size=(n, F, N))
    members = np.array([rng.permutation(N)[:2] for _ in range(n)])
    bought = rng.random((n, N)) < 0.3
    entity = np.array([rng.choice(np.setdiff1d(np.arange(N), row)) for row in members])
    cell, size, known = np.repeat(np.arange(n), 2), np.full(n, 2), np.ones(n, dtype=bool)
    units = rng.uniform(1, 3, n)
    return Questions(
        logs, entity, units, size, cell, members.ravel(), known, *np.argwhere(bought).T
    )


def make_mixture(experts: Any, weights: Any) -> SizeMixture:
    """The same for contexts of any size, among all entities and among absent ones."""
    names = tuple(f"expert {i}" for i in range(len(weights)))
    table = np.array([weights])
    return SizeMixture(np.array([experts]), names, np.zeros(1), table, table)


def kinds_of(asked: Questions) -> tuple[Any, Any]:
    return (asked.member_cell, asked.member), (asked.bought_cell, asked.bought)


def softmax(u: Any, among: Any) -> Any:
    e = np.where(among, np.exp(u), 0.0)
    return e / e.sum()


@pytest.mark.parametrize("absent", [False, True])
def test_new_items_keep_their_share_and_have_one_each_by_their_own_mixture(absent: bool) -> None:
    rng = np.random.default_rng(0)
    asked = make_questions(6, rng)
    usual, new = (make_mixture(rng.normal(size=(e, F)), rng.dirichlet(np.ones(e))) for e in (3, 2))
    logs = log_shares_by_kind(usual, new, asked.logs, asked.size, *kinds_of(asked), absent=absent)
    before = usual.log_shares(asked.logs, asked.size, kinds_of(asked)[0] if absent else None)
    assert_allclose(np.exp(logs).sum(axis=1), 1.0, rtol=1e-9)
    for i in range(6):
        inside, past = (
            np.isin(np.arange(N), items[cells == i]) for cells, items in kinds_of(asked)
        )
        is_new, everything = ~inside & ~past, np.ones(N, dtype=bool)
        by_hand = sum(
            w * softmax(c @ asked.logs[i], ~inside if absent else everything)
            for w, c in zip(usual.of_all[0], usual.experts[0], strict=True)
        )
        within = sum(
            w * softmax(c @ asked.logs[i], is_new)
            for w, c in zip(new.of_all[0], new.experts[0], strict=True)
        )
        by_hand = np.where(is_new, by_hand[is_new].sum() * within, by_hand)
        assert_allclose(np.exp(logs[i]), by_hand, rtol=1e-6, atol=1e-12)
        assert_array_equal(logs[i, ~is_new], before[i, ~is_new])


@pytest.mark.parametrize("absent", [False, True])
def test_the_same_expert_for_both_kinds_is_one_expert(absent: bool) -> None:
    rng = np.random.default_rng(1)
    asked, one = make_questions(8, rng), make_mixture(rng.normal(size=(1, F)), [1.0])
    given = (asked.logs, asked.size, *kinds_of(asked))
    together = log_shares_by_kind(one, None, *given, absent=absent)
    assert_allclose(log_shares_by_kind(one, one, *given, absent=absent), together, rtol=1e-9)


def test_who_has_bought_everything_is_predicted_as_without_new_items() -> None:
    rng = np.random.default_rng(2)
    asked, mixture = make_questions(2, rng), make_mixture(rng.normal(size=(2, F)), [0.3, 0.7])
    everything = np.repeat(np.arange(2), N), np.tile(np.arange(N), 2)
    given = (asked.logs, asked.size, kinds_of(asked)[0], everything)
    logs = log_shares_by_kind(mixture, mixture, *given, absent=True)
    assert_array_equal(logs, log_shares_by_kind(mixture, None, *given, absent=True))


def plant(n: int, experts: Any, weights: Any, rng: np.random.Generator) -> Questions:
    """Questions whose new answers are drawn from a mixture among new items."""
    asked = make_questions(n, rng)
    among = np.ones((n, N), dtype=bool)
    for kind in kinds_of(asked):
        among[kind] = False
    drawn = rng.choice(len(weights), size=n, p=weights)
    u = np.einsum("nfj,nf->nj", asked.logs, np.array(experts)[drawn])
    return asked._replace(
        entity=np.where(among, u + rng.gumbel(size=u.shape), -np.inf).argmax(axis=1)
    )


def mean_log_share(asked: Questions, experts: Any, weights: Any) -> float:
    """Of what is asked for among new items, by the definition."""
    total = 0.0
    for i, entity in enumerate(asked.entity):
        among = np.ones(N, dtype=bool)
        for cells, items in kinds_of(asked):
            among[items[cells == i]] = False
        shares = [softmax(c @ asked.logs[i], among)[entity] for c in experts]
        total += float(asked.units[i] * np.log(np.dot(weights, shares)))
    return total / float(asked.units.sum())


def test_planted_products_are_recovered_and_gains_are_those_of_the_log_shares() -> None:
    rng = np.random.default_rng(3)
    experts = np.zeros((2, F))
    experts[0, [0, 6]], experts[1, 2] = (0.6, 0.8), 3.0
    weights = np.array([0.6, 0.4])
    asked = plant(1500, experts, weights, rng)
    usual = make_mixture(rng.normal(size=(3, F)), rng.dirichlet(np.ones(3)))
    new, gains, why = fit_new_items([asked.take(np.arange(1500) < 900), asked], LOG_LINEAR, usual)
    assert new is not None
    assert why == "two products of the parts, fitted to 1,500 questions about new items"
    truth = mean_log_share(asked, experts, weights)
    found = mean_log_share(asked, new.experts[0], new.of_absent[0])
    assert found > truth - 0.003
    sharp = int(np.argmax(new.experts[0, :, 2]))
    assert new.experts[0, sharp, 2] > 2.0 + abs(new.experts[0, 1 - sharp, 2])
    assert_allclose(new.experts[0, 1 - sharp, [0, 6]], experts[0, [0, 6]], atol=0.2)
    assert_allclose(new.of_absent[0, sharp], 0.4, atol=0.1)
    assert not new.experts[0, :, 5].any()
    gains = fit_new_items([asked], LOG_LINEAR, usual)[1]
    for name, absent in (("all items", False), ("absent items", True)):
        given = (asked.logs, asked.size, *kinds_of(asked))
        own = [
            log_shares_by_kind(usual, mixture, *given, absent=absent)[np.arange(1500), asked.entity]
            for mixture in (None, new)
        ]
        raised = float(asked.units @ (own[1] - own[0])) / float(asked.units.sum())
        assert gains[name] == pytest.approx(raised, abs=1e-6)


def test_few_questions_and_no_gain_change_nothing() -> None:
    rng = np.random.default_rng(4)
    usual = make_mixture(rng.normal(size=(1, F)) * [1, 0, 1, 0, 0, 0, 1], [1.0])
    asked = plant(module.FEWEST_QUESTIONS - 1, np.zeros((1, F)), [1.0], rng)
    mixture, _, why = fit_new_items([asked], LOG_LINEAR, usual)
    assert mixture is None
    assert why == "as items bought before: 49 questions about new items, fewer than 50"
    already = plant(400, usual.experts[0], [1.0], rng)
    mixture, _, why = fit_new_items([already], LOG_LINEAR, usual)
    assert mixture is None
    assert why.endswith("a mixture of their own gains little on 400 questions about new items")


def test_bought_is_what_users_have_in_training_rows() -> None:
    rng = np.random.default_rng(5)
    values, users = rng.poisson(0.3, (30, 8)), rng.integers(6, size=30).astype(object)
    users[:3] = None
    model = PersonalPopularity(kappa=3.0).fit(Dataset(values, users=users))
    asked = Dataset(np.ones((4, 8)), users=np.array([2, 99, 4, 2]))
    rows = np.array([3, 1, 0, 2])
    pairs = set(zip(*(each.tolist() for each in model.bought(asked, rows)), strict=True))
    of_users = {user: np.flatnonzero(values[users == user].sum(axis=0)) for user in (2, 4)}
    wanted = {(cell, item) for cell, user in ((0, 2), (2, 2), (3, 4)) for item in of_users[user]}
    assert pairs == wanted


@pytest.fixture(scope="module")
def model() -> BasketEmbedding:
    """A small model of customers, with a mixture of new items that is made by hand."""
    rng = np.random.default_rng(0)
    values = (rng.random((400, N)) < 0.25) * rng.integers(1, 3, (400, N))
    users = np.arange(400) % 100
    values[users < 50, :4] = 0.0  # new to half of the customers
    made = BasketEmbedding(2, family="poisson", max_iter=2, random_state=0).fit(
        Dataset(values, entities=[f"item {i}" for i in range(N)], users=users)
    )
    made.new_items_ = make_mixture(rng.normal(size=(2, F)) * (np.arange(F) != 5), [0.3, 0.7])
    return made


@pytest.mark.slow
def test_explanations_of_either_kind_add_up(model: BasketEmbedding) -> None:
    completed = model.complete(["item 6", "item 7"], n=N, user=7)
    assert float(np.sum(completed["probability"])) == pytest.approx(1.0)
    listed = dict(zip(completed["label"], completed["probability"], strict=True))
    past = set(model.parts_.bought(Dataset(np.ones((1, N)), users=[7]), np.zeros(1, int))[1])
    assert not past & set(range(4))
    for item in set(range(N)) - {6, 7}:
        parts = model.explain(["item 6", "item 7"], f"item {item}", user=7)
        total = float(np.sum(np.array(parts["weight"]) * np.array(parts["probability"])))
        assert total == pytest.approx(listed[f"item {item}"], rel=1e-4)
        assert float(np.sum(parts["responsibility"])) == pytest.approx(1.0)
        assert (len(parts) == 2) == (item not in past)


@pytest.mark.slow
def test_files_keep_new_items_and_need_none(model: BasketEmbedding, tmp_path: Path) -> None:
    baskets = np.zeros((3, N))
    baskets[:, 6:8] = 1.0
    labels = model._item_labels().labels
    trips = Dataset(baskets, entities=labels, users=np.array([7, 60, "new"], dtype=object))
    rows, entities = np.repeat(np.arange(3), N), np.tile(np.arange(N), 3)

    def ask(asked: BasketEmbedding) -> Any:
        return np.concatenate([block for _, block in asked.log_means(trips, rows, entities)])

    model.save(tmp_path / "model")
    assert_array_equal(ask(efemb.load(tmp_path / "model")), ask(model))
    kept, model.new_items_ = model.new_items_, None
    answer = ask(model)
    model.save(tmp_path / "without")
    model.new_items_ = kept
    manifest = json.loads((tmp_path / "without" / "manifest.json").read_text())
    assert "new_items" not in json.dumps(manifest["mixtures"])
    assert_array_equal(ask(efemb.load(tmp_path / "without")), answer)
    assert (ask(model)[:N] != answer[:N]).any()
    assert_array_equal(ask(model)[2 * N :], answer[2 * N :])  # whom the model does not know
