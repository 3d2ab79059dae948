"""Calibrated log-likelihood against a plain loop and a general optimiser."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import efemb
from efemb.baselines import Popularity
from efemb.evaluation import calibrate, held_out_entries, leave_one_out


def counts(seed: int, n_rows: int = 80) -> tuple[Any, Any]:
    """Rows, and one held-out entry of each that has two or more."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.gamma(0.5, size=(n_rows, 9)) * np.linspace(0.2, 2, 9)).astype(float)
    held = np.zeros_like(X)
    for row, out in zip(X, held, strict=True):
        items = np.flatnonzero(row)
        if len(items) >= 2:
            item = rng.choice(items)
            out[item], row[item] = row[item], 0.0
    return X, held


TRAIN, HELD = counts(0)
MODEL = efemb.PoissonEmbedding(2, random_state=0).fit(TRAIN, validation=HELD)
POPULARITY = np.asarray(Popularity("poisson").fit(TRAIN).mean_)


def entries_of(X: Any, held: Any) -> list[tuple[Any, ...]]:
    """Item, units, means given the row, and what is not in the row, of each held-out entry."""
    entries = []
    for t, n in zip(*np.nonzero(held), strict=True):
        if X[t].any():
            [(_, log_means)] = MODEL.log_means(X, np.array([t]), np.array([n]))
            entries.append((n, held[t, n], np.exp(log_means[0].astype(float)), X[t] == 0))
    return entries


def log_shares(
    weights: Any, entries: list[tuple[Any, ...]], of_shares: bool, largest: float = np.inf
) -> list[tuple[float, float]]:
    """(units, log p) of each held-out entry, by the definition."""
    a, c, d = weights
    each = []
    for n, units, means, outside in entries:
        m = means / means.sum() if of_shares else means
        u = a * np.minimum(m, largest) + c * np.log(m) + d * np.log(POPULARITY)
        each.append((units, u[n] - np.log(np.exp(u[outside]).sum())))
    return each


def test_weights_are_those_of_a_general_optimizer() -> None:
    calibrated, entries = calibrate(MODEL, TRAIN, HELD, POPULARITY), entries_of(TRAIN, HELD)

    def loss(weights: Any, of_shares: bool) -> float:
        each = log_shares(weights, entries, of_shares)
        return -sum(x * value for x, value in each) / sum(x for x, _ in each)

    start, options = np.array([0.1, 0.5, 0.5]), {"gtol": 1e-7}
    best = {
        of_shares: minimize(loss, start, args=(of_shares,), method="BFGS", options=options)
        for of_shares in (False, True)
    }
    assert calibrated.of_shares == (best[True].fun < best[False].fun)
    np.testing.assert_allclose(calibrated.weights, best[calibrated.of_shares].x, rtol=5e-3)
    assert calibrated.weights.log_popularity == calibrated.weights[2]


def test_shares_of_other_entries_by_the_definition() -> None:
    calibrated = calibrate(MODEL, TRAIN, HELD, POPULARITY)
    X, held = counts(1, 30)
    judged = held_out_entries(calibrated, X, held)
    known = (calibrated.of_shares, calibrated.largest)
    plain = log_shares(calibrated.weights, entries_of(X, held), *known)
    assert judged.x.tolist() == [x for x, _ in plain]
    np.testing.assert_allclose(judged.log_share, [value for _, value in plain], rtol=1e-4)


def test_what_is_in_the_context_has_no_share() -> None:
    calibrated = calibrate(MODEL, TRAIN, HELD, POPULARITY)
    X = np.array([[1.0, 2, 0, 0, 0, 0, 0, 0, 3]])
    [(_, log_means)] = calibrated.log_means(X, np.array([0]), np.array([8]))
    assert np.isneginf(log_means[0, :2]).all()
    assert np.isfinite(log_means[0, 2:]).all()
    before, after = leave_one_out(MODEL, X), leave_one_out(calibrated, X)
    assert before.log_share is not None
    assert after.log_share is not None
    assert len(before) == len(after) == 3


def test_bad_popularity_and_entries_that_are_still_there() -> None:
    for popularity in (POPULARITY[:-1], np.zeros(9)):
        with pytest.raises(efemb.DataError, match="9 positive numbers"):
            calibrate(MODEL, TRAIN, HELD, popularity)
    with pytest.raises(efemb.DataError, match="entries is empty"):
        calibrate(MODEL, TRAIN, np.zeros_like(HELD), POPULARITY)
    with pytest.raises(efemb.DataError, match="still in X"):
        calibrate(MODEL, TRAIN + HELD, HELD, POPULARITY)
