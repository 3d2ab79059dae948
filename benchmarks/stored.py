"""A model of any size without fitting it: what storage, queries and cold starts are timed on."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from benchmarks import THREADS


def stored_model(n_items: int, k: int) -> Any:
    """A FittedEmbedding of random vectors with labels "item 0", "item 1", ..."""
    import efemb
    from efemb.model.spec import Spec

    rng = np.random.default_rng(0)
    rho, alpha = rng.standard_normal((2, n_items, k), dtype=np.float32)
    spec = Spec.resolve(
        context="basket", family="poisson", combine="linear", prior=None, zeros="all"
    )
    labels = efemb.Vocabulary(f"item {i}" for i in range(n_items))
    intercept = np.zeros(n_items, dtype=np.float32)
    return efemb.fitted.FittedEmbedding(
        efemb.model.parameters.Parameters(rho, alpha, intercept), spec, labels
    )


def describe(n_items: int, k: int) -> dict[str, Any]:
    """Shape of a model's vectors and the threads its process may use."""
    shape = list(stored_model(n_items, k).parameters.rho.shape)
    return {"shape": shape, "threads": [os.environ[name] for name in THREADS]}
