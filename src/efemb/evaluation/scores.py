"""Score: a mean over units, entries or rows, with its standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import DataError, ParameterError, check_known

By: TypeAlias = Literal["unit", "entry", "row"]
BY = ("unit", "entry", "row")


@dataclass(frozen=True)
class Score:
    """A mean and its standard errors.

    Attributes
    ----------
    value : float
        The mean.
    standard_error : float
        Standard deviation / sqrt(n), treating units or entries as independent: the figure that
        the paper reports.
    n : float
        Number of units, entries or rows.
    row_error : float
        Standard error that treats only rows as independent. Since the entries of a row are
        correlated, it is often the larger and the more reliable one. NaN for a single row.

    Examples
    --------
    >>> Score(-5.6911, 0.0061, 26_000)
    Score(-5.6911 +- 0.0061, n = 26,000)
    """

    value: float
    standard_error: float
    n: float
    row_error: float = float("nan")

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return f"Score({self.value:.4f} +- {self.standard_error:.4f}, n = {self.n:,.10g})"


def average(values: Floats, by: By, *, x: Floats, row: Ints) -> Score:
    """Mean of one number per entry.

    "entry": sum v / n. "unit": sum x v / sum x, as if an entry of x units were x entries.
    "row": the mean over rows of the mean of their entries.
    """
    if len(values) == 0:
        raise DataError("there are no entries to average over")
    weight = weights(by, x=x)
    if by == "row":
        row_sums = per_row(values, weight, row)
        values, weight = row_sums[0] / row_sums[1], np.ones(len(row_sums[1]))
        row = np.arange(len(weight))
    n = float(weight.sum())
    with np.errstate(invalid="ignore"):  # the score of an impossible entry is -inf
        mean = float(weight @ values / n)
        variance = float(weight @ (values - mean) ** 2 / n)
        sums, totals = per_row(values, weight, row)
        clustered = row_errors(sums[:, None], totals, np.array([mean]))
    return Score(mean, float(np.sqrt(variance / n)), n, float(clustered[0]))


def weights(by: Any, *, x: Floats) -> Floats:
    """Weight of each entry: its units, or 1."""
    check_known("by", by, BY)
    if by != "unit":
        return np.ones(len(x))
    if (x <= 0).any():
        raise ParameterError(
            'by="unit" weights entries by their counts, but not all values are > 0; '
            'use by="entry" or by="row"'
        )
    return x.astype(np.float64)


def row_errors(sums: Floats, totals: Floats, means: Floats) -> Floats:
    """Standard errors of means = sum(sums) / sum(totals), with rows as independent draws.

    sums : (rows, scores);  totals : (rows,);  sqrt(sum_t (sums_t - means totals_t)^2) / sum(totals)
    """
    if len(totals) == 1:  # the variance between rows is unknown
        return np.full(len(means), np.nan)
    return np.asarray(np.sqrt(((sums - means * totals[:, None]) ** 2).sum(axis=0)) / totals.sum())


def per_row(values: Floats, weight: Floats, row: Ints) -> tuple[Floats, Floats]:
    """Sums of weight * value and of weight for each row that has entries, in order of the rows."""
    _, index = np.unique(row, return_inverse=True)
    sums, weights = np.bincount(index, weight * values), np.bincount(index, weight)
    return np.asarray(sums, np.float64), np.asarray(weights, np.float64)
