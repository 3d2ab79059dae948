"""RowGroups: similar households, segments, items of a group and groups of an item."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.fitted.embedding import FittedEmbedding
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec

N, G, K = 9, 6, 3
ITEMS, HOMES = [f"i{n}" for n in range(N)], [100 + g for g in range(G)]
RNG = np.random.default_rng(0)
THETA, GAMMA = RNG.normal(size=(G, K)), RNG.normal(size=(N, K))


def model_of(theta: np.ndarray, gamma: np.ndarray) -> FittedEmbedding:
    terms = [efemb.RowVectors("household", K, groups=HOMES)]
    spec = Spec.resolve(context="basket", family="poisson", terms=terms)
    arrays = {a.name: np.zeros(a.shape) for a in ParameterSpace(spec, N, 1, 1, 2).layout}
    arrays |= {"household.rows": theta, "household.entities": gamma}
    return FittedEmbedding(Parameters.from_named(arrays), spec, efemb.Vocabulary(ITEMS))


EFFECT = THETA @ GAMMA.T
EFFECT = EFFECT - EFFECT.mean(axis=0)
EFFECT = EFFECT - EFFECT.mean(axis=1, keepdims=True)
GROUPS = model_of(THETA, GAMMA).rows("household")


def test_similarity_is_the_cosine_of_the_effects_on_all_items() -> None:
    table = GROUPS.similar(102, n=G)
    unit = EFFECT / np.linalg.norm(EFFECT, axis=1, keepdims=True)
    expected = {HOMES[g]: unit[g] @ unit[2] for g in range(G) if g != 2}
    assert dict(zip(table["label"], table["similarity"], strict=True)) == pytest.approx(expected)


def test_answers_do_not_depend_on_the_basis_of_the_vectors() -> None:
    """theta A and gamma A^-T have the same inner products; so has a shift of all theta."""
    a = RNG.normal(size=(K, K))
    other = model_of((THETA + 1.5) @ a, GAMMA @ np.linalg.inv(a).T).rows("household")
    for ask in (lambda r: r.similar(101), lambda r: r.items(101), lambda r: r.of_item("i3")):
        mine, same = ask(GROUPS), ask(other)
        assert list(mine["label"]) == list(same["label"])
        assert_allclose(mine.columns and mine[mine.columns[1]], same[same.columns[1]], rtol=1e-8)


def test_items_and_groups_are_ranked_by_effect() -> None:
    items = GROUPS.items(103, n=N)
    order = np.argsort(-EFFECT[3])
    assert list(items["label"]) == [ITEMS[n] for n in order]
    assert_allclose(items["effect"], EFFECT[3][order])
    season = GROUPS.items([101, 104], n=1, exclude=items["label"][0])
    assert season["effect"][0] <= EFFECT[[1, 4]].mean(axis=0).max() + 1e-12
    homes = GROUPS.of_item("i5", n=2)
    assert list(homes["label"]) == [HOMES[g] for g in np.argsort(-EFFECT[:, 5])[:2]]


def test_segments_find_planted_kinds_of_households() -> None:
    kind = np.array([0, 1, 0, 1, 1, 1])
    theta = np.array([[3.0, 0, 0], [0, 3.0, 0]])[kind] + RNG.normal(0, 0.1, (G, K))
    table = model_of(theta, GAMMA).rows("household").segments(2)
    segment = dict(zip(table["label"], table["segment"], strict=True))
    assert [segment[home] for home in HOMES] == [1 - k for k in kind]  # the largest is first


def test_bad_questions_are_refused() -> None:
    model = model_of(THETA, GAMMA)
    with pytest.raises(efemb.ParameterError, match="no vectors of 'store'"):
        model.rows("store")
    plain = efemb.PoissonEmbedding(1, random_state=0).fit([[1, 2], [2, 1], [1, 1]] * 9)
    with pytest.raises(efemb.ParameterError, match=r"terms=\[RowVectors\('household'\)\]"):
        plain.rows("household")
    with pytest.raises(efemb.DataError, match="cannot be divided into 7 segments"):
        GROUPS.segments(7)
    with pytest.raises(efemb.DataError, match="999"):
        GROUPS.similar(999)
