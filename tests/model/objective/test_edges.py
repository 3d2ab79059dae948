"""Vector data, gaps, recordings, lone entities, other inputs and invalid combinations."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import efemb
from model.objective.build import (
    Expected,
    adjacency,
    answer,
    check_solver,
    estimator,
    input_of,
    parameters,
    solver_rule,
)
from model.objective.build import family as ingredient
from oracle import cases, tiny
from oracle.cases import Case
from oracle.loops import gradient, problem, value
from oracle.model import Model, Part, Point

SOLVERS = ("generic", "rows", "moments", "auto")
PAIRS = [(family, link) for family, links in cases.LINKS.items() for link in links]


def _each(**options: Any) -> list[Case]:
    """Valid cases over kind, family, link and combine, with scale, binary and prior in turn."""
    every = itertools.product(tiny.KINDS, PAIRS, ("linear", "reverse"))
    priors = cases.ONE_PRIOR + cases.TWO_PRIORS
    made = []
    for i, (kind, (family, link), combine) in enumerate(every):
        for j in range(3):
            case = Case(
                kind,
                family,
                link,
                combine,
                scale=cases.SCALES[(i + j) % 3],
                binary=(i + j) % 2 == 0,
                intercept=(i // 2 + j) % 3 != 0,
                priors=priors[(3 * i + j) % len(priors)],
                zero_weight=(1.0, 0.3)[(i // 3 + j) % 2],
            )
            if link == "log" and not cases.valid(case):
                case = replace(case, priors=(cases.LOGNORMAL, cases.HALFNORMAL))
            if family == "categorical":
                case = replace(case, zero_weight=1.0)
            made.append(replace(case, **options))
    return [case for case in made if cases.valid(case)]


def _name(case: Case) -> str:
    return case.name


@pytest.mark.quick_one_in(5)
@pytest.mark.parametrize("case", _each(n_dims=2), ids=_name)
def test_vector_data(case: Case) -> None:
    expected = Expected(case)
    for solver in SOLVERS:
        check_solver(expected, solver)


@pytest.mark.quick_one_in(7)
@pytest.mark.parametrize("case", _each(missing=True) + _each(missing=True, n_dims=2), ids=_name)
def test_missing_values(case: Case) -> None:
    expected = Expected(case)
    for solver in SOLVERS:
        check_solver(expected, solver)


@pytest.mark.parametrize("structure", ["tied", "shared"])
@pytest.mark.parametrize("kind", ["basket", "graph", "lagged-shared"])
def test_vector_data_with_structure(kind: str, structure: str) -> None:
    check_solver(Expected(Case(kind, "poisson", structure=structure, n_dims=2)), "generic")


def _with_intercept_prior() -> list[Case]:
    signed = _each(intercept=True, priors=(None, None), prior_intercept=cases.NORMAL)
    positive = [
        *_each(intercept=True, priors=(cases.LOGNORMAL,) * 2, prior_intercept=cases.LOGNORMAL),
        *_each(intercept=True, priors=(cases.HALFNORMAL,) * 2, prior_intercept=cases.HALFNORMAL),
    ]
    return [case for case in signed if case.link != "log"][::3] + positive[::3]


@pytest.mark.quick_one_in(5)
@pytest.mark.parametrize("case", _with_intercept_prior(), ids=_name)
def test_intercept_prior(case: Case) -> None:
    expected = Expected(case)
    for solver in SOLVERS:
        check_solver(expected, solver)


@pytest.mark.quick_one_in(5)
@pytest.mark.parametrize("case", _each()[::2], ids=_name)
def test_every_solver_keeps_to_its_rule(case: Case) -> None:
    """The automatic choice agrees; a solver that does not apply raises ParameterError."""
    expected = Expected(case)
    for solver in SOLVERS:
        check_solver(expected, solver)


@pytest.mark.quick_one_in(3)
@pytest.mark.parametrize("case", [c for c in _each() if c.kind == "basket"], ids=_name)
def test_sparse_rows_are_the_same_data(case: Case) -> None:
    expected = Expected(case)
    rows = sparse.csr_array(cases.data_of(case))
    for solver in ("auto", "generic"):
        if solver_rule(case, solver) == "must":
            expected.check(estimator(case, solver).objective(rows, parameters(expected.point)))


def test_positions_as_an_argument() -> None:
    case = Case("neighbors", "gaussian", priors=(cases.NORMAL,) * 2)
    expected = Expected(case)
    est = estimator(case).set_params(context=efemb.Neighbors(tiny.N_NEAREST))
    x, p = cases.data_of(case), parameters(expected.point)
    expected.check(est.objective(x, p, positions=tiny.POSITIONS))


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("recordings", [None, [0, 0, 1, 1, 1], [0, 1, 1, 2, 2], [0, 1, 2, 3, 4]])
def test_lagged_over_recordings(
    recordings: list[int] | None, shared: bool, include_self: bool
) -> None:
    near = tiny.part("neighbors", "none", False).neighbors
    lagged = Part("lagged", "items", neighbors=near, offsets=(-2, -1, 1))
    part = replace(lagged, include_self=include_self, shared=shared)
    model = Model((part,), sigma2=1.0)
    x = tiny.data("gaussian", False, missing=True)
    task = problem(model, x, recordings)
    rng = np.random.default_rng(5)
    point = Point(
        rng.normal(size=(5, 2)), rng.normal(size=(5 * task.n_slots, 2)), rng.normal(size=5)
    )
    of = efemb.Neighbors(tiny.N_NEAREST, positions=tiny.POSITIONS)
    context = efemb.Lagged(
        part.offsets, of=of, include_self=include_self, shared=shared, scale="items"
    )
    codes = None if recordings is None else np.array(recordings)
    for solver in ("generic", "moments", "auto"):
        est = efemb.Embedding(2, context=context, family="gaussian", prior=None, solver=solver)
        got, slopes = est.objective(efemb.Dataset(x, recordings=codes), parameters(point))
        exact = gradient(task, point)
        assert got == pytest.approx(value(task, point), rel=1e-8)
        for mine, theirs in zip(exact, (slopes.rho, slopes.alpha, slopes.intercept), strict=True):
            np.testing.assert_allclose(theirs, mine, rtol=1e-8, atol=1e-9)


def test_tied_vectors_need_one_context_vector_an_entity() -> None:
    case = Case("lagged", "gaussian", structure="tied")
    with pytest.raises(efemb.ParameterError):
        answer(case, cases.point_of(case))


def test_a_graph_without_edges_leaves_the_intercepts() -> None:
    case = Case("graph", "poisson")
    point, x = cases.point_of(case), cases.data_of(case)
    empty = Part("graph", neighbors=[[]] * tiny.N_ENTITIES)
    task = problem(Model((empty,), family="poisson"), x)
    est = estimator(case).set_params(context=efemb.Graph(adjacency(empty.neighbors or [])))
    got, slopes = est.objective(x, parameters(point))
    assert got == pytest.approx(value(task, point), rel=1e-8)
    assert not slopes.rho.any()
    assert not slopes.alpha.any()
    np.testing.assert_allclose(slopes.intercept, gradient(task, point).intercept, rtol=1e-8)


def test_parameters_are_left_alone() -> None:
    case = Case("basket", "poisson", "log", priors=(cases.LOGNORMAL,) * 2, scale="total")
    point = cases.point_of(case)
    given = parameters(point)
    x = cases.data_of(case)
    estimator(case).objective(x, given)
    np.testing.assert_array_equal(given.rho, point.rho)
    np.testing.assert_array_equal(given.alpha, point.alpha)
    np.testing.assert_array_equal(x, cases.data_of(case))


def test_the_objective_is_computed_in_double_precision() -> None:
    case = Case("basket", "poisson", scale="items", priors=(cases.NORMAL,) * 2)
    expected = Expected(case)
    for dtype in ("float32", "float64"):
        est = estimator(case).set_params(dtype=dtype)
        expected.check(est.objective(input_of(case), parameters(expected.point)))


@pytest.mark.parametrize("link", ["identity", "log", "softplus", "log-softplus"])
@pytest.mark.parametrize("family", sorted(cases.LINKS))
def test_links_outside_the_table_are_refused(family: str, link: str) -> None:
    case = Case("basket", "poisson", "identity", priors=(cases.LOGNORMAL,) * 2)
    est = estimator(case).set_params(family=ingredient(family), link=link)
    x, point = tiny.data("bernoulli", False), cases.point_of(case)
    if link in cases.LINKS[family]:
        est.objective(x, parameters(point))
    else:
        with pytest.raises(efemb.ParameterError, match="link"):
            est.objective(x, parameters(point))


@pytest.mark.parametrize(
    "priors",
    [(cases.NORMAL,) * 2, (cases.NORMAL, cases.LOGNORMAL), (None, cases.NORMAL)],
)
def test_the_log_link_refuses_signed_vectors(priors: Any) -> None:
    case = Case("basket", "poisson", "log", priors=priors)
    point = cases.point_of(replace(case, priors=(None, None)))
    with pytest.raises(efemb.ParameterError):
        answer(case, point)


@pytest.mark.parametrize("kind", [kind for kind in tiny.KINDS if kind != "basket"])
def test_categorical_needs_whole_rows(kind: str) -> None:
    case = Case(kind, "categorical")
    with pytest.raises(efemb.ParameterError):
        answer(case, cases.point_of(case))
