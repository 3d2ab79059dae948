"""Small models with known vectors, and every picture with something to draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import efemb
from efemb import plots
from efemb.fitted.embedding import FittedEmbedding
from efemb.model.contexts.bound.entities import Lists
from efemb.model.parameters import Parameters
from efemb.model.spec import Spec
from efemb.table import Table

HISTORY = [
    {"iteration": 1, "objective": -30.0, "validation": -3.0, "seconds": 0.5},
    {"iteration": 2, "objective": -20.0, "validation": None, "seconds": 1.0},
    {"iteration": 3, "objective": -15.0, "validation": -2.0, "seconds": 1.5},
    {"iteration": 4, "objective": -12.0, "validation": -2.5, "seconds": 2.0},
]


def baskets(n: int = 40, k: int = 4, seed: int = 0, **changes: Any) -> FittedEmbedding:
    """A model of n items whose names hold what a formula or a legend would stumble over."""
    rng = np.random.default_rng(seed)
    labels = [f"item {i} at $3 or $4" if i % 2 else f"_item_{i}" for i in range(n)]
    parts: dict[str, Any] = {
        "parameters": Parameters(rng.normal(size=(n, k)), rng.normal(size=(n, k)), np.zeros(n)),
        "spec": Spec.resolve(context="basket", family="poisson"),
        "vocabulary": efemb.Vocabulary(labels, counts=rng.permutation(n) + 1.0),
        "history": HISTORY,
    }
    return FittedEmbedding(**{**parts, **changes})


def neurons(n: int = 60, c: int = 5, k: int = 3, p: int = 3, **changes: Any) -> FittedEmbedding:
    """A model of n neurons at random places, each with its c nearest neighbors."""
    rng = np.random.default_rng(1)
    positions = rng.uniform(0, 100, size=(n, p))
    distance = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    members = np.argsort(distance, axis=1)[:, 1 : c + 1].ravel()
    none = np.zeros(n * c, dtype=np.int64)
    parts: dict[str, Any] = {
        "parameters": Parameters(rng.normal(size=(n, k)), rng.normal(size=(n, k))),
        "spec": Spec.resolve(context=efemb.Neighbors(c), family="gaussian", intercept=False),
        "positions": positions,
        "lists": (Lists(np.arange(n + 1) * c, members, none, none),),
        "history": HISTORY,
    }
    return FittedEmbedding(**{**parts, **changes})


def scores() -> Table:
    return Table(
        {
            "model": ["p-emb", "p-emb", "HPF", "HPF", "popularity"],
            "k": [100, 20, 20, 100, np.nan],
            "score": [-5.6, -5.7, -5.8, -5.9, -6.0],
            "standard_error": [0.01, 0.02, 0.03, 0.04, np.nan],
        }
    )


def paths() -> Table:
    return Table(
        {
            "label": ["milk", "milk", "milk", "tea", "tea", "tea"],
            "at": [1, 2, 3, 1, 2, 3],
            "distance": [0.0, 0.5, 0.7, 0.0, 0.1, 0.1],
            "count": [4, 0, 5, 3, 2, 6],
        }
    )


def frequencies() -> Table:
    return Table(
        {
            "from": [0.0, 0.001, 0.01, 0.1],
            "predicted": [0.0004, 0.004, 0.03, 0.2],
            "observed": [0.0, 0.005, 0.025, 0.22],
            "n": [3000, 2000, 400, 50],
        }
    )


def changes() -> Table:
    return Table(
        {
            "at": np.array([7, 6, 2], dtype=object),
            "statistic": [30.0, 9.0, 2.0],
            "p_value": [0.01, 0.04, 0.6],
        }
    )


PICTURES: dict[str, Callable[..., Any]] = {
    "answer": lambda **more: plots.answer(baskets().similar("_item_0"), 5, **more),
    "change_points": lambda **more: plots.change_points(changes(), **more),
    "embedding_map": lambda **more: plots.embedding_map(baskets(), **more),
    "history": lambda **more: plots.history(baskets(), **more),
    "relations": lambda **more: plots.relations(baskets(), "_item_0", 4, **more),
    "reliability": lambda **more: plots.reliability(frequencies(), **more),
    "score_curve": lambda **more: plots.score_curve(scores(), **more),
    "similarity": lambda **more: plots.similarity(baskets(), 12, **more),
    "spatial_weights": lambda **more: plots.spatial_weights(neurons(), **more),
    "topics": lambda **more: plots.topics(baskets(), n=5, **more),
    "trajectory": lambda **more: plots.trajectory(paths(), **more),
}

# Pictures of one model, as functions of the model.
OF_A_MODEL: dict[str, Callable[[Any], Any]] = {
    "embedding_map": plots.embedding_map,
    "history": plots.history,
    "relations": lambda model: plots.relations(model, "milk"),
    "similarity": plots.similarity,
    "spatial_weights": plots.spatial_weights,
    "topics": plots.topics,
}
