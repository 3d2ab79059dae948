"""Low-rank models: fits of rows and entities, fits of rows only, and left-out cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.data.matrices import stored_cells
from efemb.engine.optimizers.limited_memory import LimitedMemory
from efemb.model.families import Family
from efemb.model.predictor import CHUNK_NUMBERS, add_intercepts

MEMORY = 10  # past steps that L-BFGS stores
NOISE = 0.05  # standard deviation of the initial values
BLOCK_NUMBERS = 1 << 20  # means computed at a time, to fit into a cache
# A step of Newton's method this small (relative) is the last: the next one squares it. Steps with
# a fixed Hessian gain only a constant factor each, and continue further.
LAST_STEP, SETTLED = 1e-6, 1e-8
NEWTON_STEPS, CHORD_STEPS, HALVINGS = 200, 60, 40
# Below this share of the noise in an entity's variance given the rest, the difference 1 - h has
# lost half of its digits, and the left-out value is computed by a separate solution.
DOUBTFUL = 1e-8


class FactorSearch:
    """Maximize the sum over cells of x u - a(u), less penalty / 2 (|theta|^2 + |beta|^2).

    X : csr_array or array (T, N), 0 where masked;  masked : csr_array of the masked cells
    """

    def __init__(
        self,
        X: Any,
        masked: Any,
        family: Family,
        size: int,
        rng: np.random.Generator,
        *,
        penalty: float,
        positive: bool,
        has_intercept: bool,
        dtype: str,
    ) -> None:
        self.X, self.masked, self.family = X.astype(dtype), masked, family
        self.XT = X.T.tocsr() if hasattr(X, "tocsr") else X.T
        self.penalty, self.positive, self.has_intercept = penalty, positive, has_intercept
        self.shape = (*X.shape, size)
        self.totals = np.asarray(X.sum(axis=0), dtype=np.float64).ravel()
        self.block = max(1, BLOCK_NUMBERS // X.shape[1])
        self.scale = self._scale().astype(dtype)
        start = self._flat(*self._start(rng)).astype(dtype)
        self.search = LimitedMemory(self._evaluate, start, MEMORY)

    def step(self) -> bool:
        """Make one iteration; return False if no ascent is possible."""
        return self.search.step()

    @property
    def value(self) -> float:
        """The objective."""
        return self.search.value

    def vectors(self, flat: Floats | None = None) -> tuple[Floats, Floats, Floats]:
        """theta (T, K), beta (N, K) and intercepts (N,), at the current point of the search."""
        free = (self.search.x if flat is None else flat) * self.scale
        n_rows, n_entities, size = self.shape
        ends = np.cumsum([n_rows * size, n_entities * size])
        factors, intercept = free[: ends[1]], free[ends[1] :]
        if self.positive:
            factors = np.exp(factors)
        theta = factors[: ends[0]].reshape(n_rows, size)
        beta = factors[ends[0] :].reshape(n_entities, size)
        return theta, beta, intercept if self.has_intercept else np.zeros(n_entities, free.dtype)

    def _start(self, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """Small vectors; the mean of each entity is in the intercept, or in the first component."""
        n_rows, n_entities, size = self.shape
        theta, beta = (NOISE * rng.standard_normal((n, size)) for n in (n_rows, n_entities))
        mean = self.totals / n_rows
        if not self.family.missing:
            mean = np.maximum(mean, 0.5 / n_rows)
        level = self.family.predictor(mean)
        if self.positive:
            return np.abs(theta), np.abs(beta), level
        if not self.has_intercept and not self.family.missing:
            # The penalty is smallest if both have the same sum of squares.
            balance = (float(np.mean(level**2)) * n_entities / n_rows) ** 0.25
            theta[:, 0], beta[:, 0] = balance, level / max(balance, NOISE)
        return theta, beta, level

    def _scale(self) -> Floats:
        """Scales of the free parameters for which the curvature is about 1 everywhere."""
        n_rows, n_entities, size = self.shape
        if self.positive:
            return np.ones(1)
        if self.family.missing:
            weights = np.full(n_rows, n_entities), np.full(n_entities, n_rows)
        else:
            weights = np.asarray(self.X.sum(axis=1)).ravel(), self.totals
        lengths = [np.repeat(1.0 / np.sqrt(each + self.penalty), size) for each in weights]
        return np.concatenate([*lengths, 1.0 / np.sqrt(weights[1] + 1.0)][: 2 + self.has_intercept])

    def _flat(self, theta: Floats, beta: Floats, intercept: Floats) -> Floats:
        """Free parameters that correspond to given vectors."""
        arrays = [theta.ravel(), beta.ravel()]
        if self.positive:
            arrays = [np.log(array) for array in arrays]
        flat = np.concatenate([*arrays, intercept][: 2 + self.has_intercept])
        return np.asarray(flat / self.scale)

    def _evaluate(self, flat: Floats) -> tuple[float, Floats]:
        """Objective and its gradient in the free numbers."""
        theta, beta, intercept = self.vectors(flat)
        inner = self.X @ beta
        g_theta, g_beta = inner - self.penalty * theta, self.XT @ theta - self.penalty * beta
        g_intercept, ones = self.totals.copy(), np.ones(len(beta), theta.dtype)
        value = float(self.totals @ intercept)
        value += np.sum(theta * inner, dtype=np.float64)
        for array in (theta, beta):
            value -= 0.5 * self.penalty * np.sum(array * array, dtype=np.float64)
        for start in range(0, len(theta), self.block):
            rows = slice(start, start + self.block)
            u = add_intercepts(theta[rows] @ beta.T, intercept)
            normalizer, mean = self._block(rows, u)
            value -= float((normalizer @ ones).sum(dtype=np.float64))
            g_theta[rows] -= mean @ beta
            g_beta -= mean.T @ theta[rows]
            if self.has_intercept:
                g_intercept -= mean.sum(axis=0, dtype=np.float64)
        if self.positive:
            g_theta, g_beta = g_theta * theta, g_beta * beta
        gradients = [g_theta.ravel(), g_beta.ravel(), g_intercept.astype(flat.dtype)]
        gradient = np.concatenate(gradients[: 2 + self.has_intercept]) * self.scale
        return float(value), gradient

    def _block(self, rows: slice, u: Floats) -> tuple[Floats, Floats]:
        """a(u) and a'(u), 0 at masked cells."""
        normalizer, mean = self.family.log_normalizer_and_mean(u)
        if self.masked.nnz:
            cells = stored_cells(self.masked[rows])
            normalizer[cells], mean[cells] = 0.0, 0.0
        return normalizer, mean


@dataclass(frozen=True)
class RowFits:
    """Minimize sum over seen n of a(u_n) - x_n u_n, plus penalty / 2 |theta|^2, over theta.

    u = beta theta + offset.

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
        active = np.arange(len(x))
        for _ in range(NEWTON_STEPS):
            mean, value = self._mean_and_value(theta[active], evidence[active], seen[active])
            slope = mean @ self.beta - evidence[active] + self.penalty * theta[active]
            hessian[active] = self._hessians(self.family.variance_of_mean(mean) * seen[active])
            step = self._direction(theta[active], slope, hessian[active])
            moved = self._descend(theta[active], value, step, evidence[active], seen[active])
            size = _relative_size(moved - theta[active], moved)
            theta[active] = moved
            active = active[size > LAST_STEP]
            if len(active) == 0:
                break
        return theta, hessian

    def fit_without(self, theta: Floats, x: Floats, index: Ints, entities: Ints) -> Floats:
        """Factors of row place[i] of x given all its cells but entities[i], (cells, K).

        Starts from the whole row's solution and uses its Hessian; the problem is convex, so the
        start does not matter. Cells for which that does not converge get Hessians of their own.
        """
        row_solutions, hessian = self.newton(theta, x, np.ones(x.shape, dtype=bool))
        theta_without, hopeless = self._chord(row_solutions, hessian, x, index, entities)
        if len(hopeless):
            rows, own = index[hopeless], entities[hopeless]
            values, seen = x[rows], np.ones((len(rows), x.shape[1]), dtype=bool)
            values[np.arange(len(rows)), own] = 0.0
            seen[np.arange(len(rows)), own] = False
            theta_without[hopeless] = self.newton(row_solutions[rows], values, seen)[0]
        return theta_without

    def _chord(
        self, row_solutions: Floats, hessian: Floats, x: Floats, index: Ints, entities: Ints
    ) -> tuple[Floats, Ints]:
        """Solutions, and the cells that have none yet."""
        inverse = None if self.positive else np.linalg.inv(hessian)
        solutions = row_solutions[index]
        evidence = (x @ self.beta)[index] - x[index, entities][:, None] * self.beta[entities]
        active, last = np.arange(len(index)), np.full(len(index), np.inf)
        hopeless = []
        for _ in range(CHORD_STEPS):
            theta, rows, own = solutions[active], index[active], entities[active]
            mean = self.family.mean(theta @ self.beta.T + self.offset)
            mean[np.arange(len(active)), own] = 0.0
            slope = mean @ self.beta - evidence[active] + self.penalty * theta
            if inverse is None:
                step = self._direction(theta, slope, hessian[rows])
                moved = np.maximum(theta + step, 0.0)
            else:
                moved = theta - np.matmul(inverse[rows], slope[..., None])[..., 0]
            solutions[active] = moved
            size = _relative_size(moved - theta, moved)
            failing = ~(size < 0.9 * last[active])
            hopeless.append(active[failing])
            last[active] = size
            active = active[(size > SETTLED) & ~failing]
            if len(active) == 0:
                break
        return solutions, np.concatenate([*hopeless, active])

    def _mean_and_value(
        self, theta: Floats, evidence: Floats, seen: Bools
    ) -> tuple[Floats, Floats]:
        """Means (0 where not seen) and objective of each row."""
        normalizer, mean = self.family.log_normalizer_and_mean(theta @ self.beta.T + self.offset)
        ridge = 0.5 * self.penalty * np.einsum("tk,tk->t", theta, theta)
        value = (normalizer * seen).sum(axis=1) - np.einsum("tk,tk->t", theta, evidence) + ridge
        return mean * seen, value

    def _hessians(self, weight: Floats) -> Floats:
        """beta' diag(weight_t) beta + penalty of each row."""
        n_entities, size = self.beta.shape
        hessians = np.empty((len(weight), size, size))
        step = max(1, CHUNK_NUMBERS // (n_entities * size))
        for start in range(0, len(weight), step):
            rows = slice(start, start + step)
            hessians[rows] = np.matmul(weight[rows, None, :] * self.beta.T, self.beta)
        hessians[:, np.arange(size), np.arange(size)] += self.penalty
        return hessians

    def _direction(self, theta: Floats, slope: Floats, hessian: Floats) -> Floats:
        """Newton's step, with elements that would leave the positive range fixed."""
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
    """Largest change in each row, relative to its largest element (or to 1)."""
    return np.asarray(np.abs(change).max(axis=1) / np.maximum(np.abs(theta).max(axis=1), 1.0))


def predict_left_out(
    gap: Floats, loadings: Floats, noise: Floats, advance: Callable[[int], None]
) -> tuple[Floats, Floats]:
    """E[gap_n | the other observed numbers of the row] and its variance, both (T, N).

    gap (T, N): values less their means, NaN if missing (predicted from all observed values);
    loadings (N, K), noise (N,): gap = loadings z + Normal(0, noise), z ~ Normal(0, I).
    """
    mean, variance = np.empty_like(gap), np.empty_like(gap)
    observed = ~np.isnan(gap)
    _, first, pattern = np.unique(
        np.packbits(observed, axis=1), axis=0, return_index=True, return_inverse=True
    )
    order = np.argsort(pattern.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(pattern.ravel()))
    for which, rows in enumerate(np.split(order, ends[:-1])):
        mask = observed[first[which]]
        mean[rows], variance[rows] = _one_pattern(gap[rows], mask, loadings, noise)
        advance(len(rows))
    return mean, variance


def _one_pattern(
    gap: Floats, seen: Bools, loadings: Floats, noise: Floats
) -> tuple[Floats, Floats]:
    """Rows that lack the same cells; x_n - E[x_n | rest] = (x_n - fit_n) / (1 - h_n)."""
    covariance, factor = _posterior(gap, seen, loadings, noise)
    spread = np.einsum("nk,nk->n", loadings @ covariance, loadings)
    fit = factor @ loadings.T
    rest = np.where(seen, 1.0 - spread / noise, 1.0)
    safe = np.maximum(rest, DOUBTFUL)
    mean = np.where(seen, gap - (gap - fit) / safe, fit)
    variance = np.where(seen, noise / safe, noise + spread)
    for n in np.flatnonzero(rest < DOUBTFUL):
        others = seen.copy()
        others[n] = False
        own, alone = _posterior(gap, others, loadings, noise)
        mean[:, n] = alone @ loadings[n]
        variance[n] = noise[n] + loadings[n] @ own @ loadings[n]
    return mean, np.broadcast_to(variance, mean.shape)


def _posterior(gap: Floats, seen: Bools, loadings: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Covariance (K, K) and means (rows, K) of the factors given the numbers at `seen`."""
    W = loadings[seen]
    weighted = W / noise[seen, None]
    covariance = np.linalg.inv(np.eye(W.shape[1]) + weighted.T @ W)
    return covariance, gap[:, seen] @ weighted @ covariance
