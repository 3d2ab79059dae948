"""Pools: how the shares of several models become one distribution, and how weights are fitted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from efemb.scoring import log_sums
from efemb.types import Floats, Ints

RIDGE = 1e-4  # on log-linear weights: only matters where a likelihood has no maximum
SMALLEST_SHARE = 1e-12
NORMALIZER = "(normalizer)"
_STEPS = 50
_EM_STEPS = 10_000
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Sample:
    """Held-out entries and what P models say about them.

    entities : (n,), the entries;  units : (n,), their counts
    blocks : gives (slice of the entries, log shares (cells, P, N)) again on every call
    """

    entities: Ints
    units: Floats
    blocks: Callable[[], Iterator[tuple[slice, Floats]]]

    def own(self) -> Floats:
        """Log shares of the entries themselves, (n, P)."""
        return np.concatenate(
            [logs[np.arange(len(logs)), :, self.entities[cells]] for cells, logs in self.blocks()]
        ).astype(np.float64)

    def mean(self, values: Floats) -> Floats:
        """Mean per unit of numbers of the entries, (n,) or (n, ...)."""
        return np.asarray(self.units @ values / self.units.sum())


@dataclass(frozen=True)
class Pool(ABC):
    """Weights (P,) of the models, and the rule by which their shares are combined."""

    weights: Floats
    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def fit(cls, sample: Sample) -> Self:
        """The weights of the largest mean log share per unit of held-out entries."""

    @abstractmethod
    def combine(self, logs: Floats) -> Floats:
        """Log shares (cells, N) from those of the models, (cells, P, N)."""

    @abstractmethod
    def explain(self, logs: Floats, entity: int, names: list[str]) -> dict[str, list[Any]]:
        """Columns that say what each model adds to the share of an entity; logs : (P, N)."""

    def score(self, sample: Sample) -> float:
        """Mean log share per unit of the sample."""
        log_share = np.empty(len(sample.entities))
        for cells, logs in sample.blocks():
            combined = self.combine(logs.astype(np.float64))
            log_share[cells] = combined[np.arange(len(combined)), sample.entities[cells]]
        return float(sample.mean(log_share))


class Mixture(Pool):
    """p_j = sum_i w_i q_ij, w >= 0, sum of w = 1; q_ij is the share of entity j in model i.

    The log-likelihood is concave in w and only needs the shares of the entries themselves, so
    that expectation-maximisation finds its maximum.
    """

    name = "mixture"

    @classmethod
    def fit(cls, sample: Sample) -> Self:
        """w_i <- mean of the responsibilities w_i q_i / p, until they stand still."""
        shares = np.exp(sample.own())
        # What no model thinks possible says nothing about the weights.
        possible = shares.sum(axis=1) > 0
        shares, units = shares[possible], sample.units[possible]
        weights = np.full(shares.shape[1], 1.0 / shares.shape[1])
        for _ in range(_EM_STEPS if len(shares) else 0):
            ratio = units @ (shares / (shares @ weights)[:, None]) / units.sum()
            moved = weights * ratio
            change = np.abs(moved - weights).max()
            weights = moved / moved.sum()
            if change < _TOLERANCE:
                break
        return cls(weights)

    def combine(self, logs: Floats) -> Floats:
        """log sum_i w_i q_ij without underflow; models of weight 0 are left out."""
        used = np.flatnonzero(self.weights)
        total = logs[:, used[0]] + np.log(self.weights[used[0]])
        for i in used[1:]:
            total = np.logaddexp(total, logs[:, i] + np.log(self.weights[i]))
        return np.asarray(total)

    def explain(self, logs: Floats, entity: int, names: list[str]) -> dict[str, list[Any]]:
        """Each model's share, and its responsibility w_i q_i / p; these add up to 1."""
        shares = np.exp(logs[:, entity])
        joint = self.weights * shares
        responsibility = joint / joint.sum() if joint.sum() > 0 else self.weights
        return {
            "model": names,
            "weight": self.weights.tolist(),
            "probability": shares.tolist(),
            "responsibility": responsibility.tolist(),
        }


class LogLinear(Pool):
    """log p_j = sum_i w_i log q_ij - log sum_k prod_i q_ik^w_i, weights of any sign.

    Shares below 1e-12 count as 1e-12, so that what one model thinks impossible stays possible.
    The log-likelihood is concave in w; Newton's method finds its maximum (with a ridge of 1e-4).
    """

    name = "log-linear"

    @classmethod
    def fit(cls, sample: Sample) -> Self:
        """Newton steps, halved while they do not improve."""
        n_models = next(sample.blocks())[1].shape[1]
        weights = np.full(n_models, 1.0 / n_models)
        value, gradient, curvature = _moments(sample, weights)
        for _ in range(_STEPS):
            step = np.linalg.solve(curvature, gradient)
            if gradient @ step < _TOLERANCE:
                break
            for _ in range(_STEPS):
                moved = _moments(sample, weights + step)
                if moved[0] > value:
                    break
                step = step / 2.0
            else:
                break
            weights = weights + step
            value, gradient, curvature = moved
        return cls(weights)

    def combine(self, logs: Floats) -> Floats:
        """The weighted sum of the floored log shares, normalised."""
        u = _weighted_sum(self.weights, _floored(logs))
        return np.asarray(u - log_sums(u)[:, None])

    def explain(self, logs: Floats, entity: int, names: list[str]) -> dict[str, list[Any]]:
        """The terms w_i log q_i and minus the log normaliser; these add up to log p."""
        own = _floored(logs)[:, entity]
        normalizer = log_sums(_weighted_sum(self.weights, _floored(logs[None])))[0]
        return {
            "model": [*names, NORMALIZER],
            "weight": [*self.weights.tolist(), np.nan],
            "probability": [*np.exp(own).tolist(), np.nan],
            "contribution": [*(self.weights * own).tolist(), -float(normalizer)],
        }


POOLS: dict[str, type[Pool]] = {pool.name: pool for pool in (Mixture, LogLinear)}


def _floored(logs: Floats) -> Floats:
    return np.maximum(logs, np.log(SMALLEST_SHARE))


def _weighted_sum(weights: Floats, logs: Floats) -> Floats:
    """sum_i w_i log q_ij, (cells, N); logs : (cells, P, N)."""
    return np.asarray(np.matmul(weights.astype(logs.dtype), logs))


def _moments(sample: Sample, weights: Floats) -> tuple[float, Floats, Floats]:
    """Penalised mean log share per unit, its gradient and minus its second derivative in w.

    With E the mean and C the covariance of log q_i over p: gradient log q_n - E, curvature C.
    """
    n_models = len(weights)
    values = np.empty(len(sample.units))
    slopes = np.empty((len(sample.units), n_models))
    curvature = RIDGE * np.eye(n_models)
    for cells, block in sample.blocks():
        logs = _floored(block)
        u = _weighted_sum(weights, logs)
        log_total = log_sums(u)
        p = np.exp(u - log_total.astype(u.dtype)[:, None])
        own = logs[np.arange(len(logs)), :, sample.entities[cells]].astype(np.float64)
        mean = np.matmul(logs, p[:, :, None])[:, :, 0].astype(np.float64)
        second = np.matmul(logs * p[:, None, :], logs.transpose(0, 2, 1)).astype(np.float64)
        values[cells] = own @ weights - log_total
        slopes[cells] = own - mean
        spread = second - mean[:, :, None] * mean[:, None, :]
        share = sample.units[cells] / sample.units.sum()
        curvature += np.einsum("c,cij->ij", share, spread)
    penalty = 0.5 * RIDGE * float(weights @ weights)
    return (
        float(sample.mean(values)) - penalty,
        sample.mean(slopes) - RIDGE * weights,
        curvature,
    )
