"""`efemb shards`, and fits from its stores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import vstack
from sklearn.exceptions import ConvergenceWarning

import efemb
from efemb.cli import main
from shards.lines import simulated_lines

pytestmark = pytest.mark.slow


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    folder = tmp_path / "lines"
    folder.mkdir()
    table = simulated_lines(600)
    for number in range(2):
        table.iloc[number::2].to_csv(folder / f"{number}.csv", index=False)
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: Any, code: int = 0) -> Any:
    with pytest.raises(SystemExit) as raised:
        main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    assert (raised.value.code or 0) == code, said.err
    return said


def test_a_store_is_prepared_and_fitted(
    lines: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = ("--basket", "trip", "--item", "what", "--count", "n")
    store, model = tmp_path / "store", tmp_path / "model"
    options = (*columns, "--shards", 4, "--min-count", 1, "--out", store, "--json")
    said = run(capsys, "shards", f"{lines}/*.csv", *options)
    summary = json.loads(said.out)
    assert summary["lines"] == summary["lines_stored"] == len(simulated_lines(600))
    fit = ("--model", "p-emb", "-k", 2, "--max-iter", 2, "--out", model, "--jobs", 1, "--json")
    summary = json.loads(run(capsys, "fit", store, *fit).out)
    assert summary["passes"] == 2
    opened = efemb.shards.open_store(store)
    expected = efemb.PoissonEmbedding(2, random_state=0, max_iter=2, allow_real=True)
    with pytest.warns(ConvergenceWarning):
        efemb.shards.fit(expected, opened)
    assert np.array_equal(efemb.load(model).parameters.rho, expected.parameters_.rho)
    assert summary["score"] == pytest.approx(efemb.shards.score(expected, opened.test))
    train, test = (rows_of(part) for part in (opened, opened.test))
    popularity = efemb.baselines.Popularity().fit(train).score(test)
    assert summary["popularity"] == pytest.approx(popularity)


def rows_of(store: Any) -> efemb.Dataset:
    shards = [store.shard(number).values for number in range(store.n_shards)]
    return efemb.Dataset(vstack(shards, format="csr"), entities=store.vocabulary)


def test_the_number_of_components_is_that_of_a_fit_in_memory(
    lines: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--model", "p-emb", "--basket", "trip", "--item", "what", "--count", "n")
    options += ("--max-iter", 1, "--json")
    store = ("--store", tmp_path / "store", "--checkpoint", tmp_path / "checkpoint")
    fits = [
        json.loads(
            run(capsys, "fit", lines / "0.csv", *options, *more, "--out", tmp_path / name).out
        )
        for name, more in (("memory", ()), ("shards", store))
    ]
    assert fits[0]["components"] == fits[1]["components"] > 1


def test_a_cluster_of_processes_fits_from_lines(
    lines: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Store and checkpoint are left behind; the bits are those of one process."""
    columns = ("--basket", "trip", "--item", "what", "--count", "n", "--min-count", 1)
    store, run_folder, model = (tmp_path / name for name in ("store", "run", "model"))
    places = ("--store", store, "--checkpoint", run_folder, "--out", model)
    fit = ("--model", "p-emb", "-k", 2, "--max-iter", 2, "--jobs", 1, "--json")
    cluster = ("--cluster", "local:2", "--replicas", 2)
    said = run(capsys, "fit", f"{lines}/*.csv", *columns, *places, *fit, *cluster)
    assert json.loads(said.out)["passes"] == 2
    assert "pass 2" in said.err
    opened = efemb.shards.open_store(store)
    expected = efemb.PoissonEmbedding(2, random_state=0, max_iter=2, allow_real=True)
    with pytest.warns(ConvergenceWarning):
        efemb.shards.fit(expected, opened, n_replicas=2)
    assert np.array_equal(efemb.load(model).parameters.rho, expected.parameters_.rho)
    # The same again, on fewer workers, has nothing left to do.
    fewer = ("--cluster", "local:1", "--replicas", 2)
    again = run(capsys, "fit", store, "--checkpoint", run_folder, "--out", model, *fit, *fewer)
    assert json.loads(again.out)["passes"] == 2
    assert "objective" not in again.err


KILL = """
import signal, sys
from functools import partial
from pathlib import Path
import pytest
from efemb.cli import main
from shards import hooks

if __name__ == "__main__":
    monkeypatch = pytest.MonkeyPatch()
    for phase in ("store", "train"):
        marker = Path(sys.argv[1]) / f"{phase}-died"
        hooks.harm_tasks(monkeypatch, phase, partial(hooks.signal_once, marker, signal.SIGKILL))
    main(sys.argv[2:])
"""


def test_a_worker_that_dies_is_one_plain_line(lines: Path, tmp_path: Path) -> None:
    """One is killed while the store is made and one in the fit; Dask's own lines are not shown."""
    (tmp_path / "kill.py").write_text(KILL)
    columns = ("--basket", "trip", "--item", "what", "--count", "n", "--min-count", 1)
    places = ("--store", tmp_path / "store", "--out", tmp_path / "model")
    fit = ("--model", "p-emb", "-k", 2, "--max-iter", 1, "--jobs", 1, "--cluster", "local:2")
    options = (*columns, *places, *fit, "--replicas", 2)
    command = [sys.executable, tmp_path / "kill.py", tmp_path, "fit", f"{lines}/*.csv", *options]
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    done = subprocess.run(
        [str(argument) for argument in command],
        check=False,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert all((tmp_path / f"{phase}-died").exists() for phase in ("store", "train"))
    assert "distributed" not in done.stderr
    line = "a worker was lost: the tasks ran again elsewhere, with the same result"
    # While the store is made; above the progress bar; and in the end.
    assert done.stderr.splitlines().count(line) == 3
    assert done.stderr.splitlines()[-1] == line


def test_lines_beyond_memory_become_shards_by_themselves(
    lines: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("efemb.data.memory.available_memory", lambda: 1000)
    options = ("--basket", "trip", "--item", "what", "--count", "n", "--model", "p-emb", "-k", 2)
    said = run(
        capsys, "fit", f"{lines}/*.csv", *options, "--max-iter", 1, "--out", tmp_path / "model"
    )
    assert "kept as shards" in said.err
    assert efemb.shards.open_store(tmp_path / "model-store").n_rows > 0
    assert efemb.load(tmp_path / "model").vocabulary is not None


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (("--store", "s", "--replicas", "2"), "--replicas needs --cluster"),
        (("--store", "s", "--row", "trip"), "cannot be used with a store"),
        (("--cluster", "local:x"), "not a cluster"),
    ],
)
def test_wrong_options_are_explained(
    lines: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    match: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    said = run(capsys, "fit", f"{lines}/*.csv", *options, code=2)
    assert match in said.err
