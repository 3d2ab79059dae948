"""Plain NumPy yardsticks: their gradients and errors against loops and the package's own."""

from __future__ import annotations

import numpy as np
from benchmarks.data import Frames, simulated_neurons
from benchmarks.plain_frames import RawFrames, trained_frames
from benchmarks.plain_numpy import Baskets, trained_baskets
from scipy.sparse import csr_array


def frames() -> Frames:
    X, positions = simulated_neurons(60, 20, seed=0)
    return Frames(X[:40], X[40:50], X[50:], positions)


def test_error_of_raw_frames_by_loops() -> None:
    some = frames()
    work = RawFrames(some, c=4, k=3)
    rho, alpha, _ = work.model.arrays
    total = 0.0
    for x in some.validation:
        for n in range(20):
            distance = ((some.positions - some.positions[n]) ** 2).sum(axis=1)
            near = np.argsort(distance)[1:5]
            total += float(x[n] - rho[n] @ (x[near] @ alpha[near])) ** 2
    assert np.isclose(work.error(), total / some.validation.size, rtol=1e-4)


def test_minibatches_approach_the_error_of_the_package() -> None:
    from efemb import GaussianEmbedding, Neighbors, Normal

    some = frames()
    prior = Normal(10.0)
    options = {"context": Neighbors(4), "prior": prior, "intercept": False, "random_state": 0}
    model = GaussianEmbedding(3, early_stopping=False, max_iter=300, **options)
    model.fit(some.train, positions=some.positions)
    error = float(((model.conditional(some.validation) - some.validation) ** 2).mean())
    watch = trained_frames(some, 4, 3, step=0.03, error=1.05 * error, most_cpu=8.0)
    assert -watch.best().score <= 1.05 * error


def test_slopes_of_raw_frames_by_differences() -> None:
    some = frames()
    work = RawFrames(some, c=4, k=3)
    batch = np.ascontiguousarray(some.train[:7].T.astype(np.float32))
    slope = work._slopes(batch)
    rho, alpha, _ = (array.astype(np.float64) for array in work.model.arrays)
    weight = np.einsum("nk,nck->nc", rho, alpha[work.near])
    for n, j in ((0, 0), (7, 3), (19, 1)):
        values = []
        for change in (1e-4, -1e-4):
            moved = weight[n].copy()
            moved[j] += change
            values.append(-0.5 * ((batch[n] - moved @ batch[work.near[n]]) ** 2).sum())
        assert np.isclose((values[0] - values[1]) / 2e-4, slope[n, j], rtol=1e-3, atol=1e-3)


def test_basket_yardstick_keeps_its_best() -> None:
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, (300, 15)).astype(np.float32)
    X[:, :2] += 1
    rows = csr_array(X)
    watch, arrays = trained_baskets(rows[:250], rows[250:], 3, most=12)
    work = Baskets(rows[:250], 3)
    work.model.arrays = arrays
    assert work.score(rows[250:]) == watch.best().score
