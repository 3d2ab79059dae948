"""LabeledVectors: every query against the loop that defines it."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from efemb.data.vocabulary import Vocabulary
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.fitted import LabeledVectors, nearest

WORDS = [f"w{i}" for i in range(30)]
DRAWN = np.random.default_rng(3).normal(size=(30, 6))


def vectors(dtype: str = "float64") -> LabeledVectors:
    return LabeledVectors(WORDS, DRAWN.astype(dtype))


def cosine(a: Any, b: Any) -> float:
    """The definition, in pure Python."""
    product = math.fsum(float(x) * float(y) for x, y in zip(a, b, strict=True))
    lengths = [math.sqrt(math.fsum(float(x) ** 2 for x in side)) for side in (a, b)]
    return product / (lengths[0] * lengths[1]) if all(lengths) else 0.0


def ranked(scores: dict[str, float], n: int) -> list[str]:
    return sorted(scores, key=lambda word: -scores[word])[:n]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_similar_is_the_sorted_list_of_cosines(dtype: str) -> None:
    own = vectors(dtype)
    for word in WORDS:
        scores = {w: cosine(own[word], own[w]) for w in WORDS if w != word}
        found = own.similar(word, n=7)
        assert found["label"].tolist() == ranked(scores, 7)
        expected = [scores[w] for w in found["label"]]
        np.testing.assert_allclose(found["similarity"], expected, atol=1e-6)


def test_batch_equals_single_queries_in_any_block(monkeypatch: pytest.MonkeyPatch) -> None:
    own = vectors()
    single = {word: own.similar(word, n=4)["label"].tolist() for word in WORDS}
    for block in (1, 95, 1 << 11, 1 << 20):
        monkeypatch.setattr(nearest, "CACHED", block)
        found = own.similar(WORDS, n=4)
        assert found.columns == ["query", "label", "similarity"]
        assert found["query"].tolist() == [word for word in WORDS for _ in range(4)]
        assert found["label"].tolist() == [label for word in WORDS for label in single[word]]


def test_vector_queries() -> None:
    own = vectors("float32")
    by_label = own.similar("w3", n=5)
    by_vector = own.similar(own["w3"] * 100, n=6)
    assert by_vector["label"].tolist() == ["w3", *by_label["label"]]
    assert own.similar(own["w3"].tolist(), n=6)["label"].tolist() == by_vector["label"].tolist()
    several = own.similar(own[["w3", "w4"]], n=1)
    assert several["query"].tolist() == [0, 1]
    assert several["label"].tolist() == ["w3", "w4"]


def test_exclude_and_too_large_n() -> None:
    own = vectors()
    best = own.similar("w0", n=2)["label"].tolist()
    assert own.similar("w0", n=1, exclude=best[0])["label"].tolist() == [best[1]]
    rest = own.similar("w0", n=10_000, exclude=best)
    assert len(rest) == 27
    assert not {"w0", *best} & set(rest["label"])
    assert len(own.similar("w0", exclude=WORDS)) == 0


def test_counts_are_shown_and_ties_keep_the_order() -> None:
    own = LabeledVectors(Vocabulary("abcd", counts=[9, 7, 5, 3]), [[1, 0], [0, 1], [0, 2], [0, 3]])
    found = own.similar("a", n=2)
    assert found["label"].tolist() == ["b", "c"]
    assert found["count"].tolist() == [7, 5]


@given(
    arrays(np.float32, (5, 3), elements=st.floats(-(2.0**100), 2.0**100, width=32)),
    st.sampled_from([1e-300, 1e-30, 1.0, 1e30, 1e300]),
)
def test_cosines_are_finite_and_do_not_depend_on_length(values: Any, scale: float) -> None:
    own = LabeledVectors(list("abcde"), values.astype(np.float64))
    found = own.similar("a", n=4)["similarity"]
    assert np.isfinite(found).all()
    assert (np.abs(found) <= 1).all()
    unit = own.unit_vectors.astype(np.float64) * scale
    again = LabeledVectors(list("abcde"), unit).unit_vectors
    np.testing.assert_allclose(again, own.unit_vectors, atol=1e-12)


def test_zero_vectors_have_cosine_zero() -> None:
    own = LabeledVectors(list("abc"), [[0, 0], [1, 1], [-1, 2]])
    assert own.similarity("a", "b") == 0
    assert own.similar("a")["similarity"].tolist() == [0, 0]
    assert own.similar(np.zeros(2))["similarity"].tolist() == [0, 0, 0]
    assert np.isfinite(own.analogy("a", "b", method="mul")["score"]).all()
    assert own.analogy(["b"], ["b"])["similarity"].tolist() == [0, 0]


def test_similarity_is_the_cosine() -> None:
    own = vectors("float32")
    assert own.similarity("w1", "w2") == pytest.approx(cosine(own["w1"], own["w2"]), abs=1e-12)
    assert own.similarity("w1", "w1") == pytest.approx(1.0)


def test_analogy_add_and_mul_are_their_formulas() -> None:
    own = vectors()
    plus, minus = ["w1", "w2"], ["w3"]
    unit = {w: own[w] / np.linalg.norm(own[w]) for w in WORDS}
    query = unit["w1"] + unit["w2"] - unit["w3"]
    rest = [w for w in WORDS if w not in (*plus, *minus)]
    add = {w: cosine(own[w], query) for w in rest}
    mul = {}
    for w in rest:
        near = [(1 + cosine(own[w], own[one])) / 2 for one in (*plus, *minus)]
        mul[w] = near[0] * near[1] / (near[2] + 0.001)
    found = own.analogy(plus, minus, n=5)
    assert found["label"].tolist() == ranked(add, 5)
    np.testing.assert_allclose(found["similarity"], [add[w] for w in found["label"]])
    found = own.analogy(plus, minus, n=5, method="mul")
    assert found["label"].tolist() == ranked(mul, 5)
    np.testing.assert_allclose(found["score"], [mul[w] for w in found["label"]])


def test_doesnt_match() -> None:
    own = LabeledVectors(["cat", "dog", "cow", "car"], [[1, 0.1], [5, 0], [1, -0.1], [0, 1]])
    assert own.doesnt_match(["cat", "dog", "car", "cow"]) == "car"
    assert own.doesnt_match(["cat", "xyz", "dog", "car"], unknown="skip") == "car"
    with pytest.raises(DataError, match="at least 3 different"):
        own.doesnt_match(["cat", "dog", "dog"])


def test_unknown_labels() -> None:
    own = LabeledVectors(["bread", "milk", "beer"], np.eye(3))
    for ask in (own.similar, own.analogy, lambda w: own.similarity("milk", w), own.__getitem__):
        with pytest.raises(DataError, match=r"'bred'.*did you mean 'bread'"):
            ask("bred")
    assert set(own.similar(["bred", "milk"], unknown="skip")["query"]) == {"milk"}
    assert len(own.similar("milk", exclude=["zzz"], unknown="skip")) == 2
    assert len(own.analogy(["milk", "zzz"], ["yyy"], unknown="skip")) == 2
    with pytest.raises(DataError, match="none of the labels is known"):
        own.similar(["bred", "mlk"], unknown="skip")
    with pytest.raises(DataError, match="no label was given"):
        own.similar([])


def test_lookup() -> None:
    own = LabeledVectors(["a", 7], np.array([[1, 2], [3, 4]], dtype=np.float32))
    assert own.vectors.dtype == np.float32
    assert own["a"].tolist() == [1, 2]
    assert own[["a", 7]].tolist() == [[1, 2], [3, 4]]
    assert own["7"].tolist() == [3, 4]
    assert "a" in own
    assert "b" not in own
    assert len(own) == 2
    assert list(own) == ["a", 7]
    assert own.n_components == 2
    assert repr(own) == "LabeledVectors(2 labels x 2, float32: 'a', 7)"


def test_most_frequent() -> None:
    counted = LabeledVectors(Vocabulary("abc", counts=[1, 5, 5]), np.eye(3))
    assert list(counted.most_frequent(2)) == ["b", "c"]
    assert counted.most_frequent(2)["c"].tolist() == [0, 0, 1]
    assert list(LabeledVectors(list("abc"), np.eye(3)).most_frequent(2)) == ["a", "b"]
    assert len(counted.most_frequent(99)) == 3


def test_immutable_and_picklable() -> None:
    values = np.eye(2)
    own = LabeledVectors(list("ab"), values)
    values[0, 0] = 9
    assert own["a"].tolist() == [1, 0]
    for array in (own.vectors, own.unit_vectors, own["a"]):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(AttributeError, match="immutable"):
        own.vectors = values  # type: ignore[misc]
    again = pickle.loads(pickle.dumps(own))
    assert again.vocabulary == own.vocabulary
    assert np.array_equal(again.vectors, own.vectors)


@pytest.mark.parametrize(
    ("labels", "values", "error", "words"),
    [
        (["a", "b"], np.eye(3), DataError, "2 labels, but 3 vectors"),
        (["a", "a"], np.eye(2), DataError, "more than once"),
        (["a", None], np.eye(2), DataError, "missing"),
        ([], np.empty((0, 2)), DataError, "no vector"),
        (["a", "b"], np.empty((2, 0)), DataError, "K >= 1"),
        (["a"], [1.0, 2.0], DataError, "shape"),
        (["a", "b"], [[1, 2], [np.nan, 0]], DataError, "vector of 'b' holds NaN"),
        (["a"], [[np.inf]], DataError, "vector of 'a'"),
        (["a"], [["x"]], InputTypeError, "numbers"),
        ("ab", np.eye(2), InputTypeError, "labels must be"),
        (None, np.eye(2), InputTypeError, "labels must be"),
    ],
)
def test_bad_vectors(labels: Any, values: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        LabeledVectors(labels, values)


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda v: v.similar("w1", n=0), ParameterError, ">= 1"),
        (lambda v: v.similar("w1", n=2.5), InputTypeError, "integer"),
        (lambda v: v.similar("w1", n=True), InputTypeError, "integer"),
        (lambda v: v.similar("w1", unknown="ignore"), ParameterError, "choices: error, skip"),
        (lambda v: v.similar(np.ones(5)), DataError, "needs 6 numbers"),
        (lambda v: v.similar(np.full(6, np.nan)), DataError, "NaN"),
        (lambda v: v.similar(np.empty((0, 6))), DataError, "needs 6 numbers"),
        (lambda v: v.similar(None), DataError, "unknown label None"),
        (lambda v: v.analogy([]), DataError, "no label was given"),
        (lambda v: v.analogy("w1", method="div"), ParameterError, "choices: add, mul"),
        (lambda v: v.most_frequent(0), ParameterError, ">= 1"),
    ],
)
def test_bad_questions(ask: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ask(vectors())


def test_vectors_as_a_frame() -> None:
    frame = vectors().to_pandas()
    assert frame.index.tolist() == list(vectors())
    np.testing.assert_array_equal(frame.to_numpy(), vectors().vectors)
