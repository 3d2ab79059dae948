"""The study of text on a small simulated corpus."""

from __future__ import annotations

import json
from collections import Counter
from math import log

import numpy as np
import pytest

import efemb
from efemb.errors import DataError
from efemb.reproduce import text_study
from efemb.reproduce.jobs import Runner
from efemb.reproduce.study import Options, Results
from efemb.reproduce.text_study import (
    FULL_PLANS,
    QUICK_PLANS,
    TEXT_MODELS,
    TextPlan,
    Texts,
    TextStudy,
    make_estimator,
    score_unigram,
    score_word_lists,
)

PLAN = TextPlan("lee", 4, passes=1, exact_passes=2, n_words=200, n_pairs=50, exact=True)
OPTIONS = Options(quick=True, n_jobs=1)


def documents(n: int = 60, seed: int = 0) -> list[list[str]]:
    """Documents of one of two topics each."""
    rng = np.random.default_rng(seed)
    return [[f"w{10 * (i % 2) + rng.integers(10)}" for _ in range(40)] for i in range(n)]


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A corpus in the place of Lee's, and word lists of its words."""
    corpus = efemb.read_text(documents(), min_count=1)
    monkeypatch.setattr("efemb.datasets.fetch_lee", lambda *_, **__: corpus)
    pairs = [f"w{i}\tw{i + 1}\t{i}" for i in range(15)]
    (tmp_path / "pairs.tsv").write_text("\n".join(pairs), encoding="utf-8")
    questions = ": all\n" + "\n".join(f"w{i} w{i + 1} w{i + 2} w{i + 3}" for i in range(5))
    (tmp_path / "questions.txt").write_text(questions, encoding="utf-8")
    lists = {
        text_study.PAIRS: tmp_path / "pairs.tsv",
        text_study.QUESTIONS: tmp_path / "questions.txt",
    }
    monkeypatch.setattr("efemb.reproduce.text_study.find_word_lists", lambda _: lists)
    text_study.load_texts.cache_clear()
    yield corpus
    text_study.load_texts.cache_clear()


@pytest.mark.filterwarnings("ignore:.*was still improving")
def test_the_study_compares_all_models(small, tmp_path):
    from efemb.plots import Page

    study, page = TextStudy(quick=(PLAN,)), Page("Test")
    outcomes = Runner(tmp_path / "jobs").run(study.jobs(OPTIONS))
    study.report(outcomes, OPTIONS, Results(tmp_path / "text", page))
    rows = json.loads((tmp_path / "text" / "lee.json").read_text())
    assert [row["model"] for row in rows] == [model.name for model in TEXT_MODELS]
    assert all(-6 < row["log_likelihood"] < -1 for row in rows)
    assert {row["of"] for row in rows if "skip-gram" in row["model"]} == {"a pair"}
    assert all(row["pairs"] == 15 and row["questions"] == 5 for row in rows[1:])
    assert rows[0]["spearman"] is None
    assert "20 distinct" in page.html()


def test_unigram_is_the_plain_definition():
    train, test = (efemb.read_text(documents(20, seed), min_count=1) for seed in (1, 2))
    count = Counter(word for i in range(train.n_documents) for word in train.document(i))
    total = sum(count.values()) + len(count)
    words = [word for i in range(test.n_documents) for word in test.document(i) if word in count]
    each = [log((count[word] + 1) / total) for word in words]
    found = score_unigram(Texts(train, train, test))
    assert found["log_likelihood"] == pytest.approx(np.mean(each))
    assert found["standard_error"] == pytest.approx(np.std(each) / np.sqrt(len(each)))
    assert found["n"] == len(words)


def test_without_word_lists_there_are_no_figures_of_them(monkeypatch):
    def missing(_):
        raise DataError("not here")

    monkeypatch.setattr("efemb.reproduce.text_study.find_word_lists", missing)
    assert score_word_lists(None, None) == {}


def test_too_few_pairs_of_known_words_give_no_correlation(monkeypatch, tmp_path):
    (tmp_path / "pairs.tsv").write_text("a\tb\t1\nb\tc\t2\nx\ty\t1\n", encoding="utf-8")
    (tmp_path / "questions.txt").write_text(": all\nx y z q\n", encoding="utf-8")
    lists = {
        text_study.PAIRS: tmp_path / "pairs.tsv",
        text_study.QUESTIONS: tmp_path / "questions.txt",
    }
    monkeypatch.setattr("efemb.reproduce.text_study.find_word_lists", lambda _: lists)
    known = efemb.fitted.LabeledVectors(["a", "b", "c"], np.eye(3))
    unknown = efemb.fitted.LabeledVectors(["k", "l", "m"], np.eye(3))
    assert score_word_lists(known, None) == score_word_lists(unknown, None) == {}


@pytest.mark.parametrize("model", TEXT_MODELS[1:], ids=lambda model: model.name)
def test_models_are_what_their_names_say(model):
    found = make_estimator(model, PLAN, 3, 2)
    assert found.context.scale == ("items" if "mean" in model.name else "none")
    assert found.max_iter == (2 if model.zeros == "all" else 1)
    assert (found.random_state, found.n_jobs, found.deterministic) == (3, 2, True)
    assert found.intercept is False
    assert found.prior is None


def test_exact_models_are_for_small_texts_only():
    assert {plan.text for plan in (*FULL_PLANS, *QUICK_PLANS) if plan.exact} == {"lee"}
    (large,) = (plan for plan in FULL_PLANS if plan.text == "20newsgroups")
    assert not any(model.exact for model in large.models())


def test_texts_are_split_by_documents(small):
    found = text_study.load_texts("lee", 0, None)
    assert [part.n_documents for part in (found.train, found.validation, found.test)] == [51, 3, 6]
