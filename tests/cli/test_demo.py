"""`efemb demo` and `efemb reproduce` on small data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import efemb
import efemb.datasets

QUICK = ("--components", "2", "--passes", "3", "--jobs", "1")


def small_trips(data_home: Path | None = None) -> efemb.Dataset:
    data = efemb.simulation.simulate(
        "p-emb", n_rows=400, n_entities=25, n_components=2, seed=0
    ).data
    labels = [f"THING{n % 7} {n} OZ #{n}" for n in range(25)]
    counts = (data.values != 0).sum(axis=0)
    return efemb.Dataset(data.values, entities=efemb.Vocabulary(labels, counts=counts))


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(efemb.datasets, "fetch_complete_journey", small_trips)
    monkeypatch.setattr("efemb.cli.demo.LEAST_BASKETS", 1)


@pytest.mark.slow
@pytest.mark.usefixtures("_small")
def test_demo(run, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = run("demo", *QUICK, "--out", out)
    assert done.code == 0
    for word in ("popularity", "p-emb, K = 2", "Similar", "Complements", "Substitutes", "Topics"):
        assert word in done.out
    page = out.read_text("utf-8")
    assert page.index("<img") < page.index("<table")  # the map comes first
    for section in ("Similar items", "Complements", "Substitutes", "Topics"):
        words, tables = page.partition(f">{section}</h2>")[2].partition("<h2")[0].split("</p>")[:2]
        assert len(words) > 100
        assert "query" not in tables  # it is the heading of its table
    similar = page.partition(">Similar items</h2>")[2].partition("<h2")[0]
    assert similar.count("<h3>THING") == similar.count("<table") == 4
    explorer = tmp_path / "report-explorer.html"
    assert str(explorer) in done.out
    assert explorer.read_text("utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.usefixtures("_small")
def test_demo_as_json(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "efemb.cli.demo._write_report", lambda model, tables, train, out: out.touch()
    )
    done = run("demo", *QUICK, "--out", tmp_path / "r.html", "--json", "--quiet")
    told = json.loads(done.out)
    assert Path(told["report"]).exists()
    assert Path(told["explorer"]).exists()
    assert done.err == ""


def test_demo_checks_its_output_first(run, blocked: Path) -> None:
    assert "cannot write" in run("demo", "--out", blocked / "r.html").err


def test_demo_errors_are_one_line(run, tmp_path: Path) -> None:
    folder = tmp_path / "complete-journey"
    folder.mkdir()
    for name in ("transactions.parquet", "products.parquet"):
        (folder / name).write_text("not the data")
    done = run("demo", "--data-home", tmp_path, "--out", tmp_path / "r.html", "--quiet")
    assert done.code == 2
    assert done.err.startswith("efemb: ")
    assert done.err.count("\n") == 1


def test_reproduce_refuses(run, blocked: Path) -> None:
    assert "did you mean 'movies'" in run("reproduce", "movie").err
    assert "cannot write" in run("reproduce", "movies", "--out", blocked / "x").err
    done = run("reproduce", "text", "--literal", "--out", blocked.parent / "y")
    assert done.code == 2
    assert "literal=True is for movies, not for text" in done.err
