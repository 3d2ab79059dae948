"""Questions and the process that answers them, on small data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.contestants import CONTESTANTS
from benchmarks.data import movie_rows, movie_split
from benchmarks.harness import Settings
from benchmarks.questions import Questions, question_sets
from benchmarks.ranking import (
    RECALL,
    SHARES,
    NextItems,
    _add_duels,
    _answered,
    counts_of,
    tune,
)
from benchmarks.reporting import Report
from scipy.sparse import csr_array

import efemb
from efemb.baselines import Popularity
from efemb.evaluation import Predictions, leave_one_out

ROWS = csr_array(np.array([[1.0, 2, 0, 3, 1], [0, 0, 4, 0, 0], [0, 1, 1, 0, 5]]))


def test_all_questions_of_whole_rows_are_leave_one_out() -> None:
    asked = Questions.leave_one_out(ROWS, None, None)
    model = Popularity().fit(ROWS)
    mine, plain = asked.judge(model), leave_one_out(model, ROWS)
    order = np.lexsort((mine.entity, mine.row))
    assert mine.row[order].tolist() == plain.row.tolist()  # the second row has no context
    assert mine.entity[order].tolist() == plain.entity.tolist()
    assert mine.x[order].tolist() == plain.x.tolist()
    assert mine.log_share is not None
    np.testing.assert_allclose(mine.log_share[order], plain.log_share)
    assert mine.rank is not None
    assert mine.rank[order].tolist() == plain.rank.tolist()


@pytest.mark.parametrize("size", [1, 2, None])
def test_capped_questions_come_from_the_generator_of_their_row(size: int | None) -> None:
    users = np.array(["ann", "bob", "eve"])
    asked = Questions.leave_one_out(ROWS, 2, users, size)
    assert asked.row.tolist() == [0, 0, 2, 2]
    assert asked.users is not None
    assert asked.users.tolist() == ["ann", "ann", "eve", "eve"]
    dense = ROWS.toarray()
    for row in (0, 2):
        rng = np.random.default_rng(row)
        items = np.flatnonzero(dense[row])
        chosen = rng.permutation(items)[:2]
        for question, item in zip(np.flatnonzero(asked.row == row), chosen, strict=True):
            entry = asked.entries[[question]].toarray()[0]
            context = asked.contexts[[question]].toarray()[0]
            assert np.flatnonzero(entry).tolist() == [item]
            assert entry[item] == dense[row, item]
            assert context[item] == 0
            others = items[items != item]
            drawn = others if size is None else rng.permutation(others)[:size]
            assert sorted(drawn) == np.flatnonzero(context).tolist()


def test_rows_of_movies_are_split_once() -> None:
    X = np.arange(1.0, 101.0)[:, None] * np.ones((1, 3))
    rows, entries = movie_rows(X, 1), movie_split(X, 1)
    sizes = [part.shape[0] for part in (rows.train, rows.validation, rows.test)]
    assert sizes == [72, 8, 20]
    assert np.array_equal(rows.test.toarray(), entries.test.toarray())
    every = np.concatenate([part.toarray() for part in (rows.train, rows.validation, rows.test)])
    assert sorted(every[:, 0]) == X[:, 0].tolist()


def test_contestants_have_names_of_their_own_and_parts_that_come_first() -> None:
    names = [contestant.name for contestant in CONTESTANTS]
    assert len(set(names)) == len(names)
    for place, contestant in enumerate(CONTESTANTS):
        assert set(contestant.parts) <= set(names[:place])


def test_the_setting_with_the_best_validation_score_is_kept(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "data": "Complete Journey",
        "split": 0,
        "caps": (2, 3),
        "source": (True, None),
    }
    settings = [{"kappa": kappa} for kappa in (1e6, 30.0, 1.0)]
    options |= {"candidates": settings, "answers": f"{tmp_path}/a.npz"}
    outcome = tune("personal popularity", chosen={}, **options)
    assert outcome["tried"] == 3
    assert outcome["setting"] == settings[int(np.argmax(outcome["scores"]))]
    counts = counts_of("Complete Journey", 0, Settings(quick=True))
    assert counts.users is not None
    model = efemb.baselines.PersonalPopularity(**outcome["setting"])
    model.fit(efemb.Dataset(counts.train, users=counts.users[0]))
    test = dict(question_sets(counts, 1500, 2, 3))["test"]
    with np.load(tmp_path / "a.npz") as file:
        assert sorted(file.files) == ["calibrated test", "share test"]
        expected = test.judge(model)
        np.testing.assert_allclose(file["share test"][3], expected.log_share)
        np.testing.assert_allclose(file["share test"][4], expected.rank)


def test_few_rows_are_fitted_again_with_those_of_validation(tmp_path: Path) -> None:
    options: dict[str, Any] = {"data": "Groceries", "split": 0, "caps": (2, 3), "chosen": {}}
    options |= {"source": (True, None), "answers": f"{tmp_path}/a.npz", "refit": True}
    outcome = tune("item-kNN (cosine)", candidates=[{"n_neighbors": 20}], **options)
    assert outcome["setting"] == {"n_neighbors": 20}
    counts = counts_of("Groceries", 0, Settings(quick=True))
    every = np.concatenate([counts.train.toarray(), counts.validation.toarray()])
    model = efemb.baselines.ItemKNN(20).fit(every)
    test = dict(question_sets(counts, 1500, 2, 3))["test"]
    with np.load(tmp_path / "a.npz") as file:
        np.testing.assert_allclose(file["share test"][3], test.judge(model).log_share)
        whole = {"share all", "share context 1", "share context 3", "share context 10"}
        assert set(file.files) == {"share test", "calibrated test", *whole}


def answers(log_share: list[float], rank: list[float]) -> Predictions:
    row = np.array([0, 0, 1, 2])
    entity, x = np.arange(4), np.array([1.0, 2.0, 1.0, 1.0])
    return Predictions(row, entity, x, log_share=np.array(log_share), rank=np.array(rank))


def test_recommended_models_meet_those_that_know_as_much() -> None:
    ours, home = "efemb BasketEmbedding", "efemb BasketEmbedding, personal"
    answered = {
        ours: answers([-1, -2, -1, -3], [1, 20, 1, 1]),
        home: answers([-1, -1, -1, -1], [1, 1, 1, 1]),
        "popularity": answers([-4, -4, -4, -4], [50, 50, 1, 50]),
        "EASE": answers([-2, -2, -2, -2], [1, 1, 30, 1]),
        "personal popularity": answers([-1, -2, -2, -2], [1, 2, 3, 30]),
    }
    report = Report("ranking", Settings(quick=True))
    _add_duels(report, "trips", answered, RECALL)
    _add_duels(report, "trips", answered, SHARES)
    values = {row["what"]: row["value"] for row in report.rows}
    assert values[f"trips: {ours} - EASE: recall@10"] == pytest.approx(0.75 - 0.75)
    assert values[f"trips: {ours} - popularity: recall@10"] == pytest.approx(0.75 - 0.25)
    # per unit: (-1 - 4 - 1 - 3) / 5 against -2 and -4
    assert values[f"trips: {ours} - EASE: log-likelihood"] == pytest.approx(-9 / 5 + 2)
    assert values[f"trips: {home} - EASE: log-likelihood"] == pytest.approx(-1 + 2)
    beside = {row["what"]: row["beside"] for row in report.rows}
    assert beside[f"trips: {ours} - EASE: log-likelihood"].endswith(", the best")
    assert beside[f"trips: {home} - personal popularity: log-likelihood"].endswith(", the best")
    assert f"trips: {ours} - personal popularity: log-likelihood" not in values


def test_recommended_models_rank_by_what_they_recommend() -> None:
    tables = {"share test": "means", "calibrated test": "probabilities", "share all": "all means"}
    predictions: dict[str, Any] = {"efemb BasketEmbedding": tables, "EASE": tables}
    by_mean, by_own = (_answered(predictions, "test", figure) for figure in (SHARES, RECALL))
    assert by_mean == {"efemb BasketEmbedding": "means", "EASE": "means"}
    assert by_own == {"efemb BasketEmbedding": "probabilities", "EASE": "means"}
    assert _answered(predictions, "all", RECALL)["efemb BasketEmbedding"] == "all means"


@pytest.mark.slow
def test_next_items_are_judged_by_their_calibrated_probabilities() -> None:
    trips = efemb.simulation.simulate_baskets(
        n_rows=300, n_entities=20, n_lines=1500, n_topics=2, seed=0
    )
    model = efemb.BasketEmbedding(2, random_state=0).fit(trips)
    asked = Questions.leave_one_out(trips.values[:5], 1, None)
    judged = asked.judge(NextItems(model))
    assert judged.log_share is not None
    entity = int(asked.entries.indices[0])
    basket = [int(item) for item in asked.contexts[[0]].indices]
    table = model.complete(basket, n=20)
    (place,) = np.flatnonzero(table["label"] == entity)
    assert np.exp(judged.log_share[0]) == pytest.approx(table["probability"][place], rel=1e-5)
    assert judged.rank is not None
    assert judged.rank[0] == place + 1
