"""The oracle against itself: loop gradients against differences, and sums done by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from oracle import cases, tiny
from oracle.cases import Case
from oracle.differences import constrain, differences, flatten, unconstrain
from oracle.loops import gradient, problem, value
from oracle.members import first_slots, members, n_slots, nearest
from oracle.model import Model, Part, Point


def _sample() -> list[Case]:
    """A few combinations of every group and every kind, the other options in turn."""
    found: list[Case] = []
    for turn, group in enumerate(cases.groups()):
        made = list(cases.combinations(*group, complete=True))
        for i, kind in enumerate(tiny.KINDS):
            of_kind = [case for case in made if case.kind == kind]
            if of_kind:
                found.append(of_kind[(31 * turn + 17 * i) % len(of_kind)])
    return found


def _vectors() -> list[Case]:
    links = [(f, link) for f, every in cases.LINKS.items() for link in every]
    every = itertools.product(tiny.KINDS, links, ("linear", "reverse"), (False, True))
    made = [
        Case(kind, f, link, how, scale=cases.SCALES[i % 3], n_dims=2, missing=gaps)
        for i, (kind, (f, link), how, gaps) in enumerate(every)
    ]
    return [case for case in made if cases.valid(case)][::5]


@pytest.mark.slow
@pytest.mark.parametrize("case", _sample() + _vectors(), ids=lambda case: case.name)
def test_loop_gradient_equals_differences(case: Case) -> None:
    task, point = cases.problem_of(case), cases.point_of(case)
    exact = flatten(task.model, gradient(task, point))
    scale = max(1.0, float(np.abs(exact).max()))
    np.testing.assert_allclose(exact, differences(task, point), rtol=0, atol=1e-7 * scale)


@pytest.mark.parametrize("case", _sample()[::7], ids=lambda case: case.name)
def test_unconstrained_parameters_go_there_and_back(case: Case) -> None:
    model, point = cases.model_of(case), cases.point_of(case)
    back = constrain(model, unconstrain(model, point), point)
    for one, other in zip(point, back, strict=True):
        if one is not None and other is not None:
            np.testing.assert_allclose(one, other, rtol=1e-14)


@pytest.mark.slow
def test_the_default_selection_leaves_no_pair_of_levels_out() -> None:
    """Every two options that occur together in the complete set do so in the default one."""

    def pairs(complete: bool) -> set[tuple[object, ...]]:
        found: set[tuple[object, ...]] = set()
        for group in cases.groups():
            for case in cases.combinations(*group, complete=complete):
                levels = sorted(vars(case).items())
                found.update(itertools.combinations(levels, 2))
        return found

    assert pairs(complete=False) == pairs(complete=True)


def test_poisson_basket_by_hand() -> None:
    x = np.array([[2.0, 1.0, 0.0]])
    rho, alpha, b = np.array([[0.3], [-0.2], [0.5]]), np.array([[1.0], [2.0], [3.0]]), np.zeros(3)
    model = Model((Part("basket", "items"),), family="poisson", zero_weight=0.5)
    mean = np.exp([0.3 * 2 * 1, -0.2 * 1 * 2, 0.5 * (1 * 2 + 2 * 1) / 2])
    weight = np.array([1.0, 1.0, 0.5])
    expected = np.sum(weight * stats.poisson.logpmf(x[0], mean))
    assert value(problem(model, x), Point(rho, alpha, b)) == pytest.approx(expected, rel=1e-14)


def test_total_scale_divides_by_what_remains() -> None:
    x = np.array([[2.0, 1.0, 3.0]])
    model = Model((Part("basket", "total"),), sigma2=1.0, intercept=False)
    ones = np.ones((3, 1))
    # With equal alphas every context is 1, so every mean is rho.
    expected = float(np.sum(stats.norm.logpdf(x[0], 0.4)))
    assert value(problem(model, x), Point(0.4 * ones, ones, None)) == pytest.approx(expected)


def test_categorical_row_by_hand() -> None:
    x = np.array([[2.0, 0.0, 1.0]])
    rho, alpha = np.array([[0.3], [-0.2], [0.5]]), np.array([[1.0], [2.0], [3.0]])
    b = np.array([0.1, 0.2, -0.3])
    model = Model((Part("basket", "none"),), family="categorical")
    first, last = rho[:, 0] * 3 * 1 + b, rho[:, 0] * 1 * 2 + b
    expected = 2 * (first[0] - logsumexp(first)) + (last[2] - logsumexp(last))
    assert value(problem(model, x), Point(rho, alpha, b)) == pytest.approx(expected, rel=1e-13)


@pytest.mark.slow
def test_learned_variance_is_the_profile() -> None:
    case = Case("graph", "gaussian-learned", missing=True)
    point, x = cases.point_of(case), cases.data_of(case)
    best = value(cases.problem_of(case), point)
    fixed = [
        value(problem(Model(tiny.parts("graph", "none", False), sigma2=s2), x), point)
        for s2 in np.geomspace(0.05, 20, 4000)
    ]
    assert max(fixed) <= best
    assert max(fixed) == pytest.approx(best, rel=1e-4)


def test_slots_of_sums() -> None:
    lagged, graph = tiny.part("lagged", "none", False), tiny.part("graph", "none", False)
    assert (first_slots([lagged]), n_slots([lagged])) == ([0], 2)
    assert (first_slots([graph, lagged]), n_slots([graph, lagged])) == ([0, 1], 3)
    assert (first_slots([lagged, graph, lagged]), n_slots([lagged, graph, lagged])) == (
        [1, 0, 3],
        5,
    )


def test_lagged_stays_in_its_recording() -> None:
    part = tiny.part("lagged", "none", False)
    data = tiny.data("gaussian", False)[:, :, None].tolist()
    assert members(part, data, tiny.RECORDINGS, 2, 0, 0) == [(1, 0, 0)]
    assert members(part, data, tiny.RECORDINGS, 3, 0, 0) == [(4, 0, 1)]


def test_nearest() -> None:
    assert nearest([[0.0], [1.0], [3.0], [7.0]], 2) == [[1, 2], [0, 2], [1, 0], [2, 1]]
