"""Metrics by name: the quantities that are averaged over predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.errors import InputTypeError, ParameterError, suggest
from efemb.evaluation.scores import By
from efemb.fitted.nearest import checked_number

if TYPE_CHECKING:
    from efemb.evaluation.predictions import Predictions


@dataclass(frozen=True)
class Metric:
    """A number per entry, what it is averaged over by default, and which direction is better."""

    values: Callable[[Predictions], Floats]
    by: By
    larger_is_better: bool = True


def _log_share(predictions: Predictions) -> Floats:
    return predictions.known("log_share")


def _absent_log_share(predictions: Predictions) -> Floats:
    return predictions.known("absent_log_share")


def _log_density(predictions: Predictions) -> Floats:
    return predictions.known("log_density")


def _squared_error(predictions: Predictions) -> Floats:
    return np.asarray((predictions.x - predictions.known("mean")) ** 2)


def _reciprocal_rank(predictions: Predictions) -> Floats:
    return np.asarray(1.0 / predictions.known("rank"))


def _recall(rank: Floats) -> Floats:
    return np.ones_like(rank)


def _cut_reciprocal(rank: Floats) -> Floats:
    return np.asarray(1.0 / rank)


def _discounted_gain(rank: Floats) -> Floats:
    """Each entry has a single relevant entity, so that the ideal gain is 1."""
    return np.asarray(1.0 / np.log2(1.0 + rank))


def _top_k_gain(k: int, gain: Callable[[Floats], Floats]) -> Metric:
    """A gain that depends on the rank, 0 beyond rank k."""

    def gains(predictions: Predictions) -> Floats:
        rank = predictions.known("rank")
        return np.where(rank <= k, gain(rank), 0.0)

    return Metric(gains, "entry")


ABSENT = "absent_log_likelihood"
METRICS = {
    "normalized_log_likelihood": Metric(_log_share, "unit"),
    ABSENT: Metric(_absent_log_share, "unit"),
    "log_likelihood": Metric(_log_density, "entry"),
    "mean_squared_error": Metric(_squared_error, "entry", larger_is_better=False),
    "mean_reciprocal_rank": Metric(_reciprocal_rank, "entry"),
}
RECALL = "recall@"
# Metrics whose names end in a cut-off: recall@10.
AT_RANK = {RECALL: _recall, "mrr@": _cut_reciprocal, "ndcg@": _discounted_gain}
RANKING = (f"{RECALL}10", "ndcg@10", "mrr@100")  # reported wherever entries have ranks


def metric_of(name: Any) -> Metric:
    """The metric with this name; names such as "recall@10" contain their cut-off k."""
    if not isinstance(name, str):
        raise InputTypeError(f"metric must be a string, got {name!r}")
    prefix, at, cutoff = name.partition("@")
    if prefix + at in AT_RANK and cutoff.isdecimal():
        return _top_k_gain(checked_number(int(cutoff)), AT_RANK[prefix + at])
    if name not in METRICS:
        choices = [*METRICS, *(f"{known}10" for known in AT_RANK)]
        raise ParameterError(f"metric={name!r} is unknown; {suggest(name, choices)}")
    return METRICS[name]
