"""Which tokens a pass sees: frequent words left out, documents apart, long ones cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import efemb
from engine.windows import plain, samples

RARE = 1e-6  # a p-value that no right program meets


def test_frequent_words_are_left_out_by_word2vecs_rule() -> None:
    text = samples.corpus((2000,) * 5, n_words=6)
    threshold = 0.05
    source = samples.streams(text, efemb.NegativeSampling(1), subsample=threshold)
    kept = np.zeros(6)
    for seed in range(3):
        for document in samples.outputs(source, seed).documents:
            kept += np.bincount(document, minlength=6)
    counts = text.counts()
    for word in range(6):
        f = counts[word] / counts.sum()
        chance = min(1.0, (threshold / f) ** 0.5 + threshold / f)
        trial = stats.binomtest(int(kept[word]), 3 * int(counts[word]), chance)
        assert trial.pvalue > RARE


def test_what_is_kept_stays_in_order_and_in_its_document() -> None:
    text = samples.corpus((50, 1, 0, 30, 2), n_words=4)
    found = samples.outputs(samples.streams(text, efemb.NegativeSampling(1), subsample=0.05), 0)
    assert len(found.documents) == 5
    for kept, whole in zip(found.documents, samples.documents(text), strict=True):
        rest = iter(whole)
        assert all(word in rest for word in kept), "not a subsequence"
    assert 0 < sum(map(len, found.documents)) < text.n_tokens


def test_each_pass_leaves_out_others() -> None:
    source = samples.streams(samples.corpus((100,)), efemb.NegativeSampling(1), subsample=0.05)
    assert samples.outputs(source, 0).documents != samples.outputs(source, 1).documents


def test_steps_on_thinned_text_are_those_of_the_thinned_windows() -> None:
    """Windows form after words were left out: they reach further."""
    text, start = samples.corpus((60, 5, 1, 30)), samples.parameters(5, 3, True)
    spec = samples.spec(efemb.Window(2, subsample=0.05, scale="none"), efemb.NegativeSampling(2))
    run = samples.passes(spec, text, start.copy(), efemb.engine.optimizers.SGD(1e-7))
    drawn = samples.drawn(run, 3)
    every = plain.cbow_visits(drawn, samples.tables(spec, start), 2, False, False)
    expected = plain.summed([one for one in every if isinstance(one, plain.Visit)], (5, 3))
    samples.go(run, 3)
    moved = samples.moves(start, run.parameters, 1e-7, False)
    for one, other in zip(moved, expected, strict=True):
        assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("combine", ["linear", "reverse"])
@pytest.mark.parametrize("zeros", ["negative-sampling", "all"])
def test_windows_never_cross_documents(zeros: str, combine: str) -> None:
    """Two documents without a common word: what the one's vectors are is all one to the other.

    The gradient of the summed vectors of the second half's words must not see which words the
    first document holds last.
    """
    words = ["a", "b", "c", "d", "e", "f"]
    start = samples.parameters(6, 3, True)
    apart = [[0, 1, 2, 0, 1, 2], [3, 4, 5, 3]]
    bags = []
    for first in (apart[0], list(reversed(apart[0]))):
        text = efemb.Corpus(first + apart[1], [0, 6, 10], words)
        options: dict[str, Any] = {
            "context": efemb.Window(3, scale="none"),
            "combine": combine,
            "prior": None,
        }
        model = efemb.Embedding(3, family="bernoulli", zeros=zeros, **options)
        _, gradient = model.objective(text, start)
        bags.append((gradient.rho if combine == "reverse" else gradient.alpha)[3:])
    assert_allclose(bags[0], bags[1], rtol=1e-12)
    joined = efemb.Corpus(apart[0] + apart[1], [0, 10], words)
    _, gradient = model.objective(joined, start)
    crossed = (gradient.rho if combine == "reverse" else gradient.alpha)[3:]
    assert np.abs(crossed - bags[0]).max() > 1e-3, "the law must be able to fail"
