"""Owners: entities that the customer of a row has in other rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from efemb._typing import Bools, Ints
from efemb.data.align import in_order
from efemb.data.array_checks import make_csr
from efemb.data.columns import distinct_labels, label_codes
from efemb.data.dataset import Dataset
from efemb.data.matrices import sparse, stored_cells
from efemb.errors import DataError, InputTypeError


@dataclass(frozen=True)
class Purchases:
    """Entities that the owners of some rows have in these rows.

    column : row column with the owners;  known : all owners, one per row of `holds`
    holds : csr_array of shape (owners, N), not 0 where an owner has the entity
    """

    column: str
    known: list[Any]
    holds: Any

    @classmethod
    def of(cls, past: Dataset, column: str, name: str) -> Purchases:
        """The purchases of all owners in `past`, which errors call `name`."""
        labels = _labels(past, column, name)
        known = distinct_labels(labels)
        owner = label_codes(labels, known)
        matrix = sparse(past)
        row, entity = stored_cells(matrix)
        held = (owner[row] >= 0) & (matrix.data != 0)
        cells = (
            np.ones(int(held.sum()), dtype=np.int32),
            (owner[row][held], entity[held]),
        )
        return cls(column, known, make_csr(cells, shape=(len(known), past.n_entities)))

    def owners(self, data: Dataset, name: str) -> Ints:
        """The row of `holds` for the owner of each row, -1 for unknown and missing ones."""
        return label_codes(_labels(data, self.column, name), self.known)

    def has(self, owner: Ints, entity: Ints) -> Bools:
        """For each pair, whether the owner has the entity."""
        rows, stored = stored_cells(self.holds)
        size = np.int64(self.holds.shape[1])
        return (owner >= 0) & np.isin(owner * size + entity, rows * size + stored)

    def of_owners(self, owner: Ints) -> Bools:
        """Mask of the entities that some owners have, (n, N)."""
        holds, is_known = np.zeros((len(owner), self.holds.shape[1]), dtype=bool), owner >= 0
        holds[is_known] = self.holds[owner[is_known]].toarray() != 0
        return holds


def find_bought(data: Dataset, past: Any, user: str) -> Callable[[Ints], Bools]:
    """The entities that the customers of some rows have in earlier rows."""
    if not isinstance(past, Dataset):
        raise InputTypeError(
            f"past must be a Dataset with the customers of its rows, got {type(past).__name__}"
        )
    purchases = Purchases.of(in_order(past, data.entities)[0], user, "past")
    owner = purchases.owners(data, "data")
    return lambda rows: purchases.of_owners(owner[rows])


def _labels(data: Dataset, column: str, name: str) -> list[Any]:
    if column not in data.rows:
        raise DataError(
            f"{name} has no row column {column!r} to identify the customer of each row: "
            "pass Dataset(values, users=...), or name another column"
        )
    return list(data.rows[column].tolist())
