"""LocalBackend: rounds in this process, one shard after the other; usually one with all rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from efemb._typing import Floats
from efemb.engine.backends.base import Backend
from efemb.engine.plan import Plan, Shard
from efemb.engine.round import Watch, run_round
from efemb.engine.search import projects
from efemb.engine.state import TrainState, Update

STEPS_BETWEEN_SCORES = 20
FEW_ROWS = 2000
EARLY_SCORES = (0, 5)  # fewer rows than entities are fitted too closely within a few steps
ITERATIONS_BETWEEN_SCORES = 5  # of L-BFGS on all parameters


class LocalBackend(Backend):
    """Threads of one process work on a shard at a time."""

    def __init__(self, shards: Sequence[Shard], plan: Plan) -> None:
        self.shards, self.plan = shards, plan
        self.n_observed = sum(shard.solver.n_observed for shard in shards)
        self.rounds_between_scores = self._rounds_between_scores()
        n_rows, spec = sum(shard.solver.n_rows for shard in shards), plan.space.spec
        if spec.family.normalized_score and n_rows < min(plan.space.n_entities, FEW_ROWS):
            self.early_scores = EARLY_SCORES

    def _rounds_between_scores(self) -> int:
        """Scores cost about as much as a few steps."""
        plan, solver = self.plan, self.shards[0].solver
        if plan.scheduled:
            return 1
        if plan.optimizer.full_batch:
            return 1 if projects(plan.space, solver) else ITERATIONS_BETWEEN_SCORES
        starts = plan.batch_starts(solver.n_rows)
        return max(1, STEPS_BETWEEN_SCORES // (1 if starts is None else len(starts)))

    def run(self, state: TrainState, watch: Watch) -> list[Update]:
        """Run the shards one after the other; a single one modifies the arrays of the state."""
        n_shards = len(self.shards)

        def run_shard(number: int) -> Update:
            def watch_all(done: float) -> bool:
                return watch((number + done) / n_shards)

            shard, alone = self.shards[number], n_shards == 1
            return run_round(state, shard, self.plan, watch_all, in_place=alone)

        return [run_shard(number) for number in range(n_shards)]

    def evaluate(self, state: TrainState) -> float:
        """Sum over the shards."""
        vectors, total = self.plan.space.vectors(state.parameters), 0.0
        for shard in self.shards:
            shard.solver.set_family(state.family)
            total += shard.solver.value_and_gradient(vectors, exact=True)[0]
        return total

    def evidence(self, state: TrainState) -> tuple[Floats, Floats]:
        """Sum over the shards, in their order."""
        vectors = self.plan.space.vectors(state.parameters)
        total, weight = np.zeros((2, self.plan.space.n_entities))
        for shard in self.shards:
            shard.solver.set_family(state.family)
            sums = shard.solver.evidence(vectors)
            total, weight = total + sums[0], weight + sums[1]
        return total, weight

    @property
    def total_weight(self) -> float:
        """Sum over the shards."""
        return sum(shard.solver.total_weight for shard in self.shards)

    def validate(self, state: TrainState) -> float | None:
        """Mean score of the shards, weighted by what each of them holds out."""
        watched = [shard.validation for shard in self.shards if shard.validation is not None]
        if not watched:
            return None
        vectors = self.plan.space.vectors(state.parameters)
        parts = [validation.parts(vectors, state.family) for validation in watched]
        return sum(total for total, _ in parts) / sum(weight for _, weight in parts)
