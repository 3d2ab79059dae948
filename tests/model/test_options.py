"""Ingredients store options, print themselves, compare, and reject unknown options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import efemb
from efemb.engine.optimizers.first_order import Optimizer
from efemb.model.combine import Combine
from efemb.model.contexts import Context
from efemb.model.families import Family
from efemb.model.ingredient import Ingredient
from efemb.model.links import Link
from efemb.model.priors import Prior
from efemb.model.structures import Structure
from efemb.model.structures.dynamic import Dynamic
from efemb.model.structures.grouped import Grouped
from efemb.model.zeros import Zeros

KINDS = (Combine, Context, Family, Link, Optimizer, Prior, Structure, Zeros)
NEEDS_OPTIONS: dict[str, Ingredient] = {
    "explicit": efemb.Explicit([0, 0, 0], []),
    "dynamic": Dynamic("week"),
    "featured": efemb.Featured(["brand"]),
    "grouped": Grouped("shop"),
    "graph": efemb.Graph(sparse.csr_array(np.eye(3)[[1, 2, 0]])),
    "tree": efemb.Tree(["department"]),
    "mixed": efemb.Mixed({"visits": "poisson", "age": efemb.Gaussian(2.0)}),
}
MEMBERS = [(kind, name) for kind in KINDS for name in kind.choices()]
SAID = {
    Combine: ["linear", "reverse"],
    Context: ["basket", "explicit", "graph", "lagged", "neighbors", "window"],
    Family: [
        "bernoulli",
        "categorical",
        "gaussian",
        "mixed",
        "negative-binomial",
        "nominal",
        "poisson",
        "zero-inflated",
    ],
    Link: ["identity", "log", "log-softplus", "softplus"],
    Optimizer: ["adagrad", "adam", "lbfgs", "sgd"],
    Prior: ["half-normal", "log-normal", "normal"],
    Structure: ["dynamic", "featured", "grouped", "per-entity", "shared", "tied", "tree"],
    Zeros: [
        "all",
        "hierarchical",
        "negative-sampling",
        "noise-contrastive",
        "sampled",
        "sampled-softmax",
    ],
}


def member(kind: type[Ingredient], name: str) -> Ingredient:
    return NEEDS_OPTIONS[name] if name in NEEDS_OPTIONS else kind.resolve(name)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_names_are_the_ones_a_user_would_type(kind: type[Ingredient]) -> None:
    assert list(kind.choices()) == SAID[kind]


@pytest.mark.parametrize(("kind", "name"), MEMBERS)
def test_options_are_stored_and_given_back(kind: type[Ingredient], name: str) -> None:
    found = member(kind, name)
    params = found.get_params(deep=False)
    assert list(params) == found.option_names()
    again = type(found)(**params)
    assert again == found
    assert all(again.get_params(deep=False)[key] is value for key, value in params.items())
    assert clone(found) == found
    assert clone(found) is not found


@pytest.mark.parametrize(("kind", "name"), [m for m in MEMBERS if m[1] not in NEEDS_OPTIONS])
def test_repr_is_the_code_that_builds_it(kind: type[Ingredient], name: str) -> None:
    found = member(kind, name)
    assert repr(found) == f"{type(found).__name__}()"
    assert eval(repr(found), {type(found).__name__: type(found)}) == found


@pytest.mark.parametrize(
    "found",
    [
        efemb.Gaussian("learned"),
        efemb.LogNormal(0.5, -3),
        efemb.Sampled(10, "sqrt", 0.3),
        efemb.Sampled(10, per="row"),
        efemb.Neighbors(3, scale="items"),
        efemb.Lagged((-2, 1), of=efemb.Neighbors(4), shared=True),
        efemb.engine.optimizers.Adam(0.3, beta1=0.8),
    ],
)
def test_repr_shows_what_differs_from_the_defaults(found: Ingredient) -> None:
    names = {type(found).__name__: type(found), "Neighbors": efemb.Neighbors}
    assert eval(repr(found), names) == found
    assert found != type(found)()


@pytest.mark.parametrize(("kind", "name"), MEMBERS)
def test_unknown_options_list_the_known_ones(kind: type[Ingredient], name: str) -> None:
    found = member(kind, name)
    with pytest.raises(efemb.ParameterError, match="has no option 'nonsense'"):
        found.set_params(nonsense=1)


def test_set_params_reaches_nested_ingredients() -> None:
    lagged = efemb.Lagged(of=efemb.Neighbors(3))
    assert lagged.get_params()["of__k"] == 3
    assert lagged.set_params(of__k=7, shared=True) is lagged
    assert lagged.of == efemb.Neighbors(7)
    assert lagged.shared is True
    both = efemb.Neighbors(2) + lagged
    both.set_params(left__k=5, right__of__k=9)
    assert both == efemb.Neighbors(5) + efemb.Lagged(of=efemb.Neighbors(9), shared=True)


def test_an_option_of_an_option_that_is_missing_is_refused() -> None:
    with pytest.raises(efemb.EfembError, match="of"):
        efemb.Lagged().set_params(of__k=3)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_unknown_names_list_the_choices_and_the_nearest(kind: type[Ingredient]) -> None:
    right = SAID[kind][0]
    with pytest.raises(efemb.ParameterError) as caught:
        kind.resolve(right + "s")
    message = str(caught.value)
    assert f"did you mean {right!r}?" in message
    assert all(name in message for name in SAID[kind])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("value", [3, 1.5, object(), ("a",)], ids=range(4))
def test_what_is_neither_object_nor_name_is_a_type_error(
    kind: type[Ingredient], value: Any
) -> None:
    with pytest.raises(efemb.InputTypeError, match="must be a"):
        kind.resolve(value)


def test_an_object_of_another_kind_is_refused() -> None:
    with pytest.raises(efemb.InputTypeError, match="family must be"):
        Family.resolve(efemb.Normal())


@pytest.mark.parametrize("name", sorted(NEEDS_OPTIONS))
def test_a_name_that_needs_options_says_so(name: str) -> None:
    kind = next(kind for kind, member in MEMBERS if member == name)
    with pytest.raises(efemb.ParameterError, match="needs options"):
        kind.resolve(name)


def test_equality_is_of_class_and_options() -> None:
    assert efemb.Normal(2.0) == efemb.Normal(2)
    assert efemb.Normal(2.0) != efemb.HalfNormal(2.0)
    assert efemb.Neighbors(positions=np.zeros((2, 1))) != efemb.Neighbors(positions=np.ones((2, 1)))
    assert efemb.Neighbors(positions=np.zeros((2, 1))) == efemb.Neighbors(
        positions=np.zeros((2, 1))
    )
    assert efemb.Normal() != "normal"
    with pytest.raises(TypeError, match="unhashable"):
        hash(efemb.Normal())
