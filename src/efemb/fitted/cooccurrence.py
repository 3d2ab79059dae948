"""Support: how often entities occur, and occur together, in the rows of data."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.data.array_checks import is_sparse
from efemb.data.dataset import Dataset
from efemb.errors import InputTypeError, ParameterError, check_number
from efemb.model.contexts.base import gather_rows
from efemb.model.support import check_not_negative
from efemb.table import whole_numbers

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding


class Support:
    """Rows of counts or binary data as sets of entities.

    counts : (N,) rows that hold each entity;  n_rows : T
    """

    def __init__(self, model: FittedEmbedding, data: Any) -> None:
        values = _read_counts(model, data).values
        if is_sparse(values):
            self._ptr, self._ids = values.indptr, values.indices
        else:
            row, self._ids = np.nonzero(np.nan_to_num(values))
            self._ptr = np.searchsorted(row, np.arange(len(values) + 1))
        self.n_rows, self.n_entities = values.shape
        self.counts = np.bincount(self._ids, minlength=self.n_entities).astype(np.float64)
        order = np.argsort(self._ids, kind="stable")
        self._rows = np.repeat(np.arange(self.n_rows), np.diff(self._ptr))[order]
        self._starts = np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64)

    def together(self, entity: int) -> Floats:
        """Rows that hold both `entity` and each of the others, (N,)."""
        rows = self._rows[self._starts[entity] : self._starts[entity + 1]]
        _, entries = gather_rows(self._ptr, rows)
        return np.bincount(self._ids[entries], minlength=self.n_entities).astype(np.float64)

    def pairs_together(self, n: Ints, m: Ints) -> Floats:
        """Number of rows that hold both entities of each pair."""
        together = np.empty(len(n))
        for entity in np.unique(m):
            of_entity = m == entity
            together[of_entity] = self.together(int(entity))[n[of_entity]]
        return together

    def expected(self, n: Ints, m: Ints | int) -> Floats:
        """Expected number of rows that hold both, if they were independent."""
        return np.asarray(self.counts[n] * self.counts[m] / self.n_rows)

    def columns(self, n: Ints, m: Ints, confidence: float) -> dict[str, Any]:
        """Columns of a table of pairs (n, m); `share` is that of the rows with m."""
        together, expected = self.pairs_together(n, m), self.expected(n, m)
        lift, low, high = lift_interval(together, expected, confidence)
        return {
            "count": whole_numbers(self.counts[n]),
            "together": whole_numbers(together),
            "expected": expected,
            "share": together / np.maximum(self.counts[m], 1.0),
            "lift": lift,
            "lift_low": low,
            "lift_high": high,
        }


def lift_interval(
    together: Floats, expected: Floats, confidence: float
) -> tuple[Floats, Floats, Floats]:
    """together / expected, with the score interval of a Poisson count.

    The interval contains all rates r with |together - r expected| <= z sqrt(r expected). It starts
    at 0 if the pair never occurred together, and is then wide if little was expected.

    >>> lift_interval(np.array([0.0, 8.0]), np.array([2.0, 2.0]), 0.95)[2].round(2)
    array([1.92, 7.89])
    """
    z = quantile(confidence)
    nothing = np.where(expected > 0, expected, np.nan)
    middle, half = together + z * z / 2, z * np.sqrt(together + z * z / 4)
    low = np.maximum(middle - half, 0.0)
    return together / nothing, low / nothing, (middle + half) / nothing


def quantile(confidence: Any) -> float:
    """Standard normal z with P(|Z| <= z) = confidence."""
    return NormalDist().inv_cdf(0.5 + check_number("confidence", confidence, above=0, below=1) / 2)


def checked_support(data: Any, min_support: Any) -> float | None:
    """`min_support` as a number; it requires data."""
    if min_support is None:
        return None
    least = check_number("min_support", min_support, low=0)
    if data is None:
        raise ParameterError("min_support counts rows: pass them as data=... (--data FILE)")
    return least


def _read_counts(model: FittedEmbedding, data: Any) -> Dataset:
    if hasattr(data, "tokens"):
        raise InputTypeError("co-occurrence is counted in the rows of a Dataset; a text has none")
    rows = model._labeled_rows(data)
    if rows.n_dims > 1 or model.spec.family.support.low != 0:
        raise ParameterError("co-occurrence is for counts and binary data: leave data out")
    check_not_negative(rows)
    return rows
