"""Models of baskets: what `efemb fit` makes of transactions, and every question to them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import efemb


@pytest.fixture
def basket_model(run: Callable[..., Any], tmp_path: Path) -> Path:
    """A model of baskets with households, fitted by the command."""
    rng = np.random.default_rng(0)
    folder = tmp_path
    lines = ["order,house,item"]
    for order in range(160):
        house = order % 20
        items = {f"item {house % 8}", *(f"item {n}" for n in rng.permutation(12)[:3])}
        lines += [f"{order},{house},{item}" for item in sorted(items)]
    (folder / "trips.csv").write_text("\n".join(lines), "utf-8")
    columns = ("--basket", "order", "--item", "item", "--row", "house")
    options = ("-k", "2", "--max-iter", "3", "--jobs", "1", "--test", "0.1")
    done = run("fit", folder / "trips.csv", "-o", folder / "m", *columns, *options)
    assert done.code == 0, done.err
    assert "customers: house" in done.err
    return folder / "m"


@pytest.mark.slow
def test_a_column_of_customers_is_named(run: Callable[..., Any], tmp_path: Path) -> None:
    lines = [f"{i // 3},c{i // 24},item {i % 5}" for i in range(480)]
    path = tmp_path / "trips.csv"
    path.write_text("\n".join(["order,CustomerID,item", *lines]), "utf-8")
    options = ("-k", "1", "--max-iter", "2", "--jobs", "1", "--min-count", "1")
    done = run("fit", path, "-o", tmp_path / "m", *options)
    hint = "customers: not used; to learn what each of them buys: --row CustomerID"
    assert hint in done.err
    again = run("fit", path, "-o", tmp_path / "m", *options, "--row", "CustomerID")
    assert "customers: CustomerID" in again.err


def test_every_question_is_answered_by_a_model_of_baskets(
    run: Callable[..., Any], basket_model: Path, tmp_path: Path
) -> None:
    model = efemb.load(basket_model)
    items = ("item 1", "item 2")
    completed = json.loads(run("predict", basket_model, *items, "--new", "-n", "3", "--json").out)
    wanted = model.complete(dict.fromkeys(items, 1.0), 3)
    assert [row["label"] for row in completed] == list(wanted["label"])
    assert completed[0]["probability"] == pytest.approx(wanted["probability"][0])
    explained = json.loads(run("explain", basket_model, "item 5", *items, "--json").out)
    assert {row["item"] for row in explained["terms"]} == set(items)
    assert 0 < explained["probability"] < 1
    assert "item 5: probability" in run("explain", basket_model, "item 5", *items).out
    told = json.loads(run("info", basket_model, "--json").out)
    assert told["seconds_of_vectors"] >= 0
    assert "seconds" not in told, "the vectors are one part of the fit"
    assert (told["pairs"], told["history"], told["components"]) == ("dense", "house", 2)
    assert told["model"] == "BasketEmbedding"
    assert told["vectors"] in ("PoissonEmbedding", "BernoulliEmbedding")
    assert "all items -" in run("info", basket_model).out
    trips = basket_model.parent / "trips.csv"
    columns = ("--basket", "order", "--item", "item")
    judged = json.loads(run("evaluate", basket_model, trips, *columns, "--json").out)
    assert all(np.isfinite(row["score"]) for row in judged if row["score"] is not None)
    assert run("similar", basket_model, "item 1").code == 0
    assert run("predict", basket_model, "item 1").code == 0
    out = tmp_path / "next.csv"
    assert run("recommend", basket_model, "--data", trips, *columns, "-o", out).code == 0
    refused = run("update", basket_model, trips)
    assert refused.code == 2
    assert "fit it again" in refused.err


def test_a_model_of_baskets_takes_one_row_column(run: Callable[..., Any], trips: Path) -> None:
    asked = ("--model", "basket", "--row", "InvoiceNo", "--row", "Quantity")
    refused = run("fit", trips, *asked)
    assert refused.code == 2
    assert "single --row" in refused.err


def test_a_basket_is_completed_for_a_customer(
    run: Callable[..., Any], basket_model: Path, tmp_path: Path
) -> None:
    model = efemb.load(basket_model)
    asked = ("predict", basket_model, "item 1", "--new", "-n", "3", "--json")
    for house in ("3", "4"):
        rows = json.loads(run(*asked, "--row", f"house={house}").out)
        wanted = model.complete(["item 1"], 3, user=house)
        assert [row["label"] for row in rows] == list(wanted["label"])
        assert rows[0]["probability"] == pytest.approx(wanted["probability"][0])
    assert run(*asked, "--row", "house=3").out != run(*asked, "--row", "house=4").out
    refused = run(*asked, "--row", "town=Bern")
    assert (refused.code, "write --row house=VALUE" in refused.err) == (2, True)
    assert "write COLUMN=VALUE" in run(*asked, "--row", "house").err
    plain = tmp_path / "plain"
    X = np.random.default_rng(0).poisson(1.0, (60, 4))
    terms = [efemb.RowVectors("house", 1)]
    homes = efemb.Dataset(X, entities=list("abcd"), rows={"house": ["1", "2"] * 30})
    fitted = efemb.PoissonEmbedding(1, random_state=0, terms=terms).fit(homes)
    fitted.save(plain)
    rows = json.loads(run("predict", plain, "a", "--row", "house=2", "--json").out)
    assert [row["label"] for row in rows] == list(fitted.predict(["a"], house="2")["label"])
    assert "predict() has no parameter 'town'" in run("predict", plain, "a", "--row", "town=2").err
