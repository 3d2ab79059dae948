"""Parts of a corpus are disjoint, complete and drawn like the rows of a Dataset."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from efemb.data import Corpus, Dataset, Vocabulary
from efemb.errors import DataError, ParameterError

SIZE = 5000


def numbered(lengths: list[int]) -> Corpus:
    """Every token is a different word, which identifies its place."""
    n = sum(lengths)
    return Corpus(np.arange(n), [0, *itertools.accumulate(lengths)], range(n))


def documents_of(corpus: Corpus) -> list[list[int]]:
    bounds = itertools.pairwise(corpus.starts.tolist())
    return [corpus.tokens[start:end].tolist() for start, end in bounds]


@pytest.mark.parametrize("validation", [0.0, 0.1, 3])
@pytest.mark.parametrize("test", [0.05, 0.2, 4])
def test_by_documents_as_dataset(test: float, validation: float) -> None:
    corpus = numbered([3] * 40)
    rows = Dataset(np.arange(40.0)[:, None]).split(test=test, validation=validation, seed=4)
    parts = corpus.split(test=test, validation=validation, seed=4)
    assert len(parts) == len(rows)
    whole = documents_of(corpus)
    for part, chosen in zip(parts, rows, strict=True):
        assert documents_of(part) == [whole[int(i)] for i in chosen.values[:, 0]]
        assert part.vocabulary == corpus.vocabulary


@given(
    st.lists(st.integers(0, 700), min_size=1, max_size=19).filter(lambda sizes: sum(sizes) >= 80),
    st.floats(0.05, 0.4),
    st.sampled_from([0.0, 0.1]),
    st.integers(0, 5),
)
@example([162, 239], 0.05, 0.0, 0)
@example([39] * 19, 0.05, 0.0, 0)
def test_stretches_of_few_documents(
    lengths: list[int], test: float, validation: float, seed: int
) -> None:
    corpus = numbered(lengths)
    parts = corpus.split(test=test, validation=validation, seed=seed)
    assert len(parts) == (3 if validation else 2)
    held = [set(part.tokens.tolist()) for part in parts]
    assert sum(map(len, held)) == corpus.n_tokens
    assert set.union(*held) == set(range(corpus.n_tokens))
    document_of = np.repeat(np.arange(len(lengths)), lengths)
    for part, own in zip(parts, held, strict=True):
        for document in documents_of(part):
            # One stretch of one document, as long as it can be.
            assert document == list(range(document[0], document[-1] + 1))
            assert len(set(document_of[document])) == 1
            after = document[-1] + 1
            if after in own:
                assert document_of[after] != document_of[document[-1]]


@pytest.mark.parametrize("n_documents", [1, 19])
def test_stretches_have_the_asked_size(n_documents: int) -> None:
    corpus = numbered([19 * SIZE // n_documents] * n_documents)
    train, validation, test = corpus.split(test=0.1, validation=0.05)
    # Shares are rounded down to whole stretches, here of up to 500 tokens.
    assert test.n_tokens == pytest.approx(0.1 * corpus.n_tokens, abs=500)
    assert validation.n_tokens == pytest.approx(0.05 * corpus.n_tokens, abs=500)
    assert min(np.diff(test.starts)) >= 475
    assert train.n_documents >= n_documents


def test_whole_numbers_are_documents_however_few() -> None:
    corpus = numbered([50, 60, 70])
    train, test = corpus.split(test=1, seed=2)
    assert len(test) == 1
    assert sorted(documents_of(train) + documents_of(test)) == documents_of(corpus)


def test_seed() -> None:
    corpus = numbered([1000])
    first, second = (corpus.split(seed=seed)[1].tokens.tolist() for seed in (0, 1))
    assert first != second
    assert first == corpus.split(seed=0)[1].tokens.tolist()


def test_impossible_parts() -> None:
    with pytest.raises(DataError, match=r"of 30 documents give 30 for training.*every part"):
        numbered([2] * 30).split(test=0.01)
    with pytest.raises(DataError, match="of 2 stretches of text give"):
        numbered([4]).split(test=0.05)
    with pytest.raises(DataError, match="of 3 documents give"):
        numbered([4, 4, 4]).split(test=3)
    with pytest.raises(ParameterError, match=r"test=1\.5 must be a fraction"):
        numbered([2] * 30).split(test=1.5)


@pytest.mark.parametrize("n_documents", [4, 40])
def test_parts_have_counts_of_their_own(n_documents: int) -> None:
    """With counts of the whole text, the noise and the tree would depend on test documents."""
    tokens = np.random.default_rng(0).integers(0, 5, n_documents * 100)
    words = Vocabulary(list("abcde"), counts=np.bincount(tokens, minlength=5))
    corpus = Corpus(tokens, np.arange(n_documents + 1) * 100, words)
    parts = [*corpus.split(test=0.25), corpus.take([1, 0]), corpus[1:3]]
    for part in parts:
        assert part.vocabulary == words
        assert part.vocabulary.counts is not None
        assert part.vocabulary.counts.tolist() == part.counts().tolist()
    assert sum(part.n_tokens for part in parts[:2]) == corpus.n_tokens
