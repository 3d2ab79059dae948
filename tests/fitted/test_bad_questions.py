"""Every question that cannot be answered is refused, with the reason and the way out."""

from __future__ import annotations

import re
from inspect import signature
from typing import Any

import numpy as np
import pytest

import efemb
from efemb.fitted.embedding import FittedEmbedding
from efemb.fitted.queries.model_queries import PageOptions
from fitted.toys import GOODS, baskets, goods, model, neighbor_lists, random_model

D, P, T = efemb.DataError, efemb.ParameterError, efemb.InputTypeError
TEA = {"tea": 1.0}


class NegativeErrors:
    def standard_errors(self, entities: Any, given: Any) -> Any:
        return -np.ones(len(entities))


def silent(fitted: FittedEmbedding) -> FittedEmbedding:
    """Tea does nothing to others."""
    alpha = fitted.parameters.alpha.copy()
    alpha[0] = 0.0
    return model(fitted.parameters.rho, alpha, fitted.parameters.intercept, labels=GOODS)


BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "similar: unknown": (lambda m: m.similar("cofee"), D, "did you mean 'coffee'"),
    "complements: unknown": (lambda m: m.complements("cofee"), D, "did you mean 'coffee'"),
    "substitutes: unknown": (lambda m: m.substitutes(["tea", "cofee"]), D, "mean 'coffee'"),
    "predict: unknown": (lambda m: m.predict(["tea", "cofee"]), D, "did you mean 'coffee'"),
    "explain: unknown": (lambda m: m.explain(["tea"], "cofee"), D, "did you mean 'coffee'"),
    "what_if: unknown": (lambda m: m.what_if(["tea"], "cofee"), D, "did you mean 'coffee'"),
    "exclude: unknown": (lambda m: m.topics(exclude="cofee"), D, "did you mean 'coffee'"),
    "ambiguous": (
        lambda m: m.complements("T", match="prefix"),
        D,
        "'T' is ambiguous: it may be 'tea', 'towel'",
    ),
    "no item": (lambda m: m.complements([]), D, "no label was given"),
    "nothing known": (lambda m: m.complements(["x"], unknown="skip"), D, "none of the labels"),
    "n = 0": (lambda m: m.complements("tea", 0), P, ">= 1, got 0"),
    "n < 0": (lambda m: m.pairs(-1), P, ">= 1, got -1"),
    "n fraction": (lambda m: m.substitutes("tea", 2.5), T, "integer >= 1, got 2.5"),
    "n text": (lambda m: m.topics("3"), T, "integer >= 1, got '3'"),
    "n of what_if": (lambda m: m.what_if(TEA, "milk", n=0), P, ">= 1"),
    "top": (lambda m: m.predict(TEA, 0), P, ">= 1"),
    "negative amount": (
        lambda m: m.predict({"tea": -2}),
        D,
        "values >= 0; the amount of 'tea' is -2",
    ),
    "NaN amount": (lambda m: m.complete({"tea": np.nan}), D, "'tea' must be a finite number"),
    "infinite amount": (lambda m: m.predict({"tea": np.inf}), D, "'tea' must be a finite number"),
    "amount text": (lambda m: m.predict({"tea": "two"}), T, "'tea' must be a number, got 'two'"),
    "amount true": (lambda m: m.predict({"tea": True}), T, "'tea' must be a number, got True"),
    "negative change": (lambda m: m.what_if(TEA, {"milk": -1}), D, "the amount of 'milk' is -1"),
    "empty context": (lambda m: m.predict([]), D, "the context is empty"),
    "empty mapping": (lambda m: m.complete({}), D, "the context is empty"),
    "no amounts": (lambda m: m.predict({"tea": 0}), D, "the context is empty"),
    "skipped context": (lambda m: m.predict(["x"], unknown="skip"), D, "the context is empty"),
    "one empty context of two": (lambda m: m.predict([["tea"], []]), D, "the context is empty"),
    "explain from nothing": (lambda m: m.explain({}, "tea"), D, "the context is empty"),
    "explain from itself": (lambda m: m.explain("tea", "tea"), D, "nothing in the context affects"),
    "context a number": (lambda m: m.predict(5), T, "list of labels or a mapping, got 5"),
    "context None": (lambda m: m.predict(None), T, "list of labels or a mapping, got None"),
    "nothing changes": (lambda m: m.what_if(TEA), D, "nothing changes"),
    "remove what is not there": (
        lambda m: m.what_if(TEA, remove="milk"),
        D,
        "'milk' is not in the context",
    ),
    "remove too much": (lambda m: m.what_if(TEA, remove={"tea": 3}), D, "only 1 of 'tea'"),
    "direction": (lambda m: m.complements("tea", direction="gven"), P, "did you mean 'given'"),
    "end": (lambda m: m.pairs(end="large"), P, "did you mean 'largest'"),
    "which": (lambda m: m.similar("tea", which="roh"), P, "did you mean 'rho'"),
    "vectors": (lambda m: m.topics(vectors="contxt"), P, "did you mean 'context'"),
    "by": (lambda m: m.topics(by="size"), P, "choices: value, magnitude"),
    "rotate": (lambda m: m.topics(rotate="varmax"), P, "did you mean 'varimax'"),
    "no such topic": (lambda m: m.topics(topic=6), D, "from 0 to 5, got 6"),
    "topic below 0": (lambda m: m.topics(topic=[-1]), D, "from 0 to 5"),
    "no topics": (lambda m: m.topics(topic=[]), D, "from 0 to 5"),
    "topic text": (lambda m: m.topics(topic="0"), T, "topic must be an integer"),
    "similarity above 1": (lambda m: m.substitutes("tea", min_similarity=2), P, r"in \[-1, 1\]"),
    "similarity text": (lambda m: m.substitutes("tea", min_similarity="a"), T, "a number"),
    "support without data": (lambda m: m.complements("tea", min_support=3), P, "data=..."),
    "support < 0": (
        lambda m: m.complements("tea", min_support=-1, data=baskets()),
        P,
        ">= 0, got -1",
    ),
    "support text": (
        lambda m: m.complements("tea", min_support="a", data=baskets()),
        T,
        "min_support must be a number",
    ),
    "confidence 1": (lambda m: m.complements("tea", confidence=1), P, r"in \(0, 1\)"),
    "confidence text": (lambda m: m.pairs(confidence="high"), T, "confidence must be a number"),
    "data of other size": (
        lambda m: m.complements("tea", data=np.ones((3, 4))),
        D,
        "data have 4 entities, the model has 6",
    ),
    "data of other labels": (
        lambda m: m.complements("tea", data=efemb.Dataset(baskets(), entities=GOODS[::-1])),
        D,
        "entities of the data are not those of the model",
    ),
    "data below zero": (
        lambda m: m.complements("tea", data=-baskets()),
        D,
        "Negative values",
    ),
    "data of vectors": (
        lambda m: m.complements("tea", data=np.ones((3, 6, 2))),
        P,
        "counts and binary data",
    ),
    "text as data": (
        lambda m: m.complements("tea", data=efemb.Corpus([0, 1], [0, 2], GOODS)),
        T,
        "a text has none",
    ),
    "errors of both directions": (
        lambda m: m.complements("tea", errors=NegativeErrors(), direction="symmetric"),
        P,
        "direction='given'",
    ),
    "errors of centered products": (
        lambda m: m.complements("tea", errors=NegativeErrors(), center=True),
        P,
        "center=False",
    ),
    "errors of centered pairs": (
        lambda m: m.pairs(errors=NegativeErrors(), center=True),
        P,
        "center=False",
    ),
    "no context vector to center": (
        lambda m: silent(m).complements("tea", center=True),
        D,
        "effect of 'tea' on others",
    ),
    "no context vector": (lambda m: silent(m).complements("tea"), D, "effect of 'tea' on others"),
    "no context vector of one": (
        lambda m: silent(m).substitutes(["milk", "tea"]),
        D,
        "context_too=False",
    ),
    "no errors": (lambda m: m.complements("tea", errors=5), T, r"model.laplace\(data\)"),
    "negative errors": (lambda m: m.complements("tea", errors=NegativeErrors()), D, ">= 0"),
    "min_count without counts": (lambda m: m.similar("tea", min_count=3), P, "min_count needs"),
    "analogy of nothing": (lambda m: m.analogy([]), D, "no label was given"),
    "option that is none": (lambda m: m.similar("tea", wehre="x"), TypeError, "wehre"),
}


@pytest.mark.parametrize("how", BAD)
def test_refused(how: str) -> None:
    ask, error, words = BAD[how]
    with pytest.raises(error, match=words):
        ask(goods())


def test_more_than_the_vocabulary_is_all_of_it() -> None:
    fitted = goods()
    assert len(fitted.similar("tea", 10**9)) == 5
    assert len(fitted.complements("tea", 10**9)) == 5
    assert len(fitted.predict(["tea"], 10**9)) == 6
    assert len(fitted.complete(["tea"], 10**9)) == 5
    assert len(fitted.topics(10**9, topic=0)) == 6
    assert len(fitted.analogy("tea", "milk", 10**9)) == 4


def positive(**options: Any) -> FittedEmbedding:
    rng = np.random.default_rng(0)
    rho, alpha = rng.gamma(1.0, size=(2, 4, 2))
    return model(rho, alpha, np.ones(4), prior="log-normal", **options)


@pytest.mark.parametrize(
    "fitted",
    [positive(link="log"), positive(), positive(family="gaussian")],
    ids=["ap-emb", "positive p-emb", "positive g-emb"],
)
def test_positive_models_know_no_substitutes(fitted: FittedEmbedding) -> None:
    with pytest.raises(efemb.ParameterError, match="only express positive correlations"):
        fitted.substitutes(0)
    assert len(fitted.complements(0)) == 3


def test_vectors_of_vector_data_are_not_one_an_entity() -> None:
    rng = np.random.default_rng(0)
    rho, alpha = rng.normal(size=(2, 4, 2, 3))
    fitted = model(rho, alpha, family="gaussian")
    for ask in (fitted.similar, fitted.complements, fitted.predict, fitted.vectors):
        with pytest.raises(efemb.ParameterError, match=r"vectors? "):
            ask(0) if ask != fitted.vectors else ask()


def test_lagged_contexts_have_several_vectors_an_entity() -> None:
    offset = np.array([-1, -1])
    lists = (neighbor_lists([0, 1, 2], [1, 0], offset=offset, slot=np.array([1, 1])),)
    rng = np.random.default_rng(0)
    fitted = model(rng.normal(size=(2, 3)), rng.normal(size=(4, 3)), family="gaussian", lists=lists)
    assert len(fitted.similar(0)) == 1, "rho is one an entity all the same"
    with pytest.raises(efemb.ParameterError, match="2 context vectors"):
        fitted.similar(0, which="alpha")
    with pytest.raises(efemb.ParameterError, match="reach other rows"):
        fitted.predict({0: 1.0})


def test_negative_values_are_for_real_data_only() -> None:
    lists = (neighbor_lists([0, 1, 2], [1, 0]),)
    options: Any = {"family": "gaussian", "lists": lists}
    fitted = model(np.ones((2, 1)), np.ones((2, 1)), **options)
    assert fitted.predict({1: -2.0}, 1, where=[0])["mean"][0] == -2.0
    total = (neighbor_lists([0, 1, 2], [1, 0], scale="total"),)
    fitted = model(np.ones((2, 1)), np.ones((2, 1)), family="gaussian", lists=total)
    with pytest.raises(efemb.DataError, match="scale='total' have values >= 0"):
        fitted.predict({1: -2.0})


def test_a_list_without_a_given_neighbor_explains_nothing() -> None:
    lists = (neighbor_lists([0, 1, 1], [1]),)
    fitted = model(np.ones((2, 1)), np.ones((2, 1)), family="gaussian", lists=lists)
    assert len(fitted.explain({1: 2.0}, 0)) == 1
    with pytest.raises(efemb.DataError, match="nothing in the context affects"):
        fitted.explain({1: 2.0}, 1)


def test_contexts_that_labels_do_not_tell() -> None:
    context = efemb.Explicit(np.array([0, 1, 2]), np.array([1, 0]))
    fitted = model(np.ones((2, 1)), np.ones((2, 1)), context=context)
    with pytest.raises(efemb.ParameterError, match=r"Explicit.*conditional\(X\)"):
        fitted.predict([0])


def test_places_of_a_window() -> None:
    place = np.ones((2, 3))
    window = efemb.Window(1, positional=True)
    fitted = random_model(0, family="categorical", context=window, position=place)
    with pytest.raises(efemb.ParameterError, match="the window holds 2 words, got 3"):
        fitted.predict(["item 1"] * 3)
    with pytest.raises(efemb.ParameterError, match="positional window"):
        fitted.what_if(["item 1"], add="item 2")


def test_nodes_of_a_tree_explain_no_word() -> None:
    options = {"context": efemb.Window(2), "zeros": "hierarchical"}
    fitted = random_model(0, family="categorical", **options)
    with pytest.raises(efemb.ParameterError, match="belong to nodes"):
        fitted.explain(["item 1"], "item 2")
    with pytest.raises(efemb.ParameterError, match="belongs to nodes"):
        fitted.complements("item 1")
    assert fitted.what_if(["item 1"], add="item 2")["after"].sum() == pytest.approx(1.0)


def test_numbers_that_are_no_entities() -> None:
    fitted = random_model(0, labels=None, counts=None)
    for label in (9, -1, 2.5):
        with pytest.raises(efemb.DataError, match="unknown label"):
            fitted.predict([label])
    assert fitted.predict([8.0]) == fitted.predict(["8"])


@pytest.mark.parametrize("method", ["complements", "pairs", "topics", "explain", "complete"])
def test_an_unfitted_model_says_so(method: str) -> None:
    from sklearn.exceptions import NotFittedError

    arguments = {"complements": ["a"], "explain": [["a"], "b"], "complete": [["a"]]}
    with pytest.raises(NotFittedError):
        getattr(efemb.PoissonEmbedding(2), method)(*arguments.get(method, []))


QUESTIONS = {
    "similar": ("tea",),
    "analogy": ("tea", "milk"),
    "complements": ("tea",),
    "substitutes": ("tea",),
    "pairs": (),
    "topics": (),
    "weights": (),
    "predict": (TEA,),
    "complete": (TEA,),
    "explain": (TEA, "milk"),
    "what_if": (TEA, "milk"),
    "recommend": (np.eye(len(GOODS)),),
    "to_html": ("page.html",),
    "explore": (),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_keyword_that_no_question_has_is_refused_by_the_name_of_the_question(name: str) -> None:
    fitted = goods()
    with pytest.raises(TypeError, match=rf"^{name}\(\) has no parameter 'topk'; .*choices: ") as e:
        getattr(fitted, name)(*QUESTIONS[name], topk=3)
    choices = set(str(e.value).partition("choices: ")[2].partition(" (")[0].split(", "))
    documented = re.findall(r"^ *(\w+) : ", getattr(fitted, name).__doc__ or "", re.MULTILINE)
    assert {word for word in documented if word in PARAMETERS} <= choices


PARAMETERS = {"n", "where", "exclude", "min_count", "match", "unknown", "which", "data", "errors"}


def test_the_page_of_a_model_takes_what_the_explorer_takes() -> None:
    taken = list(signature(efemb.explore.prepare).parameters)[1:]
    assert list(PageOptions.__annotations__) == taken
