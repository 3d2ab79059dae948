"""NeighborRidge: ridge regression of each entity on its context members, for real data."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.baselines.base import Baseline
from efemb.engine.holdout import given_split, hold_out
from efemb.engine.solvers.choice import Setup
from efemb.engine.solvers.moments.evidence import ridge_weights
from efemb.engine.solvers.moments.solver import MomentsSolver
from efemb.engine.statistics import column_means
from efemb.engine.threads import cut, workers
from efemb.errors import ParameterError, check_number
from efemb.estimators.checks import check_variation, generator
from efemb.model.contexts.base import Context
from efemb.model.contexts.bound.entities import EntityLists
from efemb.model.contexts.frozen import Kept
from efemb.model.families import Family, Gaussian
from efemb.model.ingredient import flag
from efemb.model.spec import Spec

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

BLOCK_ENTITIES = 256
BLOCK_NUMBERS = 1 << 22
HELD_OUT = 0.1  # fraction of the rows, if no validation data are passed
# Powers of ten of the ridges that are tried, relative to the sum of squares of a member.
LEAST, MOST = -5, 2


@dataclass(eq=False, repr=False)
class NeighborRidge(Baseline):
    """x_n is predicted by a weighted sum of its context members: the paper's bank of regressions.

    Weights minimize sum_t (x_tn - b_n - sum_m w_nm x_tm)^2 + ridge sum_m w_nm^2. This is the
    Gaussian embedding whose context vectors are the columns of the identity, and a strong simple
    rival of every model of recordings. Gram matrices are computed once for all ridges.

    Parameters
    ----------
    context : Context or str, default="neighbors"
        Any context that is fixed for each entity: `Neighbors` by position or by correlation,
        `Graph`, `Lagged`, or sums of them.
    ridge : float or "auto", default="auto"
        The penalty; "auto" chooses one of 1, 3, 10, 30, ... on the validation data, or on 10% of
        the rows if there are none, and then uses all rows.
    intercept : bool, default=True
        Whether every entity has an intercept. Members are then measured from their means, so that a
        missing one counts as its mean.
    random_state : int, RandomState, Generator or None, default=0
        Random seed of the rows that are held out.
    n_jobs : int or None, default=1
        Number of threads.
    verbose : int, default=0
        Show progress bars.

    Attributes
    ----------
    ridge_ : float
        The penalty that was used.
    weights_ : list of arrays (edges,)
        Weight of every member in every list of the context.
    intercept_ : array of shape (N,)
    validation_ : dict
        Mean squared error on the validation data for each ridge that was tried.
    family_ : Gaussian
        Its sigma2 is the mean squared residual of the validation data, or of the training data
        if the ridge is fixed.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1)) + 0.1 * rng.normal(size=(200, 3))
    >>> model = NeighborRidge("neighbors", ridge=1.0).fit(X)
    >>> model.conditional([[1.0, 1.0, np.nan]]).round(1)
    array([[0.5, 0.5, 1. ]])
    """

    context: Any = "neighbors"
    _: KW_ONLY
    ridge: float | str = "auto"
    intercept: bool = True
    random_state: Any = 0
    n_jobs: int | None = 1
    verbose: int = 0

    ridge_: float = field(init=False)
    weights_: list[Floats] = field(init=False)
    intercept_: Floats = field(init=False)
    validation_: dict[float, float] = field(init=False)
    context_: Kept = field(init=False)

    def _family(self) -> Family:
        return Gaussian()

    def _check(self) -> None:
        if self.ridge != "auto":
            check_number("ridge", self.ridge, low=0)
        flag("intercept", self.intercept)

    def _fit(self, data: Dataset, validation: Dataset | None) -> None:
        check_variation(data, {})
        context = Context.resolve(self.context)
        spec = Spec.resolve(context=context, family=Gaussian(), intercept=bool(self.intercept))
        bound: Any = context.bind(data)
        if bound.lists is None:
            raise ParameterError(
                f"NeighborRidge needs a context that is fixed for each entity (Neighbors, Graph, "
                f"Lagged or a sum of them), not {context!r}"
            )
        bound.check_reach()
        if self.intercept:
            bound = bound.about(column_means(data))
        with workers(self.n_jobs) as pool:
            setup = Setup("moments", spec, pool, np.dtype(np.float64), 0)
            self._solve(bound, validation, setup)
        frozen = bound.frozen_part(context)
        self.context_ = frozen if isinstance(frozen, Kept) else Kept(context, ())

    def _solve(self, bound: EntityLists, validation: Dataset | None, setup: Setup) -> None:
        """Choose the ridge, and regress every entity on its members."""
        self.validation_ = {}
        solver: Any = None
        variance = np.nan
        if self.ridge != "auto":
            self.ridge_ = float(self.ridge)
        else:
            if validation is not None:
                split: Any = given_split(bound, validation, None, setup)
                solver = split.solver
            else:
                split = hold_out(bound, HELD_OUT, None, setup, generator(self.random_state))
            held: Any = split.validation
            judge = split.solver if held is None else held.solver
            ridges = list_ridges(split.solver)
            errors = self._regress(split.solver, ridges, judge)[2] / judge.total_weight
            self.validation_ = dict(zip(ridges.tolist(), errors.tolist(), strict=True))
            best = int(errors.argmin())
            self.ridge_, variance = float(ridges[best]), float(errors[best])
        solver = setup(bound, None) if solver is None else solver
        weights, intercept, errors = self._regress(solver, np.array([self.ridge_]), solver)
        unsorted = np.empty_like(weights)
        unsorted[solver.order] = weights
        sizes = [len(lists.members) for lists in bound.lists]
        self.weights_ = np.split(unsorted, np.cumsum(sizes)[:-1])
        self.intercept_ = intercept
        variance = errors[0] / solver.total_weight if np.isnan(variance) else variance
        self.family_ = Gaussian(max(float(variance), np.finfo(float).tiny))

    def _regress(
        self, solver: MomentsSolver, ridges: Floats, judge: MomentsSolver
    ) -> tuple[Floats, Floats, Floats]:
        """Weights and intercepts for the last ridge, and squared errors by `judge` for each."""
        weights, intercept = np.zeros(len(solver.members)), np.zeros(solver.bound.n_entities)

        def regress(piece: slice) -> Floats:
            total = np.zeros(len(ridges))
            for n in range(piece.start, piece.stop):
                w, b = regress_entity(solver, n, ridges)
                total += squared_errors(judge, n, w, b)
                weights[solver.ptr[n] : solver.ptr[n + 1]], intercept[n] = w[-1], b[-1]
            return total

        pieces = cut(solver.bound.n_entities, BLOCK_ENTITIES)
        errors = np.zeros(len(ridges))
        for results in solver.pool.map(regress, pieces):
            errors += results
        return weights, intercept, errors

    def _moments(self, data: Dataset) -> tuple[Floats, Floats]:
        bound = self.context_.bind(data)
        mean = np.empty((data.n_rows, data.n_entities))
        step = max(1, BLOCK_NUMBERS // max(bound.cost_of_row(), 1))
        for start in range(0, data.n_rows, step):
            rows = np.arange(start, min(start + step, data.n_rows))
            mean[rows] = bound.weighted_sums(rows, self.weights_) + self.intercept_
        return mean, np.array(self.family_.variance)


def list_ridges(solver: MomentsSolver) -> Floats:
    """1, 3, 10, ... from far below to far above the sum of squares of a member."""
    n = solver.bound.n_entities
    square = float(np.mean([np.diag(solver.regression(i)[0]).sum() for i in range(n)]))
    square *= n / max(len(solver.members), 1)
    middle = int(np.floor(np.log10(square))) if square > 0 else 0
    powers = range(middle + LEAST, middle + MOST)
    return np.array([float(f"{digit}e{power}") for power in powers for digit in (1, 3)])


def regress_entity(solver: MomentsSolver, n: int, ridges: Floats) -> tuple[Floats, Floats]:
    """Weights (ridges, c) and intercepts (ridges,) of one entity."""
    gram, cross, _ = solver.regression(n)
    weights = ridge_weights(gram, cross, ridges) if len(cross) else np.zeros((len(ridges), 0))
    size = len(cross)
    means = solver.gram[solver.place[n] : solver.place[n + 1]][-(size + 1) :]
    count = float(means[-1])
    if not count > 0:
        return weights, np.zeros(len(ridges))
    total = float(solver.cross[solver.ptr[n + 1] + n])
    return weights, np.asarray((total - weights @ means[:-1]) / count)


def squared_errors(judge: MomentsSolver, n: int, weights: Floats, intercept: Floats) -> Floats:
    """Sum of squared residuals of one entity on the rows of another solver, (ridges,)."""
    size = weights.shape[1]
    gram = judge.gram[judge.place[n] : judge.place[n + 1]].reshape(size + 1, size + 1)
    cross = judge.cross[judge.ptr[n] + n : judge.ptr[n + 1] + n + 1]
    w = np.concatenate([weights, intercept[:, None]], axis=1)
    fit = w @ (2.0 * cross) - np.einsum("rc,cd,rd->r", w, gram, w, optimize=True)
    return np.asarray(np.maximum(judge.square_of[n] - fit, 0.0))
