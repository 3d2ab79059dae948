"""The studies of counts on small data: files, page, resuming, side by side."""

from __future__ import annotations

import csv
import json
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from efemb.baselines import Popularity
from efemb.reproduce import Options, baskets_study, movies_study, reproduce
from efemb.reproduce.counts_fits import Task, describe_settings, split_movies
from efemb.reproduce.counts_models import BASKETS, MOVIES, P_EMB, P_EMB_DW, SIZES
from efemb.reproduce.jobs import pack_table, unpack_table
from efemb.table import Table
from reproduce.small_counts import no_orders, small_movies

pytestmark = pytest.mark.slow

QUICK = Options(quick=True, n_jobs=1)


def table(folder, name):
    """Rows of a CSV file."""
    with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


class InterruptedStudyError(Exception):
    """Stands for Ctrl-C."""


def test_movies_write_tables_pictures_and_a_page(movie_run):
    page = (movie_run / "movies" / "report.html").read_text(encoding="utf-8")
    folder = movie_run / "movies"
    scores = table(folder, "scores")
    assert [row["model"] for row in scores] == [
        "popularity",
        "p-emb",
        "p-emb (dw)",
        "p-emb, defaults",
    ]
    assert all(-10 < float(row["score"]) < 0 for row in scores)
    for picture in ("scores", "constants", "topics-by-value", "topics-varimax-by-value"):
        assert (folder / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    topics = table(folder, "topics-by-value")
    assert topics[0]["title"].startswith("Movie ")
    assert topics[0]["year"].startswith("19")
    assert {row["topic"] for row in topics} == {
        str(one) for one in range(movies_study.QUICK_TOPICS)
    }
    assert {row["axes"] for row in table(folder, "stability")} >= {"varimax", "as they come"}
    claims = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    for claim in claims:
        assert claim["figure"].split(",")[0] in page
    assert "quick run" in page
    assert "Topics of the movies" in page


def test_scores_of_a_study_are_those_of_the_model(movie_run):
    split = split_movies(small_movies(), 0)
    popular = Popularity().fit(split.train)
    found = {row["model"]: float(row["score"]) for row in table(movie_run / "movies", "scores")}
    assert found["popularity"] == pytest.approx(popular.score(split.test), abs=1e-6)
    details = {row["model"]: row for row in table(movie_run / "movies", "splits")}
    step = float(details["p-emb (dw)"]["step"])
    model = P_EMB_DW.make(movies_study.QUICK_SIZES[0], 0, step).set_params(
        max_iter=movies_study.QUICK_PASSES
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(split.train, validation=split.validation)
    assert found["p-emb (dw)"] == pytest.approx(model.score(split.test), abs=1e-6)


def test_the_constant_is_the_best_on_validation(movie_run):
    folder = movie_run / "movies"
    curve = [row for row in table(folder, "constants") if row["model"].startswith("p-emb, ")]
    best = max(curve, key=lambda row: float(row["validation"]))
    chosen = next(row for row in table(folder, "splits") if row["model"] == "p-emb")
    assert [float(row["step"]) for row in curve] == list(P_EMB.steps)
    assert float(chosen["step"]) == float(best["step"])


def test_an_interrupted_study_goes_on_where_it_was(tiny_movies, tmp_path, monkeypatch):
    run, ran = Task.run, []

    def until_the_third(self):
        if len(ran) == 2:
            raise InterruptedStudyError
        ran.append(self.label)
        return run(self)

    monkeypatch.setattr(Task, "run", until_the_third)
    with pytest.raises(InterruptedStudyError):
        reproduce(["movies"], tmp_path, QUICK)
    assert not list(tmp_path.rglob("report.html"))
    done = list(ran)
    ran.clear()
    monkeypatch.setattr(Task, "run", lambda self: (ran.append(self.label), run(self))[1])
    reproduce(["movies"], tmp_path, QUICK)
    assert len(done) == 2
    assert not set(done) & set(ran)
    ran.clear()
    reproduce(["movies"], tmp_path, QUICK)
    assert ran == []


def test_jobs_side_by_side_find_the_same(tiny_movies, movie_run, tmp_path):
    reproduce(["movies"], tmp_path, Options(quick=True, n_jobs=2))
    one, two = (table(folder / "movies", "scores") for folder in (movie_run, tmp_path))
    assert one == two


def test_baskets_write_scores_and_lists_of_goods(tiny_baskets, tmp_path):
    page = reproduce(["baskets"], tmp_path, QUICK).read_text(encoding="utf-8")
    folder = tmp_path / "baskets"
    assert len(table(folder, "scores")) == 5
    lists = sorted(path.stem for path in folder.glob("similar-*.csv"))
    assert len(lists) == 3  # two models of Complete Journey, one of Instacart
    similar = table(folder, lists[0])
    assert {row["example"] for row in similar} == {"a ramen", "a yogurt", "a soda", "a milk"}
    assert all(row["item"] != row["similar"] for row in similar)
    pairs = table(folder, lists[0].replace("similar", "pairs"))
    products = [float(row["score"]) for row in pairs]
    assert products[:5] == sorted(products[:5], reverse=True)
    assert products[5:] == sorted(products[5:])
    assert "Instacart" in page
    assert "is left out" not in page


def test_baskets_without_instacart_say_so(tiny_baskets, tmp_path, monkeypatch):
    monkeypatch.setattr(baskets_study, "fetch_instacart", no_orders)
    page = reproduce(["baskets"], tmp_path, QUICK).read_text(encoding="utf-8")
    assert "is omitted: instacart is nowhere to be had" in page


def test_a_job_is_named_by_all_that_its_result_depends_on(tiny_movies):
    keys = [job.key for job in tiny_movies.jobs(QUICK)]
    assert len(set(keys)) == len(keys)
    assert keys == [job.key for job in tiny_movies.jobs(Options(quick=True, n_jobs=2))]
    full = {job.key for job in tiny_movies.jobs(Options())}
    assert not full & set(keys)


def test_the_full_studies_hold_every_model_of_the_paper():
    named = {
        "popularity",
        "p-emb",
        "p-emb (dw)",
        "ap-emb",
        "HPF",
        "Poisson PCA",
        "Poisson PCA, positive",
    }
    for recipes in (MOVIES, BASKETS):
        assert named <= {recipe.name for recipe in recipes}
        for recipe in recipes:
            made = recipe.make(SIZES[0] if recipe.sized else None, 3, None)
            assert describe_settings(made)["class"] == type(made).__name__
            if recipe.sized:
                assert made.get_params()["n_components"] == SIZES[0]
                assert made.get_params()["random_state"] == 3


def test_the_papers_settings_are_those_of_its_table():
    made = P_EMB.make(20, 0, 0.1)
    assert (made.prior.precision, made.max_iter, made.intercept) == (1.0, 3000, False)
    assert (made.context.scale, made.optimizer.step) == ("items", 0.1)
    assert P_EMB_DW.make(20, 0, None).zero_weight == 0.1


def test_tables_survive_a_result_file(tmp_path):
    before = Table({"label": ["a", "é"], "value": [1.5, np.nan]})
    np.savez(tmp_path / "arrays.npz", **pack_table("pairs", before), other=np.zeros(2))
    with np.load(tmp_path / "arrays.npz", allow_pickle=False) as file:
        assert unpack_table("pairs", {name: file[name] for name in file.files}) == before


def test_the_letter_stands_beside_ours(tmp_path, monkeypatch):
    monkeypatch.setattr(movies_study, "fetch_movielens_100k", small_movies)
    monkeypatch.setattr(movies_study, "QUICK_PASSES", 5)
    options = Options(quick=True, n_jobs=1, literal=True)
    page = reproduce(["movies"], tmp_path, options)
    rows = table(tmp_path / "movies", "literal")
    assert [row["split"] for row in rows] == ["users"] * 6 + ["ratings"] * 6
    assert {row["model"] for row in rows} >= {"p-emb", "p-emb, 10 zeros per row"}
    assert all(float(row["gain"]) == 0 for row in rows if row["model"] == "p-emb")
    assert "to the letter" in page.read_text(encoding="utf-8")
