"""The `generic` solver: any context, family and link."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.engine.solvers.base import Solver
from efemb.errors import ParameterError
from efemb.kernels.sparse import scatter_bags, scatter_sums, scatter_targets
from efemb.model.contexts.base import BoundContext
from efemb.model.contexts.bound.terms import Bags, Terms
from efemb.model.factors import Factors
from efemb.model.objective import value_and_slope
from efemb.model.predictor import Predictor, row_side
from efemb.model.terms.base import RowSide


class GenericSolver(Solver[BoundContext]):
    """Visits every observed number with its context; exact, but slower than the other solvers."""

    name = "generic"

    def prepare(self) -> None:
        """Reject models whose observations are not independent terms."""
        if self.spec.family.softmax:
            raise ParameterError(
                "the categorical family needs a row context (Basket) and solver 'rows'"
            )
        if self.spec.zeros.gradient != "exact":
            raise ParameterError(
                f"zeros={self.spec.zeros!r} needs a row context (Basket); this context visits "
                "every observation: use zeros=All(weight)"
            )
        self.side = row_side(self.spec, self.bound)
        self.total_weight = self.n_observed = self._total_weight()

    def _blocks(self, rows: Ints, k: int) -> list[Ints]:
        """Cut the rows into pieces whose terms fit into a fixed amount of memory."""
        cost = self.bound.cost_of_row() + self.bound.n_entities * self.bound.n_dims * k
        size = max(1, self.pool.tuning.block_numbers // max(cost, 1))
        return [rows[start : start + size] for start in range(0, len(rows), size)]

    def terms(self, rows: Ints) -> tuple[Terms, Floats]:
        """Terms of some rows and their weights."""
        terms = self.bound.terms(rows, reverse=self.spec.combine.reverse)
        weight = self.row_weight[rows][terms.row]
        return terms, np.where(terms.x == 0, weight * self.spec.zeros.weight, weight)

    def _total_weight(self) -> float:
        rows = np.arange(self.n_rows)
        return float(sum(self.terms(piece)[1].sum() for piece in self._blocks(rows, 1)))

    def value_and_gradient(
        self, vectors: Factors, rows: Ints | None = None, *, exact: bool = False
    ) -> tuple[float, Factors]:
        """Sum over the rows, block by block in a fixed order."""
        places = np.arange(self.n_rows) if rows is None else rows
        pieces = self._blocks(places, vectors.n_bag)
        total, gradient = 0.0, Factors.zeros_like(vectors)
        # Each piece has a gradient of its own, so only a few may exist at a time.
        for value, part in self.pool.ahead(lambda piece: self._block(piece, vectors), pieces):
            total += value
            gradient.add(part)
        return total, gradient

    def _block(self, rows: Ints, vectors: Factors) -> tuple[float, Factors]:
        terms, weight = self.terms(rows)
        u, context = Predictor(vectors).observations(terms, self.side, rows)
        x = terms.x.astype(u.dtype)
        family = self.family.at(terms.entity)
        gain, slope = value_and_slope(family, self.spec.link, x, u)
        value = float(weight @ (gain + family.log_base_measure(x)))
        if self.bound.exposure is not None:
            value += self._base_of_exposed(terms.x, weight)
        slope = (weight * slope).astype(u.dtype)
        gradient = Factors.zeros_like(vectors)
        np.add.at(gradient.intercept, terms.entity, slope)
        d_context: Floats | None = None
        if vectors.combine is None:
            scatter_targets(slope, context, terms.vector, gradient.target)
            rho = np.ascontiguousarray(vectors.target[:, : vectors.n_bag])
            for part in terms.parts:
                _scatter_part(part, slope, terms.vector, rho, gradient.bag)
        else:
            of_terms = (vectors.target[terms.vector], context, slope)
            d_target, d_context = vectors.combine.pull_back(*of_terms)
            np.add.at(gradient.target, terms.vector, d_target)
            for part in terms.parts:
                _scatter_contexts(part, d_context[:, : vectors.n_bag], gradient.bag)
        if self.side is not None:
            pulled = self._pull_back_side(self.side, terms, slope, d_context, vectors, rows)
            gradient.add_terms(pulled)
        return value, gradient

    def _pull_back_side(
        self,
        side: RowSide,
        terms: Terms,
        slope: Floats,
        d_context: Floats | None,
        vectors: Factors,
        rows: Ints,
    ) -> dict[str, Floats]:
        """Gradients of the arrays behind the row side and the offsets of the terms."""
        first = vectors.target.shape[1] - side.width
        if d_context is None:
            d_context = slope[:, None] * vectors.target[terms.vector, first:]
        else:
            d_context = d_context[:, first:]
        d_side = np.zeros((len(rows), side.width), dtype=slope.dtype)
        np.add.at(d_side, terms.row, d_context)
        pulled = side.pull_back(vectors.terms, rows, d_side)
        offsets = side.offsets(vectors.terms, rows)
        if offsets is not None:
            cells = np.zeros((len(rows), side.n_entities), dtype=slope.dtype)
            np.add.at(cells, (terms.row, terms.entity), slope)
            of_cells = side.pull_back_cells(vectors.terms, rows, offsets.gather(cells))
            for name, array in of_cells.items():
                pulled[name] = pulled[name] + array if name in pulled else array
        return pulled

    def _base_of_exposed(self, x: Floats, weight: Floats) -> float:
        """Sum of (log h(1) + log L) / L - log h(x) over words of weight L and value x = 1 / L."""
        seen = x > 0
        base = -x[seen] * np.log(x[seen]) - self.family.log_base_measure(x[seen])
        return float(weight[seen] @ base)


def _signed_members(part: Bags) -> list[tuple[Any, Ints, float]]:
    """Members of the bags with sign 1, and members that leave them with sign -1."""
    members: list[tuple[Any, Ints, float]] = [(part.matrix, part.bag, 1.0)]
    if part.own is not None and part.left_out is not None:
        members.append((part.own, part.left_out, -1.0))
    return members


def _scatter_contexts(part: Bags, d_context: Floats, out: Floats) -> None:
    """Add the gradients of scaled context sums to those of the summed vectors."""
    scaled = d_context / part.scale.astype(d_context.dtype)[:, None]
    for matrix, index, sign in _signed_members(part):
        g_sums = np.zeros((matrix.shape[0], out.shape[1]), dtype=out.dtype)
        np.add.at(g_sums, index, sign * scaled)
        out[: matrix.shape[1]] += matrix.T.astype(out.dtype) @ g_sums


def _scatter_part(part: Bags, slope: Floats, vector: Ints, target: Floats, out: Floats) -> None:
    scale = part.scale.astype(slope.dtype)
    for matrix, index, sign in _signed_members(part):
        g_sums = np.zeros((matrix.shape[0], target.shape[1]), dtype=target.dtype)
        scatter_sums(slope, target, vector, index, scale, sign, g_sums)
        values = matrix.data.astype(target.dtype, copy=False)
        scatter_bags(matrix.indptr, matrix.indices, values, g_sums, out)
