"""Scores and conditional means equal those of plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.model.huffman import Huffman
from efemb.model.parameters import Parameters
from engine.windows import plain, samples

WINDOW, K = 2, 3
MEANS = {
    "bernoulli": plain.logistic,
    "poisson": math.exp,
    "additive": lambda u: max(u, 1e-6),
    "categorical": math.exp,
}
FAMILIES = {
    "bernoulli": ("bernoulli", "identity"),
    "poisson": ("poisson", "identity"),
    "additive": ("poisson", "log"),
    "categorical": ("categorical", "identity"),
}


def with_parameters(model: Any, text: efemb.Corpus, p: Parameters) -> Any:
    """A fitted estimator at given parameters: a fit that starts there and hardly moves."""
    model.fit(text)
    model.parameters_ = p
    return model


def estimator(family: str, combine: str, **options: Any) -> efemb.Embedding:
    name, link = FAMILIES[family]
    more = {
        "optimizer": efemb.engine.optimizers.Adagrad(1e-9),
        "max_iter": 1,
        "early_stopping": False,
    }
    more = {"prior": None, "n_iter_no_change": 1, "tol": 1e9, **more, **options}
    return efemb.Embedding(K, family=name, link=link, combine=combine, **more)


def point(family: str, positional: bool = False) -> Parameters:
    rng = np.random.default_rng(2)

    def some(*shape: int) -> Any:
        return rng.uniform(0.1, 0.9, shape) if family == "additive" else rng.normal(0, 0.6, shape)

    position = some(2 * WINDOW, K) if positional else None
    return Parameters(some(5, K), some(5, K), some(5), position)


def mean_share(text: efemb.Corpus, p: Parameters, family: str, scale: str, reverse: bool) -> float:
    """Mean of log(m_word / sum of m) over the words that have a context."""
    terms = []
    for case in plain.cases(samples.documents(text), WINDOW, reverse):
        if not case.around:
            continue
        where = plain.Point(p.rho, p.alpha, p.intercept, p.position)
        m = [MEANS[family](u) for u in plain.predictors(case, where, scale, reverse)]
        terms.append(math.log(m[case.word] / sum(m)))
    return sum(terms) / len(terms)


@pytest.mark.filterwarnings("ignore:.*max_iter")
@pytest.mark.parametrize("positional", [False, True], ids=["plain", "positional"])
@pytest.mark.parametrize(
    ("combine", "scale"), [("linear", "none"), ("linear", "items"), ("reverse", "none")]
)
@pytest.mark.parametrize("family", FAMILIES)
def test_score_is_the_mean_log_share(
    family: str, combine: str, scale: str, positional: bool
) -> None:
    text, p = samples.corpus((7, 3, 2, 5, 1)), point(family, positional)
    context = efemb.Window(WINDOW, scale=scale, positional=positional)
    model = with_parameters(estimator(family, combine, context=context), text, p)
    expected = mean_share(text, p, family, scale, combine == "reverse")
    assert_allclose(model.score(text), expected, rtol=1e-9)


@pytest.mark.parametrize("combine", ["linear", "reverse"])
def test_hierarchical_score_is_the_product_along_the_path(combine: str) -> None:
    """With the tree of the training text, whatever text is scored."""
    text, p = samples.corpus((30, 3, 2, 5)), samples.parameters(5, K, True)
    options: dict[str, Any] = {"context": efemb.Window(WINDOW, scale="none"), "combine": combine}
    model = efemb.CBOW(K, zeros=efemb.Hierarchical(), random_state=0, **options)
    model = with_parameters(model, text, p)
    tree, reverse = Huffman.of(text.counts()), combine == "reverse"
    other = samples.corpus((9, 4), seed=8)
    for scored in (text, other):
        terms = []
        for case in plain.cases(samples.documents(scored), WINDOW, reverse):
            u = plain.predictors(case, plain.Point(p.rho, p.alpha, p.intercept), "none", reverse)
            for place in range(tree.starts[case.word], tree.starts[case.word + 1]):
                sign = 1 if tree.turns[place] else -1
                terms.append(math.log(plain.logistic(sign * u[tree.nodes[place]])))
        n = len(plain.cases(samples.documents(scored), WINDOW, reverse))
        assert_allclose(model.score(scored), sum(terms) / n, rtol=1e-9)


@pytest.mark.parametrize("zeros", ["hierarchical", "noise-contrastive"])
def test_scores_survive_storage(zeros: str, tmp_path: Any) -> None:
    text = samples.corpus((30, 3, 2, 5))
    model = efemb.CBOW(
        K, context=efemb.Window(WINDOW, scale="none"), zeros=zeros, random_state=0
    ).fit(text)
    model.save(tmp_path / "model")
    assert_allclose(efemb.load(tmp_path / "model").score(text), model.score(text), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:.*max_iter")
@pytest.mark.parametrize("zeros", ["all", "hierarchical"])
def test_conditional_means_of_words_are_probabilities(zeros: str) -> None:
    text, p = samples.corpus((12, 3, 6)), samples.parameters(5, K, True)
    few: dict[str, Any] = {"max_iter": 1, "early_stopping": False, "random_state": 0}
    model = efemb.CBOW(K, context=efemb.Window(WINDOW, scale="none"), zeros=zeros, **few)
    found = with_parameters(model, text, p).conditional(text)
    assert found.shape == (21, 5)
    assert_allclose(found.sum(axis=1), 1.0, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:.*max_iter")
@pytest.mark.parametrize("family", ["bernoulli", "poisson", "additive"])
def test_conditional_means_of_every_word(family: str) -> None:
    text, p = samples.corpus((12, 3, 6)), point(family)
    model = with_parameters(
        estimator(family, "linear", context=efemb.Window(WINDOW, scale="none")), text, p
    )
    where = plain.Point(p.rho, p.alpha, p.intercept)
    expected = [
        [MEANS[family](u) for u in plain.predictors(case, where, "none", False)]
        for case in plain.cases(samples.documents(text), WINDOW, False)
    ]
    assert_allclose(model.conditional(text), expected, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:.*max_iter")
@pytest.mark.parametrize("scale", ["none", "items"])
@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
def test_reverse_means_of_words_are_by_the_mean_of_what_each_neighbor_says(
    family: str, scale: str
) -> None:
    """As in `predict`."""
    text, p = samples.corpus((12, 3, 1, 6)), point(family)
    context = efemb.Window(WINDOW, scale=scale)
    model = with_parameters(estimator(family, "reverse", context=context), text, p)
    where = plain.Point(p.rho, p.alpha, p.intercept)
    expected = [
        [MEANS[family](u) for u in plain.predictors(case, where, "items", True)]
        for case in plain.cases(samples.documents(text), WINDOW, False)
    ]
    found = model.conditional(text)
    assert_allclose(found, expected, rtol=1e-9)
    words, labels = text.tokens[:5], text.vocabulary.labels
    told = model.fitted().predict([labels[w] for w in words[[0, 1, 3, 4]]], 5)
    for one in told:
        share = found[2, text.vocabulary.index_of(one["label"])] / found[2].sum()
        assert one["probability"] == pytest.approx(share, rel=1e-6)


@pytest.mark.slow
def test_every_document_and_token_has_a_row() -> None:
    """Also those of one word, when the text is read again in the model's words."""
    text = samples.corpus((9, 1, 3, 6))
    model = efemb.CBOW(K, context=efemb.Window(WINDOW, scale="none"), random_state=0).fit(text)
    assert model.transform(text).shape == (4, K)
    assert model.conditional(text).shape == (19, 5)
    expected = [np.sum(model.context_[document], axis=0) for document in samples.documents(text)]
    assert_allclose(model.transform(text), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*max_iter")
@pytest.mark.parametrize("family", ["gaussian", "negative-binomial"])
def test_families_of_rows_are_fitted_to_words_and_scored(family: str) -> None:
    text, context = samples.corpus((30, 30)), efemb.Window(2, scale="none")
    options: dict[str, Any] = {"max_iter": 3, "early_stopping": False, "random_state": 0}
    model = efemb.Embedding(2, context=context, family=family, **options).fit(text)
    assert np.isfinite(model.score(text))


def test_words_unknown_to_the_model_vanish_from_scored_text() -> None:
    documents = [["a", "b", "a", "c", "b", "a"] * 4, ["b", "a", "c"] * 4]
    model = efemb.CBOW(2, context=efemb.Window(2, scale="none"), min_count=1, random_state=0).fit(
        documents
    )
    seen = model.score([["a", "b", "c", "a"]])
    assert_allclose(model.score([["a", "?", "b", "c", "??", "a"]]), seen, rtol=1e-6)
