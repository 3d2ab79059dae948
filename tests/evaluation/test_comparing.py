"""compare and score_grid: paired differences, bootstrap over rows, the winner."""

from __future__ import annotations

import math
import os
import signal
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.baselines import Popularity
from efemb.errors import DataError
from efemb.evaluation import (
    Predictions,
    compare,
    held_out_entries,
    leave_fold_out,
    leave_one_out,
    score_grid,
)
from estimators.samples import baskets, neurons
from evaluation.plain import Table, embedding

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
Array = Any
X = baskets(40, 6)
QUICK: dict[str, Any] = {"max_iter": 5, "random_state": 0}
MODELS = {
    "one": embedding(efemb.PoissonEmbedding(2), 6, seed=0),
    "two": embedding(efemb.PoissonEmbedding(2), 6, seed=1),
    "three": embedding(efemb.CategoricalEmbedding(2), 6, seed=2),
}
REAL = neurons(30, 6)


def gaussian(k: int) -> Any:
    return efemb.GaussianEmbedding(2, context=efemb.Neighbors(k), **QUICK).fit(neurons(60, 6, 1))


def row_of(table: efemb.Table, name: str) -> dict[str, Any]:
    return next(row for row in table if row["model"] == name)


def ratio(values: list[list[float]], weights: list[list[float]], picked: list[int]) -> float:
    """Weighted mean over the entries of some rows, one after the other."""
    total = weight = 0.0
    for t in picked:
        for value, one in zip(values[t], weights[t], strict=True):
            total, weight = total + value * one, weight + one
    return total / weight


@pytest.mark.parametrize("by", ["unit", "entry", "row"])
def test_differences_and_intervals_are_the_loop(by: str) -> None:
    table = compare(MODELS, X, reference="two", by=by, bootstrap=50, seed=4)
    draws = np.random.default_rng(4).integers(len(X), size=(50, len(X)))
    base = leave_one_out(MODELS["two"], X)
    for name in ("one", "three"):
        found = leave_one_out(MODELS[name], X)
        gaps = found.known("log_share") - base.known("log_share")
        values = [gaps[found.row == t].tolist() for t in range(len(X))]
        units = [found.x[found.row == t].tolist() for t in range(len(X))]
        weights = {
            "unit": units,
            "entry": [[1.0] * len(one) for one in units],
            "row": [[1.0 / len(one)] * len(one) for one in units],
        }[by]
        row = row_of(table, name)
        all_rows = list(range(len(X)))
        mean = ratio(values, weights, all_rows)
        assert row["difference"] == pytest.approx(mean)
        drawn = [ratio(values, weights, picked.tolist()) for picked in draws]
        assert (row["low"], row["high"]) == pytest.approx(np.quantile(drawn, [0.025, 0.975]))
        total = sum(map(sum, weights))
        squares = 0.0
        for v, w in zip(values, weights, strict=True):
            squares += sum(b * (a - mean) for a, b in zip(v, w, strict=True)) ** 2
        assert row["difference_error"] == pytest.approx(math.sqrt(squares) / total)


def test_scores_are_those_of_the_predictions_and_the_best_comes_first() -> None:
    table = compare(MODELS, X)
    assert table["score"].tolist() == sorted(table["score"].tolist(), reverse=True)
    for name, model in MODELS.items():
        score = leave_one_out(model, X).normalized_log_likelihood()
        row = row_of(table, name)
        assert (row["score"], row["standard_error"]) == (score.value, score.standard_error)
        assert row["n"] == X.sum()
    best = table[0]
    assert (best["difference"], best["low"], best["high"]) == (0.0, 0.0, 0.0)
    assert best["verdict"] == "best"
    assert table.columns[:2] == ["model", "score"]


def test_the_standard_error_of_a_difference_tends_to_that_of_the_bootstrap() -> None:
    many = baskets(300, 6, seed=2)
    row = row_of(compare(MODELS, many, reference="one", bootstrap=4000), "two")
    assert row["difference_error"] == pytest.approx((row["high"] - row["low"]) / 3.92, rel=0.1)


def test_verdicts() -> None:
    """A model that knows the answer, one that does not, and the same again."""
    informed = Table(lambda row: np.log([1.7, 1.7, 0.7, 0.7, 0.7, 0.7]))
    uniform = Table(lambda row: np.zeros(6))
    models = {"uniform": uniform, "informed": informed, "again": informed}
    table = compare(models, X)
    assert table["model"].tolist() == ["informed", "again", "uniform"]
    assert table["verdict"].tolist() == ["best", "inconclusive", "worse"]
    table = compare(models, X, reference="uniform")
    assert table["verdict"].tolist() == ["best, better", "better", "reference"]
    table = compare(models, X, reference="again")
    assert table["verdict"].tolist() == ["best, inconclusive", "reference", "worse"]


def test_of_squared_errors_the_smallest_wins() -> None:
    models = {"near": gaussian(2), "wide": gaussian(5)}
    table = compare(models, REAL)
    errors = {
        name: np.mean((REAL - model.conditional(REAL)) ** 2) for name, model in models.items()
    }
    assert table["score"].tolist() == pytest.approx(sorted(errors.values()))
    assert table["model"][0] == min(errors, key=lambda name: errors[name])
    assert table["difference"][1] > 0
    by_density = compare(models, REAL, metric="log_likelihood")
    assert by_density["score"].tolist() == sorted(by_density["score"].tolist(), reverse=True)


@pytest.mark.parametrize("metric", ["recall@2", "mean_reciprocal_rank", "log_likelihood"])
def test_any_metric_can_decide(metric: str) -> None:
    table = compare(MODELS, X, metric=metric)
    for name, model in MODELS.items():
        assert row_of(table, name)["score"] == leave_one_out(model, X).score(metric).value


def test_protocols_by_name_and_as_functions() -> None:
    model = gaussian(3)
    folds = compare({"a": model}, REAL, protocol="leave-fold-out", seed=3)
    expected = leave_fold_out(model, REAL, seed=3).mean_squared_error()
    assert (folds["score"][0], folds["standard_error"][0]) == (
        expected.value,
        expected.standard_error,
    )
    held = np.zeros_like(X)
    held[:, 0] = X[:, 0]
    table = compare(MODELS, X - held, protocol=partial(held_out_entries, entries=held))
    direct = held_out_entries(MODELS["one"], X - held, held).normalized_log_likelihood()
    assert row_of(table, "one")["score"] == direct.value


@pytest.mark.parametrize("seed", [None, np.random.default_rng(0)])
def test_all_models_are_judged_on_the_same_folds(seed: Any) -> None:
    model = gaussian(3)
    table = compare({"a": model, "b": model}, REAL, protocol="leave-fold-out", seed=seed)
    assert table["score"][0] == table["score"][1]


def test_predictions_made_before_need_no_data() -> None:
    made = {name: leave_one_out(model, X) for name, model in MODELS.items()}
    assert compare(made) == compare(MODELS, X)
    assert compare({**made, "one": MODELS["one"]}, X) == compare(MODELS, X)


def test_models_of_a_list_are_named_after_their_class() -> None:
    fits = [efemb.PoissonEmbedding(k, **QUICK).fit(X) for k in (1, 2, 2)]
    names = compare(fits, X)["model"].tolist()
    assert sorted(names) == ["PoissonEmbedding(1)", "PoissonEmbedding(2)", "PoissonEmbedding(2) #2"]


def test_popularity_is_printed_beside_the_models() -> None:
    train = baskets(80, 6, seed=5)
    table = compare({"one": MODELS["one"]}, X, train=train)
    assert sorted(table["model"].tolist()) == ["one", "popularity"]
    share = np.log(train.sum(axis=0) / train.sum())
    expected = (X @ share).sum() / X.sum()
    assert row_of(table, "popularity")["score"] == pytest.approx(expected, abs=1e-6)
    table = compare({"a": gaussian(2)}, REAL, train=neurons(60, 6, 1))
    expected = np.mean((REAL - neurons(60, 6, 1).mean(axis=0)) ** 2)
    assert row_of(table, "popularity")["score"] == pytest.approx(expected, abs=1e-9)


def test_an_impossible_entry_scores_minus_infinity_and_loses() -> None:
    never = Table(lambda row: np.where(np.arange(6) == 0, -np.inf, 0.0))
    found = leave_one_out(never, X)
    assert found.normalized_log_likelihood().value == -np.inf
    table = compare({"never": never, "one": MODELS["one"]}, X)
    assert table["model"].tolist() == ["one", "never"]
    assert table["verdict"].tolist() == ["best", "worse"]


def test_one_row_tells_nothing_apart() -> None:
    table = compare({name: MODELS[name] for name in ("one", "two")}, X[:1])
    assert table["verdict"].tolist() == ["best", "inconclusive"]
    assert np.isnan(table["low"]).all()


def test_the_table_prints() -> None:
    text = repr(compare(MODELS, X))
    assert text.splitlines()[0].split()[:3] == ["model", "score", "standard_error"]
    assert "best" in text


def test_bootstrap_draws_do_not_depend_on_the_order_of_models() -> None:
    turned = dict(reversed(MODELS.items()))
    a, b = compare(MODELS, X, seed=1), compare(turned, X, seed=1)
    assert_allclose(a["low"], b["low"])
    assert a["model"].tolist() == b["model"].tolist()


def test_empty_contexts_are_counted_in_the_table() -> None:
    lonely = np.vstack([X, np.eye(6)])
    assert compare(MODELS, lonely)["skipped"].tolist() == [6, 6, 6]


def test_summary_tells_all_scores() -> None:
    table = leave_one_out(MODELS["one"], np.vstack([X, np.eye(6)])).summary()
    assert table["metric"].tolist() == [
        "normalized_log_likelihood",
        "normalized_log_likelihood",
        "absent_log_likelihood",
        "log_likelihood",
        "recall@10",
        "ndcg@10",
        "mrr@100",
        "mean_reciprocal_rank",
        "skipped",
    ]
    assert table["n"][-1] == 6
    real = leave_one_out(gaussian(2), REAL).summary()
    assert real["by"].tolist() == ["entry", "entry", "row", "entry"]
    error = REAL - gaussian(2).conditional(REAL)
    explained = 1.0 - (error**2).sum() / ((REAL - REAL.mean(axis=0)) ** 2).sum()
    assert real["metric"][-1] == "r2"
    assert_allclose(real["score"][-1], explained, rtol=1e-5)
    assert "skipped" in repr(leave_one_out(MODELS["one"], np.vstack([X, np.eye(6)])))


# -- score_grid ----------------------------------------------------------------------------------


def test_a_grid_fits_and_scores_every_setting() -> None:
    train = baskets(60, 6, seed=7)
    settings = {"n_components": [1, 3], "prior": [efemb.Normal(1.0), efemb.Normal(5.0)]}
    model = efemb.PoissonEmbedding(**QUICK)
    table = score_grid({"p-emb": model}, settings, train, X)
    assert table["model"].tolist() == ["p-emb"] * 4
    assert table["n_components"].tolist() == [1, 1, 3, 3]
    for row in table:
        options = {name: row[name] for name in settings}
        again = efemb.PoissonEmbedding(**options, **QUICK).fit(train)
        expected = leave_one_out(again, X).normalized_log_likelihood()
        assert row["score"] == pytest.approx(expected.value)
        assert row["difference"] == pytest.approx(row["score"] - max(table["score"]))
        assert row["seconds"] > 0
    assert table["verdict"][int(np.argmax(table["score"]))] == "best"
    assert not hasattr(model, "parameters_"), "copies are fitted"


def test_a_grid_of_several_models_passes_validation_on() -> None:
    seen = []

    class Recorder(efemb.PoissonEmbedding):
        def fit(self, X: Any, y: Any = None, *, validation: Any = None, **rest: Any) -> Any:
            seen.append(validation)
            return super().fit(X, y, validation=validation, **rest)

    train, held = baskets(60, 6, seed=7), baskets(20, 6, seed=8)
    models = {"a": Recorder(**QUICK), "b": efemb.CategoricalEmbedding(**QUICK)}
    table = score_grid(models, {"n_components": [1, 2]}, train, X, validation=held)
    assert table["model"].tolist() == ["a", "a", "b", "b"]
    assert len(seen) == 2
    assert all(one is held for one in seen)


def test_a_fit_that_diverges_is_told_and_not_scored() -> None:
    class Fragile(efemb.PoissonEmbedding):
        def fit(self, *args: Any, **options: Any) -> Any:
            if self.n_components > 1:
                raise efemb.DivergenceError("left the finite numbers")
            return super().fit(*args, **options)

    table = score_grid({"a": Fragile(**QUICK)}, {"n_components": [1, 2]}, X, X)
    assert table["verdict"].tolist() == ["best", "diverged"]
    assert np.isnan(table["score"][1])
    with pytest.raises(efemb.DivergenceError, match="every fit"):
        score_grid({"a": Fragile(**QUICK)}, {"n_components": [2, 3]}, X, X)


def test_a_grid_over_real_data_by_folds() -> None:
    model = efemb.GaussianEmbedding(2, **QUICK)
    settings = {"context": [efemb.Neighbors(2), efemb.Neighbors(4)]}
    table = score_grid([model], settings, neurons(60, 6, 1), REAL, protocol="leave-fold-out")
    for row in table:
        again = efemb.GaussianEmbedding(2, context=row["context"], **QUICK).fit(neurons(60, 6, 1))
        expected = leave_fold_out(again, REAL).mean_squared_error().value
        assert row["score"] == pytest.approx(expected)
    assert table["verdict"][int(np.argmin(table["score"]))] == "best"


def test_predictions_by_hand_can_be_compared() -> None:
    row, entity = np.array([0, 0, 1]), np.array([0, 1, 0])
    made = {
        name: Predictions(row, entity, np.ones(3), mean=np.array(means))
        for name, means in {"a": [1.0, 1, 1], "b": [0.0, 1, 3]}.items()
    }
    table = compare(made)
    assert table["score"].tolist() == pytest.approx([0.0, 5 / 3])


@pytest.mark.usefixtures("ctrl_c_works")
def test_ctrl_c_ends_a_grid() -> None:
    def press(progress: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    model = efemb.PoissonEmbedding(2, random_state=0, callbacks=[press])
    with pytest.raises(KeyboardInterrupt):
        score_grid({"p-emb": model}, {"n_components": [1, 2]}, X, X)


def test_popularity_of_quantities_between_counts() -> None:
    model = efemb.PoissonEmbedding(2, allow_real=True, **QUICK).fit(X / 2)
    found = {row["model"]: row["score"] for row in compare([model], X / 2, train=X / 2)}
    share = np.log(X.sum(axis=0) / X.sum())
    lonely = (X > 0).sum(axis=1) < 2
    kept = X[~lonely]
    assert found["popularity"] == pytest.approx(float((kept * share).sum() / kept.sum()))


def test_popularity_is_matched_by_labels_where_columns_are_numbered() -> None:
    X = np.random.default_rng(0).poisson([0.2, 1, 5], (200, 3)).astype(float)
    train = efemb.Dataset(X[:, [2, 0, 1]], entities=[2, 0, 1])
    model = efemb.baselines.Popularity("poisson").fit(train)
    told = compare({"m": model}, pd.DataFrame(X), train=train)
    assert told["score"][0] == pytest.approx(told["score"][1])


def test_numbered_columns_of_which_a_model_knows_some_are_refused() -> None:
    X = np.random.default_rng(0).poisson([0.2, 1, 5], (200, 3)).astype(float)
    model = efemb.baselines.Popularity("poisson").fit(efemb.Dataset(X, entities=[1, 2, 3]))
    with pytest.raises(efemb.DataError, match="not those of the model"):
        leave_one_out(model, pd.DataFrame(X))


def test_popularity_is_of_the_models_family() -> None:
    """Training trips of one each say nothing of the tests."""
    ones = (X > 0).astype(float)
    assert X.max() > 1
    model = efemb.PoissonEmbedding(2, **QUICK).fit(ones)
    assert sorted(compare([model], X, train=ones)["model"].tolist())[-1] == "popularity"


def test_several_metrics_are_compared_with_paired_errors() -> None:
    trips = efemb.simulation.simulate("p-emb", n_rows=300, n_entities=12, n_components=2, seed=0)
    train, test = trips.data.split(test=0.3, seed=0)
    models = {"one": efemb.PoissonEmbedding(1, random_state=0).fit(train)}
    both = compare(models, test, train=train)
    metrics = ["recall@10", "ndcg@10", "mrr@100"]
    table = compare(models, test, train=train, metric=metrics)
    assert table["metric"].tolist() == [name for name in metrics for _ in range(2)]
    judged = {"one": leave_one_out(models["one"], test)}
    judged["popularity"] = leave_one_out(Popularity().fit(train), test)
    for line in table:
        rank = judged[line["model"]].rank
        gain = {"recall@10": 1.0, "ndcg@10": 1 / np.log2(1 + rank), "mrr@100": 1 / rank}
        limit = int(line["metric"].partition("@")[2])
        values = np.where(rank <= limit, gain[line["metric"]], 0.0)
        assert line["score"] == pytest.approx(values.mean())
        same = [row[line["metric"]] for row in both if row["model"] == line["model"]]
        assert same == [pytest.approx(values.mean())]
    # The error of a difference, clustered by row, from its definition.
    worst = next(line for line in table if line["difference"] != 0 and line["metric"] == "mrr@100")
    other = next(name for name in judged if name != worst["model"])
    gap = 1 / judged[worst["model"]].rank - 1 / judged[other].rank
    rows = judged["one"].row
    sums = [(gap[rows == row] - gap.mean()).sum() for row in np.unique(rows)]
    assert worst["difference_error"] == pytest.approx(np.sqrt(np.square(sums).sum()) / len(gap))


def test_unknown_entities_are_skipped_on_request() -> None:
    trips = efemb.simulation.simulate("p-emb", n_rows=200, n_entities=8, n_components=2, seed=0)
    labels = [f"item {n}" for n in range(8)]
    data = efemb.Dataset(trips.data.values, entities=labels)
    train, test = data.split(test=0.3, seed=0)
    model = efemb.PoissonEmbedding(1, random_state=0).fit(train)
    dense = test.values.toarray()
    strange = efemb.Dataset(np.c_[dense, np.ones(len(dense))], entities=[*labels, "new"])
    with pytest.raises(DataError, match="unknown='skip'"):
        compare({"one": model}, strange)
    assert compare({"one": model}, strange, train=train, unknown="skip") == compare(
        {"one": model}, test, train=train
    )


def test_predictions_as_a_frame() -> None:
    judged = leave_one_out(MODELS["one"], X)
    frame = judged.to_pandas()
    arrays = ["row", "entity", "x", "log_share", "log_density", "rank", "absent_log_share"]
    assert frame.columns.tolist() == arrays
    assert_allclose(frame["rank"], judged.rank)


def test_a_model_no_better_than_popularity_is_called_so() -> None:
    noise = efemb.Dataset(np.random.default_rng(0).poisson(0.5, (300, 8)).astype(float))
    train, test = noise.split(test=0.3, seed=0)
    worse = {"one": embedding(efemb.PoissonEmbedding(2), 8, seed=0)}
    assert "no model is better than popularity" in compare(worse, test, train=train).note
    assert compare(worse, test).note == ""
