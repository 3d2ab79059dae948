"""Solver: value and gradient of the data term for some rows; one solver a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from efemb._typing import Floats, Ints
from efemb.engine.random import RoundKey
from efemb.engine.threads import Workers
from efemb.errors import ParameterError
from efemb.model.contexts.base import BoundContext
from efemb.model.factors import Factors
from efemb.model.families.base import Density, Family
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec

if TYPE_CHECKING:
    from efemb.engine.plan import Plan
    from efemb.engine.state import TrainState

Bound = TypeVar("Bound", bound=BoundContext)


class CellStatistic(Density):
    """Not a density: its "slopes" are numbers that are to be summed by entity.

    With it, the gradient of the intercepts contains these sums. The numbers are the `evidence` of
    `family`, or 1 if that is None.
    """

    listed = False

    def __init__(self, family: Family | None = None) -> None:
        self.family = family

    @property
    def varies(self) -> bool:
        """Whether numbers may differ between entities."""
        return True

    def at(self, entities: Ints) -> Family:
        """Return the statistic of some entities."""
        return CellStatistic(None if self.family is None else self.family.at(entities))

    def value_and_slope(self, x: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Return zeros, and the numbers."""
        numbers = np.ones_like(v) if self.family is None else self.family.evidence(x, v)
        return np.zeros_like(v), numbers

    def expected_value(self, eta: Floats) -> Floats:
        """Return zeros."""
        return np.zeros_like(eta)


class Solver(ABC, Generic[Bound]):
    """Log-likelihood of some rows and its gradient in the vectors.

    Parameters
    ----------
    bound : the context of every observation
    spec : the model
    pool : threads
    dtype : precision
    row_weight : array (rows,), optional
    seed : seed of the draws
    popularity : array (N,), by default the number of bound rows with each entity; for a shard, that
        of all rows
    """

    name: ClassVar[str]
    stochastic: ClassVar[bool] = True  # whether it can work on a part of the rows
    weighs: ClassVar[bool] = True  # whether it takes weights of rows
    total_weight: float  # sum of the weights of all terms
    n_observed: float  # weight of the observations, without the zeros of rows

    def __init__(
        self,
        bound: Bound,
        spec: Spec,
        pool: Workers,
        *,
        dtype: Any = np.float64,
        row_weight: Floats | None = None,
        seed: int = 0,
        popularity: Floats | None = None,
    ) -> None:
        self.bound, self.spec, self.pool, self.seed = bound, spec, pool, seed
        self.popularity = popularity
        self.dtype = np.dtype(dtype)
        self.n_rows = bound.n_rows
        self.row_weight: Floats = np.broadcast_to(self.dtype.type(1), bound.n_rows)
        if self.weighs:
            weight = np.ones(bound.n_rows) if row_weight is None else row_weight
            self.row_weight = bound.row_weights(weight).astype(self.dtype)
        elif row_weight is not None:
            raise ParameterError(f"solver {self.name!r} takes no sample_weight")
        self.family: Family = spec.family
        self._entity_weight: Floats | None = None
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Check that the solver supports the model, and compute what does not change."""

    def set_family(self, family: Family) -> None:
        """Use a family whose dispersion has been refitted."""
        self.family = family

    def evidence(self, vectors: Factors) -> tuple[Floats, Floats]:
        """Sums by entity of the evidence of the family over all cells, and of their weights."""
        family = self.family
        if self._entity_weight is None:
            self._entity_weight = self._add_up(CellStatistic(), vectors)
        try:
            return self._add_up(CellStatistic(family), vectors), self._entity_weight
        finally:
            self.set_family(family)

    def _add_up(self, statistic: Family, vectors: Factors) -> Floats:
        self.set_family(statistic)
        _, gradient = self.value_and_gradient(vectors, exact=True)
        return gradient.intercept.astype(np.float64)

    def start_round(self, key: RoundKey) -> None:
        """Draw what the solver needs for a round of a shard, if anything."""

    def projects(self, space: ParameterSpace) -> bool:
        """Whether the best rho given alpha is known in closed form."""
        return False

    def shuffle(self, rng: np.random.Generator) -> Ints:
        """All rows in the order in which a pass visits them."""
        return rng.permutation(self.n_rows)

    def expect(self, rows: Ints | None) -> None:
        """Note the rows that come after the next ones, which may be prepared in the background."""

    def passes(self, state: TrainState, plan: Plan) -> Any:
        """Passes of a first-order optimizer; by default minibatch steps by `value_and_gradient`."""
        from efemb.engine.epochs import Passes

        return Passes(self, state, plan)

    @abstractmethod
    def value_and_gradient(
        self, vectors: Factors, rows: Ints | None = None, *, exact: bool = False
    ) -> tuple[float, Factors]:
        """Sum over the rows (all of them by default).

        `exact` visits every zero even if the model samples them.
        """
