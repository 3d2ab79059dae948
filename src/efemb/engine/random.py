"""Keyed randomness: draws of a round depend on its key, not on earlier draws.

So a round can be run again, elsewhere, in another order or after a crash, with the same draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Positions in this list are part of the key: append new purposes at the end.
PURPOSES = (
    "order of rows",
    "order of zeros",
    "zeros",
    "text",
    "hold-out",
    "contexts",
    "order of shards",
)


def generator(seed: int, round: int, shard: int, purpose: str) -> np.random.Generator:
    """The generator of one purpose in one round of one shard; round 0 is before training.

    >>> one, two = (generator(7, 3, 0, "zeros").random() for _ in range(2))
    >>> one == two
    True
    >>> one == generator(7, 3, 1, "zeros").random()
    False
    """
    return np.random.default_rng([seed, round, shard, PURPOSES.index(purpose)])


@dataclass(frozen=True)
class RoundKey:
    """Identifies a round of a shard.

    first_step : steps that a shard made in all earlier rounds
    """

    seed: int
    round: int = 0
    shard: int = 0
    n_shards: int = 1
    first_step: int = 0

    def generator(self, purpose: str) -> np.random.Generator:
        """The generator of one purpose."""
        return generator(self.seed, self.round, self.shard, purpose)

    def turn(self, step: int) -> int:
        """Index of a step of this round among the steps of all shards, as if they took turns."""
        return (self.first_step + step) * self.n_shards + self.shard
