"""predict, complete, explain and what_if: one arithmetic, that of `conditional`."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import efemb
from efemb import fitted as query
from fitted.toys import GOODS, goods, model, neighbor_lists, random_model

SIZE = 7
LABELS = [f"item {i}" for i in range(SIZE)]


def context_of(row: Any) -> dict[str, float]:
    return {LABELS[n]: float(x) for n, x in enumerate(row) if x != 0}


def _bags() -> dict[str, Any]:
    """Every kind of row context, by its name."""
    found: dict[str, Any] = {}
    for scale in ("total", "items", "none"):
        for binary in (False, True):
            name = f"{scale}{', binary' if binary else ''}"
            found[name] = {"context": efemb.Basket(scale, binary)}
    return {
        **found,
        "bernoulli": {"family": "bernoulli"},
        "negative binomial": {"family": efemb.NegativeBinomial(2.0)},
        "reverse": {"combine": "reverse"},
        "softplus": {"link": "softplus"},
    }


BAGS = _bags()


def bag(name: str, seed: int = 0) -> Any:
    return random_model(seed, SIZE, **BAGS[name])


@pytest.mark.parametrize("name", BAGS)
@given(row=st.lists(st.integers(0, 2), min_size=SIZE, max_size=SIZE).filter(lambda x: sum(x) > 0))
def test_predicted_means_are_the_conditional_ones(name: str, row: list[int]) -> None:
    fitted = bag(name)
    x = np.minimum(row, 1) if name == "bernoulli" else np.array(row)
    expected = fitted.conditional(x[None].astype(float))[0]
    found = fitted.predict(context_of(x), n=99)
    assert len(found) == SIZE
    for one in found:
        n = LABELS.index(one["label"])
        assert one["mean"] == pytest.approx(expected[n], rel=1e-9)
        assert one["probability"] == pytest.approx(expected[n] / expected.sum(), rel=1e-9)
    assert (np.diff(found["probability"]) <= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", BAGS)
@given(
    row=st.lists(st.integers(0, 1), min_size=SIZE, max_size=SIZE).filter(lambda x: sum(x) > 1),
    item=st.integers(0, SIZE - 1),
)
def test_terms_add_up(name: str, row: list[int], item: int) -> None:
    fitted = bag(name)
    found = fitted.explain(context_of(row), LABELS[item])
    assert found.columns == ["term", "amount", "weight", "contribution"]
    u = np.array([found["contribution"].sum()])
    mean = fitted.spec.family.expected_value(fitted.spec.family.natural(fitted.spec.link(u)))
    assert mean[0] == pytest.approx(fitted.conditional(np.array([row], dtype=float))[0, item])
    members = [LABELS[n] for n, x in enumerate(row) if x and n != item]
    assert set(found["term"]) == {*members, "(intercept)"}
    assert (np.diff(np.abs(found["contribution"])) <= 0).all()


def test_terms_by_hand() -> None:
    """Two teas and a soap in the basket of which milk is asked: (2 x 2.0 - 1.5) / 3."""
    found = goods().explain({"tea": 2, "soap": 1, "milk": 5}, "milk")
    assert list(found) == [
        {
            "term": "tea",
            "amount": 2,
            "weight": pytest.approx(2.0),
            "contribution": pytest.approx(4 / 3),
        },
        {
            "term": "soap",
            "amount": 1,
            "weight": pytest.approx(-1.5),
            "contribution": pytest.approx(-0.5),
        },
    ]


def test_several_items_are_explained_one_after_the_other() -> None:
    fitted = bag("total")
    both = fitted.explain(["item 1", "item 2"], ["item 3", "item 0"])
    assert both.columns[0] == "item"
    assert both["item"].tolist() == ["item 3"] * 3 + ["item 0"] * 3
    one = fitted.explain(["item 1", "item 2"], "item 0")
    assert both["contribution"].tolist()[3:] == one["contribution"].tolist()


def test_basket_completion_leaves_out_what_is_there() -> None:
    fitted = bag("total")
    context = {"item 1": 2, "item 4": 1}
    row = np.array([[0, 2, 0, 0, 1, 0, 0]], dtype=float)
    mean = fitted.conditional(row)[0]
    others = [n for n in range(SIZE) if n not in (1, 4)]
    found = fitted.complete(context, 99)
    assert set(found["label"]) == {LABELS[n] for n in others}
    for one in found:
        n = LABELS.index(one["label"])
        assert one["probability"] == pytest.approx(mean[n] / mean[others].sum())
    assert found["probability"].sum() == pytest.approx(1.0)
    assert len(fitted.complete(LABELS, 3)) == 0


def test_filters_choose_what_is_listed_not_the_probabilities() -> None:
    fitted = bag("total")
    everything = {one["label"]: one for one in fitted.predict("item 1", 99)}
    found = fitted.predict("item 1", 2, where=["item 3", "item 5", "item 1"], exclude="item 1")
    assert set(found["label"]) == {"item 3", "item 5"}
    assert all(everything[one["label"]] == one for one in found)


@pytest.mark.parametrize("method", ["predict", "complete"])
def test_several_contexts(method: str) -> None:
    fitted = bag("items")
    contexts = [["item 1"], {"item 2": 2.0, "item 3": 1.0}, ("item 5", "item 6")]
    found = getattr(fitted, method)(contexts, 3)
    assert found["context"].tolist() == [0] * 3 + [1] * 3 + [2] * 3
    single = [one for context in contexts for one in getattr(fitted, method)(context, 3)]
    assert [{k: v for k, v in one.items() if k != "context"} for one in found] == single


def test_a_label_twice_counts_twice() -> None:
    fitted = bag("items")
    assert fitted.predict(["item 1", "item 1", "item 3"]) == fitted.predict(
        {"item 1": 2, "item 3": 1}
    )
    assert fitted.predict(np.array(["item 1", "item 3"])) == fitted.predict(("item 1", "item 3"))


def test_parts_of_labels_and_unknown_ones() -> None:
    fitted = goods()
    assert fitted.predict(["SUG", "cof"], match="prefix") == fitted.predict(["sugar", "coffee"])
    assert fitted.predict(["sugar", "wine"], unknown="skip") == fitted.predict(["sugar"])


# -- what if ------------------------------------------------------------------------------------

CHANGES: dict[str, tuple[Any, Any, Any, list[float]]] = {
    "add one": ({"item 1": 2}, "item 3", (), [0, 2, 0, 1, 0, 0, 0]),
    "add more of it": ({"item 1": 2}, {"item 1": 3}, (), [0, 5, 0, 0, 0, 0, 0]),
    "add to nothing": ({}, ["item 0", "item 6"], (), [1, 0, 0, 0, 0, 0, 1]),
    "remove one": ({"item 1": 2, "item 2": 1}, (), "item 1", [0, 0, 1, 0, 0, 0, 0]),
    "remove some of it": ({"item 1": 2}, (), {"item 1": 1}, [0, 1, 0, 0, 0, 0, 0]),
    "remove everything": (["item 1"], (), ["item 1"], [0] * 7),
    "exchange": (["item 1"], "item 2", "item 1", [0, 0, 1, 0, 0, 0, 0]),
}


BINARY = ("add to nothing", "remove everything", "exchange")


@pytest.mark.parametrize(
    ("name", "how"),
    [*product(["total", "items"], CHANGES), *product(["bernoulli"], BINARY)],
)
def test_changes_are_differences_of_conditional_means(name: str, how: str) -> None:
    fitted = bag(name)
    context, add, remove, after = CHANGES[how]
    amounts = context if isinstance(context, dict) else dict.fromkeys(context, 1)
    row = np.array([amounts.get(label, 0) for label in LABELS], dtype=float)
    first, second = fitted.conditional(np.array([row, after], dtype=float))
    found = fitted.what_if(context, add, remove)
    assert len(found) == SIZE
    for one in found:
        n = LABELS.index(one["label"])
        assert one["before"] == pytest.approx(first[n])
        assert one["after"] == pytest.approx(second[n])
        assert one["change"] == pytest.approx(second[n] - first[n], rel=1e-9, abs=1e-12)
        assert one["ratio"] == pytest.approx(second[n] / first[n])
    assert (np.diff(np.abs(found["change"])) <= 1e-12).all()
    assert fitted.what_if(context, add, remove, n=2) == found[:2]
    assert set(fitted.what_if(context, add, remove, where=["item 5"])["label"]) == {"item 5"}


# -- neighbors ---------------------------------------------------------------------------------


def neurons(family: Any = "gaussian", **options: Any) -> Any:
    rng = np.random.default_rng(0)
    lists = (
        neighbor_lists([0, 2, 3, 5, 5], [1, 2, 3, 0, 1], **options),
        neighbor_lists([0, 1, 1, 1, 2], [1, 2], scale="items"),
    )
    rho, alpha = rng.normal(size=(2, 4, 2))
    context = efemb.Neighbors(2, np.arange(4.0))
    more = {"family": family, "context": context, "lists": lists, "labels": list("abcd")}
    return model(rho, alpha, rng.normal(size=4), **more)


@pytest.mark.parametrize("combine", ["linear", "reverse"])
@pytest.mark.parametrize("scale", ["none", "items", "total"])
@pytest.mark.parametrize("binary", [False, True])
def test_neighbors_that_are_given_predict(scale: str, binary: bool, combine: str) -> None:
    from dataclasses import replace

    fitted = neurons(scale=scale, binary=binary)
    fitted = replace(
        fitted, spec=replace(fitted.spec, combine=efemb.model.combine.Combine.resolve(combine))
    )
    for given_values in ({"a": 1.5, "c": 0.5}, {"b": 0.0}, dict.fromkeys("abcd", 2.0)):
        row = np.array([[given_values.get(label, np.nan) for label in "abcd"]])
        expected = dict(zip("abcd", fitted.conditional(row)[0], strict=True))
        found = fitted.predict(given_values, 4)
        assert found.columns == ["label", "mean"]
        for one in found:
            assert one["mean"] == pytest.approx(expected[one["label"]])
        rest = fitted.complete(given_values, 4)["label"].tolist()
        assert rest == [one["label"] for one in found if one["label"] not in given_values]


def test_neighbors_are_explained() -> None:
    fitted = neurons()
    row = {"a": -1.0, "b": 2.0, "d": 5.0}
    found = fitted.explain(row, "a")
    mean = next(one["mean"] for one in fitted.predict(row, 4) if one["label"] == "a")
    assert found["contribution"].sum() == pytest.approx(mean)
    assert sorted(found["term"]) == ["(intercept)", "b", "b"], "b is in two lists of a"
    assert "without effect on 'a', since they are outside its context: 'd'" in str(found)
    inside = fitted.explain({"a": -1.0, "b": 2.0}, "a")  # its own amount is not in its context
    assert "without effect" not in str(inside)


def test_reverse_models_are_explained_by_those_in_whose_lists_an_entity_is() -> None:
    from dataclasses import replace

    fitted = neurons()
    fitted = replace(
        fitted, spec=replace(fitted.spec, combine=efemb.model.combine.Combine.resolve("reverse"))
    )
    p, row = fitted.parameters, {"a": -1.0, "c": 2.0, "d": 5.0}
    found = fitted.explain(row, "b")
    assert sorted(found["term"]) == ["(intercept)", "a", "a", "c"], "b is in two lists of a"
    said = {label: p.alpha[1] @ p.rho["abcd".index(label)] for label in "ac"}
    for one in found:
        if one["term"] != "(intercept)":
            assert one["weight"] == pytest.approx(said[one["term"]])
            assert one["contribution"] == pytest.approx(row[one["term"]] * one["weight"] / 3)
    mean = next(one["mean"] for one in fitted.predict(row, 4) if one["label"] == "b")
    assert found["contribution"].sum() == pytest.approx(mean)


def test_what_if_a_neighbor_moves() -> None:
    fitted = neurons()
    before, after = (
        fitted.conditional(np.array([[np.nan, x, np.nan, 1.0]]))[0] for x in (2.0, -1.0)
    )
    found = fitted.what_if({"b": 2.0, "d": 1.0}, add={"b": -3.0})
    assert found.columns == ["label", "before", "after", "change"]
    for one in found:
        n = "abcd".index(one["label"])
        assert_allclose([one["before"], one["after"]], [before[n], after[n]])
    same = fitted.what_if({"b": 3.0, "d": 1.0}, remove={"b": 4.0})
    assert_allclose(sorted(same["after"]), sorted(found["after"]))


# -- one of many --------------------------------------------------------------------------------


def test_categories_have_probabilities() -> None:
    fitted = random_model(5, SIZE, family="categorical")
    found = fitted.predict({"item 2": 1}, 99)
    p = fitted.parameters
    u = p.rho @ p.alpha[2] + p.intercept
    u[2] = p.intercept[2]  # not from itself
    expected = np.exp(u) / np.exp(u).sum()
    assert found.columns == ["label", "probability"]
    for one in found:
        assert one["probability"] == pytest.approx(expected[LABELS.index(one["label"])])
    changed = fitted.what_if([], add="item 2")
    assert changed["after"].sum() == pytest.approx(1.0)
    assert changed["change"].sum() == pytest.approx(0.0, abs=1e-12)


def window(**options: Any) -> Any:
    return random_model(
        6, SIZE, family="categorical", **{"context": efemb.Window(2, scale="none"), **options}
    )


def test_words_of_a_window() -> None:
    fitted = window()
    p = fitted.parameters
    u = p.rho @ (2 * p.alpha[1] + p.alpha[3]) + p.intercept
    words = ["item 1", "item 3", "item 1"]
    found = fitted.predict(words, 99)
    for one in found:
        n = LABELS.index(one["label"])
        assert one["probability"] == pytest.approx(np.exp(u[n]) / np.exp(u).sum())
    terms = fitted.explain(words, "item 1")
    assert terms["contribution"].sum() == pytest.approx(u[1]), "a word may come again"
    assert len(terms) == 4
    more = fitted.what_if(["item 1", "item 3"], add="item 1")
    assert dict(zip(more["label"], more["after"], strict=True)) == pytest.approx(
        dict(zip(found["label"], found["probability"], strict=True))
    )
    assert "item 3" not in fitted.complete(words, 99)["label"]


def test_unknown_words_keep_their_places() -> None:
    place = np.random.default_rng(0).normal(size=(4, 3))
    fitted = window(context=efemb.Window(2, positional=True), position=place)
    p = fitted.parameters
    u = p.rho @ (place[2] * p.alpha[3])  # the second of two words stands behind the gap
    found = fitted.explain(["zebra", "item 3"], "item 0", unknown="skip")
    assert found["contribution"].sum() == pytest.approx(u[0] + p.intercept[0])
    assert len(fitted.complete(["zebra", "item 3"], 99, unknown="skip")) == SIZE - 1


# -- everywhere ---------------------------------------------------------------------------------


def test_functions_are_the_methods() -> None:
    fitted = goods(counts=[3] * 6)
    basket = {"tea": 1, "milk": 2}
    same = [
        (query.similar(fitted, "tea", 2), fitted.similar("tea", 2)),
        (
            query.analogy(fitted, ["tea", "milk"], ["soap"]),
            fitted.analogy(["tea", "milk"], ["soap"]),
        ),
        (query.complements(fitted, "tea"), fitted.complements("tea")),
        (query.substitutes(fitted, "tea"), fitted.substitutes("tea")),
        (query.topics(fitted), fitted.topics()),
        (query.predict(fitted, basket), fitted.predict(basket)),
        (query.complete(fitted, basket), fitted.complete(basket)),
        (query.explain(fitted, basket, "soap"), fitted.explain(basket, "soap")),
        (query.what_if(fitted, basket, "soap"), fitted.what_if(basket, "soap")),
    ]
    for one, two in same:
        assert one == two
        assert len(one) > 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_estimators_and_saved_models_answer_alike(tmp_path: Any) -> None:
    X = np.random.default_rng(0).poisson(0.7, (80, 6)) + 0.0
    X[:, 0] += 1
    data = efemb.Dataset(X, entities=GOODS)
    estimator = efemb.PoissonEmbedding(3, max_iter=3, random_state=0).fit(data)
    estimator.save(tmp_path / "model")
    for other in (estimator.fitted(), efemb.load(tmp_path / "model")):
        for name, args in (
            ("similar", ("tea",)),
            ("complements", ("tea",)),
            ("substitutes", ("tea",)),
            ("pairs", ()),
            ("topics", ()),
            ("predict", (["tea"],)),
            ("complete", (["tea"],)),
            ("explain", (["tea"], "milk")),
            ("what_if", (["tea"], "milk")),
        ):
            assert getattr(estimator, name)(*args) == getattr(other, name)(*args), name


def test_rows_of_numbers_give_conditional_means() -> None:
    fitted = bag("total")
    X = np.eye(SIZE)[:3]
    assert_allclose(fitted.predict(X), fitted.conditional(X))
