"""Data and models for tests of whole fits."""

from __future__ import annotations

from typing import Any

import numpy as np

import efemb

Array = Any


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
