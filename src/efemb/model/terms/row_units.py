"""The units of rows, and numbers that identify rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from efemb._typing import Ints
from efemb.errors import DataError
from efemb.model.terms.cell_values import SparseRows

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset
    from efemb.model.terms.base import Term

MIXERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def mix_numbers(left: Ints, right: Ints) -> Ints:
    """A number for each pair of numbers, spread over all 64 bits."""
    with np.errstate(over="ignore"):
        mixed = left.view(np.uint64) * np.uint64(MIXERS[0]) + right.view(np.uint64)
        for shift, factor in ((30, MIXERS[1]), (27, MIXERS[2])):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31))).view(np.int64)


def read_units(term: Term, data: Dataset, n_entities: int) -> SparseRows:
    """Stored values of the rows, without missing ones and entities from `n_entities` on."""
    if data.is_sparse:
        values = data.values
        units = SparseRows(
            values.indptr.astype(np.int64), values.indices.astype(np.int64), values.data
        )
    else:
        dense = np.nan_to_num(data.values.reshape(data.n_rows, -1))
        row, ids = np.nonzero(dense)
        ptr = np.searchsorted(row, np.arange(data.n_rows + 1))
        units = SparseRows(ptr, ids, dense[row, ids])
    negative = np.flatnonzero(units.values < 0)
    if len(negative):
        raise DataError(
            f"{term!r} counts units, but row {units.row[negative[0]]} has "
            f"{units.values[negative[0]]:g}: use another term for signed data"
        )
    known = units.ids < n_entities
    if known.all():
        return units
    ptr = np.concatenate([[0], np.cumsum(known)])[units.ptr]
    return SparseRows(ptr, units.ids[known], units.values[known])
