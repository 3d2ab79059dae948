"""Covariate: a number of each row, such as the temperature or whether it is a weekend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import DataError, check_name
from efemb.model.ingredient import row_column
from efemb.model.priors import Prior
from efemb.model.terms.base import Arrays, BoundTerm, Term, TermArray, check_signed

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

SPREAD = 0.01  # standard deviation of the first coefficients


class Covariate(Term):
    """u_tn += c_n z_t: every entity responds to a covariate of the row in its own way.

    Parameters
    ----------
    column : str
        Row column of the data that holds a number per row. A missing value counts as the mean.
    prior : Prior or str, default="normal"
        Prior of the coefficients c.
    center, scale : float, optional
        z is (value - center) / scale; by default the mean and the standard deviation of the
        training rows.

    Examples
    --------
    >>> import efemb
    >>> weekend = np.tile([0, 0, 1], 40)
    >>> counts = np.random.default_rng(0).poisson(np.where(weekend, 3.0, 1.0)[:, None], (120, 3))
    >>> trips = efemb.Dataset(counts, rows={"weekend": weekend})
    >>> terms = [Covariate("weekend")]
    >>> model = efemb.PoissonEmbedding(1, terms=terms, random_state=0).fit(trips)
    >>> bool((model.parameters_.terms["weekend.coefficients"] > 0).all())
    True
    """

    width = 1
    entity_array = "coefficients"
    learns_from_columns = True

    def __init__(
        self,
        column: str,
        prior: Any = "normal",
        center: float | None = None,
        scale: float | None = None,
    ) -> None:
        self.column = column
        self.prior = prior
        self.center = center
        self.scale = scale

    @property
    def label(self) -> str:
        """The column."""
        return self.column

    def check(self) -> None:
        """The column is a name, the prior one of signed numbers."""
        check_name("Covariate.column", self.column)
        check_signed(self, Prior.resolve(self.prior))

    def freeze(self, data: Dataset) -> Covariate:
        """Center and scale of the training rows."""
        values = self._numbers(data)
        known = values[np.isfinite(values)]
        center = float(known.mean()) if self.center is None and len(known) else self.center
        scale = float(known.std()) if self.scale is None and len(known) else self.scale
        if center is None or scale is None or not scale > 0:
            raise DataError(
                f"the row column {self.column!r} does not vary (or is missing in every row), so "
                "nothing can be learned from it: leave the term out"
            )
        return type(self)(self.column, self.prior, center, scale)

    def arrays(self, n_entities: int) -> tuple[TermArray, ...]:
        """One coefficient per entity."""
        prior = Prior.resolve(self.prior)
        return (TermArray("coefficients", (n_entities, 1), prior, SPREAD),)

    def entity_columns(self, arrays: Arrays, n_entities: int) -> Floats:
        """The coefficients."""
        return arrays["coefficients"]

    def pull_back_entities(self, gradient: Floats) -> dict[str, Floats]:
        """The gradient itself."""
        return {"coefficients": gradient}

    def bind(self, data: Dataset) -> BoundTerm:
        """Standardized values of the rows, 0 where missing."""
        assert self.center is not None
        assert self.scale is not None
        z = (self._numbers(data) - self.center) / self.scale
        return _StandardizedRows(np.nan_to_num(z)[:, None])

    def _numbers(self, data: Dataset) -> Floats:
        column = row_column(data, self.column, self)
        try:
            return column.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"Covariate({self.column!r}) needs numbers, but the column holds other values "
                f"({error}); use RowVectors for groups"
            ) from error


@dataclass(frozen=True)
class _StandardizedRows(BoundTerm):
    """Values of the rows, which are data."""

    z: Floats

    def row_columns(self, arrays: Arrays, rows: Ints) -> Floats:
        """The values."""
        return self.z[rows].astype(arrays["coefficients"].dtype, copy=False)

    def pull_back_rows(self, arrays: Arrays, rows: Ints, gradient: Floats) -> dict[str, Floats]:
        """No gradients, because the values are data."""
        return {}
