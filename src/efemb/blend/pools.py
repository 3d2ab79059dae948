"""Pools: rules that combine the shares of several models, with fitted weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from efemb._typing import Floats, Ints
from efemb.model.objective import log_sums

RIDGE = 1e-4  # on log-linear weights: only matters if the likelihood has no maximum
SMALLEST_SHARE = 1e-12
NORMALIZER = "(normalizer)"
_STEPS = 50
_EM_STEPS = 10_000
_TOLERANCE = 1e-9
_WORTHWHILE = 1e-5  # nats per unit
_LOWEST = -1e15


@dataclass(frozen=True)
class Sample:
    """Held-out entries and the log shares of P models.

    entities : (n,), the entries;  units : (n,), their counts
    blocks : returns an iterator of (slice of the entries, log shares (cells, P, N))
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
        """The weights with the largest mean log share per unit of held-out entries."""

    @abstractmethod
    def combine(self, logs: Floats) -> Floats:
        """Log shares (cells, N) from those of the models, (cells, P, N)."""

    @abstractmethod
    def explain(self, logs: Floats, entity: int, names: list[str]) -> dict[str, list[Any]]:
        """Columns with the contribution of each model to the share of an entity; logs : (P, N)."""

    def model_powers(self) -> Floats:
        """Power of each model; 1 unless the rule has powers besides the weights."""
        return np.ones(len(self.weights))

    def score(self, sample: Sample) -> float:
        """Mean log share per unit of the sample."""
        log_share = np.empty(len(sample.entities))
        for cells, logs in sample.blocks():
            combined = self.combine(logs.astype(np.float64))
            log_share[cells] = combined[np.arange(len(combined)), sample.entities[cells]]
        return float(sample.mean(log_share))


@dataclass(frozen=True)
class Mixture(Pool):
    """p_j = sum_i w_i q_ij^t_i / sum_k q_ik^t_i, w >= 0, sum of w = 1, powers t > 0.

    q_ij is the share of entity j in model i. A power above 1 sharpens a model: shares that are
    optimal for a model alone are too flat in a mixture, in which others cover what it misses.
    """

    powers: Floats
    name = "mixture"

    def model_powers(self) -> Floats:
        """The fitted powers."""
        return self.powers

    @classmethod
    def fit(cls, sample: Sample) -> Self:
        """Expectation-maximization from powers of 1, a Newton step per power and pass."""
        powers = np.ones(next(sample.blocks())[1].shape[1])
        best, best_score = cls(powers / len(powers), powers), -np.inf
        for _ in range(_STEPS):
            own, gap, variance = _tempered_moments(sample, powers)
            # Entries that are impossible in all models carry no information about the weights.
            possible = np.exp(own).sum(axis=1) > 0
            weights = mixture_weights(own[possible], sample.units[possible])
            log_shares, responsibility = _mix(own[possible], weights)
            units = sample.units[possible]
            score = float(units @ log_shares / units.sum()) if len(units) else 0.0
            if not score > best_score + _WORTHWHILE:
                break
            best, best_score = cls(weights, powers), score
            slope = (units[:, None] * responsibility * gap[possible]).sum(axis=0)
            curvature = (units[:, None] * responsibility * variance[possible]).sum(axis=0)
            step = slope / np.maximum(curvature, 1e-12)
            powers = np.clip(powers + step, powers / 2.0, powers * 2.0)
        return best

    def combine(self, logs: Floats) -> Floats:
        """Log of the mixture without underflow; models with weight 0 are left out."""
        used = np.flatnonzero(self.weights)
        total = None
        for i in used:
            term = _temper(logs[:, i], self.powers[i]) + np.log(self.weights[i])
            total = term if total is None else np.logaddexp(total, term)
        return np.asarray(total)

    def explain(self, logs: Floats, entity: int, names: list[str]) -> dict[str, list[Any]]:
        """Each model's share, and its responsibility w_i q_i / p; these add up to 1."""
        pairs = zip(logs, self.powers, strict=True)
        own = np.array([_temper(row[None], power)[0, entity] for row, power in pairs])
        _, responsibility = _mix(own[None], self.weights)
        return {
            "model": names,
            "weight": self.weights.tolist(),
            "probability": np.exp(own).tolist(),
            "responsibility": responsibility[0].tolist(),
        }


def mixture_weights(log_shares: Floats, units: Floats) -> Floats:
    """Weights of the largest sum of units x log sum_i w_i q_i, which is concave; (n, P) -> (P,).

    w_i <- mean of the responsibilities w_i q_i / p, until convergence.
    """
    weights = np.full(log_shares.shape[1], 1.0 / log_shares.shape[1])
    # A common factor per entry has no effect and prevents underflow.
    shares = np.exp(log_shares - log_shares.max(axis=1, keepdims=True, initial=-np.inf))
    for _ in range(_EM_STEPS if len(shares) else 0):
        moved = weights * (units @ (shares / (shares @ weights)[:, None])) / units.sum()
        change = np.abs(moved - weights).max()
        weights = moved / moved.sum()
        if change < _TOLERANCE:
            break
    return np.asarray(weights)


def _mix(own: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """log p and responsibilities of entries; own : log shares (n, P)."""
    with np.errstate(divide="ignore"):  # a weight of 0
        joint = own + np.log(weights)
    log_shares = log_sums(joint)
    return log_shares, np.exp(joint - log_shares[:, None])


def _temper(logs: Floats, power: float) -> Floats:
    """log of q^t, normalized; logs : (cells, N)."""
    u = logs * power
    return np.asarray(u - log_sums(u)[:, None])


def _tempered_moments(sample: Sample, powers: Floats) -> tuple[Floats, Floats, Floats]:
    """Log shares of the entries under each q^t, log q less its mean, its variance; (n, P) each."""
    shape = (len(sample.units), len(powers))
    own, gap, variance = np.empty(shape), np.empty(shape), np.empty(shape)
    for cells, block in sample.blocks():
        entity = sample.entities[cells]
        for i, power in enumerate(powers):
            # Shares of 0 stay 0, but have a logarithm whose square is finite.
            logs = np.maximum(block[:, i], _LOWEST)
            tempered = _temper(logs, power)
            p = np.exp(tempered)
            cell = np.arange(len(p))
            mean = np.einsum("cn,cn->c", p, logs)
            own[cells, i] = tempered[cell, entity]
            gap[cells, i] = logs[cell, entity] - mean
            variance[cells, i] = np.einsum("cn,cn,cn->c", p, logs, logs) - mean**2
    return own, gap, variance


class LogLinear(Pool):
    """log p_j = sum_i w_i log q_ij - log sum_k prod_i q_ik^w_i, weights of any sign.

    Shares below 1e-12 count as 1e-12, so that a share of 0 in one model is not decisive.
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
        """The weighted sum of the floored log shares, normalized."""
        u = _weighted_sum(self.weights, _floor(logs))
        return np.asarray(u - log_sums(u)[:, None])

    def explain(self, logs: Floats, entity: int, names: list[str]) -> dict[str, list[Any]]:
        """The terms w_i log q_i and minus the log normalizer; these add up to log p."""
        own = _floor(logs)[:, entity]
        normalizer = log_sums(_weighted_sum(self.weights, _floor(logs[None])))[0]
        return {
            "model": [*names, NORMALIZER],
            "weight": [*self.weights.tolist(), np.nan],
            "probability": [*np.exp(own).tolist(), np.nan],
            "contribution": [*(self.weights * own).tolist(), -float(normalizer)],
        }


POOLS: dict[str, type[Pool]] = {pool.name: pool for pool in (Mixture, LogLinear)}


def _floor(logs: Floats) -> Floats:
    return np.maximum(logs, np.log(SMALLEST_SHARE))


def _weighted_sum(weights: Floats, logs: Floats) -> Floats:
    """sum_i w_i log q_ij, (cells, N); logs : (cells, P, N)."""
    return np.asarray(np.matmul(weights.astype(logs.dtype), logs))


def _moments(sample: Sample, weights: Floats) -> tuple[float, Floats, Floats]:
    """Penalized mean log share per unit, its gradient and minus its second derivative in w.

    With E the mean and C the covariance of log q_i over p: gradient log q_n - E, curvature C.
    """
    n_models = len(weights)
    values = np.empty(len(sample.units))
    slopes = np.empty((len(sample.units), n_models))
    curvature = RIDGE * np.eye(n_models)
    for cells, block in sample.blocks():
        logs = _floor(block)
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
