"""Context: which other observations surround an observation, and how their sum is scaled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import DataError, InputTypeError, ParameterError, suggest
from efemb.model.ingredient import Ingredient, flag

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset
    from efemb.data.vocabulary import Vocabulary
    from efemb.model.contexts.bound.entities import Lists
    from efemb.model.contexts.bound.rows import RowBlock
    from efemb.model.contexts.bound.terms import Terms

SCALES = ("items", "none", "total")


class Context(Ingredient, ABC):
    """A rule that determines the context of each observation; `bind` applies it to data.

    Every context has two options: `scale` ("items" divides the context sum by the number of its
    terms, "total" by the sum of their values, "none" by 1) and `binary` (a member counts as
    1 where it is not zero).
    """

    package = "efemb.model.contexts"
    reads_text: ClassVar[bool] = False  # data are a corpus of words, not rows of numbers
    rest_of_row: ClassVar[bool] = False  # members are the other entities of the row
    is_sum: ClassVar[bool] = False
    is_frozen: ClassVar[bool] = False  # holds lists that a fit found
    unnamed: ClassVar[float] = np.nan  # value of an entity that a question does not mention

    scale: str = "none"
    binary: bool = False
    length_offset: bool = False
    subsample: float | str | None = None
    pseudo_count: float = 0.0  # added to the divisor
    thinning: float = 0.0  # fraction of the rows whose contexts lose members in a pass
    shrink: bool = False
    positions: Any = None  # coordinates of the entities

    @property
    def reaches_other_rows(self) -> bool:
        """Whether a row alone does not determine the contexts of its observations."""
        return False

    @abstractmethod
    def bind(self, data: Dataset) -> BoundContext:
        """Return the context of every observation of `data`."""

    def bind_weighted(self, data: Dataset, weight: Floats | None) -> BoundContext:
        """Bind a context whose members depend on values, and so on the weights of the rows."""
        return self.bind(data)

    def find_known(
        self, data: Dataset, new: Ints, k: int, positions: Floats | None, weight: Floats
    ) -> list[Ints]:
        """Members of the context of each new entity, among the known entities before it.

        data : with known entities first;  new : the others;  k : largest size of a known context
        positions : of all entities, or None;  weight : of the rows
        """
        raise ParameterError(
            f"{self!r} does not determine the context of new entities: fold_in takes Neighbors; "
            "fit again with the larger context"
        )

    def bind_gap(
        self, words: Ints, vocabulary: Vocabulary, rows: Mapping[str, Any] | None = None
    ) -> tuple[BoundContext, int]:
        """A text with one missing word, and the row of the gap."""
        raise ParameterError(f"{type(self).__name__} contexts are not made of words")

    def check(self) -> None:
        """Raise if an option is out of range."""
        if not isinstance(self.scale, str) or self.scale not in SCALES:
            raise ParameterError(
                f"unknown scale {self.scale!r} of {type(self).__name__}; "
                f"{suggest(self.scale, SCALES)}"
            )
        flag(f"{type(self).__name__}.binary", self.binary)

    def __add__(self, other: object) -> ContextSum:
        """The sum of two contexts: their scaled context sums are added."""
        if not isinstance(other, Context):
            raise InputTypeError(f"a context can only be added to a context, got {other!r}")
        return other._after(self)

    def _after(self, first: Context) -> ContextSum:
        return ContextSum(first, self)

    def as_written(self) -> Context:
        """The rule for a new fit, without anything that an earlier fit found."""
        return self


class ContextSum(Context):
    """left + right; written with the plus sign."""

    listed = False
    is_sum = True

    def __init__(self, left: Context, right: Context) -> None:
        self.left = left
        self.right = right

    def __repr__(self) -> str:
        """The sum as written in code."""
        return f"{self.left!r} + {self.right!r}"

    def _after(self, first: Context) -> ContextSum:
        # One after the other, so that no two lags share a slot of context vectors.
        return (first + self.left) + self.right

    @property
    def scale(self) -> str:  # type: ignore[override]
        """The scale if both parts agree, else "mixed"."""
        return self.left.scale if self.left.scale == self.right.scale else "mixed"

    @property
    def unnamed(self) -> float:  # type: ignore[override]
        """0 if a part has bags, in which absent entities are zero."""
        left, right = self.left.unnamed, self.right.unnamed
        return right if np.isnan(left) else left

    @property
    def reaches_other_rows(self) -> bool:
        """Whether either part reaches other rows."""
        return self.left.reaches_other_rows or self.right.reaches_other_rows

    def check(self) -> None:
        """Check both parts."""
        self.left.check()
        self.right.check()

    def bind(self, data: Dataset) -> BoundContext:
        """Bind both parts; those with fixed lists per entity are merged."""
        return self.bind_weighted(data, None)

    def bind_weighted(self, data: Dataset, weight: Floats | None) -> BoundContext:
        """Bind both parts to weighted rows."""
        left, right = (part.bind_weighted(data, weight) for part in (self.left, self.right))
        return left.plus(right)

    def as_written(self) -> ContextSum:
        """The sum of both rules, without anything that an earlier fit found."""
        return ContextSum(self.left.as_written(), self.right.as_written())


class BoundContext(ABC):
    """The context of every observation of one data set."""

    data: Dataset
    n_rows: int
    n_entities: int
    n_dims: int
    n_slots: int = 1
    is_text: ClassVar[bool] = False  # rows are the tokens of a text
    lists: tuple[Lists, ...] | None = None  # of members, if they are fixed for each entity
    cell_lists: Lists | None = None  # of members, if each cell t N + n has its own
    private: bool = False  # whether each of these lists has context vectors of its own
    exposure: Floats | None = None  # factor of the mean of each row, if any
    masked: Any = None  # csr_array (T, N) of cells held out: neither zero, target nor context

    @property
    def whole_data(self) -> Dataset:
        """The data including what is held out, which terms need to recognize a row."""
        return self.data

    def flattened(self) -> BoundContext | None:
        """Equivalent contexts of N D scalar entities, None if there are none."""
        return None

    def spread_to_rows(self, values: Ints) -> Ints:
        """Values of row columns for each row; the columns of a text describe documents."""
        return values

    def block(self, rows: Ints, *, reverse: bool = False) -> RowBlock:
        """Some rows as sparse arrays, for contexts that all observations of a row share."""
        raise ParameterError(f"{type(self).__name__} has no bag for each row")

    def scored_block(self, rows: Ints, *, reverse: bool) -> RowBlock:
        """The rows as `score` needs them, for contexts that all observations of a row share."""
        return self.block(rows, reverse=reverse)

    def context_sizes(self) -> Ints | None:
        """(T, N) numbers of observed members; None unless lists are fixed for each entity."""
        return None

    @property
    def word_counts(self) -> Floats:
        """Counts of the words of a text."""
        raise ParameterError("only text has counts of words")

    @property
    def parts(self) -> tuple[BoundContext, ...]:
        """The contexts that are added up; a single one unless it is a sum."""
        return (self,)

    @property
    def leaves_own_bag(self) -> bool:
        """Whether the bag of a row is the row itself, less the observation to be predicted."""
        return False

    @property
    def shares_rows(self) -> bool:
        """Whether all observations of a row share one bag, as the solver `rows` requires."""
        return False

    def plus(self, other: BoundContext) -> BoundContext:
        """The sum of two bound contexts; contexts with their own slots come last."""
        if other.private:
            return SumOfBound(self, other.shifted(self.n_slots))
        return SumOfBound(self, other)

    def shifted(self, slots: int) -> BoundContext:
        """The same context with its slots moved up; only private lists have any to move."""
        return self

    def check_reach(self) -> None:
        """Raise if offsets of members exceed all recordings, so that no row has any."""
        return

    def about(self, means: Floats) -> BoundContext:
        """The same context with fixed members measured from the means of the entities."""
        return self

    def frozen(self, context: Context) -> Context:
        """The context as a model stores it, with the lists that were found for its parts."""
        return context

    def frozen_part(self, context: Context) -> Context:
        """One part of a sum, with the lists that were found for it."""
        return self.frozen(context)

    @property
    def n_context_vectors(self) -> int:
        """Number of rows of alpha for scalar data: N for each slot."""
        return self.n_slots * self.n_entities

    @abstractmethod
    def terms(self, rows: Ints, *, reverse: bool = False, missing: bool = False) -> Terms:
        """Conditional terms of the observations of some rows, of missing cells on request."""

    def products(self, rows: Ints, target: Floats, bag: Floats) -> Floats:
        """Inner products rho . s / d of every cell of some rows, (rows, N * D)."""
        terms = self.terms(rows, missing=True)
        inner_products = np.empty((len(rows), len(target)))
        inner = np.einsum("ik,ik->i", terms.contexts(bag), target[terms.vector])
        inner_products[terms.row, terms.entity] = inner
        return inner_products

    def reverse_products(self, rows: Ints, target: Floats, bag: Floats) -> Floats:
        """Inner products of every cell in a reverse model, in which each member predicts alone."""
        return self.products(rows, target, bag)

    def context_of(self, row: int, entity: int, *, reverse: bool = False) -> tuple[Ints, Floats]:
        """The context of one cell: rows of the context vectors, and coefficients c_m of each.

        The cell of `products` is target . sum of c_m bag_m; `explain` lists the summands.
        """
        if self.n_dims > 1:
            raise ParameterError("single members are for scalar observations, not vectors of them")
        terms = self.terms(np.array([row]), missing=True)
        cell = terms.take(np.flatnonzero(terms.entity == entity))
        coefficients = [bags.coefficients() for bags in cell.parts]
        vectors, values = zip(*coefficients, strict=True)
        return np.concatenate(vectors), np.concatenate(values)

    def row_weights(self, weight: Floats) -> Floats:
        """Weights of the rows, times factors that the context defines."""
        return weight

    def observed(self, rows: Ints) -> Floats:
        """Values of some rows, (rows, N * D); NaN where missing."""
        return dense_rows(self.data, rows).reshape(len(rows), -1)

    def cost_of_row(self) -> int:
        """Rough number of values that `terms` stores for one row."""
        return self.n_entities * self.n_dims


class SumOfBound(BoundContext):
    """Sum of two bound contexts of different kinds."""

    def __init__(self, left: BoundContext, right: BoundContext) -> None:
        self.left, self.right, self.data = left, right, left.data
        self.n_rows, self.n_entities, self.n_dims = left.n_rows, left.n_entities, left.n_dims
        self.n_slots = max(left.n_slots, right.n_slots)

    @property
    def parts(self) -> tuple[BoundContext, ...]:
        """The parts of both sides."""
        return self.left.parts + self.right.parts

    def frozen(self, context: Context) -> Context:
        """The sum of both frozen contexts."""
        assert context.is_sum
        parts: Any = context
        return ContextSum(self.left.frozen_part(parts.left), self.right.frozen_part(parts.right))

    def terms(self, rows: Ints, *, reverse: bool = False, missing: bool = False) -> Terms:
        """Terms whose context sums include the parts of both."""
        if reverse:
            raise ParameterError("combine='reverse' does not take a sum of different contexts")
        left, right = (part.terms(rows, missing=missing) for part in (self.left, self.right))
        return left.joined(right)

    def cost_of_row(self) -> int:
        """Sum over both contexts."""
        return self.left.cost_of_row() + self.right.cost_of_row()


def dense_rows(data: Dataset, rows: Ints) -> Floats:
    """Rows of the data as float64 (rows, N, D); an observation with any NaN is NaN throughout."""
    block = data.values[rows]
    dense = block.toarray() if data.is_sparse else block
    out = np.array(dense, dtype=np.float64).reshape(len(rows), data.n_entities, data.n_dims)
    if not data.is_sparse:
        out[np.isnan(out).any(axis=2)] = np.nan
    return out


def gather_rows(ptr: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """CSR pointer of the selected rows, and the positions of their entries.

    >>> gather_rows(np.array([0, 2, 2, 5]), np.array([2, 0]))
    (array([0, 3, 5]), array([2, 3, 4, 0, 1]))
    """
    starts = ptr[rows].astype(np.int64)
    sizes = ptr[rows + 1] - starts
    new = np.concatenate([[0], np.cumsum(sizes)])
    return new, np.arange(new[-1]) + np.repeat(starts - new[:-1], sizes)


def or_one(scale: Floats) -> Floats:
    """The scale, or 1 if nothing remains in the context."""
    return np.where(scale > 0, scale, 1.0)


def check_scale(data: Dataset, scale: str) -> None:
    """Reject an unknown scale, and "total" on negative data."""
    if scale not in SCALES:
        raise ParameterError(f"unknown scale {scale!r}; {suggest(scale, SCALES)}")
    if scale != "total":
        return
    values = data.values.data if data.is_sparse else data.values
    if values.size and float(np.nanmin(values)) < 0:
        raise DataError(
            "scale='total' divides by the sum of the context, so the data must be >= 0; "
            "use scale='items' or scale='none'"
        )
