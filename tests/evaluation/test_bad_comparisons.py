"""Scores and comparisons that make no sense are refused, by an error that says why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import efemb
from efemb.evaluation import Predictions, Score, compare, leave_one_out, score_grid
from estimators.samples import baskets, neurons
from evaluation.plain import embedding

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X = baskets(20, 5)
COUNTS = embedding(efemb.PoissonEmbedding(2), 5)
REAL = efemb.GaussianEmbedding(2, context=efemb.Neighbors(2), tol=10.0, random_state=0).fit(
    neurons(30, 5)
)


def test_scores_that_do_not_exist_are_refused() -> None:
    real, counts = leave_one_out(REAL, neurons(10, 5)), leave_one_out(COUNTS, X)
    for ask in (real.normalized_log_likelihood, real.recall, real.mean_reciprocal_rank):
        with pytest.raises(efemb.ParameterError, match="counts and binary"):
            ask()
    with pytest.raises(efemb.ParameterError, match="real data"):
        counts.mean_squared_error()
    with pytest.raises(efemb.ParameterError, match="fixed"):
        counts.context_sizes()
    with pytest.raises(efemb.ParameterError, match="counts"):
        real.mean_squared_error(by="unit")
    with pytest.raises(efemb.ParameterError, match="did you mean 'unit'"):
        counts.normalized_log_likelihood(by="units")  # type: ignore[arg-type]
    for k, error in ((0, efemb.ParameterError), (1.5, efemb.InputTypeError)):
        with pytest.raises(error):
            counts.recall(k)  # type: ignore[arg-type]
    for metric in ("recall@", "recall@x", "log_likelyhood", "recall@0", "mrr@0", "map@10"):
        with pytest.raises(efemb.ParameterError):
            counts.score(metric)
    with pytest.raises(efemb.InputTypeError, match="metric must be a string"):
        counts.score(3)  # type: ignore[arg-type]


def test_predictions_need_arrays_of_one_length() -> None:
    with pytest.raises(efemb.DataError, match="rank has shape"):
        Predictions(np.arange(3), np.arange(3), np.ones(3), rank=np.ones(2))
    none = np.empty(0, dtype=int)
    empty = Predictions(none, none, np.empty(0), rank=np.empty(0))
    with pytest.raises(efemb.DataError, match="no entries"):
        empty.recall(1)


def test_a_score_is_a_number() -> None:
    assert float(Score(-1.5, 0.1, 4.0)) == -1.5
    assert "0.1000" in repr(Score(-1.5, 0.1, 4.0))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"protocol": "leave one out"}, efemb.ParameterError, "did you mean 'leave-one-out'"),
        ({"protocol": 3}, efemb.ParameterError, "unknown"),
        ({"metric": "accuracy"}, efemb.ParameterError, "unknown"),
        ({"metric": "mean_squared_error"}, efemb.ParameterError, "real data"),
        ({"reference": "b"}, efemb.ParameterError, "not one of the models"),
        ({"bootstrap": 0}, efemb.ParameterError, ">= 1"),
        ({"bootstrap": 1.5}, efemb.InputTypeError, "integer"),
        ({"by": "week"}, efemb.ParameterError, "by="),
        ({"X": None}, efemb.ParameterError, "X is missing"),
        ({"models": {}}, efemb.DataError, "models is empty"),
        ({"models": []}, efemb.DataError, "models is empty"),
        ({"models": COUNTS}, efemb.InputTypeError, "mapping"),
        ({"models": {3: COUNTS}}, efemb.InputTypeError, "must be strings"),
        ({"models": "abc"}, efemb.InputTypeError, "mapping"),
    ],
    ids=lambda value: None if isinstance(value, type) else repr(value)[:40],
)
def test_compare_refuses(options: dict[str, Any], error: Any, words: str) -> None:
    asked = {"models": {"a": COUNTS}, "X": X, **options}
    with pytest.raises(error, match=words):
        compare(asked.pop("models"), asked.pop("X"), **asked)


def test_models_of_different_kinds_are_not_compared() -> None:
    with pytest.raises(efemb.ParameterError, match="other entries"):
        compare({"counts": COUNTS, "real": REAL}, X)
    options: dict[str, Any] = {"max_iter": 2, "random_state": 0}
    binary = efemb.BernoulliEmbedding(2, binarize=True, **options).fit(X)
    with pytest.raises(efemb.DataError, match="binarize"):
        compare({"counts": COUNTS, "binary": binary}, X)
    assert len(compare({"counts": COUNTS, "binary": binary}, np.minimum(X, 1.0))) == 2


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({}, efemb.ParameterError),
        ({"n_components": []}, efemb.ParameterError),
        ({"n_components": 3}, efemb.InputTypeError),
        ({"solver": "rows"}, efemb.InputTypeError),
        ([1, 2], efemb.InputTypeError),
        ({"n_componentz": [1]}, ValueError),
    ],
    ids=repr,
)
def test_score_grid_refuses(settings: Any, error: Any) -> None:
    with pytest.raises(error):
        score_grid({"a": efemb.PoissonEmbedding(max_iter=2)}, settings, X, X)
