"""Data in the order of a model's entities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import efemb
from efemb.data.align import aligned, in_order, places, with_new
from efemb.errors import DataError

LABELS = st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1)


@given(LABELS, LABELS, st.integers(0, 2**32 - 1))
def test_sparse_data_by_label(own: list[str], known: list[str], seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 3, (4, len(own))).astype(float)
    data = efemb.Dataset(csr_array(values), entities=own)
    vocabulary = efemb.Vocabulary(known)
    if not set(own) & set(known):
        with pytest.raises(DataError, match="none of the"):
            aligned(data, vocabulary)
        return
    found = aligned(data, vocabulary)
    dense = found.values.toarray()
    for place, label in enumerate(known):
        expected = values[:, own.index(label)] if label in own else np.zeros(4)
        np.testing.assert_array_equal(dense[:, place], expected)
    assert found.entities == vocabulary
    assert found.report["unknown_entities"] == len(set(own) - set(known))


@given(st.permutations(list("abcd")), st.permutations(list("abcd")))
def test_order_and_codes(own: list[str], known: list[str]) -> None:
    values = np.arange(8.0).reshape(2, 4)
    found, code = in_order(efemb.Dataset(values, entities=own), efemb.Vocabulary(known))
    for place, label in enumerate(own):
        column = known.index(label)
        np.testing.assert_array_equal(found.values[:, column], values[:, place])
        assert code is None or code[place] == column


def test_dense_data_must_have_every_entity() -> None:
    data = efemb.Dataset(np.eye(3), entities=["a", "b", "z"])
    found = aligned(data, efemb.Vocabulary(["b", "a"]))
    np.testing.assert_array_equal(found.values, np.eye(3)[:, [1, 0]])
    assert found.report["unknown_entities"] == 1
    with pytest.raises(DataError, match="lack 'c'"):
        aligned(data, efemb.Vocabulary(["a", "c"]))


def test_unlabeled_data() -> None:
    data = efemb.Dataset(np.eye(2))
    assert in_order(data, efemb.Vocabulary(["a", "b"])) == (data, None)
    with pytest.raises(DataError, match="without labels"):
        aligned(data, efemb.Vocabulary(["a", "b"]))


def test_a_number_and_its_text_are_one_label() -> None:
    found, _ = in_order(efemb.Dataset(np.eye(2), entities=["2", "1"]), efemb.Vocabulary([1, 2]))
    np.testing.assert_array_equal(found.values, np.eye(2)[:, [1, 0]])
    assert found.entities.labels.tolist() == [1, 2]


def test_growing_takes_a_number_for_its_text() -> None:
    known = efemb.Vocabulary(["17", "x"])
    data = efemb.Dataset([[1, 2, 3]], entities=["x", 17, 18])
    found = with_new(data, known, 2, absent=0.0)
    assert found.entities.labels.tolist() == ["17", "x", 18]
    assert found.values.tolist() == [[2, 1, 3]]
    same = with_new(efemb.Dataset([[1, 2]], entities=[17, "x"]), known, 2, absent=0.0)
    assert same.entities == known
    assert places(data, known).tolist() == [1, 0, 2]


def test_positions_of_sparse_data_move_with_their_entities() -> None:
    data = efemb.Dataset(csr_array(np.eye(3)), entities=list("abz"), positions=[1.0, 2.0, 26.0])
    found = aligned(data, efemb.Vocabulary(["b", "a"]))
    assert found.positions.tolist() == [[2.0], [1.0]]
    assert aligned(data, efemb.Vocabulary(["z", "a", "b"])).positions.tolist() == [[26], [1], [2]]
    assert aligned(data, efemb.Vocabulary(["c", "b", "a"])).positions is None
