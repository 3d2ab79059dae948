"""A sample of every shipped structure, one of a user's own, and the row columns that they need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import efemb
from efemb.errors import ParameterError
from efemb.model.priors import Normal
from efemb.model.structures import PerEntity, Structure, StructureArray
from efemb.model.structures.dynamic import Dynamic
from efemb.model.structures.grouped import Grouped

Array = Any


def rows_of(n_rows: int) -> dict[str, Any]:
    """Row columns for any number of rows."""
    rng = np.random.default_rng(0)
    shop = rng.choice(np.array(["east", "west", "north", None], dtype=object), n_rows)
    return {"shop": shop, "week": np.sort(rng.integers(0, 5, n_rows))}


def features_of(n_entities: int) -> dict[str, Any]:
    """Entity features for any number of entities above two."""
    rng = np.random.default_rng(1)
    kind = np.array(["a", "b", "c", None], dtype=object)[np.arange(n_entities) % 4]
    size = np.where(rng.random(n_entities) < 0.2, np.nan, rng.normal(5.0, 2.0, n_entities))
    return {"part": np.arange(n_entities) % 2 == 0, "kind": kind, "size": size}


class OwnIntercepts(PerEntity):
    """A structure outside of the package: intercepts of three shops."""

    def __init__(self, column: str = "shop") -> None:
        self.column = column

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def labels(self) -> list[str]:
        return ["east", "north", "west"]

    def code_of(self, label: Any) -> int:
        if label not in self.labels:
            raise ParameterError(f"{label!r} is not a shop")
        return self.labels.index(label)

    def codes(self, data: efemb.Dataset) -> Array:
        shops = data.rows[self.column]
        return np.array([self.labels.index(s) if s in self.labels else -1 for s in shops])

    def arrays(self, n_entities: int, k: int, prior: Any) -> tuple[StructureArray, ...]:
        return (StructureArray("shift", (3, n_entities), Normal(1.0)),)

    def spread_groups(
        self, arrays: Any, target: Array, intercept: Array, groups: Array
    ) -> tuple[Array, Array]:
        shape = (len(groups), *target.shape)
        return np.broadcast_to(target, shape), intercept + arrays["shift"][groups]

    def collect_groups(
        self, arrays: Any, target: Array, groups: Array, d_target: Array, d_intercept: Array
    ) -> tuple[dict[str, Array], Array, Array]:
        shift = np.zeros_like(arrays["shift"])
        shift[groups] = d_intercept
        return {"shift": shift}, d_target.sum(axis=0), d_intercept.sum(axis=0)


STRUCTURES: dict[str, Callable[[], Structure]] = {
    "per-entity": efemb.PerEntity,
    "tied": efemb.Tied,
    "dynamic": lambda: Dynamic("week", precision=4.0),
    "dynamic, contexts": lambda: Dynamic("week", precision=4.0, contexts=True),
    "grouped": lambda: Grouped("shop", min_rows=2, precision=4.0),
    "grouped, contexts": lambda: Grouped("shop", min_rows=2, precision=4.0, contexts=True),
    "grouped, amortized": lambda: Grouped("shop", min_rows=2, amortized=True, hidden=2),
    "featured": lambda: efemb.Featured(["kind", "size"], precision=4.0),
    "tree": lambda: efemb.Tree(["part", "kind"]),
    "shared": lambda: efemb.Shared(rho_of=[0, 1, 1, 0, 2], alpha_of=[0, 0, 1, 1, 1]),
    "a user's": OwnIntercepts,
}
