"""PersonalPopularity: what a household bought before, and popularity for the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from efemb._typing import Bools, Floats, Ints
from efemb.baselines.base import Baseline, cell_blocks
from efemb.data.columns import distinct_labels, label_codes
from efemb.data.matrices import sparse
from efemb.errors import DataError, InputTypeError
from efemb.model.contexts.base import gather_rows
from efemb.model.families import Categorical, Family
from efemb.model.ingredient import positive_number

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


@dataclass(eq=False, repr=False)
class PersonalPopularity(Baseline):
    """Shares of the entities in the same user's training rows, shrunk toward popularity.

    ``p(n | user h) = (units of n in the rows of h + kappa * popularity_n) / (units of h + kappa)``

    where popularity_n is the share of n in all units. The rest of the row is not used. Users
    without training rows, and rows whose user is missing, get the popularity.

    Parameters
    ----------
    column : str, default="user"
        The row column that names the owner of each row. ``Dataset(users=)`` and
        ``read_baskets(user=)`` fill "user"; others are in ``Dataset(rows=)``.
    kappa : float, default=1000.0
        Weight > 0 of the popularity, in units.
    verbose : int, default=0
        Show progress bars.

    Attributes
    ----------
    popularity_ : array of shape (N,)
        Shares in the training data; an entity that never occurs counts as half a unit.
    units_ : csr_array of shape (users, N)
        Units of each entity in the training rows of each user.
    users_ : dict
        Maps each known user to a row of `units_`.
    family_ : Categorical
        Only the shares of the means are meaningful.

    Notes
    -----
    The counts include every training row, so that a training row is predicted from itself: score
    other rows.

    Examples
    --------
    >>> from efemb import Dataset
    >>> train = Dataset([[3, 0, 1], [0, 4, 0]], users=["ann", "bob"])
    >>> model = PersonalPopularity(kappa=4).fit(train)
    >>> trips = Dataset([[1, 1, 0], [1, 1, 0]], users=["ann", "eve"])
    >>> model.conditional(trips).round(3).tolist()
    [[0.562, 0.25, 0.188], [0.375, 0.5, 0.125]]
    """

    column: str = "user"
    _: KW_ONLY
    kappa: float = 1000.0
    verbose: int = 0

    popularity_: Floats = field(init=False)
    units_: Any = field(init=False)
    users_: dict[Any, int] = field(init=False)

    def _family(self) -> Family:
        return Categorical()

    def _check(self) -> None:
        positive_number(self, "kappa")
        if not isinstance(self.column, str) or not self.column:
            raise InputTypeError(f"column must be the name of a row column, got {self.column!r}")

    def _fit(self, data: Dataset, validation: Dataset | None) -> None:
        owners = self._owners(data)
        self.users_ = {user: user_row for user_row, user in enumerate(distinct_labels(owners))}
        user_row = self._places(data)
        rows = np.flatnonzero(user_row >= 0)
        shape = (len(self.users_), data.n_rows)
        X = sparse(data).astype(np.float64)
        self.units_ = csr_array((np.ones(len(rows)), (user_row[rows], rows)), shape=shape) @ X
        total = np.maximum(np.asarray(X.sum(axis=0)).ravel(), 0.5)
        self.popularity_ = total / total.sum()

    def _owners(self, data: Dataset) -> list[Any]:
        """The user of each row."""
        if self.column not in data.rows:
            raise DataError(
                f"PersonalPopularity(column={self.column!r}) needs the {self.column} of every row, "
                "which the data lack: pass Dataset(values, users=...), or read the table with "
                "read_baskets(..., user='name of the column')"
            )
        return list(data.rows[self.column].tolist())

    def _places(self, data: Dataset) -> Ints:
        """The row of `units_` of each row's user, -1 if unknown."""
        return label_codes(self._owners(data), self.users_)

    def knows(self, data: Dataset) -> Bools:
        """Whether the user of each row has training rows.

        Parameters
        ----------
        data : Dataset

        Returns
        -------
        boolean array of shape (rows,)
        """
        return np.asarray(self._places(data) >= 0)

    def bought(self, data: Dataset, rows: Ints) -> tuple[Ints, Ints]:
        """What the users of some rows have in the training rows.

        Parameters
        ----------
        data : Dataset
        rows : integer array of shape (n,)
            Rows of the data.

        Returns
        -------
        cell, entity : integer arrays
            The place in `rows`, and an entity that its user has.
        """
        place = self._places(data)[rows]
        known = np.flatnonzero(place >= 0)
        ptr, stored = gather_rows(self.units_.indptr, place[known])
        cell, entity = np.repeat(known, np.diff(ptr)), self.units_.indices[stored]
        held = self.units_.data[stored] > 0
        return cell[held], entity[held].astype(np.int64)

    def _log_mean_blocks(
        self, data: Dataset, rows: Ints, entities: Ints
    ) -> Iterator[tuple[slice, Floats]]:
        user_row = self._places(data)[rows]
        for block in cell_blocks(len(rows), data.n_entities):
            yield block, self._log_shares(user_row[block])

    def _own_log_means(self, data: Dataset) -> Floats:
        return self._log_shares(self._places(data))

    def _log_shares(self, user_row: Ints) -> Floats:
        """log p of all entities for users by their row of `units_`, -1 being an unknown user."""
        units, is_known = np.zeros((len(user_row), len(self.popularity_))), user_row >= 0
        units[is_known] = self.units_[user_row[is_known]].toarray()
        kappa = float(self.kappa)
        totals = units.sum(axis=1, keepdims=True)
        return np.asarray(np.log((units + kappa * self.popularity_) / (totals + kappa)))
