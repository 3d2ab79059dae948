"""The command line: help, version, errors, and the demonstration on small data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import efemb
import efemb.datasets
from efemb.cli import main
from efemb.cli.demo import affinities, popularity_score, relations

RUN = "from efemb.cli import main; main()"


def exit_code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return int(caught.value.code or 0)


def small_trips(data_home: Path | None = None) -> efemb.Dataset:
    data = efemb.simulate("p-emb", n_rows=300, n_entities=25, n_components=2).data
    labels = [f"THING{n % 7} {n} OZ #{n}" for n in range(25)]
    return efemb.Dataset(data.values, entities=labels)


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--help") == 0
    assert "demo" in capsys.readouterr().out
    assert exit_code("demo", "--help") == 0
    assert "--passes" in capsys.readouterr().out
    assert exit_code("--version") == 0
    assert capsys.readouterr().out == f"efemb {efemb.__version__}\n"


def test_help_is_light() -> None:
    code = (
        "import sys\nfrom efemb.cli import main\ntry:\n    main(['--help'])\n"
        "except SystemExit:\n    print('MODULES', *{n.partition('.')[0] for n in sys.modules})"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    modules = done.stdout.partition("MODULES")[2].split()
    assert {"numba", "sklearn", "scipy", "pandas", "pyarrow"}.isdisjoint(modules)


def test_errors_are_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "complete-journey"
    folder.mkdir()
    for name in ("transactions.parquet", "products.parquet"):
        (folder / name).write_text("not the data")
    command = [sys.executable, "-c", RUN, "demo", "--data-home", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("efemb: ")
    assert done.stderr.count("\n") == 1
    assert exit_code("demmo") == 2


def test_demo(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(efemb.datasets, "fetch_complete_journey", small_trips)
    assert exit_code("demo", "--components", "2", "--passes", "3", "--jobs", "1") == 0
    shown = capsys.readouterr().out
    for word in ("uniform", "popularity", "p-emb, K = 2", "similar", "complements", "substitutes"):
        assert word in shown
    assert "-3.219" in shown  # log(1 / 25)


def test_popularity_is_the_share_of_units() -> None:
    from scipy.sparse import csr_array

    train = efemb.Dataset(csr_array([[3.0, 1.0, 0.0], [0.0, 0.0, 4.0]]))
    test = efemb.Dataset(csr_array([[2.0, 1.0, 0.0], [0.0, 0.0, 9.0]]))
    expected = (2 * np.log(3 / 8) + np.log(1 / 8)) / 3
    assert popularity_score(train, test) == pytest.approx(expected)


def test_relations() -> None:
    rho = np.array([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0], [0.0, -1.0]])
    alpha = np.array([[0.0, 1.0], [-1.0, 0.0], [3.0, 0.0], [0.0, 0.0]])
    near, pairs = affinities(rho, alpha)
    found = relations(near[0], pairs[0])
    assert found["similar"][0] == 1
    assert found["complements"][0] == 2
    assert found["substitutes"][0] == 1
    assert all(0 not in items for items in found.values())
