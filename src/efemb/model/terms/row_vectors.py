"""RowVectors: a vector for each group of rows, such as the household that shops."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.data.columns import distinct_labels, label_codes
from efemb.errors import InputTypeError, check_integer, check_name
from efemb.model.ingredient import row_column
from efemb.model.priors import Prior
from efemb.model.terms.base import (
    Arrays,
    BoundTerm,
    Term,
    TermArray,
)

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset
    from efemb.model.families.base import Family
    from efemb.model.links import Link

SPREAD = 0.1  # standard deviation of the first inner products
LOG_SPREAD = 0.5  # and of the logarithms of positive vectors


class RowVectors(Term):
    """Vectors of groups of rows, such as households, which differ in the entities they hold.

    u_tn += theta_g(t) . gamma_n, where g(t) is the group of row t. In a model with a positive
    predictor (`AdditivePoissonEmbedding`) both vectors are positive, so that the term adds to the
    mean, and zeros keep their closed form.

    Parameters
    ----------
    column : str
        Row column of the data that names the group of each row: "household", "week", "store".
    n_components : int, default=20
        Length of the vectors theta and gamma.
    prior : Prior or str, default="normal"
        Prior of theta and of gamma. A normal one becomes half-normal, with the same precision, in
        models with a positive predictor.
    groups : sequence of labels, optional
        The groups that have a vector. By default those of the training rows; rows of other
        groups, and rows whose group is missing, get the prior mean 0.

    Examples
    --------
    >>> import efemb
    >>> rng = np.random.default_rng(0)
    >>> households = np.repeat(["Ann", "Ben", "Cleo"], 20)
    >>> trips = efemb.Dataset(rng.poisson(1.0, (60, 4)), rows={"household": households})
    >>> terms = [RowVectors("household", 2)]
    >>> model = efemb.PoissonEmbedding(2, terms=terms, random_state=0).fit(trips)
    >>> model.parameters_.terms["household.rows"].shape
    (3, 2)
    """

    entity_array = "entities"
    group_array = "rows"
    learns_from_columns = True
    from_fit = ("groups",)

    def __init__(
        self, column: str, n_components: int = 20, prior: Any = "normal", groups: Any = None
    ) -> None:
        self.column = column
        self.n_components = n_components
        self.prior = prior
        self.groups = groups

    @property
    def label(self) -> str:
        """The column."""
        return self.column

    @property
    def width(self) -> int:  # type: ignore[override]
        """Length of the vectors."""
        return int(self.n_components)

    def check(self) -> None:
        """The column is a name, the length a positive integer."""
        check_name("RowVectors.column", self.column)
        check_integer("RowVectors.n_components", self.n_components)
        groups = () if self.groups is None else self.groups
        if strange := [label for label in groups if not isinstance(label, Hashable)]:
            raise InputTypeError(f"RowVectors.groups must be labels, got {strange[0]!r}")
        Prior.resolve(self.prior).check()

    def check_model(self, family: Family, link: Link) -> None:
        """Positive vectors need a link that needs them."""
        self.check_sign(link)

    @property
    def positive(self) -> bool:
        """Whether theta and gamma are positive."""
        return Prior.resolve(self.prior).positive

    def with_positive(self) -> RowVectors:
        """The term with the prior on positive vectors."""
        prior = Prior.resolve(self.prior).of_positive()
        return type(self)(self.column, self.n_components, prior, self.groups)

    def freeze(self, data: Dataset) -> RowVectors:
        """The groups of the training rows, in the order of their first rows."""
        if self.groups is not None:
            return self
        groups = distinct_labels(row_column(data, self.column, self).tolist())
        return type(self)(self.column, self.n_components, self.prior, groups)

    def add_groups(self, data: Dataset) -> RowVectors:
        """The known groups, then those of other rows."""
        groups = distinct_labels(row_column(data, self.column, self).tolist(), self.groups)
        return type(self)(self.column, self.n_components, self.prior, [*self.groups, *groups])

    def arrays(self, n_entities: int) -> tuple[TermArray, ...]:
        """theta of the groups and gamma of the entities."""
        prior, k = Prior.resolve(self.prior), self.width
        spread, start = (SPREAD / k**0.5) ** 0.5, 0.0
        if prior.positive:  # products of about 1, which are multiplied by means of entities
            spread, start = LOG_SPREAD, k**-0.5
        return (
            TermArray("rows", (len(self.groups), k), prior, spread, start),
            TermArray("entities", (n_entities, k), prior, spread, start),
        )

    def entity_columns(self, arrays: Arrays, n_entities: int) -> Floats:
        """gamma."""
        return arrays["entities"]

    def pull_back_entities(self, gradient: Floats) -> dict[str, Floats]:
        """The gradient itself."""
        return {"entities": gradient}

    def bind(self, data: Dataset) -> BoundTerm:
        """The group of each row by its place among the known ones, -1 for any other."""
        return _GroupedRows(label_codes(row_column(data, self.column, self).tolist(), self.groups))


@dataclass(frozen=True)
class _GroupedRows(BoundTerm):
    """Rows by the code of their group; -1 has no vector."""

    code: Ints

    def row_columns(self, arrays: Arrays, rows: Ints) -> Floats:
        """theta of the group of each row, 0 where it has none."""
        theta, code = arrays["rows"], self.code[rows]
        if len(theta) == 0:
            return np.zeros((len(rows), theta.shape[1]), dtype=theta.dtype)
        columns = theta.take(np.maximum(code, 0), axis=0)
        columns[code < 0] = 0.0
        return columns

    def pull_back_rows(self, arrays: Arrays, rows: Ints, gradient: Floats) -> dict[str, Floats]:
        """Sums over the rows of each group."""
        total, code = np.zeros_like(arrays["rows"]), self.code[rows]
        known = code >= 0
        np.add.at(total, code[known], gradient[known])
        return {"rows": total}
