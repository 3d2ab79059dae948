"""Metrics: what is averaged over predictions, by name."""

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
    """A number for each entry, what it is averaged over by default, and which end is better."""

    values: Callable[[Predictions], Floats]
    by: By
    larger_is_better: bool = True


def _log_share(found: Predictions) -> Floats:
    return found.known("log_share")


def _log_density(found: Predictions) -> Floats:
    return found.known("log_density")


def _squared_error(found: Predictions) -> Floats:
    return np.asarray((found.x - found.known("mean")) ** 2)


def _reciprocal_rank(found: Predictions) -> Floats:
    return np.asarray(1.0 / found.known("rank"))


def _recall(k: int) -> Metric:
    def found_in_time(found: Predictions) -> Floats:
        return np.asarray(found.known("rank") <= k, dtype=np.float64)

    return Metric(found_in_time, "entry")


METRICS = {
    "normalized_log_likelihood": Metric(_log_share, "unit"),
    "log_likelihood": Metric(_log_density, "entry"),
    "mean_squared_error": Metric(_squared_error, "entry", larger_is_better=False),
    "mean_reciprocal_rank": Metric(_reciprocal_rank, "entry"),
}
RECALL = "recall@"


def metric_of(name: Any) -> Metric:
    """The metric of a name; "recall@10" and the like have their k in it."""
    if not isinstance(name, str):
        raise InputTypeError(f"a metric is chosen by its name (text), not {name!r}")
    if name.startswith(RECALL) and name[len(RECALL) :].isdecimal():
        return _recall(checked_number(int(name[len(RECALL) :])))
    if name not in METRICS:
        choices = [*METRICS, f"{RECALL}10"]
        raise ParameterError(f"metric={name!r} is unknown; {suggest(name, choices)}")
    return METRICS[name]
