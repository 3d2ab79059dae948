"""Data in which no usable observations are a typed error, not a division by zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import efemb

ZEROS = np.zeros((6, 3))
CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "zeros of weight 0": (
        {"context": efemb.Lagged(), "family": "poisson", "zeros": efemb.All(0.0)},
        ZEROS,
    ),
    "learned variance": (
        {
            "context": efemb.Graph([[0, 0, 1], [0, 0, 1], [0, 0, 0]]),
            "family": efemb.Gaussian("learned"),
            "zeros": efemb.All(0.0),
            "combine": "reverse",
        },
        np.array([[0.5, -1.0, 0.0], [1.5, 2.0, 0.0]]),
    ),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("case", CASES)
def test_a_fit_says_that_nothing_counts(case: str) -> None:
    options, data = CASES[case]
    model = efemb.Embedding(1, early_stopping=False, random_state=0, **options)
    with pytest.raises(efemb.DataError, match="no usable observations"):
        model.fit(data)


def test_lags_beyond_the_rows_are_told_as_such() -> None:
    data = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    options: dict[str, Any] = {"context": efemb.Lagged((-3,)), "combine": "reverse"}
    model = efemb.Embedding(1, family="bernoulli", early_stopping=False, **options)
    with pytest.raises(efemb.DataError, match="offset -3 reaches beyond every recording"):
        model.fit(data)


def test_the_objective_of_nothing_is_the_prior() -> None:
    model = efemb.Embedding(
        1,
        context=efemb.Lagged(),
        family=efemb.Gaussian("learned"),
        prior=efemb.Normal(2.0),
        zeros=efemb.All(0.0),
        intercept=False,
    )
    rho, alpha = np.array([[1.0], [2.0], [0.0]]), np.array([[0.0], [0.0], [3.0]])
    value, gradient = model.objective(ZEROS, efemb.model.parameters.Parameters(rho, alpha))
    assert value == pytest.approx(-(1.0 + 4.0 + 9.0))  # - precision / 2 sum theta^2
    np.testing.assert_allclose(gradient.rho, -2.0 * rho)
