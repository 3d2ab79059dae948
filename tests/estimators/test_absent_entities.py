"""partial_fit with some of the entities: absent real numbers are missing values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import efemb
from estimators.samples import neurons

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

LABELS = list("abcdef")
HERE = [4, 0, 3, 1]  # the entities of the second data, in their order
GONE = [2, 5]
CONTEXTS: dict[str, Any] = {
    "neighbors": efemb.Neighbors(2),
    "basket": efemb.Basket(scale="none"),
    "sum": efemb.Basket(scale="none") + efemb.Neighbors(2),
}
SOLVERS = [
    ("neighbors", "moments", "auto"),
    ("neighbors", "moments", efemb.engine.optimizers.Adagrad()),
    ("neighbors", "generic", "auto"),
    ("basket", "rows", "auto"),
    ("basket", "generic", "auto"),
    ("sum", "generic", "auto"),
]


def positions(n: int = 6) -> Any:
    return np.random.default_rng(3).normal(size=(n, 3))


def fitted(context: str = "neighbors", places: Any = None, **options: Any) -> Any:
    settings = {"random_state": 0, "early_stopping": False, "max_iter": 5, "dtype": "float64"}
    model = efemb.GaussianEmbedding(2, context=CONTEXTS[context], **{**settings, **options})
    return model.fit(efemb.Dataset(neurons() + 3, entities=LABELS, positions=places))


def part(X: Any, **options: Any) -> efemb.Dataset:
    return efemb.Dataset(X[:, HERE], entities=[LABELS[n] for n in HERE], **options)


@pytest.mark.parametrize(("context", "solver", "optimizer"), SOLVERS)
def test_absent_entities_stay_as_they_were(context: str, solver: str, optimizer: Any) -> None:
    model = fitted(context, solver=solver, optimizer=optimizer)
    before = model.parameters_.copy()
    model.partial_fit(part(neurons(seed=1) + 3))
    for array, old in zip(model.parameters_.arrays(), before.arrays(), strict=True):
        assert_array_equal(array[GONE], old[GONE])
        assert (array[HERE] != old[HERE]).any()
    assert model.report_["absent_entities"] == GONE


@pytest.mark.parametrize(("context", "solver", "optimizer"), SOLVERS)
def test_an_absent_entity_is_a_missing_one(context: str, solver: str, optimizer: Any) -> None:
    X = neurons(seed=1) + 3
    missing = X.copy()
    missing[:, GONE] = np.nan
    one = fitted(context, solver=solver, optimizer=optimizer).partial_fit(part(X))
    other = fitted(context, solver=solver, optimizer=optimizer)
    other.partial_fit(efemb.Dataset(missing, entities=LABELS))
    for left, right in zip(one.parameters_.arrays(), other.parameters_.arrays(), strict=True):
        assert_array_equal(left, right)


def test_the_first_data_must_have_every_entity() -> None:
    X = neurons()
    X[:, 2] = np.nan
    for fit in ("fit", "partial_fit"):
        with pytest.raises(efemb.DataError, match=r"without an observed value: 1 \(first: 2\)"):
            getattr(efemb.GaussianEmbedding(2, context=efemb.Neighbors(2)), fit)(X)
        labeled = efemb.Dataset(X, entities=LABELS)
        with pytest.raises(efemb.DataError, match=rf"first: {LABELS[2]!r}\).*take_entities"):
            getattr(efemb.GaussianEmbedding(2, context=efemb.Neighbors(2)), fit)(labeled)


def test_counts_that_are_not_there_are_zeros() -> None:
    X = np.random.default_rng(0).poisson(1.0, (40, 6)).astype(float) + np.eye(40, 6)
    model = efemb.PoissonEmbedding(2, random_state=0, dtype="float64")
    model.partial_fit(efemb.Dataset(X, entities=LABELS))
    zeros = X.copy()
    zeros[:, GONE] = 0.0
    one = model.fitted()
    model.partial_fit(part(X))
    again = efemb.PoissonEmbedding(2, random_state=0, dtype="float64")
    again.partial_fit(efemb.Dataset(X, entities=LABELS))
    again.partial_fit(efemb.Dataset(zeros, entities=LABELS))
    assert_allclose(model.embedding_, again.embedding_, rtol=1e-12)
    assert (model.intercept_[GONE] < one.parameters.intercept[GONE]).all()


@pytest.mark.parametrize("given", [True, False])
def test_positions_are_those_of_the_fit(given: bool) -> None:
    model, places = fitted(places=positions()), positions()
    model.partial_fit(part(neurons(seed=1), positions=places[HERE] if given else None))
    assert_array_equal(model.positions_, places)
    model.partial_fit(neurons(seed=2))
    assert_array_equal(model.positions_, places)
    assert_array_equal(model.fitted().positions, places)


@pytest.mark.parametrize("context", ["neighbors", "sum"])
def test_new_entities_have_no_neighbors(context: str) -> None:
    model = fitted(context)
    X = efemb.Dataset(neurons(n_entities=7), entities=[*LABELS, "new"])
    with pytest.raises(efemb.DataError, match="new entities"):
        model.partial_fit(X)
    assert model.vocabulary_.labels.tolist() == LABELS


def test_positions_grow_with_the_entities() -> None:
    places = positions(7)
    model = fitted("basket", places=places[:6])
    more = efemb.Dataset(neurons(n_entities=7), entities=[*LABELS, "new"])
    with pytest.raises(efemb.DataError, match="positions"):
        model.partial_fit(more)
    with_places = efemb.Dataset(more.values, entities=more.entities, positions=places)
    model.partial_fit(with_places)
    assert_array_equal(model.positions_, places)
