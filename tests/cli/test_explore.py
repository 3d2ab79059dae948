"""`efemb explore`: a file, a served page, and what is refused before any work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from efemb.explore import Explorer


@pytest.mark.slow
def test_a_page_is_written(run, model: Path, trips: Path, tmp_path: Path) -> None:
    groups = tmp_path / "groups.csv"
    groups.write_text("product,kind\ngreek yogurt,dairy\nchips,snack\nunicorn,none\n")
    page = tmp_path / "map.html"
    done = run("explore", model, "--data", trips, "--groups", groups, "--method", "pca", "-o", page)
    assert done.code == 0, done.err
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert f"{page} (" in done.out
    assert "8 items have no group; 1 of the grouped items not in the model" in done.err
    options = ["--data", trips, "--method", "pca", "--uncertainty", "--out", page]
    assert run("explore", model, *options).code == 0
    done = run("explore", model, "--method", "pca", "--out", page, "--json", "--bits", "8", "-q")
    assert json.loads(done.out) == {"page": str(page), "bytes": page.stat().st_size}


@pytest.mark.slow
def test_lines_of_baskets_are_evidence(run, model: Path, tmp_path: Path) -> None:
    baskets = tmp_path / "baskets.txt"
    baskets.write_text("chips;salsa\nchips;lager beer\nlager beer;salsa\n" * 20)
    options = ["--method", "pca", "--out", tmp_path / "map.html"]
    done = run("explore", model, "--data", baskets, "--layout", "lines", *options)
    assert done.code == 0, done.err
    assert "each line is a basket" in done.err


def test_a_page_is_served(run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = []
    monkeypatch.setattr(Explorer, "serve", lambda self, *a, **options: served.append((a, options)))
    done = run("explore", model, "--no-browser", "--port", "9000", "--method", "pca")
    assert done.code == 0, done.err
    ((place, options),) = served
    assert place == ("127.0.0.1", 9000)
    assert not options["open_browser"]
    assert options["token"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "pass a token as well (--token TEXT)"),
        (["--host", "0.0.0.0", "--token", "short"], "at least 8"),
        (["--method", "circle", "--out", "x.html"], "'circle' is unknown"),
        (["--groups", "nowhere.csv"], "nowhere.csv"),
        (["--bits", "7", "--out", "x.html", "--method", "pca"], "8, 16 or 24"),
        (["--json"], "--out"),
        (["--uncertainty", "--out", "x.html"], "pass --data"),
        (["--group-column", "kind", "--out", "x.html"], "pass groups"),
    ],
)
def test_wrong_arguments_are_bad_input(
    run, model: Path, arguments, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("explore", model, *arguments)
    assert done.code == 2
    assert message in done.err
    assert not list(tmp_path.iterdir())
