"""Priors chosen from the data: the ridge on weights, and the precision of the vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from efemb.engine.solvers.base import Solver
from efemb.engine.solvers.moments.evidence import distance_factors
from efemb.engine.solvers.moments.solver import MomentsSolver, Ridges
from efemb.errors import ParameterError
from efemb.model.contexts.bound.entities import Lists
from efemb.model.priors import Prior
from efemb.model.spec import Spec

# The penalty on vectors, precision x variance, in units of the largest weight that noise alone
# would produce: the standard deviation of the noise times the root of the members' squares.
# Chosen on validation frames of two recordings.
PRECISION_OF_NOISE = 0.5


@dataclass(frozen=True)
class ChosenPriors:
    """The model with numeric priors, its lists with their ridges, and a report."""

    spec: Spec
    lists: tuple[Lists, ...] | None
    report: dict[str, Any]


def choose_priors(
    spec: Spec, solver: Solver[Any], lists: tuple[Lists, ...] | None, *, keep: bool = False
) -> ChosenPriors:
    """Choose the priors that depend on the data, and pass them to the solver.

    With `keep`, ridges that lists already have are kept. Solvers without Gram matrices use
    precision 1 and no ridge, and refuse one that was requested.
    """
    chosen = _choose(spec, solver, lists, keep=keep)
    solver.spec = chosen.spec
    return chosen


def _choose(
    spec: Spec, solver: Solver[Any], lists: tuple[Lists, ...] | None, *, keep: bool
) -> ChosenPriors:
    if not isinstance(solver, MomentsSolver):
        return priors_without_moments(spec, lists)
    if solver.flattened:  # a ridge belongs to a pair of entities, not to pairs of their numbers
        spec = _without_ridge(spec)
    if keep and lists is not None and all(part.ridge is not None for part in lists):
        solver.add_ridge([part.ridge for part in lists])
        return ChosenPriors(_set_precision(spec, 1.0), lists, {})
    if spec.weight_ridge is None and not _is_automatic(spec):
        return ChosenPriors(spec, lists, {})
    factors = [distance_factors(part.distance, len(part.members)) for part in solver.bound.lists]
    evidence = solver.best_ridges(solver.in_order(factors))
    report: dict[str, Any] = {}
    if _is_automatic(spec):
        spec = _set_precision(spec, _precision(solver, evidence))
        report["prior"] = repr(spec.prior_rho)
    if spec.weight_ridge is None:
        return ChosenPriors(spec, lists, report)
    ridge = evidence.ridge
    if spec.weight_ridge != "auto":
        ridge = np.full(len(ridge), float(spec.weight_ridge))
    parts = [ridge[part.owner] * by for part, by in zip(solver.bound.lists, factors, strict=True)]
    solver.add_ridge(parts)
    current = solver.bound.lists if lists is None else lists
    lists = tuple(replace(part, ridge=by) for part, by in zip(current, parts, strict=True))
    report["weight_ridge"] = float(np.median(ridge))
    return ChosenPriors(spec, lists, report)


def _is_automatic(spec: Spec) -> bool:
    return any(
        prior is not None and prior.automatic for prior in (spec.prior_rho, spec.prior_alpha)
    )


def _set_precision(spec: Spec, precision: float) -> Spec:
    def choose(prior: Prior | None) -> Prior | None:
        return prior if prior is None else prior.with_chosen_precision(precision)

    return replace(spec, prior_rho=choose(spec.prior_rho), prior_alpha=choose(spec.prior_alpha))


def priors_without_moments(spec: Spec, lists: tuple[Lists, ...] | None) -> ChosenPriors:
    """Precision 1 and no ridge, for solvers without Gram matrices."""
    plain = _without_ridge(spec)
    report = {"prior": repr(_set_precision(plain, 1.0).prior_rho)} if _is_automatic(spec) else {}
    return ChosenPriors(_set_precision(plain, 1.0), lists, report)


def _without_ridge(spec: Spec) -> Spec:
    """The model without a ridge; one that was requested as a number is an error."""
    if spec.weight_ridge not in (None, "auto"):
        raise ParameterError(
            f"weight_ridge={spec.weight_ridge!r} needs Gram matrices: a Gaussian family with the "
            "identity link, scalar data, a context that is fixed for each entity, and "
            "solver='auto' or 'moments'"
        )
    return replace(spec, weight_ridge=None)


def _precision(solver: MomentsSolver, ridges: Ridges) -> float:
    """Precision of the vectors: their penalty removes what noise alone would contribute.

    The largest singular value of what noise adds to the weights, times the Gram matrix, grows as
    the standard deviation of the noise and the root of the sum of squares of a member. The nuclear
    norm of the weights is half the sum of squares of their vectors, so that is their penalty.
    """
    scale = PRECISION_OF_NOISE * math.sqrt(max(ridges.variance * ridges.size, 0.0))
    return max(float(f"{scale / solver.variance_at_start(ridges.variance):.3g}"), 1e-6)
