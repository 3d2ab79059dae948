"""ShiftedPPMI against its formula, written as loops over pairs of tokens."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from efemb.baselines import ShiftedPPMI, sppmi
from efemb.data.corpus import Corpus
from efemb.errors import DataError


def corpus(documents: list[list[int]], size: int) -> Corpus:
    starts = np.cumsum([0, *map(len, documents)])
    tokens = np.array([word for document in documents for word in document], dtype=np.int32)
    return Corpus(tokens, starts, [f"w{i}" for i in range(size)])


def pairs_by_loop(documents: list[list[int]], size: int, window: int) -> Any:
    counts = np.zeros((size, size))
    for document in documents:
        for i, word in enumerate(document):
            for j, other in enumerate(document):
                if i != j and abs(i - j) <= window:
                    counts[word, other] += 1
    return counts


def ppmi_by_loop(counts: Any, shift: float, power: float) -> Any:
    size, total = len(counts), counts.sum()
    smooth = [counts[:, c].sum() ** power if counts[:, c].sum() else 0.0 for c in range(size)]
    found = np.zeros((size, size))
    for w in range(size):
        for c in range(size):
            if counts[w, c]:
                joint, word = counts[w, c] / total, counts[w].sum() / total
                pmi = math.log(joint / (word * smooth[c] / sum(smooth)))
                found[w, c] = max(0.0, pmi - math.log(shift))
    return found


def drawn(n_documents: int, size: int, seed: int = 0) -> list[list[int]]:
    """Documents of two topics, so that words have something to say."""
    rng = np.random.default_rng(seed)
    half = size // 2
    return [
        (rng.integers(0, half, size=rng.integers(2, 12)) + half * (i % 2)).tolist()
        for i in range(n_documents)
    ]


DOCUMENTS = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=8), min_size=1, max_size=6)


@given(DOCUMENTS, st.integers(1, 9), st.sampled_from([1, 3, 7, 1 << 23]))
def test_cooccurrences_are_the_loop_in_any_chunk(
    documents: list[list[int]], window: int, pairs: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sppmi, "PAIRS", pairs)
        found = sppmi.count_cooccurrences(corpus(documents, 6), window, lambda _: None)
    assert np.array_equal(found.toarray(), pairs_by_loop(documents, 6, window))


@pytest.mark.parametrize(("shift", "power"), [(1, 1.0), (5, 0.75), (2.5, 0.0), (0.5, 0.75)])
def test_matrix_is_the_formula(shift: float, power: float) -> None:
    from scipy.sparse import csr_array

    counts = pairs_by_loop(drawn(40, 20), 22, 3)  # two words never occur
    found = sppmi.shifted_ppmi(csr_array(counts), shift, power)
    expected = ppmi_by_loop(counts, shift, power)
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-12)
    assert (found.data > 0).all()


@pytest.mark.parametrize("eigen", [0.0, 0.5, 1.0])
def test_vectors_are_the_singular_vectors(eigen: float) -> None:
    documents = drawn(60, 20)
    model = ShiftedPPMI(4, window=2, shift=1, eigen=eigen).fit(corpus(documents, 20))
    matrix = ppmi_by_loop(pairs_by_loop(documents, 20, 2), 1, 0.75)
    left, values, right = np.linalg.svd(matrix)
    np.testing.assert_allclose(model.singular_values_, values[:4])
    # Signs are free: compare what does not depend on them.
    for k in range(4):
        expected = np.outer(left[:, k], right[k]) * values[k] ** (2 * eigen)
        found = np.outer(model.embedding_[:, k], model.context_[:, k])
        np.testing.assert_allclose(found, expected, atol=1e-8)
    peaks = np.abs(model.embedding_).argmax(axis=0)
    assert (model.embedding_[peaks, range(4)] > 0).all()


def test_iteration_finds_what_the_dense_decomposition_finds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = corpus(drawn(300, 60), 60)
    dense = ShiftedPPMI(5, shift=1).fit(text)
    monkeypatch.setattr(sppmi, "_SMALL", 10)
    sparse = ShiftedPPMI(5, shift=1).fit(text)
    np.testing.assert_allclose(sparse.singular_values_, dense.singular_values_)
    np.testing.assert_allclose(sparse.embedding_, dense.embedding_, atol=1e-8)
    np.testing.assert_allclose(sparse.context_, dense.context_, atol=1e-8)
    again = ShiftedPPMI(5, shift=1).fit(text)
    assert np.array_equal(again.embedding_, sparse.embedding_)
    for seed in (3, np.random.default_rng(4), np.random.RandomState(5)):
        other = ShiftedPPMI(5, shift=1, random_state=seed).fit(text)
        np.testing.assert_allclose(other.embedding_, sparse.embedding_, atol=1e-8)


@pytest.mark.parametrize("small", [10, 512])
def test_too_low_a_rank_gives_zeros(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sppmi, "_SMALL", small)
    documents = [[0, 1], [2, 3]] * 5  # rank 4, among 40 words
    model = ShiftedPPMI(8, shift=1, eigen=0.0).fit(corpus(documents, 40))
    assert (model.singular_values_[:4] > 0).all()
    assert (model.singular_values_[4:] == 0).all()
    assert np.isfinite(model.embedding_).all()
    assert (model.embedding_[:, 4:] == 0).all()


def test_topics_are_told_apart() -> None:
    documents = drawn(400, 20)
    vectors = ShiftedPPMI(4, shift=1).fit(corpus(documents, 20)).vectors()
    assert {int(w[1:]) < 10 for w in vectors.similar("w0", n=9)["label"]} == {True}


def test_conventions() -> None:
    model = ShiftedPPMI(3, window=2)
    assert model.get_params() == {
        "n_components": 3,
        "window": 2,
        "shift": 5.0,
        "power": 0.75,
        "eigen": 0.5,
        "random_state": None,
        "verbose": 0,
    }
    assert clone(model).set_params(shift=1).shift == 1
    with pytest.raises(NotFittedError):
        model.vectors()
    text = corpus(drawn(50, 10), 10)
    fitted = model.set_params(shift=1, verbose=1).fit(text)
    assert fitted is model
    assert model.vocabulary_ == text.vocabulary
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.vectors().vectors, model.embedding_)


def test_reads_what_is_not_a_corpus() -> None:
    documents = [["a", "b"], ["c", "d"]] * 6
    model = ShiftedPPMI(2, shift=1).fit(documents)
    assert set(model.vocabulary_) == {"a", "b", "c", "d"}


def test_text_without_contexts() -> None:
    with pytest.raises(DataError, match="one word only"):
        ShiftedPPMI(1).fit(corpus([[0], [1], [2]], 3))


def test_a_window_beyond_every_document_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    counted = sppmi._count_pairs
    monkeypatch.setattr(sppmi, "_count_pairs", lambda *args: calls.append(args) or counted(*args))
    text = corpus([[0, 1, 2]] * 50, 3)
    wide, narrow = (sppmi.count_cooccurrences(text, n, lambda _: None) for n in (10**9, 2))
    assert (wide != narrow).nnz == 0
    assert len(calls) == 2


def test_counts_are_those_of_the_text_that_was_fitted() -> None:
    plain = Corpus([0, 1, 0, 2] * 5, [0, 20], ["a", "b", "c"])
    fitted = ShiftedPPMI(2, shift=1.0).fit(plain).fitted()
    assert np.allclose(np.exp(fitted.parameters.intercept), [0.5, 0.25, 0.25])
