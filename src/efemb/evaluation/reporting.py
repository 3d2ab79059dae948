"""Predictions of entries, from shares of all means or from the means of single cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from efemb.baselines.cells import normal_log_density
from efemb.data.readers.progress import progress_bar
from efemb.errors import DataError
from efemb.evaluation.densities import log_density_of_mean
from efemb.evaluation.models import Judged
from efemb.evaluation.predictions import Predictions
from efemb.evaluation.shares import scored_entries
from efemb.types import Bools, Floats, Ints


def from_shares(
    judged: Judged, row: Ints, entity: Ints, x: Floats, skipped: Bools, progress: bool
) -> Predictions:
    """Entries of counts or binary data, scored against all other entities."""
    row, entity, x = row[~skipped], entity[~skipped].astype(np.int64), x[~skipped]
    units = x.astype(np.float64)
    with progress_bar("scoring entries", len(row), progress) as advance:
        found = scored_entries(judged, row, judged.codes(entity), units, advance)
    return Predictions(row, entity, units, n_skipped=int(skipped.sum()), **found)


class Expected(NamedTuple):
    """Conditional mean and, where known, variance and size of the context of each cell."""

    mean: Floats
    variance: Floats | None
    size: Ints | None


def from_means(judged: Judged, x: Floats, expected: Expected) -> Predictions:
    """Every cell of x that is not NaN, with its conditional mean."""
    mean, variance, size = expected
    seen = ~np.isnan(x) if x.ndim == 2 else ~np.isnan(x).any(axis=2)
    row, entity = (np.repeat(index, x[0, 0].size) for index in np.nonzero(seen))
    if len(row) == 0:
        raise DataError("no value is observed: there is nothing to predict")
    sizes = None if size is None else size[row, entity]
    if sizes is not None and not sizes.any():
        raise DataError(
            "every context is empty: no observed value has an observed member in its context"
        )
    observed, predicted = x[seen].ravel().astype(np.float64), mean[seen].ravel()
    bad = np.flatnonzero(~np.isfinite(predicted))
    if len(bad):
        raise DataError(
            f"{type(judged.model).__name__}.conditional gave {predicted[bad[0]]} in row "
            f"{row[bad[0]]}, entity {entity[bad[0]]}: has the fit diverged?"
        )
    density = (
        log_density_of_mean(judged.family, observed, predicted)
        if variance is None
        else normal_log_density(observed - predicted, variance[seen].ravel())
    )
    return Predictions(
        row, entity, observed, log_density=density, mean=predicted, context_size=sizes
    )
