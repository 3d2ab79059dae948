"""A Corpus holds documents of words as codes; its parts equal those of plain loops."""

from __future__ import annotations

import gc
import itertools
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from efemb.data import Corpus, Vocabulary, tokenstore
from efemb.errors import DataError, InputTypeError, ParameterError

WORDS = Vocabulary(["the", "of", "and", "rose", 7], counts=[9, 8, 7, 2, 1])


def corpus_of(documents: list[list[int]], words: Any = WORDS) -> Corpus:
    starts = [0, *itertools.accumulate(map(len, documents))]
    return Corpus(np.array(list(itertools.chain(*documents)), np.int32), starts, words)


def documents_of(corpus: Corpus) -> list[list[int]]:
    bounds = itertools.pairwise(corpus.starts.tolist())
    return [corpus.tokens[start:end].tolist() for start, end in bounds]


@st.composite
def corpora(draw: st.DrawFn) -> list[list[int]]:
    one = st.lists(st.integers(0, len(WORDS) - 1), max_size=8)
    documents = draw(st.lists(one, min_size=1, max_size=40))
    return [*documents, [0, 1]]


@pytest.fixture(params=["one chunk", "small chunks", "small chunks in a file"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    if request.param != "one chunk":
        shorten_chunks(monkeypatch, 7)
    if request.param == "small chunks in a file":
        monkeypatch.setattr(tokenstore, "LARGE", 10)
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return str(request.param)


def shorten_chunks(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    monkeypatch.setattr(tokenstore, "CHUNK", length)


def test_sizes() -> None:
    corpus = corpus_of([[0, 1, 3], [], [4, 0]])
    assert (corpus.n_documents, len(corpus), corpus.n_tokens, corpus.n_rows) == (3, 3, 5, 5)
    assert (corpus.n_entities, corpus.n_dims) == (5, 1)
    assert corpus.entities is corpus.vocabulary is WORDS
    assert corpus.report == {}
    assert [corpus.document(i) for i in range(-3, 3)] == 2 * [["the", "of", "rose"], [], [7, "the"]]


def test_types_and_copies() -> None:
    tokens = np.array([0, 1, 2], np.int32)
    corpus = Corpus(tokens, [0, 3], WORDS)
    assert corpus.tokens.dtype == np.int32
    assert corpus.starts.dtype == np.int64
    assert np.shares_memory(corpus.tokens, tokens)
    assert tokens.flags.writeable
    assert Corpus(np.array([0, 1], np.uint8), np.array([0, 2], np.uint16), WORDS).n_tokens == 2


def test_immutable() -> None:
    corpus = Corpus([0, 1], [0, 2], WORDS)
    for copy in (corpus, pickle.loads(pickle.dumps(corpus))):
        with pytest.raises(ValueError, match="read-only"):
            copy.tokens[0] = 1
        with pytest.raises(ValueError, match="read-only"):
            copy.starts[0] = 1
        with pytest.raises(AttributeError):
            copy.tokens = np.zeros(2, np.int32)  # type: ignore[misc]


def test_pickle_keeps_everything() -> None:
    corpus = Corpus([0, 1, 4], [0, 2, 3], WORDS, report={"documents_read": 5})
    again = pickle.loads(pickle.dumps(corpus))
    assert documents_of(again) == documents_of(corpus)
    assert (again.vocabulary, again.report) == (WORDS, {"documents_read": 5})
    np.testing.assert_array_equal(again.vocabulary.counts, WORDS.counts)


def test_repr() -> None:
    words = [f"w{i}" for i in range(2300)]
    corpus = Corpus(np.zeros(34_000, np.int32), np.r_[0:1200, 34_000], words)
    assert repr(corpus) == (
        "Corpus(1,200 documents, 34,000 tokens, 2,300 words 'w0', 'w1', 'w2', ...)"
    )


BAD: dict[str, tuple[Any, Any, Any, type[Exception], str]] = {
    "code too large": ([0, 1, 5], [0, 3], WORDS, DataError, "token 2 has the code 5.* 0 to 4"),
    "code huge": (np.array([0, 2**40]), [0, 2], WORDS, DataError, "token 1 has the code 1099511"),
    "negative code": ([0, -1], [0, 2], WORDS, DataError, "token 1 has the code -1"),
    "float tokens": ([0.0, 1.0], [0, 2], WORDS, InputTypeError, "tokens must be whole .*float64"),
    "text tokens": (["the"], [0, 1], WORDS, InputTypeError, "tokens must be whole numbers"),
    "boolean tokens": ([True], [0, 1], WORDS, InputTypeError, "tokens must be whole numbers"),
    "two dimensions": ([[0, 1]], [0, 2], WORDS, DataError, r"one-dimensional.*\(1, 2\)"),
    "no tokens": ([], [0, 0], WORDS, DataError, "no tokens"),
    "no documents": ([0], [0], WORDS, DataError, r"at least the start and the end"),
    "no starts": ([0], [], WORDS, DataError, r"at least the start and the end"),
    "late start": ([0, 1], [1, 2], WORDS, DataError, "from 0 to .* 2, not from 1 to 2"),
    "early end": ([0, 1], [0, 1], WORDS, DataError, "from 0 to .* 2, not from 0 to 1"),
    "decrease": ([0, 1, 2], [0, 2, 1, 3], WORDS, DataError, "document 1 starts at 2 .*next at 1"),
    "outside": ([0, 1], [0, 5, 2], WORDS, DataError, "document 1 starts at 5, outside"),
    "negative start": ([0, 1], [0, -1, 2], WORDS, DataError, "document 1 starts at -1"),
    "float starts": ([0, 1], [0.0, 2.0], WORDS, InputTypeError, "starts must be whole numbers"),
    "no words": ([0], [0, 1], [], DataError, "vocabulary is empty"),
    "one text": ([0], [0, 1], "the", InputTypeError, "not str"),
    "no vocabulary": ([0], [0, 1], None, InputTypeError, "not NoneType"),
    "double word": ([0], [0, 1], ["a", "a"], DataError, "occurs more than once"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parts(name: str) -> None:
    tokens, starts, words, error, message = BAD[name]
    with pytest.raises(error, match=message):
        Corpus(tokens, starts, words)


@given(corpora())
def test_counts(documents: list[list[int]]) -> None:
    flat = list(itertools.chain(*documents))
    counts = corpus_of(documents).counts()
    assert counts.dtype == np.float64
    assert counts.tolist() == [flat.count(code) for code in range(len(WORDS))]


@given(corpora(), st.data())
def test_take(documents: list[list[int]], data: st.DataObject) -> None:
    corpus = corpus_of(documents)
    n = len(documents)
    index = [*data.draw(st.lists(st.integers(-n, n - 1), max_size=10)), n - 1]
    taken = corpus.take(index)
    assert documents_of(taken) == [documents[i] for i in index]
    assert taken.vocabulary == WORDS
    mask = np.array([i % 2 == (n - 1) % 2 for i in range(n)])
    assert documents_of(corpus.take(mask)) == [documents[i] for i in range(n) if mask[i]]
    assert documents_of(corpus.take(slice(None, None, -1))) == documents[::-1]
    assert documents_of(corpus.take(-1)) == documents[-1:]


def test_take_of_neighbors_copies_nothing() -> None:
    corpus = corpus_of([[0, 1], [2], [3, 4]])
    assert np.shares_memory(corpus.take(slice(1, 3)).tokens, corpus.tokens)


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        pytest.param([3], DataError, "index 3 is out of range", id="outside"),
        pytest.param([], DataError, "the selection has no documents", id="empty"),
        pytest.param(slice(0, 0), DataError, "the selection has no documents", id="empty slice"),
        pytest.param([False, False], DataError, "the selection has no documents", id="empty mask"),
        pytest.param([True], DataError, "but there are 2 documents", id="short mask"),
        pytest.param([0.5], InputTypeError, "integers, booleans or a slice", id="float"),
        pytest.param("the", InputTypeError, "integers, booleans or a slice", id="text"),
    ],
)
def test_bad_take(index: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        corpus_of([[0, 1], [2]]).take(index)


def test_bad_document() -> None:
    with pytest.raises(DataError, match="index 2 is out of range: there are 2 documents"):
        corpus_of([[0, 1], [2]]).document(2)
    with pytest.raises(InputTypeError):
        corpus_of([[0, 1], [2]]).document("the")  # type: ignore[arg-type]


@pytest.mark.slow
def test_derived_corpora_in_chunks_and_files(way: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    documents = [rng.integers(0, 5, size=size).tolist() for size in rng.integers(0, 30, size=25)]
    corpus = corpus_of(documents)
    assert documents_of(corpus.take(np.arange(24, -1, -1))) == documents[::-1]
    assert corpus.counts().tolist() == np.bincount(corpus.tokens, minlength=5).tolist()
    kept = corpus.subsampled(0.02, seed=5)
    assert documents_of(kept) == subsampled_by_loop(documents, 0.02, seed=5)
    if way.endswith("file"):
        assert is_mapped(kept.tokens)
    del kept
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def is_mapped(array: Any) -> bool:
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


def subsampled_by_loop(documents: list[list[int]], threshold: float, seed: int) -> list[list[int]]:
    flat = list(itertools.chain(*documents))
    draws = iter(np.random.default_rng(seed).random(len(flat)).tolist())

    def chance(code: int) -> float:
        share = flat.count(code) / len(flat)
        return float(min(1.0, (threshold / share) ** 0.5 + threshold / share))

    return [[code for code in document if next(draws) < chance(code)] for document in documents]


def test_subsampling_keeps_the_expected_share() -> None:
    tokens = np.repeat(np.arange(3, dtype=np.int32), [90_000, 9_000, 1_000])
    kept = Corpus(tokens, [0, 50_000, 100_000], ["a", "b", "c"]).subsampled(0.01)
    share = np.array([0.9, 0.09, 0.01])
    chance = np.minimum(1, np.sqrt(0.01 / share) + 0.01 / share)
    size = np.array([90_000, 9_000, 1_000])
    spread = np.sqrt(size * chance * (1 - chance))
    assert (np.abs(kept.counts() - size * chance) <= 5 * spread).all()
    assert kept.n_documents == 2
    again = Corpus(tokens, [0, 50_000, 100_000], ["a", "b", "c"]).subsampled(0.01)
    np.testing.assert_array_equal(kept.tokens, again.tokens)


@pytest.mark.parametrize("threshold", [0, -1, float("nan"), float("inf"), "1e-3", None])
def test_bad_threshold(threshold: Any) -> None:
    with pytest.raises(ParameterError, match="must be a positive number"):
        corpus_of([[0, 1]]).subsampled(threshold)


def test_subsampling_to_nothing() -> None:
    with pytest.raises(DataError, match="drops every token"):
        corpus_of([[0, 0], [0, 0]]).subsampled(1e-12)
