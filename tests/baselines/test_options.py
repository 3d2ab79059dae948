"""Options of baselines: what cannot be is refused by name, and leaves the model unfitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

import efemb
from efemb.baselines import (
    EASE,
    HPF,
    ExponentialFamilyPCA,
    FactorAnalysis,
    ItemKNN,
    ItemSkipGram,
    NeighborRidge,
    PersonalPopularity,
    Popularity,
    RP3beta,
    Rules,
    ShiftedPPMI,
    WeightedMF,
)
from efemb.errors import DataError, InputTypeError, MemoryEstimateError, ParameterError

RNG = np.random.default_rng(0)
COUNTS = efemb.Dataset(RNG.poisson(1.0, (40, 8)), users=np.arange(40) % 5)
REAL = RNG.normal(size=(40, 7))
TEXT = [list("abcdefghij"), list("badcfehgji")] * 6
ROWS_OF_COUNTS = {
    EASE: (
        ({"penalty": 0.0}, ParameterError, "penalty"),
        ({"penalty": "1"}, InputTypeError, "penalty"),
        ({"dropout": 1.0}, ParameterError, "dropout must lie in"),
        ({"dropout": -0.1}, ParameterError, "dropout must lie in"),
        ({"dropout": None}, InputTypeError, "dropout"),
        ({"backoff": "popular"}, ParameterError, "did you mean 'popularity'"),
    ),
    ItemKNN: (
        ({"n_neighbors": 0}, ParameterError, "n_neighbors"),
        ({"n_neighbors": 2.5}, InputTypeError, "n_neighbors"),
        ({"shrinkage": -1.0}, ParameterError, "shrinkage"),
    ),
    RP3beta: (
        ({"alpha": -1.0}, ParameterError, "alpha"),
        ({"beta": np.nan}, ParameterError, "beta"),
        ({"n_neighbors": 0}, ParameterError, "n_neighbors"),
    ),
    Rules: (
        ({"smoothing": 0.0}, ParameterError, "smoothing"),
        ({"backoff": "none"}, ParameterError, "backoff='none' is unknown"),
    ),
    ExponentialFamilyPCA: (
        ({"n_components": True}, InputTypeError, "n_components"),
        ({"family": "categorical"}, ParameterError, "poisson, bernoulli or gaussian"),
        ({"family": "poison"}, ParameterError, "poisson"),
        ({"family": efemb.Gaussian(0.25)}, ParameterError, "pass family='gaussian'"),
        ({"family": efemb.Gaussian(np.ones(8))}, ParameterError, "pass family='gaussian'"),
        ({"penalty": 0.0}, ParameterError, "penalty"),
        ({"penalty": "1"}, InputTypeError, "penalty"),
        ({"positive": 1}, InputTypeError, "positive"),
        ({"intercept": "yes"}, InputTypeError, "intercept"),
        ({"positive": True, "family": "gaussian"}, ParameterError, "not the gaussian"),
        ({"dtype": "float16"}, ParameterError, "dtype"),
        ({"max_iter": 0}, ParameterError, "max_iter"),
        ({"tol": np.nan}, ParameterError, "tol"),
        ({"n_iter_no_change": 0}, ParameterError, "n_iter_no_change"),
        ({"random_state": -1}, ParameterError, "random_state"),
    ),
    WeightedMF: (
        ({"n_components": 0}, ParameterError, "n_components"),
        ({"zero_weight": 0}, ParameterError, "zero_weight"),
        ({"penalty": "1"}, InputTypeError, "penalty"),
        ({"floor": -1.0}, ParameterError, "floor"),
        ({"max_iter": 0}, ParameterError, "max_iter"),
    ),
    ItemSkipGram: (
        ({"n_components": 0}, ParameterError, "n_components"),
        ({"n_negatives": 0}, ParameterError, "n_negatives"),
        ({"max_iter": 1.5}, InputTypeError, "max_iter"),
    ),
    PersonalPopularity: (
        ({"column": "week"}, DataError, "needs the week of every row"),
        ({"column": 3}, InputTypeError, "column must be the name"),
        ({"kappa": 0}, ParameterError, "kappa"),
        ({"kappa": "many"}, InputTypeError, "kappa"),
    ),
}
ROWS_OF_NUMBERS = {
    FactorAnalysis: (
        ({"n_components": 0}, ParameterError, "n_components"),
        ({"n_components": 8}, ParameterError, "number of entities, 7"),
        ({"tol": -1.0}, ParameterError, "tol"),
        ({"max_iter": 1.5}, InputTypeError, "max_iter"),
        ({"random_state": "x"}, InputTypeError, "random_state"),
    ),
    NeighborRidge: (
        ({"ridge": -1.0}, ParameterError, "ridge must be >= 0, got -1.0"),
        ({"ridge": "best"}, InputTypeError, "ridge must be a number"),
        ({"intercept": 1}, InputTypeError, "intercept must be True or False, got 1"),
        ({"context": efemb.Basket(scale="items")}, ParameterError, "fixed for each entity"),
    ),
}
DOCUMENTS = {
    ShiftedPPMI: (
        ({"n_components": 0}, ParameterError, "n_components"),
        ({"n_components": 2.0}, InputTypeError, "n_components"),
        ({"n_components": 11}, ParameterError, "exceeds the number of words, 10"),
        ({"window": 0}, ParameterError, "window"),
        ({"window": 1.5}, InputTypeError, "window"),
        ({"shift": 0}, ParameterError, "shift must be > 0"),
        ({"shift": float("nan")}, ParameterError, "shift"),
        ({"shift": 1e9}, DataError, "lower shift"),
        ({"power": -1}, ParameterError, "power"),
        ({"eigen": "half"}, InputTypeError, "eigen"),
        ({"random_state": -1}, ParameterError, "random_state"),
        ({"random_state": "x"}, InputTypeError, "random_state"),
    ),
}
SMALL = {"n_components": 2, "shift": 1}
CASES = [
    pytest.param(data, kind, *case, id=f"{kind.__name__}({case[0]})")
    for data, table in ((COUNTS, ROWS_OF_COUNTS), (REAL, ROWS_OF_NUMBERS), (TEXT, DOCUMENTS))
    for kind, cases in table.items()
    for case in cases
]


@pytest.mark.parametrize(("data", "kind", "options", "error", "words"), CASES)
def test_what_cannot_be_is_refused_by_name(
    data: Any, kind: Any, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    usual = {name: value for name, value in SMALL.items() if name in kind().get_params()}
    model = kind(**{**usual, **options})
    before = dict(vars(model))
    with pytest.raises(error, match=words):
        model.fit(data)
    assert vars(model).keys() == before.keys()
    with pytest.raises(ValueError, match="not fitted"):
        check_is_fitted(model)


@pytest.mark.parametrize(
    "baseline",
    [
        Popularity(),
        PersonalPopularity("user"),
        ItemKNN(),
        RP3beta(),
        Rules(),
        EASE(),
        HPF(2),
        WeightedMF(2),
        ItemSkipGram(2),
        ExponentialFamilyPCA(2),
        FactorAnalysis(2),
        NeighborRidge(),
    ],
    ids=lambda baseline: type(baseline).__name__,
)
def test_billions_of_columns_are_refused_before_anything_is_allocated(baseline: Any) -> None:
    """Three entries, but any array of a number per column would end the process."""
    wide = csr_array((np.ones(3), ([0, 1, 2], [5, 7, 3 * 10**12])), shape=(3, 3 * 10**12 + 1))
    with pytest.raises(MemoryEstimateError, match=r"3,000,000,000,001 entities"):
        baseline.fit(wide)
