"""Questions to a saved model: answers as tables and JSON, labels as people type them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import efemb

ASKED = {
    "similar": ["chips"],
    "complements": ["chips"],
    "substitutes": ["chips", "--apart"],
    "topics": [],
    "predict": ["chips=2", "salsa"],
}


@pytest.mark.parametrize("command", ASKED)
def test_json_is_what_the_library_says(run, model: Path, command: str) -> None:
    done = run(command, model, *ASKED[command], "-n", "3", "--json")
    fitted = efemb.load(model)
    expected = {
        "similar": lambda: fitted.similar("chips", 3),
        "complements": lambda: fitted.complements("chips", 3),
        "substitutes": lambda: fitted.substitutes("chips", 3, apart=True),
        "topics": lambda: fitted.topics(3),
        "predict": lambda: fitted.predict({"chips": 2.0, "salsa": 1.0}, 3),
    }[command]()
    assert done.code == 0
    assert done.err == ""
    assert json.loads(done.out) == list(expected)


@pytest.mark.parametrize("command", ASKED)
def test_tables_are_whole(run, model: Path, command: str) -> None:
    done = run(command, model, *ASKED[command], "-n", "1000000")
    assert done.code == 0
    assert "more rows" not in done.out
    assert done.out.splitlines()[0].split()[0] in ("label", "topic")


def test_more_than_forty_rows_are_shown(run, model: Path) -> None:
    items = ("chips", "salsa", "whole milk", "rye bread", "greek yogurt")
    assert len(run("similar", model, *items, "-n", "9").out.splitlines()) == 46


def test_parts_of_labels(run, model: Path) -> None:
    done = run("similar", model, "GREEK", "-n", "2")
    assert done.err.splitlines()[0] == "GREEK: greek yogurt"
    assert done.out == run("similar", model, "greek yogurt", "-n", "2").out
    assert run("similar", model, "metal lan").code == 0


def test_several_items(run, model: Path) -> None:
    rows = json.loads(run("similar", model, "chips", "salsa", "-n", "2", "--json").out)
    assert [row["query"] for row in rows] == ["chips", "chips", "salsa", "salsa"]


def test_new_items_only(run, model: Path) -> None:
    rows = json.loads(run("predict", model, "chips", "salsa", "--new", "-n", "20", "--json").out)
    assert len(rows) == 8
    assert not {"chips", "salsa"} & {row["label"] for row in rows}


def test_a_label_may_hold_an_equals_sign(run, model: Path) -> None:
    amounts = run("predict", model, "E=mc2 mug=3", "--json").out
    assert json.loads(amounts) == list(efemb.load(model).predict({"E=mc2 mug": 3.0}))
    assert run("predict", model, "E=mc2 mug", "--json").code == 0


@pytest.fixture(scope="module")
def signs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with labels that contain equals signs."""
    folder = tmp_path_factory.mktemp("signs") / "model"
    items = ["milk", "milk=2", "=SUM", "=7", "a=1 mug", "apple", "tea", "tea=3 bags"]
    X = np.random.default_rng(0).poisson(1, size=(40, len(items)))
    data = efemb.Dataset(X, entities=items)
    efemb.PoissonEmbedding(2, random_state=0).fit(data).save(folder)
    return folder


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("milk=2", {"milk=2": 1.0}),  # the label itself
        ("milk=3", {"milk": 3.0}),
        ("milk=2=3", {"milk=2": 3.0}),
        ("=SUM", {"=SUM": 1.0}),
        ("=SUM=4", {"=SUM": 4.0}),
        ("=su", {"=SUM": 1.0}),
        ("=7", {"=7": 1.0}),
        ("tea=3", {"tea": 3.0}),  # tea is a whole label, tea=3 only part of one
        ("tea=3 b", {"tea=3 bags": 1.0}),
    ],
)
def test_a_label_comes_before_an_amount(run, signs: Path, typed: str, meant: dict) -> None:
    done = run("predict", signs, typed, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out) == list(efemb.load(signs).predict(meant))


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("a=1", "may be part of a label, or 1 of 'a'; write the whole label"),
        ("=9", "'=9'"),
        ("=", "ambiguous"),
        ("beer=2", "'beer=2'"),
        ("tea=x", "must be a number"),
    ],
)
def test_neither_a_label_nor_an_amount(run, signs: Path, typed: str, words: str) -> None:
    done = run("predict", signs, typed)
    assert done.code == 2
    assert words in done.err
    assert run("predict", signs, "milk", typed).code == 2


def test_questions_about_labels_know_no_amounts(run, signs: Path) -> None:
    rows = json.loads(run("similar", signs, "=SUM", "milk=2", "-n", "1", "--json").out)
    assert [row["query"] for row in rows] == ["=SUM", "milk=2"]
    assert "does not know 'milk=9'" in run("similar", signs, "milk", "milk=9").err


def test_explanations_add_up(run, model: Path) -> None:
    done = run("explain", model, "salsa", "chips=2", "lager", "--json")
    told = json.loads(done.out)
    assert told["item"] == "salsa"
    assert told["sum"] == pytest.approx(sum(row["contribution"] for row in told["terms"]))
    predicted = efemb.load(model).predict({"chips": 2.0, "lager beer": 1.0}, 1, where=["salsa"])
    assert told["mean"] == pytest.approx(predicted["mean"][0])
    shown = run("explain", model, "salsa", "chips=2", "lager").out
    assert "salsa: sum" in shown
    assert "(intercept)" in shown


@pytest.mark.slow
def test_counts_and_lift_come_with_data(run, model: Path, trips: Path) -> None:
    done = run("complements", model, "chips", "--data", trips, "--json")
    # Baskets of one item count; the three of nothing but dirt are reported as such.
    assert "dropped 3 baskets without a usable line\n" in done.err
    assert "fewer than 2 items" in run("fit", trips, "-o", model.parent / "other", "-k", "1").err
    rows = json.loads(done.out)
    assert {"together", "lift"} <= set(rows[0])
    assert "baskets in 'InvoiceNo'" in done.err


def test_words_keep_their_order(run, text: Path, tmp_path: Path) -> None:
    corpus = efemb.read_text(text)
    efemb.BernoulliTextEmbedding(2, max_iter=1, random_state=0).fit(corpus).save(tmp_path / "m")
    found = run("predict", tmp_path / "m", "the cat", "sat", "--json").out
    assert json.loads(found) == list(efemb.load(tmp_path / "m").predict(["the", "cat", "sat"]))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["similar", "lantren"], "'cream lantern'"),
        (["similar", "yoghurt"], "yogurt"),
        (["similar", "lantern"], "ambiguous"),
        (["similar", ""], "unknown label ''"),
        (["similar", "chips", "--which", "gamma"], "gamma"),
        (["complements", "chips", "--direction", "up"], "up"),
        (["complements", "chips", "--min-support", "2"], "data"),
        (["topics", "--topic", "7"], "7"),
        (["topics", "--rotate", "left"], "left"),
        (["predict", "chips=-1"], ">= 0"),
        (["predict", "chips=nan"], "finite"),
        (["predict", "chips=many"], "must be a number"),
        (["predict", "chips=0"], "context is empty"),
        (["explain", "chips", "chips"], "chips"),
    ],
)
def test_bad_questions(run, model: Path, arguments: list[str], words: str) -> None:
    command, *rest = arguments
    done = run(command, model, *rest)
    assert (done.code, done.out) == (2, "")
    assert words in done.err.splitlines()[-1]
    assert done.err.splitlines()[-1].startswith("efemb: ")


def test_positive_models_know_no_substitutes(run, positive_model: Path) -> None:
    done = run("substitutes", positive_model, "chips")
    assert done.code == 2
    assert "positive" in done.err


def test_no_substitutes_is_said(run, model: Path) -> None:
    done = run("substitutes", model, "chips", "--min-count", "1000")
    assert done.code == 0
    assert "(no rows)" in done.out
    assert "--apart" in done.err


def test_missing_and_foreign_folders(run, tmp_path: Path) -> None:
    for folder, word in ((tmp_path / "nowhere", "does not exist"), (tmp_path, "not a model")):
        done = run("similar", folder, "milk")
        assert done.code == 2
        assert word in done.err


@pytest.mark.parametrize("command", ASKED)
def test_filters_are_those_of_the_library(run, model: Path, command: str) -> None:
    options = ("--where", "lantern", "--exclude", "cream")
    done = run(command, model, *ASKED[command], *options, "-n", "9", "--json")
    assert done.code == 0
    found = {row["label"] for row in json.loads(done.out)}
    assert found <= {"white metal lantern"}
    assert found or command == "substitutes"


@pytest.mark.parametrize("command", ["complements", "substitutes"])
def test_an_item_bought_alone_is_evidence(run, model: Path, tmp_path: Path, command: str) -> None:
    alone = [("chips",)] * 40 + [("salsa",)] * 30
    bought = [*alone, *[("chips", "salsa")] * 3, *[("salsa", "lager beer", "unknown")] * 5]
    lines = [f"{t},{item}" for t, basket in enumerate(bought) for item in basket]
    path = tmp_path / "few.csv"
    path.write_text("\n".join(["basket,item", *lines]), "utf-8")
    more = ["--apart"] if command == "substitutes" else []
    done = run(command, model, "chips", "--data", path, "--json", *more, "--where", "a")
    assert (done.code, "single" in done.err) == (0, False)
    found = {one["label"]: one for one in json.loads(done.out)}
    with_chips = sum("chips" in basket for basket in bought)
    for item in found:
        count = sum(item in basket for basket in bought)
        together = sum({"chips", item} <= set(basket) for basket in bought)
        assert (found[item]["count"], found[item]["together"]) == (count, together)
        if count:
            lift = together * len(bought) / (count * with_chips)
            assert found[item]["lift"] == pytest.approx(lift)


def test_vectors_alone_only_suggest_substitutes(run, model: Path, trips: Path) -> None:
    alone = run("substitutes", model, "chips", "--apart")
    assert "--data FILE" in alone.err
    assert "--data FILE" not in run("substitutes", model, "chips", "--data", trips).err
