"""fold_in_rows: vectors of new households from their own rows, with everything else unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Floats, Ints
from efemb.data.columns import label_codes
from efemb.data.dataset import Dataset
from efemb.engine.precision import working_precision
from efemb.engine.solvers.base import Solver
from efemb.engine.solvers.choice import choose_solver, make_solver
from efemb.engine.threads import workers
from efemb.errors import DataError, InputTypeError, ParameterError, check_number
from efemb.fitted.docstrings import as_function_of
from efemb.fitted.embedding import FittedEmbedding
from efemb.fitted.queries.shop_queries import ShopQueries
from efemb.inference.conditionals import Inverse, resolve_row_weights, typical_curvature
from efemb.inference.lbfgs import warn_exhausted
from efemb.inference.new_entities import check_prior, tighten
from efemb.inference.posterior import Posterior
from efemb.model.ingredient import row_column
from efemb.model.parameters import Parameters
from efemb.model.priors import Prior
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.model.terms.base import Term


@as_function_of(ShopQueries.fold_in_rows)
def fold_in_rows(
    model: Any,
    data: Any,
    *,
    prior: Prior | str = "fitted",
    tol: float = 0.05,
    sample_weight: Any = None,
    progress: bool = False,
) -> FittedEmbedding:
    """A model with `RowVectors` or `History` among its terms."""
    fitted: FittedEmbedding = model.fitted()
    check_prior(prior)
    check_number("tol", tol, low=0)
    if fitted.spec.zeros.odds:
        raise ParameterError(
            f"fold_in_rows needs means, which a model with zeros={fitted.spec.zeros!r} only knows "
            "up to a factor per row: use zeros='all' or Sampled"
        )
    if positive := [term for term in fitted.spec.terms if term.positive]:
        raise ParameterError(
            f"fold_in_rows solves for signed vectors, but those of {positive[0]!r} are positive: "
            "use partial_fit with the new rows"
        )
    rows = model._read(data)
    if not isinstance(rows, Dataset):
        raise InputTypeError(f"fold_in_rows needs rows of numbers, got {type(data).__name__}")
    weight = resolve_row_weights(sample_weight, rows, fitted.spec)
    growth = _RowGrowth.of(fitted, rows, weight, prior)
    with progress_bar("fold in rows", 1, progress) as advance:
        extended = growth.solve(tol)
        advance(1)
    return extended


@dataclass
class _RowGrowth:
    """A model with room for new groups of rows, and the rows from which they are solved."""

    fitted: FittedEmbedding
    spec: Spec  # with terms that know the new groups
    data: Dataset  # rows of new groups
    weight: Floats
    learned: Sequence[tuple[Term, Ints, Prior | None]]  # terms with new vectors: which, and prior

    @classmethod
    def of(
        cls, fitted: FittedEmbedding, data: Dataset, weight: Floats, prior: Prior | str
    ) -> _RowGrowth:
        """Find the new groups; an error if there are none."""
        if not any(term.groups is not None for term in fitted.spec.terms):
            raise ParameterError(
                "the model knows no groups of rows: fit it with terms=[RowVectors('household')]"
            )
        counted = data.take_rows(np.flatnonzero(weight))
        terms = tuple(term.add_groups(counted) for term in fitted.spec.terms)
        new, learned = np.zeros(data.n_rows, dtype=bool), []
        for before, after in zip(fitted.spec.terms, terms, strict=True):
            if before.groups is None or len(after.groups) == len(before.groups):
                continue
            labels = row_column(data, after.columns[0], after).tolist()
            new |= label_codes(labels, after.groups) >= len(before.groups)
            if after.group_array is not None:
                index = np.arange(len(before.groups), len(after.groups))
                learned.append((after, index, _prior_of(before, fitted.parameters, prior)))
        chosen = np.flatnonzero(new & (weight > 0))
        if not len(chosen):
            raise DataError(
                "the rows have no new group: all of them are known to the model, missing, or have "
                "weight 0, so there is nothing to fold in"
            )
        spec = replace(fitted.spec, terms=terms)
        return cls(fitted, spec, data.take_rows(chosen), weight[chosen], learned)

    def solve(self, tol: float) -> FittedEmbedding:
        """The fitted model with vectors of the new groups."""
        fitted, spec = self.fitted, self.spec
        extended = replace(fitted, spec=spec)
        _, bound, _ = fitted._bound(self.data)
        name = choose_solver("auto", bound, spec)
        dtype = working_precision(self.data, spec, name, fitted.parameters.rho.dtype)
        space = ParameterSpace(spec, bound.n_entities, bound.n_slots, 1, fitted.n_components)
        parameters = _make_room(fitted.parameters.astype(dtype), self.learned)
        if self.learned:
            with workers(1) as pool, np.errstate(over="ignore", invalid="ignore"):
                options: dict[str, Any] = {"dtype": dtype, "row_weight": self.weight}
                solver = make_solver(name, bound, spec, pool, **options)
                posterior = _GroupPosterior(solver, space, parameters, self.learned)
                start = np.zeros((1, posterior.edges[-1]))
                inverse = None if spec.family.softmax else posterior.inverse(self.data)
                problems = posterior.problems(start, inverse, np.dtype(dtype))
                solution = problems.run(0.5 * tol * start.shape[1])
            warn_exhausted(
                int(solution.exhausted.sum()), "raise the precision of the prior, or tol"
            )
            posterior.fill(solution.theta)
        solved = parameters.astype(fitted.parameters.rho.dtype)
        return replace(extended, parameters=solved)


class _GroupPosterior(Posterior):
    """The vectors of all new groups as one problem: a solver sums over all rows."""

    def __init__(
        self,
        solver: Solver[Any],
        space: ParameterSpace,
        parameters: Parameters,
        learned: Sequence[tuple[Term, Ints, Prior | None]],
    ) -> None:
        self.solver, self.space, self.parameters, self.learned = solver, space, parameters, learned
        sizes = [len(index) * term.width for term, index, _ in learned]
        self.edges = [0, *np.cumsum(sizes).tolist()]
        blocks = [(prior, n, False) for (_, _, prior), n in zip(learned, sizes, strict=True)]
        super().__init__(blocks)

    def fill(self, v: Floats) -> None:
        """Insert the values of the unknowns."""
        for (term, index, _), (a, b) in zip(self.learned, pairwise(self.edges), strict=True):
            array = self.parameters.terms[_name(term)]
            array[index] = v[0, a:b].reshape(len(index), term.width)

    def likelihood(self, v: Floats, which: Ints) -> tuple[Floats, Floats]:
        """Log-likelihood of all rows."""
        self.fill(v)
        vectors = self.space.vectors(self.parameters)
        value, slopes = self.solver.value_and_gradient(vectors, exact=True)
        gradient = self.space.pull_back(self.parameters, slopes).terms
        numbers = [gradient[_name(term)][index].ravel() for term, index, _ in self.learned]
        return np.array([value]), np.concatenate(numbers)[None].astype(np.float64)

    def inverse(self, data: Dataset) -> Inverse:
        """Approximate Newton steps: the curvature of a typical row, times the rows of a group.

        Groups differ only in their number of rows, so all have the same eigenvectors.
        """
        values = data.values if data.is_sparse else np.nan_to_num(data.values)
        total = np.asarray(values.sum(axis=0)).ravel()
        spec = self.solver.spec
        bend = typical_curvature(spec.family, spec.link, total, data.n_rows)
        blocks = []
        for term, index, prior in self.learned:
            gamma = self.parameters.terms[f"{term.label}.{term.entity_array}"].astype(np.float64)
            spread, basis = np.linalg.eigh((gamma * bend[:, None]).T @ gamma)
            code = label_codes(row_column(data, term.columns[0], term).tolist(), term.groups)
            n_rows = np.bincount(code[code >= 0], minlength=len(term.groups))[index]
            precision = 0.0 if prior is None else prior.shrinkage
            bent = n_rows[:, None] * np.maximum(spread, 0.0) + max(precision, 1e-6)
            blocks.append((basis, 1.0 / bent))

        def newton(gradient: Floats, which: Ints) -> Floats:
            steps = []
            for (basis, scale), (a, b) in zip(blocks, pairwise(self.edges), strict=True):
                block = gradient[:, a:b].reshape(-1, *scale.shape)
                steps.append(((block @ basis * scale) @ basis.T).reshape(len(gradient), -1))
            return np.concatenate(steps, axis=1)

        return newton


def _name(term: Term) -> str:
    return f"{term.label}.{term.group_array}"


def _prior_of(term: Term, known: Parameters, prior: Prior | str) -> Prior | None:
    """Prior of the new vectors of a term."""
    if isinstance(prior, Prior):
        prior.check()
        if prior.positive:
            raise ParameterError(f"vectors of groups are signed, but {prior!r} is of positive ones")
        return prior
    if prior == "model":
        return term.group_prior
    return tighten(term.group_prior, known.terms[_name(term)], positive=False)


def _make_room(known: Parameters, learned: Sequence[tuple[Term, Ints, Prior | None]]) -> Parameters:
    """Zeros for the new groups, which is the prior mean."""
    terms = dict(known.terms)
    for term, index, _ in learned:
        array = terms[_name(term)]
        rows = np.zeros((len(index), *array.shape[1:]), dtype=array.dtype)
        terms[_name(term)] = np.concatenate([array, rows])
    return replace(known, terms=terms)
