"""Repeated and new entries against the loop that defines them."""

from __future__ import annotations

import numpy as np
import pytest

import efemb
from efemb import Dataset
from efemb.baselines import PersonalPopularity, Popularity
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.evaluation import AmongItsKind, compare, is_repeat, leave_one_out

RNG = np.random.default_rng(0)
X = RNG.poisson(0.7, (60, 9)).astype(float)
HOUSES = np.array([None, *(f"house {i % 15}" for i in range(59))], dtype=object)
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


def test_entries_of_a_kind_are_ranked_among_their_kind() -> None:
    model = PersonalPopularity("house", kappa=3.0).fit(TRAIN)
    among = leave_one_out(AmongItsKind(model, TRAIN, "house"), TEST)
    repeats = is_repeat(among, TEST, TRAIN, "house")
    means = model.conditional(TEST)
    assert among.rank is not None
    assert among.log_share is not None
    for i, (row, entity) in enumerate(zip(among.row, among.entity, strict=True)):
        own = [t for t in range(40) if HOUSES[t] == TEST.rows["house"][row]]
        bought = X[own].sum(axis=0) > 0
        kind = np.flatnonzero(bought == repeats[i])
        share = means[row, entity] / means[row, kind].sum()
        assert among.log_share[i] == pytest.approx(np.log(share))
        rivals = [n for n in kind if n != entity and X[40 + row, n] == 0]
        larger = sum(means[row, n] > means[row, entity] + 1e-12 for n in rivals)
        ties = sum(abs(means[row, n] - means[row, entity]) <= 1e-12 for n in rivals)
        assert among.rank[i] == pytest.approx(1 + larger + ties / 2)


def test_compare_ranks_among_the_same_kind_on_request() -> None:
    models = {
        "popularity": Popularity("poisson").fit(TRAIN),
        "personal": PersonalPopularity("house", kappa=3.0).fit(TRAIN),
    }
    options = {"train": TRAIN, "split_by": "repeat", "user": "house", "bootstrap": 10}
    table = compare(models, TEST, candidates="same kind", **options)
    joint, gains = compare(models, TEST, **options), []
    for name, model in models.items():
        among = leave_one_out(AmongItsKind(model, TRAIN, "house"), TEST)
        repeats = is_repeat(among, TEST, TRAIN, "house")
        for group, chosen in (("repeat", repeats), ("new", ~repeats)):
            row = (table["entries"] == group) & (table["model"] == name)
            recall = among.take(chosen).recall(10).value
            assert table["recall@10"][row][0] == pytest.approx(recall)
            before = (joint["entries"] == group) & (joint["model"] == name)
            gains.append(table["mrr@100"][row][0] - joint["mrr@100"][before][0])
    assert min(gains) >= -1e-12  # fewer rivals
    assert max(gains) > 0.01


def test_recommendations_that_are_new_to_the_customer() -> None:
    model = PersonalPopularity("house", kappa=3.0).fit(TRAIN)
    table = model.recommend(TEST, n=9, past=TRAIN, user="house")
    for t in range(20):
        own = [s for s in range(40) if HOUSES[s] == TEST.rows["house"][t]]
        new = (X[own].sum(axis=0) == 0) & (X[40 + t] == 0)
        listed = table["label"][table["row"] == t]
        assert set(listed.tolist()) == set(np.flatnonzero(new).tolist())
        if new.any():
            assert table["score"][table["row"] == t].sum() == pytest.approx(1.0)
    assert "new to the customer" in table.note


def test_what_is_missing_is_named() -> None:
    model = Popularity("poisson").fit(TRAIN)
    with pytest.raises(ParameterError, match="needs X and train"):
        compare({"a": leave_one_out(model, TEST)}, split_by="repeat")
    with pytest.raises(ParameterError, match="split_by='customer' is unknown"):
        compare({"a": model}, TEST, train=TRAIN, split_by="customer")
    with pytest.raises(DataError, match="train has no row column 'user'"):
        compare({"a": model}, TEST, train=TRAIN, split_by="repeat")
    assert efemb.evaluation.is_repeat is is_repeat
    with pytest.raises(ParameterError, match="candidates='some' is unknown"):
        compare({"a": model}, TEST, train=TRAIN, split_by="repeat", candidates="some")
    with pytest.raises(ParameterError, match="needs split_by"):
        compare({"a": model}, TEST, train=TRAIN, candidates="same kind")
    entries = {"a": leave_one_out(model, TEST)}
    with pytest.raises(ParameterError, match="pass models, not Predictions"):
        compare(entries, TEST, train=TRAIN, split_by="repeat", candidates="same kind")
    with pytest.raises(DataError, match="past has no row column 'user'"):
        model.recommend(TEST, past=TRAIN)
    with pytest.raises(InputTypeError, match="past must be a Dataset"):
        model.recommend(TEST, past=X, user="house")
