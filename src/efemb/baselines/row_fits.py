"""Factors of many rows at once, each by Newton's method given the factors of the entities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.model.families import Bernoulli, Family, Poisson
from efemb.model.predictor import CHUNK_NUMBERS

# A step of Newton's method this small (relative) is the last: the next one squares it. Steps with
# a fixed Hessian gain a constant factor each, and are taken further.
LAST_STEP, SETTLED = 1e-6, 1e-8
NEWTON_STEPS, CHORD_STEPS, HALVINGS = 200, 60, 40


@dataclass(frozen=True)
class RowFits:
    """Least sum over seen n of a(u_n) - x_n u_n, + penalty / 2 |theta|^2; u = beta theta + offset.

    beta : (N, K);  offset : (N,);  family : Poisson, Bernoulli or Gaussian with variance 1
    positive : theta >= 0
    """

    beta: Floats
    offset: Floats
    family: Family
    penalty: float
    positive: bool

    def newton(self, theta: Floats, x: Floats, seen: Bools) -> tuple[Floats, Floats]:
        """Solutions (rows, K) from a start, and the Hessians there (rows, K, K).

        x (rows, N): values, 0 where not seen;  seen (rows, N)
        """
        theta, evidence = theta.copy(), x @ self.beta
        hessian = np.empty((len(x), theta.shape[1], theta.shape[1]))
        left = np.arange(len(x))
        for _ in range(NEWTON_STEPS):
            mean, value = self._mean_and_value(theta[left], evidence[left], seen[left])
            slope = mean @ self.beta - evidence[left] + self.penalty * theta[left]
            hessian[left] = self._hessians(self._curvature(mean) * seen[left])
            step = self._direction(theta[left], slope, hessian[left])
            moved = self._descend(theta[left], value, step, evidence[left], seen[left])
            size = _relative_size(moved - theta[left], moved)
            theta[left] = moved
            left = left[size > LAST_STEP]
            if len(left) == 0:
                break
        return theta, hessian

    def left_out(self, theta: Floats, x: Floats, place: Ints, entities: Ints) -> Floats:
        """Factors of row place[i] of x given all its cells but entities[i], (cells, K).

        From the whole row's solution, with the whole row's Hessian; the problem is convex, so the
        start leaves no trace. Cells for which that does not contract get Hessians of their own.
        """
        whole, hessian = self.newton(theta, x, np.ones(x.shape, dtype=bool))
        found, hopeless = self._chord(whole, hessian, x, place, entities)
        if len(hopeless):
            rows, own = place[hopeless], entities[hopeless]
            others, seen = x[rows], np.ones((len(rows), x.shape[1]), dtype=bool)
            others[np.arange(len(rows)), own] = 0.0
            seen[np.arange(len(rows)), own] = False
            found[hopeless] = self.newton(whole[rows], others, seen)[0]
        return found

    def _chord(
        self, whole: Floats, hessian: Floats, x: Floats, place: Ints, entities: Ints
    ) -> tuple[Floats, Ints]:
        """Solutions, and the cells that have none yet."""
        inverse = None if self.positive else np.linalg.inv(hessian)
        found = whole[place]
        evidence = (x @ self.beta)[place] - x[place, entities][:, None] * self.beta[entities]
        left, last = np.arange(len(place)), np.full(len(place), np.inf)
        hopeless = []
        for _ in range(CHORD_STEPS):
            theta, rows, own = found[left], place[left], entities[left]
            mean = self.family.mean(theta @ self.beta.T + self.offset)
            mean[np.arange(len(left)), own] = 0.0
            slope = mean @ self.beta - evidence[left] + self.penalty * theta
            if inverse is None:
                step = self._direction(theta, slope, hessian[rows])
                moved = np.maximum(theta + step, 0.0)
            else:
                moved = theta - np.matmul(inverse[rows], slope[..., None])[..., 0]
            found[left] = moved
            size = _relative_size(moved - theta, moved)
            failing = ~(size < 0.9 * last[left])
            hopeless.append(left[failing])
            last[left] = size
            left = left[(size > SETTLED) & ~failing]
            if len(left) == 0:
                break
        return found, np.concatenate([*hopeless, left])

    def _mean_and_value(
        self, theta: Floats, evidence: Floats, seen: Bools
    ) -> tuple[Floats, Floats]:
        """Means (0 where not seen) and objective of each row."""
        normalizer, mean = self.family.log_normalizer_and_mean(theta @ self.beta.T + self.offset)
        ridge = 0.5 * self.penalty * np.einsum("tk,tk->t", theta, theta)
        value = (normalizer * seen).sum(axis=1) - np.einsum("tk,tk->t", theta, evidence) + ridge
        return mean * seen, value

    def _curvature(self, mean: Floats) -> Floats:
        """a''(u) as a function of the mean a'(u)."""
        if isinstance(self.family, Poisson):
            return mean
        if isinstance(self.family, Bernoulli):
            return mean * (1.0 - mean)
        return np.ones_like(mean)

    def _hessians(self, weight: Floats) -> Floats:
        """beta' diag(weight_t) beta + penalty of each row."""
        n_entities, size = self.beta.shape
        found = np.empty((len(weight), size, size))
        step = max(1, CHUNK_NUMBERS // (n_entities * size))
        for start in range(0, len(weight), step):
            part = slice(start, start + step)
            found[part] = np.matmul(weight[part, None, :] * self.beta.T, self.beta)
        found[:, np.arange(size), np.arange(size)] += self.penalty
        return found

    def _direction(self, theta: Floats, slope: Floats, hessian: Floats) -> Floats:
        """Newton's step; numbers that would leave the positive ones stay where they are."""
        if self.positive:
            held = (theta <= 0.0) & (slope > 0.0)
            slope = np.where(held, 0.0, slope)
            hessian = np.where(held[:, :, None] | held[:, None, :], 0.0, hessian)
            diagonal = np.arange(theta.shape[1])
            hessian[:, diagonal, diagonal] += held
        return -np.linalg.solve(hessian, slope[..., None])[..., 0]

    def _descend(
        self, theta: Floats, value: Floats, step: Floats, evidence: Floats, seen: Bools
    ) -> Floats:
        """Halve the steps of the rows whose objective would rise."""
        length = np.ones(len(theta))
        for _ in range(HALVINGS):
            moved = theta + length[:, None] * step
            if self.positive:
                np.maximum(moved, 0.0, out=moved)
            after = self._mean_and_value(moved, evidence, seen)[1]
            rising = ~(after <= value + 1e-12 * np.abs(value))
            if not rising.any():
                return moved
            length[rising] *= 0.5
        return np.where(rising[:, None], theta, moved)


def _relative_size(change: Floats, theta: Floats) -> Floats:
    """Largest change of a number of each row, in units of the largest number (or of 1)."""
    return np.asarray(np.abs(change).max(axis=1) / np.maximum(np.abs(theta).max(axis=1), 1.0))
