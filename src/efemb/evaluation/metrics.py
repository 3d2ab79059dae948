"""Metrics by name: the quantities that are averaged over predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.errors import InputTypeError, ParameterError, check_integer, suggest
from efemb.evaluation.scores import By

if TYPE_CHECKING:
    from efemb.evaluation.predictions import Predictions


@dataclass(frozen=True)
class Metric:
    """A number per entry, what it is averaged over by default, and which direction is better."""

    values: Callable[[Predictions], Floats]
    by: By
    larger_is_better: bool = True


def _top_k_gain(k: int, gain: Callable[[Floats], Floats]) -> Metric:
    """A gain that depends on the rank, 0 beyond rank k."""

    def gains(predictions: Predictions) -> Floats:
        rank = predictions.known("rank")
        return np.where(rank <= k, gain(rank), 0.0)

    return Metric(gains, "entry")


ABSENT = "absent_log_likelihood"
METRICS = {
    "normalized_log_likelihood": Metric(lambda predictions: predictions.known("log_share"), "unit"),
    ABSENT: Metric(lambda predictions: predictions.known("absent_log_share"), "unit"),
    "log_likelihood": Metric(lambda predictions: predictions.known("log_density"), "entry"),
    "mean_squared_error": Metric(
        lambda predictions: (predictions.x - predictions.known("mean")) ** 2,
        "entry",
        larger_is_better=False,
    ),
    "mean_reciprocal_rank": Metric(lambda predictions: 1.0 / predictions.known("rank"), "entry"),
}
RECALL = "recall@"
# Gains by rank of metrics whose names end in a cut-off, such as recall@10. An entry has a single
# relevant entity, so that the ideal discounted gain is 1.
AT_RANK: dict[str, Callable[[Floats], Floats]] = {
    RECALL: np.ones_like,
    "mrr@": lambda rank: 1.0 / rank,
    "ndcg@": lambda rank: 1.0 / np.log2(1.0 + rank),
}
RANKING = (f"{RECALL}10", "ndcg@10", "mrr@100")  # reported wherever entries have ranks


def metric_of(name: Any) -> Metric:
    """The metric with this name; names such as "recall@10" contain their cut-off k."""
    if not isinstance(name, str):
        raise InputTypeError(f"metric must be a string, got {name!r}")
    prefix, at, cutoff = name.partition("@")
    if prefix + at in AT_RANK and cutoff.isdecimal():
        return _top_k_gain(check_integer("k", int(cutoff)), AT_RANK[prefix + at])
    if name not in METRICS:
        choices = [*METRICS, *(f"{known}10" for known in AT_RANK)]
        raise ParameterError(f"metric={name!r} is unknown; {suggest(name, choices)}")
    return METRICS[name]
