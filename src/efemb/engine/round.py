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
from efemb.model.parameters import Parameters

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

    Several are averaged, in the unconstrained space and in double precision. What all have changed
    is added up instead in arrays whose rows belong to one shard each, where an average would keep
    little of what that shard has learned; their steps were as long as if they were averaged.
    """
    first, space = updates[0], plan.space
    if len(updates) == 1:
        return replace(state, **vars(first), round=state.round + 1)
    shrink = plan.n_shards**-0.5
    theta, before = {}, state.theta.named()
    for name in before:
        arrays = [update.theta.named()[name] for update in updates]
        own = name in plan.of_one_shard
        theta[name] = _add_up(before[name], arrays, shrink) if own else _average(arrays)
    merged = Parameters.from_named(theta)
    parameters = space.constrained(merged)
    # The objective of a shard is that of its rows and of the whole prior.
    values = [update.objective - space.log_prior(update.parameters) for update in updates]
    return replace(
        state,
        theta=merged,
        parameters=parameters,
        optimizer=_merge_sums(state, updates, plan),
        objective=sum(values) + space.log_prior(parameters),
        steps=max(update.steps for update in updates),
        round=state.round + 1,
    )


def _merge_sums(state: TrainState, updates: Sequence[Update], plan: Plan) -> OptimizerState:
    """Sums of squares, one for each array of the parameters."""
    names = list(state.theta.named())
    own = {f"squares{names.index(name)}" for name in plan.of_one_shard}
    arrays = {}
    for name in updates[0].optimizer.arrays:
        sums = [update.optimizer.arrays[name] for update in updates]
        before = state.optimizer.arrays.get(name, np.zeros_like(sums[0]))
        arrays[name] = _add_up(before, sums, 1.0) if name in own else _average(sums)
    return OptimizerState(updates[0].optimizer.optimizer, arrays)


def _average(arrays: Sequence[Floats]) -> Floats:
    """Mean in the order of the shards, so that it has the same bits whichever was first."""
    total = np.zeros(arrays[0].shape)
    for array in arrays:
        total += array
    return (total / len(arrays)).astype(arrays[0].dtype)


def _add_up(before: Floats, arrays: Sequence[Floats], share: float) -> Floats:
    """What was before and a share of all changes, in the order of the shards."""
    total = np.zeros(before.shape)
    for array in arrays:
        total += array.astype(np.float64) - before
    return np.asarray(before + share * total, dtype=before.dtype)
