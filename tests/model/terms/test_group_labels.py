"""Groups of rows are found by their labels, of which a number and its text are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import efemb
from efemb.baselines import PersonalPopularity
from efemb.data.columns import distinct_labels, label_codes

X = np.array([[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 2], [0, 0, 2, 1]] * 20)
HOUSES = np.array([1, 2, 3, 4] * 20)


def rows(houses: Any) -> efemb.Dataset:
    return efemb.Dataset(X, entities=list("abcd"), rows={"house": houses})


MODELS: dict[str, Callable[[], Any]] = {
    "vectors": lambda: poisson(terms=[efemb.RowVectors("house", 1)]),
    "history": lambda: poisson(terms=[efemb.History("house")]),
    "groups": lambda: poisson(structure=efemb.Grouped("house", min_rows=2)),
    "shares": lambda: PersonalPopularity("house"),
}


def poisson(**options: Any) -> efemb.PoissonEmbedding:
    return efemb.PoissonEmbedding(1, random_state=0, tol=1.0, **options)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("fitted_to", [np.int64, np.float64, str])
def test_a_number_and_its_text_are_one_group(name: str, fitted_to: type) -> None:
    model = MODELS[name]().fit(rows(HOUSES.astype(fitted_to)))
    known, text, unknown = (
        model.conditional(rows(houses)) for houses in (HOUSES, HOUSES.astype(str), HOUSES + 4)
    )
    np.testing.assert_array_equal(known, text)
    assert not np.allclose(known, unknown)


def test_questions_take_either() -> None:
    grouped, vectors = (MODELS[name]().fit(rows(HOUSES)) for name in ("groups", "vectors"))
    assert grouped.of_group("3") is grouped.of_group(3)
    for house in (3, "3"):
        assert vectors.predict(["c"], 1, house=house)["label"][0] == "d"
    told = [
        vectors.recommend(rows(houses), 4, past=rows(HOUSES), user="house")
        for houses in (HOUSES, HOUSES.astype(str))
    ]
    assert told[0] == told[1]
    assert set(told[0]["label"][np.asarray(told[0]["row"]) == 0]) == {"c", "d"}


def test_new_groups_are_those_that_are_not_known_as_either() -> None:
    model = MODELS["vectors"]().fit(rows(HOUSES))
    wider = model.fold_in_rows(rows(np.where(HOUSES == 4, 9, HOUSES).astype(str)))
    assert len(wider.rows("house")) == 5
    with pytest.raises(efemb.DataError, match="no new group"):
        model.fold_in_rows(rows(HOUSES.astype(str)))


def test_labels_of_every_kind() -> None:
    labels = ["a", 7, "7", 7.0, None, float("nan"), "", (1, 2), "b", (1, 2)]
    assert distinct_labels(labels) == ["a", 7, (1, 2), "b"]
    assert distinct_labels(labels, known=["7", "b"]) == ["a", (1, 2)]
    codes = label_codes(labels, ["7", (1, 2), "a"])
    assert codes.tolist() == [2, 0, 0, 0, -1, -1, -1, 1, -1, 1]
