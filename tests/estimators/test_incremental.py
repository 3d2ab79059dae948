"""partial_fit, warm_start and resuming a fitted model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

import efemb
from estimators.samples import PRESETS, baskets, data_for, neurons

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
OPTIMIZERS = [
    efemb.engine.optimizers.Adagrad(),
    efemb.engine.optimizers.Adam(),
    efemb.engine.optimizers.SGD(decay=0.3),
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda one: one.name())
def test_passes_one_by_one_are_passes_in_a_row(optimizer: Any) -> None:
    """Full batches without a hold-out: the optimizer's state lives on between calls."""
    X = baskets()
    options: dict[str, Any] = {
        "optimizer": optimizer,
        "early_stopping": False,
        "dtype": "float64",
        "batch_size": None,
        "random_state": 0,
    }
    steps = efemb.PoissonEmbedding(2, **options)
    for _ in range(4):
        steps.partial_fit(X)
    whole = efemb.PoissonEmbedding(2, max_iter=4, **options).fit(X)
    for one, other in zip(steps.parameters_.arrays(), whole.parameters_.arrays(), strict=True):
        assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("preset", PRESETS)
def test_more_passes_raise_the_objective(preset: Any) -> None:
    model = preset(2, random_state=0)
    X = data_for(model)
    values = []
    for _ in range(15):
        model.partial_fit(X)
        values.append(model.objective(X, model.parameters_)[0])
    assert values[-1] > values[0]
    assert model.n_features_in_ == X.shape[1]


def test_partial_fit_takes_no_hold_out() -> None:
    model = efemb.PoissonEmbedding(2, random_state=0).partial_fit(baskets())
    assert [one["validation"] for one in model.history_] == [None]


def test_partial_fit_of_an_array_with_other_features_raises_and_changes_nothing() -> None:
    model = efemb.PoissonEmbedding(2, random_state=0).partial_fit(baskets())
    before = model.embedding_.copy()
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(baskets(n_entities=5))
    assert_array_equal(model.embedding_, before)
    assert model.n_features_in_ == 8


def test_a_labeled_dataset_grows_the_vocabulary() -> None:
    first = efemb.Dataset(baskets(n_entities=4), entities=["a", "b", "c", "d"])
    second = efemb.Dataset(sparse.csr_array(baskets(n_entities=3)), entities=["x", "c", "a"])
    model = efemb.PoissonEmbedding(
        2, optimizer=efemb.engine.optimizers.Adagrad(0.1), random_state=0
    )
    before = model.partial_fit(first).embedding_.copy()
    model.partial_fit(second)
    assert model.vocabulary_.labels.tolist() == ["a", "b", "c", "d", "x"]
    assert model.n_features_in_ == 5
    assert model.embedding_.shape == model.context_.shape == (5, 2)
    assert model.intercept_.shape == (5,)
    # One step of Adagrad moves a number by at most its step, 0.1.
    assert np.abs(model.embedding_[:4] - before).max() <= 0.1 + 1e-6
    assert np.isfinite(model.score(efemb.Dataset(baskets(n_entities=5))))


def test_a_tied_model_grows_and_stays_tied() -> None:
    first = efemb.Dataset(baskets(n_entities=4), entities=["a", "b", "c", "d"])
    second = efemb.Dataset(baskets(n_entities=3), entities=["x", "c", "a"])
    model = efemb.PoissonEmbedding(2, structure="tied", random_state=0)
    model.partial_fit(first).partial_fit(second)
    assert model.vocabulary_.labels.tolist() == ["a", "b", "c", "d", "x"]
    assert_array_equal(model.embedding_, model.context_)


def test_growing_takes_each_value_to_its_label() -> None:
    """Data in another order of labels is the same data."""
    labels = ["a", "b", "c", "d"]
    X = baskets(n_entities=4)
    order = [2, 0, 3, 1]
    start = efemb.PoissonEmbedding(2, random_state=0, dtype="float64").partial_fit(
        efemb.Dataset(X, entities=labels)
    )
    turned = clone(start).partial_fit(efemb.Dataset(X, entities=labels))
    start.partial_fit(efemb.Dataset(X, entities=labels))
    turned.partial_fit(efemb.Dataset(X[:, order], entities=[labels[i] for i in order]))
    assert_allclose(turned.embedding_, start.embedding_, rtol=1e-10)


def test_a_failed_growth_leaves_the_vocabulary_alone() -> None:
    model = efemb.PoissonEmbedding(2, random_state=0).partial_fit(
        efemb.Dataset(baskets(n_entities=3), entities=["a", "b", "c"])
    )
    bad = efemb.Dataset(-baskets(n_entities=3), entities=["a", "b", "z"])
    with pytest.raises(efemb.DataError):
        model.partial_fit(bad)
    assert model.vocabulary_.labels.tolist() == ["a", "b", "c"]
    assert model.embedding_.shape == (3, 2)


def test_partial_fit_keeps_the_neighbors_of_the_first_call() -> None:
    model = efemb.GaussianEmbedding(2, context=efemb.Neighbors(2), random_state=0)
    model.partial_fit(neurons(20, seed=1))
    first = model.context_sums(neurons(5), (np.zeros(6, int), np.arange(6))) != 0
    members = [part.members.copy() for part in model.fitted().lists]
    model.partial_fit(neurons(20, seed=2))
    for before, part in zip(members, model.fitted().lists, strict=True):
        assert_array_equal(before, part.members)
    assert first.all()


def test_another_optimizer_starts_with_a_fresh_state() -> None:
    model = efemb.PoissonEmbedding(2, random_state=0).partial_fit(baskets())
    model.set_params(optimizer=efemb.engine.optimizers.Adam()).partial_fit(baskets())
    assert np.isfinite(model.embedding_).all()


@pytest.mark.parametrize("preset", PRESETS)
def test_warm_start_continues_from_the_last_fit(preset: Any) -> None:
    model = preset(2, random_state=0, max_iter=3, early_stopping=False)
    X = data_for(model)
    model.fit(X)
    begun = model.objective(X, model.parameters_)[0]
    cold = clone(model).fit(X).objective(X, model.parameters_)[0]
    warm = model.set_params(warm_start=True).fit(X)
    assert cold == pytest.approx(begun)
    assert model.objective(X, warm.parameters_)[0] > begun


def test_warm_start_begins_exactly_where_the_last_fit_ended() -> None:
    X = baskets()
    still = {
        "optimizer": efemb.engine.optimizers.SGD(1e-300),
        "max_iter": 1,
        "early_stopping": False,
    }
    model = efemb.PoissonEmbedding(2, random_state=0, max_iter=5).fit(X)
    kept = model.parameters_.copy()
    model.set_params(warm_start=True, **still).fit(X)
    for one, other in zip(model.parameters_.arrays(), kept.arrays(), strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize(
    "change", [{"n_components": 3}, {"intercept": False}, {"link": "log", "prior": None}]
)
@pytest.mark.parametrize("how", ["fit", "partial_fit"])
def test_vectors_that_do_not_suit_the_model_cannot_be_continued(
    how: str, change: dict[str, Any]
) -> None:
    model = efemb.PoissonEmbedding(2, random_state=0, max_iter=2, warm_start=True).fit(baskets())
    before = model.embedding_
    model.set_params(**change)
    with pytest.raises(efemb.ParameterError):
        getattr(model, how)(baskets())
    assert model.embedding_ is before


def test_warm_start_does_not_give_an_entity_the_vectors_of_another() -> None:
    names, X = list("abcdefghij"), np.random.default_rng(0).poisson(1.0, (30, 10))
    data = efemb.Dataset(X, entities=names)
    model = efemb.PoissonEmbedding(2, random_state=0, max_iter=2, warm_start=True).fit(data)
    before = model.embedding_.copy()
    moved = data.take_entities(np.arange(10)[::-1])
    with pytest.raises(efemb.DataError, match="another order"):
        model.fit(moved)
    assert_array_equal(model.embedding_, before)
    model.fit(efemb.data.aligned(moved, model.vocabulary_))
    assert list(model.vocabulary_.labels) == names


def test_warm_start_on_other_features_is_refused() -> None:
    model = efemb.PoissonEmbedding(2, random_state=0, max_iter=2, warm_start=True).fit(baskets())
    with pytest.raises(efemb.EfembError):
        model.fit(baskets(n_entities=5))
    assert model.n_features_in_ == 8


@pytest.mark.parametrize("preset", PRESETS)
def test_a_fitted_model_predicts_like_its_estimator_and_can_be_resumed(preset: Any) -> None:
    model = preset(2, random_state=0, max_iter=5)
    X = data_for(model)
    model.fit(X)
    fitted = model.fitted()
    assert_allclose(fitted.conditional(X), model.conditional(X))
    assert fitted.score(X) == pytest.approx(model.score(X))
    resumed = preset.from_fitted(fitted, random_state=0)
    assert_allclose(resumed.transform(X), model.transform(X))
    before = model.objective(X, model.parameters_)[0]
    resumed.set_params(max_iter=5, early_stopping=False).fit(X)
    assert resumed.objective(X, resumed.parameters_)[0] > before


def test_numbers_that_new_rows_lack_are_missing_not_zero() -> None:
    """A pass over rows that lack some entities leaves these unchanged."""
    X = 5.0 + neurons()[:, :4]
    options: dict[str, Any] = {"context": efemb.Basket("none"), "dtype": "float64"}
    model = efemb.GaussianEmbedding(2, random_state=0, **options)
    model.partial_fit(efemb.Dataset(X, entities=list("abcd")))
    other = clone(model).partial_fit(efemb.Dataset(X, entities=list("abcd")))
    model.partial_fit(efemb.Dataset(X[:, :2], entities=list("ba")))
    missing = np.full(X.shape, np.nan)
    missing[:, [1, 0]] = X[:, :2]
    other.partial_fit(efemb.Dataset(missing, entities=list("abcd")))
    for one, two in zip(model.parameters_.arrays(), other.parameters_.arrays(), strict=True):
        assert_array_equal(one, two)


def test_entities_with_fixed_neighbors_do_not_grow_here() -> None:
    X = neurons()[:, :5]
    model = efemb.GaussianEmbedding(2, context=efemb.Neighbors(2), random_state=0)
    model.partial_fit(efemb.Dataset(X, entities=list("abcde")))
    with pytest.raises(efemb.DataError, match=r"no neighbors.*fold_in"):
        model.partial_fit(efemb.Dataset(X, entities=list("abcdf")))
    assert model.vocabulary_.labels.tolist() == list("abcde")
