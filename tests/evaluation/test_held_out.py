"""held_out_words: the mean log-probability of words given those around them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb import Corpus, Window
from efemb.model.parameters import Parameters

RNG = np.random.default_rng(0)
WORDS = Corpus(
    RNG.integers(0, 6, 80),
    [0, 1, 30, 80],
    efemb.Vocabulary("abcdef", counts=[30, 20, 12, 9, 6, 3]),
)


def fitted(**options: object) -> efemb.fitted.FittedEmbedding:
    """A model with random vectors."""
    model = efemb.CBOW(3, context=Window(2, scale="items"), **options)
    arrays = (RNG.normal(size=(6, 3)), RNG.normal(size=(6, 3)))
    spec = model._spec()
    return efemb.fitted.FittedEmbedding(
        Parameters(*arrays, RNG.normal(size=6)), spec, WORDS.vocabulary
    )


def log_probabilities(model: efemb.fitted.FittedEmbedding, shift: np.ndarray) -> list[float]:
    """log p of every word with another one around it, by the definition."""
    found, p = [], model.parameters
    for begin, end in zip(WORDS.starts[:-1], WORDS.starts[1:], strict=True):
        for t in range(begin, end):
            around = [j for j in range(t - 2, t + 3) if j != t and begin <= j < end]
            if around:
                u = p.rho @ p.alpha[WORDS.tokens[around]].mean(axis=0) + p.intercept + shift
                found.append(u[WORDS.tokens[t]] - math.log(np.exp(u).sum()))
    return found


def test_the_exact_score_is_the_mean_over_words() -> None:
    model = fitted()
    plain = np.array(log_probabilities(model, np.zeros(6)))
    held = efemb.evaluation.held_out_words(model, WORDS)
    assert_allclose(held.log_likelihood, plain.mean(), rtol=1e-6)
    assert_allclose(held.standard_error, plain.std() / math.sqrt(len(plain)), rtol=1e-6)
    assert_allclose(held.perplexity, math.exp(-plain.mean()), rtol=1e-6)
    assert (held.n_words, held.n_skipped) == (79, 1)
    assert "79 words" in repr(held)


def test_the_unigram_scores_the_same_words() -> None:
    held = efemb.evaluation.held_out_words(fitted(), WORDS)
    shares = np.array([30, 20, 12, 9, 6, 3]) / 80
    plain = np.log(shares)[WORDS.tokens[1:]]  # the first word is alone in its document
    assert_allclose(held.unigram, plain.mean(), rtol=1e-6)
    assert f"unigram {held.unigram:.4f}" in repr(held)


def test_a_model_without_context_gains_nothing_over_the_unigram() -> None:
    model = fitted()
    still = Parameters(np.zeros((6, 3)), np.zeros((6, 3)), np.log([30.0, 20, 12, 9, 6, 3]))
    held = efemb.evaluation.held_out_words(replace(model, parameters=still), WORDS)
    assert_allclose(held.log_likelihood, held.unigram, rtol=1e-6)
    assert_allclose(held.gain_error, 0, atol=1e-6)


def test_words_told_from_noise_are_in_proportion_to_noise_times_odds() -> None:
    options = {"family": "bernoulli", "zeros": efemb.NegativeSampling(4, "smoothed")}
    model = fitted(**options)
    counts = WORDS.vocabulary.counts
    assert counts is not None
    plain = log_probabilities(model, 0.75 * np.log(counts))
    assert_allclose(
        efemb.evaluation.held_out_words(model, WORDS).log_likelihood, np.mean(plain), rtol=1e-6
    )


def test_many_candidates_tend_to_the_exact_score() -> None:
    model = fitted()
    exact = efemb.evaluation.held_out_words(model, WORDS).log_likelihood
    rough = efemb.evaluation.held_out_words(model, WORDS, n_candidates=20_000).log_likelihood
    assert_allclose(rough, exact, atol=0.02)
    assert rough != exact


def test_some_words_are_a_sample_of_all() -> None:
    model = fitted()
    some = efemb.evaluation.held_out_words(model, WORDS, n_words=40, seed=1)
    assert some.n_words + some.n_skipped == 40
    assert some == efemb.evaluation.held_out_words(model, WORDS, n_words=40, seed=1)


def test_what_cannot_be_scored_is_refused() -> None:
    with pytest.raises(efemb.DataError, match="in its window"):
        efemb.evaluation.held_out_words(fitted(), Corpus([0, 1], [0, 1, 2], WORDS.vocabulary))
    trips = efemb.simulation.simulate("p-emb", n_rows=60, n_entities=8, n_components=2, seed=0)
    model = efemb.PoissonEmbedding(2, random_state=0, tol=10.0).fit(trips.data)
    with pytest.raises(efemb.ParameterError, match="Window"):
        efemb.evaluation.held_out_words(model, WORDS)
    with pytest.raises(efemb.ParameterError, match="exponential"):
        efemb.evaluation.held_out_words(fitted(family="bernoulli"), WORDS, n_candidates=5)


def test_the_classical_rival_is_scored_alike() -> None:
    rival = efemb.baselines.ShiftedPPMI(3, window=2, shift=1).fit(WORDS)
    model = rival.fitted()
    assert model.parameters.intercept is not None
    plain = log_probabilities(model, np.zeros(6))
    assert_allclose(
        efemb.evaluation.held_out_words(rival, WORDS).log_likelihood, np.mean(plain), rtol=1e-6
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("positional", [False, True])
def test_a_word_alone_in_its_document_is_skipped_by_skip_gram_too(positional: bool) -> None:
    model = efemb.SkipGram(2, context=Window(2, positional=positional), max_iter=1, random_state=0)
    held = efemb.evaluation.held_out_words(model.fit(WORDS), WORDS)
    assert held.n_skipped == 1
    # each pair of words at most two apart, both ways round: 2 (n - 1) + 2 (n - 2)
    assert held.n_words == sum(2 * (n - 1) + 2 * (n - 2) for n in (29, 50))


@pytest.mark.slow
def test_candidates_may_be_words_that_the_training_text_lacks() -> None:
    """Else they would be in the numerator only."""
    unseen = efemb.Vocabulary("abcdef", counts=[30, 20, 12, 9, 6, 0])
    words = Corpus(WORDS.tokens, WORDS.starts, unseen)
    model = replace(fitted(), vocabulary=unseen)
    exact = efemb.evaluation.held_out_words(model, words).log_likelihood
    rough = efemb.evaluation.held_out_words(model, words, n_candidates=200_000).log_likelihood
    assert_allclose(rough, exact, atol=0.02)


@pytest.mark.parametrize("eigen", [0.0, 0.3, 1.0])
def test_the_rivals_inner_products_have_each_singular_value_once(eigen: float) -> None:
    given = (
        efemb.baselines.ShiftedPPMI(3, window=2, shift=1, eigen=eigen)
        .fit(WORDS)
        .fitted()
        .parameters
    )
    usual = (
        efemb.baselines.ShiftedPPMI(3, window=2, shift=1, eigen=0.5).fit(WORDS).fitted().parameters
    )
    assert_allclose(given.rho @ given.alpha.T, usual.rho @ usual.alpha.T, atol=1e-8)


@pytest.mark.parametrize(
    "zeros", [efemb.NegativeSampling(4, "smoothed"), efemb.NoiseContrastive(4)]
)
def test_conditional_probabilities_of_words_told_from_noise(zeros: efemb.model.zeros.Zeros) -> None:
    family = "categorical" if isinstance(zeros, efemb.NoiseContrastive) else "bernoulli"
    model = fitted(family=family, zeros=zeros)
    found = model.conditional(WORDS)
    assert_allclose(found.sum(axis=1), 1.0)
    held = efemb.evaluation.held_out_words(model, WORDS)
    own = np.log(found[np.arange(1, 80), WORDS.tokens[1:]])  # the first is alone in its document
    assert_allclose(own.mean(), held.log_likelihood, rtol=1e-6)


def test_words_of_a_tree_have_no_log_means() -> None:
    model = efemb.CBOW(2, zeros=efemb.Hierarchical(), max_iter=1, random_state=0).fit(WORDS)
    with pytest.raises(efemb.ParameterError, match="tree"):
        model.log_means(WORDS, [1], [0])
