"""A user's family of counts may have missing values: they are neither asked for nor evidence."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb import evaluation

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class Gappy(efemb.Poisson):
    """Counts, some of which were not recorded."""

    missing: ClassVar[bool] = True
    listed = False


def gappy_counts() -> Any:
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (40, 5)).astype(float)
    X[rng.random(X.shape) < 0.3] = np.nan
    X[0] = [2.0, np.nan, np.nan, 0.0, np.nan]  # alone: the rest is missing or zero
    return X


def test_missing_counts_are_left_out_of_scores() -> None:
    X = gappy_counts()
    context = efemb.Basket(scale="items")
    options: dict[str, Any] = {"random_state": 0, "max_iter": 3, "dtype": "float64"}
    model = efemb.Embedding(2, family=Gappy(), context=context, **options).fit(X)
    p, shares, units = model.parameters_, [], []
    for t, n in np.argwhere(X > 0):
        around = [m for m in range(5) if m != n and X[t, m] > 0]
        if around:
            u = p.rho @ (X[t, around] @ p.alpha[around] / len(around)) + p.intercept
            shares.append(u[n] - np.log(np.exp(u).sum()))
            units.append(X[t, n])
    found = evaluation.leave_one_out(model, X)
    assert_allclose(found.log_share, shares, rtol=1e-10)
    assert found.n_skipped == (X > 0).sum() - len(shares)
    assert_allclose(model.score(X), np.average(shares, weights=units), rtol=1e-10)
