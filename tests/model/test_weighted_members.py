"""Weights of members, and lists that name rows by their labels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

import efemb
from efemb.engine.solvers.choice import make_solver
from efemb.engine.threads import workers
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.model.factors import Factors
from efemb.model.predictor import Predictor
from efemb.model.spec import Spec

# One value is missing, of columns that are far from 0.
pytestmark = pytest.mark.filterwarnings("ignore:a missing value counts as 0")

T, N, K = 15, 5, 2
RNG = np.random.default_rng(0)
SIGNALS = np.abs(RNG.normal(size=(T, N)))
SIGNALS[2, 1] = np.nan
WEIGHTS = RNG.uniform(0.2, 2.0, (N, N)) * (RNG.random((N, N)) < 0.7)
np.fill_diagonal(WEIGHTS, 0.0)


def random_factors() -> Factors:
    return Factors(*(RNG.normal(0, 0.5, (N, K)) for _ in range(2)), RNG.normal(0, 0.5, N))


def plain_products(factors: Factors, scale: str) -> Any:
    """u of every cell by loops."""
    u = np.zeros((T, N))
    for t in range(T):
        for n in range(N):
            total, divisor = np.zeros(K), 0.0
            for m in range(N):
                if WEIGHTS[n, m] and not np.isnan(SIGNALS[t, m]):
                    total += WEIGHTS[n, m] * SIGNALS[t, m] * factors.bag[m]
                    divisor += WEIGHTS[n, m] * (SIGNALS[t, m] if scale == "total" else 1.0)
            total /= divisor if scale != "none" and divisor > 0 else 1.0
            u[t, n] = factors.target[n] @ total + factors.intercept[n]
    return u


@pytest.mark.parametrize("scale", ["none", "items", "total"])
def test_members_count_by_their_weights_in_every_solver(scale: str) -> None:
    factors = random_factors()
    context = efemb.Graph(WEIGHTS, scale, weights=True)
    spec = Spec.resolve(context=context, family="gaussian")
    bound = context.bind(efemb.Dataset(SIGNALS))
    u = plain_products(factors, scale)
    assert_allclose(Predictor(factors).cells(spec, bound, np.arange(T)), u, rtol=1e-10)
    for t in (0, 2):  # a single row is asked in another way
        assert_allclose(Predictor(factors).cells(spec, bound, np.array([t]))[0], u[t], rtol=1e-10)
    expected = -0.5 * np.nansum((SIGNALS - u) ** 2 + np.log(2 * np.pi) * ~np.isnan(SIGNALS))
    with workers(1) as pool:
        for solver in ("moments", "generic"):
            made = make_solver(solver, bound, spec, pool, dtype=np.float64)
            value, gradient = made.value_and_gradient(factors)
            assert value == pytest.approx(expected, rel=1e-9)
            kept = factors.bag[3, 1]
            ends = []
            for step in (1e-6, -1e-6):
                factors.bag[3, 1] = kept + step
                ends.append(made.value_and_gradient(factors)[0])
            factors.bag[3, 1] = kept
            assert gradient.bag[3, 1] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5)


def test_weights_of_one_are_no_weights(tmp_path: Any) -> None:
    ones = (WEIGHTS != 0).astype(float)
    options: dict[str, Any] = {"family": "gaussian", "random_state": 0, "dtype": "float64"}
    plain, weighted = (
        efemb.Embedding(2, context=efemb.Graph(ones, weights=flag), **options).fit(SIGNALS)
        for flag in (False, True)
    )
    assert_allclose(weighted.rho_, plain.rho_, rtol=1e-9)
    doubled = efemb.Embedding(2, context=efemb.Graph(2 * ones, weights=True), **options)
    doubled.fit(SIGNALS).save(tmp_path / "model")
    loaded = efemb.load(tmp_path / "model")
    assert loaded.score(SIGNALS) == doubled.score(SIGNALS)
    edges = doubled.weights()
    n, m = int(edges["label"][0]), int(edges["neighbor"][0])
    assert edges["weight"][0] == pytest.approx(2 * doubled.rho_[n] @ doubled.alpha_[m], rel=1e-5)


@pytest.mark.parametrize(
    ("context", "kind", "match"),
    [
        (efemb.Graph(-WEIGHTS, "items", weights=True), DataError, "weights >= 0"),
        (efemb.Graph(WEIGHTS, weights="yes"), InputTypeError, "weights"),  # type: ignore[arg-type]
    ],
)
def test_bad_weights_are_refused(context: Any, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        efemb.Embedding(1, family="gaussian", context=context).fit(SIGNALS)


def test_the_reverse_conditional_takes_no_weights() -> None:
    model = efemb.Embedding(
        1, family="gaussian", context=efemb.Graph(WEIGHTS, weights=True), combine="reverse"
    )
    with pytest.raises(ParameterError, match="without weights"):
        model.fit(SIGNALS)


# -- rows by their labels --------------------------------------------------------------------------

DAYS = np.array([f"day {i}" for i in range(40)])
SENSORS = ["a", "b", "c"]
WAVE = np.sin(np.arange(40)[:, None] / 3.0 + np.arange(3))


def day_before(**options: Any) -> efemb.Explicit:
    """Each sensor from the next sensor on the day before."""
    t, n = (index.ravel() for index in np.meshgrid(np.arange(1, 40), np.arange(3)))
    names = np.array(SENSORS)
    return efemb.Explicit.by_labels(DAYS[t], names[n], DAYS[t - 1], names[(n + 1) % 3], **options)


def days(first: int, last: int) -> efemb.Dataset:
    part = slice(first, last)
    return efemb.Dataset(WAVE[part], entities=SENSORS, row_labels=DAYS[part])


def fit(context: Any, data: Any) -> efemb.Embedding:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return efemb.Embedding(
            1, family="gaussian", context=context, random_state=0, max_iter=50, dtype="float64"
        ).fit(data)


def test_rows_that_the_fit_did_not_see_are_predicted(tmp_path: Any) -> None:
    model = fit(day_before(), days(0, 25))
    test = days(24, 40)
    u = model.intercept_ + np.einsum(
        "nk,tnk->tn",
        model.rho_,
        np.roll(WAVE, -1, axis=1)[24:39, :, None] * model.alpha_[[1, 2, 0]],
    )
    assert_allclose(model.conditional(test)[1:], u, rtol=1e-6)
    assert_allclose(model.conditional(test)[0], model.intercept_, rtol=1e-6)  # no day before
    model.save(tmp_path / "model")
    assert efemb.load(tmp_path / "model").score(test) == pytest.approx(model.score(test))


def test_labels_and_index_lists_are_the_same_context() -> None:
    t, n = (index.ravel() for index in np.meshgrid(np.arange(1, 40), np.arange(3)))
    order = np.argsort(t * 3 + n)
    sizes = np.r_[np.zeros(3, int), np.ones(117, int)]
    listed = efemb.Explicit(np.r_[0, np.cumsum(sizes)], ((t - 1) * 3 + (n + 1) % 3)[order])
    bag = RNG.normal(size=(3, 2))
    sums = [
        context.bind(days(0, 40)).terms(np.arange(40)).contexts(bag)
        for context in (listed, day_before())
    ]
    assert_allclose(*sums, rtol=1e-12)


def test_bad_labels_are_refused() -> None:
    with pytest.raises(DataError, match="row_labels"):
        fit(day_before(), efemb.Dataset(WAVE, entities=SENSORS))
    other = efemb.Explicit.by_labels(["day 1"], ["z"], ["day 0"], ["a"])
    with pytest.raises(DataError, match="'z' is not in the data"):
        fit(other, days(0, 40))
    itself = efemb.Explicit.by_labels(["day 1"], ["a"], ["day 1"], ["a"])
    with pytest.raises(DataError, match="own context"):
        fit(itself, days(0, 40))
    with pytest.raises(InputTypeError, match="same length"):
        fit(efemb.Explicit.by_labels(["day 1"], ["a", "b"], ["day 1"], ["a"]), days(0, 40))
    both = efemb.Explicit([0], [], edges=day_before().edges)
    with pytest.raises(ParameterError, match="not both"):
        fit(both, days(0, 40))
