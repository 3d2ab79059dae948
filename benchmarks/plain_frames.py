"""Minibatch gradients on raw frames: the paper's way to fit g-emb, written with care in NumPy.

With W[n, j] = rho_n . alpha_j for the neighbors j of neuron n, a minibatch costs N c (2 K + 2 B)
multiplications, B its frames: contexts are never added up frame by frame.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from benchmarks.data import Frames
from benchmarks.harness import Watch
from benchmarks.plain_numpy import Model

Array = NDArray[np.float32]
FRAMES, NEURONS = 100, 512  # of a minibatch, of a block that stays in the cache
EVERY = 2  # minibatches between two validation errors


class RawFrames:
    """g-emb with unscaled contexts of the nearest neurons, no intercept, variance 1."""

    def __init__(self, frames: Frames, c: int, k: int, *, precision: float = 10.0) -> None:
        near = np.asarray(cKDTree(frames.positions).query(frames.positions, c + 1)[1])
        self.near: NDArray[Any] = near[:, 1:]  # the first is the neuron itself
        self.train, self.held = (
            np.ascontiguousarray(part.T, dtype=np.float32)
            for part in (frames.train, frames.validation)
        )
        self.rng = np.random.default_rng(0)
        self.precision = np.float32(precision)
        n = len(self.near)
        self.model = Model.start(n, k, np.zeros(0, np.float32), seed=0)
        for array in self.model.arrays[:2]:  # normal with s.d. 0.05
            np.multiply(array, np.float32(0.5 * np.sqrt(k)), out=array)

    def step(self, step: float) -> None:
        """Adagrad on the frames of one minibatch, scaled to all of them."""
        n_frames = self.train.shape[1]
        batch = self.rng.permutation(n_frames)[:FRAMES]
        rho, alpha, _ = self.model.arrays
        slope = self._slopes(np.ascontiguousarray(self.train[:, batch]))
        slope *= np.float32(n_frames / len(batch))
        n, c = self.near.shape
        pairs = csr_array((slope.ravel(), self.near.ravel(), np.arange(0, n * c + 1, c)), (n, n))
        gradients = [pairs @ alpha - self.precision * rho, pairs.T @ rho - self.precision * alpha]
        self.model.adagrad(gradients, step)

    def _slopes(self, X: Array) -> Array:
        """d log-likelihood / d W of every pair."""
        out = np.empty(self.near.shape, dtype=np.float32)
        for part, residual, context in self._residuals(X):
            out[part] = np.matmul(context, residual[:, :, None])[:, :, 0]
        return out

    def _residuals(self, X: Array) -> Any:
        rho, alpha, _ = self.model.arrays
        for start in range(0, len(rho), NEURONS):
            part = slice(start, start + NEURONS)
            near = self.near[part]
            W = np.matmul(alpha[near], rho[part][:, :, None])[:, :, 0]
            context = X[near]
            yield part, X[part] - np.matmul(W[:, None], context)[:, 0], context

    def error(self) -> float:
        """Mean squared error of the validation frames, leaving one neuron out."""
        total = sum(float((found[1] ** 2).sum()) for found in self._residuals(self.held))
        return total / self.held.size


def trained_frames(
    frames: Frames, c: int, k: int, *, step: float, error: float, most_cpu: float
) -> Watch:
    """Minibatches until the validation error is reached, or the CPU-seconds are spent.

    The watch's scores are the errors' negatives.
    """
    watch = Watch()
    work = RawFrames(frames, c, k)
    start, number = time.process_time(), 0
    while time.process_time() - start < most_cpu:
        number += 1
        work.step(step)
        score = -work.error() if number % EVERY == 0 else None
        watch.note(number, score)
        if score is not None and score >= -error:
            break
    return watch
