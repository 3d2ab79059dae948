"""`efemb plot`, `efemb export` and `efemb info`."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import efemb
from efemb.cli.plot import PICTURES
from efemb.export import read_word2vec

FONT = (
    "the font lacks some characters of the labels: set font.family to one that has them in a "
    "file matplotlibrc\n"
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [one for one in PICTURES if one not in ("weights", "reliability")])
def test_pictures(run, model: Path, tmp_path: Path, kind: str) -> None:
    out = tmp_path / f"{kind}.png"
    item = ("--item", "chips") if kind == "relations" else ()
    done = run("plot", model, kind, *item, "--out", out, "--dpi", "50", "--json")
    assert done.code == 0
    assert json.loads(done.out) == {"picture": kind, "written": str(out)}
    assert out.read_bytes().startswith(b"\x89PNG")


def test_maps_are_colored_by_groups(
    run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "groups.csv"
    table.write_text("label,aisle\nchips,snacks\nsalsa,snacks\nwhole milk,dairy\n", "utf-8")
    asked: dict[str, Any] = {}

    def draw(model: Any, **options: Any) -> Any:
        asked.update(options)
        return efemb.plots.history(model)

    monkeypatch.setattr(efemb.plots, "embedding_map", draw)
    options = ("--groups", table, "--group-column", "aisle", "-o", tmp_path / "m.png")
    done = run("plot", model, "map", *options)
    assert done.code == 0
    assert "aisle: 2 groups of 3 items" in done.err
    labels = list(efemb.load(model).vocabulary)
    assert asked["groups"][labels.index("salsa")] == "snacks"
    assert asked["groups"].count(None) == len(labels) - 3
    assert asked["method"] == "auto"
    assert run("plot", model, "topics", *options).code == 2


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="file sizes cannot be limited")
@pytest.mark.parametrize(
    "asked",
    [
        ("export", "{model}", "{out}/v.txt"),
        ("export", "{model}", "{out}/v.parquet"),
        ("plot", "{model}", "map", "--out", "{out}/m.png"),
        ("explore", "{model}", "--data", "{trips}", "--out", "{out}/m.html"),
        ("recommend", "{model}", "--data", "{trips}", "--out", "{out}/r.csv"),
        ("update", "{model}", "{trips}", "--out", "{out}/m"),
        ("datasets", "sample-trips", "--out", "{out}/t.csv"),
        ("shards", "{trips}", "--out", "{out}/store"),
    ],
    ids=" ".join,
)
def test_a_disk_that_takes_no_more_is_one_line(
    run, model: Path, trips: Path, tmp_path: Path, asked: tuple[str, ...]
) -> None:
    """The limit on the size of a file fails in the same way as a full disk, and for root too."""
    import resource

    arguments = [one.format(model=model, trips=trips, out=tmp_path) for one in asked]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        done = run(*arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert done.code == 2
    last = done.err.rstrip().rpartition("\n")[2]
    assert last.startswith(f"efemb: cannot write {tmp_path}")
    assert "File too large; nothing was replaced: free some space" in last
    assert [path for path in tmp_path.rglob("*") if "partial" in path.name] == []


def test_picture_of_neurons(run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, places = rng.normal(size=(40, 20)), rng.normal(size=(20, 2))
    estimator = efemb.GaussianEmbedding(2, context=efemb.Neighbors(4), random_state=0)
    estimator.fit(X, positions=places).save(tmp_path / "m")
    done = run("plot", tmp_path / "m", "weights", "-o", tmp_path / "w.svg")
    assert done.code == 0
    assert "<svg" in (tmp_path / "w.svg").read_text("utf-8")


@pytest.mark.slow
def test_reliability_of_a_basket_model(run, model: Path, tmp_path: Path) -> None:
    trips = efemb.simulation.simulate_baskets(
        n_rows=200, n_entities=20, n_lines=1000, n_topics=2, seed=0
    )
    efemb.BasketEmbedding(2, random_state=0, max_iter=3).fit(trips).save(tmp_path / "m")
    assert run("plot", tmp_path / "m", "reliability", "-o", tmp_path / "r.svg").code == 0
    assert "<svg" in (tmp_path / "r.svg").read_text("utf-8")
    refused = run("plot", model, "reliability", "-o", tmp_path / "r.svg")
    assert refused.code == 2
    assert "BasketEmbedding" in refused.err


def test_neurons_that_are_asked_for(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, places = rng.normal(size=(40, 20)), rng.normal(size=(20, 2))
    data = efemb.Dataset(X, entities=[f"cell {n}" for n in range(20)], positions=places)
    estimator = efemb.GaussianEmbedding(2, context=efemb.Neighbors(4), random_state=0)
    estimator.fit(data).save(tmp_path / "m")
    drawn: list[Any] = []
    monkeypatch.setattr("efemb.cli.plot.write_picture", lambda ax, *_: drawn.append(ax))
    for asked, shown in ((["--item", "cell 7"], ["A: cell 7"]), (["-n", "2"], ["A: ", "B: "])):
        out = tmp_path / "w.svg"
        assert run("plot", tmp_path / "m", "weights", *asked, "-o", out).code == 0
        *panels, _ = drawn.pop().child_axes  # the last is the key of the colors
        titles = [panel.texts[0].get_text() for panel in panels]
        assert [one[: len(two)] for one, two in zip(titles, shown, strict=True)] == shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mapp"], "did you mean 'map'"),
        (["map", "-o", "map.gif"], ".png, .svg, .pdf"),
        (["relations"], "--item"),
        (["relations", "--item", "lantren"], "lantern"),
        (["history", "--item", "chips"], "--item applies to map, relations, similarity, weights"),
        (["history", "--n", "3"], "--n applies to map, relations, similarity, topics"),
        (["topics", "--item", "chips"], "--item applies to map, relations, similarity, weights"),
    ],
)
def test_plot_refuses(run, model: Path, tmp_path, monkeypatch, arguments, words: str) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("plot", model, *arguments)
    assert done.code == 2
    assert words in done.err
    assert list(tmp_path.iterdir()) == []


def test_word2vec(run, model: Path, tmp_path: Path) -> None:
    expected = efemb.load(model).vectors()
    for name in ("v.txt", "v.bin", "v.vec.gz"):
        done = run("export", model, tmp_path / name, "--json")
        assert json.loads(done.out)["vectors"] == 10
        found = read_word2vec(tmp_path / name)
        assert found.vocabulary.labels[3] == "white_metal_lantern"
        np.testing.assert_allclose(found.vectors, expected.vectors, rtol=1e-6)
    run("export", model, tmp_path / "w.txt", "--space", "~")
    assert "white~metal~lantern" in read_word2vec(tmp_path / "w.txt").vocabulary


def test_table(run, model: Path, tmp_path: Path) -> None:
    done = run("export", model, tmp_path / "v.csv", "--which", "alpha")
    assert "10 vectors with 2 components" in done.out
    rows = list(csv.reader((tmp_path / "v.csv").read_text("utf-8").splitlines()))
    assert rows[0] == ["label", "0", "1"]
    alpha = efemb.load(model).vectors("alpha").vectors
    np.testing.assert_array_equal(np.array([row[1:] for row in rows[1:]], float), alpha)


def test_projector(run, model: Path, tmp_path: Path) -> None:
    assert run("export", model, tmp_path / "p", "--format", "projector").code == 0
    assert {one.name for one in (tmp_path / "p").iterdir()} == {"vectors.tsv", "metadata.tsv"}


def test_export_refuses(run, model: Path, tmp_path: Path, blocked: Path) -> None:
    for out in (blocked / "v.csv", blocked / "v.txt", tmp_path):
        done = run("export", model, out)
        assert (done.code, done.out) == (2, "")
    assert "table" in run("export", model, tmp_path / "v.csv", "--format", "tabel").err
    assert run("export", tmp_path / "nowhere", tmp_path / "v.csv").code == 2
    for name in ("v.xlsx", "v.json", "v.gz", "vectors"):
        done = run("export", model, tmp_path / name)
        assert (done.code, done.out) == (2, "")
        assert "--format word2vec, table, projector" in done.err
        assert not (tmp_path / name).exists()
    assert run("export", model, tmp_path / "vectors", "--format", "word2vec").code == 0


def test_info(run, model: Path) -> None:
    told = json.loads(run("info", model, "--json").out)
    assert (told["model"], told["entities"], told["components"]) == ("PoissonEmbedding", 10, 2)
    assert told["labels"][0] == "rye bread"  # the most frequent
    shown = run("info", model).out
    assert "rye bread" in shown
    assert "Basket()" in shown


def test_maps_by_other_methods(run, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "map.png"
    assert run("plot", model, "map", "--method", "tsne", "--out", out, "--dpi", "50").code == 0
    assert out.stat().st_size > 1000
    wrong = run("plot", model, "map", "--method", "tsn", "--out", out)
    assert wrong.code == 2
    assert "tsne" in wrong.err
    wrong = run("plot", model, "topics", "--method", "tsne", "--out", out)
    assert (wrong.code, "applies to map" in wrong.err) == (2, True)


def test_relations_are_checked_against_data(run, model: Path, trips: Path, tmp_path: Path) -> None:
    out = tmp_path / "relations.svg"
    done = run("plot", model, "relations", "--item", "chips", "--data", trips, "--out", out)
    assert done.code == 0
    assert out.stat().st_size > 1000
    wrong = run("plot", model, "map", "--data", trips, "--out", out)
    assert (wrong.code, "applies to relations" in wrong.err) == (2, True)


@pytest.mark.slow
def test_signs_without_a_picture_are_one_remark(run, tmp_path: Path) -> None:
    labels = ["日本茶", "tea", "coffee", "milk"]
    data = efemb.simulation.simulate("p-emb", n_rows=50, n_entities=4, n_components=2, seed=0).data
    data = efemb.Dataset(data.values, entities=labels)
    efemb.PoissonEmbedding(2, random_state=0).fit(data).save(tmp_path / "model")
    for kind in ("map", "similarity"):
        done = run("plot", tmp_path / "model", kind, "--out", tmp_path / "x.png", "--dpi", "50")
        assert done.code == 0
        assert done.err in ("", FONT)  # some machines have such a font


@pytest.mark.slow
def test_relations_are_checked_against_columns_of_any_name(
    run, model: Path, trips: Path, tmp_path: Path
) -> None:
    head, lines = trips.read_text("utf-8").split("\n", 1)
    assert head == "InvoiceNo,Description,Quantity"
    data, out = tmp_path / "trips.csv", tmp_path / "relations.png"
    data.write_text(f"who,what,how many\n{lines}é,chips,1\n", "cp1252")
    asked = ("plot", model, "relations", "--item", "chips", "--data", data, "-o", out)
    asked += ("--dpi", "30", "--encoding", "cp1252")
    wrong = run(*asked)
    assert (wrong.code, "--basket and --item-column" in wrong.err) == (2, True)
    told = ("--basket", "who", "--item-column", "what", "--count", "how many")
    assert run(*asked, *told).code == 0
    assert out.stat().st_size > 1000
    wrong = run("plot", model, "map", "--item-column", "what", "-o", out)
    assert (wrong.code, "--item-column applies to relations" in wrong.err) == (2, True)
