"""The mathematics of the page: its answers are those of Python, for every kind of model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import efemb
from efemb.fitted.embedding import FittedEmbedding
from efemb.model.parameters import Parameters
from efemb.model.spec import Spec
from explore.scenes import (
    by_kids,
    dated_words,
    fit,
    mixture,
    plain,
    recording,
    trips,
    weekly,
    with_terms,
    words,
)

pytestmark = pytest.mark.browser


def shop(n: int, k: int, seed: int = 0) -> FittedEmbedding:
    """A model of random vectors."""
    rng = np.random.default_rng(seed)
    rho, alpha = rng.normal(size=(2, n, k)).astype(np.float32) / k**0.25
    counts = np.sort(rng.integers(1, 5000, n))[::-1].astype(float)
    labels = [f"product {number}" for number in range(n)]
    return FittedEmbedding(
        Parameters(rho, alpha, rng.normal(-3, 1, n).astype(np.float32)),
        Spec.resolve(context="basket", family="poisson"),
        efemb.Vocabulary(labels, counts=counts),
    )


def ask(page: Any, question: str, **body: Any) -> Any:
    """A question to the page, which takes the bodies that its server takes."""
    return page.evaluate("([question, body]) => explorer.ask(question, body)", [question, body])


def codes(rows: Any) -> list[int]:
    return [row["code"] for row in rows]


def labels_to_codes(model: Any, table: Any) -> list[int]:
    return [model.fitted().entities.index_of(label) for label in table["label"]]


def relations(model: Any, question: str, label: str, data: Any) -> Any:
    """A table as a page lists it: only items that become more likely, or that share contexts."""
    if question == "complements":
        table = model.complements(label, 10, data=data)
        return table.to_pandas()[lambda frame: frame["score"] > 0]
    table = model.substitutes(label, 10, apart=True, data=data)
    return table.to_pandas()[lambda frame: frame["kind"] != "apart"]


def test_the_same_ten_for_a_thousand_items(visit: Callable, written: Callable) -> None:
    """3,000 items in 50 dimensions; similar by rho and alpha, and complements, in order."""
    model = shop(3000, 50)
    page = visit(written(model, methods="pca")).open().page
    items = np.random.default_rng(1).choice(3000, 1000, replace=False).tolist()
    names = [f"product {item}" for item in items]
    listed = [
        ("similar", {"space": "rho"}, model.similar(names, 10)),
        ("similar", {"space": "alpha"}, model.similar(names, 10, which="alpha")),
        ("complements", {}, model.complements(names, 10)),
    ]
    script = """async ([question, body, items]) => {
      const answers = await Promise.all(items.map(item => explorer.ask(question, {...body, item})));
      return answers.map(rows => rows.map(row => row.code));
    }"""
    for question, body, table in listed:
        answers = page.evaluate(script, [question, body, items])
        expected = np.reshape(labels_to_codes(model, table), (1000, 10))
        np.testing.assert_array_equal(answers, expected)


@pytest.mark.parametrize("kind", ["poisson", "bernoulli", "categorical", "additive"])
def test_baskets_of_every_family(visit: Callable, written: Callable, kind: str) -> None:
    model = fit(kind)
    page = visit(written(model, methods="pca")).open().page
    labels = list(trips().entities)
    for basket in ([[3, 1]], [[3, 1], [13, 1], [20, 1]], [[12, 3], [5, 1]]):
        amounts = {labels[code]: amount for code, amount in basket}
        table = model.complete(amounts, 10)
        rows = ask(page, "complete", basket=basket, row={})
        assert codes(rows) == labels_to_codes(model, table)
        for name in set(table.columns) - {"label"}:
            np.testing.assert_allclose([row[name] for row in rows], table[name], rtol=1e-4)
        target = codes(rows)[0]
        parts = ask(page, "explain", basket=basket, item=target, row={})
        explained = model.explain(amounts, labels[target])
        assert [part["term"] for part in parts] == [
            str(term)[:10_000] for term in explained["term"]
        ]
        np.testing.assert_allclose(
            [part["contribution"] for part in parts],
            explained["contribution"],
            rtol=1e-3,
            atol=1e-5,
        )


@pytest.mark.parametrize("context", [efemb.Basket("items"), efemb.Basket("none", binary=True)])
def test_other_scales_of_the_context(visit: Callable, written: Callable, context: Any) -> None:
    model = fit(context=context)
    page = visit(written(model, methods="pca")).open().page
    labels = list(trips().entities)
    table = model.complete({labels[12]: 3, labels[5]: 1}, 10)
    rows = ask(page, "complete", basket=[[12, 3], [5, 1]], row={})
    assert codes(rows) == labels_to_codes(model, table)
    np.testing.assert_allclose(
        [row["probability"] for row in rows], table["probability"], rtol=1e-4
    )


def test_vectors_of_a_mixture(visit: Callable, written: Callable) -> None:
    """The page answers by the vectors, whose contexts have a pseudo-count, and says so."""
    one = visit(written(mixture(), methods="pca")).open()
    labels, vectors = list(trips().entities), mixture().fitted()
    table = vectors.complete({labels[12]: 3, labels[5]: 1}, 10)
    rows = ask(one.page, "complete", basket=[[12, 3], [5, 1]], row={})
    assert codes(rows) == labels_to_codes(vectors, table)
    np.testing.assert_allclose(
        [row["probability"] for row in rows], table["probability"], rtol=1e-4
    )
    one.page.evaluate("explorer.addToBasket(5)")
    one.settle()
    assert "those of the vectors alone" in one.page.inner_text("#panel")


@pytest.mark.parametrize("data", [None, "trips"])
def test_relations_with_and_without_data(visit: Callable, written: Callable, data: Any) -> None:
    model, evidence = plain(), None if data is None else trips()
    page = visit(written(model, data=evidence, methods="pca")).open().page
    for item, label in enumerate(trips().entities):
        for question in ("complements", "substitutes"):
            table = relations(model, question, label, evidence)
            rows = ask(page, question, item=item)
            assert codes(rows) == labels_to_codes(model, table), (question, label)
            for name in set(table.columns) & {
                "score",
                "lift",
                "lift_low",
                "lift_high",
                "together",
            }:
                np.testing.assert_allclose(
                    [row[name] for row in rows], table[name], rtol=1e-3, atol=1e-5
                )
            if "kind" in table.columns:
                assert [row["kind"] for row in rows] == table["kind"].tolist()


def test_terms_change_the_answer(visit: Callable, written: Callable) -> None:
    model, labels = with_terms(), list(trips().entities)
    page = visit(written(model, methods="pca")).open().page
    for row in ({}, {"household": 4}, {"price": 3.1}, {"household": 0, "price": 1.2}):
        table = model.complete({labels[3]: 1}, 10, **row)
        rows = ask(page, "complete", basket=[[3, 1]], row=row)
        assert codes(rows) == labels_to_codes(model, table)
        np.testing.assert_allclose(
            [r["probability"] for r in rows], table["probability"], rtol=1e-3
        )
        parts = ask(page, "explain", basket=[[3, 1]], item=7, row=row)
        explained = model.explain({labels[3]: 1}, labels[7], **row)
        known = {part["term"]: part["contribution"] for part in parts}
        for one in explained:
            # A term without a value adds what the prior mean adds: nothing.
            assert known.get(str(one["term"]), 0.0) == pytest.approx(one["contribution"], abs=1e-4)


def test_words_and_analogies(visit: Callable, written: Callable) -> None:
    model = words()
    names = list(model.fitted().entities)
    page = visit(written(model, methods="pca")).open().page
    rows = ask(page, "analogy", positive=[1, 2], negative=[3])
    table = model.analogy([names[1], names[2]], [names[3]])
    assert codes(rows) == labels_to_codes(model, table)
    rows = ask(page, "complete", basket=[[1, 2], [4, 1]], row={})
    table = model.complete([names[1], names[1], names[4]])
    assert codes(rows) == labels_to_codes(model, table)
    np.testing.assert_allclose(
        [row["probability"] for row in rows], table["probability"], rtol=1e-3
    )


def test_weights_of_neurons(visit: Callable, written: Callable) -> None:
    model, frames = recording()
    page = visit(written(model, data=frames, methods="pca")).open().page
    table = model.weights(3)
    rows = ask(page, "weights", item=3)
    assert codes(rows) == table["neighbor"].tolist()
    np.testing.assert_allclose([row["weight"] for row in rows], table["weight"], rtol=3e-4)


@pytest.mark.parametrize("make", [weekly, by_kids, dated_words])
def test_slices_answer_like_their_models(visit: Callable, written: Callable, make: Any) -> None:
    """The page has the vectors of every group of rows, and follows items through time."""
    model, data = make()
    page = visit(written(model, data=data, methods="pca")).open().page
    labels, names = model.fitted().spec.structure.labels, list(model.fitted().entities)
    column = model.fitted().spec.structure.columns[0]
    evidence = None if hasattr(data, "tokens") else data
    for group, label in enumerate(labels):
        of_group = model.of_group(label)
        for item in (0, 3, 17):
            rows = ask(page, "similar", item=item, space="rho", group=group)
            assert codes(rows) == labels_to_codes(model, of_group.similar(names[item], 10))
            for question in ("complements", "substitutes"):
                table = relations(of_group, question, names[item], evidence)
                rows = ask(page, question, item=item, group=group)
                assert codes(rows) == labels_to_codes(model, table), (question, label, item)
        context = [names[3]] if evidence is None else {names[3]: 1}
        row = {column: label}
        table = model.complete(context, 10, **row)
        rows = ask(page, "complete", basket=[[3, 1]], row=row)
        assert codes(rows) == labels_to_codes(model, table)
        parts = ask(page, "explain", basket=[[3, 1]], item=7, row=row)
        explained = model.explain(context, names[7], **row)
        assert sorted(part["contribution"] for part in parts) == pytest.approx(
            sorted(explained["contribution"]), abs=1e-4
        )


def test_a_path_through_time(visit: Callable, written: Callable) -> None:
    model, data = weekly()
    page = visit(written(model, data=data, methods="pca")).open().page
    names = list(model.fitted().entities)
    for item in (0, 9):
        path = ask(page, "trajectory", item=item)
        table = model.trajectory(names[item])
        similarity = [step["similarity"] for step in path]
        np.testing.assert_allclose(similarity, table["similarity"], rtol=1e-3)
        assert [names[step["nearest"]] for step in path] == table["nearest"].tolist()
