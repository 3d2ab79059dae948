"""Scores of single words by their definition, and errors that allow for documents."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.word_scores import WordScores, paired_error, score_words, show_gap
from numpy.testing import assert_allclose

import efemb


@pytest.fixture(scope="module")
def text() -> efemb.data.Corpus:
    rng = np.random.default_rng(0)
    documents = [[f"w{code}" for code in rng.integers(0, 6, 7)] for _ in range(30)]
    return efemb.read_text(documents, min_count=1).with_rows({"year": np.arange(30) % 2})


@pytest.mark.parametrize("structure", ["per-entity", efemb.Grouped("year", min_rows=1)])
def test_scores_by_their_definition(text: efemb.data.Corpus, structure: object) -> None:
    model = efemb.BernoulliTextEmbedding(
        3, structure=structure, context=efemb.Window(1), intercept=True, max_iter=2,
        early_stopping=False, random_state=0,
    ).fit(text)  # fmt: skip
    scores = score_words(model, text, text.n_tokens)
    counts = text.counts() ** 0.75
    q, place = counts / counts.sum(), 0
    for d in range(text.n_documents):
        single = model.fitted()
        if structure != "per-entity":
            single = model.of_group(int(text.rows["year"][d]))
        rho, alpha, b = single.parameters.rho, single.parameters.alpha, single.parameters.intercept
        words = text.tokens[text.starts[d] : text.starts[d + 1]]
        for t, word in enumerate(words):
            around = [words[s] for s in (t - 1, t + 1) if 0 <= s < len(words)]
            u = rho @ alpha[around].mean(axis=0) + b
            assert scores.document[place] == d
            p = q * np.exp(u) / (q * np.exp(u)).sum()
            assert_allclose(scores.share[place], np.log(p[word]), rtol=1e-4)
            assert_allclose(scores.positive[place], -np.log(1 + np.exp(-u[word])), rtol=1e-4)
            noise = -5 * (q * np.log(1 + np.exp(u))).sum()
            assert_allclose(scores.negative[place], noise, rtol=1e-4)
            assert_allclose(scores.of("both")[place], scores.positive[place] + noise, rtol=1e-4)
            place += 1
    assert place == len(scores.share)


def test_documents_of_several_texts_stay_apart(text: efemb.data.Corpus) -> None:
    model = efemb.BernoulliTextEmbedding(2, max_iter=1, early_stopping=False, random_state=0)
    part = score_words(model.fit(text), text, 20)
    both = WordScores.join([part, part])
    assert both.text.tolist() == [0] * 20 + [1] * 20
    assert len(np.unique(both.document)) == 2 * len(np.unique(part.document))


def test_errors_allow_for_clusters() -> None:
    values = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    cluster = np.array([0, 0, 0, 1, 1, 1])
    assert paired_error(values, cluster) == pytest.approx(np.sqrt(2 * 9) / 6)
    assert paired_error(values, np.arange(6)) == pytest.approx(np.sqrt(6) / 6)
    assert show_gap(values, cluster) == "+0.0000 ± 0.7071"
