"""Factors: what a solver sees, one flat row for each predicted number and each context member."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from efemb._typing import Floats, Ints


@dataclass
class Factors:
    """Flat arrays for a solver, or the gradient with respect to them.

    target : (numbers, K) vectors that predict;  bag : (members, K) vectors that are summed
    intercept : (numbers,) zeros where the model has none
    rows : where a gradient covers only some rows of all three arrays, their indices
    """

    target: Floats
    bag: Floats
    intercept: Floats
    rows: Ints | None = None

    @classmethod
    def zeros_like(cls, other: Factors) -> Factors:
        """Zero arrays of the same shapes."""
        return cls(
            np.zeros_like(other.target), np.zeros_like(other.bag), np.zeros_like(other.intercept)
        )

    def add(self, other: Factors) -> None:
        """Add in place."""
        self.target += other.target
        self.bag += other.bag
        self.intercept += other.intercept

    def scale(self, factor: float) -> None:
        """Multiply in place."""
        self.target *= factor
        self.bag *= factor
        self.intercept *= factor

    def less(self, offset: Floats | None) -> Factors:
        """The same with an offset taken off the intercepts."""
        if offset is None:
            return self
        intercept = self.intercept - offset.astype(self.intercept.dtype, copy=False)
        return Factors(self.target, self.bag, intercept, self.rows)

    def swapped(self) -> Factors:
        """Targets and bags exchanged: the reverse conditional."""
        return Factors(self.bag, self.target, self.intercept, self.rows)
