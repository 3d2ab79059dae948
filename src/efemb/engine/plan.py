"""Plan, how every round is run, and Shard, the rows of a round."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from efemb.engine.optimizers.first_order import FirstOrder, Optimizer
from efemb.engine.solvers.base import Solver
from efemb.engine.validation import Validation
from efemb.errors import DivergenceError, ParameterError
from efemb.model.space import ParameterSpace

SMALLER_STEPS = (
    "lower the optimizer's step (for example optimizer=Adagrad(step=0.02)), raise the prior's "
    "precision, or scale the data"
)


@dataclass(frozen=True)
class Shard:
    """Rows that are trained on together, and what is held out of them."""

    solver: Solver[Any]
    validation: Validation | None = None
    index: int = 0


@dataclass(frozen=True)
class Plan:
    """How every round is run.

    batch_size : rows of a minibatch, None for all rows of a shard
    n_rounds : maximum number of rounds or, if `scheduled`, their exact number
    total_rows : of all shards, to which a minibatch is scaled up
    deterministic : whether steps over a text wait for each other
    of_one_shard : arrays in which each row is learned from the rows of one shard only
    """

    space: ParameterSpace
    optimizer: Optimizer
    batch_size: int | None
    n_rounds: int
    seed: int
    total_rows: int
    n_shards: int = 1
    scheduled: bool = False
    deterministic: bool = False
    of_one_shard: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.n_shards > 1 and not (
            isinstance(self.optimizer, FirstOrder) and self.optimizer.averages
        ):
            raise ParameterError(
                f"{self.optimizer!r} cannot train several shards: use Adagrad, or a single shard"
            )

    @cached_property
    def shard_optimizer(self) -> Optimizer:
        """The optimizer of a shard, with a step that makes up for averaging.

        Adagrad moves in proportion to the square root of the number of rows. Each of S shards has
        one row in S, so their average would move 1 / sqrt(S) as far.
        """
        if isinstance(self.optimizer, FirstOrder) and self.n_shards > 1:
            return self.optimizer.faster(math.sqrt(self.n_shards))
        return self.optimizer

    def diverged(self, what: str, way_out: str = SMALLER_STEPS) -> DivergenceError:
        """The error for training that diverged to NaN or infinity.

        User-defined ingredients are named first: a wrong formula looks like too long a step.
        """
        own = self.space.spec.own_ingredients()
        if own:
            checks = " and ".join(f"efemb.checks.{check} on {kind}" for check, kind in own)
            way_out = f"your own formulas may be wrong: run {checks} first; then {way_out}"
        return DivergenceError(f"{what}; {way_out}")

    def batch_starts(self, n_rows: int) -> range | None:
        """Starts of the minibatches of a shard, None for all rows at once.

        A short remainder is added to the last one.
        """
        if self.batch_size is None or self.batch_size >= n_rows:
            return None
        return range(0, n_rows - self.batch_size // 2, self.batch_size)
