"""Predictions: what a model predicts for each queried entry, and the resulting scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlog1py, xlogy

from efemb._terminal import progress_bar
from efemb._typing import Bools, Floats, Ints
from efemb.baselines.arrays import normal_log_density
from efemb.errors import DataError, ParameterError, check_integer, check_number
from efemb.evaluation.adapter import Judged, stored_entries
from efemb.evaluation.metrics import ABSENT, RANKING, RECALL, metric_of
from efemb.evaluation.scores import By, Score, average
from efemb.model.contexts.base import gather_rows
from efemb.model.families import Family
from efemb.model.links import Identity
from efemb.model.objective import CACHED_NUMBERS, expected_value, log_density, log_sums
from efemb.table import Table, import_package

_ROUNDING = 1e-9  # relative deviation below which values are a constant
MOSTLY_INSIDE = 0.999  # share of the context in a sum above which the rest is summed directly
_WHERE = {
    "log_share": "counts and binary data whose contexts are rows",
    "absent_log_share": "counts and binary data whose contexts are rows",
    "rank": "counts and binary data whose contexts are rows",
    "log_density": "families that define the parameter of a mean (Family.predictor)",
    "mean": "real data, and contexts that are not rows",
    "context_size": "contexts that are fixed for each entity (Neighbors, Graph, Lagged)",
}


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """Entries ordered by row and then entity, each predicted without itself.

    Parameters
    ----------
    row, entity : integer array of shape (n,)
        Positions of the entries in the data.
    x : array of shape (n,)
        Observed values.
    log_share : array of shape (n,), optional
        log(m_n / sum_j m_j), m the conditional means of all entities given the entry's context.
    log_density : array of shape (n,), optional
        Conditional log-density of x; x log_share for a categorical family.
    mean : array of shape (n,), optional
        Conditional mean of x.
    rank : array of shape (n,), optional
        Rank of the entity among those outside its context, 1 for the largest mean; ties count
        half.
    context_size : integer array of shape (n,), optional
        Number of observed members of the entry's context.
    absent_log_share : array of shape (n,), optional
        Like `log_share`, among the entities outside the context only. `BasketEmbedding` has
        separate weights for these, which make them calibrated probabilities.
    n_skipped : int, default=0
        Number of entries that were skipped because their context was empty.
    """

    row: Ints
    entity: Ints
    x: Floats
    log_share: Floats | None = None
    log_density: Floats | None = None
    mean: Floats | None = None
    rank: Floats | None = None
    context_size: Ints | None = None
    absent_log_share: Floats | None = None
    n_skipped: int = 0

    def __post_init__(self) -> None:
        for entry_field in fields(self):
            value = getattr(self, entry_field.name)
            if (
                entry_field.name != "n_skipped"
                and value is not None
                and value.shape != self.x.shape
            ):
                raise DataError(
                    f"{entry_field.name} has shape {value.shape}, but x has {self.x.shape}: "
                    "pass one number per entry"
                )

    def take(self, chosen: Bools) -> Predictions:
        """Some of the entries.

        Parameters
        ----------
        chosen : boolean array of shape (n,)

        Returns
        -------
        Predictions
            None of them counts as skipped.
        """
        arrays: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        arrays.pop("n_skipped")
        selected = {name: array[chosen] for name, array in arrays.items() if array is not None}
        return Predictions(**selected)

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        words = [f"{len(self):,} entries of {len(np.unique(self.row)):,} rows"]
        words += [name for name in _WHERE if getattr(self, name) is not None]
        if self.n_skipped:
            words.append(f"{self.n_skipped:,} skipped")
        return f"Predictions({', '.join(words)})"

    @property
    def n_empty(self) -> int:
        """Number of entries with an empty context, which the intercept alone predicts."""
        return 0 if self.context_size is None else int((self.context_size == 0).sum())

    def known(self, name: str) -> Floats:
        """One of the arrays.

        Parameters
        ----------
        name : str
            Name of an attribute, such as "rank" or "log_share".

        Raises
        ------
        ParameterError
            If these predictions do not have it; the message says which do.
        """
        values: Floats | None = getattr(self, name)
        if values is None:
            raise ParameterError(f"these predictions have no {name}: it exists for {_WHERE[name]}")
        return values

    def score(self, metric: str, by: By | None = None) -> Score:
        """Mean of a metric.

        Parameters
        ----------
        metric : {"normalized_log_likelihood", "absent_log_likelihood", "log_likelihood", \
"mean_squared_error", "mean_reciprocal_rank", "recall@10", "mrr@100", "ndcg@10"}
            "absent_log_likelihood" is normalized over the entities outside the context, as the
            probabilities of `recommend` are. The last three accept any cut-off k. An entry
            contributes 1, 1 / rank and 1 / log2(1 + rank), respectively, if its rank is at most
            k, otherwise 0.
        by : {"unit", "entry", "row"}, optional
            What the mean and its standard error are taken over: units of count, entries or rows.
            Default: "unit" for the normalized log-likelihood, otherwise "entry".

        Returns
        -------
        Score
            The mean with its standard errors.
        """
        chosen = metric_of(metric)
        return average(chosen.values(self), by or chosen.by, x=self.x, row=self.row)

    def normalized_log_likelihood(self, by: By = "unit") -> Score:
        """Mean of log(m_n / sum_j m_j): sum x log_share / sum x, or over entries or rows.

        Parameters
        ----------
        by : {"unit", "entry", "row"}, default="unit"
            What is averaged: units of the counts, entries, or means of rows.
        """
        return self.score("normalized_log_likelihood", by)

    def log_likelihood(self, by: By = "entry") -> Score:
        """Mean conditional log-density of the observed values.

        Parameters
        ----------
        by : {"unit", "entry", "row"}, default="entry"
            What is averaged: units of the counts, entries, or means of rows.
        """
        return self.score("log_likelihood", by)

    def mean_squared_error(self, by: By = "entry") -> Score:
        """Mean of (x - mean)^2, with a standard error over entries or over rows.

        `by="row"` averages the mean squared errors of the rows, which gives the same value unless
        some rows have more missing values than others.

        Parameters
        ----------
        by : {"unit", "entry", "row"}, default="entry"
            What is averaged: units of the counts, entries, or means of rows.
        """
        return self.score("mean_squared_error", by)

    def recall(self, k: int = 10, by: By = "entry") -> Score:
        """Fraction of entries whose entity has a rank of at most k.

        Parameters
        ----------
        k : int, default=10
            Length of the list of recommendations.
        by : {"unit", "entry", "row"}, default="entry"
            What is averaged: units of the counts, entries, or means of rows.
        """
        return self.score(f"{RECALL}{check_integer('k', k)}", by)

    def mean_reciprocal_rank(self, by: By = "entry") -> Score:
        """Mean of 1 / rank.

        Parameters
        ----------
        by : {"unit", "entry", "row"}, default="entry"
            What is averaged: units of the counts, entries, or means of rows.
        """
        return self.score("mean_reciprocal_rank", by)

    def context_sizes(self) -> Table:
        """Distribution of the number of observed context members: columns size, n, share."""
        size, n = np.unique(self.known("context_size"), return_counts=True)
        return Table({"size": size, "n": n, "share": n / n.sum()})

    def by_entity(self, level: float = 0.95) -> Table:
        """How well each entity is predicted.

        Parameters
        ----------
        level : float, default=0.95
            Level of the intervals.

        Returns
        -------
        Table
            Columns entity, n, mean_squared_error, r2, low and high. r2 is the share of the
            entity's variance that the predictions explain, 1 - sum (x - mean)^2 /
            sum (x - average)^2; low and high are the ends of its normal interval, with errors
            of the ratio that treat rows as independent. NaN if an entity does not vary.
        """
        level = check_number("level", level, above=0, below=1)
        entity, code = np.unique(self.entity, return_inverse=True)
        n = np.bincount(code)
        squares = (self.x - self.known("mean")) ** 2
        average = np.bincount(code, self.x) / n
        around = (self.x - average[code]) ** 2
        residual, total = np.bincount(code, squares), np.bincount(code, around)
        total[total <= n * (_ROUNDING * average) ** 2] = 0.0  # their average is rounded
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(total > 0, residual / total, np.nan)
            spread = np.sqrt(np.bincount(code, (squares - ratio[code] * around) ** 2)) / total
        half = NormalDist().inv_cdf(0.5 + level / 2.0) * np.where(n > 1, spread, np.nan)
        return Table(
            {
                "entity": entity,
                "n": n,
                "mean_squared_error": residual / n,
                "r2": 1.0 - ratio,
                "low": 1.0 - ratio - half,
                "high": 1.0 - ratio + half,
            },
            f"r2: share of the variance that is explained, with its {level:.0%} interval",
        )

    def r2(self) -> float:
        """Share of the variance about the averages of the entities that is explained, over all."""
        code = np.unique(self.entity, return_inverse=True)[1]
        average = np.bincount(code, self.x) / np.bincount(code)
        total = float(((self.x - average[code]) ** 2).sum())
        residual = float(((self.x - self.known("mean")) ** 2).sum())
        return 1.0 - residual / total if total > 0 else float("nan")

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row per entry: row, entity, x and the predictions."""
        names = [each.name for each in fields(self) if each.name != "n_skipped"]
        columns = {name: getattr(self, name) for name in names}
        present = {name: values for name, values in columns.items() if values is not None}
        return import_package("pandas").DataFrame(present)

    def summary(self) -> Table:
        """All available scores: columns metric, by, score, standard_error, row_error and n.

        Real data also have `r2`, which has no error here; `by_entity` has its intervals.
        """
        requested: list[tuple[str, By]] = []
        if self.log_share is not None:
            requested += [
                ("normalized_log_likelihood", "unit"),
                ("normalized_log_likelihood", "entry"),
            ]
        if self.absent_log_share is not None:
            requested.append((ABSENT, "unit"))
        if self.log_density is not None:
            requested.append(("log_likelihood", "entry"))
        if self.mean is not None:
            requested += [("mean_squared_error", "entry"), ("mean_squared_error", "row")]
        if self.rank is not None:
            requested += [(name, "entry") for name in (*RANKING, "mean_reciprocal_rank")]
        scores = [self.score(metric, by) for metric, by in requested]
        columns: dict[str, list[Any]] = {
            "metric": [metric for metric, _ in requested],
            "by": [by for _, by in requested],
            "score": [score.value for score in scores],
            "standard_error": [score.standard_error for score in scores],
            "row_error": [score.row_error for score in scores],
            "n": [score.n for score in scores],
        }
        unknown = float("nan")
        further = [("skipped", unknown, self.n_skipped), ("empty context", unknown, self.n_empty)]
        if self.mean is not None and self.log_share is None:
            further.insert(0, ("r2", self.r2(), len(self.x)))
        for name, score, count in further:
            if count:
                extra = (name, "entry", score, unknown, unknown, float(count))
                for column, cell in zip(columns.values(), extra, strict=True):
                    column.append(cell)
        return Table(columns)


def predict_shares(
    judged: Judged, row: Ints, entity: Ints, x: Floats, skipped: Bools, progress: bool
) -> Predictions:
    """Predict entries of counts or binary data, scored against all other entities."""
    row, entity, x = row[~skipped], entity[~skipped].astype(np.int64), x[~skipped]
    units = x.astype(np.float64)
    with progress_bar("scoring entries", len(row), progress) as advance:
        arrays = score_entries(judged, row, judged.codes(entity), units, advance)
    return Predictions(row, entity, units, n_skipped=int(skipped.sum()), **arrays)


class Expected(NamedTuple):
    """Conditional mean and, if known, variance and context size of each cell."""

    mean: Floats
    variance: Floats | None
    size: Ints | None


def predict_means(judged: Judged, x: Floats, expected: Expected) -> Predictions:
    """Predict every cell of x that is not NaN by its conditional mean."""
    mean, variance, size = expected
    seen = ~np.isnan(x) if x.ndim == 2 else ~np.isnan(x).any(axis=2)
    row, entity = (np.repeat(index, x[0, 0].size) for index in np.nonzero(seen))
    if len(row) == 0:
        raise DataError("every value of X is missing (NaN): there is nothing to predict")
    sizes = None if size is None else size[row, entity]
    if sizes is not None and not sizes.any():
        raise DataError("every context is empty: no observed value has an observed context member")
    observed, predicted = x[seen].ravel().astype(np.float64), mean[seen].ravel()
    bad = np.flatnonzero(~np.isfinite(predicted))
    if len(bad):
        raise DataError(
            f"{type(judged.model).__name__}.conditional returned {predicted[bad[0]]} in row "
            f"{row[bad[0]]}, entity {entity[bad[0]]}: has the fit diverged?"
        )
    density = (
        log_density_of_mean(judged.family.at(entity), observed, predicted)
        if variance is None
        else normal_log_density(observed - predicted, variance[seen].ravel())
    )
    return Predictions(
        row, entity, observed, log_density=density, mean=predicted, context_size=sizes
    )


def score_entries(
    judged: Judged, row: Ints, code: Ints, x: Floats, advance: Callable[[int], None]
) -> dict[str, Any]:
    """Log shares, log_density and rank of entries, each given its row without itself."""
    context, _ = stored_entries(judged.data)
    names = ("log_share", "absent_log_share", "log_mean", "rank")
    arrays = {name: np.full(len(row), np.nan) for name in names}
    for chunk, values in _chunks(judged, judged.model.log_means, row, code):
        own = values[np.arange(len(values)), code[chunk]]
        cell, member = context_members(context, row[chunk], code[chunk])
        in_context, log_total = values[cell, member], log_sums(values)
        log_share = own - log_total
        arrays["log_share"][chunk] = log_share
        arrays["log_mean"][chunk] = own
        arrays["rank"][chunk] = ranks(values, own, cell, in_context)
        inside = np.bincount(cell, np.exp(in_context - log_total[cell]), len(values))
        absent = log_share - np.log1p(-np.minimum(inside, MOSTLY_INSIDE))
        for i in np.flatnonzero(inside > MOSTLY_INSIDE):  # 1 - inside would be rounding errors
            absent[i] = own[i] - _log_sum_outside(values[i], member[cell == i])
        arrays["absent_log_share"][chunk] = absent
        advance(chunk.stop - chunk.start)
    if hasattr(judged.model, "absent_log_means"):  # separate weights for absent entities
        for chunk, values in _chunks(judged, judged.model.absent_log_means, row, code):
            own = values[np.arange(len(values)), code[chunk]]
            arrays["absent_log_share"][chunk] = own - log_sums(values)
    log_mean, log_share = arrays.pop("log_mean"), arrays["log_share"]
    bad = np.flatnonzero(np.isnan(log_share))
    if len(bad):
        raise DataError(
            f"{type(judged.model).__name__}.log_means returned NaN for {len(bad):,} "
            f"entries, the first in row {row[bad[0]]}: has the fit diverged?"
        )
    density = log_density_at(judged.family.at(code), x, log_mean, log_share)
    return {**arrays, "log_density": density}


def _chunks(
    judged: Judged, log_means: Callable[..., Any], row: Ints, code: Ints
) -> Iterator[tuple[slice, Floats]]:
    """Log means of all entities given the rows of some entries, few of them at a time."""
    step = max(1, CACHED_NUMBERS // judged.data.n_entities)
    for cells, block in log_means(judged.data, row, code):
        _check_block(judged, cells, block)
        for start in range(cells.start, cells.stop, step):
            chunk = slice(start, min(start + step, cells.stop))
            yield chunk, block[start - cells.start : chunk.stop - cells.start]


def context_members(context: Any, row: Ints, code: Ints) -> tuple[Ints, Ints]:
    """(cell, entity) of all other entities in the rows of some entries."""
    ptr, where = gather_rows(context.indptr, row)
    cell = np.repeat(np.arange(len(row)), np.diff(ptr))
    member = context.indices[where]
    is_other = member != code[cell]
    return cell[is_other], member[is_other]


def _log_sum_outside(log_means: Floats, members: Ints) -> float:
    """Log of the sum of the means of all entities but these."""
    outside = np.array(log_means[None])
    outside[0, members] = -np.inf
    return float(log_sums(outside)[0])


def ranks(values: Floats, own: Floats, cell: Ints, in_context: Floats) -> Floats:
    """1 + number of entities outside the context with a larger value; ties count half.

    cell, in_context : the entry and the value of everything that is in a context
    """
    twice = _compare(values, own[:, None]).sum(axis=1, dtype=np.uint32)  # 1 for the entity itself
    twice = twice - np.bincount(cell, _compare(in_context, own[cell]), len(own))
    return np.asarray((twice + 1.0) / 2.0)


def _compare(values: Floats, own: Floats) -> Ints:
    """2 where the value is larger than its own, 1 where it is equal, else 0; bytes, for speed."""
    return np.add((values > own).view(np.uint8), (values >= own).view(np.uint8))


def _check_block(judged: Judged, cells: slice, log_means: Floats) -> None:
    expected = (cells.stop - cells.start, judged.data.n_entities)
    if log_means.shape != expected:
        raise DataError(
            f"{type(judged.model).__name__}.log_means returned a block of shape "
            f"{log_means.shape} instead of {expected}: was the model fitted to other entities?"
        )


def log_density_at(family: Family, x: Floats, log_mean: Floats, log_share: Floats) -> Floats | None:
    """log p(x) given the logarithm of its mean; x log_share for a categorical family."""
    if family.softmax:
        return np.asarray(x * log_share)
    if family.exponential_mean:  # not through the mean, which may overflow
        return np.asarray(log_density(family, Identity(), x, log_mean))
    return log_density_of_mean(family, x, np.exp(log_mean))


def log_density_of_mean(family: Family, x: Floats, mean: Floats) -> Floats | None:
    """log p(x) given its mean; None if the family does not define the parameter of a mean.

    `Family.predictor` defines it; it is only used if it maps back to the mean.
    """
    if family.logistic:
        return _bernoulli(x, mean)
    inside = np.maximum(mean, np.finfo(np.float64).tiny) if family.support.low >= 0 else mean
    with np.errstate(all="ignore"):
        u = family.predictor(inside)
        back = expected_value(family, Identity(), u)
        if not np.allclose(back, inside, rtol=1e-6, atol=0.0):
            return None
    return np.asarray(log_density(family, Identity(), x, u))


def _bernoulli(x: Floats, mean: Floats) -> Floats:
    """x log m + (1 - x) log(1 - m); means rounded to 0 or 1 are moved inside."""
    inside = np.clip(mean, np.finfo(np.float64).tiny, 1.0 - np.finfo(np.float64).epsneg)
    return np.asarray(xlogy(x, inside) + xlog1py(1.0 - x, -inside))
