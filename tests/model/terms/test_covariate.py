"""Covariate: a planted response is found; bad columns are refused."""

from __future__ import annotations

import numpy as np
import pytest

import efemb
from efemb.model.terms.covariate import Covariate


def weather(n_rows: int = 800) -> efemb.Dataset:
    """The first item sells when it is warm, the second when it is cold."""
    rng = np.random.default_rng(0)
    degrees = rng.normal(15.0, 8.0, n_rows)
    response = np.array([0.8, -0.8, 0.0, 0.0])
    rate = 0.7 * np.exp(np.outer((degrees - 15.0) / 8.0, response))
    return efemb.Dataset(rng.poisson(rate).astype(float), rows={"degrees": degrees})


def test_a_planted_response_is_found_and_predicts() -> None:
    train, test = weather().split(test=0.3, seed=0)
    plain = efemb.PoissonEmbedding(1, random_state=0).fit(train)
    model = efemb.PoissonEmbedding(1, random_state=0, terms=[Covariate("degrees")]).fit(train)
    assert model.score(test) > plain.score(test) + 0.05
    c = model.parameters_.terms["degrees.coefficients"][:, 0]
    assert c[0] - c[2] == pytest.approx(0.8, abs=0.2)
    assert c[1] - c[2] == pytest.approx(-0.8, abs=0.2)


@pytest.mark.parametrize(
    ("column", "rule"),
    [
        (["warm"] * 6, "needs numbers"),
        ([3.0] * 6, "does not vary"),
        ([np.nan] * 6, "does not vary"),
    ],
)
def test_columns_that_say_nothing_are_refused(column: list[object], rule: str) -> None:
    data = efemb.Dataset(np.ones((6, 3)), rows={"degrees": column})
    with pytest.raises(efemb.DataError, match=rule):
        efemb.PoissonEmbedding(1, terms=[Covariate("degrees")]).fit(data)
