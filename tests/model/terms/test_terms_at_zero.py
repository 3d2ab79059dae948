"""A term that is 0 gives the bits of the model without it, whatever visits the observations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

import efemb
from efemb.engine.solvers.choice import make_solver
from efemb.engine.threads import Tuning, workers
from efemb.model.parameters import Parameters
from efemb.model.predictor import Predictor
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.model.terms import Term
from model.terms.samples import TERMS, cells_of, rows_of

K, N, T = 37, 130, 60  # vectors that end within a register of the processor
RNG = np.random.default_rng(2)
COUNTS = RNG.poisson(0.2, (T, N)).astype(float)
COUNTS[3] = 0.0  # an empty row
COUNTS[4] = 2.0 * np.eye(N)[2]  # a row of one item
GRAPH = (RNG.random((N, N)) < 0.03) & ~np.eye(N, dtype=bool)
BINARY = (COUNTS > 0).astype(float)
FAMILIES: dict[str, tuple[Any, Any]] = {
    "poisson": ("poisson", COUNTS),
    "bernoulli": ("bernoulli", BINARY),
    "negative-binomial": (efemb.NegativeBinomial(2.0), COUNTS),
    "gaussian": ("gaussian", COUNTS),
    "zero-inflated": (efemb.ZeroInflated("poisson"), COUNTS),
}
# Further columns of each width, so that sums over them end elsewhere.
SAMPLES: dict[str, Callable[[], Term]] = {
    **TERMS,
    "row-vectors": lambda: efemb.RowVectors("user", 27),
    "offset": lambda: efemb.Offset("nothing"),
}
PAIRS = [(f, t) for f in FAMILIES for t in SAMPLES if (f, t) != ("gaussian", "available")]
SOLVERS: dict[str, dict[str, Any]] = {
    "rows": {},
    "rows, sampled zeros": {"zeros": efemb.Sampled(20)},
    "rows, zeros of each row": {"zeros": efemb.Sampled(20, per="row")},
    "rows, noise": {"zeros": efemb.NegativeSampling(2)},
    "rows, groups": {"structure": efemb.Grouped("user", min_rows=2)},
    "rows, lists": {"context": efemb.Basket("total") + efemb.Graph(GRAPH)},
    "generic": {},
}


def test_every_shipped_term_is_tested() -> None:
    assert set(SAMPLES) == set(Term.choices())


def data_of(values: Any) -> efemb.Dataset:
    rows = {**rows_of(T), "nothing": np.zeros(T)}
    return efemb.Dataset(csr_array(values), rows=rows, cells=cells_of(N))


def check(term: Term, family: Any, values: Any, solver: str, dtype: Any, **options: Any) -> None:
    data = data_of(values)
    given = {"context": efemb.Basket("total"), **options}
    spec = Spec.resolve(family=family, terms=[term], **given).freeze_terms(data)
    plain, bound = replace(spec, terms=()), spec.context.bind(data)
    space, without = (ParameterSpace(each, N, bound.n_slots, 1, K) for each in (spec, plain))
    rng = np.random.default_rng(1)
    arrays = {a.name: rng.normal(0.0, 0.3, a.shape).astype(dtype) for a in without.layout}
    zeros = {a.name: np.zeros(a.shape, dtype) for a in space.layout if a.name not in arrays}
    results = []
    # Small tiles and blocks, whose sizes must not depend on the columns of terms.
    tuning = Tuning(tile_bytes=1 << 15, block_rows=32, stage_rows=64, block_numbers=1 << 14)
    for model, kind, more in ((plain, without, {}), (spec, space, zeros)):
        at = Parameters.from_named({**arrays, **more})
        vectors = kind.vectors(at)
        with workers(1, tuning) as pool:
            made = make_solver(solver, bound, model, pool, dtype=dtype)
            value, slopes = made.value_and_gradient(vectors)
        gradient = kind.pull_back(at, slopes.on_all_rows(vectors)).named()
        results.append((value, gradient, Predictor(vectors).cells(model, bound, np.arange(T))))
    (value, gradient, u), (same, wider, same_u) = results
    assert value == same
    for name in arrays:
        assert_array_equal(gradient[name], wider[name], err_msg=name)
    assert_array_equal(u, same_u)


@pytest.mark.quick_one_in(5)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("family", "term"), PAIRS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_bits_are_those_of_the_model_without_it(
    solver: str, family: str, term: str, dtype: Any
) -> None:
    kind, values = FAMILIES[family]
    check(SAMPLES[term](), kind, values, solver.split(",", maxsplit=1)[0], dtype, **SOLVERS[solver])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", ["none", "items", "total"])
@pytest.mark.parametrize("term", SAMPLES)
def test_the_bits_of_a_softmax_are_those_without_it(term: str, scale: str, dtype: Any) -> None:
    check(SAMPLES[term](), "categorical", COUNTS, "rows", dtype, context=efemb.Basket(scale))
