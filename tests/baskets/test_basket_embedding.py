"""BasketEmbedding: predictions at any size, questions, files and bad input."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import efemb
from efemb import BasketEmbedding, Dataset, plots
from efemb.baselines import EASE, PersonalPopularity, Popularity
from efemb.baskets import fitting, parts
from efemb.baskets.experts import SMOOTHED
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.evaluation import leave_one_out
from efemb.model.score import log_sums

pytestmark = pytest.mark.slow  # fits of mixtures

LABELS = [f"item {i}" for i in range(40)]


def simulate(n_rows: int, seed: int = 0) -> Any:
    return efemb.simulation.simulate_baskets(
        n_rows=n_rows, n_entities=40, n_lines=7 * n_rows, n_topics=4, seed=seed
    ).values


@pytest.fixture(scope="module")
def trips() -> Dataset:
    """Trips whose customers have favorites."""
    X = simulate(900).toarray()
    users = np.arange(900) % 60
    rng = np.random.default_rng(1)
    for t, user in enumerate(users):
        if rng.random() < 0.6:
            X[t, user % 40] += 1
    return Dataset(csr_array(X), entities=LABELS, users=users)


@pytest.fixture(scope="module")
def split(trips: Dataset) -> tuple[Dataset, Dataset]:
    return trips.take_rows(np.arange(900) < 700), trips.take_rows(np.arange(900) >= 700)


@pytest.fixture(scope="module")
def model(split: tuple[Dataset, Dataset]) -> BasketEmbedding:
    return BasketEmbedding(6, user=None, random_state=0).fit(split[0])


@pytest.fixture(scope="module")
def personal(split: tuple[Dataset, Dataset]) -> BasketEmbedding:
    return BasketEmbedding(6, random_state=0).fit(split[0])


def test_it_is_better_than_popularity_and_its_parts(
    model: BasketEmbedding, split: tuple[Dataset, Dataset]
) -> None:
    train, test = split
    score = model.score(test)
    assert score > Popularity("poisson").fit(train).score(test)
    assert score > EASE(100.0).fit(train).score(test)
    assert score > model.fitted().score(test) - 0.02


def test_history_helps_and_can_be_turned_off(
    model: BasketEmbedding, personal: BasketEmbedding, split: tuple[Dataset, Dataset]
) -> None:
    train, test = split
    assert personal.report_["history"] == "user"
    assert personal.report_["absent_items"].startswith("one product of the parts for each size")
    assert model.report_["history"] is None
    assert personal.score(test) > model.score(test) + 0.01
    assert personal.score(test) > PersonalPopularity(kappa=30.0).fit(train).score(test)
    strangers = test._replace(test.values, users=np.full(test.n_rows, "nobody"))
    assert personal.score(strangers) > Popularity("poisson").fit(train).score(strangers)
    assert personal.score(strangers) == model.score(strangers)
    mine = personal.complete(["item 1"], user=7)
    assert list(mine["label"]) != list(personal.complete(["item 1"])["label"])


@pytest.mark.parametrize("size", [0, 1, 3])
def test_short_contexts_are_not_below_popularity(
    model: BasketEmbedding, split: tuple[Dataset, Dataset], size: int
) -> None:
    train, test = split
    rng, rows, entity = np.random.default_rng(0), [], []
    for row in test.values.toarray():
        items = rng.permutation(np.flatnonzero(row))
        if len(items) > size:
            rows.append(np.isin(np.arange(40), items[1 : size + 1]).astype(float))
            entity.append(items[0])
    contexts, asked = np.array(rows), np.array(entity)
    logs = np.empty(contexts.shape)
    for cells, block in model.log_means(contexts, np.arange(len(asked)), asked):
        logs[cells] = block - log_sums(block)[:, None]
    lines = np.asarray((train.values != 0).sum(axis=0)).ravel()
    popularity = np.log(lines / lines.sum())[asked].mean()
    assert logs[np.arange(len(asked)), asked].mean() > popularity - 0.01


def test_shares_leave_the_entity_out_of_its_context(
    model: BasketEmbedding, split: tuple[Dataset, Dataset]
) -> None:
    test = split[1]
    X = test.values.toarray()
    row, entity = 3, int(np.flatnonzero(X[3])[0])
    without = X[[3]].copy()
    without[0, entity] = 0.0
    ((_, given),) = model.log_means(X, np.array([row]), np.array([entity]))
    ((_, alone),) = model.log_means(without, np.array([0]), np.array([entity]))
    assert_allclose(given, alone, rtol=1e-4, atol=1e-4)
    means = model.conditional(X[:5])
    assert_allclose(means.sum(axis=1), 1.0, rtol=1e-9)


def test_complete_and_recommend_exclude_the_basket(model: BasketEmbedding) -> None:
    whole = model.complete(["item 1", "item 2"], n=100)
    assert len(whole) == 38
    assert not {"item 1", "item 2"} & set(whole["label"])
    assert float(np.sum(whole["probability"])) == pytest.approx(1.0)
    assert len(model.complete([], n=3)) == 3
    assert len(model.complete(["no such item", "item 3"], n=3, unknown="skip")) == 3
    with pytest.raises(DataError, match="known"):
        model.complete(["no such item"], unknown="skip")
    X = np.zeros((2, 40))
    X[0, 1:3] = 1.0
    ranked = model.recommend(X, n=5)
    assert list(ranked["label"][:5]) == list(whole["label"][:5])
    assert_allclose(ranked["score"][:5], whole["probability"][:5], rtol=1e-5)


def test_log_means_of_what_is_not_in_the_basket_are_those_of_complete(
    model: BasketEmbedding,
) -> None:
    whole = model.complete(["item 1", "item 2"], n=100)
    X = np.zeros((1, 40))
    X[0, 1:3] = 1.0
    ((_, logs),) = model.absent_log_means(X, np.array([0]), np.array([5]))
    assert np.isneginf(logs[0, 1:3]).all()
    places = [LABELS.index(label) for label in whole["label"]]
    assert_allclose(np.exp(logs[0, places]), whole["probability"], rtol=1e-5)
    X[0, 5] = 1.0  # the queried item leaves its row
    ((_, left),) = model.absent_log_means(X, np.array([0]), np.array([5]))
    assert_allclose(left, logs, rtol=1e-4)
    with pytest.raises(ParameterError, match="entities"):
        model.absent_log_means(X, np.array([0]), np.array([40]))


def test_a_context_larger_than_any_seen(model: BasketEmbedding) -> None:
    X = np.ones((1, 40))
    assert np.isfinite(model.conditional(X)).all()
    assert len(model.complete(LABELS[:39])) == 1
    assert len(model.complete(LABELS)) == 0


def test_explanations_add_up(model: BasketEmbedding) -> None:
    parts = model.explain(["item 1", "item 2"], "item 5")
    assert float(np.sum(parts["responsibility"])) == pytest.approx(1.0)
    total = float(np.sum(np.array(parts["weight"]) * np.array(parts["probability"])))
    completed = model.complete(["item 1", "item 2"], n=40)
    listed = dict(zip(completed["label"], completed["probability"], strict=True))
    assert total == pytest.approx(listed["item 5"], rel=1e-5)
    pairs = model.explain(["item 1", "item 2"], "item 5", by="item")
    assert sorted(pairs["item"]) == ["item 1", "item 2"]
    weights = {label: model.pairs_[LABELS.index(label), 5] for label in pairs["item"]}
    assert_allclose(pairs["pair"], list(weights.values()))
    with pytest.raises(ParameterError, match="expert"):
        model.explain(["item 1"], "item 5", by="experts")


def test_questions_about_vectors(model: BasketEmbedding, trips: Dataset) -> None:
    assert model.rho_.shape == model.alpha_.shape == (40, 6)
    assert list(model.similar("item 1", n=3)["label"]) == list(
        model.fitted().similar("item 1", n=3)["label"]
    )
    assert len(model.complements("item 1", n=3, data=trips)) == 3
    assert model.transform(trips).shape == (900, 6)


def test_reliability_is_that_of_the_sample(model: BasketEmbedding) -> None:
    table = model.reliability_
    predicted, observed, n = (np.array(table[name]) for name in ("predicted", "observed", "n"))
    error = np.sqrt(predicted * (1 - predicted) / n)
    large = n * predicted > 20
    assert (np.abs(predicted - observed)[large] < 5 * error[large]).all()


@pytest.mark.slow
def test_zeros_of_very_many_cells_are_drawn(
    split: tuple[Dataset, Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    train, test = split
    monkeypatch.setattr(parts, "MOST_CELLS", train.n_rows * 40 // 2)
    monkeypatch.setattr(parts, "DRAWN_ZEROS", 30)
    monkeypatch.setattr(fitting, "DRAWN_ZEROS", 30)
    model = BasketEmbedding(6, user=None, random_state=0).fit(train)
    assert model.report_["zeros"] == "30 per minibatch"
    assert model.score(test) > Popularity("poisson").fit(train).score(test)


def test_comparisons_have_the_probabilities_of_recommendations(
    model: BasketEmbedding, split: tuple[Dataset, Dataset]
) -> None:
    test = split[1].take_rows(np.arange(40))
    predictions = leave_one_out(model, test)
    first = int(np.flatnonzero(np.bincount(predictions.row) >= 3)[0])
    cell = int(np.flatnonzero(predictions.row == first)[0])
    others = predictions.entity[
        (predictions.row == first) & (predictions.entity != predictions.entity[cell])
    ]
    answer = model.complete([LABELS[i] for i in others], n=40)
    asked = LABELS[predictions.entity[cell]]
    probability = dict(zip(answer["label"], answer["probability"], strict=True))[asked]
    assert predictions.absent_log_share is not None
    assert predictions.absent_log_share[cell] == pytest.approx(np.log(probability), abs=1e-4)
    table = efemb.compare({"baskets": model}, test)
    own = predictions.score("absent_log_likelihood").value
    assert table["absent_log_likelihood"].tolist() == pytest.approx([own])


def test_the_report_has_the_reliability_curve(
    model: BasketEmbedding, split: tuple[Dataset, Dataset]
) -> None:
    report = model.report(split[1])
    assert report["convergence"].level == "ok"
    assert report["calibration"].level == "ok"
    assert report["calibration"].numbers["observed"] == list(model.reliability_["observed"])
    present = split[1]._replace(split[1].values.sign())
    assert report["popularity"].numbers["score"] == pytest.approx(model.score(present))
    lines = plots.reliability(model).lines
    known = np.asarray(model.reliability_["observed"]) > 0
    assert_array_equal(lines[1].get_xdata(), np.asarray(model.reliability_["predicted"])[known])
    assert_array_equal(lines[1].get_ydata(), np.asarray(model.reliability_["observed"])[known])


@pytest.mark.parametrize("which", ["model", "personal"])
def test_files_keep_every_answer(which: str, request: Any, tmp_path: Path, trips: Dataset) -> None:
    saved = request.getfixturevalue(which)
    saved.save(tmp_path / "model")
    loaded = efemb.load(tmp_path / "model")
    assert isinstance(loaded, BasketEmbedding)
    assert loaded.report_ == saved.report_
    assert loaded.get_params() == saved.get_params()
    few = trips.take_rows(np.arange(900) < 20)
    assert loaded.score(few) == saved.score(few)
    user = {"user": 3} if which == "personal" else {}
    one, two = (each.complete(["item 1"], **user) for each in (saved, loaded))
    assert_array_equal(one["probability"], two["probability"])
    assert list(loaded.reliability_["n"]) == list(saved.reliability_["n"])
    path = tmp_path / "model" / "manifest.json"
    path.write_text(path.read_text().replace('"product', '"prodect', 1))
    with pytest.raises(DataError):
        efemb.load(tmp_path / "model")


def test_sparse_pairs_are_a_part_like_dense_ones(split: tuple[Dataset, Dataset]) -> None:
    train, test = split
    model = BasketEmbedding(4, n_neighbors=10, user=None, random_state=0).fit(train)
    assert model.report_["pairs"] == "10 per item"
    assert model.pairs_.nnz <= 400
    assert model.score(test) > Popularity("poisson").fit(train).score(test)
    assert len(model.explain(["item 1", "item 2"], "item 3", by="item")) == 2


def test_the_same_bits_for_any_number_of_threads(split: tuple[Dataset, Dataset]) -> None:
    one, two = (
        BasketEmbedding(3, n_jobs=n, random_state=1, max_iter=5).fit(split[0]) for n in (1, 2)
    )
    assert np.array_equal(one.rho_, two.rho_)
    assert np.array_equal(one.mixture_.of_absent, two.mixture_.of_absent)


def test_validation_rows_are_used_as_they_are(split: tuple[Dataset, Dataset]) -> None:
    train, test = split
    model = BasketEmbedding(3, random_state=0).fit(train, validation=test)
    assert model.report_["held_out"] == {"rows": 200, "folds": 1}
    entries = csr_array(
        ([1.0], ([0], [int(np.flatnonzero(train.values[[0]].toarray()[0] == 0)[0])])),
        shape=train.shape,
    )
    with pytest.raises(DataError, match="other rows"):
        BasketEmbedding(3).fit(train, validation=entries)


def test_a_file_of_transactions(tmp_path: Path) -> None:
    rng, lines = np.random.default_rng(0), ["basket,item,quantity"]
    for basket in range(200):
        for item in rng.permutation(12)[: rng.integers(2, 5)]:
            lines.append(f"b{basket},product {item},{rng.integers(1, 4)}")
    path = tmp_path / "trips.csv"
    path.write_text("\n".join(lines) + "\n")
    model = BasketEmbedding(2, random_state=0).fit(path)
    assert len(model.vocabulary_) == 12
    assert model.report_["family_chosen_by"].startswith("held-out score")
    with pytest.raises(DataError, match="there is no file"):
        BasketEmbedding(2).fit(tmp_path / "missing.csv")


def test_few_rows_are_not_below_popularity() -> None:
    for seed in range(3):
        X = simulate(450, seed)
        train, test = X[:50], X[50:]
        model = BasketEmbedding(20, random_state=0).fit(train)
        smoothed = np.asarray(train.sum(axis=0)).ravel() + 0.5
        x = test.toarray()[np.diff(test.indptr) >= 2]
        popularity = float((x * np.log(smoothed / smoothed.sum())).sum() / x.sum())
        assert model.score(test) > popularity - 0.01


@pytest.mark.parametrize("case", ["one item", "equal", "large count", "one-item rows"])
def test_hostile_rows(case: str) -> None:
    X = simulate(300).toarray()
    if case == "one item":
        with pytest.raises(DataError, match="two or more items"):
            BasketEmbedding(2).fit(np.eye(30))
        return
    if case == "equal":
        X = np.tile(X[np.argmax((X > 0).sum(axis=1))], (100, 1))
    elif case == "large count":
        X[0, np.flatnonzero(X[0])[0]] = 1e5
    else:
        X[:150] = np.eye(40)[np.arange(150) % 40]
    model = BasketEmbedding(3, random_state=0).fit(X)
    assert np.isfinite(model.score(X[X.astype(bool).sum(axis=1) >= 2][:20]))
    assert np.isfinite(model.conditional(X[:20])).all()
    if case == "large count":
        assert model.report_["counts_in_pairs"] == "0/1"
        assert model.report_["entries_above_10"] >= 1
        assert np.abs(model.pairs_).max() < 2


def test_too_many_items_for_a_dense_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    from efemb.model import item_regressions

    monkeypatch.setattr(item_regressions, "MOST_DENSE", 30)
    X = simulate(300)
    model = BasketEmbedding(2, random_state=0, max_iter=3).fit(X)
    assert model.report_["pairs"] == "100 per item"
    monkeypatch.setattr(item_regressions, "available_memory", lambda: 1000)
    with pytest.raises(efemb.MemoryEstimateError, match="n_neighbors=100"):
        BasketEmbedding(2, n_neighbors=None).fit(X)


def test_options_are_checked_and_kept() -> None:
    made = BasketEmbedding(7, penalty=3.0)
    assert clone(made).get_params() == made.get_params()
    for options in (
        {"family": "gaussian"}, {"penalty": -1.0}, {"thinning": 2.0},
        {"validation_fraction": 1.5}, {"n_neighbors": 0}, {"pseudo_count": -2.0},
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=next(iter(options))):
            BasketEmbedding(2, **options).fit(simulate(50))
    with pytest.raises(DataError, match=r"user='household' is not a row column.*columns: none"):
        BasketEmbedding(2, user="household").fit(simulate(50))
    with pytest.raises(InputTypeError, match="user must be the name"):
        BasketEmbedding(2, user=3).fit(simulate(50))  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="validation_fraction"):
        BasketEmbedding(2, validation_fraction="x").fit(simulate(50))  # type: ignore[arg-type]
    with pytest.raises(NotFittedError):
        BasketEmbedding(2).complete(["a"])
    with pytest.raises(NotFittedError):
        BasketEmbedding(2).similar("a")


def test_customers_may_be_any_column_with_gaps(trips: Dataset) -> None:
    few = trips.take_rows(np.arange(900) < 300)
    assert few.users is not None
    houses = np.array([f"house {user}" for user in few.users], dtype=object)
    houses[:40] = None
    data = Dataset(few.values, entities=LABELS, rows={"house": houses})
    model = BasketEmbedding(3, user="house", max_iter=20, random_state=0).fit(data)
    assert model.report_["history"] == "house"
    assert model.parts_.knows(data).tolist() == [False] * 40 + [True] * 260
    of_none = model.complete(["item 1"])
    assert model.complete(["item 1"], user="new") == of_none
    assert model.complete(["item 1"], user="house 5") != of_none
    assert np.isfinite(model.score(data))


def test_customers_who_come_once_are_no_history(trips: Dataset) -> None:
    """Weights of a history cannot be fitted if no held-out row has one."""
    few = Dataset(trips.values[:60], users=np.arange(60))
    model = BasketEmbedding(2, max_iter=2, random_state=0).fit(few)
    assert model.report_["history"] is None
    assert model.report_["held_out_rows_of_known_customers"] == 0
    assert model.report_["new_items"] == "no history of customers is used"
    assert model.personal_ is None


def test_an_interrupted_fit_is_finished_quickly_and_reported(
    trips: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit, limits = parts.fit_vectors, []

    def interrupted_fit(train: Any, held: Any, options: Any, terms: Any = ()) -> Any:
        limits.append(options.max_iter)
        estimator = fit(train, held, options, terms)
        estimator.report_["interrupted"] = len(limits) == 1
        return estimator

    monkeypatch.setattr(parts, "fit_vectors", interrupted_fit)
    few = Dataset(trips.values[:60])
    model = BasketEmbedding(2, family="bernoulli", max_iter=2, random_state=0).fit(few)
    assert model.report_["interrupted"]
    assert limits == [2, 1, 1, 1, 1]


def judge_mixtures(scores: Iterator[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Mixtures score what is asked for, in turn; then as they do."""
    fit = fitting.SizeMixture.fit_and_score

    def fit_and_score(*given: Any) -> Any:
        mixture, found = fit(*given)
        return mixture, {**found, "absent items": next(scores, found["absent items"])}

    monkeypatch.setattr(fitting.SizeMixture, "fit_and_score", fit_and_score)


def test_the_penalty_of_few_items_is_the_best_on_held_out_entries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scores = iter([-3.0, -2.5, -2.1, -2.4, -2.9, -2.0])
    judge_mixtures(scores, monkeypatch)
    X = (simulate(60) != 0).astype(float)
    quick = {"max_iter": 2, "random_state": 0}
    assert BasketEmbedding(2, **quick).fit(X).report_["penalty"] == fitting.PENALTIES[2]
    assert BasketEmbedding(2, penalty=7.0, **quick).fit(X).report_["penalty"] == 7.0
    monkeypatch.setattr(fitting, "FEW_ITEMS", 39)
    assert BasketEmbedding(2, **quick).fit(X).report_["penalty"] == fitting.USUAL_PENALTY


@pytest.mark.parametrize(("gain", "damped"), [(0.02, True), (0.005, False), (-0.1, False)])
def test_pairs_are_of_logarithms_of_counts_where_these_predict_clearly_better(
    gain: float, damped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = iter([-2.0, -2.0 + gain])
    judge_mixtures(scores, monkeypatch)
    X = simulate(60).toarray()
    made = BasketEmbedding(2, penalty=9.0, family="poisson", max_iter=2, random_state=0).fit(X)
    assert made.report_["counts_in_pairs"] == ("log2(1 + count)" if damped else "0/1")
    values = np.log2(1.0 + X) if damped else (X > 0).astype(float)
    square = (values[X > 0] ** 2).mean()
    inverse = np.linalg.inv(values.T @ values + 9.0 * square * np.eye(40))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    assert_allclose(made.pairs_, weights, atol=1e-4)
    rows, entities = np.nonzero(X[:10])
    rest = values[rows]
    rest[np.arange(len(rows)), entities] = 0.0
    shares = np.log(np.maximum(rest @ weights, 0.0) + parts.SMOOTHED_SCORE * values.mean())
    logs = made.parts_.logs(Dataset(X[:10]), rows, entities, personal=False)
    assert_allclose(logs[:, SMOOTHED], shares, atol=1e-3)


def test_large_ratings_tell_more_of_likings(tmp_path: Path) -> None:
    """Everybody has items of both groups, and more of those of one group."""
    rng = np.random.default_rng(0)
    likes = rng.integers(2, size=(300, 1)) == np.arange(40) % 2
    X = rng.binomial(1, np.where(likes, 0.4, 0.2)) * np.where(likes, 5.0, 1.0)
    made = BasketEmbedding(2, family="bernoulli", max_iter=5, random_state=0).fit(X)
    assert made.report_["counts_in_pairs"] == "log2(1 + count)"
    made.save(tmp_path / "model")
    assert_array_equal(efemb.load(tmp_path / "model").conditional(X[:5]), made.conditional(X[:5]))
