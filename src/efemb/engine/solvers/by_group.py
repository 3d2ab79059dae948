"""GroupedSolver: any solver, for models in which each group of rows has its own vectors."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.engine.random import RoundKey
from efemb.engine.solvers.base import Solver
from efemb.engine.threads import Workers
from efemb.model.contexts.base import BoundContext
from efemb.model.factors import Factors
from efemb.model.families.base import Family
from efemb.model.predictor import by_group
from efemb.model.spec import Spec

STRETCH = 256  # consecutive rows of one group, so that matrix products stay large

Parts = list[tuple[int, Ints]]


class GroupedSolver(Solver[BoundContext]):
    """Calls an inner solver once per group, with the vectors of that group, and adds the results.

    A stochastic solver gets the rows of the group. For a solver that needs all rows (moments),
    there is one solver per group, in which the rows of other groups have weight 0.
    """

    name = "grouped"

    def __init__(
        self,
        kind: type[Solver[Any]],
        bound: BoundContext,
        spec: Spec,
        pool: Workers,
        *,
        dtype: Any = np.float64,
        row_weight: Floats | None = None,
        **options: Any,
    ) -> None:
        self.kind, self.options = kind, {**options, "dtype": dtype}
        self.passed_weight = row_weight
        super().__init__(bound, spec, pool, dtype=dtype, row_weight=row_weight, **options)
        self.name, self.stochastic = kind.name, kind.stochastic  # type: ignore[misc]

    def prepare(self) -> None:
        """Make the inner solvers."""
        self.codes = self.bound.spread_to_rows(self.spec.structure.codes(self.bound.whole_data))
        self.ready: tuple[Ints, Parts] | None = None  # the rows of the next call, by group
        self.following: tuple[Ints, Parts] | None = None  # and those of the one after it
        self.every = by_group(self.codes)
        arguments = (self.bound, self.spec, self.pool)
        if self.kind.stochastic:
            inner = self.kind(*arguments, row_weight=self.passed_weight, **self.options)
            self.inner = {group: inner for group, _ in self.every}
            solvers = [inner]
        else:
            weight = np.ones(self.n_rows) if self.passed_weight is None else self.passed_weight
            self.inner = {
                group: self.kind(
                    *arguments,
                    row_weight=np.where(self.codes == group, weight, 0.0),
                    **self.options,
                )
                for group, _ in self.every
            }
            solvers = list(self.inner.values())
        self.solvers = solvers
        self.n_observed = sum(solver.n_observed for solver in solvers)

    @cached_property
    def total_weight(self) -> float:  # type: ignore[override]
        """Sum of the weights of all terms."""
        return sum(solver.total_weight for solver in self.solvers)

    def set_family(self, family: Family) -> None:
        """Use a family whose dispersion has been refitted."""
        self.family = family
        for solver in self.solvers:
            solver.set_family(family)

    def evidence(self, vectors: Factors) -> tuple[Floats, Floats]:
        """Sums by entity over the rows of all groups."""
        if self.kind.stochastic:
            return super().evidence(vectors)
        parts = [self.inner[group].evidence(vectors.of_group(group)) for group, _ in self.every]
        total, weight = (np.sum(sums, axis=0) for sums in zip(*parts, strict=True))
        return total, weight

    def _add_up(self, statistic: Family, vectors: Factors) -> Floats:
        self.set_family(statistic)
        _, gradient = self.value_and_gradient(vectors, exact=True)
        of_groups = [intercept for _, intercept, _ in gradient.by_group.values()]
        total = np.sum([gradient.intercept, *of_groups], axis=0, dtype=np.float64)
        return np.asarray(total)

    def start_round(self, key: RoundKey) -> None:
        """Start the round of the inner solvers."""
        for solver in self.solvers:
            solver.start_round(key)

    def shuffle(self, rng: np.random.Generator) -> Ints:
        """Rows in stretches of one group each, in random order."""
        stretches = []
        for _, rows in self.every:
            order = rng.permutation(rows)
            n_stretches = max(1, round(len(order) / STRETCH))
            stretches += np.array_split(order, n_stretches)
        return np.concatenate([stretches[place] for place in rng.permutation(len(stretches))])

    def expect(self, rows: Ints | None) -> None:
        """Note the rows that come after the next ones, sorted into groups."""
        self.ready = self.following
        self.following = None if rows is None else (rows, self._parts(rows))

    def _parts(self, rows: Ints) -> Parts:
        return [(group, rows[places]) for group, places in by_group(self.codes[rows])]

    def _visits(self, rows: Ints) -> list[tuple[int, Ints, Ints | None]]:
        """(group, its rows, the rows that are visited next)."""
        expected = self.ready is not None and self.ready[0] is rows
        parts = self.ready[1] if expected and self.ready is not None else self._parts(rows)
        later = [] if self.following is None else self.following[1][:1]
        after: list[Ints | None] = [places for _, places in [*parts[1:], *later]]
        after += [None] * (len(parts) - len(after))
        return [(*part, places) for part, places in zip(parts, after, strict=True)]

    def value_and_gradient(
        self, vectors: Factors, rows: Ints | None = None, *, exact: bool = False
    ) -> tuple[float, Factors]:
        """Sum over the groups of the rows, in their order."""
        total, gradient = 0.0, Factors.zeros_like(vectors)
        whole: list[tuple[int, Ints, Ints | None]] = [(*part, None) for part in self.every]
        for group, places, after in whole if rows is None else self._visits(rows):
            group_vectors, solver = vectors.of_group(group), self.inner[group]
            if not exact:
                solver.expect(after)
            group_rows = places if self.kind.stochastic else None
            value, slopes = solver.value_and_gradient(group_vectors, group_rows, exact=exact)
            total += value
            own_contexts = self.spec.structure.contexts
            gradient.add_group(group, slopes.on_all_rows(group_vectors), own_contexts=own_contexts)
        return total, gradient
