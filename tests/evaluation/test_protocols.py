"""Every protocol against the loop that defines it, and against the score of the estimators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse, stats

import efemb
from efemb.evaluation import Predictions, held_out_entries, leave_fold_out, leave_one_out
from estimators.samples import PRESETS, baskets, data_for, neurons
from evaluation.plain import embedding, judged_entries, means_given, neighbor_mean, unit_mean

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
Array = Any
QUICK: dict[str, Any] = {"max_iter": 6, "random_state": 0, "dtype": "float64"}
COUNTS = [p for p in PRESETS if not issubclass(p, efemb.GaussianEmbedding)]
SPECS = {
    "poisson": efemb.PoissonEmbedding(2),
    "paper": efemb.PoissonEmbedding.paper(2),
    "binary-context": efemb.PoissonEmbedding(2, context=efemb.Basket("items", True)),
    "unscaled": efemb.PoissonEmbedding(2, context=efemb.Basket("none")),
    "additive": efemb.AdditivePoissonEmbedding(2),
    "bernoulli": efemb.BernoulliEmbedding(2),
    "categorical": efemb.CategoricalEmbedding(2),
    "negative-binomial": efemb.Embedding(2, family=efemb.NegativeBinomial(2.0)),
}


def sample(name: str, n_entities: int = 7) -> Array:
    """Sparse counts with empty rows and rows of one item; the row context is empty there."""
    X = np.random.default_rng(3).poisson(0.4, (30, n_entities)).astype(float)
    return np.minimum(X, 1.0) if name == "bernoulli" else X


@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", SPECS)
def test_leave_one_out_is_the_loop(name: str, make: Any) -> None:
    model, X = embedding(SPECS[name], 7), sample(name)
    plain, skipped = judged_entries(lambda row: means_given(model, row), X)
    found = leave_one_out(model, make(X))
    rows, entities, x, shares, ranks = (list(column) for column in zip(*plain, strict=True))
    assert found.row.tolist() == rows
    assert found.entity.tolist() == entities
    assert found.x.tolist() == x
    assert_allclose(found.log_share, shares, rtol=1e-9)
    assert_allclose(found.rank, ranks)
    assert found.n_skipped == skipped > 0
    mean, error, n = unit_mean(shares, x)
    score = found.normalized_log_likelihood()
    assert (score.value, score.standard_error, score.n) == (
        pytest.approx(mean, rel=1e-9),
        pytest.approx(error, rel=1e-9),
        n,
    )


@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", SPECS)
def test_held_out_entries_are_the_loop(name: str, make: Any) -> None:
    model, whole = embedding(SPECS[name], 7), sample(name)
    held = np.where(np.random.default_rng(1).random(whole.shape) < 0.3, whole, 0.0)
    X = whole - held
    plain, skipped = judged_entries(lambda row: means_given(model, row), X, held)
    found = held_out_entries(model, make(X), make(held))
    rows, entities, x, shares, ranks = (list(column) for column in zip(*plain, strict=True))
    assert found.row.tolist() == rows
    assert found.entity.tolist() == entities
    assert found.x.tolist() == x
    assert_allclose(found.log_share, shares, rtol=1e-9)
    assert_allclose(found.rank, ranks)
    assert found.n_skipped == skipped > 0


DENSITIES = {
    "poisson": stats.poisson.logpmf,
    "additive": stats.poisson.logpmf,
    "bernoulli": stats.bernoulli.logpmf,
    "negative-binomial": lambda x, mean: stats.nbinom.logpmf(x, 2.0, 2.0 / (2.0 + mean)),
}


@pytest.mark.parametrize("name", DENSITIES)
def test_log_densities_are_those_of_scipy(name: str) -> None:
    model, X = embedding(SPECS[name], 7), sample(name)
    found = leave_one_out(model, X)
    for t, n, x, density in zip(found.row, found.entity, found.x, found.log_density, strict=True):
        context = X[t].copy()
        context[n] = 0
        mean = means_given(model, context)[n]
        assert density == pytest.approx(DENSITIES[name](x, mean), rel=1e-9)


def test_a_categorical_unit_has_the_log_density_of_its_share() -> None:
    found = leave_one_out(embedding(SPECS["categorical"], 7), sample("categorical"))
    assert found.log_share is not None
    assert_allclose(found.log_density, found.x * found.log_share)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("preset", COUNTS)
def test_estimators_score_what_evaluation_scores(preset: Any, dtype: str) -> None:
    model = preset(2, **{**QUICK, "dtype": dtype})
    X = data_for(model)
    X[:10, 2:] = 0.0
    X[:5, 1] = 0.0
    model.fit(X)
    accuracy = 1e-5 if dtype == "float32" else 1e-10
    for judged in (model, model.fitted()):
        found = leave_one_out(judged, X[:30])
        assert found.normalized_log_likelihood().value == pytest.approx(
            judged.score(X[:30]), rel=accuracy
        )


@pytest.mark.parametrize(
    "model",
    [
        efemb.BernoulliEmbedding(2, binarize=True, **QUICK),
        efemb.PoissonEmbedding(2, combine="reverse", **QUICK),
        efemb.PoissonEmbedding(2, structure="tied", **QUICK),
        efemb.PoissonEmbedding(2, allow_real=True, **QUICK),
        efemb.Embedding(2, family="negative-binomial", **QUICK),
    ],
    ids=["binarize", "reverse", "tied", "allow_real", "negative-binomial"],
)
def test_other_models_of_counts_agree_with_their_score(model: Any) -> None:
    X = baskets() * (0.5 if model.allow_real else 1.0)
    model.fit(X)
    found = leave_one_out(model, X)
    assert found.normalized_log_likelihood().value == pytest.approx(model.score(X), rel=1e-10)


@pytest.mark.parametrize("sigma2", [0.6, "learned"])
@pytest.mark.parametrize("context", [efemb.Neighbors(3), efemb.Basket("none")], ids=["near", "row"])
def test_real_data_agree_with_the_score(context: Any, sigma2: Any) -> None:
    X = neurons()
    X[4, 1] = X[5] = np.nan
    model = efemb.GaussianEmbedding(
        2, context=context, family=efemb.Gaussian(sigma2), center=False, **QUICK
    )
    model.fit(X)
    found = leave_one_out(model, X)
    assert found.log_likelihood().value == pytest.approx(model.score(X), rel=1e-10)
    assert found.mean_squared_error().value == pytest.approx(
        np.nanmean((X - model.conditional(X)) ** 2), rel=1e-10
    )
    assert len(found) == np.count_nonzero(~np.isnan(X))


@pytest.mark.parametrize("family", ["poisson", "bernoulli", "negative-binomial"])
def test_counts_whose_contexts_are_not_rows_are_judged_cell_by_cell(family: str) -> None:
    X = np.minimum(baskets(), 1.0 if family == "bernoulli" else np.inf)
    X[:, 0] = np.arange(60) % 2
    model = efemb.Embedding(2, family=family, context=efemb.Neighbors(3), **QUICK).fit(X)
    found = leave_one_out(model, X)
    assert len(found) == X.size
    assert found.log_share is None
    assert found.log_likelihood().value == pytest.approx(model.score(X), rel=1e-8)


@pytest.mark.parametrize("as_array", [False, True])
def test_counts_held_out_of_lists(as_array: bool) -> None:
    data = efemb.Dataset(sparse.csr_array(baskets()))
    model = efemb.Embedding(2, family="poisson", context=efemb.Neighbors(3), **QUICK).fit(data)
    train, held = data.split(test=0.2, seed=0, by="entries")
    entries = held.values.toarray() if as_array else held
    found = held_out_entries(model, train, entries)
    rows, entities = held.values.toarray().nonzero()
    assert (found.row.tolist(), found.entity.tolist()) == (rows.tolist(), entities.tolist())
    assert_allclose(found.mean, model.conditional(train)[rows, entities])
    with pytest.raises(efemb.DataError, match="still in X"):
        held_out_entries(model, data, entries)


def test_vector_data_are_judged_number_by_number() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5, 2)) + rng.normal(size=(40, 1, 2))
    X[3, 2, 0] = np.nan
    model = efemb.GaussianEmbedding(2, context=efemb.Neighbors(2), center=False, **QUICK).fit(X)
    found = leave_one_out(model, X)
    assert len(found) == 40 * 5 * 2 - 2, "an observation with a missing part is missing"
    assert found.log_likelihood().value == pytest.approx(model.score(X), rel=1e-10)
    assert found.entity[:4].tolist() == [0, 0, 1, 1]
    folds = leave_fold_out(model, X, folds=2)
    assert folds.row.tolist() == found.row.tolist()


CONTEXTS = {
    "neighbors": efemb.Neighbors(3),
    "scaled": efemb.Neighbors(3, scale="items"),
    "lagged": efemb.Neighbors(2) + efemb.Lagged((-1, 1), of=efemb.Neighbors(1)),
}


def fixed_lists(name: str, X: Array, intercept: bool) -> efemb.fitted.FittedEmbedding:
    model = efemb.GaussianEmbedding(
        2, context=CONTEXTS[name], intercept=intercept, center=False, **QUICK
    )
    fitted = model.fit(X).fitted()
    rng = np.random.default_rng(5)
    p = fitted.parameters
    drawn = {"rho": rng.normal(size=p.rho.shape), "alpha": rng.normal(size=p.alpha.shape)}
    return replace(fitted, parameters=replace(p, **drawn))


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("intercept", [False, True], ids=["plain", "intercept"])
@pytest.mark.parametrize("name", CONTEXTS)
def test_leave_fold_out_is_the_loop(name: str, intercept: bool, missing: bool) -> None:
    X = neurons(25, 7)
    if missing:
        X[3], X[4, 2:5] = np.nan, np.nan
    model = fixed_lists(name, neurons(40, 7, seed=1), intercept)
    found = leave_fold_out(model, X, folds=3, seed=2)
    fold_of = np.empty(7, dtype=int)
    for fold, members in enumerate(np.array_split(np.random.default_rng(2).permutation(7), 3)):
        fold_of[members] = fold
    expected = []
    for t, n in np.argwhere(~np.isnan(X)).tolist():
        hidden = np.where(fold_of == fold_of[n], np.nan, X)
        expected.append((t, n, *neighbor_mean(model, hidden, t, n)))
    rows, entities, means, sizes = (list(column) for column in zip(*expected, strict=True))
    assert found.row.tolist() == rows
    assert found.entity.tolist() == entities
    assert_allclose(found.mean, means, rtol=1e-9, atol=1e-12)
    assert found.context_size is not None
    assert found.context_size.tolist() == sizes
    assert found.n_empty == sizes.count(0)
    told = found.context_sizes()
    assert told["size"].tolist() == sorted(set(sizes))
    assert told["n"].tolist() == [sizes.count(size) for size in sorted(set(sizes))]


@pytest.mark.parametrize("name", CONTEXTS)
def test_leave_one_out_of_fixed_lists_is_the_loop(name: str) -> None:
    X = neurons(25, 7)
    X[3], X[4, 2:5] = np.nan, np.nan
    model = fixed_lists(name, neurons(40, 7, seed=1), True)
    found = leave_one_out(model, X)
    cells = np.argwhere(~np.isnan(X)).tolist()
    means, sizes = zip(*(neighbor_mean(model, X, t, n) for t, n in cells), strict=True)
    assert_allclose(found.mean, means, rtol=1e-9, atol=1e-12)
    assert found.context_size is not None
    assert found.context_size.tolist() == list(sizes)


def test_hidden_columns_of_row_contexts_are_no_context() -> None:
    X = neurons(20, 5)
    model = efemb.GaussianEmbedding(2, context=efemb.Basket("items"), **QUICK).fit(neurons(40, 5))
    found = leave_fold_out(model, X, folds=2, seed=0)
    p = model.parameters_
    expected = np.empty(X.shape)
    for fold in np.array_split(np.random.default_rng(0).permutation(5), 2):
        rest = np.setdiff1d(np.arange(5), fold)
        sums = X[:, rest] @ p.alpha[rest] / len(rest)
        expected[:, fold] = sums @ p.rho[fold].T + p.intercept[fold]
    assert found.mean is not None
    assert_allclose(found.mean.reshape(X.shape), expected, rtol=1e-9)


def test_held_out_cells_of_real_data() -> None:
    data = efemb.Dataset(neurons(30, 6))
    train, test = data.split(test=0.2, seed=0, by="entries")
    model = fixed_lists("neighbors", neurons(40, 6), True)
    found = held_out_entries(model, train, test)
    cells = np.argwhere(~np.isnan(test.values)).tolist()
    assert list(zip(found.row.tolist(), found.entity.tolist(), strict=True)) == [
        tuple(cell) for cell in cells
    ]
    expected = [neighbor_mean(model, train.values, t, n)[0] for t, n in cells]
    assert_allclose(found.mean, expected, rtol=1e-9)
    stored = sparse.csr_array(np.nan_to_num(test.values))
    assert_allclose(held_out_entries(model, train, stored).mean, found.mean)


def test_a_family_that_cannot_be_inverted_has_no_log_density() -> None:
    class Doubled(efemb.Gaussian):
        def expected_value(self, eta: Array) -> Array:
            return 2 * eta

    model = efemb.Embedding(2, family=Doubled(), context=efemb.Neighbors(2), **QUICK)
    found = leave_one_out(model.fit(neurons()), neurons(seed=1))
    assert found.log_density is None
    with pytest.raises(efemb.ParameterError, match="predictor"):
        found.log_likelihood()


@pytest.mark.slow
def test_by_entity_has_the_r2_of_each_column() -> None:
    from sklearn.metrics import r2_score

    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 4)) + np.arange(4.0)
    mean = x + rng.normal(0.0, [0.1, 0.5, 1.0, 3.0], (80, 4))
    x[3, 1] = np.nan
    row, entity = np.nonzero(~np.isnan(x))
    predictions = Predictions(row, entity, x[row, entity], mean=mean[row, entity])
    table = predictions.by_entity()
    assert table["n"].tolist() == [80, 79, 80, 80]
    for n in range(4):
        seen = ~np.isnan(x[:, n])
        assert table["r2"][n] == pytest.approx(r2_score(x[seen, n], mean[seen, n]))
        gap = ((x - mean)[seen, n] ** 2).mean()
        assert table["mean_squared_error"][n] == pytest.approx(gap)
        draws = [rng.integers(0, seen.sum(), seen.sum()) for _ in range(2000)]
        resampled = [r2_score(x[seen, n][draw], mean[seen, n][draw]) for draw in draws]
        half = 0.5 * (table["high"][n] - table["low"][n])
        assert half == pytest.approx(1.96 * np.std(resampled), rel=0.25)
    assert table["low"][0] < table["r2"][0] < table["high"][0] <= 1.0
    narrow = predictions.by_entity(level=0.5)
    assert (narrow["high"] - narrow["low"] < table["high"] - table["low"]).all()
    for level in (0.0, 1.0):
        with pytest.raises(efemb.ParameterError, match=r"level must lie in \(0, 1\)"):
            predictions.by_entity(level)
    with pytest.raises(efemb.InputTypeError, match="level must be a number"):
        predictions.by_entity(True)


def test_an_entity_that_does_not_vary_has_no_r2() -> None:
    predictions = Predictions(
        np.arange(3), np.zeros(3, dtype=np.int64), np.ones(3), mean=np.array([1.0, 2.0, 1.0])
    )
    table = predictions.by_entity()
    assert np.isnan(table["r2"][0])
    assert np.isnan(predictions.r2())
    tenths = Predictions(  # the average of which is not exactly 0.1
        np.arange(7), np.zeros(7, dtype=np.int64), np.full(7, 0.1), mean=np.full(7, 0.2)
    )
    assert tenths.x.mean() != 0.1
    assert np.isnan(tenths.by_entity()["r2"][0])
