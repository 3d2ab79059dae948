"""A round: passes over one shard of the data, as a function of the state; and how shards merge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from efemb._typing import Floats
from efemb.engine.optimizers.first_order import OptimizerState
from efemb.engine.plan import Plan, Shard
from efemb.engine.random import RoundKey
from efemb.engine.search import Search
from efemb.engine.state import TrainState, Update

Watch = Callable[[float], bool]  # of the part of a round that is done; True ends it there


def run_round(
    state: TrainState,
    shard: Shard,
    plan: Plan,
    watch: Watch = lambda done: False,
    *,
    in_place: bool = False,
) -> Update:
    """Train on one shard: a function of its arguments alone.

    `in_place` says that the arrays of the state are no longer needed: the round works on them.
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
    """The state after a round, of which `updates` are what each shard made of `state`, in order.

    Several are averaged, in the unconstrained space and in double precision.
    """
    first, space = updates[0], plan.space
    if len(updates) == 1:
        return replace(state, **vars(first), round=state.round + 1)
    thetas = zip(*(update.theta.arrays() for update in updates), strict=True)
    theta = first.theta.like(_average(arrays) for arrays in thetas)
    sums = [update.optimizer.arrays for update in updates]
    arrays = {name: _average([shard[name] for shard in sums]) for name in sums[0]}
    parameters = space.constrained(theta)
    # The objective of a shard is that of its rows and of the whole prior.
    values = [update.objective - space.log_prior(update.parameters) for update in updates]
    return replace(
        state,
        theta=theta,
        parameters=parameters,
        optimizer=OptimizerState(first.optimizer.optimizer, arrays),
        objective=sum(values) + space.log_prior(parameters),
        steps=max(update.steps for update in updates),
        round=state.round + 1,
    )


def _average(arrays: Sequence[Floats]) -> Floats:
    """Mean in the order of the shards, so that it has the same bits whichever was first."""
    total = np.zeros(arrays[0].shape)
    for array in arrays:
        total += array
    return (total / len(arrays)).astype(arrays[0].dtype)
