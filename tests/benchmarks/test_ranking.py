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
from benchmarks.ranking import counts_of, tune
from scipy.sparse import csr_array

import efemb
from efemb.baselines import Popularity
from efemb.evaluation import leave_one_out

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
