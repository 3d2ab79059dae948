"""Shares of additive means, whose sum is closed, against the sum over all entities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import efemb
from efemb.model.factors import Factors
from efemb.model.links import FLOOR
from efemb.model.predictor import Cells
from efemb.model.score import normalized_log_likelihood

N, K = 40, 3


@pytest.mark.parametrize("low", [(), (1, 4), tuple(range(N))])  # the last: too many
def test_closed_sum_is_the_sum_over_entities(low: tuple[int, ...]) -> None:
    """`low` entities have no intercept, and one of them a vector that leaves it below the floor."""
    rng = np.random.default_rng(0)
    target, bag = rng.exponential(size=(2, N, K))
    intercept = rng.exponential(size=N)
    intercept[list(low)] = 0.0
    if low:
        target[low[-1]] = FLOOR / 100
    bags = csr_array(rng.poisson(1.0, (4, N)).astype(float) + np.eye(4, N))
    row, ids = np.repeat(np.arange(4), 2), np.array([0, 3, 1, 6, 2, 5, 3, low[-1] if low else 0])
    own, rest = bags.toarray()[row, ids], rng.uniform(1, 3, 8)
    cells = Cells(bags, row, ids, np.ones(8), own, rest, np.zeros(8, dtype=bool))
    factors = Factors(target, bag, intercept)
    shares = normalized_log_likelihood(efemb.Poisson(), efemb.model.links.Log(), cells, factors)
    for i in range(8):
        context = (bags.toarray()[row[i]] @ bag - own[i] * bag[ids[i]]) / rest[i]
        means = [max(float(target[n] @ context + intercept[n]), FLOOR) for n in range(N)]
        assert shares[i] == pytest.approx(math.log(means[ids[i]] / sum(means)), abs=1e-9)
