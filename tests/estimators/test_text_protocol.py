"""Text models and scikit-learn: parameters, clones, searches, pipelines, seeds, callbacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import efemb
from efemb import Window
from estimators.text_samples import FAST, MODELS, TEXT, quick

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
STRINGS = [" ".join(words) for words in TEXT]


@pytest.mark.parametrize("name", MODELS)
def test_a_clone_has_the_same_parameters_and_result(name: str) -> None:
    model = quick(name)
    copy = clone(model)
    assert repr(copy) == repr(model)
    assert copy.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert_array_equal(copy.fit(TEXT).embedding_, model.fit(TEXT).embedding_)
    assert not hasattr(clone(model), "parameters_")


@pytest.mark.parametrize("context", ["window", Window(5)], ids=["name", "object"])
def test_the_size_of_the_window_is_a_parameter(context: Any) -> None:
    given = Window(5) if isinstance(context, Window) else context
    model = efemb.SkipGram(4, context=given)
    model.set_params(context__size=2, context__scale="items", zeros=efemb.NegativeSampling(3))
    assert model.context == Window(2, scale="items")
    assert model.get_params()["context__size"] == 2
    model.set_params(zeros__n=7)
    assert model.zeros == efemb.NegativeSampling(3).__class__(7)
    with pytest.raises(ValueError, match="siz"):
        model.set_params(context__siz=2)


@pytest.mark.parametrize("source", ["strings", "token lists", "corpus"])
@pytest.mark.parametrize("name", ["Bernoulli", "CBOW"])
def test_a_search_over_the_size_of_the_window(name: str, source: str) -> None:
    text = {"strings": STRINGS, "token lists": TEXT, "corpus": efemb.read_text(TEXT)}[source]
    search = GridSearchCV(quick(name), {"context__size": [1, 4]}, cv=2, error_score="raise")
    search.fit(text)
    assert search.best_params_["context__size"] in (1, 4)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.context.size == search.best_params_["context__size"]
    assert len(search.best_estimator_.similar("cat")) == 9


def test_cross_validation_beats_chance() -> None:
    scores = cross_val_score(MODELS["skip-gram"](), STRINGS, cv=3, error_score="raise")
    assert (scores > -np.log(10) + 0.3).all()


def test_documents_are_features_of_a_classifier() -> None:
    topic = np.arange(len(STRINGS)) % 2
    pipe = make_pipeline(MODELS["skip-gram"](), LogisticRegression())
    pipe.fit(STRINGS[:150], topic[:150])
    assert pipe.score(STRINGS[150:], topic[150:]) == 1.0
    names = pipe[:-1].get_feature_names_out()
    assert list(names[:2]) == ["skipgram0", "skipgram1"]


@pytest.mark.parametrize("name", MODELS)
def test_the_seed_decides(name: str) -> None:
    first = quick(name, random_state=5).fit(TEXT)
    second = quick(name, random_state=5).fit(TEXT)
    other = quick(name, random_state=6).fit(TEXT)
    assert_array_equal(second.embedding_, first.embedding_)
    assert_array_equal(second.context_, first.context_)
    assert (other.embedding_ != first.embedding_).any()


@pytest.mark.parametrize("name", ["Bernoulli", "skip-gram", "skip-gram, tree", "CBOW"])
def test_threads_do_not_change_a_deterministic_fit(name: str) -> None:
    one = quick(name, deterministic=True).fit(TEXT)
    two = quick(name, deterministic=True, n_jobs=2).fit(TEXT)
    assert_array_equal(two.embedding_, one.embedding_)
    free = quick(name, n_jobs=2).fit(TEXT)
    assert abs(free.score(TEXT) - one.score(TEXT)) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", FAST)
def test_double_precision(name: str) -> None:
    single, double = quick(name).fit(TEXT), quick(name, dtype="float64").fit(TEXT)
    assert single.embedding_.dtype == np.float32
    assert double.embedding_.dtype == np.float64
    assert abs(single.score(TEXT) - double.score(TEXT)) < 0.05


@pytest.mark.parametrize("name", FAST)
def test_history_and_callbacks(name: str, tmp_path: Path) -> None:
    seen: list[int] = []

    def watch(progress: Any) -> bool:
        seen.append(progress.iteration)
        assert progress.parameters().is_finite()
        return progress.iteration == 3

    path = tmp_path / "log.jsonl"
    saved = efemb.engine.callbacks.Checkpoint(tmp_path / "point.safetensors")
    model = quick(
        name, max_iter=10, callbacks=[watch, efemb.engine.callbacks.JsonLinesLog(path), saved]
    ).fit(TEXT)
    assert seen == [1, 2, 3]
    assert model.n_iter_ == 3
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == model.history_
    assert_array_equal(saved.load().rho, model.embedding_)
    objective = [one["objective"] for one in model.history_]
    assert np.isfinite(objective).all()
    assert objective[2] > objective[0]


def test_stochastic_models_make_five_passes_without_a_warning() -> None:
    model = efemb.BernoulliTextEmbedding(4, random_state=0).fit(TEXT)
    assert model.n_iter_ == 5
    assert model.converged_
    assert not model.report_["held_out"]
    assert quick("CBOW", early_stopping="auto").fit(TEXT).report_["held_out"]


@pytest.mark.parametrize("name", FAST)
def test_silence_unless_asked(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    quick(name).fit(TEXT)
    assert capfd.readouterr() == ("", "")
    quick(name, verbose=1).fit(TEXT)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "objective" in shown.err


def test_a_refit_forgets_the_old_words() -> None:
    model = quick("skip-gram").fit(TEXT)
    model.fit([["x", "y", "z"] * 3] * 5)
    assert set(model.vocabulary_) == {"x", "y", "z"}
    assert model.embedding_.shape == (3, 8)
    assert model.n_features_in_ == 3


def test_the_data_are_not_changed() -> None:
    corpus = efemb.read_text(TEXT)
    tokens = corpus.tokens.copy()
    for name in FAST:
        quick(name).fit(corpus)
    assert_array_equal(corpus.tokens, tokens)


def test_paper_presets() -> None:
    for kind in (efemb.BernoulliTextEmbedding, efemb.SkipGram, efemb.CBOW):
        model = kind.paper(4, max_iter=1, early_stopping=False, random_state=0).fit(TEXT)
        assert model.intercept_ is None
        assert model.prior is None
        assert model.fitted().spec.context.scale == "none"


def test_by_default_the_context_is_the_mean() -> None:
    options = {"max_iter": 5, "random_state": 0}
    model = efemb.BernoulliTextEmbedding(4, **options).fit(TEXT)
    assert model.fitted().spec.context.scale == "items"
    mean = efemb.BernoulliTextEmbedding(4, context=efemb.Window(5, scale="items"), **options)
    assert_array_equal(model.embedding_, mean.fit(TEXT).embedding_)
