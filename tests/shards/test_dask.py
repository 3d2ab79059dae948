"""A cluster gives the bits of one process, whatever happens to its workers; and typed errors."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from distributed import Client, Future, LocalCluster
from numpy.testing import assert_array_equal

import efemb
import efemb.dask
from efemb.dask import cluster as clusters
from efemb.dask.executor import DaskExecutor, run_checked
from efemb.engine.backends import states
from efemb.shards import ShardStore
from shards import hooks
from shards.lines import all_rows, checksum, simulated_lines, simulated_store

pytestmark = [
    pytest.mark.slow,
    # Few passes are enough to compare bits.
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
PHASES = ["measure", "train", "reduce", "score"]


@pytest.fixture(scope="module")
def processes() -> Iterator[Client]:
    """Two worker processes; those that die are replaced."""
    with clusters.start_local(n_workers=2, memory_limit="2GB") as client:
        yield client


@pytest.fixture(scope="module")
def threads() -> Iterator[Client]:
    """One worker in a thread of this process: quick to start, for errors."""
    options: dict[str, Any] = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with LocalCluster(**options, dashboard_address=":0") as local, Client(local) as client:
        yield client


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> ShardStore:
    return simulated_store(tmp_path_factory.mktemp("store"))


def model(**options: Any) -> Any:
    return efemb.PoissonEmbedding(3, **{"random_state": 0, "max_iter": 2, **options})


@pytest.fixture(scope="module")
def expected(store: ShardStore) -> str:
    """The checksum of the oracle: one task after the other in this process."""
    return checksum(efemb.shards.fit(model(), store, n_replicas=4))


@pytest.fixture(autouse=True)
def average_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small states, too; the oracle averages them whole."""
    monkeypatch.setattr(states, "SMALLEST_PART", 64)  # bytes


def test_a_cluster_gives_the_bits_of_one_process(
    processes: Client, threads: Client, store: ShardStore, expected: str
) -> None:
    for client in (processes, threads):
        fitted = efemb.dask.fit(model(), store, client=client, n_replicas=4)
        assert checksum(fitted) == expected
        report = fitted.report_
        assert (report["deaths"], report["n_replicas"], report["rounds"]) == (0, 4, 2)
        assert fitted.score(all_rows(store.test)) < 0


class Notes(list[str]):
    """What a progress bar shows of a cluster."""

    def announce(self, text: str) -> None:
        self.append(text)

    def note(self, status: str) -> None:
        self.append(status)

    def __call__(self, progress: Any) -> None:
        """Passes have a line of their own."""


def test_workers_that_are_killed_change_nothing(
    processes: Client,
    store: ShardStore,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of them in every phase of one fit."""
    for phase in PHASES:
        harm = partial(hooks.signal_once, tmp_path / phase, signal.SIGKILL)
        hooks.harm_tasks(monkeypatch, phase, harm)
    notes = Notes()
    fitted = efemb.dask.fit(model(callbacks=[notes]), store, client=processes, n_replicas=4)
    assert all((tmp_path / phase).exists() for phase in PHASES)
    assert checksum(fitted) == expected
    assert fitted.report_["deaths"] > 0
    assert notes[0] == (
        "783 rows in 8 shards, 4 replicas, averaged 2 times per pass: more than 4 workers have "
        "nothing to do"
    )
    assert any(note.startswith("round 2 of 2, 4 of 4 shards, ") for note in notes)
    assert any(note.endswith("lost") for note in notes)
    told = [note for note in notes if note.endswith("elsewhere, with the same result")]
    assert told[0].startswith(("a worker was lost:", "2 workers were lost:"))
    assert len(told) <= fitted.report_["deaths"]


def test_a_store_that_workers_prepare_has_the_same_bits(
    processes: Client, store: ShardStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them is killed in every phase."""
    table = simulated_lines(900).sample(frac=1, random_state=0)
    (tmp_path / "lines").mkdir()
    for number in range(3):
        table.iloc[number::3].to_parquet(tmp_path / "lines" / f"{number}.parquet")
    for phase in ("pieces", "gather", "store"):
        harm = partial(hooks.signal_once, tmp_path / phase, signal.SIGKILL)
        hooks.harm_tasks(monkeypatch, phase, harm)
    names: dict[str, Any] = {"basket": "trip", "item": "what", "count": "n"}
    options: dict[str, Any] = {"n_shards": 8, "min_items_per_basket": 2, "held_out": 0.1}
    prepared = efemb.dask.prepare(
        tmp_path / "lines", tmp_path / "store", **names, **options, client=processes
    )
    assert prepared.checksum == store.checksum
    assert prepared.report["deaths"] > 0
    assert "deaths" not in ShardStore.open(tmp_path / "store").report  # the store is the same
    assert all((tmp_path / phase).exists() for phase in ("pieces", "gather", "store"))


def test_a_task_that_fails_names_its_shard(
    threads: Client, store: ShardStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks.harm_tasks(monkeypatch, "train", partial(hooks.fail_on_shard, 3))
    options: dict[str, Any] = {"client": threads, "n_replicas": 4, "checkpoint": tmp_path / "run"}
    with pytest.raises(efemb.ShardError, match=r"'train' shard .*3.*weather.*resumes") as raised:
        efemb.dask.fit(model(), store, **options)
    assert "shards/00003.indptr.npy" in str(raised.value) or "shard 3" in str(raised.value)


def test_errors_of_the_data_are_those_of_one_machine(threads: Client, store: ShardStore) -> None:
    with pytest.raises(efemb.DataError, match="bernoulli needs 0 or 1"):
        efemb.dask.fit(efemb.BernoulliEmbedding(2, binarize=False), store, client=threads)


def test_no_worker_is_an_error_in_time(store: ShardStore, tmp_path: Path) -> None:
    options: dict[str, Any] = {"checkpoint": tmp_path / "run", "wait": 1.0}
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as local,
        Client(local) as client,
        pytest.raises(efemb.ClusterLostError, match=r"within 1 s.*resumes from .*run"),
    ):
        efemb.dask.fit(model(), store, client=client, **options)


def test_no_client_is_an_error(store: ShardStore) -> None:
    with pytest.raises(efemb.ParameterError, match="Client"):
        clusters.find_client(7)


def test_other_software_is_refused(
    threads: Client, store: ShardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = clusters.fingerprint()
    assert run_checked(len, ours, False, pickle.dumps([])) == 0
    other_cpu = {**ours, "processor": "abacus"}
    # Workers that came later.
    for expected, mixed_cpus in (({**ours, "numba": "0.1"}, True), (other_cpu, False)):
        failure = run_checked(len, expected, mixed_cpus, pickle.dumps([]))
        assert isinstance(failure.error, efemb.ParameterError)
        assert "instead of" in failure.text
    assert run_checked(len, other_cpu, True, pickle.dumps([1, 2])) == 2
    monkeypatch.setattr(clusters, "fingerprint", hooks.Skewed(ours, {**ours, "numba": "0.1"}))
    with pytest.raises(efemb.ParameterError, match=r"the worker .* has numba"):
        clusters.check_alike(threads, mixed_cpus=False)


class Vanishing:
    """A client of two workers, one of which dies after it has answered."""

    status = "running"

    def __init__(self) -> None:
        self.workers = {"tcp://a:1": {}, "tcp://b:1": {}}
        self.cancelled: list[Any] = []

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        return {"workers": dict(self.workers)}

    def submit(self, function: Any, *arguments: Any, workers: list[str], **options: Any) -> Any:
        return Answer(self, workers[0], function(*arguments))

    def cancel(self, futures: list[Any]) -> None:
        self.cancelled += futures


class Answer:
    status = "finished"

    def __init__(self, client: Vanishing, address: str, answer: Any) -> None:
        self.client, self.address, self.answer = client, address, answer

    def result(self, timeout: float) -> Any:
        assert timeout < 5, "nobody waits for long"
        if self.address == "tcp://a:1":
            self.client.workers.pop(self.address, None)
            raise TimeoutError
        return self.answer


def test_an_answer_that_went_away_with_its_worker_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("distributed.wait", lambda futures, timeout: None)
    client = Vanishing()
    assert clusters._ask_workers(client, len, "ab") == {"tcp://b:1": 2}
    assert len(client.cancelled) == 2


def test_a_worker_without_the_package_is_named(store: ShardStore) -> None:
    absent = "import sys\nsys.modules['efemb'] = None\n"
    with (
        clusters.start_local(n_workers=1, preload=absent) as client,
        pytest.raises(efemb.ParameterError, match=r"the worker tcp://.* install efemb"),
    ):
        efemb.dask.fit(model(), store, client=client)


def test_parameters_larger_than_a_worker_are_refused(
    threads: Client, store: ShardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any task runs."""
    workers = clusters.workers_of(threads)
    small = {address: {**worker, "memory_limit": 100_000} for address, worker in workers.items()}
    monkeypatch.setattr(clusters, "workers_of", lambda client: small)
    monkeypatch.setattr(DaskExecutor, "run", None)
    with pytest.raises(efemb.MemoryEstimateError, match=r"states and a shard need .* on a worker"):
        efemb.dask.fit(model(), store, client=threads)


@pytest.mark.parametrize(
    ("address", "warned"),
    [
        ("tcp://8.8.8.8:8786", True),
        ("tls://8.8.8.8:8786", False),
        ("tcp://127.0.0.1:1", False),
        ("tcp://10.0.0.3:1", False),
        ("inproc://10.0.0.3/1", False),
    ],
)
def test_a_public_scheduler_without_tls_is_warned_of(address: str, warned: bool) -> None:
    class Scheduler:
        pass

    scheduler: Any = Scheduler()
    scheduler.address = address
    client: Any = Scheduler()
    client.scheduler, client.scheduler_info = scheduler, len
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert clusters.find_client(client) is client
    assert bool(caught) is warned


def test_positive_vectors_are_warned_of(threads: Client, store: ShardStore) -> None:
    estimator = efemb.AdditivePoissonEmbedding(2, random_state=0, max_iter=1)
    with pytest.warns(UserWarning, match="three times"):
        efemb.dask.fit(estimator, store, client=threads, n_replicas=2)


def test_dask_is_not_imported_unless_asked_for() -> None:
    code = (
        "import sys, efemb, efemb.shards\n"
        "assert not {'dask', 'distributed'} & set(sys.modules)\n"
        "sys.modules['distributed'] = None\n"
        "try:\n    efemb.dask.fit(None, None)\n"
        "except efemb.MissingExtraError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "efemb[dask]"' in done.stdout


def test_deaths_are_counted(threads: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = DaskExecutor(threads)
    assert executor.run("any", len, [[1], [1, 2]]) == [1, 2]
    executor._known.add("tcp://10.0.0.9:1")
    executor.look()
    assert executor.lost == 1


def test_an_outcome_that_went_away_with_its_worker_is_made_again(
    threads: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of other tasks, which were asked for together with it, arrive."""
    real, refused = Future.result, []

    async def gather(futures: Any, **options: Any) -> Any:
        raise TimeoutError

    def result(self: Any, timeout: float | None = None) -> Any:
        if len(refused) < 2 and "-any-1-" in str(self.key):
            refused.append(timeout)
            raise TimeoutError
        return real(self, timeout)

    monkeypatch.setattr(threads, "gather", gather)
    monkeypatch.setattr(Future, "result", result)
    assert DaskExecutor(threads).run("any", len, [[1], [1, 2], []]) == [1, 2, 0]
    assert refused == [5.0, 10.0]


def test_answers_over_shards_are_those_of_all_rows(threads: Client, store: ShardStore) -> None:
    fitted = efemb.shards.fit(model(), store)
    rows = all_rows(store.test)
    for score in (efemb.shards.score, partial(efemb.dask.score, client=threads)):
        assert score(fitted, store.test) == pytest.approx(fitted.score(rows))
    transformed = efemb.dask.transform(fitted, store.test, client=threads)
    assert_array_equal(transformed, fitted.transform(rows))
    table = efemb.dask.recommend(fitted, store.test, n=3, client=threads)
    expected = fitted.recommend(rows, n=3)
    for name in ("row", "label", "rank", "score"):
        assert_array_equal(table[name], expected[name])


def test_answers_over_partitions_are_those_of_all_rows(threads: Client, store: ShardStore) -> None:
    import dask.array
    import dask.dataframe

    fitted = efemb.shards.fit(model(), store)
    X = all_rows(store.test).values.toarray()[:30]
    frame = pd.DataFrame(X, columns=[str(label) for label in store.vocabulary.labels])
    for data in (dask.array.from_array(X, (11, -1)), dask.dataframe.from_pandas(frame, 3)):
        score = efemb.dask.score(fitted, data, client=threads)
        assert score == pytest.approx(fitted.score(X))
        assert_array_equal(efemb.dask.transform(fitted, data, client=threads), fitted.transform(X))
        table = efemb.dask.recommend(fitted, data, n=2, client=threads)
        assert table["label"].tolist() == fitted.recommend(X, n=2)["label"].tolist()
        assert table["row"].tolist() == np.repeat(np.arange(30), 2).tolist()
    with pytest.raises(efemb.InputTypeError, match="rechunk"):
        efemb.dask.score(fitted, dask.array.from_array(X, (11, 5)), client=threads)
    with pytest.raises(efemb.InputTypeError, match="in memory"):
        efemb.dask.score(fitted, X, client=threads)


def test_partitions_of_a_data_frame_become_a_store(
    threads: Client, store: ShardStore, tmp_path: Path
) -> None:
    import dask.dataframe

    table = dask.dataframe.from_pandas(simulated_lines(900), 4)
    options: dict[str, Any] = {"n_shards": 8, "min_items_per_basket": 2, "held_out": 0.1}
    names: dict[str, Any] = {"basket": "trip", "item": "what", "count": "n"}
    assert efemb.shards.prepare(table, tmp_path, **names, **options).checksum == store.checksum
