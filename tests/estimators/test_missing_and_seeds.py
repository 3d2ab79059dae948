"""Missing observations, random states and precision."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import efemb
from estimators.samples import PRESETS, baskets, data_for, neurons

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SOLVERS = ["moments", "generic"]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_missing_row_is_as_if_it_were_not_there(solver: str) -> None:
    X = neurons()
    holes = np.insert(X, [10, 40], np.nan, axis=0)
    model = efemb.GaussianEmbedding(
        2,
        context=efemb.Graph(1 - np.eye(6)),
        solver=solver,
        center=False,  # a centered intercept starts where its gradient is rounding alone
        early_stopping=False,
        batch_size=None,
        dtype="float64",
        random_state=0,
        max_iter=10,
    )
    whole, gaps = clone(model).fit(X), clone(model).fit(holes)
    for one, other in zip(whole.parameters_.arrays(), gaps.parameters_.arrays(), strict=True):
        assert_allclose(one, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("solver", [*SOLVERS, "rows"])
def test_a_missing_cell_is_neither_predicted_nor_context(solver: str) -> None:
    """The objective loses its term, and its value in all other terms, and nothing else."""
    X = neurons(8)
    X[2, 1] = np.nan
    context = efemb.Basket("items") if solver == "rows" else efemb.Graph(1 - np.eye(6), "items")
    model = efemb.Embedding(2, family="gaussian", context=context, solver=solver, prior=None)
    rng = np.random.default_rng(1)
    rho, alpha, b = rng.normal(size=(6, 2)), rng.normal(size=(6, 2)), rng.normal(size=6)
    expected = 0.0
    for t in range(8):
        for n in range(6):
            members = [m for m in range(6) if m != n and not np.isnan(X[t, m])]
            if np.isnan(X[t, n]):
                continue
            s = sum(X[t, m] * alpha[m] for m in members) / len(members)
            expected += -0.5 * (X[t, n] - rho[n] @ s - b[n]) ** 2 - 0.5 * np.log(2 * np.pi)
    value, gradient = model.objective(X, efemb.model.parameters.Parameters(rho, alpha, b))
    assert value == pytest.approx(expected, rel=1e-10)
    assert all(np.isfinite(array).all() for array in gradient.arrays())


@pytest.mark.parametrize("preset", [efemb.GaussianEmbedding, efemb.NonnegativeGaussianEmbedding])
def test_models_of_real_numbers_fit_around_the_gaps(preset: Any) -> None:
    X = neurons(120)
    holes = np.random.default_rng(1).random(X.shape) < 0.2
    model = preset(2, random_state=0).fit(np.where(holes, np.nan, X))
    means = model.conditional(np.where(holes, np.nan, X))
    assert np.isfinite(means).all()
    # The gaps are filled better than by the columns' means.
    seen = np.nanmean(np.where(holes, np.nan, X), axis=0)
    assert np.mean((means - X)[holes] ** 2) < 0.8 * np.mean((seen - X)[holes] ** 2)


def test_a_vector_with_any_missing_number_is_missing_as_a_whole() -> None:
    X = np.stack([neurons(20), neurons(20, seed=1)], axis=2)
    part, whole = X.copy(), X.copy()
    part[4, 2, 0] = np.nan
    whole[4, 2] = np.nan
    model = efemb.GaussianEmbedding(2, context=efemb.Graph(1 - np.eye(6)), prior=None)
    rng = np.random.default_rng(1)
    at = efemb.model.parameters.Parameters(
        rng.normal(size=(6, 2, 2)), rng.normal(size=(6, 2, 2)), rng.normal(size=(6, 2))
    )
    assert model.objective(part, at)[0] == model.objective(whole, at)[0]
    assert model.objective(part, at)[0] != model.objective(X, at)[0]


@pytest.mark.parametrize("preset", PRESETS)
def test_the_same_seed_gives_the_same_bits(preset: Any) -> None:
    model = preset(2, max_iter=4)
    X = data_for(model)
    ints = [clone(model).set_params(random_state=5).fit(X).embedding_ for _ in range(2)]
    assert_array_equal(*ints)
    states = [
        clone(model).set_params(random_state=np.random.RandomState(5)).fit(X).embedding_
        for _ in range(2)
    ]
    assert_array_equal(*states)
    generators = [
        model.set_params(random_state=np.random.default_rng(5)).fit(X).embedding_ for _ in range(2)
    ]
    assert_array_equal(*generators)
    other = clone(model).set_params(random_state=6).fit(X).embedding_
    assert (other != ints[0]).any()


def test_a_state_moves_on_and_an_int_does_not() -> None:
    X = baskets()
    for state, same in ((3, True), (np.random.RandomState(3), False), (_generator(), False)):
        model = efemb.PoissonEmbedding(2, max_iter=2, random_state=state)
        first, second = model.fit(X).embedding_, model.fit(X).embedding_
        assert np.array_equal(first, second) == same


def _generator() -> np.random.Generator:
    return np.random.default_rng(3)


def test_no_state_is_a_new_start_each_time() -> None:
    model = efemb.PoissonEmbedding(2, max_iter=2)
    assert (model.fit(baskets()).embedding_ != model.fit(baskets()).embedding_).any()


@pytest.mark.parametrize("state", ["zero", 1.5, True, -1])
def test_a_random_state_that_cannot_be_is_refused(state: Any) -> None:
    with pytest.raises(efemb.EfembError, match="random_state"):
        efemb.PoissonEmbedding(2, random_state=state).fit(baskets())


def test_the_global_state_is_not_touched() -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    efemb.PoissonEmbedding(2, max_iter=2).fit(baskets())
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parameters_have_the_precision_asked_for(preset: Any, dtype: str) -> None:
    model = preset(2, max_iter=3, random_state=0, dtype=dtype)
    model.fit(data_for(model))
    assert {array.dtype for array in model.parameters_.arrays()} == {np.dtype(dtype)}


@pytest.mark.parametrize("preset", PRESETS)
def test_single_precision_follows_double(preset: Any) -> None:
    options: dict[str, Any] = {"max_iter": 5, "random_state": 0, "early_stopping": False}
    single, double = (preset(2, dtype=dtype, **options) for dtype in ("float32", "float64"))
    X = data_for(single)
    assert_allclose(single.fit(X).embedding_, double.fit(X).embedding_, rtol=0.01, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float16", "int32", "complex128", "nonsense", 3])
def test_other_precisions_are_refused(dtype: Any) -> None:
    with pytest.raises(efemb.EfembError, match="dtype") as caught:
        efemb.PoissonEmbedding(2, dtype=dtype).fit(baskets())
    assert "float32" in str(caught.value)


FAR = 5.0 + np.random.default_rng(0).normal(size=(40, 6))
GAPS = np.where(np.random.default_rng(1).random(FAR.shape) < 0.3, np.nan, FAR)
UNCENTERED = {
    "on request": efemb.GaussianEmbedding(2, context=efemb.Neighbors(3), center=False, max_iter=3),
    "by default": efemb.Embedding(2, family="gaussian", context=efemb.Neighbors(3), max_iter=3),
    "in rows": efemb.GaussianEmbedding(2, context=efemb.Basket("items"), max_iter=3),
}


@pytest.mark.parametrize("name", UNCENTERED)
def test_missing_members_of_data_far_from_zero_are_warned_about(name: str) -> None:
    model = UNCENTERED[name].set_params(random_state=0)
    way_out = "subtract the mean" if name == "in rows" else "pass center=True, or subtract"
    with pytest.warns(
        UserWarning, match=rf"biases predictions.*6 of the 6 columns.*first: 0\); {way_out}"
    ):
        model.fit(GAPS)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(FAR)  # nothing is missing
        model.fit(GAPS - 5.0)  # 0 is the mean
        if name != "in rows":
            model.set_params(center=True).fit(GAPS)
