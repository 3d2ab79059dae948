"""Numbers far from zero or far from one: single precision gives what double precision gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import efemb
from efemb.data.dataset import Dataset
from efemb.engine.moments import precision


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


@pytest.mark.parametrize("missing", [False, True])
def test_double_precision_begins_at_thirty_deviations(missing: bool) -> None:
    noise = recording()[:, 0]
    noise = (noise - noise.mean()) / noise.std()
    for mean, dtype in ((29.0, np.float32), (-31.0, np.float64)):
        X = np.column_stack([noise, noise + mean])
        if missing:
            X = np.vstack([X, np.full((9, 2), np.nan)])
        assert precision(Dataset(X), "float32") == dtype
        assert precision(Dataset(X), "float64") == np.float64
