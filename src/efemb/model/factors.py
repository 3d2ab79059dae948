"""Factors: a solver's view of the model, one row per predicted number and per context member."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from efemb._typing import Floats, Ints

if TYPE_CHECKING:
    from efemb.model.combine import Combine
    from efemb.model.structures.base import Structure


@dataclass(frozen=True, eq=False)
class GroupVectors:
    """Embeddings, intercepts and context vectors of groups of rows, computed on demand.

    arrays : those that the structure owns, by their names within it
    target, intercept, bag : (N, K), (N,) and (N, K) of rows that belong to no group
    made : the vectors of groups that were requested before
    """

    structure: Structure
    arrays: Mapping[str, Floats]
    target: Floats
    intercept: Floats
    bag: Floats
    made: dict[int, tuple[Floats, Floats, Floats]] = field(default_factory=dict)

    def of(self, group: int) -> tuple[Floats, Floats, Floats]:
        """Embeddings (N, K), intercepts (N,) and context vectors (N, K) of one group."""
        if group not in self.made:
            structure, code, bag = self.structure, np.array([group]), self.bag
            target, intercept = structure.spread_groups(
                self.arrays, self.target, self.intercept, code
            )
            if structure.contexts:
                bag = structure.spread_contexts(self.arrays, bag, code)[0]
            self.made[group] = (target[0], intercept[0], bag)
        return self.made[group]

    def plus(self, offset: Floats) -> GroupVectors:
        """The same with an offset added to the intercepts."""
        intercept = (self.intercept + offset).astype(self.intercept.dtype)
        return replace(self, intercept=intercept, made={})


@dataclass(eq=False)
class Factors:
    """Flat arrays for a solver, or the gradient with respect to them.

    target : (numbers, K + width) vectors of predicted numbers;  bag : (members, K) those summed
    intercept : (numbers,) zeros if the model has none
    rows : indices of the rows that a gradient covers, if these are not all rows of the arrays
    terms : arrays of the further terms of u, by name; in a gradient, those of the row side
    combine : how target and context are combined, None for an inner product
    groups : the vectors of groups of rows, if they differ; `target` then belongs to no group
    by_group : in a gradient, those of the target and the intercept of each group that has rows, and
        of its bag if it has one of its own
    width : columns of the terms: the last ones of `target`, which are their entity side
    """

    target: Floats
    bag: Floats
    intercept: Floats
    rows: Ints | None = None
    terms: dict[str, Floats] = field(default_factory=dict)
    combine: Combine | None = None
    groups: GroupVectors | None = None
    by_group: dict[int, tuple[Floats, Floats, Floats | None]] = field(default_factory=dict)
    width: int = 0

    @property
    def n_bag(self) -> int:
        """Number of columns of contexts, which come before those of terms in `target`."""
        return int(self.bag.shape[1])

    @property
    def column_parts(self) -> tuple[slice, ...]:
        """Columns of contexts and, where there are any, of terms.

        Their products are computed separately, so that a term that is 0 leaves the bits of the
        model without it.
        """
        of_bags, of_terms = slice(0, self.n_bag), slice(self.n_bag, None)
        return (of_bags, of_terms) if self.width else (of_bags,)

    @property
    def own_contexts(self) -> bool:
        """Whether groups of rows have context vectors of their own."""
        return self.groups is not None and self.groups.structure.contexts

    def of_group(self, group: int) -> Factors:
        """The factors for the rows of one group; -1 is no group."""
        if self.groups is None or group < 0:
            return replace(self, groups=None)
        target, intercept, bag = self.groups.of(group)
        if target.shape[1] < self.target.shape[1]:  # the entity side of terms stays
            target = np.concatenate([target, self.target[:, target.shape[1] :]], axis=1)
        return replace(self, target=target, intercept=intercept, bag=bag, groups=None)

    def add_group(self, group: int, gradient: Factors, *, own_contexts: bool = False) -> None:
        """Add the gradient of the rows of one group in place."""
        if group < 0:
            self.add(gradient)
            return
        if not own_contexts:
            self.bag += gradient.bag
        self.add_terms(gradient.terms)
        bag = gradient.bag if own_contexts else None
        self.by_group[group] = (gradient.target, gradient.intercept, bag)

    @classmethod
    def zeros_like(cls, other: Factors) -> Factors:
        """Zero arrays of the same shapes; gradients of terms are added by name."""
        return cls(
            np.zeros_like(other.target), np.zeros_like(other.bag), np.zeros_like(other.intercept)
        )

    def on_all_rows(self, like: Factors) -> Factors:
        """Expand a gradient on some rows to all rows of its arrays."""
        if self.rows is None:
            return self
        full = Factors.zeros_like(like)
        full.add_terms(self.terms)
        full.target[self.rows] = self.target
        full.bag[self.rows] = self.bag
        full.intercept[self.rows] = self.intercept
        return full

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
        """Add to the intercepts of all or of some entities in place."""
        self.intercept[entities] += values

    def plus(self, offset: Floats) -> Factors:
        """The same with an offset added to the intercepts."""
        groups = None if self.groups is None else self.groups.plus(offset)
        intercept = (self.intercept + offset).astype(self.intercept.dtype)
        return replace(self, intercept=intercept, groups=groups)

    def less(self, offset: Floats | None) -> Factors:
        """The same with an offset subtracted from the intercepts."""
        if offset is None:
            return self
        intercept = self.intercept - offset.astype(self.intercept.dtype, copy=False)
        return replace(self, intercept=intercept)

    def without_terms(self) -> Factors:
        """The factors of the contexts alone."""
        return replace(self, target=self.target[:, : self.n_bag], terms={}, width=0)

    def swapped(self) -> Factors:
        """Targets and bags exchanged, for the reverse conditional."""
        return replace(self, target=self.bag, bag=self.target)
