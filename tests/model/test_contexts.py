"""Contexts: who is in them, read off through unit context vectors, against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.spatial.distance import cdist

import efemb
from efemb.model.contexts.neighbors import most_correlated, nearest

Array = Any


def sums(context: Any, data: efemb.Dataset) -> Array:
    """Context sums of all cells when alpha is the identity: (T, N, slots * N) member values."""
    bound = context.bind(data)
    terms = bound.terms(np.arange(data.n_rows))
    found = np.full((data.n_rows, data.n_entities, bound.n_context_vectors), np.nan)
    found[terms.row, terms.entity] = terms.contexts(np.eye(bound.n_context_vectors))
    return found


def reals(n_rows: int = 6, n_entities: int = 5, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(n_rows, n_entities))


@pytest.mark.parametrize("n_dims", [1, 2, 3])
@pytest.mark.parametrize("k", [1, 4, 19])
def test_neighbors_are_the_nearest_by_brute_force(n_dims: int, k: int) -> None:
    positions = np.random.default_rng(1).random((20, n_dims))
    distance = cdist(positions, positions)
    np.fill_diagonal(distance, np.inf)
    assert_allclose(nearest(positions, k), np.argsort(distance, axis=1)[:, :k])


def test_without_positions_neighbors_are_the_most_correlated() -> None:
    values = reals(40, 9)
    values[:, 3] -= values[:, 5]
    strength = np.abs(np.corrcoef(values.T))
    np.fill_diagonal(strength, -1)
    expected = np.argsort(-strength, axis=1)[:, :4]
    assert_allclose(most_correlated(efemb.Dataset(values), 4), expected)
    assert_allclose(most_correlated(efemb.Dataset(sparse.csr_array(values)), 4), expected)


def test_equal_correlations_go_to_the_first_whatever_the_order_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    own = rng.integers(0, 2, 31).astype(float)
    # Entities 1 to 6 have the same counts in another order: each correlates with 0 alike.
    ones, zeros = np.flatnonzero(own), np.flatnonzero(own == 0)
    values = np.zeros((31, 7))
    values[:, 0] = own
    for n in range(1, 7):
        values[rng.permutation(ones)[:5], n] = 1.0
        values[rng.permutation(zeros)[:2], n] = 1.0
    for _ in range(20):
        near = most_correlated(efemb.Dataset(rng.permutation(values)), 3)
        assert near[0].tolist() == [1, 2, 3]


def test_a_constant_entity_is_nobodys_first_choice() -> None:
    values = reals(30, 5)
    values[:, 2] = 7.0
    near = most_correlated(efemb.Dataset(values), 3)
    others = [n for n in range(5) if n != 2]
    assert not (near[others] == 2).any()


def test_the_default_number_of_neighbors_is_ten_or_all_others() -> None:
    small, large = efemb.Dataset(reals(20, 4)), efemb.Dataset(reals(20, 15))
    assert (np.diff(efemb.Neighbors().bind(small).lists[0].ptr) == 3).all()
    assert (np.diff(efemb.Neighbors().bind(large).lists[0].ptr) == 10).all()


@pytest.mark.parametrize("kind", ["neighbors", "graph"])
def test_fixed_contexts_take_their_members_from_the_same_row(kind: str) -> None:
    values = reals()
    around = [[1, 2], [0, 4], [3], [], [0]]
    adjacency = np.zeros((5, 5))
    for n, members in enumerate(around):
        adjacency[n, members] = 2.5  # the weight of an edge is not used
    context: Any = efemb.Graph(sparse.csr_array(adjacency))
    if kind == "neighbors":
        positions = np.random.default_rng(2).random((5, 2))
        around = nearest(positions, 2).tolist()
        context = efemb.Neighbors(2, positions=positions)
    expected = np.zeros((6, 5, 5))
    for t in range(6):
        for n in range(5):
            for m in around[n]:
                expected[t, n, m] = values[t, m]
    assert_allclose(sums(context, efemb.Dataset(values)), expected)


def test_positions_of_the_data_serve_where_the_context_has_none() -> None:
    positions = np.random.default_rng(2).random((5, 2))
    given = sums(efemb.Neighbors(2, positions=positions), efemb.Dataset(reals()))
    stored = sums(efemb.Neighbors(2), efemb.Dataset(reals(), positions=positions))
    assert_allclose(stored, given)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("include_self", [False, True])
def test_lagged_members_stay_inside_their_recording(shared: bool, include_self: bool) -> None:
    values, recordings = reals(8, 4), [0, 0, 0, 1, 1, 2, 2, 2]
    around = [[1], [2, 3], [0], []]
    adjacency = np.zeros((4, 4))
    for n, members in enumerate(around):
        adjacency[n, members] = 1
    offsets = (-2, 1, -1)
    slots = 1 if shared else 3
    expected = np.zeros((8, 4, slots * 4))
    for t in range(8):
        for n in range(4):
            for place, offset in enumerate(offsets):
                source = t + offset
                if not 0 <= source < 8 or recordings[source] != recordings[t]:
                    continue
                for m in ([n] if include_self else []) + around[n]:
                    expected[t, n, (0 if shared else place) * 4 + m] += values[source, m]
    lagged = efemb.Lagged(
        offsets, of=efemb.Graph(adjacency), include_self=include_self, shared=shared
    )
    data = efemb.Dataset(values, recordings=np.array(recordings))
    assert_allclose(sums(lagged, data), expected)


def slots_of(context: Any) -> tuple[int, Array]:
    """Number of slots, and the slot that each of rows t-1, t, t+1 fills for entity 0."""
    data = efemb.Dataset(np.abs(reals(5, 3)) + 1)
    found = sums(context, data)[2, 0]
    n_slots = len(found) // 3
    return n_slots, [np.flatnonzero(slot).tolist() for slot in found.reshape(n_slots, 3)]


def test_in_a_sum_the_simultaneous_part_has_slot_zero_and_lags_the_next() -> None:
    near = efemb.Graph(np.array([[0, 1, 0], [1, 0, 0], [1, 0, 0]]))
    past, future = efemb.Lagged((-1, -2)), efemb.Lagged((1,))
    assert slots_of(near) == (1, [[1]])
    assert slots_of(past) == (2, [[0], [0]])
    assert slots_of(near + past) == (3, [[1], [0], [0]])
    assert slots_of(past + near) == (3, [[1], [0], [0]])
    assert slots_of(near + past + future) == (4, [[1], [0], [0], [0]])
    assert slots_of(near + efemb.Lagged((-1,), shared=True)) == (1, [[0, 1]])


def test_lags_of_two_sums_have_slots_of_their_own() -> None:
    near = efemb.Graph(np.array([[0, 1, 0], [1, 0, 0], [1, 0, 0]]))
    far = efemb.Graph(np.array([[0, 0, 1], [1, 0, 0], [1, 0, 0]]))
    one, two = near + efemb.Lagged((-1,)), far + efemb.Lagged((-2,))
    assert slots_of(one + two) == (3, [[1, 2], [0], [0]])
    assert slots_of(efemb.Basket(scale="none") + one + two) == (3, [[1, 2], [0], [0]])
    assert one + two == near + efemb.Lagged((-1,)) + far + efemb.Lagged((-2,))


@pytest.mark.parametrize("turned", [False, True])
def test_a_basket_keeps_slot_zero_beside_lags(turned: bool) -> None:
    basket, past = efemb.Basket(scale="none"), efemb.Lagged((-1, -2))
    both = past + basket if turned else basket + past
    assert slots_of(both) == (3, [[1, 2], [0], [0]])


@pytest.mark.parametrize("scale", ["none", "items", "total"])
@pytest.mark.parametrize("binary", [False, True])
def test_a_basket_is_the_rest_of_the_row(scale: str, binary: bool) -> None:
    values = np.random.default_rng(3).poisson(0.8, (7, 4)).astype(float)
    values[0], values[1] = 0, [0, 3, 0, 0]
    expected = np.zeros((7, 4, 4))
    for t in range(7):
        for n in range(4):
            rest = [float(x != 0) if binary else x for x in values[t]]
            rest[n] = 0.0
            divisor = {"none": 1, "items": np.count_nonzero(rest), "total": sum(rest)}[scale]
            expected[t, n] = np.array(rest) / (divisor or 1)
    basket = efemb.Basket(scale=scale, binary=binary)
    assert_allclose(sums(basket, efemb.Dataset(values)), expected)
    assert_allclose(sums(basket, efemb.Dataset(sparse.csr_array(values))), expected)


def test_missing_members_do_not_count_as_items() -> None:
    values = reals(4, 3)
    values[1, 1] = np.nan
    graph = efemb.Graph(1 - np.eye(3), scale="items")
    found = sums(graph, efemb.Dataset(values))
    assert_allclose(found[1, 0], [0, 0, values[1, 2]])
    assert np.isnan(found[1, 1]).all(), "a missing observation is no term"
    assert_allclose(found[0, 0], [0, values[0, 1] / 2, values[0, 2] / 2])


def test_explicit_lists_name_any_cells() -> None:
    values = reals(3, 2)
    members = {0: [3, 5], 4: [0]}
    indptr = np.cumsum([0] + [len(members.get(cell, [])) for cell in range(6)])
    indices = [m for cell in range(6) for m in members.get(cell, [])]
    found = sums(efemb.Explicit(indptr, indices), efemb.Dataset(values))
    expected = np.zeros((3, 2, 2))
    expected[0, 0, 1] = values[1, 1] + values[2, 1]
    expected[2, 0, 0] = values[0, 0]
    assert_allclose(found, expected)


@pytest.mark.parametrize(
    ("context", "match"),
    [
        (efemb.Neighbors(5), "at least 6 entities"),
        (efemb.Neighbors(0), "k must be >= 1"),
        (efemb.Neighbors(2.0), "k must be an integer"),
        (efemb.Neighbors(2, positions=np.zeros((5, 2))), "share a position"),
        (efemb.Neighbors(2, positions=np.full((5, 2), np.nan)), "NaN or infinite"),
        (efemb.Neighbors(2, positions=np.zeros((4, 2))), "4 rows, but there are 5 entities"),
        (efemb.Graph(np.eye(5)), "loops, the first at entity 0"),
        (efemb.Graph(np.zeros((4, 4))), "must be 5 x 5"),
        (efemb.Lagged((0, 1)), "not 0"),
        (efemb.Lagged((1, 1)), "different"),
        (efemb.Lagged(()), "different|integers"),
        (efemb.Lagged((0.5,)), "must be integers"),
        (efemb.Lagged(of=efemb.Basket(scale="none")), "Neighbors or Graph"),
        (efemb.Lagged(of=efemb.Neighbors(2, scale="items")), "pass scale='items'.* to Lagged"),
        (efemb.Lagged(of=efemb.Neighbors(2, binary=True)), "binary=True to Lagged"),
        (efemb.Lagged(of=efemb.Lagged((-2,))), "no offsets"),
        (efemb.Lagged(include_self=False), "else it is empty"),
        (efemb.Explicit([0, 1], [0]), "31 entries"),
        (efemb.Explicit([0] * 30 + [1], [30]), "0 ... 29"),
        (efemb.Explicit([0] + [1] * 30, [0]), "own context"),
    ],
)
def test_a_context_that_cannot_be_is_refused(context: Any, match: str) -> None:
    with pytest.raises(efemb.EfembError, match=match) as caught:
        context.bind(efemb.Dataset(reals()))
    assert isinstance(caught.value, (ValueError, TypeError))


def test_lags_may_say_twice_how_they_are_scaled() -> None:
    how: Any = {"scale": "items", "binary": True}
    data = efemb.Dataset(reals())
    one, two = (efemb.Lagged(of=efemb.Neighbors(2, **more), **how) for more in ({}, how))
    assert_allclose(sums(one, data), sums(two, data))


def test_a_total_needs_data_from_zero_up() -> None:
    with pytest.raises(efemb.DataError, match="scale='items' or scale='none'"):
        efemb.Basket(scale="total").bind(efemb.Dataset(reals()))


def test_unknown_scales_list_the_choices() -> None:
    with pytest.raises(efemb.ParameterError, match=r"did you mean 'items'.*none, total"):
        efemb.Basket(scale="item").check()


def test_only_contexts_add() -> None:
    with pytest.raises(efemb.InputTypeError, match="added to a context"):
        efemb.Basket() + 3


@pytest.mark.parametrize("wrong", ["no", 1, None, np.ones(2)])
def test_binary_is_a_flag_and_scale_a_name(wrong: Any) -> None:
    with pytest.raises(efemb.InputTypeError, match=r"Basket\.binary must be True or False"):
        efemb.Basket(binary=wrong).check()
    if not isinstance(wrong, str):
        with pytest.raises(efemb.ParameterError, match="unknown scale"):
            efemb.Basket(scale=wrong).check()
