"""User-defined combinations: a handwritten inner product is the linear model."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

import efemb
from efemb.checks import check_combine
from efemb.engine.solvers.choice import choose_solver, make_solver
from efemb.engine.threads import workers
from efemb.errors import InputTypeError, ParameterError
from efemb.model.combine import Combine, Linear, Reverse
from efemb.model.contexts import Context
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec

Array = Any
T, N, K = 9, 5, 3
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(0.9, (T, N)).astype(float)
COUNTS[0], COUNTS[1, 1:], COUNTS[1, 0] = 0, 0, 2
ROWS = {"household": np.array(list("abcabcabc"))}
LABELS = ["bread", "milk", "eggs", "tea", "beer"]
DATA = efemb.Dataset(COUNTS, entities=LABELS, rows=ROWS)
CONTEXTS: dict[str, Context] = {
    "basket none": efemb.Basket("none"),
    "basket items": efemb.Basket("items"),
    "basket total": efemb.Basket("total"),
    "graph": efemb.Graph(np.tri(N, k=-1)),
    "lagged": efemb.Lagged([1], include_self=True),
    "explicit": efemb.Explicit(np.arange(T * N + 1), (np.arange(T * N) + 1) % (T * N)),
    "sum": efemb.Basket("items") + efemb.Graph(np.tri(N, k=-1)),
}


class ByHand(Combine):
    """The inner product, without declaring itself as one."""

    def value(self, target: Array, context: Array) -> Array:
        return (target * context).sum(axis=1)

    def pull_back(self, target: Array, context: Array, slope: Array) -> tuple[Array, Array]:
        return slope[:, None] * context, slope[:, None] * target


class Curved(Combine):
    """u = sum of tanh(target) context (1 + context / 5)."""

    def __init__(self, share: float = 0.2) -> None:
        self.share = share

    def value(self, target: Array, context: Array) -> Array:
        return (np.tanh(target) * context * (1 + self.share * context)).sum(axis=1)

    def pull_back(self, target: Array, context: Array, slope: Array) -> tuple[Array, Array]:
        bent = np.tanh(target)
        d_target = (1 - bent**2) * context * (1 + self.share * context)
        return slope[:, None] * d_target, slope[:, None] * bent * (1 + 2 * self.share * context)


class Wrong(ByHand):
    """Its pull-back forgets the slope."""

    def pull_back(self, target: Array, context: Array, slope: Array) -> tuple[Array, Array]:
        return context.copy(), target.copy()


def spec_of(combine: Any, context: Context, terms: Any = ()) -> Spec:
    spec = Spec.resolve(context=context, family="poisson", combine=combine, terms=terms)
    return spec.freeze_terms(DATA)


def evaluate(spec: Spec, solver: str, seed: int = 1) -> tuple[Any, Any, Any, Any]:
    bound = spec.context.bind(DATA)
    space = ParameterSpace(spec, N, bound.n_slots, 1, K)
    rng = np.random.default_rng(seed)
    theta = efemb.model.parameters.Parameters.from_named(
        {array.name: rng.normal(0, 0.4, array.shape) for array in space.layout}
    )
    with workers(1) as pool:
        made = make_solver(solver, bound, spec, pool, dtype=np.float64)

        def value(parameters: Any) -> float:
            return made.value_and_gradient(space.vectors(parameters))[0]

        total, slopes = made.value_and_gradient(space.vectors(theta))
        return total, space.pull_back(theta, slopes), value, theta


@pytest.mark.parametrize("terms", [(), (efemb.RowVectors("household", 2),)], ids=["plain", "terms"])
@pytest.mark.parametrize("name", CONTEXTS)
def test_an_inner_product_by_hand_is_the_linear_model(name: str, terms: Any) -> None:
    by_hand, linear = (
        evaluate(spec_of(combine, CONTEXTS[name], terms), "generic")
        for combine in (ByHand(), "linear")
    )
    assert by_hand[0] == pytest.approx(linear[0], rel=1e-12)
    for array, same in zip(by_hand[1].arrays(), linear[1].arrays(), strict=True):
        assert_allclose(array, same, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("terms", [(), (efemb.RowVectors("household", 2),)], ids=["plain", "terms"])
@pytest.mark.parametrize("name", CONTEXTS)
def test_gradients_are_finite_differences(name: str, terms: Any) -> None:
    _, gradient, value, theta = evaluate(spec_of(Curved(), CONTEXTS[name], terms), "generic")
    for array, slope in zip(theta.arrays(), gradient.arrays(), strict=True):
        for place in [(0,) * array.ndim, tuple(size - 1 for size in array.shape)]:
            ends = []
            for step in (1e-6, -1e-6):
                array[place] += step
                ends.append(value(theta))
                array[place] -= step
            numeric = (ends[0] - ends[1]) / 2e-6
            assert slope[place] == pytest.approx(numeric, rel=1e-5, abs=1e-6)


def fit(combine: Any, context: Any = "basket", **options: Any) -> efemb.Embedding:
    model = efemb.Embedding(
        2, combine=combine, context=context, family="poisson", random_state=0, max_iter=8,
        solver="generic", dtype="float64", early_stopping=False, **options,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(DATA)


def test_fits_scores_and_predictions_are_those_of_the_linear_model() -> None:
    by_hand, linear = fit(ByHand()), fit("linear")
    assert_allclose(by_hand.rho_, linear.rho_, rtol=1e-9)
    assert by_hand.score(DATA) == pytest.approx(linear.score(DATA), rel=1e-9)
    assert_allclose(by_hand.conditional(DATA), linear.conditional(DATA), rtol=1e-9)
    cells = [
        np.concatenate([block for _, block in model.log_means(DATA, [2, 3], [0, 1])])
        for model in (by_hand, linear)
    ]
    assert_allclose(*cells, rtol=1e-9)
    asked = [model.complete({"bread": 1}, n=3)["mean"] for model in (by_hand, linear)]
    assert_allclose(*asked, rtol=1e-9)


def test_models_with_it_are_saved_once_registered(tmp_path: Any) -> None:
    efemb.storage.register(Curved)
    model = fit(Curved(0.1), terms=[efemb.RowVectors("household", 2)])
    model.save(tmp_path / "model")
    loaded = efemb.load(tmp_path / "model")
    assert loaded.spec.combine == Curved(0.1)
    assert loaded.score(DATA) == model.score(DATA)


@pytest.mark.parametrize("combine", [Linear(), Reverse(), ByHand(), Curved()])
def test_checks_pass(combine: Combine) -> None:
    check_combine(combine)


def test_checks_find_what_is_wrong() -> None:
    with pytest.raises(AssertionError, match="pull_back is not the derivative"):
        check_combine(Wrong())


def test_a_subclass_of_the_linear_model_claims_no_inner_product() -> None:
    class Halved(Linear):
        def value(self, target: Array, context: Array) -> Array:
            return 0.5 * super().value(target, context)

    assert not Halved().inner_product
    spec = Spec.resolve(context="basket", family="poisson", combine=Halved())
    assert choose_solver("auto", spec.context.bind(DATA), spec) == "generic"


def test_broken_contracts_are_refused_before_the_fit() -> None:
    class OneNumber(ByHand):
        def value(self, target: Array, context: Array) -> Array:
            return np.sum(target * context)

    class OneGradient(ByHand):
        def pull_back(self, target: Array, context: Array, slope: Array) -> Any:
            return context

    class Fails(ByHand):
        def value(self, target: Array, context: Array) -> Array:
            raise ValueError("no")

    for combine, match in (
        (OneNumber(), "value must return an array of shape"),
        (OneGradient(), "gradients in target and context"),
        (Fails(), "fails on small arrays"),
    ):
        with pytest.raises(InputTypeError, match=match):
            fit(combine)


def test_what_it_does_not_go_with_is_refused() -> None:
    with pytest.raises(ParameterError, match="cannot be combined with link"):
        Spec.resolve(context="basket", family="poisson", combine=ByHand(), link="log", prior=None)
    with pytest.raises(ParameterError, match="cannot be combined with text"):
        Spec.resolve(context=efemb.Window(2), family="bernoulli", combine=ByHand())
    with pytest.raises(ParameterError, match="inner products only"):
        efemb.Embedding(2, combine=ByHand(), context="basket", family="poisson", solver="rows").fit(
            DATA
        )
    model = fit(ByHand())
    for ask in (
        lambda: model.complements("bread"),
        lambda: model.explain({"bread": 1}, "milk"),
        lambda: model.laplace(DATA),
    ):
        with pytest.raises(ParameterError, match="inner product"):
            ask()
