"""fold_in finds the vectors at which the gradient of the extended objective is zero."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, sparse
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import PoissonRegressor, Ridge

import efemb
from efemb.inference import fold_in
from efemb.inference.context_conditionals import ContextConditionals
from efemb.inference.posterior import EntityPosterior, vector_blocks
from efemb.inference.row_conditionals import RowConditionals
from inference.samples import (
    LABELS,
    N_KNOWN,
    basket_model,
    counts,
    fit,
    known,
    labeled,
    positions,
    signals,
)

EXACT: dict[str, Any] = {"prior": "model", "tol": 1e-12}


def grown_objective(model: Any, found: efemb.fitted.FittedEmbedding, data: efemb.Dataset) -> Any:
    """Gradient of the whole objective of the grown model, by the solver that fits models."""
    again = type(model).from_fitted(found, dtype="float64", allow_real=True)
    return again.objective(efemb.Dataset(data.values), found.parameters)[1]


CASES: dict[str, dict[str, Any]] = {
    "poisson": {},
    "no intercept": {"intercept": False},
    "items": {"context": efemb.Basket("items")},
    "no scale": {"context": efemb.Basket("none", binary=True)},
    "binary": {"context": efemb.Basket("total", binary=True)},
    "down-weighted zeros": {"zeros": efemb.All(0.1)},
    "no zeros": {"zeros": efemb.All(0.0), "intercept_prior": efemb.Normal(1.0)},
    "prior of intercepts": {"intercept_prior": efemb.Normal(3.0)},
    "two priors": {"prior": (efemb.Normal(2.0), efemb.Normal(0.5))},
    "bernoulli": {"family": "bernoulli"},
    "negative binomial": {"family": efemb.NegativeBinomial(1.5)},
    "softplus": {"link": "softplus"},
    "log-softplus": {"link": "log-softplus"},
    "gaussian": {"family": efemb.Gaussian(0.5)},
    "additive": {"link": "log", "prior": "half-normal"},
    "log-normal": {"link": "log", "prior": efemb.LogNormal(1.0, -1.0)},
    "categorical": {"family": "categorical"},
    "noise": {"zeros": efemb.NegativeSampling(2)},
    "noise, bernoulli": {"zeros": efemb.NegativeSampling(2, "sqrt"), "family": "bernoulli"},
    "noise, no intercept": {"zeros": efemb.NegativeSampling(2), "intercept": False},
}


def case(name: str) -> tuple[Any, efemb.Dataset]:
    options = dict(CASES[name])
    X = counts(binary=options.get("family") == "bernoulli")
    return basket_model(X=X, **options), labeled(sparse.csr_array(X))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_new_embeddings_have_no_slope_left(name: str) -> None:
    model, data = case(name)
    found = fold_in(model, data, context_too=False, **EXACT)
    gradient = grown_objective(model, found, data)
    assert_allclose(gradient.rho[N_KNOWN:], 0.0, atol=2e-4)
    if gradient.intercept is not None:
        assert_allclose(gradient.intercept[N_KNOWN:], 0.0, atol=2e-4)
    for before, after in zip(model.parameters_.arrays(), found.parameters.arrays(), strict=True):
        assert_array_equal(after[:N_KNOWN], before)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_sweeps_bring_both_kinds_of_vectors_to_rest(name: str) -> None:
    model, data = case(name)
    found = fold_in(model, data, sweeps=60, **EXACT)
    gradient = grown_objective(model, found, data)
    scale = max(1.0, float(np.abs(gradient.alpha[:N_KNOWN]).max()))
    assert_allclose(gradient.rho[N_KNOWN:], 0.0, atol=5e-3 * scale)
    assert_allclose(gradient.alpha[N_KNOWN:], 0.0, atol=5e-3 * scale)


def test_negative_sampling_in_expectation() -> None:
    """Zeros weigh n times the entries of the row, times the popularity of the entity.

    The logarithm of n times the latter is taken off the intercept.
    """
    X = counts()
    model = basket_model(X=X, zeros=efemb.NegativeSampling(2))
    found = fold_in(model, labeled(sparse.csr_array(X)), context_too=False, **EXACT)
    p, n = found.parameters, N_KNOWN + 1
    share = np.bincount(np.nonzero(X)[1], minlength=9) / np.count_nonzero(X)
    slope = np.zeros(3)
    for x in X:
        others = np.where(np.arange(9) == n, 0.0, x)
        context = others @ p.alpha / (others.sum() or 1.0)
        full = x @ p.alpha / (x.sum() or 1.0)
        z, weight, target = context, 1.0, x[n]
        if x[n] == 0:
            z, weight, target = full, 2 * np.count_nonzero(x) * share[n], 0.0
        u = p.rho[n] @ z + p.intercept[n] - np.log(2 * share[n])
        slope += weight * (target - np.exp(u)) * np.append(z, 1.0)
    slope[:2] -= p.rho[n]
    assert_allclose(slope, 0.0, atol=1e-5)


def test_against_scikit_learn() -> None:
    """Without a divisor and without alpha of its own, a new entity is a Poisson regression."""
    X = counts()
    model = basket_model(X=X, context=efemb.Basket("none"), prior=efemb.Normal(2.0))
    found = fold_in(model, labeled(X), context_too=False, **EXACT)
    for n in range(N_KNOWN, 9):
        Z = X[:, :N_KNOWN] @ model.context_
        oracle = PoissonRegressor(alpha=2.0 / len(X), tol=1e-12, max_iter=10_000).fit(Z, X[:, n])
        assert_allclose(found.parameters.rho[n], oracle.coef_, atol=1e-5)
        assert_allclose(found.parameters.intercept[n], oracle.intercept_, atol=1e-5)


def test_context_vectors_against_a_general_optimizer() -> None:
    """alpha of one new entity, by the loop over its rows and all other entities."""
    X = counts()[:, : N_KNOWN + 1]
    model = basket_model(X=X, prior=(efemb.Normal(1.0), efemb.Normal(0.7)))
    found = fold_in(model, labeled(X), sweeps=1, **EXACT)
    first = fold_in(model, labeled(X), context_too=False, **EXACT)  # rho that alpha was given
    p, n = first.parameters, N_KNOWN

    def loss(alpha: Any) -> float:
        total = 0.35 * float(alpha @ alpha)
        everyone = np.vstack([p.alpha[:n], alpha])
        for x in X[X[:, n] > 0]:
            for j in range(n):
                left = np.where(np.arange(n + 1) == j, 0.0, x)
                u = p.rho[j] @ (left @ everyone) / left.sum() + p.intercept[j]
                total -= x[j] * u - np.exp(u)
        return total

    oracle = optimize.minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-8}).x
    assert_allclose(found.parameters.alpha[n], oracle, atol=1e-4)


@pytest.mark.parametrize("scale", ["none", "items"])
@pytest.mark.parametrize("missing", [False, True])
def test_neighbors_are_a_ridge_regression(scale: str, missing: bool) -> None:
    X, xy = signals(), positions()
    if missing:
        X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    data = labeled(X, positions=xy)
    context = efemb.Neighbors(3, scale=scale)
    model = fit(
        efemb.GaussianEmbedding(
            2,
            context=context,
            family=efemb.Gaussian(0.5),
            prior="normal",
            center=False,
            random_state=0,
            dtype="float64",
        ),
        known(data),
    )
    found = fold_in(model, data, **EXACT)
    assert found.lists is not None
    lists, p = found.lists[0], found.parameters
    for n in range(N_KNOWN, 9):
        distance = np.linalg.norm(xy[:N_KNOWN] - xy[n], axis=1)
        near = np.argsort(distance)[:3]
        assert set(lists.members[lists.ptr[n] : lists.ptr[n + 1]]) == set(near)
        seen = ~np.isnan(X[:, n])
        values = np.nan_to_num(X[:, near])
        Z = values @ model.context_[near]
        if scale == "items":
            Z = Z / np.maximum((~np.isnan(X[:, near])).sum(axis=1), 1)[:, None]
        oracle = Ridge(alpha=0.5, tol=1e-14).fit(Z[seen], X[seen, n])
        assert_allclose(p.rho[n], oracle.coef_, atol=1e-6)
        assert_allclose(p.intercept[n], oracle.intercept_, atol=1e-6)
    assert_array_equal(p.alpha[N_KNOWN:], 0.0)
    assert_array_equal(found.positions, xy)


def test_missing_values_of_rows_are_neither_zero_nor_target_nor_context() -> None:
    X = np.random.default_rng(4).normal(size=(80, 9))
    X[np.random.default_rng(5).random(X.shape) < 0.2] = np.nan
    data = labeled(X)
    model = fit(
        efemb.Embedding(
            2,
            family="gaussian",
            context=efemb.Basket("items"),
            random_state=0,
            dtype="float64",
            max_iter=20,
        ),
        known(data),
    )
    found = fold_in(model, data, sweeps=60, **EXACT)
    gradient = grown_objective(model, found, data)
    assert_allclose(gradient.rho[N_KNOWN:], 0.0, atol=1e-3)
    assert_allclose(gradient.alpha[N_KNOWN:], 0.0, atol=1e-3)


@pytest.mark.parametrize("given", ["in the context", "in the data"])
def test_positions_follow_their_entities(given: str) -> None:
    X, xy, order = signals(), positions(), [8, 2, 0, 6, 1, 3, 7, 5, 4]
    data = labeled(X, positions=xy)
    own = xy[:N_KNOWN] if given == "in the context" else None
    context = efemb.Neighbors(3, positions=own)
    model = fit(efemb.GaussianEmbedding(2, context=context, random_state=0), known(data))
    found = fold_in(model, data.take_entities(order))
    assert found.vocabulary is not None
    place = [LABELS.index(label) for label in found.vocabulary]
    assert_array_equal(found.positions, xy[place])
    plain = fold_in(model, data)
    assert_allclose(found.parameters.rho, plain.parameters.rho[place], atol=1e-4)
    grown = data.take_entities(place)
    again = efemb.GaussianEmbedding.from_fitted(found, max_iter=2, random_state=0)
    assert fit(again, grown).embedding_.shape == (9, 2)


def test_neighbors_by_correlation_are_known_entities() -> None:
    X = signals()
    data = labeled(X)
    model = fit(efemb.GaussianEmbedding(2, context=efemb.Neighbors(2), random_state=0), known(data))
    found = fold_in(model, data)
    assert found.lists is not None
    lists = found.lists[0]
    strength = np.abs(np.corrcoef(X.T))
    for n in range(N_KNOWN, 9):
        best = np.argsort(-strength[n, :N_KNOWN])[:2]
        assert set(lists.members[lists.ptr[n] : lists.ptr[n + 1]]) == set(best)


def test_positive_neighbors_stay_positive() -> None:
    data = labeled(np.abs(signals()))
    model = fit(
        efemb.NonnegativeGaussianEmbedding(2, context=efemb.Neighbors(3), random_state=0),
        known(data),
    )
    assert (fold_in(model, data).parameters.rho > 0).all()


def test_rows_in_part_show_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many rows, some of them are used first; the result is the same."""
    model, data = case("poisson")
    whole = fold_in(model, data, **EXACT)
    monkeypatch.setattr("efemb.inference.new_entities.MANY_ROWS", 10)
    found = fold_in(model, data, **EXACT)
    assert_allclose(found.parameters.rho, whole.parameters.rho, atol=1e-5)


def test_many_entities_go_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = case("poisson")
    whole = fold_in(model, data, context_too=False, **EXACT)
    monkeypatch.setattr("efemb.inference.new_entities.AT_ONCE", 2)
    found = fold_in(model, data, context_too=False, **EXACT)
    assert_allclose(found.parameters.rho, whole.parameters.rho, atol=1e-7)


@pytest.mark.parametrize("name", ["poisson", "bernoulli", "gaussian", "additive"])
def test_how_much_memory_there_is_does_not_matter(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One member at a time, and no sums of rows kept: the same after every sweep."""
    model, data = case(name)
    together = fold_in(model, data, sweeps=2, **EXACT)
    turns: list[int] = []

    class Counted(ContextConditionals):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            turns.append(self.n)

    monkeypatch.setattr("efemb.inference.new_entities.ContextConditionals", Counted)
    monkeypatch.setattr("efemb.inference.context_conditionals.BYTES_AT_ONCE", 1)
    monkeypatch.setattr("efemb.inference.context_conditionals.BLOCK_NUMBERS", 1)
    apart = fold_in(model, data, sweeps=2, **EXACT)
    assert set(turns) == {1}
    for one, other in zip(together.parameters.arrays(), apart.parameters.arrays(), strict=True):
        assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_neighbors_go_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    data = labeled(signals(), positions=positions())
    options: dict[str, Any] = {"max_iter": 30, "dtype": "float64", "random_state": 0}
    context = efemb.Neighbors(3, scale="items")
    model = fit(efemb.GaussianEmbedding(2, context=context, **options), known(data))
    whole = fold_in(model, data, **EXACT)
    monkeypatch.setattr("efemb.inference.conditionals.SUMS_AT_ONCE", 1)
    found = fold_in(model, data, **EXACT)
    assert_allclose(found.parameters.rho, whole.parameters.rho, rtol=1e-9)


def test_a_solved_problem_leaves_nothing_behind() -> None:
    """No reference cycle keeps its arrays alive."""
    model, data = case("poisson")
    spec, bound, vectors = model._bind(known(data))
    given = RowConditionals(spec, bound, vectors, np.arange(2), np.ones(bound.n_rows))
    gc.disable()
    try:
        posterior = EntityPosterior(given, vector_blocks(spec, 2))
        posterior.begin(posterior.theta(np.ones((2, 3)))).run(1.0)
        kept = weakref.ref(posterior)
        del posterior
        assert kept() is None
    finally:
        gc.enable()


@pytest.mark.slow
@pytest.mark.parametrize("n_known", [25, 28])
def test_new_entities_are_predicted_like_by_a_full_refit(n_known: int) -> None:
    """Log-share of their entries in new rows, each given the rest of its row."""
    truth = efemb.simulation.simulate("p-emb", n_rows=3000, n_entities=30, n_components=3, seed=2)
    data = efemb.Dataset(truth.data.values, entities=[f"i{n}" for n in range(30)])
    train, test = data.split(test=0.2, seed=0)
    old = fit(efemb.PoissonEmbedding(3, random_state=0), train.take_entities(slice(0, n_known)))
    whole = fit(efemb.PoissonEmbedding(3, random_state=0), train)
    entries = test.values.tocoo()
    alone = entries.data == np.asarray(test.values.sum(axis=1)).ravel()[entries.row]
    asked = (entries.col >= n_known) & ~alone
    row, entity, x = entries.row[asked], entries.col[asked], entries.data[asked]

    def score(model: Any) -> float:
        shares = np.empty(len(row))
        for part, found in model.log_means(test, row, entity):
            mine = found[np.arange(len(found)), entity[part]]
            shares[part] = mine - logsumexp(found, axis=1)
        return float(x @ shares / x.sum())

    assert score(fold_in(old, train)) > score(whole) - 0.05


def test_precision_of_the_model_is_kept() -> None:
    X = counts()
    model = basket_model(X=X, dtype="float32")
    found = fold_in(model, labeled(sparse.csr_array(X)), tol=1e-4)
    assert all(array.dtype == np.float32 for array in found.parameters.arrays())
    again = fold_in(basket_model(X=X), labeled(sparse.csr_array(X)), tol=1e-4)
    assert_allclose(found.parameters.rho[N_KNOWN:], again.parameters.rho[N_KNOWN:], atol=0.02)


# -- labels, and what comes back ------------------------------------------------------------------


def test_labels_say_what_is_new() -> None:
    """In any order; known entities that are not there are absent."""
    X = counts()
    model = basket_model(X=X)
    plain = fold_in(model, labeled(X), **EXACT)
    order = [8, 2, 0, 6, 1, 3, 7, 5, 4]
    turned = efemb.Dataset(X[:, order], entities=[LABELS[n] for n in order])
    found = fold_in(model, turned, **EXACT)
    assert found.vocabulary is not None
    assert found.vocabulary.labels.tolist() == [*"abcdef", *"igh"]
    place = [found.vocabulary.index_of(label) for label in LABELS]
    assert_allclose(found.parameters.rho[place], plain.parameters.rho, atol=1e-5)
    assert_allclose(found.parameters.alpha[place], plain.parameters.alpha, atol=1e-5)
    fewer = labeled(X).take_entities([0, 1, 2, 7])
    without = X.copy()
    without[:, [3, 4, 5, 6, 8]] = 0.0
    absent = labeled(without).take_entities([0, 1, 2, 3, 4, 5, 7])
    one, two = (fold_in(model, data, **EXACT).parameters for data in (fewer, absent))
    assert_allclose(one.rho, two.rho, atol=1e-6)


def test_without_labels_the_first_columns_are_known() -> None:
    X = counts()
    model = fit(efemb.PoissonEmbedding(2, random_state=0, dtype="float64"), X[:, :N_KNOWN])
    found = fold_in(model, efemb.Dataset(X))
    assert found.vocabulary is None
    assert found.n_entities == 9
    labeled_one = basket_model(X=X)
    assert labeled_one.fitted().vocabulary is not None


def test_what_comes_back_is_a_model(tmp_path: Any) -> None:
    X = counts()
    words = efemb.Vocabulary(LABELS[:N_KNOWN], counts=np.arange(1.0, 7.0))
    model = fit(
        efemb.PoissonEmbedding(2, random_state=0), efemb.Dataset(X[:, :N_KNOWN], entities=words)
    )
    data = labeled(sparse.csr_array(X))
    found = fold_in(model.fitted(), data)
    assert found.vocabulary is not None
    assert found.vocabulary.counts.tolist() == [
        *range(1, 7),
        *np.count_nonzero(X[:, N_KNOWN:], axis=0),
    ]
    found.save(tmp_path / "model")
    again = efemb.load(tmp_path / "model")
    assert again.score(data) == found.score(data)
    assert again.conditional(data).shape == X.shape
    assert "g" in again.similar("a", n=8)["label"]
    assert found.model == "PoissonEmbedding"
    resumed = efemb.PoissonEmbedding.from_fitted(found, random_state=0, max_iter=2)
    assert fit(resumed, data).embedding_.shape == (9, 2)


def test_an_estimator_that_binarizes_does_so_here() -> None:
    X = counts()
    model = fit(
        efemb.BernoulliEmbedding(2, binarize=True, random_state=0), known(labeled(X)).values
    )
    same = fold_in(model, efemb.Dataset(np.minimum(X, 1.0)))
    for one in (model, model.fitted()):
        found = fold_in(one, efemb.Dataset(X))
        assert_array_equal(found.parameters.rho, same.parameters.rho)
        with pytest.raises(efemb.DataError, match="Negative values"):
            fold_in(one, efemb.Dataset(-X))


def test_problems_without_a_solution_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing bounds the vectors here, but the rounds end."""
    monkeypatch.setattr("efemb.inference.lbfgs.MOST_ROUNDS", 3)
    model = basket_model(prior=None)
    with pytest.warns(ConvergenceWarning, match="still improving"):
        fold_in(model, labeled(counts()), prior="model", tol=1e-14, progress=True)


def test_an_entity_that_is_in_no_row() -> None:
    X = counts()
    X[:, 8] = 0.0
    model = basket_model(X=X)
    found = fold_in(model, labeled(X), **EXACT)
    assert_array_equal(found.parameters.alpha[8], 0.0)
    assert found.parameters.intercept[8] < found.parameters.intercept[:8].min()
    assert np.isfinite(found.parameters.rho).all()


@pytest.mark.parametrize("name", ["poisson", "categorical"])
def test_no_new_entity_is_in_any_row(name: str) -> None:
    model, data = case(name)
    values = data.values.toarray()
    values[:, N_KNOWN:] = 0.0
    found = fold_in(model, labeled(values)).parameters
    assert_array_equal(found.alpha[N_KNOWN:], 0.0)
    assert np.isfinite(found.rho).all()


def test_the_spread_of_known_vectors_is_a_prior() -> None:
    """The default is never looser than the model's own prior, and makes vectors like the others."""
    X = counts()
    loose = basket_model(X=X, prior=efemb.Normal(1e-6), max_iter=5)
    free = fold_in(loose, labeled(X), prior="model").parameters.rho[N_KNOWN:]
    tight = fold_in(loose, labeled(X)).parameters.rho[N_KNOWN:]
    precision = 1.0 / float(np.mean(loose.embedding_**2))
    own = fold_in(loose, labeled(X), prior=efemb.Normal(precision), context_too=False, tol=1e-9)
    same = fold_in(loose, labeled(X), context_too=False, tol=1e-9)
    assert np.abs(tight).mean() < np.abs(free).mean()
    assert_allclose(own.parameters.rho, same.parameters.rho)
    stiff = basket_model(X=X, prior=efemb.Normal(1e6))
    assert np.abs(fold_in(stiff, labeled(X)).parameters.rho[N_KNOWN:]).max() < 1e-2
    none = basket_model(X=X, prior=None)
    assert np.isfinite(fold_in(none, labeled(X)).parameters.rho).all()


# -- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"context_too": 1}, efemb.InputTypeError),
        ({"prior": "modle"}, efemb.ParameterError),
        ({"prior": 3.0}, efemb.InputTypeError),
        ({"prior": efemb.HalfNormal(1.0)}, efemb.ParameterError),
        ({"prior": efemb.Normal(-1.0)}, efemb.ParameterError),
        ({"sweeps": 0}, efemb.ParameterError),
        ({"tol": -1.0}, efemb.ParameterError),
        ({"tol": "small"}, efemb.InputTypeError),
    ],
)
def test_bad_options(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        fold_in(basket_model(), labeled(counts()), **options)


def test_bad_data() -> None:
    model, X = basket_model(), counts()
    with pytest.raises(efemb.InputTypeError, match="Dataset"):
        fold_in(model, X)
    with pytest.raises(efemb.DataError, match="labels"):
        fold_in(model, efemb.Dataset(X))
    with pytest.raises(efemb.DataError, match="no new entity"):
        fold_in(model, known(labeled(X)))
    bad = X.copy()
    bad[3, 8] = -1.0
    with pytest.raises(efemb.DataError, match="column 'i' has -1"):
        fold_in(model, labeled(bad))
    plain = fit(efemb.PoissonEmbedding(2, random_state=0), X)
    with pytest.raises(efemb.DataError, match="4 columns"):
        fold_in(plain, efemb.Dataset(X[:, :4]))
    data = labeled(signals(), positions=positions())
    near = fit(efemb.GaussianEmbedding(2, context=efemb.Neighbors(2)), known(data))
    with pytest.raises(efemb.DataError, match="positions"):
        fold_in(near, labeled(signals()))


def test_models_that_cannot() -> None:
    X = counts()
    for options, reason in (
        ({"structure": "tied"}, "shares vectors"),
        ({"combine": "reverse"}, "reverse"),
    ):
        with pytest.raises(efemb.ParameterError, match=reason):
            fold_in(basket_model(X=X, **options), labeled(X))
    ring = np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0)
    for context, reason in (
        (efemb.Graph(ring), "Graph"),
        (efemb.Lagged((-1, 1)), "more than one"),
    ):
        model = fit(
            efemb.GaussianEmbedding(2, context=context, random_state=0), known(labeled(signals()))
        )
        with pytest.raises(efemb.ParameterError, match=reason):
            fold_in(model, labeled(signals()))
    text = fit(efemb.CBOW(2, context=efemb.Window(2), max_iter=1), [list("abcd") * 5] * 5)
    with pytest.raises(efemb.ParameterError, match=r"text.*fit again"):
        fold_in(text, labeled(X))


@pytest.mark.parametrize("mean", [30.0, 1000.0, -3000.0])
def test_new_neurons_do_not_depend_on_where_zero_is(mean: float) -> None:
    """A free intercept takes up what is added to every value: the embeddings stay."""
    X = signals()
    options: dict[str, Any] = {"dtype": "float64", "random_state": 0, "max_iter": 20}
    options |= {"family": "gaussian", "prior": "normal", "center": False}
    model = efemb.GaussianEmbedding(2, context=efemb.Neighbors(3), **options)
    fitted = fit(model, known(labeled(X))).fitted()
    p, (part,) = fitted.parameters, fitted.lists
    near = part.members.reshape(N_KNOWN, 3)
    through = np.einsum("nk,nmk->n", p.rho, p.alpha[near])
    moved = replace(p, intercept=p.intercept + mean * (1.0 - through))
    one = fold_in(fitted, labeled(X))
    other = fold_in(replace(fitted, parameters=moved), labeled(X + mean))
    assert_array_equal(other.lists[0].members, one.lists[0].members)
    assert_allclose(other.parameters.rho, one.parameters.rho, atol=2e-3)


def test_empty_baskets_tell_nothing_of_new_items() -> None:
    """A fit leaves them out."""
    X = counts()
    model = basket_model(X=X)
    more = np.vstack([X, np.zeros((40, X.shape[1]))])
    given, with_empty = (fold_in(model, labeled(one), **EXACT).parameters for one in (X, more))
    assert_allclose(with_empty.rho, given.rho, atol=1e-4)
    assert_allclose(with_empty.intercept, given.intercept, atol=1e-4)
