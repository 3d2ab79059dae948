"""Window(length_offset=True): Poisson means proportional to the length of the document."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import efemb
from efemb import Corpus, Window
from efemb.model.parameters import Parameters

TEXT = Corpus([0, 1, 2, 1, 0, 2, 2, 1, 3, 0, 3], [0, 4, 9, 11], ["a", "b", "c", "d"])


def means(link: str, p: Parameters) -> np.ndarray:
    """Mean of every word at every token, by the definition."""
    found = []
    for begin, end in zip(TEXT.starts[:-1], TEXT.starts[1:], strict=True):
        for t in range(begin, end):
            around = [j for j in range(t - 2, t + 3) if j != t and begin <= j < end]
            u = p.rho @ p.alpha[TEXT.tokens[around]].sum(axis=0) + p.intercept
            found.append((end - begin) * (u if link == "log" else np.exp(u)))
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["rows", "generic"])
@pytest.mark.parametrize("link", ["log", "identity"])
def test_objective_and_conditional_are_those_of_the_longer_mean(link: str, solver: str) -> None:
    rng = np.random.default_rng(0)
    p = Parameters(*(rng.gamma(2.0, 0.1, (4, 3)) for _ in range(2)), rng.gamma(2.0, 0.1, 4))
    context = Window(2, length_offset=True, scale="none")
    model = efemb.PoissonTextEmbedding(3, link=link, context=context, solver=solver)
    value, gradient = model.objective(TEXT, p)
    seen = np.eye(4)[TEXT.tokens]
    assert_allclose(value, stats.poisson.logpmf(seen, means(link, p)).sum(), rtol=1e-8)
    step = rng.normal(size=p.rho.shape)
    moved = p.rho * np.exp(1e-6 * step) if link == "log" else p.rho + 1e-6 * step
    other = stats.poisson.logpmf(seen, means(link, Parameters(moved, p.alpha, p.intercept))).sum()
    assert_allclose((gradient.rho * step).sum(), (other - value) / 1e-6, rtol=1e-4)
    fitted = efemb.fitted.FittedEmbedding(p, model._spec(), TEXT.vocabulary)
    assert_allclose(fitted.conditional(TEXT), means(link, p), rtol=1e-8)


@pytest.mark.parametrize("scale", ["none", "items"])
def test_the_reverse_conditional_is_one_model_for_both_solvers(scale: str) -> None:
    rng = np.random.default_rng(0)
    p = Parameters(*(rng.normal(0.0, 0.3, (4, 3)) for _ in range(2)), rng.normal(size=4))
    found = []
    for solver in ("rows", "generic"):
        context = Window(2, scale=scale, length_offset=True)
        options = {"combine": "reverse", "zeros": efemb.All(0.3), "link": "identity"}
        model = efemb.PoissonTextEmbedding(3, context=context, solver=solver, **options)
        found.append(model.objective(TEXT, p))
    (value, gradient), (other, slopes) = found
    assert_allclose(other, value, rtol=1e-10)
    for one, two in zip(gradient.arrays(), slopes.arrays(), strict=True):
        assert_allclose(two, one, rtol=1e-8, atol=1e-10)


def test_only_poisson_means_have_a_length() -> None:
    with pytest.raises(efemb.ParameterError, match="Poisson"):
        efemb.CBOW(2, context=Window(2, length_offset=True, scale="none")).fit(TEXT)
    with pytest.raises(efemb.InputTypeError, match="length_offset"):
        efemb.CBOW(2, context=Window(2, length_offset="yes", scale="none")).fit(TEXT)  # type: ignore[arg-type]


@pytest.mark.parametrize("combine", ["linear", "reverse"])
def test_every_word_counts_once_in_the_score(combine: str) -> None:
    """Shares do not depend on the length, and neither does the weight of a word."""
    rng = np.random.default_rng(0)
    p = Parameters(*(rng.normal(0.0, 0.3, (4, 3)) for _ in range(2)), rng.normal(size=4))
    options = {"link": "identity", "combine": combine}
    scores = []
    for length_offset in (True, False):
        context = Window(2, length_offset=length_offset, scale="none")
        model = efemb.PoissonTextEmbedding(3, context=context, **options)
        fitted = efemb.fitted.FittedEmbedding(p, model._spec(), TEXT.vocabulary)
        scores.append(fitted.score(TEXT))
    assert_allclose(scores[0], scores[1], rtol=1e-12)
    if combine == "linear":
        every = means("identity", p)
        own = every[np.arange(len(every)), TEXT.tokens]
        assert_allclose(scores[0], np.log(own / every.sum(axis=1)).mean(), rtol=1e-6)
