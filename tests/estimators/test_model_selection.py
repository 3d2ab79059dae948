"""The estimators inside scikit-learn's tools: grids, pipelines, clones, frames, copies."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import efemb
from estimators.samples import PRESETS, baskets, data_for, neurons

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
QUICK: dict[str, Any] = {"max_iter": 10, "random_state": 0}


def test_a_grid_reaches_into_context_and_prior() -> None:
    grid = {"context__k": [1, 4], "prior__precision": [0.1, 10.0]}
    model = efemb.GaussianEmbedding(2, context=efemb.Neighbors(), prior=efemb.Normal(), **QUICK)
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(neurons())
    tried = search.cv_results_
    assert len(tried["params"]) == 4
    assert np.isfinite(tried["mean_test_score"]).all()
    assert len(set(np.round(tried["mean_test_score"], 9))) == 4, "every setting is another model"
    best = search.best_estimator_
    assert best.context == efemb.Neighbors(search.best_params_["context__k"])
    assert best.prior == efemb.Normal(search.best_params_["prior__precision"])
    assert model.context == efemb.Neighbors(), "the grid works on clones"


def test_a_grid_reaches_the_options_of_names_too() -> None:
    grid = {"prior__precision": [0.1, 10.0]}
    search = GridSearchCV(efemb.PoissonEmbedding(2, **QUICK), grid, cv=2, error_score="raise")
    search.fit(baskets())
    assert search.best_params_["prior__precision"] in (0.1, 10.0)


def test_a_pair_of_priors_survives_a_clone() -> None:
    model = efemb.PoissonEmbedding(2, prior=(efemb.Normal(2.0), None))
    assert clone(model).prior == (efemb.Normal(2.0), None)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_clone_is_unfitted_and_fits_to_the_same_bits(preset: Any) -> None:
    model = preset(2, **QUICK)
    X = data_for(model)
    model.fit(X)
    other = clone(model)
    assert not hasattr(other, "embedding_")
    assert repr(other) == repr(model)
    assert_array_equal(other.fit(X).embedding_, model.embedding_)


def test_embeddings_feed_a_classifier_in_a_pipeline() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    rate = np.where(y[:, None] == 1, [3, 3, 0.2, 0.2, 1], [0.2, 0.2, 3, 3, 1])
    X = rng.poisson(rate) + 1.0
    pipeline = make_pipeline(
        efemb.PoissonEmbedding(3, random_state=0), StandardScaler(), LogisticRegression()
    )
    assert pipeline.fit(X, y).score(X, y) > 0.85


def test_a_pipeline_in_front_of_a_model() -> None:
    floor = FunctionTransformer(np.floor)
    pipeline = make_pipeline(floor, efemb.PoissonEmbedding(2, **QUICK))
    X = baskets() + 0.5
    direct = efemb.PoissonEmbedding(2, **QUICK).fit(baskets())
    assert pipeline.fit(X).score(X) == pytest.approx(direct.score(baskets()))


@pytest.mark.parametrize("preset", PRESETS)
def test_output_can_be_a_frame(preset: Any) -> None:
    model = preset(2, **QUICK).set_output(transform="pandas")
    X = pd.DataFrame(data_for(model))
    X.columns = [f"item {i}" for i in range(X.shape[1])]
    X.index = X.index + 100
    found = model.fit_transform(X)
    names = [f"{preset.__name__.lower()}{k}" for k in range(2)]
    assert list(found.columns) == names == list(model.get_feature_names_out())
    assert list(found.index) == list(X.index)
    pd.testing.assert_frame_equal(model.transform(X), found)
    assert list(model.feature_names_in_) == list(X.columns)
    assert list(model.vocabulary_.labels) == list(X.columns)


def test_frames_arrays_and_sparse_matrices_are_the_same_data() -> None:
    X = baskets()
    names = [f"item {i}" for i in range(8)]
    kinds = [
        X,
        X.tolist(),
        pd.DataFrame(X, columns=names),
        pl.DataFrame(X, schema=names),
        sparse.csr_matrix(X),
        sparse.coo_array(X),
        efemb.Dataset(X),
        efemb.Dataset(sparse.csr_array(X), entities=names),
    ]
    fits = [efemb.PoissonEmbedding(2, **QUICK).fit(kind) for kind in kinds]
    for fit, kind in zip(fits[1:], kinds[1:], strict=True):
        assert_allclose(fit.embedding_, fits[0].embedding_, rtol=1e-4, atol=1e-6)
        assert_allclose(fit.transform(kind), fits[0].transform(X), rtol=1e-4, atol=1e-6)


def test_a_dataset_goes_through_cross_validation_with_all_it_knows() -> None:
    X = neurons()
    places = np.random.default_rng(0).normal(size=(X.shape[1], 2))
    data = efemb.Dataset(X, positions=places)
    model = efemb.GaussianEmbedding(2, context=efemb.Neighbors(2), **QUICK)
    found = cross_val_score(model, data, cv=3)
    by_hand = [
        clone(model).fit(X[train], positions=places).score(X[test])
        for train, test in KFold(3).split(X)
    ]
    assert_allclose(found, by_hand, rtol=1e-6)
    search = GridSearchCV(model, {"context__k": [1, 2]}, cv=3).fit(data)
    assert_allclose(search.best_estimator_.positions_, places)


def test_columns_in_another_order_are_refused() -> None:
    X = pd.DataFrame(baskets()).rename(columns=lambda i: f"item {i}")
    model = efemb.PoissonEmbedding(2, **QUICK).fit(X)
    with pytest.raises(ValueError, match=r"order|names"):
        model.transform(X[X.columns[::-1]])


@pytest.mark.parametrize("preset", PRESETS)
def test_copies_through_pickle_and_joblib_predict_the_same(preset: Any, tmp_path: Path) -> None:
    model = preset(2, **QUICK)
    X = data_for(model)
    model.fit(X)
    joblib.dump(model, tmp_path / "model.joblib")
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):
        assert_array_equal(copy.transform(X), model.transform(X))
        assert_array_equal(copy.conditional(X), model.conditional(X))
        assert copy.score(X) == model.score(X)
        assert_array_equal(copy.partial_fit(X).embedding_.shape, model.embedding_.shape)


@pytest.mark.parametrize("preset", PRESETS)
def test_arguments_are_stored_untouched(preset: Any) -> None:
    context, prior = efemb.Basket(), efemb.Normal()
    model = preset(3, context=context, prior=prior, random_state=7)
    assert model.context is context
    assert model.prior is prior
    params = model.get_params(deep=False)
    assert params["random_state"] == 7
    # Defaults are plain values, so that two estimators never share an ingredient.
    defaults = preset().get_params(deep=False).values()
    assert all(value is None or isinstance(value, (str, int, float)) for value in defaults)


def test_fit_returns_self_and_ignores_y() -> None:
    model = efemb.PoissonEmbedding(2, **QUICK)
    assert model.fit(baskets(), y=np.zeros(60)) is model
    assert_array_equal(model.embedding_, clone(model).fit(baskets()).embedding_)


def test_data_are_not_changed() -> None:
    X = baskets()
    kept, stored = X.copy(), sparse.csr_array(X)
    before = stored.copy()
    efemb.BernoulliEmbedding(2, binarize=True, **QUICK).fit(X).score(X)
    efemb.BernoulliEmbedding(2, binarize=True, **QUICK).fit(stored).score(stored)
    assert_array_equal(X, kept)
    assert (stored != before).nnz == 0
