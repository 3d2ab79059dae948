"""Given context vectors, text models are regressions on context sums: scikit-learn agrees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, PoissonRegressor

import efemb
from efemb.model.parameters import Parameters
from engine.windows import plain, samples

WINDOW, K, PRECISION = 2, 3, 0.5


def sums(text: efemb.Corpus, alpha: Any, scale: str) -> Any:
    """Context sum of every token, by loops."""
    found = []
    for document in samples.documents(text):
        for t in range(len(document)):
            around = [alpha[word] for _, word in plain.neighbors(document, t, WINDOW)]
            total = np.sum(around, axis=0) if around else np.zeros(alpha.shape[1])
            found.append(total / len(around) if scale == "items" and around else total)
    return np.array(found)


def best(model: efemb.Embedding, text: efemb.Corpus, alpha: Any) -> Parameters:
    """rho and intercept that maximize our objective, alpha fixed."""
    n = text.n_entities

    def unpack(x: Any) -> Parameters:
        return Parameters(x[: n * K].reshape(n, K), alpha, x[n * K :])

    def loss(x: Any) -> tuple[float, Any]:
        value, gradient = model.objective(text, unpack(x))
        assert gradient.intercept is not None
        return -value, -np.concatenate([gradient.rho.ravel(), gradient.intercept])

    found = minimize(
        loss, np.zeros(n * (K + 1)), jac=True, method="L-BFGS-B", options={"gtol": 1e-9, "ftol": 0}
    )
    return unpack(found.x)


def text_and_alpha() -> tuple[efemb.Corpus, Any]:
    text = samples.corpus((40, 30, 20, 1, 2), n_words=4)
    return text, np.random.default_rng(5).normal(size=(4, K))


@pytest.mark.parametrize("scale", ["none", "items"])
def test_cbow_is_multinomial_regression(scale: str) -> None:
    text, alpha = text_and_alpha()
    prior = (efemb.Normal(PRECISION), None)
    model = efemb.CBOW(K, context=efemb.Window(WINDOW, scale=scale), prior=prior)
    ours = best(model, text, alpha)
    X, y = sums(text, alpha, scale), np.asarray(text.tokens)
    theirs = LogisticRegression(C=1 / PRECISION, tol=1e-10, max_iter=10_000).fit(X, y)
    assert ours.intercept is not None
    assert_allclose(ours.rho, theirs.coef_, atol=2e-4)
    assert_allclose(
        ours.intercept - ours.intercept.mean(),
        theirs.intercept_ - theirs.intercept_.mean(),
        atol=2e-4,
    )
    value, _ = model.objective(text, ours)
    log_p = theirs.predict_log_proba(X)[np.arange(len(y)), y].sum()
    assert_allclose(value, log_p - 0.5 * PRECISION * (theirs.coef_**2).sum(), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["none", "items"])
def test_poisson_text_is_a_poisson_regression_a_word(scale: str) -> None:
    """Our identity link is their log link: the mean is exp(u)."""
    text, alpha = text_and_alpha()
    prior = (efemb.Normal(PRECISION), None)
    context = efemb.Window(WINDOW, scale=scale)
    model = efemb.PoissonTextEmbedding(K, context=context, link="identity", prior=prior)
    ours = best(model, text, alpha)
    X, y = sums(text, alpha, scale), np.asarray(text.tokens)
    assert ours.intercept is not None
    for word in range(4):
        theirs = PoissonRegressor(alpha=PRECISION / len(y), tol=1e-10, max_iter=10_000)
        theirs.fit(X, (y == word).astype(float))
        assert_allclose(ours.rho[word], theirs.coef_, atol=2e-4)
        assert_allclose(ours.intercept[word], theirs.intercept_, atol=2e-4)


@pytest.mark.parametrize("scale", ["none", "items"])
def test_bernoulli_text_is_a_logistic_regression_a_word(scale: str) -> None:
    text, alpha = text_and_alpha()
    prior = (efemb.Normal(PRECISION), None)
    context = efemb.Window(WINDOW, scale=scale)
    options: dict[str, Any] = {"context": context, "zeros": "all", "prior": prior}
    ours = best(efemb.BernoulliTextEmbedding(K, intercept=True, **options), text, alpha)
    X, y = sums(text, alpha, scale), np.asarray(text.tokens)
    assert ours.intercept is not None
    for word in range(4):
        theirs = LogisticRegression(C=1 / PRECISION, tol=1e-10, max_iter=10_000)
        theirs.fit(X, y == word)
        assert_allclose(ours.rho[word], theirs.coef_[0], atol=2e-4)
        assert_allclose(ours.intercept[word], theirs.intercept_[0], atol=2e-4)


def test_a_fit_by_lbfgs_reaches_the_regression_of_its_own_alpha() -> None:
    """At the optimum of both, rho is the best given alpha."""
    text, _ = text_and_alpha()
    model = efemb.CBOW(
        K,
        context=efemb.Window(WINDOW, scale="none"),
        prior=efemb.Normal(PRECISION),
        optimizer="lbfgs",
        early_stopping=False,
        dtype="float64",
        random_state=0,
        tol=1e-12,
        max_iter=3000,
    ).fit(text)
    X, y = sums(text, model.context_, "none"), np.asarray(text.tokens)
    theirs = LogisticRegression(C=1 / PRECISION, tol=1e-10, max_iter=10_000).fit(X, y)
    assert_allclose(model.embedding_, theirs.coef_, atol=2e-3)
