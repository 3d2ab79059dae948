"""Laplace: covariances are inverse Hessians, and intervals have their nominal coverage."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse, stats
from sklearn.exceptions import ConvergenceWarning

import efemb
from efemb.inference import laplace
from efemb.inference.conditionals import ListConditionals, curvature
from efemb.inference.row_conditionals import RowConditionals
from inference.samples import LABELS, basket_model, counts, fit, labeled, positions, signals

CASES: dict[str, dict[str, Any]] = {
    "poisson": {},
    "no intercept": {"intercept": False},
    "items": {"context": efemb.Basket("items")},
    "down-weighted zeros": {"zeros": efemb.All(0.3)},
    "prior of intercepts": {"intercept_prior": efemb.Normal(3.0)},
    "bernoulli": {"family": "bernoulli"},
    "negative binomial": {"family": efemb.NegativeBinomial(1.5)},
    "softplus": {"link": "softplus"},
    "gaussian": {"family": efemb.Gaussian(0.5)},
    "additive": {"link": "log", "prior": "half-normal"},
    "log-normal": {"link": "log", "prior": efemb.LogNormal(2.0, -1.0)},
    "noise": {"zeros": efemb.NegativeSampling(2)},
    "noise, bernoulli": {"zeros": efemb.NegativeSampling(2, "sqrt"), "family": "bernoulli"},
}


def hessian(model: Any, X: Any, n: int) -> Any:
    """-d2 L / d(rho_n, b_n)2 in unconstrained numbers, by differences of the fit's own gradient."""
    p = model.parameters_
    positive = model.fitted().spec.positive_rho
    size = p.rho.shape[1] + (p.intercept is not None)
    found = np.empty((size, size))

    def slope(place: int, h: float) -> Any:
        moved = p.copy()
        array = moved.rho[n] if place < p.rho.shape[1] else moved.intercept[n : n + 1]
        at = place if place < p.rho.shape[1] else 0
        array[at] = array[at] * np.exp(h) if positive else array[at] + h
        gradient = model.objective(X, moved)[1]
        parts = [gradient.rho[n]]
        if p.intercept is not None:
            parts.append(gradient.intercept[n : n + 1])
        return np.concatenate(parts)

    for place in range(size):
        found[:, place] = (slope(place, -1e-5) - slope(place, 1e-5)) / 2e-5
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_covariances_are_inverse_hessians(name: str) -> None:
    options = dict(CASES[name])
    X = counts(n_entities=6, binary=options.get("family") == "bernoulli")
    model = basket_model(X=X, max_iter=300, **options)
    data = labeled(sparse.csr_array(X))
    found = laplace(model, data)
    for n in (0, 4):
        expected = np.linalg.inv(hessian(model, sparse.csr_array(X), n))
        k = expected.shape[0] - int(model.intercept)
        scale = model.embedding_[n] if model.fitted().spec.positive_rho else np.ones(k)
        expected = expected[:k, :k] * np.outer(scale, scale)
        assert_allclose(found.covariance(LABELS[n]), expected, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("missing", [False, True])
def test_a_gaussian_is_the_posterior_of_ridge_regression(missing: bool) -> None:
    """Known variance: covariance sigma2 (Z'Z + sigma2 lambda)^-1 with a free intercept."""
    X, xy = signals(), positions()
    if missing:
        X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    data = labeled(X, positions=xy)
    model = fit(
        efemb.GaussianEmbedding(
            2,
            context=efemb.Neighbors(3),
            family=efemb.Gaussian(0.5),
            prior=efemb.Normal(2.0),
            center=False,
            random_state=0,
            dtype="float64",
        ),
        data,
    )
    found = laplace(model, data, refit=True)
    for n in (0, 5):
        near = np.argsort(np.linalg.norm(xy - xy[n], axis=1))[1:4]
        seen = ~np.isnan(X[:, n])
        Z = np.column_stack([np.nan_to_num(X[:, near]) @ model.context_[near], np.ones(len(X))])
        Z = Z[seen]
        penalty = np.diag([2.0, 2.0, 0.0])
        precision = Z.T @ Z / 0.5 + penalty
        mean = np.linalg.solve(precision, Z.T @ X[seen, n] / 0.5)
        assert_allclose(found.covariance(LABELS[n]), np.linalg.inv(precision)[:2, :2], rtol=1e-6)
        assert_allclose(found.embedding(LABELS[n]), mean[:2], rtol=1e-5, atol=1e-7)


def test_a_ridge_on_weights_is_a_part_of_the_precision() -> None:
    X, xy = signals(), positions()
    data = labeled(X + 50.0, positions=xy)
    options: dict[str, Any] = {"prior": efemb.Normal(2.0), "weight_ridge": 6.0}
    model = efemb.GaussianEmbedding(
        2, context=efemb.Neighbors(3), family=efemb.Gaussian(0.5), dtype="float64", **options
    )
    model = fit(model.set_params(random_state=0), data)
    found = laplace(model, data, refit=True)
    means, lists = X.mean(axis=0), model.fitted().lists[0]
    for n in (0, 5):
        near = np.argsort(np.linalg.norm(xy - xy[n], axis=1))[1:4]
        distance = np.linalg.norm(xy[near] - xy[n], axis=1)
        ridge = 6.0 * np.maximum(distance / lists.distance.mean(), 0.05) ** 2
        alpha = model.alpha_[near]
        Z = np.column_stack([(X[:, near] - means[near]) @ alpha, np.ones(len(X))])
        precision = Z.T @ Z / 0.5 + np.diag([2.0, 2.0, 0.0])
        precision[:2, :2] += alpha.T @ (ridge[:, None] * alpha) / 0.5
        mean = np.linalg.solve(precision, Z.T @ (X[:, n] + 50.0) / 0.5)
        assert_allclose(found.covariance(LABELS[n]), np.linalg.inv(precision)[:2, :2], rtol=1e-6)
        assert_allclose(found.embedding(LABELS[n]), mean[:2], rtol=1e-5, atol=1e-7)


def test_inner_products_have_the_variance_of_a_linear_form() -> None:
    X = counts(n_entities=6)
    model = basket_model(X=X)
    found = laplace(model, labeled(X))
    covariance, alpha = found.covariance("b"), model.context_[3]
    error = float(np.sqrt(alpha @ covariance @ alpha))
    assert found.standard_error("b", "d") == pytest.approx(error)
    assert_allclose(found.standard_error("b"), np.sqrt(np.diag(covariance)))
    interval = found.interval("b", "d", level=0.9)
    value = float(model.embedding_[1] @ alpha)
    assert interval.value == pytest.approx(value)
    reach = stats.norm.ppf(0.95) * error
    assert (interval.low, interval.high) == pytest.approx((value - reach, value + reach))
    assert interval.level == 0.9


def test_many_at_once() -> None:
    X = counts(n_entities=6)
    model = basket_model(X=X)
    found = laplace(model, labeled(X), progress=True)
    table = found.interval(["a", "b", "a"], ["c", "c", "f"])
    assert table["entity"].tolist() == ["a", "b", "a"]
    assert table["context"].tolist() == ["c", "c", "f"]
    for row in table:
        one = found.interval(row["entity"], row["context"])
        assert (row["value"], row["low"], row["high"]) == pytest.approx(
            (one.value, one.low, one.high)
        )
    assert len(found.interval("a", list("bcdef"))) == 5
    assert len(found.interval(list("bcdef"), "a")) == 5
    assert found.covariance(["a", "b"]).shape == (2, 2, 2)
    assert found.standard_error(["a", "b"]).shape == (2, 2)
    assert found.standard_error(["a", "b"], "c").shape == (2,)
    assert "6 embeddings" in repr(found)


def test_refit_stands_at_the_maximum() -> None:
    """Wherever the fit stopped, the interval is centered at the best embedding given alpha."""
    X = counts(n_entities=6)
    model = basket_model(X=X, max_iter=2)
    found = laplace(model, labeled(X), refit=True)
    p = model.parameters_.copy()
    p.rho[2] = found.embedding("c")
    stopped = np.abs(model.objective(X, model.parameters_)[1].rho[2]).max()
    # The intercept moves with the embedding, so the slope is judged where that is free too.
    assert np.abs(laplace_slope(model, X, p)).max() < 0.05 * stopped


def laplace_slope(model: Any, X: Any, p: Any) -> Any:
    from scipy.optimize import minimize_scalar

    def loss(b: float) -> float:
        p.intercept[2] = b
        return -model.objective(X, p)[0]

    p.intercept[2] = minimize_scalar(loss, bracket=(-2.0, 0.0)).x
    return model.objective(X, p)[1].rho[2]


def draw(family: Any, seed: int, n_rows: int = 150) -> tuple[Any, Any, Any, float]:
    """A column that follows a known regression on the other columns: X, alpha, rho, intercept."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.8, (n_rows, 5)).astype(float)
    X = np.minimum(X, 1.0) if family == "bernoulli" else X
    alpha = np.random.default_rng(99).normal(0.0, 0.7, (5, 2))
    rho, b = np.array([0.6, -0.4]), -0.3
    others = X[:, :4]
    Z = others @ alpha[:4] / np.maximum(others.sum(axis=1), 1.0)[:, None]
    u = Z @ rho + b
    if family == "bernoulli":
        X[:, 4] = rng.random(n_rows) < 1.0 / (1.0 + np.exp(-u))
    elif family == "overdispersed":
        X[:, 4] = rng.poisson(np.exp(u) * rng.gamma(0.5, 2.0, n_rows))
    else:
        X[:, 4] = rng.poisson(np.exp(u))
    return X, alpha, rho, b


def coverage(family: str, *, sandwich: bool, replicates: int = 150) -> float:
    """How often 90% intervals of rho_4 . alpha_m hold the truth, m = 0 ... 3."""
    hits = []
    for seed in range(replicates):
        X, alpha, rho, b = draw(family, seed)
        spec = efemb.Embedding(
            2,
            family="bernoulli" if family == "bernoulli" else "poisson",
            context=efemb.Explicit(*lists(X), scale="total"),
            prior=efemb.Normal(1e-4),
        )._spec()
        rows = np.zeros((5, 2))
        rows[4] = rho
        intercept = np.array([0, 0, 0, 0, b])
        model = efemb.fitted.FittedEmbedding(
            efemb.model.parameters.Parameters(rows, alpha, intercept), spec
        )
        found = laplace(model, efemb.Dataset(X), sandwich=sandwich, refit=True)
        table = found.interval([4] * 4, range(4), level=0.9)
        truth = alpha[:4] @ rho
        hits.append((table["low"] <= truth) & (truth <= table["high"]))
    return float(np.mean(hits))


def lists(X: Any) -> tuple[Any, Any]:
    """Members of the last column: the non-zero others of its row; nobody else has a context."""
    indices, sizes = [], []
    for t, x in enumerate(X):
        members = np.flatnonzero(x[:4])
        sizes += [0, 0, 0, 0, len(members)]
        indices.append(t * 5 + members)
    return np.concatenate([[0], np.cumsum(sizes)]), np.concatenate(indices)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["poisson", "bernoulli"])
def test_intervals_hold_as_often_as_they_say(family: str) -> None:
    assert coverage(family, sandwich=False) == pytest.approx(0.9, abs=0.05)


@pytest.mark.slow
def test_the_sandwich_holds_where_the_family_is_wrong() -> None:
    plain = coverage("overdispersed", sandwich=False)
    robust = coverage("overdispersed", sandwich=True)
    assert plain < 0.8
    assert robust == pytest.approx(0.9, abs=0.07)


@pytest.mark.parametrize(
    ("family", "x", "variance"),
    [
        (efemb.Poisson(), 3.0, np.exp),
        (efemb.Bernoulli(), 1.0, lambda u: np.exp(u) / (1 + np.exp(u)) ** 2),
        (efemb.Gaussian(2.0), 0.3, lambda u: np.full_like(u, 0.5)),
        (efemb.NegativeBinomial(2.0), 3.0, lambda u: 5 * 2 * np.exp(u) / (2 + np.exp(u)) ** 2),
    ],
    ids=["poisson", "bernoulli", "gaussian", "negative binomial"],
)
def test_curvature_of_the_families(family: Any, x: float, variance: Any) -> None:
    u = np.linspace(-3.0, 3.0, 13)
    found = curvature(family, efemb.model.links.Identity(), np.full_like(u, x), u)
    assert_allclose(found, variance(u), rtol=1e-7)


def test_data_are_read_as_the_model_reads_them() -> None:
    X = counts(n_entities=6)
    model = fit(efemb.BernoulliEmbedding(2, binarize=True, random_state=0), X)
    for form in (model, model.fitted()):
        one, two = (laplace(form, data).covariance(1) for data in (X, np.minimum(X, 1.0)))
        assert_allclose(one, two)
    plain = fit(efemb.BernoulliEmbedding(2, random_state=0), np.minimum(X, 1.0))
    with pytest.raises(efemb.DataError, match="bernoulli"):
        laplace(plain.fitted(), X)


def test_designs_are_the_contexts_of_their_own_cells() -> None:
    """Only some columns are computed, for all kinds of lists; the model computes all cells."""
    X = signals()
    X[3, 2] = X[7, 5] = np.nan
    lagged = efemb.Lagged((-1, 1), of=efemb.Neighbors(2), include_self=True)
    context = efemb.Neighbors(3, scale="items") + lagged
    model = efemb.GaussianEmbedding(2, context=context, max_iter=3, dtype="float64", random_state=0)
    spec, bound, vectors = fit(model, X)._bind(X)
    entities = np.array([5, 2, 7])
    found = ListConditionals(spec, bound, vectors, entities, np.ones(len(X)))
    for place, n in enumerate(entities.tolist()):
        rows = np.flatnonzero(~np.isnan(X[:, n]))
        expected = model.context_sums(X, (rows, np.full(len(rows), n)))
        assert_allclose(found.design(place).contexts, expected, rtol=1e-12, atol=1e-15)
        assert_allclose(found.design(place).x, X[rows, n])


def test_one_design_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is a copy of all rows."""
    X, made, alive = counts(n_entities=6), [], []
    model = basket_model(X=X)
    inner = RowConditionals.design

    def counted(given: Any, place: int) -> Any:
        alive.append(sum(one() is not None for one in made))
        design = inner(given, place)
        made.append(weakref.ref(design.contexts))
        return design

    monkeypatch.setattr(RowConditionals, "design", counted)
    laplace(model, labeled(X), sandwich=True).covariance(LABELS[:6])
    assert alive == [0] * 6


def test_neighbors_go_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many at a time as there is room for their contexts."""
    X, sizes = signals(), []
    options: dict[str, Any] = {"max_iter": 30, "dtype": "float64", "random_state": 0}
    model = fit(efemb.GaussianEmbedding(2, context=efemb.Neighbors(3), **options), X)
    whole = laplace(model, X).covariance(range(9))

    inner = ListConditionals.__init__

    def counted(given: Any, *arguments: Any) -> None:
        inner(given, *arguments)
        sizes.append(given.n)

    monkeypatch.setattr(ListConditionals, "__init__", counted)
    monkeypatch.setattr("efemb.inference.conditionals.SUMS_AT_ONCE", 2 * 2 * len(X))
    assert_allclose(laplace(model, X).covariance(range(9)), whole, rtol=1e-9)
    assert sizes == [2, 2, 2, 2, 1]


def test_bad_questions() -> None:
    X = counts(n_entities=6)
    model = basket_model(X=X)
    found = laplace(model, labeled(X))
    with pytest.raises(efemb.DataError, match="unknown label"):
        found.interval("a", "zz")
    for level in (0, 1, np.nan):
        with pytest.raises(efemb.ParameterError, match="level"):
            found.interval("a", "b", level=level)
    for level in ("high", True):
        with pytest.raises(efemb.InputTypeError, match="level"):
            found.interval("a", "b", level=level)
    with pytest.raises(efemb.ParameterError, match="2 entities and 3 contexts"):
        found.interval(["a", "b"], ["a", "b", "c"])
    with pytest.raises(efemb.DataError, match="at least one"):
        found.interval([], "a")
    plain = laplace(fit(efemb.PoissonEmbedding(2, random_state=0), X), X)
    assert plain.interval(0, 1).low < plain.interval(0, 1).high
    for unknown in (6, -1, "a"):  # as in all other questions
        with pytest.raises(efemb.DataError, match=f"unknown label {unknown!r}"):
            plain.interval(0, unknown)
    assert plain.interval([0, 2], 1)["entity"].tolist() == [0, 2]
    for options in ({"sandwich": 1}, {"refit": "yes"}):
        with pytest.raises(efemb.InputTypeError):
            laplace(model, X, **options)


def test_questions_about_pairs_take_its_standard_errors() -> None:
    X = counts(n_entities=6)
    model = basket_model(X=X)
    found = laplace(model, labeled(X))
    for row in model.complements(LABELS[0], 4, errors=found, confidence=0.9):
        one = found.interval(row["label"], LABELS[0], level=0.9)
        assert (row["low"], row["high"]) == pytest.approx((one.low, one.high), rel=1e-6)
    assert {"low", "high"} <= set(model.substitutes(LABELS[0], errors=found).columns)


def test_models_that_cannot() -> None:
    X = counts(n_entities=6)
    for options, reason in (
        ({"structure": "tied"}, "shares"),
        ({"combine": "reverse"}, "reverse"),
        ({"family": "categorical"}, "softmax"),
    ):
        with pytest.raises(efemb.ParameterError, match=f"{reason}.*; stability"):
            laplace(basket_model(X=X, **options), labeled(X))
    lagged = fit(
        efemb.GaussianEmbedding(2, context=efemb.Lagged((-1, 1)), random_state=0), signals()
    )
    found = laplace(lagged, signals())
    assert found.covariance(0).shape == (2, 2)
    with pytest.raises(efemb.ParameterError, match="offset"):
        found.interval(0, 1)


def test_rows_that_tell_nothing_are_named() -> None:
    """Without a prior, a context vector of zeros leaves an embedding free."""
    X = counts(n_entities=6)
    model = basket_model(X=X, prior=None)
    free = model.fitted()
    free.parameters.alpha[:, 0] = 0.0
    with pytest.raises(efemb.DataError, match="'a'"):
        laplace(free, labeled(X)).covariance("a")


@pytest.mark.parametrize("u", [2e-6, 1e-5, 1.2e-5, 1e-3, 0.5])
def test_curvature_of_small_additive_means(u: float) -> None:
    """x log(u) - u has the curvature x / u^2."""
    found = curvature(efemb.Poisson(), efemb.model.links.Log(), np.array([3.0]), np.array([u]))
    assert_allclose(found, 3.0 / u**2, rtol=1e-6)


def test_errors_of_refitted_vectors_belong_to_other_products() -> None:
    X = counts(n_entities=6)
    model = basket_model(X=X)
    with pytest.raises(efemb.ParameterError, match="refit"):
        model.complements(LABELS[0], errors=model.laplace(labeled(X), refit=True))


def test_a_refit_that_comes_to_no_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("efemb.inference.lbfgs.MOST_ROUNDS", 2)
    X = counts(n_entities=6)
    with pytest.warns(ConvergenceWarning, match="still improving"):
        basket_model(X=X, max_iter=3).laplace(labeled(X), refit=True).covariance("a")


def test_empty_baskets_tell_nothing() -> None:
    """A fit leaves them out."""
    X = counts(n_entities=6)
    model = basket_model(X=X)
    more = np.vstack([X, np.zeros((40, 6))])
    given, with_empty = (laplace(model, labeled(sparse.csr_array(one))) for one in (X, more))
    assert_allclose(with_empty.covariance("b"), given.covariance("b"), rtol=1e-10)
