"""compare: models side by side on the same entries, with paired differences, the best first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Floats
from efemb.data.align import in_order, skip_unknown
from efemb.data.array_checks import generator
from efemb.data.dataset import Dataset
from efemb.errors import (
    DataError,
    InputTypeError,
    ParameterError,
    check_integer,
    check_known,
    suggest,
)
from efemb.evaluation.adapter import as_dataset, conform, family_of, vocabulary_of
from efemb.evaluation.metrics import ABSENT, RANKING, Metric, metric_of
from efemb.evaluation.predictions import Predictions
from efemb.evaluation.protocols import leave_fold_out, leave_one_out
from efemb.evaluation.repeats import AmongItsKind, is_repeat
from efemb.evaluation.scores import By, Score, average, per_row, row_errors, weights
from efemb.fitted.selection import check_choice
from efemb.table import Table

POPULARITY = "popularity"
Protocol: TypeAlias = Callable[[Any, Any], Predictions]
LEVEL = 0.95
_RESAMPLED_AT_ONCE = 1 << 22


def compare(  # noqa: PLR0913  (all but two by keyword)
    models: Any,
    X: Any = None,
    *,
    train: Any = None,
    protocol: str | Protocol = "leave-one-out",
    metric: str | Sequence[str] | None = None,
    by: By | None = None,
    reference: str | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    unknown: str = "error",
    split_by: str | None = None,
    user: str = "user",
    candidates: str = "all",
    progress: bool = False,
) -> Table:
    """Score models on the same entries, with paired differences.

    Parameters
    ----------
    models : mapping of names to fitted models, or list of models
        `Predictions` that were computed before are accepted instead of models.
    X : rows x entities, optional
        Data that no model was fitted to.
    train : rows x entities, optional
        Training data. If passed, a row "popularity" is added, for a model without context.
    protocol : {"leave-one-out", "leave-fold-out"} or function of (model, X)
        A function returns `Predictions`: ``partial(held_out_entries, entries=held)``,
        ``partial(leave_fold_out, folds=10)``.
    metric : str or list of str, optional
        As in `Predictions.score`. Default: normalized log-likelihood for counts and binary data,
        mean squared error for real data. A list, such as ``["recall@10", "ndcg@10", "mrr@100"]``,
        gives a row per metric and model, each with its paired difference.
    by : {"unit", "entry", "row"}, optional
        What the mean is taken over: units of count, entries or rows. Default: "unit" for the
        normalized log-likelihood, otherwise "entry".
    reference : str, optional
        Name of the model that the others are compared with; by default the best one.
    bootstrap : int, default=1000
        Number of bootstrap samples, in each of which rows are drawn with replacement.
    seed : int, default=0
        Random seed of the folds and of the bootstrap.
    unknown : {"error", "skip"}, default="error"
        Whether entities of X that the models do not know raise an error or are ignored. With
        "skip", entities that X lacks count as zeros, or as missing in real data.
    split_by : {"repeat"}, optional
        "repeat" scores entries that the customer of the row has in `train` (repeat) separately from
        others (new), in a first column "entries".
    user : str, default="user"
        Row column of X and `train` that names the customer, for `split_by`.
    candidates : {"all", "same kind"}, default="all"
        With `split_by`, the entities among which the share and the rank of an entry are computed:
        all entities outside the rest of its row, or only those of the entry's kind. In a list of
        all entities, repeats of a customer rank first, so it reveals little about new entries;
        "same kind" ranks repeats among the items that the customer has in `train`, and new entries
        among the others.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    Table
        The best model first: metric (if there are several), model, score, standard_error and
        row_error (see `Score`), difference (from the reference), difference_error and the 95%
        interval low, high (both over rows), verdict ("best"; "better" or "worse" if the interval
        excludes 0, otherwise "inconclusive"), n, skipped; for counts and binary data on rows also
        absent_log_likelihood, recall@10, ndcg@10 and mrr@100, of the entry among all entities that
        are not in the rest of its row.

    Examples
    --------
    >>> import efemb
    >>> trips = efemb.simulation.simulate(
    ...     "p-emb", n_rows=600, n_entities=12, n_components=2, seed=0
    ... )
    >>> train, test = trips.data.split(test=0.3, seed=0)
    >>> few, many = (efemb.PoissonEmbedding(k, random_state=0).fit(train) for k in (1, 4))
    >>> table = compare({"K = 1": few, "K = 4": many}, test)
    >>> table["model"].tolist(), table["verdict"].tolist()
    (['K = 4', 'K = 1'], ['best', 'worse'])
    """
    judge = resolve_protocol(protocol, seed)
    named = name_models(models)
    made_before = all(isinstance(model, Predictions) for model in named.values())
    if X is None and (train is not None or not made_before):
        raise ParameterError("X is missing: pass the data to evaluate the models on")
    check_choice("unknown", unknown)
    same_kind = _check_candidates(candidates, split_by, named.values())
    if unknown == "skip":
        X, train = (_skip_unknown(named, data) for data in (X, train))
    data_of = dict.fromkeys(named, X)
    if train is not None and POPULARITY not in named:
        first = next((one for one in named.values() if not isinstance(one, Predictions)), None)
        named[POPULARITY], data_of[POPULARITY] = fit_popularity(first, train, X)
    if same_kind and train is not None:
        named = {name: AmongItsKind(model, train, user) for name, model in named.items()}
    predictions = {}
    with progress_bar("evaluating models", len(named), progress) as advance:
        for name, model in named.items():
            predictions[name] = (
                model if isinstance(model, Predictions) else judge(model, data_of[name])
            )
            advance(1)
    if split_by is None:
        return _tabulate(predictions, metric, by, reference, bootstrap, seed)
    groups = _split_entries(predictions, split_by, X, train, user)
    tables = {
        name: _tabulate(group, metric, by, reference, bootstrap, seed)
        for name, group in groups.items()
    }
    return stack_tables("entries", tables)


def _check_candidates(candidates: Any, split_by: str | None, models: Iterable[Any]) -> bool:
    """Whether entries are ranked only among those of their kind."""
    choices = ["all", "same kind"]
    check_known("candidates", candidates, choices)
    if candidates == "all":
        return False
    if split_by is None:
        raise ParameterError('candidates="same kind" needs split_by="repeat", which defines kinds')
    if any(isinstance(model, Predictions) for model in models):
        raise ParameterError(
            'candidates="same kind" needs new predictions: pass models, not Predictions'
        )
    return True


def _tabulate(
    predictions: Mapping[str, Predictions], metric: str | Sequence[str] | None, *options: Any
) -> Table:
    if metric is None or isinstance(metric, str):
        return tabulate_scores(predictions, metric, *options)
    return _tabulate_metrics(predictions, metric, *options)


def _split_entries(
    predictions: Mapping[str, Predictions], split_by: str, X: Any, train: Any, user: str
) -> dict[str, dict[str, Predictions]]:
    """Repeated and new entries, for every model; groups without entries are left out."""
    check_known("split_by", split_by, ["repeat"])
    if X is None or train is None:
        raise ParameterError('split_by="repeat" needs X and train, both with the customers of rows')
    check_same_entries(predictions)
    before = is_repeat(next(iter(predictions.values())), X, train, user)
    groups = {"repeat": before, "new": ~before}
    return {
        name: {model: each.take(chosen) for model, each in predictions.items()}
        for name, chosen in groups.items()
        if chosen.any()
    }


def _skip_unknown(models: Mapping[str, Any], data: Any) -> Any:
    """Data over the entities of the first model that has labels."""
    if data is None:
        return None
    for model in models.values():
        labels = vocabulary_of(model)
        if labels is not None:
            absent = np.nan if family_of(model).missing else 0.0
            return skip_unknown(as_dataset(data, labels), labels, absent)
    return data


def _tabulate_metrics(predictions: Mapping[str, Predictions], metrics: Any, *options: Any) -> Table:
    """The tables of several metrics below one another."""
    if not isinstance(metrics, Iterable) or not (names := list(metrics)):
        raise InputTypeError(f"metric must be a string or a list of strings, got {metrics!r}")
    tables = {name: tabulate_scores(predictions, name, *options) for name in names}
    return stack_tables("metric", tables, without=(ABSENT, *RANKING))


def stack_tables(title: str, tables: Mapping[str, Table], without: Sequence[str] = ()) -> Table:
    """Tables with equal columns below one another, their names in a first column."""
    names = [name for name, table in tables.items() for _ in range(len(table))]
    columns = next(iter(tables.values())).columns
    stacked = {
        column: np.concatenate([table[column] for table in tables.values()])
        for column in columns
        if column not in without
    }
    return Table({title: names, **stacked})


def resolve_protocol(protocol: Any, seed: int) -> Protocol:
    """A protocol from its name; functions are returned unchanged."""
    if callable(protocol):
        return cast(Protocol, protocol)
    if not isinstance(seed, int | np.integer):  # the same folds for every model
        seed = int(generator(seed).integers(1 << 32))
    named: dict[str, Protocol] = {
        "leave-one-out": leave_one_out,
        "leave-fold-out": partial(leave_fold_out, seed=seed),
    }
    if protocol not in named:
        raise ParameterError(
            f"protocol={protocol!r} is unknown; {suggest(protocol, named)}, or a function of "
            "(model, X), such as partial(held_out_entries, entries=...)"
        )
    return named[protocol]


def tabulate_scores(
    predictions: Mapping[str, Predictions],
    metric: str | None,
    by: By | None,
    reference: str | None,
    bootstrap: int,
    seed: int,
    *,
    sort: bool = True,
) -> Table:
    """Table of scores and differences, the best model first unless `sort` is False."""
    if reference is not None and reference not in predictions:
        raise ParameterError(
            f"reference={reference!r} is not one of the models; {suggest(reference, predictions)}"
        )
    check_same_entries(predictions)
    any_one = next(iter(predictions.values()))
    auto = "mean_squared_error" if any_one.log_share is None else "normalized_log_likelihood"
    chosen = metric_of(auto if metric is None else metric)
    over: By = by or chosen.by
    each = scores(predictions, chosen, over)
    order = sorted(predictions, key=lambda name: each[name].value, reverse=chosen.larger_is_better)
    against = order[0] if reference is None else reference
    number = check_integer("bootstrap", bootstrap)
    gaps = differences(predictions, chosen, over, against, number, seed)
    better = 1 if chosen.larger_is_better else -1
    verdicts = {
        name: _verdict(name, order[0], reference, gaps[name], better) for name in predictions
    }
    names = order if sort else list(predictions)
    note = ""
    if order[0] == POPULARITY and len(order) > 1:
        note = "no model is better than popularity: their vectors do not help here"
    beside = RANKING if any_one.absent_log_share is None else (ABSENT, *RANKING)
    further = () if any_one.rank is None else beside
    return Table(
        {
            "model": names,
            "score": [each[name].value for name in names],
            "standard_error": [each[name].standard_error for name in names],
            "row_error": [each[name].row_error for name in names],
            "difference": [gaps[name].value for name in names],
            "difference_error": [gaps[name].standard_error for name in names],
            "low": [gaps[name].low for name in names],
            "high": [gaps[name].high for name in names],
            "verdict": [verdicts[name] for name in names],
            "n": [each[name].n for name in names],
            "skipped": [predictions[name].n_skipped for name in names],
            **{m: [predictions[name].score(m).value for name in names] for m in further},
        },
        note,
    )


def _verdict(name: str, best: str, reference: str | None, gap: Difference, better: int) -> str:
    words = ["best"] if name == best else []
    if name == reference:
        words.append("reference")
    elif reference is not None or name != best:
        words.append({1: "better", -1: "worse", 0: "inconclusive"}[gap.sign * better])
    return ", ".join(words)


def name_models(models: Any) -> dict[str, Any]:
    """Models by name; models of a list are named after their class and number of components."""
    if isinstance(models, Mapping):
        named = dict(models)
        if not all(isinstance(name, str) for name in named):
            raise InputTypeError("the names of models must be strings")
    elif isinstance(models, Iterable) and not isinstance(models, str | bytes):
        named = {}
        for model in models:
            k = getattr(model, "n_components", None)
            plain = type(model).__name__ + ("" if k is None else f"({k})")
            used = [name for name in named if name == plain or name.startswith(f"{plain} #")]
            named[f"{plain} #{len(used) + 1}" if used else plain] = model
    else:
        raise InputTypeError(
            f"models must be a mapping of names to models, or a list, not {type(models).__name__}"
        )
    if not named:
        raise DataError("models is empty: pass at least one model")
    return named


def fit_popularity(model: Any, train: Any, X: Any) -> tuple[Any, Dataset]:
    """Fit Popularity to the entities of X; return it with X, both as the model reads its data.

    Real numbers that happen to be integers stay real, and counts are binarized if the model does
    so: otherwise the two scores would not be comparable.
    """
    from efemb.baselines import Popularity

    # Columns 0, 1, ... of a frame are labels if the model or the training data has them.
    vocabulary = None if model is None else vocabulary_of(model)
    data = as_dataset(X, vocabulary or as_dataset(train).entities)
    ordered, _ = in_order(as_dataset(train, data.entities), data.entities)
    if model is None:
        return Popularity().fit(ordered), data
    # `efemb compare` calls this before the fit.
    family = model._spec().family if hasattr(model, "_spec") else family_of(model)
    past = conform(model, ordered, family)
    # The model decides, not the data: fractional quantities (kilograms) are still counts, and
    # training data of zeros and ones may be followed by test data with twos.
    counts = "bernoulli" if family.logistic else "poisson"
    rival = Popularity(counts if family.normalized_score else "gaussian")
    return rival.fit(past), conform(model, data, family)


@dataclass(frozen=True)
class Difference:
    """Score of a model minus that of the reference, on the same entries.

    standard_error : treats the entries of a row as one draw, as the interval does
    low, high : ends of the bootstrap interval over rows; NaN for a single row
    """

    value: float
    standard_error: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 or -1 if the interval lies on that side of 0, else 0; infinity needs no interval."""
        if np.isinf(self.value):
            return int(np.sign(self.value))
        return int(self.low > 0) - int(self.high < 0)


def check_same_entries(predictions: Mapping[str, Predictions]) -> None:
    """Refuse predictions of different entries: their scores are not comparable."""
    names = list(predictions)
    first = predictions[names[0]]
    for name in names[1:]:
        other = predictions[name]
        same = len(first) == len(other) and all(
            np.array_equal(getattr(first, field), getattr(other, field))
            for field in ("row", "entity")
        )
        if not same:
            raise ParameterError(
                f"{name!r} was evaluated on other entries than {names[0]!r}: models of real data "
                "and of counts predict different entries; compare models of one kind, on one X"
            )
        if not np.array_equal(first.x, other.x):
            raise DataError(
                f"{name!r} has other observed values than {names[0]!r}: if one of the models "
                "binarizes its data, pass X of zeros and ones to all of them"
            )


def scores(predictions: Mapping[str, Predictions], metric: Metric, by: By) -> dict[str, Score]:
    """Score of each model."""
    return {
        name: average(metric.values(judged), by, x=judged.x, row=judged.row)
        for name, judged in predictions.items()
    }


def differences(
    predictions: Mapping[str, Predictions],
    metric: Metric,
    by: By,
    reference: str,
    bootstrap: int,
    seed: int,
) -> dict[str, Difference]:
    """Difference of each model to the reference; all share the same draws of rows."""
    base = predictions[reference]
    weight = weights(by, x=base.x)
    sums = [per_row(metric.values(one), weight, base.row) for one in predictions.values()]
    total = sums[0][1]
    table = np.stack([one for one, _ in sums], axis=1)
    if by == "row":
        table, total = table / total[:, None], np.ones(len(total))
    with np.errstate(invalid="ignore"):  # -inf minus -inf is NaN, and is reported as such
        table = table - table[:, [list(predictions).index(reference)]]
        values = table.sum(axis=0) / total.sum()
        spread = row_errors(table, total, values)
    low, high = _bootstrap_interval(table, total, bootstrap, seed)
    if len(total) == 1:
        low = high = spread
    each = zip(
        predictions, values.tolist(), spread.tolist(), low.tolist(), high.tolist(), strict=True
    )
    return {name: Difference(*numbers) for name, *numbers in each}


def _bootstrap_interval(
    table: Floats, total: Floats, bootstrap: int, seed: int
) -> tuple[Floats, Floats]:
    """Percentiles of sum(table) / sum(total) over rows drawn with replacement."""
    n_rows = len(total)
    rng = generator(seed)
    step = max(1, _RESAMPLED_AT_ONCE // n_rows)
    drawn = []
    for start in range(0, bootstrap, step):
        size = min(step, bootstrap - start)
        rows = rng.integers(n_rows, size=(size, n_rows)) + n_rows * np.arange(size)[:, None]
        times = np.bincount(rows.ravel(), minlength=size * n_rows).reshape(size, n_rows)
        times = times.astype(np.float64)
        with np.errstate(invalid="ignore"):
            drawn.append((times @ table) / (times @ total)[:, None])
    ends = np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    all_drawn = np.concatenate(drawn)
    low, high = np.quantile(np.where(np.isfinite(all_drawn), all_drawn, np.nan), ends, axis=0)
    return low, high
