"""Data and models for tests of whole fits."""

from __future__ import annotations

from typing import Any

import numpy as np

import efemb

Array = Any


def baskets(n_rows: int = 60, n_entities: int = 8, seed: int = 0) -> Array:
    X = np.random.default_rng(seed).poisson(0.7, (n_rows, n_entities)).astype(float)
    X[:, 0] += 1
    X[:, 1] += 1
    return X


def neurons(n_rows: int = 60, n_entities: int = 6, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_entities)) + rng.normal(size=(n_rows, 1))


def held_out(X: Array, seed: int = 0) -> tuple[Array, Array]:
    """Training rows, and entries of the same rows taken from them."""
    cells = (X > 0) & (np.random.default_rng(seed).random(X.shape) < 0.15)
    cells[:, :2] = False  # every row keeps a context
    return np.where(cells, 0.0, X), np.where(cells, X, 0.0)


PRESETS: dict[str, Any] = {
    "p-emb": efemb.PoissonEmbedding,
    "ap-emb": efemb.AdditivePoissonEmbedding,
    "categorical": efemb.CategoricalEmbedding,
}
