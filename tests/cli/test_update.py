"""`efemb update` and `efemb diff`: saved models, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import efemb


def test_a_model_takes_further_data(run, model: Path, trips: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.csv"
    header = "InvoiceNo,Description,Quantity\n"
    more.write_text(header + "1,chips,2\n1,caviar,1\n2,caviar,1\n2,salsa,3\n2,chips,1\n", "utf-8")
    out = tmp_path / "grown"
    done = run("update", model, more, "--out", out, "--passes", "2", "--jobs", "1")
    assert done.code == 0
    assert "1 new item;" in done.out
    before, after = efemb.load(model), efemb.load(out)
    assert set(after.vocabulary) == {*before.vocabulary, "caviar"}
    assert not np.allclose(after.parameters.rho[:10], before.parameters.rho)
    by_hand = efemb.PoissonEmbedding.from_fitted(before, random_state=0, n_jobs=1)
    columns = {"basket": "InvoiceNo", "item": "Description", "count": "Quantity"}
    data = efemb.read_baskets(more, **columns, min_items_per_basket=2)
    for _ in range(2):
        by_hand.partial_fit(data)
    assert np.array_equal(by_hand.rho_, after.parameters.rho)
    known = run("update", model, more, "--out", out, "--skip-unknown", "--json", "--jobs", "1")
    assert json.loads(known.out)["new_items"] == 0
    assert efemb.load(out).vocabulary == before.vocabulary


def test_a_model_is_replaced_by_default(run, model: Path, trips: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    efemb.load(model).save(copy)
    assert run("update", copy, trips, "--jobs", "1", "-q").code == 0
    assert not np.allclose(efemb.load(copy).parameters.rho, efemb.load(model).parameters.rho)


def test_a_model_of_households_reads_them(run, tmp_path: Path) -> None:
    """Numbers in the fit, text in the file and on the command line: the same households."""
    X = np.array([[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 2], [0, 0, 2, 1]] * 20)
    homes = efemb.Dataset(X, entities=list("abcd"), rows={"home": np.array([1, 2, 3, 4] * 20)})
    terms = [efemb.RowVectors("home", 1)]
    fitted = efemb.PoissonEmbedding(1, random_state=0, terms=terms).fit(homes).fitted()
    fitted.save(tmp_path / "m")
    told = json.loads(run("predict", tmp_path / "m", "c", "--row", "home=3", "--json").out)
    assert told == list(fitted.predict(["c"], home=3))
    assert told != list(fitted.predict(["c"]))
    (tmp_path / "more.csv").write_text("trip,home,item\n1,1,a\n1,1,b\n2,9,c\n2,9,d\n")
    done = run(
        "update", tmp_path / "m", tmp_path / "more.csv", "--basket", "trip", "--item", "item"
    )
    assert done.code == 0, done.err
    assert list(efemb.load(tmp_path / "m").rows("home").labels) == [1, 2, 3, 4, "9"]


@pytest.mark.slow
def test_models_are_compared(run, model: Path, trips: Path, tmp_path: Path) -> None:
    assert run("fit", trips, "-o", tmp_path / "b", "-k", "2", "-q", "--jobs", "1").code == 0
    done = run("diff", model, tmp_path / "b", "-n", "3")
    assert done.code == 0
    assert "items in both models" in done.out
    answer = json.loads(run("diff", model, tmp_path / "b", "-n", "3", "--json").out)
    both = efemb.compare_models(efemb.load(model), efemb.load(tmp_path / "b"), 3)
    assert [row["label"] for row in answer["neighbors"]] == both.neighbors["label"].tolist()


def test_unknown_items_can_be_skipped(run, model: Path) -> None:
    refused = run("similar", model, "chips", "caviar")
    assert refused.code == 2
    assert "--skip-unknown" in refused.err
    for command in (["similar"], ["complements"], ["substitutes", "--apart"], ["predict"]):
        done = run(*command, model, "chips", "caviar", "--skip-unknown", "--json")
        assert done.code == 0
        assert "caviar" in done.err
        assert json.loads(done.out) == json.loads(run(*command, model, "chips", "--json").out)
    assert run("similar", model, "caviar", "truffles", "--skip-unknown").code == 2
