"""Questions that a text model cannot answer raise errors, with the nearest spelling if any."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import efemb
from efemb import Window
from estimators.text_samples import MODELS, TEXT, WORDS, quick

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def model() -> Any:
    return quick("Bernoulli").fit(TEXT)


UNKNOWN: dict[str, Any] = {
    "similar": lambda model: model.similar("cta"),
    "similar to several": lambda model: model.similar(["dog", "cta"]),
    "excluded": lambda model: model.similar("dog", exclude="cta"),
    "analogy": lambda model: model.analogy(["dog", "cta"], ["red"]),
    "analogy, negative": lambda model: model.analogy(["dog"], ["cta"]),
    "odd one out": lambda model: model.doesnt_match(["dog", "cta", "red"]),
    "predict": lambda model: model.predict(["dog", "cta"]),
    "vector": lambda model: model.vectors()["cta"],
}


@pytest.mark.parametrize("how", UNKNOWN)
def test_an_unknown_word_gets_the_nearest_spelling(how: str, model: Any) -> None:
    with pytest.raises(efemb.DataError, match=r"unknown label 'cta'.*did you mean 'cat'\?"):
        UNKNOWN[how](model)
    with pytest.raises(efemb.DataError, match="unknown label 'cta'"):
        UNKNOWN[how](model.fitted())


def test_unknown_words_may_be_skipped(model: Any) -> None:
    skip = {"unknown": "skip"}
    assert model.similar(["dog", "cta"], **skip) == model.similar(["dog"])
    assert model.analogy(["dog", "cta"], ["red", "rde"], **skip) == model.analogy(["dog"], ["red"])
    assert model.predict(["dog", "cta"], **skip) == model.predict(["dog"])
    words = ["dog", "cow", "cta", "red"]
    assert model.doesnt_match(words, **skip) == model.doesnt_match(["dog", "cow", "red"])


NOTHING: dict[str, Any] = {
    "similar": lambda model: model.similar(["cta"], unknown="skip"),
    "similar to nothing": lambda model: model.similar([]),
    "analogy": lambda model: model.analogy(["cta"], ["red"], unknown="skip"),
    "odd one of two": lambda model: model.doesnt_match(["dog", "cat"]),
    "predict": lambda model: model.predict(["cta"], unknown="skip"),
    "predict from nothing": lambda model: model.predict([]),
    "predict from an empty text": lambda model: model.predict(""),
    "predict from an empty mapping": lambda model: model.predict({}),
    "score": lambda model: model.score(["zebra unicorn"]),
    "score of nothing": lambda model: model.score([]),
    "transform nothing": lambda model: model.transform([]),
}


@pytest.mark.parametrize("how", NOTHING)
def test_nothing_known_is_an_error(how: str, model: Any) -> None:
    with pytest.raises(efemb.DataError, match=r"known|empty|nothing|no words|at least|no label"):
        NOTHING[how](model)


WRONG: dict[str, Any] = {
    "which": lambda model: model.similar("cat", which="roh"),
    "unknown": lambda model: model.similar("cat", unknown="skp"),
    "unknown of predict": lambda model: model.predict("cat", unknown="skp"),
    "method": lambda model: model.analogy(["cat"], method="multiply"),
    "n < 0": lambda model: model.similar("cat", -1),
    "n text": lambda model: model.similar("cat", "3"),
    "n < 0 of predict": lambda model: model.predict("cat", -1),
    "n text of predict": lambda model: model.predict("cat", "3"),
    "n a fraction": lambda model: model.predict("cat", 2.5),
    "context a number": lambda model: model.predict(5),
    "context None": lambda model: model.predict(None),
    "amount text": lambda model: model.predict({"cat": "x"}),
    "amount NaN": lambda model: model.predict({"cat": np.nan}),
    "amount infinite": lambda model: model.predict({"cat": np.inf}),
    "query of a wrong length": lambda model: model.similar(np.ones(3)),
    "query NaN": lambda model: model.similar(np.full(8, np.nan)),
    "transform a path that is none": lambda model: model.transform("cat dog"),
}


@pytest.mark.parametrize("how", WRONG)
def test_wrong_questions_are_refused(how: str, model: Any) -> None:
    with pytest.raises(efemb.EfembError):
        WRONG[how](model)


def test_no_amounts_at_all_are_no_context() -> None:
    model = quick("Bernoulli", context=Window(2, scale="total")).fit(TEXT)
    with pytest.raises(efemb.DataError, match="context is empty"):
        model.predict({"cat": 0.0, "dog": 0.0})


@pytest.mark.parametrize("name", MODELS)
def test_extreme_amounts_give_no_nan(name: str) -> None:
    model = quick(name).fit(TEXT)
    for context in ({"cat": 3, "red": 1}, ["cat"] * 4):
        share = model.predict(context)["probability"]
        assert np.isfinite(share).all()
        assert abs(np.sum(share) - 1.0) < 1e-4
    with pytest.raises(efemb.EfembError, match=r"words"):
        model.predict({"cat": 1e30, "red": 1.0})


def test_words_of_an_array_are_words(model: Any) -> None:
    assert model.predict(np.array(["cat", "dog"])) == model.predict(["cat", "dog"])
    assert model.predict(("cat", "dog")) == model.predict("cat dog")


def test_nodes_of_a_tree_are_not_words() -> None:
    linear, reverse = quick("CBOW, tree").fit(TEXT), quick("skip-gram, tree").fit(TEXT)
    with pytest.raises(efemb.ParameterError, match="nodes, not words"):
        linear.similar("cat", which="rho")
    with pytest.raises(efemb.ParameterError, match="nodes, not words"):
        reverse.similar("cat", which="alpha")
    assert len(linear.similar("cat", which="alpha")) == len(reverse.similar("cat")) == 9


@pytest.mark.parametrize("which", ["rho", "alpha", "both", "auto"])
def test_either_kind_of_vectors_can_be_asked(which: Any, model: Any) -> None:
    assert set(model.similar("cat", 99, which=which)["label"]) == set(WORDS) - {"cat"}
    assert model.vectors(which).n_components == (16 if which == "both" else 8)


@pytest.mark.parametrize("method", ["similar", "analogy", "predict", "transform", "score", "save"])
def test_an_unfitted_model_says_so(method: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(efemb.SkipGram(4), method)(["cat"])
