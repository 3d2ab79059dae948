"""Validation: the score of held-out observations during training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.engine.solvers.base import Solver
from efemb.engine.threads import Workers, cut
from efemb.model.contexts.bound.rows import RowBags
from efemb.model.factors import Factors
from efemb.model.families.base import Family
from efemb.model.huffman import Huffman
from efemb.model.predict import cell_scores
from efemb.model.predictor import Cells, row_groups, row_side
from efemb.model.score import cell_log_density
from efemb.model.spec import Spec

BLOCK_ENTRIES = 2048
MANY_ENTITIES, BLOCK_CELLS = 8192, 1 << 22  # each entry is compared with every entity


class Validation(ABC):
    """Interface of scores of vectors; higher is better."""

    @abstractmethod
    def parts(self, vectors: Factors, family: Family) -> tuple[float, float]:
        """Weighted sum of the scores of the held-out observations, and the sum of their weights.

        Both add up over shards; their ratio is the score.
        """

    @abstractmethod
    def use(self, pool: Workers) -> None:
        """Use other threads, for instance if those of the last score are closed."""

    def score(self, vectors: Factors, family: Family) -> float:
        """Mean score of the held-out observations."""
        total, weight = self.parts(vectors, family)
        return total / weight


class EntryValidation(Validation):
    """Held-out entries of row contexts: normalized log-likelihood per unit, or log-density.

    `row_weight` is the weight of the rows of the entries, 1 by default.
    """

    def __init__(
        self,
        entries: Cells,
        spec: Spec,
        pool: Workers,
        normalizer: Huffman | Floats | None = None,
        row_weight: Floats | None = None,
    ) -> None:
        self.entries, self.spec, self.pool = entries.known(), spec, pool
        self.normalizer = normalizer
        row = self.entries.row
        self.weight = np.ones(len(row)) if row_weight is None else row_weight[row]
        self.pieces: list[Cells] | None = None

    def use(self, pool: Workers) -> None:
        """Use other threads."""
        self.pool = pool

    def parts(self, vectors: Factors, family: Family) -> tuple[float, float]:
        """Sum of x log p and of x if the family is scored by shares, else of log-densities."""
        spec = replace(self.spec, family=family)

        def score(cells: Cells) -> Floats:
            if family.normalized_score:
                return cell_scores(spec, cells, vectors, self.normalizer)
            return cell_log_density(family, spec.link, cells, vectors)

        if self.pieces is None:
            n_entities, size = len(vectors.target), BLOCK_ENTRIES
            if n_entities > MANY_ENTITIES:
                size = max(1, BLOCK_CELLS // n_entities)
            self.pieces = [self.entries.compact(cells) for cells in cut(len(self.entries.x), size)]
        each = np.concatenate(list(self.pool.map(score, self.pieces)))
        weight = self.weight * self.entries.x if family.normalized_score else self.weight
        return float(weight @ each), float(weight.sum())


class SolverValidation(Validation):
    """Held-out rows of any context: mean conditional log-density."""

    def __init__(self, solver: Solver[Any], rows: Ints | None, weight: float) -> None:
        self.solver, self.rows, self.weight = solver, rows, weight

    def use(self, pool: Workers) -> None:
        """Work in other threads."""
        self.solver.pool = pool

    def parts(self, vectors: Factors, family: Family) -> tuple[float, float]:
        """Log-likelihood of the rows, and their weight."""
        self.solver.set_family(family)
        value, _ = self.solver.value_and_gradient(vectors, self.rows, exact=True)
        return value, self.weight


def rows_given_themselves(spec: Spec, bound: RowBags) -> Cells:
    """Every entry of every row given the rest of its row."""
    block = bound.scored_block(np.arange(bound.n_rows), reverse=spec.combine.reverse)
    cells = Cells.leave_one_out(block, bound.n_context_vectors)
    return cells.with_terms(row_side(spec, bound), block.row, row_groups(spec, bound))


def entries_given_rows(spec: Spec, bound: RowBags, held: Any) -> Cells:
    """Stored entries of the sparse matrix `held`, given the training rows of `bound`."""
    rows = np.flatnonzero(np.diff(held.indptr))
    block = bound.block(rows)
    sizes = np.diff(held.indptr)[rows]
    row = np.repeat(np.arange(len(rows)), sizes)
    cells = Cells.held_out(block, bound.n_context_vectors, row, held.indices, held.data)
    return cells.with_terms(row_side(spec, bound), rows, row_groups(spec, bound))
