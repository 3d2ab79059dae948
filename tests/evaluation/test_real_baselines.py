"""Baselines of real numbers are judged by the variances that they say their predictions have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, norm

import efemb
from efemb.baselines import ExponentialFamilyPCA, FactorAnalysis, Popularity
from efemb.evaluation import held_out_entries, leave_fold_out, leave_one_out
from efemb.evaluation.protocols import draw_folds

SPREAD = np.array([0.1, 0.3, 1.0, 2.0, 5.0, 0.7])
RIVALS = {
    "popularity": Popularity(),
    "popularity-named": Popularity("gaussian"),
    "factor-analysis": FactorAnalysis(2),
    "pca": ExponentialFamilyPCA(2, family="gaussian", max_iter=15, random_state=0),
}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def signals(n_rows: int, seed: int) -> Any:
    """Entities of very different spread: with variance 1 every density would be far off."""
    rng = np.random.default_rng(seed)
    return 3.0 + rng.normal(size=(n_rows, 6)) * SPREAD + rng.normal(size=(n_rows, 1)) * SPREAD


@pytest.mark.parametrize("name", RIVALS)
def test_evaluation_finds_the_density_that_the_baseline_scores(name: str) -> None:
    model = RIVALS[name].fit(signals(80, 0))
    new = signals(12, 1)
    new[3, 2] = np.nan
    found = leave_one_out(model, new).log_likelihood()
    assert found.value == pytest.approx(model.score(new), rel=1e-10)
    compared = efemb.evaluation.compare({name: model}, new, metric="log_likelihood", bootstrap=1)
    assert compared["score"][0] == pytest.approx(model.score(new), rel=1e-10)


@pytest.mark.parametrize("family", ["auto", "gaussian"])
def test_popularity_is_a_normal_of_each_entity(family: str) -> None:
    train, new = signals(80, 0), signals(12, 1)
    model = Popularity(family).fit(train)
    density = norm.logpdf(new, train.mean(axis=0), train.std(axis=0))
    assert_allclose(leave_one_out(model, new).log_density, density.ravel(), rtol=1e-10)
    assert isinstance(model.family_, efemb.Gaussian)
    assert model.family_.variance == pytest.approx(train.var(axis=0).mean(), rel=1e-12)


def conditional_density(model: FactorAnalysis, row: Any, n: int, given: Any) -> float:
    """log p(x_n | x_given), as the difference of two joint densities."""
    covariance = model.components_.T @ model.components_ + np.diag(model.noise_variance_)

    def joint(index: Any) -> float:
        normal = multivariate_normal(model.mean_[index], covariance[np.ix_(index, index)])
        return float(normal.logpdf(row[index]))

    return joint(np.append(given, n)) - joint(given)


def test_folds_are_judged_by_the_variance_given_what_is_left() -> None:
    model, new = FactorAnalysis(2).fit(signals(80, 0)), signals(5, 1)
    found = leave_fold_out(model, new, folds=3, seed=0)
    assert found.log_density is not None
    for part in draw_folds(6, 3, 0):
        others = np.setdiff1d(np.arange(6), part)
        for t, n, density in zip(found.row, found.entity, found.log_density, strict=True):
            if n in part:
                expected = conditional_density(model, new[t], n, others)
                assert density == pytest.approx(expected, rel=1e-8)


def test_held_out_numbers_are_judged_by_the_variance_given_the_others() -> None:
    model, new = FactorAnalysis(2).fit(signals(80, 0)), signals(4, 1)
    held = np.full(new.shape, np.nan)
    held[[0, 0, 2], [1, 4, 3]] = new[[0, 0, 2], [1, 4, 3]]
    found = held_out_entries(model, np.where(np.isnan(held), new, np.nan), held)
    assert found.log_density is not None
    for t, n, density in zip(found.row, found.entity, found.log_density, strict=True):
        others = np.flatnonzero(np.isnan(held[t]))
        expected = conditional_density(model, new[t], n, others)
        assert density == pytest.approx(expected, rel=1e-8)


# -- popularity beside a model ------------------------------------------------------------------


def whole_numbers(n_rows: int, seed: int) -> Any:
    return np.random.default_rng(seed).poisson([0.4, 0.8, 1.0, 2.0, 3.0], (n_rows, 5)).astype(float)


def test_popularity_beside_a_model_of_real_numbers_is_one_of_real_numbers() -> None:
    """Even where all of them are whole, as counts of spikes are."""
    train, test = whole_numbers(60, 0), whole_numbers(20, 1)
    model = efemb.GaussianEmbedding(2, context=efemb.Neighbors(2), random_state=0).fit(train)
    for made in (model, model.fitted()):
        table = efemb.evaluation.compare({"g-emb": made}, test, train=train, bootstrap=1)
        found = dict(zip(table["model"], table["score"], strict=True))
        error = np.mean((test - train.mean(axis=0)) ** 2)
        assert found["popularity"] == pytest.approx(error, rel=1e-12)


def test_popularity_beside_a_model_of_ones_sees_ones() -> None:
    train, test = whole_numbers(60, 0), whole_numbers(20, 1)
    model = efemb.BernoulliEmbedding(2, binarize=True, max_iter=5, random_state=0).fit(train)
    table = efemb.evaluation.compare({"b-emb": model}, test, train=train, bootstrap=1)
    found = dict(zip(table["model"], table["score"], strict=True))
    share = np.log((train > 0).sum(axis=0) / (train > 0).sum())
    bought = (test > 0) & ((test > 0).sum(axis=1, keepdims=True) > 1)
    assert found["popularity"] == pytest.approx(share[np.nonzero(bought)[1]].mean(), rel=1e-12)
