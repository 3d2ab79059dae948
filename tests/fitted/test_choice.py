"""Filters before the search, and labels that are given in part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import efemb
from efemb.fitted import Choice
from fitted.toys import random_model

NAMES = ["Apple pie", "apple juice", "Pineapple", "beer", "Beer", "17", "stout beer"]
WORDS = efemb.Vocabulary(NAMES, counts=[5, 9, 2, 7, 1, 3, 4])

FILTERS: dict[str, tuple[dict[str, Any], list[int]]] = {
    "text in any case": ({"where": "APPLE"}, [0, 1, 2]),
    "function": ({"where": lambda label: label[0].isupper()}, [0, 2, 4]),
    "truth values": ({"where": np.arange(7) > 4}, [5, 6]),
    "list of truth values": ({"where": [True] + [False] * 6}, [0]),
    "labels": ({"where": ["beer", "Pineapple"]}, [2, 3]),
    "set of labels": ({"where": {"beer"}}, [3]),
    "no label": ({"where": []}, []),
    "number as text": ({"where": [17]}, [5]),
    "excluded": ({"exclude": ["beer", "17"]}, [0, 1, 2, 4, 6]),
    "one excluded": ({"exclude": "beer"}, [0, 1, 2, 4, 5, 6]),
    "frequent": ({"min_count": 5}, [0, 1, 3]),
    "all three": ({"where": "beer", "exclude": "beer", "min_count": 2}, [6]),
    "unknown ones": ({"where": ["beer", "wine"], "unknown": "skip"}, [3]),
}


@pytest.mark.parametrize("how", FILTERS)
def test_filters_choose(how: str) -> None:
    options, expected = FILTERS[how]
    found = Choice(WORDS, **options).rows
    assert found is not None
    assert found.tolist() == expected


def test_no_filter_chooses_all() -> None:
    assert Choice(WORDS).rows is None


def test_counts_of_data_replace_those_of_the_vocabulary() -> None:
    found = Choice(WORDS, counts=np.arange(7.0), min_count=6).rows
    assert found is not None
    assert found.tolist() == [6]


PARTS = {
    "beer": 3,  # exact, although others contain it
    "Beer": 4,
    "PINEAPPLE": 2,  # equal but for case
    "apple j": 1,  # starts with it, in any case
    "PINE": 2,
    "stout": 6,
    "pie": 0,  # contains it
    17: 5,
}


@pytest.mark.parametrize("label", PARTS)
def test_part_of_a_label_finds_it_if_only_one_fits(label: Any) -> None:
    assert Choice(WORDS, match="prefix").code(label) == PARTS[label]


AMBIGUOUS = {
    "BEER": r"'BEER' is ambiguous: it may be 'beer', 'Beer'; write more",
    "apple": r"'apple' is ambiguous: it may be 'apple juice', 'Apple pie'; write more",
    "e": r"'e' is ambiguous: it may be 'apple juice', 'beer', 'Apple pie', .* and 1 more;",
}


@pytest.mark.parametrize("label", AMBIGUOUS)
def test_an_ambiguous_part_names_the_candidates(label: str) -> None:
    with pytest.raises(efemb.DataError, match=AMBIGUOUS[label]):
        Choice(WORDS, match="prefix").code(label)


@pytest.mark.parametrize("label", ["wine", "", None, 4, "beeer"])
def test_a_part_of_nothing_is_unknown(label: Any) -> None:
    choice = Choice(WORDS, match="prefix")
    assert not choice.knows(label)
    with pytest.raises(efemb.DataError, match="unknown label"):
        choice.code(label)


def test_exact_is_the_default() -> None:
    with pytest.raises(efemb.DataError, match=r"unknown label 'pine'.*did you mean 'Pineapple'"):
        Choice(WORDS).code("pine")


def test_skipped_labels_may_be_parts() -> None:
    choice = Choice(WORDS, match="prefix", unknown="skip")
    assert choice.codes(["pine", "wine", "stout"]).tolist() == [2, 6]


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "where a number": ({"where": 3}, efemb.InputTypeError, "where must be a function"),
    "too few truth values": ({"where": [True, False]}, efemb.DataError, "2 truth values for 7"),
    "where unknown": ({"where": ["bear"]}, efemb.DataError, "did you mean 'beer'"),
    "exclude unknown": ({"exclude": "bear"}, efemb.DataError, "did you mean 'beer'"),
    "min_count text": ({"min_count": "3"}, efemb.InputTypeError, "min_count must be a number"),
    "min_count true": ({"min_count": True}, efemb.InputTypeError, "min_count must be a number"),
    "min_count < 0": ({"min_count": -1}, efemb.ParameterError, ">= 0, got -1"),
    "min_count NaN": ({"min_count": np.nan}, efemb.ParameterError, ">= 0, got nan"),
    "match": ({"match": "prefx"}, efemb.ParameterError, "did you mean 'prefix'"),
    "unknown": ({"unknown": "skp"}, efemb.ParameterError, "did you mean 'skip'"),
}


@pytest.mark.parametrize("how", WRONG)
def test_wrong_filters(how: str) -> None:
    options, error, words = WRONG[how]
    with pytest.raises(error, match=words):
        Choice(WORDS, **options)


def test_min_count_needs_counts() -> None:
    with pytest.raises(efemb.ParameterError, match="min_count needs entity counts"):
        Choice(efemb.Vocabulary("ab"), min_count=1)


@pytest.mark.parametrize("n", [1, 3, 100])
@pytest.mark.parametrize("method", ["similar", "complements", "analogy"])
def test_filters_come_before_the_search(method: str, n: int) -> None:
    """The best n of the chosen ones, not the chosen ones among the best n."""
    fitted = random_model(0, 30)
    chosen = {"exclude": ["item 4"], "min_count": 20, "where": lambda label: label[-1] in "02468"}
    everything = getattr(fitted, method)("item 1", n=100)
    counts = dict(zip(fitted.entities, fitted.entities.counts, strict=True))
    kept = [
        label
        for label in everything["label"]
        if label != "item 4" and label[-1] in "02468" and counts[label] >= 20
    ]
    assert getattr(fitted, method)("item 1", n=n, **chosen)["label"].tolist() == kept[:n]
