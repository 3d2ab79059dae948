"""Draws: which entities' zeros a minibatch visits, and with what weight."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb._typing import Floats
from efemb.engine.random import RoundKey, generator
from efemb.engine.solvers.rows.zero_stages import Columns
from efemb.model.zeros import (
    Zeros,
    inclusion_probabilities,
    probabilities,
)

GOLDEN = 0.6180339887498949
MAX_NEGATIVES = 1024


class Draws:
    """Columns for one minibatch after another; the same key of a round gives the same sequence."""

    def __init__(self, zeros: Zeros, popularity: Floats, seed: int, dtype: Any) -> None:
        self.zeros, self.dtype, self.n_entities = zeros, dtype, len(popularity)
        self.start_round(RoundKey(seed))
        if zeros.gradient == "unbiased":
            share = probabilities(zeros.distribution, popularity)
            # Half uniform: a rarely drawn entity's mean could grow unchecked between draws.
            self.chance = inclusion_probabilities(0.5 * share + 0.5 / len(share), zeros.n)
            rng = generator(seed, 0, 0, "order of zeros")  # the same in every shard
            self.order = rng.permutation(len(share))
            self.edges = np.cumsum(self.chance[self.order])
            self.first = float(rng.random())
        elif zeros.by_noise:
            self.cumulative = np.cumsum(zeros.entity_weights(popularity))
        self.weights = zeros.entity_weights(popularity).astype(dtype)

    def start_round(self, key: RoundKey) -> None:
        """Draw what this round of this shard draws, whatever was drawn before."""
        self.key, self.step, self.rng = key, 0, key.generator("zeros")

    def __call__(self, n_positives: int) -> Columns:
        """Columns for the next minibatch."""
        if self.zeros.gradient == "unbiased":
            return self._systematic()
        if self.zeros.by_noise:
            return self._independent(max(1, min(n_positives * self.zeros.n, MAX_NEGATIVES)))
        return self.every()

    def every(self) -> Columns:
        """Every column, with the weights whose expectation the draws have."""
        return Columns(None, self.weights)

    def _systematic(self) -> Columns:
        """Systematic sampling with unequal probabilities, weights 1 / probability.

        The start moves by the golden ratio, so the visits of an entity are spread evenly over
        the minibatches: the longest gap is a small multiple of 1 / probability. Shards that train
        side by side take turns, so they visit different entities.
        """
        self.step += 1
        start = (self.first + GOLDEN * self.key.turn(self.step)) % 1.0
        stair = np.floor(self.edges + start)
        chosen = np.diff(stair, prepend=np.floor(start)) > 0
        index = np.sort(self.order[chosen])
        return Columns(index, (1.0 / self.chance[index]).astype(self.dtype))

    def _independent(self, n: int) -> Columns:
        """`n` draws with replacement, each with weight 1 / n."""
        places = np.searchsorted(self.cumulative, self.rng.random(n), side="right")
        index, count = np.unique(np.minimum(places, self.n_entities - 1), return_counts=True)
        return Columns(index, (count / n).astype(self.dtype))
