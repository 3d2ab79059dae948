"""Questions to models with terms: values of row columns, their prior means, explanations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.fitted.embedding import FittedEmbedding
from efemb.model.parameters import Parameters
from efemb.model.predictor import Predictor
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from model.terms.samples import TERMS, cells_of, rows_of

N, T, K = 6, 20, 3
LABELS = [f"item {i}" for i in range(N)]
COUNTS = np.random.default_rng(0).poisson(0.7, (T, N)).astype(float)
SCALES = ("total", "items", "none")
ROW: dict[str, Any] = {"user": "bob", "temperature": 21.5, "week": 2.0}
BASKET = {"item 1": 2.0, "item 4": 1.0}


def with_terms(names: Any, scale: str = "total", family: str = "poisson") -> FittedEmbedding:
    """A model with parameters drawn at random."""
    data = efemb.Dataset(COUNTS, entities=LABELS, rows=rows_of(T), cells=cells_of(N))
    terms = [TERMS[name]() for name in names]
    spec = Spec.resolve(context=efemb.Basket(scale), family=family, terms=terms).freeze_terms(data)
    rng = np.random.default_rng(1)
    layout = ParameterSpace(spec, N, 1, 1, K).layout
    arrays = {array.name: rng.normal(0.0, 0.5, array.shape) for array in layout}
    return FittedEmbedding(Parameters.from_named(arrays), spec, efemb.Vocabulary(LABELS))


def row_data(**columns: Any) -> efemb.Dataset:
    values = np.array([[BASKET.get(label, 0.0) for label in LABELS]])
    rows = {name: [value] for name, value in {**ROW, **columns}.items()}
    return efemb.Dataset(values, entities=LABELS, rows=rows)


def means(table: efemb.Table) -> dict[str, float]:
    return dict(zip(table["label"], table["mean"], strict=True))


@pytest.mark.parametrize("family", ["poisson", "bernoulli"])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("term", TERMS)
def test_values_of_row_columns_are_those_of_the_data(term: str, scale: str, family: str) -> None:
    fitted = with_terms([term], scale, family)
    row = {name: ROW[name] for name in fitted.spec.terms[0].columns}
    expected = dict(zip(LABELS, fitted.conditional(row_data())[0], strict=True))
    found = fitted.predict(BASKET, n=N, **row)
    assert means(found) == pytest.approx(expected)
    added = fitted.complete(BASKET, n=N, **row)
    assert means(added) == pytest.approx({k: v for k, v in expected.items() if k not in BASKET})
    changed = fitted.what_if({"item 1": 2}, add="item 4", **row)
    after = dict(zip(changed["label"], changed["after"], strict=True))
    assert after == pytest.approx(expected)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("names", [[name] for name in TERMS] + [list(TERMS)], ids=str)
def test_explanations_add_up_to_u(names: list[str], scale: str) -> None:
    fitted = with_terms(names, scale)
    columns = [name for term in fitted.spec.terms for name in term.columns]
    row = {name: ROW[name] for name in columns}
    spec, bound, factors = fitted._bind(row_data())
    u = Predictor(factors).cells(spec, bound, np.array([0]))[0]
    for entity, label in enumerate(LABELS):
        found = fitted.explain(BASKET, label, **row)
        assert found["contribution"].sum() == pytest.approx(u[entity], rel=1e-12)
        labels = {term.label for term in fitted.spec.terms}
        members = set(BASKET) - {label}
        # Pairs are listed one by one; a term of pairs without any in this basket is not listed.
        pairs = {term for term in found["term"] if term.startswith("through the pair")}
        listed = set(found["term"]) - pairs | (labels & {"item pairs"})
        assert listed == labels | members | {"(intercept)"}


def test_a_term_contributes_the_product_of_its_two_sides() -> None:
    fitted = with_terms(["row-vectors", "covariate"])
    p, (vectors, covariate) = fitted.parameters, fitted.spec.terms
    found = fitted.explain(BASKET, "item 2", user="bob", temperature=21.5)
    said = dict(zip(found["term"], found["contribution"], strict=True))
    theta = p.terms["user.rows"][list(vectors.groups).index("bob")]
    z = (21.5 - covariate.center) / covariate.scale
    assert said["user"] == pytest.approx(theta @ p.terms["user.entities"][2])
    assert said["temperature"] == pytest.approx(z * p.terms["temperature.coefficients"][2, 0])
    assert said["(intercept)"] == pytest.approx(p.intercept[2])


@pytest.mark.parametrize(
    "term", [term for term in TERMS if with_terms([term]).spec.terms[0].columns]
)
def test_what_is_not_known_counts_as_the_prior_mean(term: str) -> None:
    """Without a value, and with one that is missing, the term adds nothing."""
    fitted = with_terms([term])
    column, label = fitted.spec.terms[0].columns[0], fitted.spec.terms[0].label
    plain = means(fitted.predict(BASKET, n=N))
    for missing in (None, np.nan):
        assert means(fitted.predict(BASKET, n=N, **{column: missing})) == plain
    u = fitted.explain(BASKET, "item 2")
    assert u["contribution"][u["term"].tolist().index(label)] == 0.0


def test_an_unknown_household_is_a_household_without_a_vector() -> None:
    fitted = with_terms(["row-vectors"])
    assert fitted.predict(BASKET, user="stranger") == fitted.predict(BASKET)
    assert fitted.predict(BASKET, user="bob") != fitted.predict(BASKET)


def test_numbers_name_groups_whatever_their_type() -> None:
    data = efemb.Dataset(COUNTS, rows={"household": np.arange(T) % 3})
    model = efemb.PoissonEmbedding(2, random_state=0, max_iter=2)
    with pytest.warns(Warning, match="max_iter"):
        model.set_params(terms=[efemb.RowVectors("household", 2)]).fit(data)
    assert model.complete([0], household=1) == model.complete([0], household=np.int64(1))
    assert model.complete([0], household=1) != model.complete([0], household=2)


def test_a_household_may_have_an_empty_basket() -> None:
    fitted = with_terms(["row-vectors"])
    data = efemb.Dataset(np.zeros((1, N)), entities=LABELS, rows={"user": ["eve"]})
    expected = fitted.conditional(data)[0]
    found = fitted.complete([], n=N, user="eve")
    assert_allclose([means(found)[label] for label in LABELS], expected)
    explained = fitted.explain([], "item 0", user="eve")
    assert np.exp(explained["contribution"].sum()) == pytest.approx(expected[0])
    with pytest.raises(efemb.DataError, match="the context is empty"):
        fitted.complete([])


ASK: dict[str, Any] = {
    "predict": lambda m, **row: m.predict(BASKET, **row),
    "complete": lambda m, **row: m.complete(BASKET, **row),
    "explain": lambda m, **row: m.explain(BASKET, "item 2", **row),
    "what_if": lambda m, **row: m.what_if(BASKET, add="item 2", **row),
}


@pytest.mark.parametrize("question", ASK)
def test_keywords_that_no_term_knows_are_refused(question: str) -> None:
    ask, fitted = ASK[question], with_terms(["row-vectors", "covariate"])
    with pytest.raises(efemb.InputTypeError, match=r"'usr'; did you mean 'user'\?.*temperature"):
        ask(fitted, usr="bob")
    with pytest.raises(efemb.InputTypeError, match=r"'wehre'; did you mean 'where'"):
        ask(fitted, wehre="x")
    with pytest.raises(efemb.InputTypeError, match="user takes a single value"):
        ask(fitted, user=["bob", "eve"])
    with pytest.raises(efemb.DataError, match="needs numbers"):
        ask(fitted, temperature="warm")
    with pytest.raises(efemb.InputTypeError, match="the model has no terms"):
        ask(with_terms([]), user="bob")


def test_options_and_values_go_together() -> None:
    fitted = with_terms(["row-vectors"])
    found = fitted.predict(["item 1"], 2, user="bob", where=["item 3", "item 5"])
    everything = means(fitted.predict(["item 1"], N, user="bob"))
    assert set(found["label"]) == {"item 3", "item 5"}
    assert all(everything[row["label"]] == row["mean"] for row in found)
