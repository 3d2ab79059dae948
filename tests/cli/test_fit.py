"""`efemb fit`: guesses and says them, saves, scores; bad input stops it before the work."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import efemb
from efemb.engine.progress import ProgressBar

QUICK = ("--max-iter", "3", "--jobs", "1")


def test_guesses_are_said(run, trips: Path, tmp_path: Path) -> None:
    done = run("fit", trips, "-o", tmp_path / "m", *QUICK)
    assert done.code == 0
    assert "baskets in 'InvoiceNo', items in 'Description', counts in 'Quantity'" in done.err
    for part in (
        "model: basket",
        "family: ",
        "customers: not used",
        "components: 2",
        "x 10 items",
        "dropped 1 of",
        "is not positive",
    ):
        assert part in done.err
    assert "basket with 2 components" in done.out
    assert "without context" in done.out
    assert efemb.load(tmp_path / "m").fitted().n_entities == 10


def test_json_is_one_document(run, trips: Path, tmp_path: Path) -> None:
    done = run("fit", trips, "-o", tmp_path / "m", *QUICK, "-k", "3", "--json", "--quiet")
    told = json.loads(done.out)
    assert told["model"] == "basket"
    assert told["components"] == 3
    assert told["score"] < 0
    assert told["popularity"] < 0
    assert Path(told["saved"]) == tmp_path / "m"
    assert done.err == ""


def test_one_long_document_is_held_out_in_stretches(run, text: Path, tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text(" ".join(text.read_text("utf-8").split()), "utf-8")
    done = run("fit", path, "-o", tmp_path / "m", *QUICK, "--test", "0.1")
    assert done.code == 0
    assert "held-out score" in done.out


def test_too_few_rows_to_hold_any_out_are_said(run, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(12, 4)))
    done = run("fit", tmp_path / "x.npy", "-o", tmp_path / "m", *QUICK, "-k", "2")
    assert "12 rows are too few to hold out 0.05 of them" in done.err
    assert "held-out" not in done.out


def test_told_columns_are_used(run, tmp_path: Path) -> None:
    lines = [f"{t},w{w},{(t + w) % 3 + 1},9" for t in range(60) for w in (t % 6, (t + 1) % 6)]
    path = tmp_path / "odd.csv"
    path.write_text("\n".join(["a,b,c,quantity", *lines]))
    assert run("fit", path, "-o", tmp_path / "m").code == 2
    columns = ("--basket", "a", "--item", "b", "--count", "c")
    done = run("fit", path, "-o", tmp_path / "m", *columns, *QUICK, "--test", "0")
    assert done.code == 0
    assert "counts in 'c'" in done.err
    assert "held-out" not in done.out
    each = run("fit", path, "-o", tmp_path / "m", *columns[:4], "--count", "none", *QUICK)
    assert "each line counts 1" in each.err
    assert "family: bernoulli (0/1 data)" in each.err
    fitted = run("fit", path, "-o", tmp_path / "m", *columns, "--model", "p-emb", *QUICK)
    assert fitted.code == 0  # models of either kind replace those of the other
    assert run("fit", path, "-o", tmp_path / "m", *columns, *QUICK).code == 0
    assert isinstance(efemb.load(tmp_path / "m"), efemb.BasketEmbedding)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("p-emb", "PoissonEmbedding"),
        ("P-EMB (dw)", "PoissonEmbedding"),
        ("ap-emb", "AdditivePoissonEmbedding"),
        ("b-emb", "BernoulliEmbedding"),
        ("Categorical", "CategoricalEmbedding"),
    ],
)
def test_names_of_the_paper(run, trips: Path, tmp_path: Path, name: str, model: str) -> None:
    done = run("fit", trips, "-o", tmp_path / "m", "--model", name, "-q", "--test", "0", *QUICK)
    assert done.code == 0
    found = efemb.load(tmp_path / "m")
    assert found.model == model
    assert ("0.1" in repr(found.spec.zeros)) == ("dw" in name)


@pytest.mark.parametrize("name", ["b-emb", "cbow", "skipgram", "Poisson-Text"])
def test_text(run, text: Path, tmp_path: Path, name: str) -> None:
    options = ("--model", name, "--window", "2", "-k", "2", "--max-iter", "1", "--jobs", "1")
    done = run("fit", text, "-o", tmp_path / "m", *options)
    assert done.code == 0
    assert "60 documents, 720 words" in done.err
    assert efemb.load(tmp_path / "m").spec.context.size == 2


def test_texts_of_several_files_in_lower_case(run, text: Path, trips: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.txt"
    more.write_text(text.read_text("utf-8").upper(), "utf-8")
    place = ("-o", tmp_path / "m", "-k", "2", *QUICK)
    done = run("fit", text, more, "--lower", *place)
    assert (done.code, "120 documents" in done.err) == (0, True)
    assert f"{text.name} (first of 2 files): text" in done.err
    assert set(efemb.load(tmp_path / "m").vocabulary) == set(text.read_text("utf-8").split())
    assert run("evaluate", tmp_path / "m", more).code == 2  # no word is known
    assert run("evaluate", tmp_path / "m", more, "--lower").code == 0
    assert "--lower applies to text" in run("fit", trips, "--lower", *place).err


def test_a_text_of_a_few_lines_is_fitted_without_a_score(run, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("the cat sat on the mat\n" * 3, "utf-8")
    place = ("-o", tmp_path / "m", "-k", "1", "--min-count", "1", *QUICK)
    done = run("fit", tmp_path / "t.txt", *place)
    assert (done.code, "too short to hold out 0.05 of it: no score" in done.err) == (0, True)


def test_arrays(run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "act.npy", rng.normal(size=(50, 12)))
    np.save(tmp_path / "xyz.npy", rng.normal(size=(12, 3)))
    place = ("--positions", tmp_path / "xyz.npy", "--neighbors", "4")
    done = run("fit", tmp_path / "act.npy", *place, "-o", tmp_path / "m", *QUICK)
    assert done.code == 0
    assert "model: g-emb" in done.err
    assert "50 rows x 12 columns" in done.err
    assert efemb.load(tmp_path / "m").spec.context.k == 4


def test_neurons_in_rows_are_transposed(run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, places = rng.normal(size=(40, 8)), rng.normal(size=(8, 2))
    np.save(tmp_path / "frames.npy", X)
    np.save(tmp_path / "neurons.npy", X.T)
    lines = [",".join([f"cell {n}", *map(str, X[:, n])]) for n in range(8)]
    header = ",".join(["cell", *(f"t{t}" for t in range(40))])
    (tmp_path / "neurons.csv").write_text("\n".join([header, *lines]), "utf-8")
    np.save(tmp_path / "xyz.npy", places)
    place = ("--positions", tmp_path / "xyz.npy", "-k", "2", "-o", tmp_path / "m")
    done = run("fit", tmp_path / "neurons.npy", *place)
    assert (done.code, "transposed? Then pass values.T (--transpose)" in done.err) == (2, True)
    assert run("fit", tmp_path / "frames.npy", *place).code == 0
    wanted = efemb.load(tmp_path / "m")
    for name, labels in {
        "neurons.npy": None,
        "neurons.csv": [f"cell {n}" for n in range(8)],
    }.items():
        assert run("fit", tmp_path / name, "--transpose", *place).code == 0
        model = efemb.load(tmp_path / "m")
        assert_array_equal(model.parameters.rho, wanted.parameters.rho)
        assert (None if model.vocabulary is None else list(model.vocabulary)) == labels
        assert run("evaluate", tmp_path / "m", tmp_path / name, "--transpose").code == 0
        if labels is None:
            asked = run("evaluate", tmp_path / "m", tmp_path / name)
            assert asked.code == 2
            assert "transposed? Then pass values.T (--transpose)" in asked.err
    (tmp_path / "text.txt").write_text("to be or not to be\n" * 9, "utf-8")
    assert "--transpose applies to an array" in run("fit", tmp_path / "text.txt", "--transpose").err


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (["--positions", "XYZ"], "the columns have positions"),
        (["--neighbors", "4"], "--neighbors is set"),
    ],
)
def test_raw_fluorescence_is_no_basket(run, tmp_path: Path, option: list[str], why: str) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "act.npy", rng.poisson(9, size=(50, 12)).astype(np.uint8))
    np.save(tmp_path / "xyz.npy", rng.normal(size=(12, 3)))
    told = [tmp_path / "xyz.npy" if one == "XYZ" else one for one in option]
    done = run("fit", tmp_path / "act.npy", *told, "-o", tmp_path / "m", *QUICK)
    assert done.code == 0
    assert f"model: g-emb, since {why}" in done.err
    assert isinstance(efemb.load(tmp_path / "m").spec.context, efemb.Neighbors)


def test_a_limit_that_was_reached_is_told_with_its_option(run, trips: Path, tmp_path: Path) -> None:
    few = ("-k", "2", "--max-iter", "1", "--jobs", "1", "--model", "p-emb")
    done = run("fit", trips, "-o", tmp_path / "m", *few)
    assert "still improving after max_iter=1 iterations" in done.err
    assert "raise --max-iter" in done.err


def test_columns_without_any_value_are_dropped(run, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(50, 12))
    X[:, [3, 11]] = np.nan
    np.save(tmp_path / "act.npy", X)
    np.save(tmp_path / "turned.npy", X.T)
    np.save(tmp_path / "xy.npy", np.random.default_rng(1).normal(size=(12, 2)))
    options = ("--positions", tmp_path / "xy.npy", "--neighbors", "4", "-o", tmp_path / "m", *QUICK)
    assert run("fit", tmp_path / "act.npy", *options, "--strict").code == 2
    done = run("fit", tmp_path / "act.npy", *options)
    assert (done.code, "dropped 2 columns without any value: 3, 11\n" in done.err) == (0, True)
    known = [n for n in range(12) if n not in (3, 11)]
    assert list(efemb.load(tmp_path / "m").vocabulary) == known
    seen = efemb.Dataset(X[:, known], entities=known)
    expected = efemb.evaluation.leave_one_out(efemb.load(tmp_path / "m"), seen).summary()
    done = run("evaluate", tmp_path / "m", tmp_path / "act.npy", "--json")
    assert [row["score"] for row in json.loads(done.out)] == pytest.approx(expected["score"])
    done = run("evaluate", tmp_path / "m", tmp_path / "turned.npy")
    assert (done.code, "the data have 50 entities, the model has 10" in done.err) == (2, True)


@pytest.mark.slow
def test_dead_neurons_are_told(run, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(50, 12))
    X[:, [3, 7]] = 2.5
    np.save(tmp_path / "act.npy", X)
    done = run("fit", tmp_path / "act.npy", "--neighbors", "4", "-o", tmp_path / "m", *QUICK)
    assert "2 of 12 items never vary in the training rows" in done.err
    assert ": 3, 7\n" in done.err
    asked = run("similar", tmp_path / "m", "3", "1")
    assert asked.code == 0
    assert "3 never varied in the training data: its vector is zero\n" in asked.err


def test_a_pivot_table(run, tmp_path: Path) -> None:
    X = np.random.default_rng(0).poisson(1, size=(60, 6))
    rows = [f"t{t}," + ",".join(map(str, row)) for t, row in enumerate(X)]
    (tmp_path / "p.csv").write_text("\n".join(["trip,a,b,c,d,e,f", *rows]), "utf-8")
    done = run("fit", tmp_path / "p.csv", "-o", tmp_path / "m", *QUICK)
    assert "p.csv: a matrix; rows named by 'trip'" in done.err
    assert "60 rows x 6 columns" in done.err
    assert list(efemb.load(tmp_path / "m").vocabulary) == list("abcdef")


def press_ctrl_c(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.usefixtures("ctrl_c_works")
def test_ctrl_c_leaves_a_model_and_says_so(run, trips: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(ProgressBar, "__call__", press_ctrl_c)
    few = ("-k", "2", "--jobs", "1", "--model", "p-emb")
    done = run("fit", trips, "-o", tmp_path / "m", *few)
    assert done.code == 0
    assert "interrupted in pass 1: saving the best vectors so far" in done.err
    assert efemb.load(tmp_path / "m").n_components == 2


def test_other_encodings(run, trips: Path, tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes(trips.read_text("utf-8").replace("chips", "crème").encode("cp1252"))
    refused = run("fit", path, "-o", tmp_path / "m")
    assert refused.code == 2
    assert "--encoding cp1252" in refused.err
    assert run("fit", path, "-o", tmp_path / "m", "--encoding", "cp1252", *QUICK).code == 0
    assert "crème" in efemb.load(tmp_path / "m").vocabulary_


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuch.csv"], "no file"),
        (["TRIPS", "--basket", "Invoice"], "did you mean 'InvoiceNo'"),
        (["TRIPS", "--model", "p-emd"], "did you mean 'p-emb'"),
        (["TRIPS", "--model", "p-emb", "--window", "3"], "--window applies to text"),
        (["TRIPS", "--window", "3"], "--window applies to text"),
        (["TRIPS", "--model", "p-emb", "--neighbors", "3"], "g-emb"),
        (["TRIPS", "--model", "p-emb", "--positions", "xyz.npy"], "--positions applies to g-emb"),
        (["TRIPS", "--positions", "xyz.npy"], "--positions applies to an array"),
        (["TEXT", "--model", "p-emb"], "not a model of text"),
        (["TEXT", "--count", "Quantity"], "no column"),
        (["TRIPS", "--strict"], "without --strict"),
        (["TRIPS", "--price", "Quantity"], "--price needs --week"),
        (["TRIPS", "--row", "Customer"], "no column 'Customer'"),
        (["TEXT", "--row", "home"], "apply to a table of transactions"),
    ],
)
def test_bad_input(run, trips: Path, text: Path, tmp_path: Path, arguments, words: str) -> None:
    files = {"TRIPS": trips, "TEXT": text}
    done = run("fit", *[files.get(one, one) for one in arguments], "-o", tmp_path / "m")
    assert done.code == 2
    last = done.err.splitlines()[-1]
    assert last.startswith("efemb: ")
    assert words in last
    assert not (tmp_path / "m").exists()


def test_output_is_checked_first(run, blocked: Path, tmp_path: Path) -> None:
    done = run("fit", "nosuch.csv", "--out", blocked / "m")
    assert done.code == 2
    assert "cannot write" in done.err
    foreign = tmp_path / "holiday"
    foreign.mkdir()
    (foreign / "photo.jpg").touch()
    done = run("fit", "nosuch.csv", "--out", foreign)
    assert done.code == 2
    assert "photo.jpg" in done.err
    assert (foreign / "photo.jpg").exists()


@pytest.mark.slow
def test_layouts_and_headers(run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [" ".join(map(str, rng.permutation(12)[: rng.integers(2, 7)])) for _ in range(80)]
    (tmp_path / "retail.dat").write_text("\n".join(lines))
    done = run("fit", tmp_path / "retail.dat", "--out", tmp_path / "m", "--max-iter", "2")
    assert "each line is a basket" in done.err
    pairs = [f"{t}\t{n}\t{rng.integers(1, 5)}" for t in range(60) for n in rng.permutation(9)[:4]]
    (tmp_path / "u.data").write_text("\n".join(pairs))
    unsure = run("fit", tmp_path / "u.data", "--out", tmp_path / "m")
    assert unsure.code == 2
    assert "--layout" in unsure.err
    assert "--header" in unsure.err
    named = ("--header", "user,item,rating", "--max-iter", "2")
    done = run("fit", tmp_path / "u.data", "--out", tmp_path / "m", *named)
    assert "baskets in 'user', items in 'item', counts in 'rating'" in done.err
    clash = run("fit", tmp_path / "u.data", "--layout", "lines", "--item", "x")
    assert clash.code == 2
    assert "has no columns" in clash.err


def test_an_option_that_is_passed_twice(run, trips: Path, tmp_path: Path) -> None:
    twice = run("fit", trips, "--item", "a", "--item", "b", "--out", tmp_path / "m")
    assert (twice.code, twice.err) == (
        2,
        "efemb: --item was passed twice, but it takes a single value\n",
    )


def test_real_numbers_have_errors_on_the_same_footing(run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    activity = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 12))
    X = 10.0 * (activity + 0.3 * rng.normal(size=(300, 12))) + 50.0
    np.save(tmp_path / "x.npy", X)
    done = run("fit", tmp_path / "x.npy", "-o", tmp_path / "m", "--jobs", "1")
    assert "chosen by the data: prior Normal(" in done.err
    assert "held-out log-density" in done.out
    assert "held-out squared error" in done.out
    assert "R^2 0.9" in done.out
    told = json.loads(
        run("fit", tmp_path / "x.npy", "-o", tmp_path / "m", "--jobs", "1", "--json", "-q").out
    )
    train, test = efemb.Dataset(X).split(test=0.05, seed=0)
    plain = train.values.mean(axis=0)
    gap, variance = test.values - plain, train.values.var(axis=0).mean()
    density = -0.5 * gap**2 / variance - 0.5 * np.log(2 * np.pi * variance)
    assert told["popularity"] == pytest.approx(density.mean(), rel=1e-5)
    assert told["squared_error_without_context"] == pytest.approx((gap**2).mean(), rel=1e-5)
    model = efemb.load(tmp_path / "m")
    error = ((model.conditional(test) - test.values) ** 2).mean()
    assert told["squared_error"] == pytest.approx(error, rel=1e-5)
    assert told["r2"] == pytest.approx(1.0 - error / (gap**2).mean(), rel=1e-5)
    assert told["score"] > told["popularity"]


def test_households_weeks_and_prices(run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = ["trip,home,week,item,units,paid"]
    for trip in range(300):
        home, week = trip % 20, 1 + trip % 12
        taste = np.roll([0.5, 0.2, 0.1, 0.1, 0.05, 0.05], home)
        for item in rng.choice(6, 3, replace=False, p=taste):
            lines.append(f"{trip},h{home},{week},i{item},1,{rng.uniform(1, 2):.2f}")
    path = tmp_path / "lines.csv"
    path.write_text("\n".join(lines) + "\n")
    named = ("--basket", "trip", "--item", "item", "--count", "units")
    shop = ("--row", "home", "--week", "week", "--price", "paid")
    products = tmp_path / "products.csv"
    products.write_text("item,kind,all\n" + "".join(f"i{i},{'ab'[i % 2]},x\n" for i in range(6)))
    shop = (*shop, "--features", products)
    done = run("fit", path, "-o", tmp_path / "m", *named, *shop, "-k", "2", *QUICK)
    assert done.code == 0, done.err
    assert "terms: History('home'), RowVectors('home')" in done.err
    assert "items x weeks without sales" in done.err
    assert "structure: Featured(['kind']" in done.err
    model = efemb.load(tmp_path / "m")
    assert [term.label for term in model.spec.terms] == ["history of home", "home", "week", "price"]
    assert len(model.elasticity()) == 6
    scored = run("evaluate", tmp_path / "m", path, *named)
    assert scored.code == 0, scored.err
