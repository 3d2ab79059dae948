"""Sums of a Basket with lists run by `rows`; the `generic` solver is the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import efemb
from efemb.engine.solvers.choice import choose_solver, make_solver
from efemb.engine.threads import workers
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec

T, N, K = 30, 9, 2
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(0.5, (T, N)).astype(float)
COUNTS[3] = 0.0  # an empty row
COUNTS[4] = np.eye(N)[2]  # a row of one item
GRAPH = (RNG.random((N, N)) < 0.3) & ~np.eye(N, dtype=bool)
SUMS: dict[str, Any] = {
    "earlier baskets": lambda scale: efemb.Basket("total") + efemb.Lagged((-1, -2), scale=scale),
    "shared vectors": lambda scale: (
        efemb.Basket("items") + efemb.Lagged([-1], of=efemb.Graph(GRAPH), shared=True, scale=scale)
    ),
    "graph": lambda scale: efemb.Graph(GRAPH, scale=scale) + efemb.Basket("none"),
    "three": lambda scale: (
        efemb.Basket("total", binary=True)
        + efemb.Graph(GRAPH, scale="items")
        + efemb.Lagged([1, -1], scale=scale, binary=True)
    ),
}
RECORDINGS = np.repeat([0, 1, 2], T // 3)
DATA = efemb.Dataset(csr_array(COUNTS), recordings=RECORDINGS, rows={"shop": ["a", "b"] * 15})


def evaluate(spec: Spec, name: str, at: Parameters, rows: Any, **options: Any) -> Any:
    bound = spec.context.bind(DATA)
    space = ParameterSpace(spec, N, bound.n_slots, 1, K)
    with workers(1) as pool:
        solver = make_solver(name, bound, spec, pool, dtype=np.float64, **options)
        value, gradient = solver.value_and_gradient(space.vectors(at), rows)
        return value, space.pull_back(at, gradient), solver


@pytest.mark.quick_one_in(5)
@pytest.mark.parametrize("rows", [None, np.array([3, 4, 0, 9, 29, 10])], ids=["all", "some"])
@pytest.mark.parametrize("family", ["poisson", "bernoulli", "gaussian", "negative-binomial"])
@pytest.mark.parametrize("scale", ["none", "items", "total"])
@pytest.mark.parametrize("name", SUMS)
def test_solver_rows_is_solver_generic(name: str, scale: str, family: str, rows: Any) -> None:
    if family == "bernoulli":
        data = efemb.Dataset(csr_array((COUNTS > 0).astype(float)), recordings=RECORDINGS)
    else:
        data = DATA
    spec = Spec.resolve(context=SUMS[name](scale), family=family, zeros=efemb.All(0.5))
    bound = spec.context.bind(data)
    assert choose_solver("auto", bound, spec) == "rows"
    space = ParameterSpace(spec, N, bound.n_slots, 1, K)
    at = Parameters.from_named({a.name: RNG.normal(0.0, 0.4, a.shape) for a in space.layout})
    weight, results = RNG.random(T), []
    for kind in ("rows", "generic"):
        with workers(1) as pool:
            solver = make_solver(kind, bound, spec, pool, dtype=np.float64, row_weight=weight)
            value, gradient = solver.value_and_gradient(space.vectors(at), rows)
            results.append((value, space.pull_back(at, gradient), solver.total_weight))
    (value, fast, total), (other, exact, same) = results
    assert value == pytest.approx(other, rel=1e-10)
    assert total == pytest.approx(same, rel=1e-10)
    for key, array in exact.named().items():
        assert_allclose(fast.named()[key], array, rtol=1e-8, atol=1e-9, err_msg=key)


@pytest.mark.parametrize(
    "further",
    [
        {"terms": [efemb.RowVectors("shop", 2)]},
        {"terms": [efemb.Offset("shop_size")]},
        {"structure": efemb.Grouped("shop", min_rows=2)},
    ],
    ids=["row vectors", "offsets of cells", "groups"],
)
def test_sums_take_terms_and_groups(further: Any) -> None:
    size = {"shop": DATA.rows["shop"], "shop_size": RNG.normal(size=T)}
    data = efemb.Dataset(DATA.values, recordings=RECORDINGS, rows=size)
    context = SUMS["earlier baskets"]("none")
    spec = Spec.resolve(context=context, family="poisson", **further).freeze_terms(data)
    bound = spec.context.bind(data)
    space = ParameterSpace(spec, N, bound.n_slots, 1, K)
    at = Parameters.from_named({a.name: RNG.normal(0.0, 0.4, a.shape) for a in space.layout})
    results = []
    for kind in ("rows", "generic"):
        with workers(1) as pool:
            solver = make_solver(kind, bound, spec, pool, dtype=np.float64)
            value, gradient = solver.value_and_gradient(space.vectors(at))
            results.append((value, space.pull_back(at, gradient)))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-10)
    for key, array in results[1][1].named().items():
        assert_allclose(results[0][1].named()[key], array, rtol=1e-8, atol=1e-9, err_msg=key)


@pytest.mark.slow
def test_the_expectation_of_sampled_zeros_is_the_exact_gradient() -> None:
    context = SUMS["graph"]("none")
    spec = Spec.resolve(context=context, family="poisson", zeros=efemb.Sampled(4))
    bound = spec.context.bind(DATA)
    space = ParameterSpace(spec, N, bound.n_slots, 1, K)
    at = Parameters.from_named({a.name: RNG.normal(0.0, 0.4, a.shape) for a in space.layout})
    with workers(1) as pool:
        solver = make_solver("rows", bound, spec, pool, dtype=np.float64)
        vectors, n = space.vectors(at), 1500
        exact = space.pull_back(at, solver.value_and_gradient(vectors, exact=True)[1])
        drawn = [space.pull_back(at, solver.value_and_gradient(vectors)[1]) for _ in range(n)]
    for key, array in exact.named().items():
        mean = np.mean([one.named()[key] for one in drawn], axis=0)
        size = max(float(np.abs(array).max()), 1.0)
        assert_allclose(mean, array, atol=0.08 * size, err_msg=key)


def test_a_fit_learns_from_earlier_baskets_and_saves(tmp_path: Any) -> None:
    """Households buy an item again in the next trip."""
    rng = np.random.default_rng(3)
    counts = np.zeros((400, 8))
    for t in range(400):
        fresh = rng.random(8) < 0.15
        again = (counts[t - 1] > 0) & (rng.random(8) < 0.8) if t % 10 else np.zeros(8, dtype=bool)
        counts[t] = fresh | again
    data = efemb.Dataset(csr_array(counts), recordings=np.arange(400) // 10)
    context = efemb.Basket() + efemb.Lagged((-1,))
    options: dict[str, Any] = {"family": "bernoulli", "random_state": 0}
    plain = efemb.Embedding(3, context="basket", **options).fit(data)
    model = efemb.Embedding(3, context=context, **options).fit(data)
    assert (model.solver_, plain.solver_) == ("rows", "rows")
    repeat = np.flatnonzero(np.arange(400) % 10)
    gain = [
        np.log(np.where(data.values.toarray() > 0, p, 1 - p))[repeat].mean()
        for p in (model.conditional(data), plain.conditional(data))
    ]
    assert gain[0] > gain[1] + 0.05
    model.save(tmp_path / "model")
    assert_allclose(efemb.load(tmp_path / "model").score(data), model.score(data), rtol=1e-6)


def test_missing_values_and_softmax_are_left_to_others() -> None:
    missing = COUNTS.copy()
    missing[2, 3] = np.nan
    context = SUMS["graph"]("none")
    spec = Spec.resolve(context=context, family="gaussian")
    assert choose_solver("auto", context.bind(efemb.Dataset(missing)), spec) == "generic"
    with pytest.raises(efemb.ParameterError, match="categorical family needs a row context"):
        efemb.Embedding(2, family="categorical", context=context).fit(COUNTS)
