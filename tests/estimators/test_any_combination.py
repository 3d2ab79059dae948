"""Any combination of ingredients is refused by a typed error, or fits, predicts and continues."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

import efemb

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
N_SETTINGS = 400
N_ROWS, N_ENTITIES = 24, 6
HALVES = np.arange(N_ENTITIES) // 2
REAL = ("gaussian", "learned")


def a_part(draw: random.Random, family: str) -> Any:
    scales = ["none", "items"] if family in REAL else ["none", "items", "total"]
    how: dict[str, Any] = {"scale": draw.choice(scales), "binary": draw.random() < 0.2}
    kind = draw.choice(
        ["basket"] * 5 + ["neighbors"] * 3 + ["graph", "lagged", "lagged", "explicit"]
    )
    if kind == "basket":
        return efemb.Basket(**how)
    if kind == "neighbors":
        return efemb.Neighbors(draw.choice([None, 2]), **how)
    if kind == "graph":
        return efemb.Graph(np.roll(np.eye(N_ENTITIES), 1, axis=1), **how)
    if kind == "lagged":
        of = draw.choice([None, efemb.Neighbors(1)])
        return efemb.Lagged((1, -2), of=of, shared=draw.random() < 0.5, **how)
    return efemb.Explicit(np.zeros(N_ROWS * N_ENTITIES + 1, int), [], **how)


def a_prior(draw: random.Random) -> Any:
    return draw.choice([None, efemb.Normal(0.5), efemb.HalfNormal(), efemb.LogNormal(0.1, -2)])


def settings(draw: random.Random, family: str) -> dict[str, Any]:
    context = a_part(draw, family)
    if draw.random() < 0.25:
        context = context + a_part(draw, family)
    prior = a_prior(draw)
    shared = [efemb.Shared(HALVES), efemb.Shared(None, HALVES)]
    every = ["all"] * 4 + [efemb.All(0.1), efemb.All(0.0)]
    drawn = [efemb.Sampled(2), efemb.Sampled(100, "sqrt"), efemb.NegativeSampling(3)]
    return {
        "context": context,
        "family": efemb.Gaussian("learned") if family == "learned" else family,
        "link": draw.choice(["identity"] * 6 + ["log", "softplus", "log-softplus"]),
        "prior": prior if draw.random() < 0.7 else (prior, a_prior(draw)),
        "combine": draw.choice(["linear"] * 4 + ["reverse"]),
        "structure": draw.choice(["per-entity"] * 5 + ["tied", *shared]),
        "zeros": draw.choice(every + drawn),
        "intercept": draw.random() < 0.7,
        "optimizer": draw.choice(["auto", "auto", "adam", "lbfgs"]),
        "batch_size": draw.choice(["auto", "auto", 5]),
        "early_stopping": draw.random() < 0.6,
        "dtype": draw.choice(["float32", "float64"]),
        "max_iter": draw.choice([1, 12]),
        "n_jobs": draw.choice([1, 2]),
    }


def values(draw: random.Random, family: str, rng: np.random.Generator) -> Any:
    X = rng.poisson(0.6, (N_ROWS, N_ENTITIES)).astype(float)
    if family == "bernoulli":
        X = np.minimum(X, 1)
    if family in REAL:
        X = rng.normal(size=X.shape) * draw.choice([1.0, 1e-3, 1e3]) * (rng.random(X.shape) < 0.8)
        if draw.random() < 0.3:
            X[rng.random(X.shape) < 0.2] = np.nan
    elif draw.random() < 0.4:
        return sparse.csr_array(X)
    if draw.random() < 0.1 and family != "categorical":
        X = np.stack([X, np.roll(X, 1, axis=0)], axis=2)
    return X


FAMILIES = ["poisson", "bernoulli", "gaussian", "learned", "negative-binomial", "categorical"]


def task(seed: int) -> tuple[efemb.Embedding, efemb.Dataset, Any]:
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    family = draw.choice(FAMILIES)
    model = efemb.Embedding(2, random_state=seed, **settings(draw, family))
    recordings = np.repeat([0, 1], N_ROWS // 2) if draw.random() < 0.5 else None
    data = efemb.Dataset(values(draw, family, rng), recordings=recordings)
    weight = rng.uniform(0, 2, N_ROWS) if draw.random() < 0.3 else None
    return model, data, weight


def fit(seed: int) -> tuple[Any, Any] | None:
    model, data, weight = task(seed)
    try:
        return model.fit(data, sample_weight=weight), data
    except (efemb.ParameterError, efemb.DivergenceError):
        return None


@pytest.mark.parametrize("seed", range(N_SETTINGS))
def test_what_is_not_refused_fits_predicts_and_continues(seed: int) -> None:
    done = fit(seed)
    if done is None:
        return  # refused with a typed error; the test below sees to it that most are not
    model, data = done
    assert all(np.isfinite(array).all() for array in model.parameters_.arrays())
    spec = model._spec()
    assert (model.embedding_ > 0).all() or not spec.positive_rho
    assert (model.context_ > 0).all() or not spec.positive_alpha
    assert model.intercept_ is None or (model.intercept_ > 0).all() or not spec.positive_intercept
    assert np.isfinite(model.transform(data)).all()
    value, gradient = model.objective(data, model.parameters_)
    assert np.isfinite(value)
    assert all(np.isfinite(array).all() for array in gradient.arrays())
    if model.combine == "linear":
        assert np.isfinite(model.conditional(data)).all()
        assert np.isfinite(model.score(data))
        cells = (np.arange(N_ENTITIES), np.arange(N_ENTITIES))
        seen = np.ones(N_ENTITIES, bool) if data.is_sparse else ~np.isnan(data.values[cells])
        sums = model.context_sums(data, cells)
        assert_array_equal(np.isfinite(sums).all(axis=1), seen.reshape(N_ENTITIES, -1).all(axis=1))
        assert model.fitted().score(data) == pytest.approx(model.score(data))
    model.partial_fit(data)
    assert all(np.isfinite(array).all() for array in model.parameters_.arrays())


def test_enough_of_the_settings_are_valid() -> None:
    fitted = [seed for seed in range(0, N_SETTINGS, 4) if fit(seed) is not None]
    assert len(fitted) > N_SETTINGS / 4 / 4
