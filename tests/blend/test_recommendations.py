"""What a blend recommends and how it explains that, against the shares of single cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import efemb
from efemb import Blend, Dataset, PoissonEmbedding
from efemb.baselines import EASE, PersonalPopularity, Popularity
from efemb.errors import DataError, InputTypeError, ParameterError

pytestmark = pytest.mark.slow  # fits of several models

LABELS = ["beer", "bread", "butter", "cheese", "chips", "coffee", "eggs", "milk", "salt", "tea"]


def trips() -> tuple[Dataset, Dataset]:
    made = efemb.simulation.simulate(
        "p-emb", n_rows=500, n_entities=10, n_components=2, seed=1
    ).data
    users = np.array(["ann", "bob", "cid", "dee"])[np.arange(500) % 4]
    return Dataset(made.values, entities=LABELS, users=users).split(test=0.1, seed=0)


@pytest.fixture(scope="module", params=["mixture", "log-linear"])
def blend(request: pytest.FixtureRequest) -> Blend:
    models = {"vectors": PoissonEmbedding(2), "pairs": EASE(penalty=5), "popularity": Popularity()}
    return Blend(models, how=request.param).fit(trips()[0])


def shares_given(blend: Blend, codes: list[int], target: int | None = None) -> Any:
    """Shares of all items given a basket, by the log means of a cell that is not in it."""
    row = np.zeros(10)
    row[codes] = 1
    asked = next(j for j in range(10) if j not in codes) if target is None else target
    ((_, logs),) = blend.log_means(csr_array(row[None]), [0], [asked])
    return np.exp(logs[0]) / np.exp(logs[0]).sum()


def test_a_basket_is_completed_by_the_most_probable_other_items(blend: Blend) -> None:
    table = blend.complete(["beer", "milk"], n=3)
    shares = shares_given(blend, [0, 7])
    shares[[0, 7]] = 0
    shares /= shares.sum()
    best = np.argsort(-shares)[:3]
    assert table["label"].tolist() == [LABELS[j] for j in best]
    assert_allclose(table["probability"], shares[best], rtol=1e-6)


def test_all_items_but_those_of_the_basket_are_listed(blend: Blend) -> None:
    table = blend.complete({"beer": 2, "tea": 1}, n=100)
    assert sorted(table["label"]) == LABELS[1:-1]
    assert_allclose(table["probability"].sum(), 1)


def test_an_empty_basket_has_completions_and_a_full_one_has_none(blend: Blend) -> None:
    assert len(blend.complete([], n=4)) == 4
    assert len(blend.complete(LABELS)) == 0


def test_labels_are_chosen_as_in_every_query(blend: Blend) -> None:
    whole = blend.complete(["beer"], n=100)
    table = blend.complete(["beer", "wine"], n=100, unknown="skip", where="b", exclude="butter")
    assert table["label"].tolist() == ["bread"]
    assert_allclose(
        table["probability"][0], whole["probability"][list(whole["label"]).index("bread")]
    )
    assert blend.complete("bee", n=2, match="prefix") == blend.complete(["beer"], n=2)


def test_rows_get_their_most_probable_entities(blend: Blend) -> None:
    test = trips()[1][:6]
    table = blend.recommend(test, n=2)
    assert table.columns == ["row", "label", "rank", "score"]
    assert table["row"].tolist() == [row for row in range(6) for _ in range(2)]
    assert table["rank"].tolist() == [1, 2] * 6
    for row in range(6):
        held = np.flatnonzero(test.values.toarray()[row])
        basket = {LABELS[j]: float(test.values.toarray()[row, j]) for j in held}
        single = blend.complete(basket, n=2)
        mine = slice(2 * row, 2 * row + 2)
        assert table["label"][mine].tolist() == single["label"].tolist()
        assert_allclose(table["score"][mine], single["probability"], rtol=1e-6)


def test_rows_may_get_what_they_hold(blend: Blend) -> None:
    table = blend.recommend(csr_array(np.eye(10)[:2]), n=10, exclude_seen=False)
    shares = shares_given(blend, [0])
    assert table["label"][:10].tolist() == [LABELS[j] for j in np.argsort(-shares)]
    assert_allclose(table["score"][:10], np.sort(shares)[::-1], rtol=1e-6)


def test_rows_keep_their_labels(blend: Blend) -> None:
    data = Dataset(np.eye(10)[:2], row_labels=["Monday", "Friday"])
    assert blend.recommend(data, n=1)["row"].tolist() == ["Monday", "Friday"]


def test_an_explanation_adds_up_to_the_probability(blend: Blend) -> None:
    shares = shares_given(blend, [0, 7], target=3)
    table = blend.explain(["beer", "milk"], "cheese")
    if blend.how_ == "mixture":
        assert table["model"].tolist() == ["vectors", "pairs", "popularity"]
        assert_allclose(table["weight"] @ table["probability"], shares[3], rtol=1e-6)
        assert_allclose(table["responsibility"].sum(), 1)
    else:
        assert table["model"].tolist() == ["vectors", "pairs", "popularity", "(normalizer)"]
        assert_allclose(np.exp(table["contribution"].sum()), shares[3], rtol=1e-6)
    assert table == blend.explain(["beer", "milk", "cheese"], "cheese")


def test_models_that_know_their_users_are_told_the_user() -> None:
    train, test = trips()
    blend = Blend({"history": PersonalPopularity(kappa=5), "popularity": Popularity()}).fit(train)
    by_user = [blend.complete(["beer"], user=user) for user in ("ann", "bob")]
    assert by_user[0] != by_user[1]
    assert blend.explain(["beer"], "tea", user="ann") != blend.explain(["beer"], "tea", user="bob")
    single = blend.complete(["beer"], n=3, user="ann")
    row = Dataset(np.eye(10)[:1], users=["ann"])
    assert blend.recommend(row, n=3)["label"].tolist() == single["label"].tolist()
    with pytest.raises(DataError, match="needs the user of every row"):
        blend.complete(["beer"])
    assert -3 < blend.score(test) < 0


@pytest.mark.parametrize(
    ("question", "error", "match"),
    [
        (lambda blend: blend.complete(["wine"]), DataError, "unknown label 'wine'"),
        (lambda blend: blend.complete(["wine"], unknown="skip"), DataError, "none of the items"),
        (lambda blend: blend.complete({"beer": "two"}), InputTypeError, "must be a number"),
        (lambda blend: blend.complete({"beer": np.inf}), DataError, "finite number"),
        (lambda blend: blend.complete({"beer": -1}), DataError, "-1"),
        (lambda blend: blend.complete(["beer"], n=0), ParameterError, ">= 1"),
        (lambda blend: blend.explain(["beer"], "wine"), DataError, "unknown label 'wine'"),
        (lambda blend: blend.recommend(np.eye(9)), DataError, "9"),
        (lambda blend: blend.recommend(np.eye(10), n="all"), InputTypeError, "integer"),
    ],
)
def test_bad_questions(question: Any, error: type[Exception], match: str, blend: Blend) -> None:
    with pytest.raises(error, match=match):
        question(blend)


@pytest.mark.parametrize("name", ["complete", "explain", "recommend", "save"])
def test_questions_need_a_fit(name: str) -> None:
    arguments = {"explain": (["beer"], "milk"), "recommend": (np.eye(2),)}.get(name, (["beer"],))
    with pytest.raises(Exception, match="not fitted"):
        getattr(Blend({"a": Popularity()}), name)(*arguments)
