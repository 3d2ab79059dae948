"""Whatever happens to workers, driver and disk: the same bits, or a typed error in time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

import efemb
import efemb.dask
from efemb.dask.cluster import open_cluster, start_local
from efemb.dask.executor import DaskExecutor
from efemb.engine.backends import states
from efemb.shards import ShardStore
from shards import hooks
from shards.lines import checksum, simulated_lines, simulated_store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
PHASES = ["measure", "train", "reduce", "score"]
N_KILLS = int(os.environ.get("EFEMB_KILLS", "10"))
HANG = 300  # seconds of a run that takes a few


def start(**options: Any) -> Any:
    return start_local(**{"n_workers": 2, "memory_limit": "2GB", **options})


@pytest.fixture
def processes() -> Iterator[Client]:
    with start() as client:
        yield client


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> ShardStore:
    return simulated_store(tmp_path_factory.mktemp("store"))


def model(**options: Any) -> Any:
    return efemb.PoissonEmbedding(3, **{"random_state": 0, "max_iter": 3, **options})


@pytest.fixture(scope="module")
def expected(store: ShardStore) -> str:
    return checksum(efemb.shards.fit(model(), store, n_replicas=4))


@pytest.fixture(autouse=True)
def average_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small states, too; the oracle averages them whole."""
    monkeypatch.setattr(states, "SMALLEST_PART", 64)  # bytes


@pytest.mark.parametrize("n_workers", [1, 3])
def test_any_number_of_workers(store: ShardStore, expected: str, n_workers: int) -> None:
    with start(n_workers=n_workers) as client:
        fitted = efemb.dask.fit(model(), store, client=client, n_replicas=4)
    assert checksum(fitted) == expected


@pytest.mark.parametrize("phase", PHASES)
def test_a_worker_that_is_killed_changes_nothing(
    processes: Client,
    store: ShardStore,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    phase: str,
) -> None:
    harm = partial(hooks.signal_once, tmp_path / "hit", signal.SIGKILL)
    hooks.harm_tasks(monkeypatch, phase, harm)
    fitted = efemb.dask.fit(model(), store, client=processes, n_replicas=4)
    assert (tmp_path / "hit").exists(), f"the worker was killed in phase {phase!r}"
    assert checksum(fitted) == expected


def test_a_worker_that_hangs_is_overtaken(
    processes: Client,
    store: ShardStore,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    processes.wait_for_workers(2, timeout=60)
    harm = partial(hooks.signal_once, tmp_path / "hit", signal.SIGSTOP)
    hooks.harm_tasks(monkeypatch, "train", harm)
    try:
        fitted = efemb.dask.fit(model(), store, client=processes, n_replicas=4, slow=2.0)
    finally:
        os.kill(int((tmp_path / "hit").read_text()), signal.SIGCONT)
    assert checksum(fitted) == expected


def test_a_shard_that_kills_is_named_and_others_are_not_blamed(
    store: ShardStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks.harm_tasks(monkeypatch, "train", partial(hooks.die_on_shard, 3))
    options: dict[str, Any] = {"n_replicas": 4, "rounds_per_pass": 9, "checkpoint": tmp_path}
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        start() as client,
        pytest.raises(efemb.ShardError, match=r"shard 3 of .*died.*resumes from"),
    ):
        efemb.dask.fit(model(), store, client=client, **options)


def test_all_workers_gone(store: ShardStore, tmp_path: Path) -> None:
    options: dict[str, Any] = {"n_replicas": 4, "checkpoint": tmp_path / "run", "wait": 3.0}
    with start() as client:
        timer = threading.Timer(1.0, lambda: client.cluster.scale(0))

        def begin(progress: Any) -> None:
            if progress.iteration == 1:
                timer.start()

        endless = model(max_iter=500, tol=0, callbacks=[begin])
        with pytest.raises(efemb.ClusterLostError, match="resumes from"):
            efemb.dask.fit(endless, store, client=client, **options)
        timer.join()


def test_the_scheduler_gone(store: ShardStore, tmp_path: Path) -> None:
    local = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    client = Client(local)
    closing = threading.Timer(2.0, local.close)
    closing.start()
    try:
        with pytest.raises(efemb.ClusterLostError):
            efemb.dask.fit(model(max_iter=500, tol=0), store, client=client, n_replicas=4, wait=5.0)
    finally:
        closing.join()
        client.close()


DRIVER = """
import sys, warnings
warnings.simplefilter("ignore")
sys.path[:0] = {paths!r}
import efemb, efemb.dask
from distributed import Client, LocalCluster
from shards.lines import checksum

if __name__ == "__main__":
    options = dict(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with LocalCluster(**options) as local, Client(local) as client:
        model = efemb.PoissonEmbedding(3, random_state=0, max_iter=3)
        efemb.dask.fit(model, {store!r}, client=client, n_replicas=4, checkpoint={run!r})
        print(checksum(model), flush=True)
"""


@pytest.mark.parametrize(
    "state", ["pass-00000/round-0", "pass-00001/round-0-2", "pass-00002/start"]
)
def test_a_driver_that_is_killed_resumes(
    store: ShardStore, expected: str, tmp_path: Path, state: str
) -> None:
    """Killed when a state appears; the same program again ends with the same bits."""
    tests = str(Path(__file__).parent.parent)
    names = {"paths": [tests], "store": str(store.path), "run": str(tmp_path / "run")}
    script = tmp_path / "driver.py"
    script.write_text(DRIVER.format(**names))
    command: list[Any] = [sys.executable, script]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 120
    while not (tmp_path / "run" / "rounds" / state).exists() and first.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert first.poll() is None, "it was killed before it ended"
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)
    assert done.stdout.split()[-1] == expected


def test_a_worker_is_never_given_up() -> None:
    """Not even where Dask would do so if a worker is absent a moment after a death."""
    soon = {"distributed.deploy.lost-worker-timeout": "10 ms"}
    with dask.config.set(soon), open_cluster("local:1") as client:
        (before,) = worker_pids(client, 1)
        os.kill(before, signal.SIGKILL)
        (after,) = worker_pids(client, 1)
        assert after != before


def worker_pids(client: Client, n_workers: int = 2) -> list[int]:
    """Processes of all workers, once the one that was killed has been replaced."""
    for _ in range(100):
        client.wait_for_workers(n_workers, timeout=60)
        try:
            return list(client.run(os.getpid).values())
        except OSError:  # the last kill came after the end of the fit
            time.sleep(0.3)
    raise AssertionError("the workers did not come back")


class Killer:
    """Kills a worker at a random moment of one of the phases of a run.

    lengths : the least seconds that every phase of a run took so far
    hit : how many kills fell into which phase
    """

    def __init__(self, run: Any) -> None:
        self.real = run
        self.lengths: dict[int, float] = {}
        self.hit: Counter[str] = Counter()
        self.now, self.place, self.target = "", 0, -1
        self.timer = threading.Timer(0.0, len)

    def aim(self, place: int, share: float, victim: int) -> None:
        """At one of the phases of the next run, when a share of its usual time has gone by."""
        self.place, self.target = 0, place
        self.timer = threading.Timer(share * self.lengths[place], self._kill, [victim])

    def _kill(self, victim: int) -> None:
        os.kill(victim, signal.SIGKILL)
        self.hit[self.now] += 1

    def watch(self, executor: Any, phase: str, *arguments: Any) -> Any:
        """Run the tasks of a phase."""
        self.now, began = phase, time.monotonic()
        if self.place == self.target:
            self.timer.start()
        outcomes = self.real(executor, phase, *arguments)
        self.now, seconds = "between phases", time.monotonic() - began
        self.lengths[self.place] = min(seconds, self.lengths.get(self.place, seconds))
        self.place += 1
        return outcomes


@contextmanager
def no_longer_than(seconds: int) -> Iterator[None]:
    """A run that hangs is an error."""

    def stop(*_: object) -> None:
        raise AssertionError(f"it did not end within {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_random_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines to store to model, in which a worker is killed in every phase: the same bits."""
    rng, killer = np.random.default_rng(0), Killer(DaskExecutor.run)
    lines = simulated_lines(900)
    for number in range(3):
        lines.iloc[number::3].to_parquet(tmp_path / f"{number}.parquet")
    names: dict[str, Any] = {"basket": "trip", "item": "what", "count": "n"}
    source = (f"{tmp_path}/*.parquet", tmp_path / "store")

    def run_once(client: Client) -> tuple[str, str]:
        shutil.rmtree(tmp_path / "store", ignore_errors=True)
        with no_longer_than(HANG):
            store = efemb.dask.prepare(*source, **names, n_shards=8, client=client)
            fitted = efemb.dask.fit(model(), store, client=client, n_replicas=4)
        return store.checksum, checksum(fitted)

    def watched(self: Any, *arguments: Any) -> Any:
        return killer.watch(self, *arguments)

    alone = efemb.shards.prepare(source[0], tmp_path / "alone", **names, n_shards=8)
    expected = alone.checksum, checksum(efemb.shards.fit(model(), alone, n_replicas=4))
    with start() as client:
        assert run_once(client) == expected, "compiles"
        monkeypatch.setattr(DaskExecutor, "run", watched)
        assert run_once(client) == expected
        places = rng.permutation(len(killer.lengths))
        for number in range(N_KILLS):
            victim = int(rng.choice(worker_pids(client)))
            killer.aim(int(places[number % len(places)]), rng.uniform(), victim)
            assert run_once(client) == expected, f"kill {number + 1} of {N_KILLS}"
            killer.timer.join()
    assert killer.hit.total() == N_KILLS
    seconds = sum(killer.lengths.values())
    print(
        f"{N_KILLS} kills, {N_KILLS} identical results: {dict(killer.hit)}; {seconds:.1f} s a run"
    )


def test_a_full_disk_leaves_the_last_round(
    store: ShardStore, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files beyond a limit cannot be written; with space again the same fit ends the same."""
    import resource

    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    options: dict[str, Any] = {"n_replicas": 4, "checkpoint": tmp_path / "run"}

    def fill(progress: Any) -> None:
        if progress.iteration == 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))

    try:
        with pytest.raises(OSError, match=r"too large|cannot write"):
            efemb.shards.fit(model(callbacks=[fill]), store, **options)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    assert checksum(efemb.shards.fit(model(), store, **options)) == expected


def test_a_shard_damaged_during_a_fit(store: ShardStore, tmp_path: Path) -> None:
    shutil.copytree(store.path, tmp_path / "copy")
    path = tmp_path / "copy" / "shards" / "00002.values.npy"

    def damage(progress: Any) -> None:
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    estimator = model(callbacks=[damage])
    with start() as client, pytest.raises(efemb.DataError, match="shard 2"):
        efemb.dask.fit(estimator, tmp_path / "copy", client=client, n_replicas=4)
