"""A fit on shards is an ordinary fit: its result, its bits, what it refuses."""

from __future__ import annotations

import gc
import shutil
import weakref
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import efemb
from efemb.data.store.executors import SerialExecutor
from efemb.engine.backends import sharded, states, tasks
from efemb.engine.backends.sharded import Layout
from efemb.shards import ShardStore, fit
from shards.lines import all_rows, checksum, simulated_store

pytestmark = [
    pytest.mark.slow,
    # Few passes are enough to compare bits.
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
N_PASSES = 3


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> ShardStore:
    return simulated_store(tmp_path_factory.mktemp("store"))


def model(**options: Any) -> Any:
    return efemb.PoissonEmbedding(3, **{"random_state": 0, "max_iter": N_PASSES, **options})


def test_the_result_is_an_ordinary_estimator(store: ShardStore, tmp_path: Path) -> None:
    fitted = fit(model(), store)
    assert isinstance(fitted, efemb.PoissonEmbedding)
    assert fitted.vocabulary_ == store.vocabulary
    report = fitted.report_
    assert (report["shards"], report["n_replicas"], report["rows"]) == (8, 1, store.n_rows)
    assert report["deaths"] == 0
    assert report["lines"] == report["lines_stored"]
    fitted.save(tmp_path / "model")
    test = all_rows(store.test)
    assert efemb.load(tmp_path / "model").score(test) == pytest.approx(fitted.score(test))
    assert fitted.similar(0, n=3)
    assert not [path for path in store.path.iterdir() if path.name.startswith(".fit")]


def test_shards_of_one_replica_learn_what_fit_does(tmp_path: Path) -> None:
    store = simulated_store(tmp_path, n_rows=3000, n_shards=4)
    rows, test = all_rows(store), all_rows(store.test)
    seeds = range(3)
    options: dict[str, Any] = {"max_iter": 60, "batch_size": 128}
    apart = [fit(model(random_state=s, **options), store).score(test) for s in seeds]
    averaged = [fit(model(random_state=s, **options), store, n_replicas=2) for s in seeds]
    whole = [model(random_state=s, **options).fit(rows).score(test) for s in seeds]
    assert np.mean(apart) > np.mean(whole) - 0.01
    assert np.mean([m.score(test) for m in averaged]) > np.mean(whole) - 0.01
    untrained = model(max_iter=1, optimizer=efemb.engine.optimizers.Adagrad(1e-6)).fit(rows)
    assert np.mean(whole) > untrained.score(test) + 0.05, "there is something to learn"


MODELS: dict[str, Any] = {
    "p-emb": model(),
    "ap-emb": efemb.AdditivePoissonEmbedding(3, random_state=0, max_iter=2),
    "b-emb": efemb.BernoulliEmbedding(3, random_state=0, max_iter=2, binarize=True),
    "categorical": efemb.CategoricalEmbedding(3, random_state=0, max_iter=2),
    "learned dispersion": efemb.Embedding(
        3, family=efemb.NegativeBinomial(), context=efemb.Basket(), random_state=0, max_iter=2
    ),
    "dispersion of entities": efemb.Embedding(
        3,
        family=efemb.ZeroInflated("poisson"),
        context=efemb.Basket(),
        random_state=0,
        max_iter=2,
    ),
    "tied": model(structure="tied"),
    "without hold-out": model(early_stopping=False),
}


@pytest.mark.parametrize("name", MODELS)
def test_rounds_and_threads_do_not_change_bits(store: ShardStore, name: str) -> None:
    """One replica may stop anywhere; several meet in every round."""
    from sklearn.base import clone

    sums = {
        checksum(fit(clone(MODELS[name]).set_params(n_jobs=jobs), store, rounds_per_pass=rounds))
        for jobs, rounds in ((1, 1), (2, 3))
    }
    assert len(sums) == 1
    two = [
        checksum(fit(clone(MODELS[name]).set_params(n_jobs=jobs), store, n_replicas=2))
        for jobs in (1, 2)
    ]
    assert two[0] == two[1] not in sums


@pytest.mark.parametrize("name", MODELS)
def test_parts_in_which_states_are_averaged_do_not_change_bits(
    store: ShardStore, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from sklearn.base import clone

    averaged = []

    def count(task: Any) -> str:
        averaged.append(task.target)
        return tasks.reduce(task)

    monkeypatch.setattr(sharded, "reduce", count)
    whole = checksum(fit(clone(MODELS[name]), store, n_replicas=4))
    n_rounds = len(averaged)
    monkeypatch.setattr(states, "SMALLEST_PART", 64)  # bytes
    assert checksum(fit(clone(MODELS[name]), store, n_replicas=4)) == whole
    assert len(averaged) == n_rounds + 4 * n_rounds


def test_states_are_cut_into_parts_of_some_size() -> None:
    def count(n_entities: int, n_replicas: int) -> int:
        space: Any = SimpleNamespace(layout=[SimpleNamespace(shape=(n_entities, 128))])
        return states.count_parts(space, np.float32, n_replicas)  # 1 kB per entity

    assert [count(n, 8) for n in (10, 4095, 4096, 12_000, 10**6)] == [1, 1, 2, 4, 8]
    assert [count(10**6, n) for n in (1, 2, 3, 100)] == [1, 2, 2, 8]


@pytest.mark.parametrize("zeros", [efemb.Sampled(6), efemb.NegativeSampling(2)], ids=repr)
def test_sampled_zeros_train_in_one_replica_only(store: ShardStore, zeros: Any) -> None:
    assert np.isfinite(fit(model(zeros=zeros), store).score(all_rows(store.test)))
    with pytest.raises(efemb.ParameterError, match="n_replicas=1"):
        fit(model(zeros=zeros), store, n_replicas=2)


@pytest.mark.parametrize("n_replicas", [1, 2])
@pytest.mark.parametrize("phase", ["train", "reduce", "score"])
def test_an_interrupted_fit_resumes_with_the_same_bits(
    store: ShardStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str, n_replicas: int
) -> None:
    if phase == "reduce" and n_replicas == 1:
        return  # a single replica is not averaged
    expected = checksum(fit(model(), store, n_replicas=n_replicas))
    monkeypatch.setattr(states, "SMALLEST_PART", 64)  # bytes: two parts
    real, calls, shards_trained = getattr(tasks, phase), [0], []
    run_round = tasks.run_round

    def count(*args: Any, **options: Any) -> Any:
        shards_trained.append(1)
        return run_round(*args, **options)

    monkeypatch.setattr(tasks, "run_round", count)

    def fail(task: Any) -> Any:
        calls[0] += 1
        if calls[0] == 2:
            raise KeyboardInterrupt
        return real(task)

    options: dict[str, Any] = {"n_replicas": n_replicas, "checkpoint": tmp_path / "run"}
    with monkeypatch.context() as patch:
        patch.setattr(sharded, phase, fail)
        with pytest.raises(KeyboardInterrupt):
            fit(model(), store, **options)
    assert calls[0] == 2
    assert checksum(fit(model(), store, **options)) == expected
    again = len(shards_trained) - N_PASSES * store.n_shards
    assert again <= store.n_shards // (4 * n_replicas), "what was done is not done again"
    assert checksum(fit(model(), store, **options)) == expected, "a fit that has ended"


@pytest.mark.parametrize("name", ["state.safetensors", "manifest.json"])
def test_states_that_a_crash_of_the_machine_cut_short_are_made_again(
    store: ShardStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    options: dict[str, Any] = {"n_replicas": 2, "checkpoint": tmp_path / "run"}
    expected = checksum(fit(model(), store, n_replicas=2))

    def crash(task: Any) -> Any:
        for path in (tmp_path / "run" / "rounds").glob(f"*/*/{name}"):
            path.write_bytes(b"")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sharded, "reduce", crash)
        with pytest.raises(KeyboardInterrupt):
            fit(model(), store, **options)
    assert list((tmp_path / "run" / "rounds").glob(f"*/round-0-1/{name}"))
    assert checksum(fit(model(), store, **options)) == expected


def test_another_fit_does_not_take_the_checkpoint(store: ShardStore, tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def stop(progress: Any) -> None:
        if progress.iteration == 2:
            raise StopError

    with pytest.raises(StopError):
        fit(model(callbacks=[stop]), store, checkpoint=tmp_path)
    for other, replicas in ((model(random_state=1), 1), (model(tol=0.1), 1), (model(), 2)):
        with pytest.raises(efemb.ParameterError, match="another fit"):
            fit(other, store, checkpoint=tmp_path, n_replicas=replicas)
    fit(model(random_state=1), store, checkpoint=tmp_path, resume=False)


def test_a_callback_stops_a_fit(store: ShardStore) -> None:
    fitted = fit(model(callbacks=[lambda progress: progress.iteration == 2]), store)
    assert fitted.n_iter_ == 2


class Losing(SerialExecutor):
    """Forgets a row of one task."""

    def run(self, phase: str, function: Any, tasks: Any, watch: Any = None) -> list[Any]:
        outcomes = super().run(phase, function, tasks, watch)
        if phase == "train":
            outcomes[0] = replace(outcomes[0], rows=outcomes[0].rows - 1)
        return outcomes


def test_lost_rows_are_an_error(store: ShardStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("efemb.shards.training.SerialExecutor", Losing)
    before = dict(vars(estimator := model()))
    with pytest.raises(efemb.errors.DataLossError, match="rows"):
        fit(estimator, store)
    assert vars(estimator) == before


def test_a_state_that_changed_is_an_error(store: ShardStore, tmp_path: Path) -> None:
    path = tmp_path / "state"
    from efemb.engine.state import TrainState
    from efemb.model.space import ParameterSpace
    from engine import models

    space = ParameterSpace(models.spec("p-emb"), 4, 1, 1, 2)
    state = TrainState.start(space, fit(model(), store).parameters_, None)
    states.write_state((path,), state, {})
    plan: Any = SimpleNamespace(space=space, of_one_shard=frozenset(), n_shards=1)
    task = tasks.ReduceTask(plan, path, ((path, "0" * 64),), tmp_path / "mean")
    with pytest.raises(efemb.errors.DataLossError, match="not the state"):
        tasks.reduce(task)


@pytest.mark.parametrize(
    "estimator",
    [
        model(batch_size=16),
        model(zeros=efemb.Sampled(5), batch_size=16),
        efemb.AdditivePoissonEmbedding(2, random_state=0, max_iter=2, batch_size=16),
    ],
    ids=["exact", "sampled", "closed form"],
)
def test_a_shard_is_freed_before_the_next_one_is_read(
    store: ShardStore, monkeypatch: pytest.MonkeyPatch, estimator: Any
) -> None:
    """Memory is that of one shard, without the help of the garbage collector."""
    split, solvers = tasks.ShardJob.split, []

    def split_and_watch(self: Any, shard: int, *arguments: Any) -> Any:
        assert not [solver for solver in solvers if solver() is not None]
        made = split(self, shard, *arguments)
        solvers.append(weakref.ref(made.solver))
        return made

    monkeypatch.setattr(tasks.ShardJob, "split", split_and_watch)
    gc.disable()
    try:
        fit(estimator, store)
    finally:
        gc.enable()
    assert len(solvers) > store.n_shards


def test_many_shards_are_measured_by_few_tasks(
    store: ShardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = checksum(fit(model(), store))
    monkeypatch.setattr("efemb.engine.fit_shards.MOST_MEASURED", 3)
    assert checksum(fit(model(), store)) == expected


def test_a_shard_that_changed_is_an_error(store: ShardStore, tmp_path: Path) -> None:
    shutil.copytree(store.path, tmp_path / "copy")
    path = tmp_path / "copy" / "shards" / "00003.values.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\x7f")
    with pytest.raises(efemb.DataError, match="shard 3"):
        fit(model(), tmp_path / "copy")


def test_what_cannot_be_fitted_on_shards_is_refused(store: ShardStore) -> None:
    optimizers = efemb.engine.optimizers
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (efemb.GaussianEmbedding(2, context=efemb.Neighbors(3)), {}, "does not train on shards"),
        (efemb.CBOW(2), {}, "store of text"),
        (model(optimizer=optimizers.LBFGS()), {}, "all rows at once"),
        (model(optimizer=optimizers.Adam()), {"n_replicas": 2}, "several shards"),
        (model(terms=[efemb.RowVectors("user", 2)]), {}, "needs the row column 'user'"),
        (model(), {"n_replicas": 9}, "8 shards"),
        (model(callbacks=[efemb.engine.callbacks.Checkpoint("x")]), {}, "own checkpoint"),
        (efemb.BernoulliEmbedding(2, binarize=False), {}, "bernoulli needs 0 or 1"),
    ]
    for estimator, options, match in refused:
        with pytest.raises(efemb.EfembError, match=match):
            fit(estimator, store, **options)
        assert not hasattr(estimator, "parameters_")


def test_every_shard_is_dealt_once_in_a_pass() -> None:
    for n_shards, n_replicas, n_rounds in ((8, 1, 1), (8, 2, 4), (7, 3, 2), (32, 8, 4), (5, 5, 9)):
        layout = Layout(tuple(range(n_shards)), n_replicas, n_rounds, 64)
        for number in range(3):
            queues = layout.deal(0, number)
            rounds = layout.rounds(number)
            dealt = [shard for r in rounds for queue in queues for shard in queue[r]]
            assert sorted(dealt) == list(range(n_shards))
            assert all(queue for queue in queues)
        n_places = -(-n_shards // n_replicas)
        numbers = [len(layout.rounds(number)) for number in range(4)]
        assert numbers == [n_places, n_places, *(2 * [min(n_rounds, n_places)])]
        assert layout.deal(0, 0) != layout.deal(0, 1)
