"""Cells of rows x entities: as arrays, as shares, and held out for early stopping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from efemb._typing import Floats, Ints
from efemb.data.matrices import stored_cells
from efemb.errors import DataError

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


def log_shares(log_means: Floats, entities: Ints) -> Floats:
    """log(m_n / sum_j m_j) of the queried entity of each row; overwrites log_means."""
    log_means -= log_means.max(axis=1, keepdims=True)
    picked = log_means[np.arange(len(entities)), entities]
    np.exp(log_means, out=log_means)
    return np.asarray(picked - np.log(log_means.sum(axis=1)))


def normal_log_density(gap: Floats, variance: Floats) -> Floats:
    """log-density of Normal(0, variance) at gap."""
    return np.asarray(-0.5 * (gap * gap / variance + np.log(2.0 * np.pi * variance)))


def known_variances(variance: Floats, values: Floats) -> Floats:
    """Variances of entities; constant entities get the mean variance of the others.

    Their own is unknown, and 0 would make any later change infinitely improbable.
    """
    varies = np.nanmax(values, axis=0) > np.nanmin(values, axis=0)
    return np.where(varies, variance, variance[varies].mean() if varies.any() else 1.0)


@dataclass(frozen=True)
class Holdout:
    """Held-out data: other rows, entries of the training rows, or nothing.

    others : Dataset of rows, scored by leaving out one entry at a time
    rows, entities, x : (n,) entries that are not in the training data
    """

    others: Dataset | None
    rows: Ints
    entities: Ints
    x: Floats

    @classmethod
    def of(cls, data: Dataset, validation: Dataset | None, *, missing: bool) -> Holdout:
        """Entries if they lie in the same rows and none is in the data, otherwise rows.

        missing : whether absent values are NaN; otherwise they are zeros
        """
        none = np.zeros(0, dtype=np.int64)
        nothing = cls(None, none, none, np.zeros(0))
        if validation is None:
            return nothing
        if missing and (data.is_sparse or validation.is_sparse):  # zeros are data
            return cls(validation, none, none, nothing.x)
        held = _mask_present(validation, missing)
        overlap = validation.shape != data.shape or _mask_present(data, missing).multiply(held).nnz
        if overlap:
            return cls(validation, none, none, nothing.x)
        rows, entities = stored_cells(held)
        if len(rows) == 0:
            raise DataError("validation is empty, so it cannot be used for early stopping: omit it")
        x = validation.values[rows, entities]
        return cls(None, rows, entities, np.asarray(x, dtype=np.float64).ravel())

    @property
    def is_set(self) -> bool:
        """Whether anything was held out."""
        return self.others is not None or len(self.rows) > 0

    def mask(self, shape: Any) -> Any:
        """csr_array of ones at the held-out entries, which are masked in training."""
        ones = np.ones(len(self.rows))
        return csr_array((ones, (self.rows, self.entities)), shape=shape)


def _mask_present(data: Dataset, missing: bool) -> Any:
    """csr_array, True where the data have a value."""
    if missing:
        return csr_array(~np.isnan(data.values))
    return csr_array(data.values != 0)
