"""Term: an addition to the linear predictor, u_tn += L_n . R_t + o_tn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import InputTypeError, ParameterError
from efemb.model.ingredient import Ingredient
from efemb.model.priors import Prior
from efemb.model.terms.cell_values import CellValues, Offsets

if TYPE_CHECKING:
    from efemb.data.columns import CellTable
    from efemb.data.dataset import Dataset
    from efemb.model.families.base import Family
    from efemb.model.links import Link

Arrays = Mapping[str, Floats]
ShareName = str | tuple[str, int]  # label of a term, and the code of an item of the row


@dataclass(frozen=True)
class TermArray:
    """One array of parameters of a term.

    Parameters
    ----------
    name : str
        Unique within the term.
    shape : tuple of int
    prior : Prior or None
        Penalty; a positive prior makes the array positive.
    spread : float
        Standard deviation of the initial values, or of their logarithms if they are positive.
    start : float, default=0.0
        Mean of the initial values, or their median if they are positive.
    """

    name: str
    shape: tuple[int, ...]
    prior: Prior | None
    spread: float
    start: float = 0.0

    @property
    def positive(self) -> bool:
        """Whether the numbers are positive."""
        return self.prior is not None and self.prior.positive


class Term(Ingredient, ABC):
    """Options of a term. `freeze` looks at the training data once, `bind` at any data.

    The term adds the inner product of `width` columns of the entity side L and of the row side R
    to u. No observation takes itself out of these columns, so they need nothing of the context.
    Either side may be made of parameters, of data, or both; `pull_back_entities` and
    `pull_back_rows` are the transposes of the maps from parameters to columns. Beside columns, or
    instead of them (see `CellTerm`), a term may add offsets to single cells.
    """

    package = "efemb.model.terms"
    not_inherited = ("learns_from_columns",)
    width: int  # columns
    entity_array: str | None = None  # name of the array that is L itself, where there is one
    group_array: str | None = None  # name of the array with a row per group of `groups`, if any
    groups: Any = None  # labels of the groups of rows that a frozen term knows
    has_cells: ClassVar[bool] = False  # whether it adds offsets to single cells
    learns_from_columns: ClassVar[bool] = False  # whether `freeze` reads no values of the rows
    reads_items: ClassVar[bool] = False  # whether it predicts from the other items of the row

    @property
    @abstractmethod
    def label(self) -> str:
        """Name of the term in a model, unique there: prefix of its arrays, row of `explain`."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Row columns of the data that the term reads, which a question may name; the label."""
        return (self.label,)

    @property
    def tables(self) -> tuple[str, ...]:
        """Cell tables of the data that the term reads, and that `what_if` may change."""
        return ()

    def change_table(
        self, row: Mapping[str, Any] | None, codes: Ints, numbers: Floats
    ) -> CellTable:
        """The table of a frozen term, changed for some entities.

        row : columns of a row, the result then has its group only; None: in all groups
        """
        raise ParameterError(f"{self!r} has no table to change")

    @abstractmethod
    def freeze(self, data: Dataset) -> Term:
        """The term with whatever it learns from the training rows, such as their labels."""

    @abstractmethod
    def arrays(self, n_entities: int) -> tuple[TermArray, ...]:
        """The arrays of parameters of a frozen term."""

    @abstractmethod
    def entity_columns(self, arrays: Arrays, n_entities: int) -> Floats:
        """L, (N, width)."""

    @abstractmethod
    def pull_back_entities(self, gradient: Floats) -> dict[str, Floats]:
        """Gradients of the arrays behind L from that of L."""

    @abstractmethod
    def bind(self, data: Dataset) -> BoundTerm:
        """A frozen term on the rows of `data`."""

    def add_groups(self, data: Dataset) -> Term:
        """The frozen term with the groups of rows that it does not know yet, if it has groups."""
        return self

    @property
    def positive(self) -> bool:
        """Whether all that it adds is positive, as models with positive predictors need it."""
        return False

    def with_positive(self) -> Term:
        """The term as models with positive predictors need it, if there is one; else itself."""
        return self

    def check_sign(self, link: Link) -> None:
        """Refuse a prior of positive numbers where the predictor may have either sign."""
        if self.positive and not link.needs_positive:
            prior = self.get_params(deep=False)["prior"]
            raise ParameterError(
                f"{type(self).__name__} takes a prior of signed numbers under link "
                f"{link.name()!r}, got {prior!r}: use prior='normal', or AdditivePoissonEmbedding"
            )

    @property
    def entity_prior(self) -> Prior | None:
        """Prior of the array that is L itself, None where there is none."""
        return self._prior_of(self.entity_array)

    @property
    def group_prior(self) -> Prior | None:
        """Prior of the array with a row per group, None where there is none."""
        return self._prior_of(self.group_array)

    def _prior_of(self, name: str | None) -> Prior | None:
        return next((array.prior for array in self.arrays(1) if array.name == name), None)

    def check(self) -> None:
        """Raise if an option is out of range."""

    def check_model(self, family: Family, link: Link) -> None:
        """Raise if the term makes no sense in a model of this family and link."""


class BoundTerm(ABC):
    """The row side of a term on one data set."""

    @abstractmethod
    def row_columns(self, arrays: Arrays, rows: Ints) -> Floats:
        """R of some rows, (rows, width)."""

    @abstractmethod
    def pull_back_rows(self, arrays: Arrays, rows: Ints, gradient: Floats) -> dict[str, Floats]:
        """Gradients of the arrays behind R from that of R of some rows."""

    def cells(self, arrays: Arrays, rows: Ints) -> CellValues | None:
        """o_tn of some rows, None if it has no such cells.

        They are `SparseRows`, `ScaledRows` or a `GroupTable`.
        """
        return None

    def pull_back_cells(self, arrays: Arrays, rows: Ints, gradient: Floats) -> dict[str, Floats]:
        """Gradients of the arrays behind o from dL/do, in the shape of the values of `cells`."""
        return {}

    def cells_without(self, arrays: Arrays, rows: Ints, left_out: Ints) -> CellValues | None:
        """`cells` of some rows, each without one item; the same unless the term `reads_items`.

        In a softmax and in scores, all entities share a context: the requested item must not
        affect the predictions of the others either.
        """
        return self.cells(arrays, rows)

    def pull_back_cells_without(
        self, arrays: Arrays, rows: Ints, left_out: Ints, gradient: Floats
    ) -> dict[str, Floats]:
        """Gradients of the arrays behind `cells_without`."""
        return self.pull_back_cells(arrays, rows, gradient)

    def split_by_item(self, arrays: Arrays, row: int, entity: int) -> dict[int, float]:
        """o of one cell as a sum over items of its row, by their codes; empty if it is none."""
        return {}

    def without(self, masked: Any) -> BoundTerm:
        """The same rows where the stored entries of a csr_array (T, N) are unknown.

        Only a term that predicts from the items of the row itself has to leave them out.
        """
        return self


class CellTerm(Term):
    """A term without columns, which adds only offsets to single cells."""

    width = 0
    has_cells = True

    def entity_columns(self, arrays: Arrays, n_entities: int) -> Floats:
        """No columns, (N, 0)."""
        return np.zeros((n_entities, 0), dtype=np.float32)

    def pull_back_entities(self, gradient: Floats) -> dict[str, Floats]:
        """No gradients, because L has no parameters."""
        return {}


class BoundCells(BoundTerm):
    """A `CellTerm` on one data set."""

    @abstractmethod
    def cells(self, arrays: Arrays, rows: Ints) -> CellValues:
        """o_tn of some rows: `SparseRows`, `ScaledRows` or a `GroupTable`."""

    @abstractmethod
    def pull_back_cells(self, arrays: Arrays, rows: Ints, gradient: Floats) -> dict[str, Floats]:
        """Gradients of the arrays behind o from dL/do, in the shape of the values of `cells`."""

    def row_columns(self, arrays: Arrays, rows: Ints) -> Floats:
        """No columns, (rows, 0)."""
        return np.zeros((len(rows), 0), dtype=np.float32)

    def pull_back_rows(self, arrays: Arrays, rows: Ints, gradient: Floats) -> dict[str, Floats]:
        """No gradients, because R has no parameters."""
        return {}


@dataclass(frozen=True)
class RowSide:
    """The row sides of all terms of a model on one data set, side by side."""

    terms: tuple[tuple[Term, BoundTerm], ...]
    n_entities: int

    @classmethod
    def of(cls, terms: Iterable[Term], data: Dataset, masked: Any = None) -> RowSide:
        """Bind every term; masked : csr_array (T, N) of entries that predict nothing."""
        bound = [(term, term.bind(data)) for term in terms]
        if masked is not None:
            bound = [(term, rows.without(masked)) for term, rows in bound]
        return cls(tuple(bound), data.n_entities)

    @property
    def width(self) -> int:
        """Columns of all terms."""
        return sum(term.width for term, _ in self.terms)

    @property
    def has_cells(self) -> bool:
        """Whether any term adds offsets to single cells."""
        return any(term.has_cells for term, _ in self.terms)

    def columns(self, arrays: Arrays, rows: Ints) -> Floats:
        """R of some rows, (rows, width)."""
        return np.concatenate(
            [bound.row_columns(arrays_of(term, arrays), rows) for term, bound in self.terms], axis=1
        )

    @property
    def reads_items(self) -> bool:
        """Whether any term predicts from the other items of the row."""
        return any(term.reads_items for term, _ in self.terms)

    def offsets(self, arrays: Arrays, rows: Ints, left_out: Ints | None = None) -> Offsets | None:
        """o of some rows, None where no term has any.

        left_out : (rows,) an item that each row does not hold, for terms that read items
        """
        with_cells = [(term, bound) for term, bound in self.terms if term.has_cells]
        parts = tuple(
            bound.cells(arrays_of(term, arrays), rows)
            if left_out is None
            else bound.cells_without(arrays_of(term, arrays), rows, left_out)
            for term, bound in with_cells
        )
        known = tuple(part for part in parts if part is not None)
        return Offsets(known, len(rows), self.n_entities) if known else None

    def add_up(self, arrays: Arrays, rows: Ints, target: Floats) -> Floats:
        """Sum of all terms in u of every cell, (rows, N); `target` ends in the entity sides."""
        entity_sides = target[:, target.shape[1] - self.width :]
        total = self.columns(arrays, rows) @ entity_sides.T if self.width else None
        cells = np.zeros((len(rows), self.n_entities)) if total is None else np.asarray(total)
        offsets = self.offsets(arrays, rows)
        if offsets is not None:
            offsets.add_to(cells)
        return cells

    def shares(
        self, arrays: Arrays, row: int, entity: int, entity_columns: Floats
    ) -> dict[ShareName, float]:
        """The contribution of each term to u of one cell, given L of the entity.

        By the label of the term, and, where it is a sum over items of the row, their codes.
        """
        shares: dict[ShareName, float] = {}
        start, place = 0, np.array([row])
        for term, bound in self.terms:
            own = arrays_of(term, arrays)
            items = bound.split_by_item(own, row, entity)
            if items:
                shares.update({(term.label, code): share for code, share in items.items()})
                continue
            columns = bound.row_columns(own, place)[0]
            share = float(columns @ entity_columns[start : start + term.width])
            cells = bound.cells(own, place)
            if cells is not None:
                share += float(cells.at(np.zeros(1, dtype=np.int64), np.array([entity]))[0])
            shares[term.label] = share
            start += term.width
        return shares

    def pull_back(self, arrays: Arrays, rows: Ints, gradient: Floats) -> dict[str, Floats]:
        """Gradients of all arrays behind R, by their names in the model."""
        total: dict[str, Floats] = {}
        start = 0
        for term, bound in self.terms:
            columns = gradient[:, start : start + term.width]
            part = bound.pull_back_rows(arrays_of(term, arrays), rows, columns)
            total.update({f"{term.label}.{name}": value for name, value in part.items()})
            start += term.width
        return total

    def pull_back_cells(
        self,
        arrays: Arrays,
        rows: Ints,
        gradients: Iterable[Floats],
        left_out: Ints | None = None,
    ) -> dict[str, Floats]:
        """Gradients of all arrays behind o, from those of the values of each part of `offsets`."""
        total: dict[str, Floats] = {}
        with_cells = [(term, bound) for term, bound in self.terms if term.has_cells]
        for (term, bound), gradient in zip(with_cells, gradients, strict=True):
            own = arrays_of(term, arrays)
            if left_out is None:
                part = bound.pull_back_cells(own, rows, gradient)
            else:
                part = bound.pull_back_cells_without(own, rows, left_out, gradient)
            total.update({f"{term.label}.{name}": value for name, value in part.items()})
        return total


def arrays_of(term: Term, arrays: Arrays) -> dict[str, Floats]:
    """The arrays of one term, by their names within it."""
    prefix = f"{term.label}."
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def check_signed(term: Term, prior: Prior) -> None:
    """Check the prior of a term whose numbers may have either sign."""
    prior.check()
    if prior.positive:
        name = type(term).__name__
        raise ParameterError(f"{name} takes a prior of signed numbers, got {prior!r}")


def resolve_terms(terms: Any) -> tuple[Term, ...]:
    """A tuple of checked terms with different labels."""
    if isinstance(terms, Term):
        terms = (terms,)
    if not isinstance(terms, list | tuple) or not all(isinstance(term, Term) for term in terms):
        raise InputTypeError(
            f"terms must be a list of Term objects such as RowVectors('household'), got {terms!r}"
        )
    labels = [term.label for term in terms]
    for label in labels:
        if labels.count(label) > 1:
            raise ParameterError(
                f"two terms are called {label!r}: a model has one term of each name"
            )
    for term in terms:
        term.check()
    return tuple(terms)
