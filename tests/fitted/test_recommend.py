"""`recommend`, for every model of rows, against predictions of single rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import efemb
from efemb import Dataset, baselines
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.fitted import recommendation

LABELS = ["beer", "bread", "butter", "chips", "eggs", "milk", "salt", "tea"]


def trips() -> Dataset:
    made = efemb.simulation.simulate(
        "p-emb", n_rows=200, n_entities=len(LABELS), n_components=2, seed=3
    ).data
    users = np.array(["ann", "bob"])[np.arange(200) % 2]
    return Dataset(made.values, entities=LABELS, users=users)


MODELS: dict[str, Any] = {
    "p-emb": efemb.PoissonEmbedding(2, random_state=0),
    "ap-emb": efemb.AdditivePoissonEmbedding(2, random_state=0),
    "b-emb": efemb.BernoulliEmbedding(2, binarize=True, random_state=0),
    "categorical": efemb.CategoricalEmbedding(2, random_state=0),
    "baskets": efemb.BasketEmbedding(2, random_state=0),
    "popularity": baselines.Popularity(),
    "EASE": baselines.EASE(penalty=5),
    "kNN": baselines.ItemKNN(),
    "personal": baselines.PersonalPopularity(kappa=5),
}


SLOW = {"baskets": pytest.mark.slow}
PARAMS = [pytest.param(name, marks=SLOW.get(name, ())) for name in MODELS]


@pytest.fixture(scope="module", params=PARAMS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A model that was saved and loaded: both answer alike, or the next test fails."""
    fitted = MODELS[request.param].fit(trips())
    folder = tmp_path_factory.mktemp("model") / "m"
    fitted.save(folder)
    rows = trips()[:7]
    loaded = efemb.load(folder)
    assert loaded.recommend(rows, 3) == fitted.recommend(rows, 3)
    return loaded


def given_row(model: Any, data: Dataset, row: int, seen: list[int]) -> Any:
    """Shares of all items outside a row, by the log means of a cell that is not in it."""
    absent = next(j for j in range(len(LABELS)) if j not in seen)
    ((_, logs),) = model.log_means(data, [row], [absent])
    means = np.exp(logs[0] - logs[0].max())
    means[seen] = 0
    return means / means.sum()


@pytest.mark.slow
def test_every_row_gets_the_most_probable_items_that_it_lacks(model: Any) -> None:
    data = trips()[:12]
    table = model.recommend(data, n=3)
    assert table.columns == ["row", "label", "rank", "score"]
    for row in range(12):
        seen = np.flatnonzero(data.values.toarray()[row]).tolist()
        mine = [line for line in table if line["row"] == row]
        assert [line["rank"] for line in mine] == list(range(1, min(3, 8 - len(seen)) + 1))
        assert not {line["label"] for line in mine} & {LABELS[j] for j in seen}
        if len(seen) == 8 or isinstance(model, efemb.BasketEmbedding):
            continue  # BasketEmbedding has other weights for what is absent: tests/baskets
        shares = given_row(model, data, row, seen)
        assert_allclose([line["score"] for line in mine], np.sort(shares)[::-1][: len(mine)], 1e-4)


def test_blocks_change_nothing(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data = trips()[:40]
    whole = model.recommend(data, 4)
    monkeypatch.setattr(recommendation, "ROWS_AT_ONCE", 7)
    parts = model.recommend(data, 4)
    assert parts["label"].tolist() == whole["label"].tolist()
    assert_allclose(parts["score"], whole["score"], rtol=1e-5)


def test_items_can_be_chosen_and_rows_have_names(model: Any) -> None:
    rows = Dataset(
        csr_array(np.eye(8)[:2]), entities=LABELS, row_labels=["Mo", "Di"], users=["ann", "bob"]
    )
    table = model.recommend(rows, 8, where="b", exclude="butter")
    assert set(table["label"]) <= {"beer", "bread"}
    assert table["row"].tolist() == ["Mo", "Di"]
    if hasattr(model, "complete"):
        assert model.recommend(rows, 2) == model.complete(rows, 2)


def test_a_full_row_has_nothing_to_add_but_can_be_ranked(model: Any) -> None:
    full = Dataset(csr_array(np.ones((1, 8))), entities=LABELS, users=["ann"])
    assert len(model.recommend(full)) == 0
    table = model.recommend(full, n=8, exclude_seen=False)
    assert sorted(table["label"]) == LABELS
    assert_allclose(table["score"].sum(), 1)


def test_unknown_items_are_refused_by_name_of_the_option_or_skipped() -> None:
    model = efemb.PoissonEmbedding(2, random_state=0).fit(trips())
    frame = pd.DataFrame({"tea": [1, 0], "caviar": [2, 1], "milk": [0, 1]})
    with pytest.raises(DataError, match="unknown='skip'"):
        model.recommend(frame)
    known = np.zeros((2, 8))
    known[0, 7] = known[1, 5] = 1
    assert model.recommend(frame, 3, unknown="skip") == model.recommend(known, 3)
    assert model.score(trips(), unknown="skip") == model.score(trips())
    wider = Dataset(
        csr_array(np.c_[trips().values.toarray(), np.ones(200)]), entities=[*LABELS, "caviar"]
    )
    for judge in (model, baselines.Popularity().fit(trips())):
        assert judge.score(wider, unknown="skip") == pytest.approx(judge.score(trips()))
    with pytest.raises(ParameterError, match="unknown='drop'"):
        model.score(trips(), unknown="drop")


def test_missing_real_values_are_ranked_by_their_means() -> None:
    rng = np.random.default_rng(0)
    ratings = rng.normal(3, 1, size=(80, 6))
    ratings[rng.random((80, 6)) < 0.4] = np.nan
    model = efemb.GaussianEmbedding(2, context=efemb.Neighbors(3), random_state=0).fit(ratings)
    table, means = model.recommend(ratings, 6), model.conditional(ratings)
    for row in range(80):
        mine = [line for line in table if line["row"] == row]
        missing = np.flatnonzero(np.isnan(ratings[row]))
        assert {line["label"] for line in mine} == set(missing)
        assert_allclose([line["score"] for line in mine], np.sort(means[row, missing])[::-1], 1e-6)


def test_bad_questions(tmp_path: Path) -> None:
    model = efemb.PoissonEmbedding(2, random_state=0).fit(trips())
    with pytest.raises(InputTypeError, match="exclude_seen must be True or False"):
        model.recommend(trips(), exclude_seen="no")
    with pytest.raises(ParameterError, match=">= 1"):
        model.recommend(trips(), 0)
    words = efemb.BernoulliTextEmbedding(2, min_count=1, max_iter=1, random_state=0)
    with pytest.raises(ParameterError, match=r"use predict\(words\)"):
        words.fit([["a", "b", "c", "a"]] * 5).recommend([["a", "b"]])
