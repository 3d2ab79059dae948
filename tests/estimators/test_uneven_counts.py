"""A count far above the rest of its row leaves its context without loss of precision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import efemb
from efemb.engine.precision import working_precision

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
RNG = np.random.default_rng(0)
BIG = 1e7
COUNTS = RNG.poisson(1.0, (80, 5)).astype(float)
ROWS = np.array([[BIG, 1.0, 0.0, 2.0, 0.0], [1.0, 1.0, 2.0, 0.0, 0.0]])
ALONE = np.array([[BIG, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, BIG, 0.0, 0.0]])
DIVISOR = {"total": 3.0, "items": 2.0}


@pytest.fixture(scope="module", params=DIVISOR)
def model(request: pytest.FixtureRequest) -> Any:
    context = efemb.Basket(scale=request.param)
    return efemb.PoissonEmbedding(3, context=context, random_state=0, max_iter=5).fit(COUNTS)


def left(model: Any) -> Any:
    """s / d of the large count: the two other entities of its row, in double precision."""
    alpha = model.context_.astype(np.float64)
    return (alpha[1] + 2.0 * alpha[3]) / DIVISOR[model.context.scale]


def test_predictions_of_a_large_count_see_the_rest_of_its_row(model: Any) -> None:
    u = model.embedding_ @ left(model) + model.intercept_
    assert_allclose(model.context_sums(ROWS, ([0], [0]))[0], left(model), rtol=1e-5, atol=1e-7)
    assert_allclose(model.conditional(ROWS)[0, 0], np.exp(u[0]), rtol=1e-5)
    ((_, found),) = model.log_means(ROWS, [0], [0])
    assert_allclose(found[0], u, rtol=1e-5, atol=1e-5)


def test_the_score_of_a_large_count_is_its_share_given_the_rest(model: Any) -> None:
    u = model.embedding_ @ left(model) + model.intercept_
    share = u[0] - np.log(np.exp(u).sum())
    found = efemb.evaluation.leave_one_out(model, ROWS)
    assert found.x[0] == BIG
    assert_allclose(found.log_share[0], share, rtol=1e-5)


@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("large", [ROWS, ALONE], ids=["among others", "alone"])
@pytest.mark.parametrize("preset", [efemb.PoissonEmbedding, efemb.AdditivePoissonEmbedding])
def test_a_fit_in_single_precision_is_that_in_double(preset: Any, large: Any, make: Any) -> None:
    data = make(np.vstack([large, COUNTS]))
    options = {"max_iter": 40, "early_stopping": False, "random_state": 0}
    short, exact = (preset(2, dtype=d, **options).fit(data) for d in ("float32", "float64"))
    assert short.embedding_.dtype == np.float32
    value, _ = short.objective(data, short.parameters_)
    assert_allclose(value, exact.objective(data, exact.parameters_)[0], rtol=1e-5)
    assert_allclose(short.history_[-1]["objective"], exact.history_[-1]["objective"], rtol=1e-6)


@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_a_large_count_that_is_alone_needs_double_precision(make: Any) -> None:
    """Rounding errors would become its context, also if all counts are equal."""
    spec = efemb.PoissonEmbedding(2)._spec()
    for X in (ALONE, np.vstack([ALONE, COUNTS])):
        found = working_precision(efemb.Dataset(make(X)), spec, "rows", "float32")
        assert found == np.float64


def test_fold_in_of_a_large_count_is_that_in_double() -> None:
    large = np.vstack([ROWS[:, ::-1], COUNTS])  # the last entity is the new one
    options = {"max_iter": 20, "early_stopping": False, "random_state": 0, "dtype": "float64"}
    exact = efemb.PoissonEmbedding(2, **options).fit(COUNTS[:, :4]).fitted()
    short = replace(exact, parameters=exact.parameters.astype("float32"))
    found, plain = (one.fold_in(efemb.Dataset(large)).parameters for one in (short, exact))
    assert found.rho.dtype == found.alpha.dtype == np.float32
    assert_allclose(found.rho[4], plain.rho[4], rtol=1e-2)
    assert_allclose(found.alpha[4], plain.alpha[4], rtol=1e-2)
    assert_allclose(found.intercept[4], plain.intercept[4], rtol=1e-2)
