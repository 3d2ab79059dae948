"""From the oracle's plain options to the estimator, and the comparison of the two."""

from __future__ import annotations

import functools
import operator
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

import efemb
from oracle import tiny
from oracle.cases import Case, data_of, model_of, point_of, problem_of
from oracle.differences import along, flatten
from oracle.loops import Problem, gradient, value
from oracle.model import Array, Part, Penalty, Point

RELATIVE = 1e-8
BY_DIFFERENCES = 1e-5
DIFFERENCES_EVERY = 4


def family(name: str) -> Any:
    """The package's family, with the options of the cases."""
    if name == "gaussian":
        return efemb.Gaussian(sigma2=0.7)
    if name == "gaussian-learned":
        return efemb.Gaussian(sigma2="learned")
    if name == "negative-binomial":
        return efemb.NegativeBinomial(r=1.5)
    return name


def adjacency(around: Iterable[Iterable[int]]) -> sparse.csr_array:
    """Row n has ones at the neighbors of n."""
    dense = np.zeros((tiny.N_ENTITIES, tiny.N_ENTITIES))
    for n, others in enumerate(around):
        for m in others:
            dense[n, m] = 1.0
    return sparse.csr_array(dense)


def explicit_arrays(part: Part, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """indptr and indices over cells in row-major order; a cell (t, n) is number t * N + n."""
    assert part.explicit is not None
    n_rows, n_entities = shape[:2]
    indptr, indices = [0], []
    for t in range(n_rows):
        for n in range(n_entities):
            indices.extend([t2 * n_entities + m for t2, m in part.explicit.get((t, n), ())])
            indptr.append(len(indices))
    return np.array(indptr), np.array(indices)


def context_part(part: Part, shape: tuple[int, ...]) -> Any:
    """The package's context of one part."""
    how: dict[str, Any] = {"scale": part.scale, "binary": part.binary}
    if part.kind == "basket":
        return efemb.Basket(**how)
    if part.kind == "explicit":
        return efemb.Explicit(*explicit_arrays(part, shape), **how)
    if part.kind == "neighbors":
        return efemb.Neighbors(tiny.N_NEAREST, positions=tiny.POSITIONS, **how)
    if part.kind == "graph":
        assert part.neighbors is not None
        return efemb.Graph(adjacency(part.neighbors), **how)
    of = None if part.neighbors is None else efemb.Graph(adjacency(part.neighbors))
    return efemb.Lagged(
        part.offsets, of=of, include_self=part.include_self, shared=part.shared, **how
    )


def context(parts: tuple[Part, ...], shape: tuple[int, ...]) -> Any:
    return functools.reduce(operator.add, [context_part(part, shape) for part in parts])


def prior(penalty: Penalty) -> Any:
    if penalty is None:
        return None
    name, precision, center = penalty
    if name == "lognormal":
        return efemb.LogNormal(precision, center)
    return efemb.Normal(precision) if name == "normal" else efemb.HalfNormal(precision)


def priors(case: Case) -> Any:
    rho, alpha = case.priors
    return prior(rho) if rho == alpha else (prior(rho), prior(alpha))


def structure(name: str) -> Any:
    if name == "shared":
        return efemb.Shared(np.array(tiny.RHO_OF), np.array(tiny.ALPHA_OF))
    return efemb.Tied() if name == "tied" else efemb.PerEntity()


def estimator(case: Case, solver: str = "auto") -> Any:
    """An unfitted Embedding with the options of the case."""
    return efemb.Embedding(
        n_components=tiny.N_COMPONENTS,
        context=context(model_of(case).parts, data_of(case).shape),
        family=family(case.family),
        link=case.link,
        combine=case.combine,
        structure=structure(case.structure),
        prior=priors(case),
        zeros=efemb.All(weight=case.zero_weight),
        intercept=case.intercept,
        intercept_prior=prior(case.prior_intercept),
        solver=solver,
    )


def input_of(case: Case) -> Any:
    """A plain array where that says everything, else a Dataset."""
    x = data_of(case)
    if "lagged" in case.kind:
        return efemb.Dataset(x, recordings=np.array(tiny.RECORDINGS))
    return x


def parameters(point: Point) -> Any:
    intercept = None if point.intercept is None else point.intercept.copy()
    return efemb.model.parameters.Parameters(point.rho.copy(), point.alpha.copy(), intercept)


class Expected:
    """The oracle's answer for one case, computed once for all solvers."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.task: Problem = problem_of(case)
        self.point = point_of(case)
        self.value = value(self.task, self.point)
        self.gradient = flatten(self.task.model, gradient(self.task, self.point))
        rng = np.random.default_rng(zlib.crc32(case.name.encode()))
        self.direction = rng.standard_normal(self.gradient.size)
        # The loop gradient has its own test against differences, so a share of the cases will do.
        checked = zlib.crc32(case.name.encode()) % DIFFERENCES_EVERY == 0
        self.along = along(self.task, self.point, self.direction) if checked else None

    def check(self, answer: tuple[float, Any]) -> None:
        """Compare an estimator's value and gradient."""
        got, slopes = answer
        np.testing.assert_allclose(got, self.value, rtol=RELATIVE, err_msg="value")
        self._check_shapes(slopes)
        found = flatten(self.task.model, Point(slopes.rho, slopes.alpha, slopes.intercept))
        scale = max(1.0, float(np.abs(self.gradient).max()))
        np.testing.assert_allclose(
            found, self.gradient, rtol=RELATIVE, atol=RELATIVE * scale, err_msg="gradient"
        )
        if self.along is None:
            return
        size = scale * float(np.abs(self.direction).max())
        np.testing.assert_allclose(
            found @ self.direction, self.along, rtol=0, atol=BY_DIFFERENCES * size
        )

    def _check_shapes(self, slopes: Any) -> None:
        assert slopes.rho.dtype == np.float64
        assert slopes.rho.shape == self.point.rho.shape
        assert slopes.alpha.shape == self.point.alpha.shape
        if self.case.structure == "tied":
            assert not slopes.alpha.any(), "a tied gradient belongs to rho"
        if self.point.intercept is None:
            assert slopes.intercept is None
        else:
            assert slopes.intercept.shape == self.point.intercept.shape


def answer(case: Case, point: Point, solver: str = "auto") -> tuple[float, Any]:
    result: tuple[float, Any] = estimator(case, solver).objective(input_of(case), parameters(point))
    return result


def reversible(case: Case) -> bool:
    """The reverse is defined for scalar baskets and for contexts that are fixed per entity."""
    if case.combine == "linear" or set(case.kind.split("+")) <= set(tiny.FIXED):
        return True
    return case.kind == "basket" and case.n_dims == 1


def solver_rule(case: Case, solver: str) -> str:
    """`must` work, `may` work (equal or a typed error), or `never` apply: the table of solvers."""
    plain = case.combine == "linear" and case.n_dims == 1
    if not reversible(case):
        return "may"
    if solver == "generic" and case.family == "categorical":
        return "may"  # a softmax is not a density of one number
    if solver in ("generic", "auto"):
        return "must"
    if solver == "rows":
        if case.kind != "basket":  # a sum of a basket and lists may run by it
            return "may" if "basket" in case.kind else "never"
        listed = case.link == "identity" or (case.family, case.link) == ("poisson", "log")
        return "must" if plain and listed and not case.missing else "may"
    assert solver == "moments", solver
    if case.distribution != "gaussian" or case.link != "identity":
        return "never"
    if case.kind in tiny.FIXED:
        return "must" if plain else "may"
    return "never" if "basket" in case.kind or "explicit" in case.kind else "may"


def check_solver(expected: Expected, solver: str) -> None:
    """Hold one solver to its rule."""
    rule = solver_rule(expected.case, solver)
    try:
        got = answer(expected.case, expected.point, solver)
    except efemb.ParameterError:
        assert rule != "must", f"solver={solver!r} refused"
        return
    assert rule != "never", f"solver={solver!r} does not apply, yet ran"
    expected.check(got)
