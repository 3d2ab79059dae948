"""A round is a function of its arguments; averaged shards learn the same as the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import efemb
from efemb.engine.backends.local import LocalBackend
from efemb.engine.callbacks import Callbacks
from efemb.engine.holdout import hold_out
from efemb.engine.initial import initial_parameters
from efemb.engine.loop import Loop
from efemb.engine.optimizers.first_order import LBFGS, SGD, Adagrad, Adam
from efemb.engine.optimizers.step import Move
from efemb.engine.plan import Plan, Shard
from efemb.engine.random import PURPOSES, RoundKey, generator
from efemb.engine.round import merge, run_round
from efemb.engine.solvers.choice import Setup
from efemb.engine.state import TrainState, Update
from efemb.engine.statistics import Statistics
from efemb.engine.threads import Workers, workers
from efemb.model.parameters import Parameters
from efemb.model.predict import score
from efemb.model.space import ParameterSpace
from engine import models

Array = Any
K = 4


def trips(n_rows: int, n_entities: int = 30, seed: int = 0) -> Array:
    """Counts of items in groups that are bought together."""
    group = np.random.default_rng(9).integers(4, size=n_entities)
    base = np.random.default_rng(8).gamma(1.0, 0.15, n_entities)
    rng = np.random.default_rng(seed)
    liked = group == rng.integers(4, size=(n_rows, 1))
    X = rng.poisson(np.where(liked, 5.0, 0.3) * base).astype(float)
    return X[(X > 0).sum(axis=1) > 1]


class Job:
    """Everything that a fit on shards is made of."""

    def __init__(
        self,
        X: Array,
        n_shards: int,
        *,
        seed: int = 0,
        optimizer: Any = None,
        batch_size: int = 64,
        n_rounds: int = 30,
        **changes: Any,
    ) -> None:
        self.spec = models.spec(changes.pop("model", "p-emb"), **changes)
        bounds = [
            self.spec.context.bind(efemb.Dataset(sparse.csr_array(X[shard::n_shards])))
            for shard in range(n_shards)
        ]
        ones = [np.ones(bound.n_rows) for bound in bounds]
        counted = _sum([Statistics.of(b, w) for b, w in zip(bounds, ones, strict=True)])
        setup = Setup("rows", self.spec, Workers(1), np.float32, seed, counted.popularity)
        splits = [
            hold_out(bound, 0.05, None, setup, generator(seed, 0, shard, "hold-out"))
            for shard, bound in enumerate(bounds)
        ]
        rows = [Statistics.of(split.bound, split.solver.row_weight) for split in splits]
        self.space = ParameterSpace(self.spec, X.shape[1], 1, 1, K)
        start = initial_parameters(self.space, _sum(rows), np.random.default_rng(seed))
        self.start = TrainState.start(self.space, start.astype(np.float32), None)
        self.shards = [Shard(s.solver, s.validation, i) for i, s in enumerate(splits)]
        self.plan = Plan(
            self.space,
            optimizer or Adagrad(0.2, epsilon=0.01),
            batch_size,
            n_rounds,
            seed,
            total_rows=len(X),
            n_shards=n_shards,
        )

    def run(self) -> Any:
        backend = LocalBackend(self.shards, self.plan)
        return Loop(backend, self.plan, 5, 1e-4, Callbacks(())).run(self.start)

    def round(self, state: TrainState, order: Sequence[int] | None = None) -> TrainState:
        """One round, the shards of which are run in any order."""
        updates: dict[int, Update] = {}
        for shard in range(len(self.shards)) if order is None else order:
            updates[shard] = run_round(state, self.shards[shard], self.plan)
        return merge(state, [updates[shard] for shard in sorted(updates)], self.plan)


def _sum(statistics: list[Statistics]) -> Statistics:
    total = statistics[0]
    for shard in statistics[1:]:
        total = total + shard
    return total


def bits(state: TrainState) -> list[bytes]:
    arrays = [*state.theta.arrays(), *state.parameters.arrays()]
    for value in state.optimizer.arrays.values():  # L-BFGS also has a list of pairs of steps
        arrays += [x for pair in value for x in pair] if isinstance(value, list) else [value]
    return [np.asarray(array).tobytes() for array in arrays]


KINDS: dict[str, dict[str, Any]] = {
    "exact zeros": {},
    "sampled zeros": {"zeros": efemb.Sampled(6)},
    "negative sampling": {"zeros": efemb.NegativeSampling(2)},
    "positive": {"model": "ap-emb", "optimizer": Adagrad(0.5)},
    "positive, sampled": {"model": "ap-emb", "zeros": efemb.Sampled(6)},
    "tied": {"structure": "tied"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_shards_may_run_in_any_order(kind: str) -> None:
    ends = []
    for order in ((0, 1, 2), (2, 0, 1)):
        job = Job(trips(300), 3, **KINDS[kind])
        state = job.start
        for _ in range(3):
            state = job.round(state, order)
        ends.append(state)
    assert bits(ends[0]) == bits(ends[1])
    assert (ends[0].round, ends[0].objective) == (3, ends[1].objective)


@pytest.mark.parametrize("kind", KINDS)
def test_a_round_changes_nothing_but_its_result(kind: str) -> None:
    job = Job(trips(200), 1, **KINDS[kind])
    state = job.round(job.start)
    before = bits(state)
    first, second = job.round(state), job.round(state)
    assert bits(first) == bits(second)
    assert bits(state) == before != bits(first)
    in_place = run_round(state, job.shards[0], job.plan, in_place=True)
    assert in_place.theta is state.theta
    assert bits(merge(state, [in_place], job.plan)) == bits(first)


@pytest.mark.parametrize(
    "kind", [*KINDS, "adam", "sgd", "lbfgs"], ids=[*KINDS, "adam", "sgd", "lbfgs"]
)
def test_a_state_continues_from_its_arrays(kind: str) -> None:
    """Resume at any round, as if in another process: everything else is recomputed."""
    others = {"adam": Adam(), "sgd": SGD(0.1, decay=0.01), "lbfgs": LBFGS()}
    options = KINDS.get(kind, {"optimizer": others.get(kind)})
    n_shards = 2 if kind in KINDS else 1
    job = Job(trips(200), n_shards, **options)
    states = [job.start]
    for _ in range(4):
        states.append(job.round(states[-1]))
    for stopped in states[1:-1]:
        again = Job(trips(200), n_shards, **options)
        state = TrainState.from_arrays(stopped.to_arrays(), again.space)
        while state.round < 4:
            state = again.round(state)
        assert bits(state) == bits(states[-1])
        assert (state.steps, state.objective) == (states[-1].steps, states[-1].objective)


def test_merged_parameters_and_sums_are_means() -> None:
    job = Job(trips(200), 2, model="ap-emb")
    updates = [run_round(job.start, shard, job.plan) for shard in job.shards]
    state = merge(job.start, updates, job.plan)
    for name, array in state.theta.named().items():
        mean = (updates[0].theta.named()[name] + updates[1].theta.named()[name].astype(float)) / 2
        assert_allclose(array, mean, rtol=1e-6)
        assert array.dtype == np.float32
        assert_allclose(state.parameters.named()[name], np.exp(array), rtol=1e-6)
    for name, array in state.optimizer.arrays.items():
        mean = (updates[0].optimizer.arrays[name] + updates[1].optimizer.arrays[name]) / 2
        assert_allclose(array, mean, rtol=1e-6)
    data_terms = [u.objective - job.space.log_prior(u.parameters) for u in updates]
    expected = sum(data_terms) + job.space.log_prior(state.parameters)
    assert state.objective == pytest.approx(expected)


@pytest.mark.parametrize("batch_size", [16, 1000])
def test_a_shard_stands_for_all_rows(batch_size: int) -> None:
    """A tiny step of a third of equal rows is as long as a step of all of them."""
    X = np.tile(trips(60)[0], (48, 1))
    moves = []
    for n_shards in (1, 3):
        job = Job(X, 1, optimizer=SGD(1e-5), batch_size=batch_size)
        plan = replace(job.plan, total_rows=48 * n_shards, batch_size=batch_size)
        update = run_round(job.start, job.shards[0], plan)
        steps = 3 if batch_size == 16 else 1
        assert update.steps == steps
        moves.append(update.theta.rho.astype(float) - job.start.theta.rho)
    prior = np.abs(job.spec.prior_rho.precision * job.start.theta.rho * 1e-5).max()  # type: ignore[union-attr]
    assert_allclose(moves[1], moves[0], atol=3 * prior / 48, rtol=1e-2)


@pytest.mark.slow
def test_two_shards_learn_what_one_does() -> None:
    """Parameters and sums averaged after each pass, with steps sqrt(2) as long."""
    X, new = trips(3000), sparse.csr_array(trips(1500, seed=1))
    scores = {}
    for n_shards in (1, 2):
        jobs = [Job(X, n_shards, seed=seed) for seed in range(3)]
        untrained = score_of(jobs[0], jobs[0].start.parameters, new)
        scores[n_shards] = [score_of(job, job.run().parameters, new) for job in jobs]
        assert min(scores[n_shards]) > untrained + 0.2, "there is something to learn"
    noise = np.std(scores[1], ddof=1) + np.std(scores[2], ddof=1)
    assert abs(np.mean(scores[2]) - np.mean(scores[1])) < 2 * noise


def test_longer_steps_leave_tiny_gradients_alone() -> None:
    """Where epsilon determines a step, that of several shards is as long as that of one."""
    lengths = {}
    for factor in (1.0, 3.0):
        array, gradient = np.zeros(2), np.array([1e-6, 1.0])
        stepper = Adagrad(0.1, 1e-2).faster(factor).start([array], 1)
        with workers(1) as pool:
            stepper.step(Move([array], [gradient], 1.0, [0.0]), pool)
        lengths[factor] = array
    assert_allclose(lengths[3.0] / lengths[1.0], [1.0, 3.0], rtol=0.05)


def score_of(job: Job, parameters: Parameters, X: Array) -> float:
    """Held-out log-likelihood per unit."""
    return score(job.spec, job.spec.context.bind(efemb.Dataset(X)), job.space.vectors(parameters))


def test_only_adagrad_averages() -> None:
    for optimizer in (Adam(), SGD(), LBFGS()):
        with pytest.raises(efemb.ParameterError, match="several shards"):
            Job(trips(100), 2, optimizer=optimizer)


def test_keys_differ_in_every_part() -> None:
    keys = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (2**62, 3, 4)]
    drawn = [generator(*key, purpose).random() for key in keys for purpose in PURPOSES]
    assert len(set(drawn)) == len(drawn)
    assert RoundKey(2**62, 3, 4).generator("text").random() in drawn
