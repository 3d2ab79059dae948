"""Small fitted models and data with entities they do not know."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

import efemb

LABELS = list("abcdefghi")
N_KNOWN = 6


def fit(model: Any, data: Any) -> Any:
    """Fitted, whether it converged or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(data)


def counts(n_rows: int = 160, n_entities: int = 9, seed: int = 0, *, binary: bool = False) -> Any:
    """Rows of different sizes around two tastes."""
    rng = np.random.default_rng(seed)
    taste = rng.random((n_rows, 1)) < 0.5
    liked = np.arange(n_entities) % 2 == 0
    rate = np.where(taste == liked, 0.9, 0.25) * rng.uniform(0.5, 1.5, (n_rows, 1))
    X = rng.poisson(rate).astype(float)
    X[0] = 0.0
    X[0, -1] = 2.0  # a new entity alone in its row
    X[~X.any(axis=1), 0] = 1.0  # a fit leaves out empty rows
    return np.minimum(X, 1.0) if binary else X


def labeled(X: Any, labels: list[str] = LABELS, **more: Any) -> efemb.Dataset:
    return efemb.Dataset(X, entities=labels[: X.shape[1]], **more)


def known(data: efemb.Dataset) -> efemb.Dataset:
    return data.take_entities(slice(0, N_KNOWN))


def basket_model(family: Any = "poisson", *, X: Any = None, **options: Any) -> Any:
    """An embedding of the first six entities, in double precision."""
    binary = family == "bernoulli"
    X = counts(binary=binary) if X is None else X
    settings: dict[str, Any] = {
        "family": family,
        "dtype": "float64",
        "random_state": 0,
        "max_iter": 30,
        "allow_real": True,
    }
    model = efemb.Embedding(2, **{**settings, **options})
    return fit(model, known(labeled(sparse.csr_array(X))))


def signals(n_rows: int = 120, n_entities: int = 9, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n_rows, 3))
    return common @ rng.normal(size=(3, n_entities)) + 0.4 * rng.normal(size=(n_rows, n_entities))


def positions(n_entities: int = 9, seed: int = 3) -> Any:
    return np.random.default_rng(seed).normal(size=(n_entities, 2))
