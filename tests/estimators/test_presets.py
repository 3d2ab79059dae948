"""Presets: the paper's models, their shorthands and the paper's settings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import efemb
from estimators.samples import PRESETS, baskets, data_for, neurons

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

DEFAULTS: dict[Any, dict[str, Any]] = {
    efemb.PoissonEmbedding: {"family": efemb.Poisson(), "link": efemb.model.links.Identity()},
    efemb.AdditivePoissonEmbedding: {"family": efemb.Poisson(), "link": efemb.model.links.Log()},
    efemb.BernoulliEmbedding: {"family": efemb.Bernoulli(), "link": efemb.model.links.Identity()},
    efemb.CategoricalEmbedding: {
        "family": efemb.Categorical(),
        "link": efemb.model.links.Identity(),
    },
    efemb.GaussianEmbedding: {"family": efemb.Gaussian("learned"), "context": efemb.Neighbors()},
    efemb.NonnegativeGaussianEmbedding: {
        "family": efemb.Gaussian("learned"),
        "context": efemb.Neighbors(),
    },
}
COUNTS = [p for p in PRESETS if not issubclass(p, efemb.GaussianEmbedding)]


@pytest.mark.parametrize("preset", PRESETS)
def test_defaults_are_the_models_ingredients(preset: Any) -> None:
    spec = preset()._spec()
    for name, ingredient in DEFAULTS[preset].items():
        assert getattr(spec, name) == ingredient
    if preset in COUNTS:
        assert spec.context == efemb.Basket(scale="total")
    assert spec.intercept


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_the_general_estimator_with_its_ingredients(preset: Any) -> None:
    options: dict[str, Any] = {"random_state": 0, "max_iter": 5}
    model = preset(2, **options)
    X, spec = data_for(model), model._spec()
    general = efemb.Embedding(
        2,
        context=spec.context,
        family=spec.family,
        link=spec.link,
        prior=(spec.prior_rho, spec.prior_alpha),
        weight_ridge=spec.weight_ridge,
        center=model.center,
        **options,
    )
    assert_array_equal(general.fit(X).embedding_, model.fit(X).embedding_)


@pytest.mark.parametrize("preset", PRESETS)
def test_positive_models_have_positive_vectors(preset: Any) -> None:
    model = preset(2, random_state=0, max_iter=20)
    model.fit(data_for(model))
    positive = preset in (efemb.AdditivePoissonEmbedding, efemb.NonnegativeGaussianEmbedding)
    assert (model.embedding_ > 0).all() == positive
    assert (model.context_ > 0).all() == positive
    if positive:
        assert (model.intercept_ > 0).all()


@pytest.mark.parametrize("optimizer", ["lbfgs", "adagrad"])
@pytest.mark.parametrize("solver", ["moments", "generic", "rows"])
@pytest.mark.parametrize("positive", [(True, True), (True, False), (False, True)])
def test_each_kind_of_vector_obeys_its_own_prior(
    positive: tuple[bool, bool], solver: str, optimizer: str
) -> None:
    prior = tuple(efemb.HalfNormal(0.1) if one else efemb.Normal(0.1) for one in positive)
    context = efemb.Basket("items") if solver == "rows" else efemb.Neighbors(3)
    model = efemb.GaussianEmbedding(
        2, context=context, prior=prior, solver=solver, optimizer=optimizer, random_state=0
    ).set_params(max_iter=20)
    model.fit(neurons())
    assert (model.embedding_ > 0).all() or not positive[0]
    assert (model.context_ > 0).all() or not positive[1]
    # A signed intercept has to follow the signs of the means, which a positive one cannot.
    assert (model.intercept_ > 0).all() == all(positive)


# lambda and iterations: Table 5 of the paper; context, link and regularizer: its sections 2 and 3.
PAPER: dict[Any, dict[str, Any]] = {
    efemb.PoissonEmbedding: {"prior_rho": efemb.Normal(1.0), "context": efemb.Basket("items")},
    efemb.AdditivePoissonEmbedding: {
        "prior_rho": efemb.LogNormal(1.0, 0.0),
        "context": efemb.Basket("items"),
        "link": efemb.model.links.Log(),
    },
    efemb.BernoulliEmbedding: {"prior_rho": efemb.Normal(1.0), "context": efemb.Basket("items")},
    efemb.CategoricalEmbedding: {"prior_rho": efemb.Normal(1.0), "context": efemb.Basket("items")},
    efemb.GaussianEmbedding: {"prior_rho": efemb.Normal(10.0), "context": efemb.Neighbors(50)},
    efemb.NonnegativeGaussianEmbedding: {
        "prior_rho": efemb.LogNormal(0.1, 0.0),
        "context": efemb.Neighbors(10),
    },
}


@pytest.mark.parametrize("preset", PRESETS)
def test_paper_builds_the_papers_settings(preset: Any) -> None:
    model = preset.paper(7)
    spec = model._spec()
    assert model.n_components == 7
    assert not spec.intercept
    assert spec.zeros == efemb.All(1.0)
    assert spec.prior_alpha == spec.prior_rho
    for name, ingredient in PAPER[preset].items():
        assert getattr(spec, name) == ingredient
    if preset in COUNTS:
        assert model.max_iter == 3000
        assert model.batch_size is None


@pytest.mark.parametrize("preset", PRESETS)
def test_overrides_win_over_the_papers_settings(preset: Any) -> None:
    model = preset.paper(3, context=efemb.Neighbors(2) if preset not in COUNTS else "basket")
    model.set_params(max_iter=3, random_state=0)
    assert model.fit(data_for(model)).embedding_.shape[1] == 3
    assert preset.paper(3, intercept=True).intercept is True


@pytest.mark.parametrize("preset", [p for p in COUNTS if p is not efemb.CategoricalEmbedding])
def test_zero_weight_is_a_shorthand(preset: Any) -> None:
    options: dict[str, Any] = {"random_state": 0, "max_iter": 5}
    short, long = preset(2, zero_weight=0.1, **options), preset(2, zeros=efemb.All(0.1), **options)
    X = data_for(short)
    assert_array_equal(short.fit(X).embedding_, long.fit(X).embedding_)
    plain = preset(2, **options).fit(X)
    assert np.abs(plain.embedding_ - short.embedding_).max() > 1e-4


def test_both_the_shorthand_and_the_ingredient_are_an_error() -> None:
    model = efemb.PoissonEmbedding(2, zero_weight=0.1, zeros=efemb.Sampled(5))
    with pytest.raises(efemb.ParameterError, match="not both"):
        model.fit(baskets())


@pytest.mark.parametrize("weight", [-0.1, np.nan])
def test_a_zero_weight_that_cannot_be_is_refused(weight: float) -> None:
    with pytest.raises(efemb.ParameterError, match="weight"):
        efemb.PoissonEmbedding(2, zero_weight=weight).fit(baskets())


def test_binarize_counts_every_nonzero_as_one() -> None:
    options: dict[str, Any] = {"random_state": 0, "max_iter": 5}
    X = baskets()
    short = efemb.BernoulliEmbedding(2, binarize=True, **options).fit(X)
    long = efemb.BernoulliEmbedding(2, **options).fit((X != 0).astype(float))
    assert_array_equal(short.embedding_, long.embedding_)
    assert short.score(X) == pytest.approx(long.score((X != 0).astype(float)))


def test_allow_real_takes_values_between_the_counts() -> None:
    X = baskets() * 1.5
    model = efemb.PoissonEmbedding(2, allow_real=True, random_state=0, max_iter=5).fit(X)
    assert np.isfinite(model.score(X))


@pytest.mark.parametrize(
    ("zeros", "gradient"),
    [("all", "exact"), (efemb.Sampled(4), "unbiased"), (efemb.NegativeSampling(2), "biased")],
)
def test_the_fit_says_which_solver_and_gradient_ran(zeros: Any, gradient: str) -> None:
    model = efemb.PoissonEmbedding(2, zeros=zeros, max_iter=2, random_state=0).fit(baskets())
    assert (model.solver_, model.gradient_) == ("rows", gradient)


def test_gaussian_models_on_neighbors_run_on_moments() -> None:
    model = efemb.GaussianEmbedding(2, max_iter=2, random_state=0).fit(neurons())
    assert (model.solver_, model.gradient_) == ("moments", "exact")
    model.set_params(context=efemb.Explicit(np.zeros(361, int), [])).fit(neurons())
    assert model.solver_ == "generic"


def test_moments_and_generic_reach_the_same_objective() -> None:
    """Two solvers, one model: with all else equal they end at the same value."""
    X = neurons()
    values = []
    for solver in ("moments", "generic"):
        model = efemb.GaussianEmbedding(
            2,
            context=efemb.Graph(1 - np.eye(6)),
            prior=efemb.Normal(1.0),
            solver=solver,
            optimizer="lbfgs",
            early_stopping=False,
            dtype="float64",
            random_state=0,
            max_iter=1000,
            tol=1e-9,
        ).fit(X)
        values.append(model.objective(X, model.parameters_)[0])
    assert_allclose(values[0], values[1], rtol=1e-4)


def test_positions_are_a_shorthand_for_the_contexts() -> None:
    positions = np.random.default_rng(0).random((6, 2))
    options: dict[str, Any] = {"random_state": 0, "max_iter": 5}
    short = efemb.GaussianEmbedding(2, context=efemb.Neighbors(2), **options)
    short.fit(neurons(), positions=positions)
    long = efemb.GaussianEmbedding(2, context=efemb.Neighbors(2, positions=positions), **options)
    assert_array_equal(short.embedding_, long.fit(neurons()).embedding_)
    assert_array_equal(short.positions_, positions)
