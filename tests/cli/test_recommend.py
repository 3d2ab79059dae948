"""`efemb recommend` writes what `recommend` returns."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

import efemb


def test_recommendations_are_written_as_csv(run, model: Path, trips: Path, tmp_path: Path) -> None:
    out = tmp_path / "recs.csv"
    done = run("recommend", model, "--data", trips, "--out", out, "-n", "3")
    assert done.code == 0
    assert "recommendations for" in done.err
    columns = {"basket": "InvoiceNo", "item": "Description", "count": "Quantity"}
    data = efemb.read_baskets(trips, **columns, on_bad="drop")
    fitted = efemb.load(model)
    expected = fitted.recommend(efemb.data.aligned(data, fitted.vocabulary), 3)
    written = pd.read_csv(out)
    assert list(written.columns) == ["row", "label", "rank", "score"]
    assert written["label"].tolist() == expected["label"].tolist()
    assert written["row"].tolist() == [int(row) for row in expected["row"]]


def test_baselines_recommend_too(run, trips: Path, tmp_path: Path) -> None:
    columns = {"basket": "InvoiceNo", "item": "Description", "count": "Quantity"}
    data = efemb.read_baskets(trips, **columns, on_bad="drop")
    efemb.baselines.EASE(penalty=5).fit(data).save(tmp_path / "ease")
    new = tmp_path / "new.csv"
    new.write_text("order,item\n7,chips\n7,caviar\n8,salsa\n", "utf-8")
    asked = ("recommend", tmp_path / "ease", "--data", new, "-n", "1")
    done = run(*asked, "--exclude", "salsa", "--json")
    assert done.code == 0
    assert "dropped 1 item unknown to the model" in done.err
    rows = json.loads(done.out)
    assert [row["row"] for row in rows] == ["7", "8"] or [row["row"] for row in rows] == [7, 8]
    assert all(row["label"] != "salsa" for row in rows)
    seen = json.loads(run(*asked, "--include-seen", "--where", "chips", "--json").out)
    assert [row["label"] for row in seen] == ["chips", "chips"]


def test_one_answer_at_a_time(run, model: Path, trips: Path, tmp_path: Path) -> None:
    done = run("recommend", model, "--data", trips, "--out", tmp_path / "x.csv", "--json")
    assert done.code == 2
    assert "choose one" in done.err
