"""Predictions: what a model said about each entry it was asked for, and the scores of that."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from efemb.errors import DataError, ParameterError
from efemb.evaluation.metrics import RECALL, metric_of
from efemb.evaluation.scores import By, Score, averaged
from efemb.nearest import checked_number
from efemb.table import Table
from efemb.types import Floats, Ints

_WHERE = {
    "log_share": "counts and binary data whose contexts are rows",
    "rank": "counts and binary data whose contexts are rows",
    "log_density": "families that say which parameter a mean belongs to (Family.predictor)",
    "mean": "real data, and contexts that are not rows",
    "context_size": "contexts that are fixed for each entity (Neighbors, Graph, Lagged)",
}


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """Entries in the order of rows and then entities, each predicted without itself.

    Parameters
    ----------
    row, entity : integer array (n,)
        Places in the data that were judged.
    x : array (n,)
        What was observed.
    log_share : array (n,), optional
        log(m_n / sum_j m_j), m the conditional means of all entities given the entry's context.
    log_density : array (n,), optional
        Conditional log-density of x. Of a categorical family: x log_share.
    mean : array (n,), optional
        Conditional mean of x.
    rank : array (n,), optional
        Place of the entity among those that are not in its context, 1 for the largest mean; ties
        count half.
    context_size : integer array (n,), optional
        Observed members of the entry's context.
    n_skipped : int
        Entries left out because nothing remained in their context.
    """

    row: Ints
    entity: Ints
    x: Floats
    log_share: Floats | None = None
    log_density: Floats | None = None
    mean: Floats | None = None
    rank: Floats | None = None
    context_size: Ints | None = None
    n_skipped: int = 0

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name != "n_skipped" and value is not None and value.shape != self.x.shape:
                raise DataError(
                    f"{one.name} has shape {value.shape}, but x has {self.x.shape}: "
                    "one number for each entry is needed"
                )

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        parts = [f"{len(self):,} entries of {len(np.unique(self.row)):,} rows"]
        parts += [one for one in _WHERE if getattr(self, one) is not None]
        if self.n_skipped:
            parts.append(f"{self.n_skipped:,} skipped")
        return f"Predictions({', '.join(parts)})"

    @property
    def n_empty(self) -> int:
        """Entries that were predicted from an empty context, by the intercept alone."""
        return 0 if self.context_size is None else int((self.context_size == 0).sum())

    def known(self, name: str) -> Floats:
        """One of the arrays; an error where it does not exist."""
        values: Floats | None = getattr(self, name)
        if values is None:
            raise ParameterError(f"there is no {name} here: it exists for {_WHERE[name]}")
        return values

    def score(self, metric: str, by: By | None = None) -> Score:
        """Mean of a metric, by its name.

        Parameters
        ----------
        metric : {"normalized_log_likelihood", "log_likelihood", "mean_squared_error", \
"mean_reciprocal_rank", "recall@10", "mrr@100", "ndcg@10"}
            The last three take any cut-off k. An entry counts 1, 1 / rank and 1 / log2(1 + rank)
            respectively if its rank is at most k, else 0.
        by : {"unit", "entry", "row"}, optional
            What the mean and its standard error are over; "unit" for the normalised
            log-likelihood, else "entry".
        """
        chosen = metric_of(metric)
        return averaged(chosen.values(self), by or chosen.by, x=self.x, row=self.row)

    def normalized_log_likelihood(self, by: By = "unit") -> Score:
        """Mean of log(m_n / sum_j m_j): sum x log_share / sum x, or over entries or rows."""
        return self.score("normalized_log_likelihood", by)

    def log_likelihood(self, by: By = "entry") -> Score:
        """Mean conditional log-density of what was observed."""
        return self.score("log_likelihood", by)

    def mean_squared_error(self, by: By = "entry") -> Score:
        """Mean of (x - mean)^2, its standard error over entries or over rows (frames).

        By row it is the mean of the rows' mean squared errors: the same number unless some rows
        have more missing values than others.
        """
        return self.score("mean_squared_error", by)

    def recall(self, k: int = 10, by: By = "entry") -> Score:
        """Share of entries whose entity is among the first k of those not in its context."""
        return self.score(f"{RECALL}{checked_number(k)}", by)

    def mean_reciprocal_rank(self, by: By = "entry") -> Score:
        """Mean of 1 / rank."""
        return self.score("mean_reciprocal_rank", by)

    def context_sizes(self) -> Table:
        """How many entries had how many observed members in their context: size, n, share."""
        size, n = np.unique(self.known("context_size"), return_counts=True)
        return Table({"size": size, "n": n, "share": n / n.sum()})

    def summary(self) -> Table:
        """Every score that exists: metric, by, score, standard_error, row_error (`Score`), n."""
        wanted: list[tuple[str, By]] = []
        if self.log_share is not None:
            wanted += [
                ("normalized_log_likelihood", "unit"),
                ("normalized_log_likelihood", "entry"),
            ]
        if self.log_density is not None:
            wanted.append(("log_likelihood", "entry"))
        if self.mean is not None:
            wanted += [("mean_squared_error", "entry"), ("mean_squared_error", "row")]
        if self.rank is not None:
            wanted += [(f"{RECALL}10", "entry"), ("mean_reciprocal_rank", "entry")]
        found = [self.score(metric, by) for metric, by in wanted]
        columns: dict[str, list[Any]] = {
            "metric": [metric for metric, _ in wanted],
            "by": [by for _, by in wanted],
            "score": [one.value for one in found],
            "standard_error": [one.standard_error for one in found],
            "row_error": [one.row_error for one in found],
            "n": [one.n for one in found],
        }
        for name, count in (("skipped", self.n_skipped), ("empty context", self.n_empty)):
            if count:
                extra = (name, "entry", *[float("nan")] * 3, float(count))
                for column, cell in zip(columns.values(), extra, strict=True):
                    column.append(cell)
        return Table(columns)
