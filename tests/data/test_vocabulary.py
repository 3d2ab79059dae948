"""Laws of labels and of the vocabulary."""

from __future__ import annotations

import datetime
import decimal
import math
import pickle
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from efemb.data.vocabulary import Vocabulary, canonical_label, shorten, sorted_order
from efemb.errors import DataError, InputTypeError

LABELS = st.one_of(st.text(min_size=1), st.integers(), st.floats(allow_nan=False))


def text_of(label: object) -> str:
    """What makes a label distinct: 0.0 is 0, and both are the text "0"."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


@given(st.lists(LABELS, unique_by=text_of))
def test_codes_and_labels_are_inverse(labels: list[object]) -> None:
    words = Vocabulary(labels)
    assert [words.index_of(label) for label in labels] == list(range(len(labels)))
    assert list(words) == labels
    assert all(label in words for label in labels)


@given(st.lists(LABELS, unique_by=text_of))
def test_pickling_and_equality(labels: list[object]) -> None:
    words = Vocabulary(labels, counts=np.arange(len(labels)))
    again = pickle.loads(pickle.dumps(words))
    assert again == words
    assert hash(again) == hash(words)
    np.testing.assert_array_equal(again.counts, words.counts)
    assert words != Vocabulary([*labels, "one more label than before"])
    assert words != labels


def test_it_is_immutable() -> None:
    words = Vocabulary(["a", "b"], counts=[1, 2])
    with pytest.raises(AttributeError):
        words.labels = ["c"]  # type: ignore[misc, assignment]
    with pytest.raises(AttributeError):
        words.other = 1  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="read-only"):
        words.labels[0] = "c"
    with pytest.raises(ValueError, match="read-only"):
        words.counts[0] = 5  # type: ignore[index]


def test_take_keeps_the_counts_in_the_new_order() -> None:
    words = Vocabulary(["a", "b", "c"], counts=[1, 2, 3]).take(np.array([2, 0]))
    assert list(words) == ["c", "a"]
    assert words.counts is not None
    assert words.counts.tolist() == [3, 1]


def test_an_unknown_label_names_the_nearest() -> None:
    words = Vocabulary(["Yoplait strawberry", "Lays chips", "beer"])
    with pytest.raises(DataError, match="did you mean 'Yoplait strawberry'"):
        words.index_of("yoplait")
    with pytest.raises(DataError, match="did you mean 'beer'"):
        words.index_of("bear")
    assert not any(wrong in words for wrong in (None, [], math.nan))


def test_numbers_and_their_text_are_one_label() -> None:
    assert Vocabulary(["17", "x"]).index_of(17) == 0
    assert Vocabulary([17, "x"]).index_of("17") == 0
    assert Vocabulary([17, "x"]).index_of(17.0) == 0
    assert Vocabulary([1.5, "x"]).index_of("1.5") == 0
    assert Vocabulary(["1.5", "x"]).index_of(1.5) == 0
    assert "017" not in Vocabulary([17])
    for one, other in ((17, "17"), ("17", 17), ("1.5", 1.5)):
        with pytest.raises(DataError, match=f"{one!r} and {other!r}: a number and its text"):
            Vocabulary(["a", one, "b", other])


def test_double_and_missing_labels_are_refused() -> None:
    with pytest.raises(DataError, match="'a' occurs more than once"):
        Vocabulary(["a", "b", "a"])
    with pytest.raises(DataError, match="label 1 is missing"):
        Vocabulary(["a", None])
    with pytest.raises(DataError, match="counts has shape"):
        Vocabulary(["a"], counts=[1, 2])


@pytest.mark.slow
def test_the_nearest_of_very_many_is_found_quickly() -> None:
    words = Vocabulary([f"item number {i}" for i in range(200_000)])
    start = time.process_time()
    with pytest.raises(DataError):
        words.index_of("itm nmbr 7")
    assert time.process_time() - start < 10


def test_a_huge_label_does_not_fill_the_screen() -> None:
    huge = "x" * 1_000_000
    assert Vocabulary([huge]).index_of(huge) == 0
    assert len(repr(Vocabulary([huge]))) < 200
    assert "1,000,000 characters" in shorten(huge)


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("a", "a"),
        ("", None),
        (None, None),
        (float("nan"), None),
        (pd.NA, None),
        (pd.NaT, None),
        (np.datetime64("NaT"), None),
        (np.datetime64("NaT", "ns"), None),
        (np.datetime64("2020-01-01", "D"), "2020-01-01"),
        (np.datetime64("2020-01-01T10:00", "ns"), "2020-01-01T10:00:00"),
        (np.float32(2.0), 2),
        (np.str_("a"), "a"),
        (1.5, 1.5),
        (True, 1),
        (np.int8(3), 3),
        (datetime.date(2020, 2, 1), "2020-02-01"),
        (pd.Timestamp("2020-02-01 10:00"), "2020-02-01T10:00:00"),
        (decimal.Decimal("1.50"), "1.50"),
        (decimal.Decimal("nan"), None),
    ],
)
def test_canonical_labels(value: object, label: object) -> None:
    found = canonical_label(value)
    assert found == label
    assert type(found) is type(label)


@pytest.mark.parametrize("value", [b"bytes", [1], {"a": 1}, 1 + 2j])
def test_other_types_are_no_labels(value: object) -> None:
    with pytest.raises(InputTypeError, match="text, a number or a date"):
        canonical_label(value)


@given(st.lists(st.integers() | st.floats(allow_nan=False, allow_infinity=False), unique=True))
def test_numbers_sort_by_value_as_numbers_and_as_text(numbers: list[float]) -> None:
    assert [numbers[i] for i in sorted_order(numbers)] == sorted(numbers)
    as_text = [str(number) for number in numbers]
    values = [numbers[i] for i in sorted_order(as_text)]
    assert values == sorted(numbers)


@given(st.lists(st.text(), unique=True))
def test_text_sorts_by_text(labels: list[str]) -> None:
    labels = ["a word", *(label for label in labels if label != "a word")]
    assert [labels[i] for i in sorted_order(labels)] == sorted(labels)


def test_a_mixture_sorts_numbers_first() -> None:
    labels = ["b", 10, "a", 9, 2.5]
    assert [labels[i] for i in sorted_order(labels)] == [2.5, 9, 10, "a", "b"]
    assert [["1", "01", "0"][i] for i in sorted_order(["1", "01", "0"])] == ["0", "01", "1"]
