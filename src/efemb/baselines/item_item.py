"""Item-item models: the score of an item is a sum of weights of the row's other items."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

from efemb._terminal import progress_bar
from efemb._typing import Floats, Ints
from efemb.baselines.arrays import Holdout
from efemb.baselines.base import Baseline, cell_blocks
from efemb.data.matrices import sparse, stored_cells
from efemb.errors import check_known
from efemb.model.families import Categorical, Family
from efemb.model.predictor import CHUNK_NUMBERS

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

BACKOFFS = ("uniform", "popularity")
HELD_OUT = 10  # without validation data, one row in ten is used to calibrate
# Standard deviation of the normal prior on log power and log weight, worth one entry: it only
# matters if a handful of entries would be explained best by an infinite power.
PRIOR_DEVIATION = 2.0
START_BACKOFF = 0.1  # of the mean sum of positive scores


@dataclass(eq=False, repr=False)
class ItemItem(Baseline):
    """score_n = sum of B_mn over the items m of the row, B_nn = 0; subclasses define `_learn`.

    Counts are used as 0/1, so that no single count dominates.
    """

    _: KW_ONLY
    backoff: str = "uniform"
    verbose: int = 0

    weights_: Any = field(init=False)
    power_: float = field(init=False)
    backoff_weight_: float = field(init=False)
    backoff_shares_: Floats = field(init=False)

    @abstractmethod
    def _learn(self, present: Any) -> None:
        """Set weights_: B, (N, N), an array or csr_array with zeros on the diagonal.

        present : csr_array of shape (T, N), 1 where a row contains an item
        """

    def _scores(self, bags: Any) -> Floats:
        """Scores of all items given bags of items, (bags, N); bags : csr_array of ones."""
        scores = bags.astype(self.weights_.dtype) @ self.weights_
        return np.asarray(scores.toarray() if hasattr(scores, "toarray") else scores)

    def _own_scores(self, bags: Any) -> Floats:
        """Score of each item given the bag without it: the same as with it, since B_nn = 0."""
        return self._scores(bags)

    def _family(self) -> Family:
        return Categorical()

    def _check(self) -> None:
        check_known("backoff", self.backoff, BACKOFFS)

    def _fit(self, data: Dataset, validation: Dataset | None) -> None:
        present = _presence(data)
        validation_rows = Holdout.of(data, validation, missing=False).others
        with progress_bar(f"fitting {type(self).__name__}", 2, bool(self.verbose)) as advance:
            if validation_rows is None:
                # Rows that the weights were learned from are predicted too well to calibrate on. So
                # are held-out entries of such rows, which were zeros for the weights.
                companions = np.flatnonzero(np.diff(present.indptr) >= 2)
                apart = companions[HELD_OUT // 2 :: HELD_OUT]
                self._learn(present[np.setdiff1d(np.arange(data.n_rows), apart)])
                self._calibrate(present, present[apart])
                advance(1)
                self._learn(present)
            else:
                self._learn(present)
                advance(1)
                self._calibrate(present, _presence(validation_rows))
            advance(1)

    def _calibrate(self, present: Any, others: Any) -> None:
        """Fit the calibration to (evenly spread) entries of rows that the weights have not seen."""
        backoff = self._backoff_shares(present)
        rows, entities = stored_cells(others)
        company = np.flatnonzero(np.diff(others.indptr)[rows] >= 2)
        calibration = Calibration(backoff)
        if len(company):
            size = min(len(company), max(64, CHUNK_NUMBERS // present.shape[1]))
            cells = company[np.linspace(0, len(company) - 1, size).astype(np.int64)]
            scores = self._scores(_bags_without(others, rows[cells], entities[cells]))
            calibration = Calibration.fit(backoff, scores, entities[cells])
        self.power_, self.backoff_weight_ = calibration.power, calibration.weight
        self.backoff_shares_ = calibration.backoff

    @property
    def _calibration(self) -> Calibration:
        return Calibration(self.backoff_shares_, self.power_, self.backoff_weight_)

    def _backoff_shares(self, present: Any) -> Floats:
        """Share of each item in all lines; an item that never occurs counts as half a line."""
        if self.backoff == "uniform":
            return np.full(present.shape[1], 1.0 / present.shape[1])
        lines = np.maximum(np.asarray(present.sum(axis=0)).ravel(), 0.5)
        return np.asarray(lines / lines.sum())

    def _log_mean_blocks(
        self, data: Dataset, rows: Ints, entities: Ints
    ) -> Iterator[tuple[slice, Floats]]:
        present = _presence(data)
        for block in cell_blocks(len(rows), data.n_entities):
            bags = _bags_without(present, rows[block], entities[block])
            yield block, self._calibration.log_means(self._scores(bags))

    def _own_log_means(self, data: Dataset) -> Floats:
        present, log_means = _presence(data), np.empty(data.shape)
        with progress_bar("predicting rows", data.n_rows, bool(self.verbose)) as advance:
            for block in cell_blocks(data.n_rows, data.n_entities):
                log_means[block] = self._calibration.log_means(self._own_scores(present[block]))
                advance(block.stop - block.start)
        return log_means


def _presence(data: Dataset) -> Any:
    """csr_array (T, N) of float64, 1 where an item is in a row."""
    return (sparse(data) != 0).astype(np.float64)


def _bags_without(present: Any, rows: Ints, entities: Ints) -> Any:
    """The row of each cell without the cell's entity, csr_array (cells, N)."""
    bags = present[rows]
    cell = np.repeat(np.arange(len(rows)), np.diff(bags.indptr))
    bags.data[bags.indices == entities[cell]] = 0.0
    return bags


@dataclass(frozen=True)
class Calibration:
    """m_j = max(score_j, 0)^power + weight * backoff_j, proportional to the share of entity j.

    power, weight : > 0
    backoff : (N,) positive shares with a sum of 1: of the entities' popularity, or 1 / N
    """

    backoff: Floats
    power: float = 1.0
    weight: float = 1.0

    def log_means(self, scores: Floats) -> Floats:
        """log m_j, elementwise; scores : (..., N)."""
        positive = np.maximum(scores, 0.0, dtype=np.float64)
        return np.asarray(np.log(positive**self.power + self.weight * self.backoff))

    @classmethod
    def fit(cls, backoff: Floats, scores: Floats, entities: Ints) -> Calibration:
        """Maximize the mean log share of held-out entries.

        scores : (n, N), of all entities given the row of each held-out entry without it
        entities : (n,), the held-out entries
        """
        # The backoff sums to 1 and other scores count as 0, so only positive ones are needed.
        cell, _ = np.nonzero(scores > 0)
        positive = scores[scores > 0].astype(np.float64)
        if len(positive) == 0:
            return cls(backoff)
        own = np.maximum(scores[np.arange(len(entities)), entities], 0.0).astype(np.float64)
        # In units of the mean positive sum, the start does not depend on the scale of the scores.
        start = np.log([1.0, START_BACKOFF * positive.sum() / len(entities)])

        def loss(point: Floats) -> float:
            power, weight = np.exp(point)
            total = np.bincount(cell, positive**power, len(entities)) + weight
            log_share = np.log(own**power + weight * backoff[entities]) - np.log(total)
            log_prior = -0.5 * np.sum(((point - start) / PRIOR_DEVIATION) ** 2)
            return -float(log_share.sum() + log_prior) / len(entities)

        simplex = start + 0.5 * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        options: Any = {"initial_simplex": simplex, "xatol": 0.01, "fatol": 1e-5}
        best = minimize(loss, start, method="Nelder-Mead", options=options).x
        return cls(backoff, *(float(value) for value in np.exp(best)))
