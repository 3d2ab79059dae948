"""Laws of every data set, the list of them, and the command `efemb datasets`."""

from __future__ import annotations

import inspect
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import efemb
import efemb.datasets
from efemb.cli import main
from efemb.datasets import download, list_datasets, movielens_100k
from efemb.datasets.catalog import catalog, fetch

ALL = catalog()


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(("datasets", *arguments))
    return int(caught.value.code or 0)


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "installed_paths", lambda wheel: None)


@pytest.mark.parametrize("name", ALL)
def test_descriptions_are_complete(name: str) -> None:
    data, _ = ALL[name]
    assert data.name == name
    assert data.title
    assert data.terms
    assert data.shape
    assert data.size > 0
    assert data.carriers
    for copy in data.copies:
        assert all(re.fullmatch("[0-9a-f]{64}", one) for one in copy.sha256.values())
        assert not copy.urls or set(copy.urls) == set(copy.sha256)
        assert copy.wheel is None or set(copy.wheel.members) == set(copy.sha256)
        assert copy.archive is None or set(copy.archive.members) == set(copy.sha256)
        # Addresses that may change under us are of no use: a commit, or a checksum that fits.
        for url in copy.urls.values():
            assert re.match(r"https://raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f.]+/", url)


@pytest.mark.parametrize("name", ALL)
def test_loaders_have_one_interface(name: str) -> None:
    parameters = inspect.signature(ALL[name][1]).parameters
    assert parameters["data_home"].default is None
    for option in ("download", "progress"):
        assert parameters[option].default is True
        assert parameters[option].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("name", ALL)
def test_offline_every_loader_says_what_to_do(name: str) -> None:
    data, loader = ALL[name]
    with pytest.raises((efemb.DataError, efemb.MissingExtraError)) as caught:
        loader(download=False)
    message = str(caught.value)
    assert data.title in message
    assert f"folder {data.folder} of data_home or EFEMB_DATA" in message
    assert "download=True" in message
    assert "\n" not in message


def test_every_public_loader_is_in_the_catalog() -> None:
    public = {name for name in efemb.datasets.__all__ if name.startswith("fetch_")}
    assert {
        f"fetch_{re.sub('zebrafish_.*', 'zebrafish', name).replace('-', '_')}" for name in ALL
    } == public


def test_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: Any) -> None:
    folder = tmp_path / "movielens-100k"
    folder.mkdir()
    for name in ("u.data", "u.item", "u.genre"):
        (folder / name).write_text(name)
    rows = {row["name"]: row for row in list_datasets(tmp_path)}
    assert not rows["movielens_100k"]["here"]
    assert "damaged" in rows["movielens_100k"]["where"]
    small = published(movielens_100k.DATA, folder)
    monkeypatch.setattr(movielens_100k, "ENTRIES", ((small, None),))
    rows = {row["name"]: row for row in list_datasets(tmp_path)}
    assert set(rows) == set(ALL)
    assert rows["movielens_100k"]["here"]
    assert rows["movielens_100k"]["where"] == str(folder)
    assert not rows["text8"]["here"]
    assert "mattmahoney" in rows["text8"]["where"]


def test_fetch_by_name() -> None:
    with pytest.raises(efemb.ParameterError, match="did you mean 'movielens_100k'"):
        fetch("movielens")


def test_command_lists(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    assert run() == 0
    shown = capsys.readouterr().out
    for name in ALL:
        assert name in shown
    assert "recbole" in shown
    assert run("--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in listed} == set(ALL)
    assert {"shape", "megabytes", "here", "where", "terms"} <= set(listed[0])
    assert not cache.exists()


def test_command_fetches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from scipy.sparse import csr_array

    def small(**options: Any) -> efemb.Dataset:
        report = {"source": "here", "terms": "free", "ratings": 3, "genres": {"a": ["b"]}}
        return efemb.Dataset(csr_array([[1.0, 0.0], [2.0, 3.0]]), report=report)

    def text(**options: Any) -> efemb.Corpus:
        report = {"source": "there", "terms": "none"}
        return efemb.Corpus([0, 1, 0], [0, 3], ["a", "b"], report=report)

    monkeypatch.setattr(movielens_100k, "ENTRIES", ((movielens_100k.DATA, small),))
    monkeypatch.setattr(efemb.datasets.lee, "ENTRIES", ((efemb.datasets.lee.DATA, text),))
    assert run("movielens_100k") == 0
    shown = capsys.readouterr().out
    assert "2 rows x 2 entities" in shown
    assert "terms: free" in shown
    assert run("movielens_100k", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["entities"], told["non_zeros"], told["ratings"]) == (2, 2, 3, 3)
    assert "genres" not in told
    assert run("lee", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["documents"], told["tokens"], told["words"]) == (1, 3, 2)


def test_command_speaks_json_where_letters_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    def text(**options: Any) -> efemb.Corpus:
        report = {"source": "there", "terms": "free \U0001f600"}
        return efemb.Corpus([0, 1, 0], [0, 3], ["a", "b"], report=report)

    monkeypatch.setattr(efemb.datasets.lee, "ENTRIES", ((efemb.datasets.lee.DATA, text),))
    shown = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", shown)
    assert run("lee", "--json") == 0
    shown.seek(0)
    assert json.loads(shown.read())["terms"] == "free \U0001f600"


def test_command_shows_places_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    shown = "".join(capsys.readouterr().out.split())
    for data, _ in ALL.values():
        assert "".join("; ".join(data.carriers).split()) in shown


@pytest.mark.parametrize("name", ["trips.csv", "trips.TSV", "trips.csv.gz"])
def test_command_writes_baskets_that_can_be_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scipy.sparse import csr_array

    counts = np.random.default_rng(0).poisson(1.0, (30, 4)).astype(np.float32)
    counts[0, 0] = 2.0**24 - 1.0  # every digit counts
    labels = ["whole milk", 'a "b", c', "é;ü", "=x\ry"]

    def small(**options: Any) -> efemb.Dataset:
        report = {"source": "here", "terms": "free"}
        return efemb.Dataset(csr_array(counts), entities=labels, report=report)

    monkeypatch.setattr(movielens_100k, "ENTRIES", ((movielens_100k.DATA, small),))
    assert run("movielens_100k", "--out", str(tmp_path / name)) == 0
    columns = {"basket": "basket", "item": "item", "count": "count"}
    found = efemb.read_baskets(tmp_path / name, **columns)
    assert found.entities is not None
    assert found.row_labels is not None
    order = [found.entities.index_of(label) for label in labels]
    rows = np.array(found.row_labels, dtype=int)
    assert set(rows) == set(np.flatnonzero(counts.any(axis=1)))
    np.testing.assert_array_equal(found.values.toarray()[:, order], counts[rows])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("lee", "--out", "x.csv"), "the data are text, so the name must end in .txt"),
        (("lee", "--out", "x.doc"), "must end in .csv or .tsv"),
        (("--out", "x.csv"), "efemb datasets NAME --out FILE"),
    ],
)
def test_command_refuses_to_write(
    arguments: tuple[str, ...],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def text(**options: Any) -> efemb.Corpus:
        return efemb.Corpus([0, 1, 0], [0, 3], ["a", "b"], report={"source": "", "terms": ""})

    monkeypatch.setattr(efemb.datasets.lee, "ENTRIES", ((efemb.datasets.lee.DATA, text),))
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_command_offline_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("text8", "--no-download") == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("efemb: text8")
    assert shown.err.count("\n") == 1


def test_import_is_light() -> None:
    code = "import sys, efemb.datasets; print(*{n.partition('.')[0] for n in sys.modules})"
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    heavy = {"numba", "sklearn", "scipy", "pandas", "pyarrow", "matplotlib", "pooch", "requests"}
    assert heavy.isdisjoint(done.stdout.split())
