"""`efemb evaluate` and `efemb compare` say what the library says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import efemb
from efemb.evaluation import held_out_words, leave_one_out

QUICK = ("--max-iter", "2", "--jobs", "1")


def test_evaluate_counts(run, model: Path, trips: Path) -> None:
    done = run("evaluate", model, trips, "--train", trips, "--json")
    assert done.code == 0
    found = {(row["metric"], row["by"]): row for row in json.loads(done.out)}
    fitted = efemb.load(model)
    columns = {"basket": "InvoiceNo", "item": "Description", "count": "Quantity"}
    data = efemb.read_baskets(trips, **columns, on_bad="drop", min_items_per_basket=2)
    from efemb.data import aligned

    expected = leave_one_out(fitted, aligned(data, fitted.vocabulary)).normalized_log_likelihood()
    row = found["normalized_log_likelihood", "unit"]
    assert row["score"] == pytest.approx(expected.value)
    assert row["popularity"] < row["score"]
    shown = run("evaluate", model, trips).out
    assert f"{expected.value:.4g}" in shown
    assert "nan" not in shown


def test_evaluate_leaves_out_what_the_model_does_not_know(run, model, trips, tmp_path) -> None:
    path = tmp_path / "more.csv"
    path.write_text(trips.read_text("utf-8") + "1,caviar,1\n2,caviar,2\n", "utf-8")
    done = run("evaluate", model, path, "--json")
    assert done.code == 0
    assert "dropped 1 item unknown to the model" in done.err
    strange = tmp_path / "strange.csv"
    strange.write_text("order,item\n1,a\n1,b\n")
    assert "none of the 2 entities" in run("evaluate", model, strange).err


def test_popularity_sees_what_the_model_sees(run, trips: Path, tmp_path: Path) -> None:
    """b-emb takes every count for 1: beside it, popularity does so as well."""
    ones = tmp_path / "ones.csv"
    lines = [line.rpartition(",")[0] + ",1" for line in trips.read_text("utf-8").splitlines()[1:-3]]
    ones.write_text("\n".join(["InvoiceNo,Description,Quantity", *lines]), "utf-8")
    told = {}
    for path in (trips, ones):
        folder = tmp_path / f"{path.stem}-model"
        options = ("--model", "b-emb", "-k", "2", "--json", *QUICK)
        fitted = json.loads(run("fit", path, "--out", folder, "--test", "0.2", *options).out)
        compared = json.loads(run("compare", path, "--test", "0.2", *options).out)
        judged = json.loads(run("evaluate", folder, path, "--train", path, "--json").out)
        beside = [row["popularity"] for row in judged]
        told[path.stem] = [fitted["popularity"], compared["popularity"], *beside]
    assert told["trips"] == pytest.approx(told["ones"], nan_ok=True)


def test_evaluate_arrays(run, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(40, 8))
    np.save(tmp_path / "x.npy", X)
    estimator = efemb.GaussianEmbedding(2, context=efemb.Neighbors(3), random_state=0).fit(X)
    estimator.save(tmp_path / "m")
    for protocol in ("leave-one-out", "leave-fold-out"):
        done = run("evaluate", tmp_path / "m", tmp_path / "x.npy", "--protocol", protocol, "--json")
        assert done.code == 0
        assert {"mean_squared_error", "r2"} <= {row["metric"] for row in json.loads(done.out)}
    wrong = run("evaluate", tmp_path / "m", tmp_path / "x.npy", "--protocol", "leave-two-out")
    assert wrong.code == 2
    assert "leave-one-out" in wrong.err


def test_evaluate_text(run, model: Path, text: Path, tmp_path: Path) -> None:
    corpus = efemb.read_text(text)
    fitted = efemb.BernoulliTextEmbedding(2, max_iter=1, random_state=0).fit(corpus)
    fitted.save(tmp_path / "m")
    (row,) = json.loads(run("evaluate", tmp_path / "m", text, "--json").out)
    assert row["score"] == pytest.approx(held_out_words(fitted, corpus).log_likelihood)
    assert "is text" in run("evaluate", model, text).err
    for option in (
        ("--train", text),
        ("--protocol", "leave-fold-out"),
        ("--basket", "a"),
        ("--positions", "xyz.npy"),
    ):
        done = run("evaluate", tmp_path / "m", text, *option)
        assert done.code == 2, option
        assert option[0] in done.err


def test_compare(run, trips: Path, tmp_path: Path) -> None:
    curve = tmp_path / "curve.png"
    models = ("--model", "p-emb", "--model", "P-EMB (dw)", "-k", "1", "-k", "2")
    done = run("compare", trips, *models, *QUICK, "--curve", curve, "--json")
    assert done.code == 0
    told = json.loads(done.out)
    assert [(one["model"], one["n_components"]) for one in told["models"]] == [
        ("p-emb", 1),
        ("p-emb", 2),
        ("p-emb-dw", 1),
        ("p-emb-dw", 2),
    ]
    assert told["popularity"] < 0
    assert curve.read_bytes().startswith(b"\x89PNG")
    shown = run("compare", trips, "-k", "1", *QUICK, "-q")
    assert shown.out.splitlines()[0].split()[:3] == ["model", "components", "score"]
    assert "without context" in shown.out
    assert shown.err == ""


def test_compare_refuses(run, trips: Path, text: Path, blocked: Path) -> None:
    assert "efemb evaluate" in run("compare", text).err
    assert "unknown model" in run("compare", trips, "--model", "q-emb").err
    assert "leaves no row" in run("compare", trips, "--test", "0.0001").err
    curve = run("compare", "nosuch.csv", "--curve", blocked / "curve.png")
    assert curve.code == 2
    assert "cannot write" in curve.err


def test_models_of_other_values_are_refused_before_the_fits(run, trips: Path) -> None:
    done = run("compare", trips, "--model", "p-emb", "--model", "b-emb", "-k", "2")
    assert done.code == 2
    assert "b-emb treats every count as 1" in done.err
    assert "p-emb" in done.err


# -- beside a model that knows no context -------------------------------------------------------


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    """An array of counts, which any of the models takes."""
    np.save(tmp_path / "counts.npy", np.random.default_rng(0).poisson(1.5, (80, 6)).astype(float))
    return tmp_path / "counts.npy"


def parts(path: Path, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and rows that are held out."""
    train, held = efemb.Dataset(np.load(path)).split(test=share, seed=0)
    return np.asarray(train.values), np.asarray(held.values)


def share_of_units(train: np.ndarray, held: np.ndarray) -> float:
    """Mean log-share of a held-out unit, by the means of the columns."""
    log_share = np.log(train.mean(axis=0) / train.mean(axis=0).sum())
    return float((held * log_share).sum() / held.sum())


def test_fit_is_beside_a_rival_of_the_same_measure(run, counts: Path, tmp_path: Path) -> None:
    from scipy.stats import norm

    train, held = parts(counts, 0.2)
    spread = np.sqrt(((train - train.mean(axis=0)) ** 2).mean())  # one variance, as the model has
    density = norm.logpdf(held, train.mean(axis=0), spread).mean()
    binary = share_of_units((train > 0).astype(float), (held > 0).astype(float))
    wanted = {"p-emb": share_of_units(train, held), "b-emb": binary, "g-emb": density}
    for name, value in wanted.items():
        out = ("-o", tmp_path / "m", "-k", "2", "--test", "0.2", "--json")
        told = json.loads(run("fit", counts, "--model", name, *out, *QUICK).out)
        assert told["popularity"] == pytest.approx(value, rel=1e-5), name


def test_compare_is_beside_a_rival_of_the_same_measure(run, counts: Path) -> None:
    train, held = parts(counts, 0.2)
    squared = ((held - train.mean(axis=0)) ** 2).mean()
    binary = share_of_units((train > 0).astype(float), (held > 0).astype(float))
    measures = {
        "b-emb": (binary, "normalized_log_likelihood", "higher is better"),
        "g-emb": (squared, "mean_squared_error", "squared error per entry; lower is better"),
    }
    for name, (value, metric, words) in measures.items():
        options = ("--model", name, "-k", "2", "--test", "0.2", *QUICK)
        told = json.loads(run("compare", counts, *options, "--json").out)
        assert told["popularity"] == pytest.approx(value, rel=1e-5), name
        assert told["metric"] == metric
        assert words in run("compare", counts, *options).out


def test_compare_refuses_scores_of_two_kinds_before_the_fits(run, counts: Path) -> None:
    done = run("compare", counts, "--model", "g-emb", "--model", "p-emb", "-k", "2", *QUICK)
    assert done.code == 2
    assert "g-emb and p-emb have different metrics" in done.err.splitlines()[-1]


def test_evaluate_is_beside_a_rival_of_the_same_measure(run, counts: Path, tmp_path: Path) -> None:
    X = np.load(counts)
    efemb.GaussianEmbedding(2, context=efemb.Neighbors(3), random_state=0).fit(X).save(
        tmp_path / "m"
    )
    done = run("evaluate", tmp_path / "m", counts, "--train", counts, "--json")
    found = {(row["metric"], row["by"]): row["popularity"] for row in json.loads(done.out)}
    assert found["mean_squared_error", "entry"] == pytest.approx(X.var(axis=0).mean(), rel=1e-5)


@pytest.mark.slow
def test_kilograms_beside_pieces(run, trips: Path, tmp_path: Path) -> None:
    lines = trips.read_text("utf-8").splitlines()
    weighed = [line.removesuffix(",1") + (",0.5" if line.endswith(",1") else "") for line in lines]
    path = tmp_path / "weighed.csv"
    path.write_text("\n".join(weighed) + "\n", "utf-8")
    fitted = run("fit", path, "-o", tmp_path / "m", "-k", "2", "--test", "0.2", "--json", *QUICK)
    assert "model: basket, since the data are transactions" in fitted.err
    told = json.loads(fitted.out)
    assert told["score"] > told["popularity"] - 0.5
    judged = run("evaluate", tmp_path / "m", path, "--train", path, "--json")
    assert all(np.isfinite(row["popularity"] or 0) for row in json.loads(judged.out))
    compared = run("compare", path, "-k", "1", "--model", "p-emb", "--model", "ap-emb", *QUICK)
    assert compared.code == 0, compared.err
    assert run("complements", tmp_path / "m", "chips", "--data", path).code == 0


def test_positions_beside_a_model_without_neighbors(run: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).poisson(5, (40, 4)))
    np.save(tmp_path / "p.npy", np.random.default_rng(0).normal(size=(4, 2)))
    told = ("compare", tmp_path / "x.npy", "--model", "p-emb", "-k", "1", "--positions")
    found = run(*told, tmp_path / "p.npy")
    assert found.code == 2
    assert "--positions applies to" in found.err


def test_a_model_no_better_than_popularity_is_called_so(run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "noise.csv"
    lines = [f"{t},item {n}" for t in range(200) for n in np.flatnonzero(rng.random(12) < 0.3)]
    path.write_text("\n".join(["order,item", *lines]), "utf-8")
    options = ("-k", "8", "--max-iter", "300", "--jobs", "1", "-q")
    named = ("--model", "b-emb")
    fitted = run("fit", path, "--out", tmp_path / "m", "--test", "0.3", *named, *options)
    assert fitted.code == 0
    compared = run("compare", path, "--test", "0.3", *options)
    for done in (fitted, compared):
        assert "no better than one without context" in done.out


def test_text_is_judged_beside_the_frequencies_of_words(run, text: Path, tmp_path: Path) -> None:
    options = ("--test", "0.3", "-k", "8", "--max-iter", "60", "--jobs", "1", "-q")
    noise = run("fit", text, "-o", tmp_path / "noise", "--model", "cbow", *options)
    assert "(without context -2." in noise.out
    assert "no better than one without context" in noise.out
    ordered = tmp_path / "ordered.txt"
    ordered.write_text("\n".join(["one two three four five six seven eight"] * 60), "utf-8")
    learned = run("fit", ordered, "-o", tmp_path / "m", "--model", "cbow", *options)
    assert learned.code == 0
    assert "(without context -2.0794)" in learned.out  # log(1/8)
    assert "no better" not in learned.out
    judged = run("evaluate", tmp_path / "noise", text)
    assert judged.code == 0
    (row,) = json.loads(run("evaluate", tmp_path / "m", ordered, "--json").out)
    assert row["popularity"] == pytest.approx(np.log(1 / 8))
    assert row["difference"] == pytest.approx(row["score"] - row["popularity"])
    assert row["difference"] > 3 * row["difference_error"]
