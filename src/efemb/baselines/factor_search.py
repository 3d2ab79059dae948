"""FactorSearch: the vectors of rows and entities of exponential-family PCA, by L-BFGS."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb.baselines.cells import stored_cells
from efemb.engine.lbfgs import LimitedMemory
from efemb.families import Family, Gaussian
from efemb.types import Floats

MEMORY = 10  # pairs that L-BFGS remembers
NOISE = 0.05  # standard deviation of the start
BLOCK_NUMBERS = 1 << 20  # means made at a time: what a cache holds


class FactorSearch:
    """Maximise sum over cells of x u - a(u), less penalty / 2 (|theta|^2 + |beta|^2).

    X : csr_array or array (T, N), 0 where masked;  masked : csr_array of the cells left out
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
        intercept: bool,
        dtype: str,
    ) -> None:
        self.X, self.masked, self.family = X.astype(dtype), masked, family
        self.XT = X.T.tocsr() if hasattr(X, "tocsr") else X.T
        self.penalty, self.positive, self.intercept = penalty, positive, intercept
        self.shape = (*X.shape, size)
        self.totals = np.asarray(X.sum(axis=0), dtype=np.float64).ravel()
        self.block = max(1, BLOCK_NUMBERS // X.shape[1])
        self.scale = self._scale().astype(dtype)
        start = self._flat(*self._start(rng)).astype(dtype)
        self.search = LimitedMemory(self._evaluate, start, MEMORY)

    def step(self) -> bool:
        """One iteration; False where no ascent is left."""
        return self.search.step()

    @property
    def value(self) -> float:
        """The objective."""
        return self.search.value

    def vectors(self, flat: Floats | None = None) -> tuple[Floats, Floats, Floats]:
        """theta (T, K), beta (N, K) and intercepts (N,), where the search stands."""
        free = (self.search.x if flat is None else flat) * self.scale
        n_rows, n_entities, size = self.shape
        ends = np.cumsum([n_rows * size, n_entities * size])
        factors, intercept = free[: ends[1]], free[ends[1] :]
        if self.positive:
            factors = np.exp(factors)
        theta = factors[: ends[0]].reshape(n_rows, size)
        beta = factors[ends[0] :].reshape(n_entities, size)
        return theta, beta, intercept if self.intercept else np.zeros(n_entities, free.dtype)

    def _start(self, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """Small vectors; the mean of each entity in the intercept, or in the first component."""
        n_rows, n_entities, size = self.shape
        theta, beta = (NOISE * rng.standard_normal((n, size)) for n in (n_rows, n_entities))
        mean = self.totals / n_rows
        if not isinstance(self.family, Gaussian):
            mean = np.maximum(mean, 0.5 / n_rows)
        level = self.family.predictor(mean)
        if self.positive:
            return np.abs(theta), np.abs(beta), level
        if not self.intercept and not isinstance(self.family, Gaussian):
            # Where both have the same sum of squares, the penalty is least.
            balance = (float(np.mean(level**2)) * n_entities / n_rows) ** 0.25
            theta[:, 0], beta[:, 0] = balance, level / max(balance, NOISE)
        return theta, beta, level

    def _scale(self) -> Floats:
        """Lengths of the free numbers for which the curvature is about 1 everywhere."""
        n_rows, n_entities, size = self.shape
        if self.positive:
            return np.ones(1)
        if isinstance(self.family, Gaussian):
            weights = np.full(n_rows, n_entities), np.full(n_entities, n_rows)
        else:
            weights = np.asarray(self.X.sum(axis=1)).ravel(), self.totals
        lengths = [np.repeat(1.0 / np.sqrt(each + self.penalty), size) for each in weights]
        return np.concatenate([*lengths, 1.0 / np.sqrt(weights[1] + 1.0)][: 2 + self.intercept])

    def _flat(self, theta: Floats, beta: Floats, intercept: Floats) -> Floats:
        """Free numbers of given vectors."""
        parts = [theta.ravel(), beta.ravel()]
        if self.positive:
            parts = [np.log(part) for part in parts]
        flat = np.concatenate([*parts, intercept][: 2 + self.intercept])
        return np.asarray(flat / self.scale)

    def _evaluate(self, flat: Floats) -> tuple[float, Floats]:
        """Objective and its gradient in the free numbers."""
        theta, beta, intercept = self.vectors(flat)
        inner = self.X @ beta
        g_theta, g_beta = inner - self.penalty * theta, self.XT @ theta - self.penalty * beta
        g_intercept, ones = self.totals.copy(), np.ones(len(beta), theta.dtype)
        value = np.sum(theta * inner, dtype=np.float64) + float(self.totals @ intercept)
        for part in (theta, beta):
            value -= 0.5 * self.penalty * np.sum(part * part, dtype=np.float64)
        for start in range(0, len(theta), self.block):
            rows = slice(start, start + self.block)
            u = theta[rows] @ beta.T
            u += intercept
            normalizer, mean = self._block(rows, u)
            value -= float((normalizer @ ones).sum(dtype=np.float64))
            g_theta[rows] -= mean @ beta
            g_beta -= mean.T @ theta[rows]
            if self.intercept:
                g_intercept -= mean.sum(axis=0, dtype=np.float64)
        if self.positive:
            g_theta, g_beta = g_theta * theta, g_beta * beta
        parts = [g_theta.ravel(), g_beta.ravel(), g_intercept.astype(flat.dtype)]
        gradient = np.concatenate(parts[: 2 + self.intercept]) * self.scale
        return float(value), gradient

    def _block(self, rows: slice, u: Floats) -> tuple[Floats, Floats]:
        """a(u) and a'(u), 0 at masked cells."""
        normalizer, mean = self.family.log_normalizer_and_mean(u)
        if self.masked.nnz:
            cells = stored_cells(self.masked[rows])
            normalizer[cells], mean[cells] = 0.0, 0.0
        return normalizer, mean
