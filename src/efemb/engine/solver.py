"""Solver: value and gradient of the data term for some rows; one solver a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from efemb.families.base import Family
from efemb.spec import Spec
from efemb.types import Floats, Ints
from efemb.vectors import Vectors


class Solver(ABC):
    """Log-likelihood of some rows and its gradient in the vectors."""

    name: ClassVar[str]
    stochastic: ClassVar[bool] = True  # whether it can work on a part of the rows
    spec: Spec
    n_rows: int
    row_weight: Floats
    total_weight: float  # sum of the weights of all terms
    n_observed: float  # weight of the observations that tell something: not the zeros of rows

    @abstractmethod
    def value_and_gradient(
        self, vectors: Vectors, rows: Ints | None = None, *, exact: bool = False
    ) -> tuple[float, Vectors]:
        """Sum over the rows (all of them by default).

        `exact` visits every zero even where the model samples them.
        """

    @abstractmethod
    def set_family(self, family: Family) -> None:
        """Use a family whose dispersion has been refitted."""
