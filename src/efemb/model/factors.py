"""Factors: what a solver sees, one flat row for each predicted number and each context member."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from efemb._typing import Floats, Ints

if TYPE_CHECKING:
    from efemb.model.combine import Combine


@dataclass
class Factors:
    """Flat arrays for a solver, or the gradient with respect to them.

    target : (numbers, K) vectors that predict;  bag : (members, K) vectors that are summed
    intercept : (numbers,) zeros where the model has none
    rows : where a gradient covers only some rows of all three arrays, their indices
    terms : arrays of the further terms of u, by name; in a gradient, those behind their row side
    combine : how target and context make u, None where by an inner product

    With terms, the last columns of `target` are their entity side, and those of `bag` are 0.
    """

    target: Floats
    bag: Floats
    intercept: Floats
    rows: Ints | None = None
    terms: dict[str, Floats] = field(default_factory=dict)
    combine: Combine | None = None

    @classmethod
    def zeros_like(cls, other: Factors) -> Factors:
        """Zero arrays of the same shapes; gradients of terms are added by name."""
        return cls(
            np.zeros_like(other.target), np.zeros_like(other.bag), np.zeros_like(other.intercept)
        )

    def add_terms(self, terms: Mapping[str, Floats]) -> None:
        """Add gradients of the arrays of terms in place."""
        for name, array in terms.items():
            self.terms[name] = self.terms[name] + array if name in self.terms else array

    def add(self, other: Factors) -> None:
        """Add in place."""
        self.target += other.target
        self.bag += other.bag
        self.intercept += other.intercept
        self.add_terms(other.terms)

    def scale(self, factor: float) -> None:
        """Multiply in place."""
        self.target *= factor
        self.bag *= factor
        self.intercept *= factor
        self.terms = {name: array * factor for name, array in self.terms.items()}

    def add_intercepts(self, values: Floats, entities: Ints | slice = slice(None)) -> None:
        """Add to the intercepts, of all or of some entities, in place."""
        self.intercept[entities] += values

    def plus(self, offset: Floats) -> Factors:
        """The same with an offset added to the intercepts."""
        return replace(self, intercept=(self.intercept + offset).astype(self.intercept.dtype))

    def less(self, offset: Floats | None) -> Factors:
        """The same with an offset taken off the intercepts."""
        if offset is None:
            return self
        intercept = self.intercept - offset.astype(self.intercept.dtype, copy=False)
        return replace(self, intercept=intercept)

    def swapped(self) -> Factors:
        """Targets and bags exchanged: the reverse conditional."""
        return replace(self, target=self.bag, bag=self.target)
