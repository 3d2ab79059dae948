"""Repeated and new entries against the loop that defines them."""

from __future__ import annotations

import numpy as np
import pytest

import efemb
from efemb import Dataset
from efemb.baselines import PersonalPopularity, Popularity
from efemb.errors import DataError, ParameterError
from efemb.evaluation import compare, is_repeat, leave_one_out

RNG = np.random.default_rng(0)
X = RNG.poisson(0.7, (60, 9)).astype(float)
HOUSES = np.array([None, *(f"house {i % 7}" for i in range(59))], dtype=object)
TRAIN = Dataset(X[:40], rows={"house": HOUSES[:40]})
TEST = Dataset(X[40:], rows={"house": np.where(np.arange(20) < 3, "new", HOUSES[40:])})


def test_entries_are_repeats_if_the_customer_has_them_in_training_rows() -> None:
    entries = leave_one_out(Popularity("poisson").fit(TRAIN), TEST)
    repeats = is_repeat(entries, TEST, TRAIN, "house")
    for row, entity, repeat in zip(entries.row, entries.entity, repeats, strict=True):
        own = [t for t in range(40) if HOUSES[t] == TEST.rows["house"][row]]
        assert repeat == any(X[t, entity] > 0 for t in own)
    assert 0 < repeats.sum() < len(repeats)


def test_compare_scores_both_groups_apart() -> None:
    models = {
        "popularity": Popularity("poisson").fit(TRAIN),
        "personal": PersonalPopularity("house", kappa=3.0).fit(TRAIN),
    }
    table = compare(models, TEST, train=TRAIN, split_by="repeat", user="house", bootstrap=10)
    assert table["entries"].tolist() == ["repeat", "repeat", "new", "new"]
    for name, model in models.items():
        entries = leave_one_out(model, TEST)
        repeats = is_repeat(entries, TEST, TRAIN, "house")
        assert entries.log_share is not None
        for group, chosen in (("repeat", repeats), ("new", ~repeats)):
            score = np.average(entries.log_share[chosen], weights=entries.x[chosen])
            row = (table["entries"] == group) & (table["model"] == name)
            assert table["score"][row][0] == pytest.approx(score)
            assert table["n"][row][0] == entries.x[chosen].sum()


def test_what_is_missing_is_named() -> None:
    model = Popularity("poisson").fit(TRAIN)
    with pytest.raises(ParameterError, match="needs X and train"):
        compare({"a": leave_one_out(model, TEST)}, split_by="repeat")
    with pytest.raises(ParameterError, match="split_by='customer' is unknown"):
        compare({"a": model}, TEST, train=TRAIN, split_by="customer")
    with pytest.raises(DataError, match="X has no row column 'user'"):
        compare({"a": model}, TEST, train=TRAIN, split_by="repeat")
    assert efemb.evaluation.is_repeat is is_repeat
