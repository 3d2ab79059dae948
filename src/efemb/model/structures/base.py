"""Structure: a map from parameters to the vectors of every entity, and of every group of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import ParameterError, check_name
from efemb.model.ingredient import Ingredient, flag, positive_number
from efemb.model.priors import Prior

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

Arrays = Mapping[str, Floats]


@dataclass(frozen=True)
class StructureArray:
    """One array of parameters that a structure owns.

    name : within the structure;  shape : of the array;  prior : penalty, or None
    spread : standard deviation of the initial values
    """

    name: str
    shape: tuple[int, ...]
    prior: Prior | None
    spread: float = 0.0


class Structure(Ingredient, ABC):
    """An adjoint pair of maps, bound to a number of entities.

    `spread` gives the vectors of every entity from the parameter arrays, `collect` is its
    transpose: for all a, b of the right shapes, <spread(a), b> = <a, collect(b)>. By default, each
    entity has a row of its own in both arrays.

    A structure may also give each group of rows embeddings and intercepts of its own. It then names
    the row columns that it reads (`columns`), owns arrays (`arrays`), and has a second pair of
    maps: `spread_groups` and `collect_groups`, the transpose of its derivative. By default there is
    one group, which has the vectors of `spread`. With `contexts`, `spread_contexts` and
    `collect_contexts` do the same for context vectors.
    """

    package = "efemb.model.structures"
    tied: bool = False  # rho and alpha are one array
    intercepts: bool = False  # groups of rows have their own
    contexts: bool = False  # groups of rows have context vectors of their own
    signed: bool = False  # it adds numbers of either sign, so that vectors need not be positive

    @property
    def own_rows(self) -> tuple[bool, bool]:
        """Whether each entity has a row of its own in rho, and in alpha."""
        return True, True

    def sizes(self, n_entities: int) -> tuple[int, int]:
        """Rows of the two parameter arrays (those of alpha per slot)."""
        return n_entities, n_entities

    def spread(self, rho: Floats, alpha: Floats, n_entities: int) -> tuple[Floats, Floats]:
        """Embeddings (N, ...) and context vectors (slots * N, ...) of all entities."""
        return rho, alpha

    def collect(self, rho: Floats, alpha: Floats, n_entities: int) -> tuple[Floats, Floats]:
        """Gradients of the parameter arrays from those of the vectors."""
        return rho, alpha

    @property
    def n_entities(self) -> int | None:
        """Number of entities the structure is for, None if any number is possible."""
        return None

    def start(self, rho: Floats, alpha: Floats, n_entities: int) -> tuple[Floats, Floats]:
        """Initial values of the parameter arrays, from random ones of the size of the vectors."""
        return rho, alpha

    # -- entities that were never observed ---------------------------------------------------------

    def add_entities(self, columns: Mapping[str, list[Any]]) -> Self:
        """The frozen structure with further entities, given by columns of their features."""
        raise ParameterError(
            f"structure={self!r} knows no features of entities: fit with structure=Tree([...]) or "
            "Featured([...])"
        )

    def make_room(self, array: Floats, n_new: int) -> Floats:
        """rho or alpha with room for the vectors of further entities."""
        raise ParameterError(f"structure={self!r} takes no further entities")

    def categories(self, feature: str) -> tuple[list[Any], Self]:
        """Labels of the values of a feature, and a structure whose entities are these values."""
        raise ParameterError(
            f"structure={self!r} knows no features of entities: fit with structure=Tree([...]) or "
            "Featured([...])"
        )

    # -- groups of rows ----------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[str, ...]:
        """Row columns of the data that define the groups; none if all rows are one group."""
        return ()

    @property
    def grouped(self) -> bool:
        """Whether groups of rows have vectors of their own."""
        return bool(self.columns)

    @property
    def in_order(self) -> bool:
        """Whether the groups are slices of time."""
        return False

    @property
    def labels(self) -> list[Any]:
        """Labels of the groups of a frozen structure, in the order of their codes."""
        return []

    def check(self) -> None:
        """Raise if an option is out of range."""

    def freeze(self, data: Dataset) -> Self:
        """The structure with what it learns from the training rows, such as their groups."""
        return self

    def code_of(self, label: Any) -> int:
        """Code of the group with a label; unknown labels raise an error that lists the groups."""
        raise ParameterError(f"{self!r} has no groups of rows")

    def codes(self, data: Dataset) -> Ints:
        """Group of each row of the data, (rows,); -1 has the vectors of `spread`."""
        return np.zeros(data.n_rows, dtype=np.int64)

    def arrays(self, n_entities: int, k: int, prior: Prior | None) -> tuple[StructureArray, ...]:
        """The arrays that a frozen structure owns; `prior` is that of rho."""
        return ()

    def spread_groups(
        self, arrays: Arrays, target: Floats, intercept: Floats, groups: Ints
    ) -> tuple[Floats, Floats]:
        """Embeddings (G, N, K) and intercepts (G, N) of some groups, from those of `spread`."""
        shape = (len(groups), *target.shape)
        return np.broadcast_to(target, shape), np.broadcast_to(intercept, shape[:2])

    def collect_groups(
        self, arrays: Arrays, target: Floats, groups: Ints, d_target: Floats, d_intercept: Floats
    ) -> tuple[dict[str, Floats], Floats, Floats]:
        """Gradients of all own arrays, of the embeddings and of the intercepts of `spread`.

        d_target : (G, N, K) and d_intercept : (G, N) are those of the listed groups.
        """
        return {}, d_target.sum(axis=0), d_intercept.sum(axis=0)

    def spread_contexts(self, arrays: Arrays, bag: Floats, groups: Ints) -> Floats:
        """Context vectors (G, N, K) of some groups, from those of `spread`."""
        return np.broadcast_to(bag, (len(groups), *bag.shape))

    def collect_contexts(
        self, arrays: Arrays, bag: Floats, groups: Ints, d_bag: Floats
    ) -> tuple[dict[str, Floats], Floats]:
        """Gradients of the arrays of `spread_contexts`, and of the context vectors of `spread`.

        d_bag : (G, N, K) is that of the listed groups.
        """
        return {}, d_bag.sum(axis=0)

    def offset_precision(self, prior: Prior | None) -> float | None:
        """Precision of the offset of an entity in a group; None if there is no such offset.

        `prior` is that of rho.
        """
        return None

    def describe(self, data: Dataset) -> dict[str, Any]:
        """A report for `fit`: the sizes of the groups, and the rows that belong to none."""
        if not self.grouped:
            return {}
        codes = self.codes(data)
        sizes = np.bincount(codes[codes >= 0], minlength=len(self.labels))
        counts = dict(zip(self.labels, sizes.tolist(), strict=True))
        return {"groups": counts, "rows_without_group": int((codes < 0).sum())}

    # -- offsets of groups of documents ------------------------------------------------------------

    @property
    def has_proximal_step(self) -> bool:
        """Whether the four methods below exist, with which solvers step on offsets in a text."""
        return False

    def step_precision(self, prior: Prior | None) -> float:
        """Precision of what `proximal_step` penalizes; `prior` is that of rho."""
        raise ParameterError(f"{self!r} has no offsets")

    def proximal_step(self, offsets: Floats, weight: Floats, precision: float) -> Floats:
        """The proximal step of the prior of the offsets.

        Minimizes over x the sum of weight (x - offsets)^2 and the penalty of x with the given
        precision.

        offsets : (G, N, K) of every group and entity;  weight : (G, N) of each
        """
        raise ParameterError(f"{self!r} has no offsets")

    def from_offsets(
        self, vectors: Floats, intercepts: Floats
    ) -> tuple[dict[str, Floats], Floats, Floats]:
        """Own arrays of offsets, (G, N, K) and (G, N), and what to add to the shared vectors.

        As for `proximal_step` and `spread_groups`, the arguments may cover only some entities: the
        second axis of each own array is over entities, and entities do not depend on one another.
        """
        raise ParameterError(f"{self!r} has no offsets")

    def from_context_offsets(self, vectors: Floats) -> tuple[dict[str, Floats], Floats]:
        """The own array of offsets of context vectors, and what to add to the shared ones."""
        raise ParameterError(f"{self!r} has no offsets")

    def save_memory(self, solver: str) -> str:
        """Advice for users whose groups do not fit into the memory of a solver."""
        return ""


class GroupStructure(Structure, ABC):
    """Embeddings and intercepts of groups of rows, as offsets from shared ones.

    Options are `column` (of the rows), `precision` (of the offsets, in units of that of rho),
    `intercepts` and `contexts` (whether groups have their own).
    """

    column: str
    precision: float
    intercepts: bool
    contexts: bool

    def check(self) -> None:
        """The column must be a name, and the precision positive."""
        name = type(self).__name__
        check_name(f"{name}.column", self.column)
        positive_number(self, "precision")
        flag(f"{name}.intercepts", self.intercepts)
        flag(f"{name}.contexts", self.contexts)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @abstractmethod
    def codes(self, data: Dataset) -> Ints:
        """Group of each row of the data, (rows,); -1 has the vectors of `spread`."""

    @abstractmethod
    def arrays(self, n_entities: int, k: int, prior: Prior | None) -> tuple[StructureArray, ...]:
        """The arrays that a frozen structure owns; `prior` is that of rho."""

    @abstractmethod
    def offsets(self, array: Floats, groups: Ints) -> Floats:
        """Offsets of vectors in some groups, (G, N, K), from the own array that holds them."""

    @abstractmethod
    def collect_offsets(self, array: Floats, groups: Ints, gradient: Floats) -> Floats:
        """Gradient of that array: the transpose of `offsets`."""

    @abstractmethod
    def hold_offsets(self, vectors: Floats) -> tuple[Floats, Floats]:
        """The own array of offsets (G, N, K) of every group, and what to add to shared vectors."""

    def spread_contexts(self, arrays: Arrays, bag: Floats, groups: Ints) -> Floats:
        """alpha + its offsets in some groups."""
        if not self.contexts:
            return super().spread_contexts(arrays, bag, groups)
        return bag + self.offsets(arrays["contexts"], groups)

    def collect_contexts(
        self, arrays: Arrays, bag: Floats, groups: Ints, d_bag: Floats
    ) -> tuple[dict[str, Floats], Floats]:
        """Gradients of the offsets, and their sum over the groups."""
        if not self.contexts:
            return super().collect_contexts(arrays, bag, groups, d_bag)
        own = self.collect_offsets(arrays["contexts"], groups, d_bag)
        return {"contexts": own}, d_bag.sum(axis=0)

    def from_context_offsets(self, vectors: Floats) -> tuple[dict[str, Floats], Floats]:
        """The array of the offsets, in the same scale as that of embeddings."""
        array, common = self.hold_offsets(vectors)
        return {"contexts": array}, common

    def step_precision(self, prior: Prior | None) -> float:
        """The precision of the offsets, `precision` times that of rho."""
        return self.precision * self.shrinkage_of(prior)

    def shrinkage_of(self, prior: Prior | None) -> float:
        """Precision of rho, 1 if its prior has none."""
        return (0.0 if prior is None else prior.shrinkage) or 1.0


def sum_rows(values: Floats, index: Ints, n_rows: int) -> Floats:
    """Add the rows of `values` that share an index: the transpose of `rows[index]`."""
    total = np.zeros((n_rows, *values.shape[1:]), dtype=values.dtype)
    np.add.at(total, index, values)
    return total
