"""Plain NumPy yardsticks: what a careful user would write without this package.

Both are p-emb with every zero exact, float32 and Adagrad. An entry's own part is taken out of its
row's sums in the same way in both: with u = rho . S the full product and a_n = rho_n . alpha_n,
an entry sees (u - x a_n) / (d - its share).
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks.data import Counts
from benchmarks.harness import Mark, Watch

Array = NDArray[np.float32]
PATIENCE, TOLERANCE = 5, 1e-4


@dataclass
class Model:
    """Factors and intercepts with their sums of squared gradients."""

    arrays: list[Array]
    squares: list[Array]

    @classmethod
    def start(cls, n_items: int, k: int, intercept: Array, seed: int) -> Model:
        """Small random vectors."""
        rng = np.random.default_rng(seed)
        size = 0.1 / np.sqrt(k)
        rho, alpha = (rng.normal(0, size, (n_items, k)).astype(np.float32) for _ in range(2))
        arrays = [rho, alpha, intercept]
        return cls(arrays, [np.full_like(array, 1e-6) for array in arrays])

    def adagrad(self, gradients: list[Array], step: float) -> None:
        """One step upwards."""
        for theta, gradient, squares in zip(self.arrays, gradients, self.squares, strict=False):
            scratch = gradient * gradient
            np.add(squares, scratch, out=squares)
            np.sqrt(squares, out=scratch)
            np.divide(gradient, scratch, out=scratch)
            scratch *= np.float32(step)
            np.add(theta, scratch, out=theta)


def stopped(marks: list[Mark]) -> bool:
    """Whether the last scores brought nothing, by the rule of the package's own early stopping."""
    best, waited = -np.inf, 0
    for mark in marks:
        best, waited = (mark.score, 0) if mark.score > best + TOLERANCE else (best, waited + 1)
    return waited >= PATIENCE


@dataclass
class Best:
    """The arrays with the best validation score so far."""

    score: float = -np.inf
    arrays: list[Array] = field(default_factory=list)

    def offer(self, score: float, model: Model) -> None:
        """Keep a copy where it is better."""
        if score > self.score:
            self.score, self.arrays = score, [array.copy() for array in model.arrays]


# -- movies: everything dense ----------------------------------------------------------------------


class DenseMovies:
    """All users at once by dense products; no intercepts, contexts divided by their items."""

    def __init__(self, counts: Counts, k: int, seed: int = 0, precision: float = 1.0) -> None:
        self.X = counts.train.toarray().astype(np.float32)
        held = counts.validation.toarray()
        items = (self.X > 0).sum(axis=1, keepdims=True).astype(np.float32)
        self.inverse = 1.0 / np.maximum(items - (self.X > 0), 1.0, dtype=np.float32)
        self.weight = np.where(held > 0, np.float32(0.0), self.inverse)  # held-out: no zeros
        self.items = np.maximum(items, 1.0)
        self.rows, self.ids = np.nonzero(held)
        self.units = held[self.rows, self.ids]
        self.precision = np.float32(precision)
        self.model = Model.start(self.X.shape[1], k, np.zeros(0, np.float32), seed)
        self.U, self.part = np.empty_like(self.X), np.empty_like(self.X)

    def step(self, step: float) -> None:
        """One full gradient and one Adagrad step."""
        X, U = self.X, self.U
        rho, alpha, _ = self.model.arrays
        S = X @ alpha
        np.matmul(S, rho.T, out=U)
        np.multiply(X, np.einsum("nk,nk->n", rho, alpha), out=self.part)
        U -= self.part
        U *= self.inverse
        np.exp(U, out=U)
        np.subtract(X, U, out=U)
        U *= self.weight
        own = np.einsum("tn,tn->n", U, X)[:, None]
        g_rho = U.T @ S - own * alpha - self.precision * rho
        g_alpha = X.T @ (U @ rho) - own * rho - self.precision * alpha
        self.model.adagrad([g_rho, g_alpha], step)

    def score(self) -> float:
        """Normalized log-likelihood per unit of the held-out entries."""
        rho, alpha, _ = self.model.arrays
        U = (self.X @ alpha / self.items) @ rho.T
        top = U.max(axis=1, keepdims=True)
        total = np.log(np.exp(U - top).sum(axis=1)) + top[:, 0]
        each = U[self.rows, self.ids] - total[self.rows]
        return float(self.units @ each / self.units.sum())


def trained_movies(
    counts: Counts, k: int, *, step: float = 0.1, seed: int = 0
) -> tuple[Watch, list[Array]]:
    """Train until the validation score stops rising, scored every 20 passes; the best arrays."""
    watch = Watch()
    work = DenseMovies(counts, k, seed)
    best = Best()
    for number in range(1, 3001):
        work.step(step)
        score = work.score() if number % 20 == 0 else None
        watch.note(number, score)
        if score is not None:
            best.offer(score, work.model)
            if stopped(watch.marks):
                break
    return watch, best.arrays


def dense_movies(counts: Counts, k: int, *, step: float = 0.1, seed: int = 0) -> Watch:
    """When each validation score came."""
    return trained_movies(counts, k, step=step, seed=seed)[0]


# -- baskets: minibatches --------------------------------------------------------------------------


class Baskets:
    """Minibatches of sparse rows, zeros by dense products; intercepts, contexts divided by total.

    The slopes of the stored entries are put into their cells of the dense block, so that the same
    two products carry zeros and entries.
    """

    def __init__(self, train: csr_array, k: int, *, batch: int = 1000, seed: int = 0) -> None:
        self.train, self.batch = train, batch
        self.rng = np.random.default_rng(seed)
        mean = np.asarray(train.mean(axis=0), dtype=np.float32).ravel()
        intercept = np.log(mean + np.float32(1e-6))
        self.model = Model.start(train.shape[1], k, intercept, seed)
        self.block = np.empty((batch, train.shape[1]), dtype=np.float32)

    def one_pass(self, step: float = 0.1, precision: float = 1.0) -> None:
        """Step on every minibatch of the shuffled rows."""
        n_rows = self.train.shape[0]
        order = self.rng.permutation(n_rows)
        for start in range(0, n_rows, self.batch):
            X = self.train[order[start : start + self.batch]]
            gradients = self._gradient(X)
            scale = np.float32(n_rows / X.shape[0])
            for gradient in gradients:
                np.multiply(gradient, scale, out=gradient)
            for theta, gradient in zip(self.model.arrays[:2], gradients, strict=False):
                np.subtract(gradient, np.float32(precision) * theta, out=gradient)
            self.model.adagrad(gradients, step)

    def _gradient(self, X: csr_array) -> list[Array]:
        rho, alpha, intercept = self.model.arrays
        total = np.asarray(X.sum(axis=1), dtype=np.float32).ravel()
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        ids, x = X.indices, X.data
        rest = total[rows] - x
        rest[rest <= 0] = 1.0
        Z = X @ alpha
        Z /= total[:, None]
        E = self.block[: X.shape[0]]
        np.matmul(Z, rho.T, out=E)
        itself = np.einsum("nk,nk->n", rho, alpha)
        u = (E[rows, ids] * total[rows] - x * itself[ids]) / rest + intercept[ids]
        E += intercept
        np.exp(E, out=E)
        np.negative(E, out=E)
        slope = x - np.exp(u)
        E[rows, ids] = slope
        g_intercept = E.sum(axis=0)
        E[rows, ids] = slope * total[rows] / rest
        own = np.bincount(ids, slope * x / rest, len(rho)).astype(np.float32)[:, None]
        g_rho = E.T @ Z
        g_rho -= own * alpha
        g_alpha = X.T @ ((E @ rho) / total[:, None])
        g_alpha -= own * rho
        return [g_rho, g_alpha, g_intercept]

    def score(self, rows: csr_array) -> float:
        """Leave-one-out normalized log-likelihood per unit inside the rows."""
        total = sum(float(x @ each) for x, each in self._scores(rows))
        return total / float(rows.data.sum())

    def _scores(self, X: csr_array, size: int = 2048) -> Iterator[tuple[Any, Any]]:
        rho, alpha, intercept = self.model.arrays
        total, S = np.asarray(X.sum(axis=1)).ravel(), X @ alpha
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        for start in range(0, X.nnz, size):
            part = slice(start, start + size)
            t, n, x = row[part], X.indices[part], X.data[part]
            rest = (total[t] - x)[:, None]
            u = ((S[t] - x[:, None] * alpha[n]) / np.where(rest > 0, rest, 1)) @ rho.T + intercept
            top = u.max(axis=1, keepdims=True)
            picked = u[np.arange(len(n)), n] - top[:, 0]
            yield x, picked - np.log(np.exp(u - top).sum(axis=1))


def trained_baskets(
    train: csr_array, validation: csr_array, k: int, *, seed: int = 0, most: int = 50
) -> tuple[Watch, list[Array]]:
    """Passes until the score of the validation rows stops rising; the best arrays."""
    watch = Watch()
    work = Baskets(train, k, seed=seed)
    best = Best()
    for number in range(1, most + 1):
        work.one_pass()
        score = work.score(validation)
        watch.note(number, score)
        best.offer(score, work.model)
        if stopped(watch.marks):
            break
    return watch, best.arrays


def reference_pass(path: Path, counts: Counts, k: int) -> float:
    """CPU-seconds of one training pass of another script with the same `fit`, by its own clock."""
    spec = importlib.util.spec_from_file_location("reference_yardstick", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        few = counts.validation[:200]
        module.fit(counts.train, (None, few), few, k, "total", True, passes=1)
    found = re.search(r"CPU-s a pass ([0-9.]+)", said.getvalue())
    assert found is not None
    return float(found[1])
