"""Small data sets that the tests of the estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np

import efemb

Array = Any


def baskets(n_rows: int = 60, n_entities: int = 8, seed: int = 0) -> Array:
    """Counts; every row has at least two items."""
    X = np.random.default_rng(seed).poisson(0.7, (n_rows, n_entities)).astype(float)
    X[:, 0] += 1
    X[:, 1] += 1
    return X


def neurons(n_rows: int = 60, n_entities: int = 6, seed: int = 0) -> Array:
    """Correlated real numbers."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_entities)) + rng.normal(size=(n_rows, 1))


def data_for(model: Any) -> Array:
    """Data that suit a preset."""
    if isinstance(model, efemb.GaussianEmbedding):
        return neurons()
    X = baskets()
    return (X > 1).astype(float) if isinstance(model, efemb.BernoulliEmbedding) else X


PRESETS = (
    efemb.PoissonEmbedding,
    efemb.AdditivePoissonEmbedding,
    efemb.BernoulliEmbedding,
    efemb.CategoricalEmbedding,
    efemb.GaussianEmbedding,
    efemb.NonnegativeGaussianEmbedding,
)
