"""A round: passes over one shard, as a function of the state, and the merging of shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from efemb._typing import Floats
from efemb.engine.optimizers.first_order import OptimizerState
from efemb.engine.plan import Plan, Shard
from efemb.engine.random import RoundKey
from efemb.engine.search import Search
from efemb.engine.state import TrainState, Update
from efemb.model.parameters import Parameters

Watch = Callable[[float], bool]  # takes the share of a round that is done; True ends the round


def run_round(
    state: TrainState,
    shard: Shard,
    plan: Plan,
    watch: Watch = lambda done: False,
    *,
    in_place: bool = False,
) -> Update:
    """Train on one shard, as a function of the arguments alone.

    With `in_place`, the arrays of the state are not needed any more, and the round modifies them.
    """
    owned = state if in_place else state.copy()
    solver = shard.solver
    if solver.family is not state.family:
        solver.set_family(state.family)
    key = RoundKey(plan.seed, state.round + 1, shard.index, plan.n_shards, state.steps)
    work = Search(solver, owned, plan) if plan.optimizer.full_batch else solver.passes(owned, plan)
    update: Update = work.run(key, watch)
    return update


def merge(state: TrainState, updates: Sequence[Update], plan: Plan) -> TrainState:
    """The state after a round; `updates` are the results of the shards for `state`, in order."""
    first, space = updates[0], plan.space
    if len(updates) == 1:
        return replace(state, **vars(first), round=state.round + 1)
    mean, data_term = Averaging(state, plan), 0.0
    for update in updates:
        # The objective of a shard covers its rows and the whole prior.
        data_term += update.objective - space.log_prior(update.parameters)
        mean.add(update.theta.named(), update.optimizer, update.steps)
    merged = mean.merged()
    return replace(merged, objective=data_term + space.log_prior(merged.parameters))


class Averaging:
    """Merges the results of several shards for a state, one after the other.

    They are averaged, in the unconstrained space and in double precision, in the order in which
    they are added. In arrays whose rows belong to one shard each, changes are summed instead,
    because an average would lose most of what that shard has learned; steps were as long as for an
    average. Some rows of all arrays can be merged separately from the others.
    """

    def __init__(self, state: TrainState, plan: Plan) -> None:
        self.state, self.plan = state, plan
        names = list(state.theta.named())
        squares = {name: f"squares{names.index(name)}" for name in plan.of_one_shard}
        self.theta = _Sums(plan.of_one_shard, state.theta.named(), plan.n_shards**-0.5)
        self.squares = _Sums(frozenset(squares.values()), state.optimizer.arrays, 1.0)
        self.optimizer, self.steps = "", 0

    def add(self, theta: Mapping[str, Floats], optimizer: OptimizerState, steps: int) -> None:
        """Add the result of one shard; none of its arrays is kept."""
        self.theta.add(theta)
        self.squares.add(optimizer.arrays)
        self.optimizer, self.steps = optimizer.optimizer, max(steps, self.steps)

    def merged(self) -> TrainState:
        """The state after the round, still with the objective of the one before."""
        theta = Parameters.from_named(self.theta.merged())
        return replace(
            self.state,
            theta=theta,
            parameters=self.plan.space.constrained(theta),
            optimizer=OptimizerState(self.optimizer, self.squares.merged()),
            steps=self.steps,
            round=self.state.round + 1,
        )


class _Sums:
    """Sums of arrays of several shards, by name.

    of_one_shard : names of the arrays whose changes are summed, scaled by a common factor
    """

    def __init__(
        self, of_one_shard: frozenset[str], before: Mapping[str, Floats], share: float
    ) -> None:
        self.of_one_shard, self.before, self.share = of_one_shard, before, share
        self.totals: dict[str, Floats] = {}
        self.dtypes: dict[str, np.dtype[Any]] = {}
        self.n = 0

    def add(self, arrays: Mapping[str, Floats]) -> None:
        self.n += 1
        for name, array in arrays.items():
            if name not in self.totals:
                self.totals[name], self.dtypes[name] = np.zeros(array.shape), array.dtype
            if name in self.of_one_shard:
                self.totals[name] += array.astype(np.float64) - self._before(name)
            else:
                self.totals[name] += array

    def _before(self, name: str) -> Floats:
        before = self.before.get(name)
        return np.zeros(self.totals[name].shape, self.dtypes[name]) if before is None else before

    def merged(self) -> dict[str, Floats]:
        return {
            name: np.asarray(
                self._before(name) + self.share * total
                if name in self.of_one_shard
                else total / self.n,
                dtype=self.dtypes[name],
            )
            for name, total in self.totals.items()
        }
