"""What a model is to the oracle: plain strings, numbers and lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Cell = tuple[int, int]
Penalty = tuple[str, float, float] | None  # (name, precision, center)


@dataclass(frozen=True)
class Part:
    """One context; `neighbors[n]` lists the entities around n (neighbors, graph, lagged)."""

    kind: str  # basket, neighbors, graph, lagged, explicit
    scale: str = "none"  # none, items, total
    binary: bool = False
    neighbors: Sequence[Sequence[int]] | None = None
    offsets: Sequence[int] = (-1,)
    include_self: bool = True
    shared: bool = False
    explicit: Mapping[Cell, Sequence[Cell]] | None = None


@dataclass(frozen=True)
class Model:
    """Every option of the objective."""

    parts: tuple[Part, ...]
    family: str = "gaussian"  # gaussian, poisson, bernoulli, negative-binomial, categorical
    link: str = "identity"  # identity, log, softplus, log-softplus
    sigma2: float | None = 1.0  # None: learned
    r: float = 1.0
    combine: str = "linear"  # linear, reverse
    structure: str = "per-entity"  # per-entity, tied, shared
    rho_of: Sequence[int] | None = None
    alpha_of: Sequence[int] | None = None
    prior_rho: Penalty = None
    prior_alpha: Penalty = None
    prior_intercept: Penalty = None
    zero_weight: float = 1.0
    intercept: bool = True

    @property
    def rho_positive(self) -> bool:
        return self.link == "log" or is_positive(self.prior_rho)

    @property
    def alpha_positive(self) -> bool:
        if self.structure == "tied":
            return self.rho_positive
        return self.link == "log" or is_positive(self.prior_alpha)

    @property
    def intercept_positive(self) -> bool:
        return self.rho_positive and self.alpha_positive


class Point(NamedTuple):
    """Factors themselves, or derivatives with respect to the unconstrained parameters."""

    rho: Array
    alpha: Array
    intercept: Array | None


def is_positive(penalty: Penalty) -> bool:
    """Do vectors under this penalty have to be positive?"""
    return penalty is not None and penalty[0] in ("lognormal", "halfnormal")
