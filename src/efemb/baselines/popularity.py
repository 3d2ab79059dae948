"""Popularity: every entity at its mean, regardless of the rest of the row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.baselines.arrays import known_variances
from efemb.baselines.base import Baseline
from efemb.data.matrices import dense
from efemb.errors import DataError
from efemb.estimators.checks import never_observed
from efemb.model.families import Bernoulli, Family, Gaussian, Poisson

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


class Popularity(Baseline):
    """E[x_tn] = mean of entity n over the training rows; the reference for all models.

    Parameters
    ----------
    family : {"auto", "poisson", "bernoulli", "gaussian"}, default="auto"
        "auto" is bernoulli for zeros and ones, poisson for other integers >= 0, otherwise gaussian
        with one variance per entity.
    verbose : int, default=0
        Show progress bars.

    Attributes
    ----------
    mean_ : array of shape (N,)
        For counts, an entity that never occurs counts as half a unit in total, so that no
        probability is 0.
    variance_ : array of shape (N,), gaussian only
        Constant entities have the mean variance of the others.
    family_ : Family
        For real data, its sigma2 is the mean of the variances.

    Examples
    --------
    >>> model = Popularity().fit([[1, 0, 2], [3, 0, 0]])
    >>> model.mean_.tolist()
    [2.0, 0.25, 1.0]
    """

    _allow_real = True  # fractional quantities have a mean, too
    mean_: Floats
    variance_: Floats

    def __init__(self, family: str = "auto", *, verbose: int = 0) -> None:
        self.family = family
        self.verbose = verbose

    def _family(self) -> Family:
        auto = isinstance(self.family, str) and self.family == "auto"
        return Gaussian() if auto else Family.resolve(self.family)

    def _fit(self, data: Dataset, validation: Dataset | None) -> None:
        if isinstance(self.family, str) and self.family == "auto":
            self.family_ = _guess_family(data)
        if self.family_.normalized_score:
            total = np.asarray(data.values.sum(axis=0), dtype=np.float64).ravel()
            self.mean_ = np.maximum(total, 0.5) / data.n_rows
            return
        if (unseen := never_observed(data)).any():
            first = int(np.flatnonzero(unseen)[0])
            name = first if data.entities is None else data.entities[first]
            raise DataError(f"entity {name!r} has no observed value: drop such columns")
        values = dense(data)
        self.mean_ = np.nanmean(values, axis=0)
        self.variance_ = known_variances(np.nanvar(values, axis=0), values)
        self.family_ = Gaussian(max(float(self.variance_.mean()), 1e-300))

    def _factors(self, X: Any, rows: Ints, entities: Ints) -> Floats:
        return np.zeros((len(rows), 0))

    def _columns(self) -> tuple[Floats, Floats]:
        return np.zeros((len(self.mean_), 0)), np.log(self.mean_)

    def _log_mean(self, u: Floats) -> Floats:
        return u

    def _moments(self, data: Dataset) -> tuple[Floats, Floats]:
        return np.broadcast_to(self.mean_, data.shape).copy(), self.variance_


def _guess_family(data: Dataset) -> Family:
    """The family that suits the values."""
    values: Any = data.values.data if data.is_sparse else data.values
    if np.isnan(values).any() or Poisson.support.broken_by(values).any():
        return Gaussian()
    return Poisson() if values.max(initial=0.0) > 1 else Bernoulli()
