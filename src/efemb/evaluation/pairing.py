"""Paired differences: models judged on the same entries, and how sure their differences are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from efemb._typing import Floats
from efemb.data.array_checks import generator
from efemb.errors import DataError, ParameterError
from efemb.evaluation.metrics import Metric
from efemb.evaluation.predictions import Predictions
from efemb.evaluation.scores import By, Score, averaged, per_row, row_errors, weights

LEVEL = 0.95
_RESAMPLED_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Difference:
    """Score of a model less that of the reference, on the same entries.

    standard_error : treats the entries of a row as one draw, as the interval does
    low, high : ends of the bootstrap interval, rows drawn with replacement; NaN for a single row
    """

    value: float
    standard_error: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 or -1 if the interval lies on that side of 0, else 0; infinity needs no interval."""
        if np.isinf(self.value):
            return int(np.sign(self.value))
        return int(self.low > 0) - int(self.high < 0)


def check_same_entries(found: Mapping[str, Predictions]) -> None:
    """Refuse predictions of different entries: their scores are not comparable."""
    names = list(found)
    first = found[names[0]]
    for name in names[1:]:
        other = found[name]
        same = len(first) == len(other) and all(
            np.array_equal(getattr(first, one), getattr(other, one)) for one in ("row", "entity")
        )
        if not same:
            raise ParameterError(
                f"{name!r} was judged on other entries than {names[0]!r}: real data and counts "
                "models ask for different entries; compare models of one kind, on one X"
            )
        if not np.array_equal(first.x, other.x):
            raise DataError(
                f"{name!r} sees other values than {names[0]!r}: where one model takes every value "
                "for 1 (binarize), pass X of zeros and ones to all"
            )


def scores(found: Mapping[str, Predictions], metric: Metric, by: By) -> dict[str, Score]:
    """Score of each model."""
    return {
        name: averaged(metric.values(one), by, x=one.x, row=one.row) for name, one in found.items()
    }


def differences(
    found: Mapping[str, Predictions],
    metric: Metric,
    by: By,
    reference: str,
    bootstrap: int,
    seed: int,
) -> dict[str, Difference]:
    """Difference of each model to the reference; all share the same draws of rows."""
    base = found[reference]
    weight = weights(by, x=base.x)
    sums = [per_row(metric.values(one), weight, base.row) for one in found.values()]
    total = sums[0][1]
    table = np.stack([one for one, _ in sums], axis=1)
    if by == "row":
        table, total = table / total[:, None], np.ones(len(total))
    with np.errstate(invalid="ignore"):  # -inf less -inf: not a number, and said so
        table = table - table[:, [list(found).index(reference)]]
        values = table.sum(axis=0) / total.sum()
        spread = row_errors(table, total, values)
    low, high = _interval(table, total, bootstrap, seed)
    if len(total) == 1:
        low = high = spread
    each = zip(found, values.tolist(), spread.tolist(), low.tolist(), high.tolist(), strict=True)
    return {name: Difference(*numbers) for name, *numbers in each}


def _interval(table: Floats, total: Floats, bootstrap: int, seed: int) -> tuple[Floats, Floats]:
    """Percentiles of sum(table) / sum(total) over rows drawn with replacement."""
    n_rows = len(total)
    rng = generator(seed)
    step = max(1, _RESAMPLED_AT_ONCE // n_rows)
    drawn = []
    for start in range(0, bootstrap, step):
        size = min(step, bootstrap - start)
        rows = rng.integers(n_rows, size=(size, n_rows)) + n_rows * np.arange(size)[:, None]
        times = np.bincount(rows.ravel(), minlength=size * n_rows).reshape(size, n_rows)
        times = times.astype(np.float64)
        with np.errstate(invalid="ignore"):
            drawn.append((times @ table) / (times @ total)[:, None])
    ends = np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    all_drawn = np.concatenate(drawn)
    low, high = np.quantile(np.where(np.isfinite(all_drawn), all_drawn, np.nan), ends, axis=0)
    return low, high
