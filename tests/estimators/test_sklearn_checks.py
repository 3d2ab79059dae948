"""scikit-learn's own checks of the estimator contract."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    parametrize_with_checks,
)

import efemb

ESTIMATORS = [
    efemb.PoissonEmbedding(allow_real=True),
    efemb.BernoulliEmbedding(binarize=True),
    efemb.AdditivePoissonEmbedding(allow_real=True),
    efemb.CategoricalEmbedding(allow_real=True),
    efemb.GaussianEmbedding(),
    efemb.NonnegativeGaussianEmbedding(),
]
REASON = "rows of weight 2 and repeated rows are held out differently"
EQUIVALENCE = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)


def expected_failures(estimator: Any) -> dict[str, str]:
    if isinstance(estimator, efemb.BernoulliEmbedding):
        return {}  # the checks' data are all ones to it, so every row is the same
    return dict.fromkeys(EQUIVALENCE, REASON)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "check",
    [check_sample_weight_equivalence_on_dense_data, check_sample_weight_equivalence_on_sparse_data],
    ids=["dense", "sparse"],
)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_weights_are_repetitions_without_a_hold_out(estimator: Any, check: Any) -> None:
    """On all rows at once, from the start on: every iterate is the same, not only the last."""
    # Few, since a line search may decide by the last bit once there is nothing left to gain.
    options = {"early_stopping": False, "batch_size": None, "max_iter": 5, "dtype": "float64"}
    check(type(estimator).__name__, clone(estimator).set_params(**options))
