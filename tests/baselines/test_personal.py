"""PersonalPopularity against counts in plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.base import clone

import efemb
from efemb.baselines import PersonalPopularity, Popularity, base
from efemb.baselines.base import CountModel
from efemb.evaluation import leave_one_out

RNG = np.random.default_rng(0)
USERS = np.array(["ann", "bob", "cat"])[RNG.integers(3, size=40)]
X = RNG.poisson(0.7, (40, 6)).astype(float)
TRAIN = efemb.Dataset(csr_array(X), users=USERS)
NEW = RNG.poisson(0.9, (9, 6)).astype(float)
OWNERS = ["ann", "eve", "bob", "bob", "cat", "ann", "mia", "cat", "bob"]
TEST = efemb.Dataset(NEW, users=OWNERS)
KAPPA = 7.0


def shares(owner: str) -> Any:
    """(units of the user + kappa popularity) / (the user's units + kappa)."""
    popularity = X.sum(axis=0) / X.sum()
    units = np.zeros(6)
    for row, user in zip(X, USERS, strict=True):
        if user == owner:
            units += row
    return (units + KAPPA * popularity) / (units.sum() + KAPPA)


def test_shares_are_counts_shrunk_to_popularity(monkeypatch: pytest.MonkeyPatch) -> None:
    model = PersonalPopularity(kappa=KAPPA).fit(TRAIN)
    assert isinstance(model, CountModel)
    expected = np.array([shares(owner) for owner in OWNERS])
    assert_allclose(model.conditional(TEST), expected)
    monkeypatch.setattr(base, "CHUNK_NUMBERS", 1)  # the smallest blocks: 64 cells
    rows, entities = np.tile(np.arange(9), 10), np.arange(90) % 6
    blocks = [block for _, block in model.log_means(TEST, rows, entities)]
    assert len(blocks) == 2
    assert_allclose(np.exp(np.concatenate(blocks)), expected[rows])


def test_score_is_the_mean_log_share_per_unit() -> None:
    model = PersonalPopularity(kappa=KAPPA).fit(TRAIN)
    total = units = 0.0
    for owner, row in zip(OWNERS, NEW, strict=True):
        if np.count_nonzero(row) > 1:
            total, units = total + row @ np.log(shares(owner)), units + row.sum()
    assert_allclose(model.score(TEST), total / units)
    judged = leave_one_out(model, TEST).normalized_log_likelihood().value
    assert_allclose(judged, total / units)


def test_unknown_users_get_popularity() -> None:
    strangers = efemb.Dataset(NEW, users=["someone"] * 9)
    personal, popular = PersonalPopularity().fit(TRAIN), Popularity("poisson").fit(TRAIN)
    assert_allclose(personal.score(strangers), popular.score(strangers))


def test_users_may_be_numbers_and_items_unseen() -> None:
    codes = {"ann": 1, "bob": 2, "cat": 3, "eve": 4, "mia": 5}
    unseen = np.where(np.arange(6) == 2, 0.0, X)
    data = efemb.Dataset(unseen, users=[codes[user] for user in USERS])
    model = PersonalPopularity(kappa=KAPPA).fit(data)
    assert np.isfinite(model.score(efemb.Dataset(NEW + 1, users=[codes[o] for o in OWNERS])))
    assert_allclose(model.popularity_[2] * (unseen.sum() + 0.5), 0.5)
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("data", [X, efemb.Dataset(X)], ids=["array", "Dataset"])
def test_data_without_users_are_refused(data: Any) -> None:
    with pytest.raises(efemb.DataError, match=r"needs the user of every row.*read_baskets"):
        PersonalPopularity().fit(data)
    model = PersonalPopularity().fit(TRAIN)
    for ask in (model.score, model.conditional):
        with pytest.raises(efemb.DataError, match="needs the user of every row"):
            ask(data)


def test_missing_owners_have_no_history() -> None:
    """Rows of nobody are not rows of one user; they count for popularity only."""
    data = efemb.Dataset([[3, 0], [0, 2], [0, 1]], rows={"house": ["a", None, None]})
    model = PersonalPopularity("house", kappa=2.0).fit(data)
    assert model.users_ == {"a": 0}
    assert model.knows(data).tolist() == [True, False, False]
    assert_allclose(model.conditional(data)[1], [0.5, 0.5])
    assert_allclose(model.conditional(data)[0], [(3 + 1) / 5, 1 / 5])
