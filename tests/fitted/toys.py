"""Fitted models with parameters of our own, whose right answers are known."""

from __future__ import annotations

from typing import Any

import numpy as np

import efemb
from efemb.fitted.embedding import FittedEmbedding
from efemb.model.contexts.bound.entities import Lists
from efemb.model.parameters import Parameters
from efemb.model.spec import Spec

GOODS = ["tea", "coffee", "milk", "sugar", "soap", "towel"]
# Row n, column m: what m in the basket does to n. Tea and coffee answer alike to everything else
# and drive each other out; soap and towel go together, and with nothing to eat or drink.
EFFECTS = np.array(
    [
        [0.0, -3.0, 2.0, 2.5, -1.0, -1.2],
        [-3.5, 0.0, 2.0, 2.4, -1.1, -1.0],
        [2.0, 1.9, 0.0, 1.0, -1.5, -1.4],
        [2.2, 2.1, 1.0, 0.0, -1.3, -1.6],
        [-1.0, -1.1, -1.6, -1.5, 0.0, 2.0],
        [-1.2, -1.0, -1.4, -1.3, 2.3, 0.0],
    ]
)


def model(rho: Any, alpha: Any, intercept: Any = None, **options: Any) -> FittedEmbedding:
    """A model of given vectors; `options` are ingredients, `labels`, `counts` or `lists`."""
    labels, counts = options.pop("labels", None), options.pop("counts", None)
    lists, position = options.pop("lists", None), options.pop("position", None)
    defaults = {"context": efemb.Basket("total"), "family": "poisson"}
    spec = Spec.resolve(**{**defaults, "intercept": intercept is not None, **options})
    arrays = [np.asarray(one, dtype=float) for one in (rho, alpha)]
    known = None if labels is None else efemb.Vocabulary(labels, counts=counts)
    parameters = Parameters(*arrays, None if intercept is None else np.asarray(intercept), position)
    return FittedEmbedding(parameters, spec, known, lists=lists)


def goods(**options: Any) -> FittedEmbedding:
    """The model whose inner products are EFFECTS."""
    left, size, right = np.linalg.svd(EFFECTS)
    return model(left * size, right.T, **{"labels": GOODS, **options})


def checkerboard(size: int = 10, dtype: Any = np.float64, **options: Any) -> FittedEmbedding:
    """Even entities go with even ones, odd with odd; the larger the number, the more so."""
    n = np.arange(size)
    rho = np.zeros((size, 2))
    rho[n, n % 2] = 1.0 + n
    alpha = np.zeros((size, 2))
    alpha[n, n % 2], alpha[n, 1 - n % 2] = 1.0, -1.0
    return model(rho.astype(dtype), alpha.astype(dtype), **options)


def random_model(seed: int, size: int = 9, k: int = 3, **options: Any) -> FittedEmbedding:
    """Factors drawn at random, with labels and counts."""
    rng = np.random.default_rng(seed)
    rho, alpha = rng.normal(size=(2, size, k))
    named = {"labels": [f"item {i}" for i in range(size)], "counts": rng.integers(1, 50, size)}
    return model(rho, alpha, rng.normal(size=size), **{**named, **options})


def neighbor_lists(ptr: Any, members: Any, **options: Any) -> Lists:
    """Lists in the same row; `offset` and `slot` may be given."""
    index = np.asarray(members)
    none = np.zeros(len(index), dtype=np.int64)
    extra = {"offset": none, "slot": none, **options}
    return Lists(np.asarray(ptr), index, **extra)


def baskets(seed: int = 0, n_rows: int = 200, size: int = 6) -> Any:
    """Counts in which the first two entities come together more often than by chance."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.5, (n_rows, size)).astype(float)
    X[: n_rows // 4, :2] += 1
    return X
