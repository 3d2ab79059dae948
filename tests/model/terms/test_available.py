"""Available: items that a store does not carry are not observations, in training and afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

import efemb
from efemb.data import CellTable
from efemb.engine.solvers.choice import make_solver
from efemb.engine.threads import workers
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec

N, T, K = 8, 30, 2
RNG = np.random.default_rng(0)
STORE = RNG.choice(["a", "b"], T).astype(object)
STORE[5] = None
CARRIED = np.ones((2, N))
CARRIED[1, [2, 6]] = 0.0  # store b lacks two items
COUNTS = RNG.poisson(0.8, (T, N)).astype(float)
COUNTS[STORE == "b"] *= CARRIED[1]
COUNTS[3] = 0.0
COUNTS[4] = 0.0
COUNTS[4, 0] = 1.0
ITEMS = [f"i{n}" for n in range(N)]


def trips(carried: Any = CARRIED, values: Any = COUNTS) -> efemb.Dataset:
    table = CellTable(carried, by="store", groups=["a", "b"])
    return efemb.Dataset(
        csr_array(values), entities=ITEMS, rows={"store": STORE}, cells={"available": table}
    )


def value_and_gradient(spec: Spec, data: efemb.Dataset, at: Parameters, solver: str) -> Any:
    space = ParameterSpace(spec, N, 1, 1, K)
    with workers(1) as pool:
        made = make_solver(solver, spec.context.bind(data), spec, pool, dtype=np.float64)
        value, gradient = made.value_and_gradient(space.vectors(at))
    return value, space.pull_back(at, gradient)


@pytest.mark.parametrize("family", ["poisson", "bernoulli"])
@pytest.mark.parametrize("scale", ["none", "items", "total"])
@pytest.mark.parametrize("solver", ["rows", "generic"])
def test_the_objective_is_the_sum_over_available_cells(
    family: str, scale: str, solver: str
) -> None:
    """By the plain loop over cells, and its gradient by finite differences."""
    values = COUNTS if family == "poisson" else (COUNTS > 0).astype(float)
    data = trips(values=values)
    spec = Spec.resolve(
        context=efemb.Basket(scale), family=family, terms=[efemb.Available()]
    ).freeze_terms(data)
    rng = np.random.default_rng(1)
    layout = ParameterSpace(spec, N, 1, 1, K).layout
    at = Parameters.from_named({a.name: rng.normal(0, 0.4, a.shape) for a in layout})

    def loop(p: Parameters) -> float:
        total = 0.0
        for t in range(T):
            for n in range(N):
                if STORE[t] == "b" and not CARRIED[1, n]:
                    continue
                others = [m for m in range(N) if m != n and values[t, m]]
                d = {"none": 1.0, "items": len(others), "total": values[t, others].sum()}[scale]
                context = sum((values[t, m] * p.alpha[m] for m in others), np.zeros(K)) / (d or 1)
                u = p.rho[n] @ context + p.intercept[n]
                x = values[t, n]
                total += x * u - (np.exp(u) if family == "poisson" else np.logaddexp(0, u))
        return total

    value, gradient = value_and_gradient(spec, data, at, solver)
    base = float(spec.family.log_base_measure(values[values > 0]).sum())
    assert value == pytest.approx(loop(at) + base, rel=1e-10)
    for name, array in at.named().items():
        for index in list(np.ndindex(array.shape))[::3]:
            ends = []
            for step in (1e-6, -1e-6):
                moved = at.copy()
                moved.named()[name][index] += step
                ends.append(loop(moved))
            slope = (ends[0] - ends[1]) / 2e-6
            assert gradient.named()[name][index] == pytest.approx(slope, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("make", [efemb.PoissonEmbedding, efemb.CategoricalEmbedding])
def test_what_is_not_available_has_no_share(make: Any, tmp_path: Path) -> None:
    data = trips()
    model = make(K, random_state=0, terms=[efemb.Available()], max_iter=200).fit(data)
    means = model.conditional(data)
    assert (means[np.ix_(STORE == "b", [2, 6])] == 0).all()
    assert (means[np.ix_(STORE == "a", [2, 6])] > 0).all()
    assert (means[5] > 0).all()  # a row without a store
    if make is efemb.CategoricalEmbedding:
        assert_allclose(means.sum(axis=1), 1.0, rtol=1e-5)
    listed = model.complete(["i0"], n=N, store="b")
    share = dict(zip(listed["label"], listed["probability"], strict=True))
    assert share["i2"] == share["i6"] == 0.0
    asked = model.what_if(["i0"], available={"i3": 0}, store="a")
    assert dict(zip(asked["label"], asked["after"], strict=True))["i3"] == 0.0
    model.save(tmp_path / "model")
    assert_array_equal(efemb.load(tmp_path / "model").conditional(data), model.conditional(data))


def test_an_item_that_few_stores_carry_is_not_thought_unpopular() -> None:
    """Its mean where it is carried, not the mean over all stores."""
    rng = np.random.default_rng(2)
    store = np.repeat(["a", "b"], 400)
    values = rng.poisson(0.5, (800, 4)).astype(float)
    values[store == "b", 3] = 0.0
    table = CellTable([[1, 1, 1, 1], [1, 1, 1, 0]], by="store", groups=["a", "b"])
    data = efemb.Dataset(csr_array(values), rows={"store": store}, cells={"available": table})
    model = efemb.PoissonEmbedding(1, random_state=0, terms=[efemb.Available()]).fit(data)
    mine = (store == "a") & values.any(axis=1)  # a fit leaves empty rows out
    mean = model.conditional(data)[mine, 3].mean()
    assert mean == pytest.approx(values[mine, 3].mean(), abs=0.05)
    assert (model.conditional(data)[store == "b", 3] == 0).all()


def test_units_by_group() -> None:
    table = CellTable.total(trips(), by="store")
    for code, store in enumerate(table.groups):
        assert_allclose(table.values[code], COUNTS[store == STORE].sum(axis=0))


def test_contradictions_are_refused() -> None:
    wrong = CARRIED.copy()
    wrong[:, 0] = 0.0
    with pytest.raises(efemb.DataError, match=r"holds entity 'i0'.*not available in its store"):
        efemb.PoissonEmbedding(K, terms=[efemb.Available()]).fit(trips(wrong))
    with pytest.raises(efemb.ParameterError, match="a family whose mean can be 0"):
        efemb.Embedding(
            K, family="gaussian", context=efemb.Basket("none"), terms=[efemb.Available()]
        ).fit(trips())
    with pytest.raises(efemb.ParameterError, match="a family whose mean can be 0"):
        efemb.PoissonEmbedding(K, link="softplus", terms=[efemb.Available()]).fit(trips())
    with pytest.raises(efemb.DataError, match="needs the cell table 'carried'"):
        efemb.PoissonEmbedding(K, terms=[efemb.Available("carried")]).fit(trips())
    with pytest.raises(efemb.DataError, match="missing in every row"):
        CellTable.total(trips()._replace(COUNTS, rows={"store": [None] * T}, cells={}), by="store")
