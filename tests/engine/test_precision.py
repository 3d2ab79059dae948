"""Numbers far from zero or far from one: single precision gives what double precision gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import efemb
from efemb.data.dataset import Dataset
from efemb.engine.precision import working_precision


def recording(seed: int = 0) -> Any:
    """Twelve traces of three sources, about zero and of deviation near one."""
    rng = np.random.default_rng(seed)
    sources = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 12)) / 2
    return sources + 0.3 * rng.normal(size=(200, 12))


def model(**options: Any) -> Any:
    settings = {"random_state": 0, "solver": "moments", **options}
    return efemb.GaussianEmbedding(3, context=efemb.Neighbors(4), **settings)


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("mean", [20.0, 100.0, 1000.0, -30_000.0])
def test_a_free_intercept_takes_up_any_mean(mean: float, early_stopping: bool) -> None:
    """The objective of X + c is that of X with other intercepts, so the fit is the same."""
    X = recording()
    exact = model(dtype="float64", early_stopping=early_stopping).fit(X)
    moved = model(early_stopping=early_stopping).fit(X + mean)
    assert moved.embedding_.dtype == np.float32
    np.testing.assert_allclose(moved.score(X + mean), exact.score(X), rtol=1e-4)
    found = moved.conditional(X + mean) - mean
    np.testing.assert_allclose(found, exact.conditional(X), atol=0.02)


@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("missing", [False, True])
def test_double_precision_begins_at_thirty_deviations(missing: bool, make: Any) -> None:
    noise = recording()[:, 0]
    noise = (noise - noise.mean()) / noise.std()
    for mean, dtype in ((29.0, np.float32), (-31.0, np.float64)):
        X = np.column_stack([noise, noise + mean])
        if missing and make is np.array:
            X = np.vstack([X, np.full((9, 2), np.nan)])
        spec, data = model()._spec(), Dataset(make(X))
        assert working_precision(data, spec, "moments", "float32") == dtype
        assert working_precision(data, spec, "generic", "float32") == np.float32
        assert working_precision(data, spec, "moments", "float64") == np.float64


WAYS: dict[str, dict[str, Any]] = {
    "moments": {"solver": "moments"},
    "moments by Adagrad": {"solver": "moments", "optimizer": efemb.engine.optimizers.Adagrad()},
    "moments by Adam": {"solver": "moments", "optimizer": efemb.engine.optimizers.Adam()},
    "generic": {"solver": "generic"},
    "generic by L-BFGS": {"solver": "generic", "optimizer": efemb.engine.optimizers.LBFGS()},
    "rows": {"solver": "rows", "context": efemb.Basket(scale="none")},
    "positive": {"solver": "moments", "prior": efemb.HalfNormal(1.0)},
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [1e5, 1e8, 1e11])
@pytest.mark.parametrize("way", WAYS)
def test_values_of_any_size_are_fitted_as_in_double_precision(way: str, scale: float) -> None:
    X = scale * recording()
    options = {"context": efemb.Neighbors(4), "max_iter": 15, "random_state": 0, **WAYS[way]}
    scores = [
        efemb.GaussianEmbedding(3, dtype=dtype, **options).fit(X).score(X)
        for dtype in ("float32", "float64")
    ]
    assert scores[0] == pytest.approx(scores[1], rel=0.02)


def test_counts_need_no_double_precision() -> None:
    spec = efemb.PoissonEmbedding(2)._spec()
    counts = Dataset(np.full((5, 3), 1e9))
    assert working_precision(counts, spec, "rows", "float32") == np.float32


def test_a_gradient_too_large_for_its_squares_is_an_error() -> None:
    """Here the variance is too small, which the data do not show."""
    tiny = model(family=efemb.Gaussian(1e-22))
    with pytest.raises(efemb.DivergenceError, match=r"float32.*dtype='float64'"):
        tiny.fit(recording())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("unit", [1e-13, 1e-7, 1e-3, 1e6])
def test_a_learned_variance_has_the_unit_of_the_data(unit: float, dtype: str) -> None:
    """Densities of c x are those of x over c: rho, alpha and so the fit are the same."""
    X, learned = recording(), efemb.Gaussian("learned")
    plain, other = (
        model(family=learned, dtype=dtype, max_iter=40, early_stopping=False).fit(c * X)
        for c in (1.0, unit)
    )
    rough = 1e-3 if dtype == "float32" else 1e-6
    assert other.family_.sigma2 == pytest.approx(unit**2 * plain.family_.sigma2, rel=rough)
    assert other.score(unit * X) + np.log(unit) == pytest.approx(plain.score(X), abs=rough)
    value, _ = other.objective(unit * X, other.parameters_)
    again, _ = plain.objective(X, plain.parameters_)
    assert value + X.size * np.log(unit) == pytest.approx(again, rel=rough)
