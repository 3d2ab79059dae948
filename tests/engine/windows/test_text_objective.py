"""The objective of text models is its definition, written as loops; its gradient, differences."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.model.parameters import Parameters
from engine.windows import plain, samples

WINDOW, K, STEP, PRECISION = 2, 2, 1e-5, 0.7
FAMILIES = {
    "bernoulli": ("bernoulli", "identity"),
    "poisson": ("poisson", "identity"),
    "additive": ("poisson", "log"),
    "categorical": ("categorical", "identity"),
}


def point(family: str, intercept: bool, tied: bool, positional: bool, seed: int = 2) -> Parameters:
    rng = np.random.default_rng(seed)

    def some(*shape: int) -> Any:
        positive = family == "additive"
        return rng.uniform(0.1, 0.9, shape) if positive else rng.normal(0.0, 0.6, shape)

    rho = some(5, K)
    alpha = rho if tied else some(5, K)
    position = some(2 * WINDOW, K) if positional else None
    return Parameters(rho, alpha, some(5) if intercept else None, position)


def as_point(p: Parameters) -> plain.Point:
    return plain.Point(p.rho, p.alpha, p.intercept, p.position)


def estimator(family: str, combine: str, **options: Any) -> efemb.Embedding:
    name, link = FAMILIES[family]
    return efemb.Embedding(K, family=name, link=link, combine=combine, **options)


def definition(
    text: efemb.Corpus,
    p: Parameters,
    family: str,
    combine: str,
    scale: str,
    tied: bool,
    prior: bool,
) -> float:
    reverse = combine == "reverse"
    listed = plain.cases(samples.documents(text), WINDOW, reverse)
    value = plain.likelihood(listed, as_point(p), family, scale, reverse)
    if prior:
        value -= 0.5 * PRECISION * plain.squares(p.rho, *(() if tied else (p.alpha,)))
    return value


def moved(p: Parameters, name: str, direction: Any, step: float, positive: bool, tied: bool) -> Any:
    """A step in the unconstrained parameters."""
    old = getattr(p, name)
    new = old * np.exp(step * direction) if positive else old + step * direction
    found = replace(p, **{name: new})
    return replace(found, alpha=found.rho) if tied else found


def choices() -> list[Any]:
    """Every combination but scales of the reverse conditional, which has nothing to scale."""
    flags = list(product((False, True), repeat=4))
    pairs = [("linear", "none"), ("linear", "items"), ("reverse", "none")]
    return [
        pytest.param(
            family, *pair, *flag, id="-".join([family, *pair, *("01"[one] for one in flag)])
        )
        for family in FAMILIES
        for pair in pairs
        for flag in flags
    ]


@pytest.mark.quick_one_in(3)
@pytest.mark.parametrize(
    ("family", "combine", "scale", "intercept", "prior", "tied", "positional"), choices()
)
def test_objective_is_the_loop_definition(
    family: str,
    combine: str,
    scale: str,
    intercept: bool,
    prior: bool,
    tied: bool,
    positional: bool,
) -> None:
    text = samples.corpus()
    p = point(family, intercept, tied, positional)
    positive = family == "additive"
    kind = efemb.HalfNormal if positive else efemb.Normal
    model = estimator(
        family,
        combine,
        context=efemb.Window(WINDOW, scale=scale, positional=positional),
        prior=kind(PRECISION) if prior else None,
        structure="tied" if tied else "per-entity",
        intercept=intercept,
    )
    value, gradient = model.objective(text, p)
    rest = (family, combine, scale, tied, prior)
    assert_allclose(value, definition(text, p, *rest), rtol=1e-8)
    rng = np.random.default_rng(3)
    for name in ("rho", "alpha", "intercept", "position"):
        slope = getattr(gradient, name)
        if getattr(p, name) is None or (tied and name == "alpha"):
            assert slope is None or not slope.any()
            continue
        direction = rng.normal(size=slope.shape)
        shared = tied and name == "rho"
        sides = [
            definition(text, moved(p, name, direction, step, positive, shared), *rest)
            for step in (STEP, -STEP)
        ]
        difference = (sides[0] - sides[1]) / (2 * STEP)
        assert_allclose((slope * direction).sum(), difference, rtol=2e-6, atol=2e-6, err_msg=name)


@pytest.mark.parametrize("combine", ["linear", "reverse"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_number_of_the_gradient_is_a_difference(family: str, combine: str) -> None:
    text = samples.corpus((4, 1, 3))
    p = point(family, True, False, True)
    model = estimator(
        family,
        combine,
        context=efemb.Window(WINDOW, positional=True, scale="none"),
        prior=None,
        intercept=True,
    )
    _, gradient = model.objective(text, p)
    rest = (family, combine, "none", False, False)
    for name in ("rho", "alpha", "intercept", "position"):
        slope = getattr(gradient, name)
        found = np.empty_like(slope)
        for place in np.ndindex(slope.shape):
            unit = np.zeros_like(slope)
            unit[place] = 1.0
            logs = family == "additive"
            sides = [
                definition(text, moved(p, name, unit, step, logs, False), *rest)
                for step in (STEP, -STEP)
            ]
            found[place] = (sides[0] - sides[1]) / (2 * STEP)
        assert_allclose(slope, found, rtol=2e-6, atol=2e-6, err_msg=name)


def test_weights_of_places_are_positive_where_means_add_up() -> None:
    """A negative mean would lie below the floor of the link, which closed forms do not see."""
    p = point("additive", False, False, True)
    assert p.position is not None
    p = replace(p, position=p.position - 0.6)
    context = efemb.Window(WINDOW, positional=True, scale="none")
    model = estimator("additive", "linear", context=context, prior=None, intercept=False)
    with pytest.raises(efemb.ParameterError, match="position"):
        model.objective(samples.corpus(), p)


PRESETS = {
    "CBOW": (efemb.CBOW, "categorical", "linear"),
    "BernoulliText": (efemb.BernoulliTextEmbedding, "bernoulli", "linear"),
    "SkipGram": (efemb.SkipGram, "bernoulli", "reverse"),
    "PoissonText": (efemb.PoissonTextEmbedding, "additive", "linear"),
}


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("scale", ["none", "items"])
def test_presets_are_these_models(name: str, scale: str) -> None:
    kind, family, combine = PRESETS[name]
    text = samples.corpus()
    p = point(family, True, False, False)
    model = kind(K, context=efemb.Window(WINDOW, scale=scale), zeros="all", intercept=True)
    value, _ = model.objective(text, p)
    assert_allclose(value, definition(text, p, family, combine, scale, False, False), rtol=1e-8)


COUNTS = [40.0, 11.0, 7.0, 5.0, 1.0]


@pytest.mark.parametrize("counts", [None, COUNTS], ids=["own-counts", "counts-of-vocabulary"])
@pytest.mark.parametrize("family", ["bernoulli", "poisson", "additive"])
@pytest.mark.parametrize("combine", ["linear", "reverse"])
@pytest.mark.parametrize("positional", [False, True], ids=["plain", "positional"])
def test_negative_sampling_is_the_biased_objective(
    family: str, combine: str, positional: bool, counts: Any
) -> None:
    """Positives, and n q_v times the zero of every other word: no zero is scaled up.

    Documents of one word are left out here: stochastic passes skip them.
    """
    text = samples.corpus((7, 3, 2, 5), counts=counts)
    p = point(family, True, False, positional)
    context = efemb.Window(WINDOW, positional=positional, scale="none")
    zeros = efemb.NegativeSampling(3, "smoothed")
    model = estimator(family, combine, context=context, prior=None, zeros=zeros, intercept=True)
    value, gradient = model.objective(text, p)
    popularity = text.counts().tolist() if counts is None else counts
    weight = [3 * q for q in plain.noise(popularity)]
    reverse = combine == "reverse"
    listed = plain.cases(samples.documents(text), WINDOW, reverse)
    rest = (family, "none", reverse, weight)
    assert_allclose(value, plain.likelihood(listed, as_point(p), *rest), rtol=1e-8)
    rng = np.random.default_rng(3)
    names = ["rho", "alpha", "intercept", *(["position"] if positional else [])]
    for name in names:
        slope = getattr(gradient, name)
        direction = rng.normal(size=slope.shape)
        logs = family == "additive"
        sides = [
            plain.likelihood(listed, as_point(moved(p, name, direction, h, logs, False)), *rest)
            for h in (STEP, -STEP)
        ]
        difference = (sides[0] - sides[1]) / (2 * STEP)
        assert_allclose((slope * direction).sum(), difference, rtol=2e-6, atol=2e-6, err_msg=name)


def test_a_weight_of_zeros_weighs_the_zeros() -> None:
    text, p = samples.corpus(), point("bernoulli", True, False, False)
    context = efemb.Window(WINDOW, scale="none")
    model = estimator("bernoulli", "linear", context=context, prior=None, zeros=efemb.All(0.1))
    value, _ = model.objective(text, p)
    listed = plain.cases(samples.documents(text), WINDOW, False)
    expected = plain.likelihood(listed, as_point(p), "bernoulli", "none", False, [0.1] * 5)
    assert_allclose(value, expected, rtol=1e-8)
