"""Word similarity and analogies against scipy and plain loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from efemb.data.vocabulary import Vocabulary
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.evaluation import analogies, word_similarity
from efemb.evaluation.analogies import _grade
from efemb.evaluation.words import spearman
from efemb.fitted import LabeledVectors

WORDS = ["king", "queen", "man", "woman", "apple", "pear", "Paris"]
OWN = LabeledVectors(WORDS, np.random.default_rng(1).normal(size=(7, 4)))
PAIRS = [
    ("king", "queen", 9.0),
    ("man", "apple", 1.5),
    ("pear", "apple", 8.0),
    ("man", "king", 5.0),
]


def test_equal_scores_have_no_rank_correlation() -> None:
    for a, b, name in (([1, 1], [1, 2], "scores"), ([1, 2], [1, 1], "similarities")):
        with pytest.raises(DataError, match=f"all {name} are equal"):
            spearman(np.array(a), np.array(b))


def expected(pairs: list[tuple[str, str, float]]) -> float:
    from scipy.stats import spearmanr

    cosines = [
        OWN[a] @ OWN[b] / np.linalg.norm(OWN[a]) / np.linalg.norm(OWN[b]) for a, b, _ in pairs
    ]
    return float(spearmanr(cosines, [score for _, _, score in pairs]).statistic)


LINES = [f"{a}\t{b}\t{score}" for a, b, score in PAIRS]


@pytest.mark.parametrize(
    "content",
    [
        "\n".join(LINES),
        "\n".join(LINES).replace("\t", ","),
        "\n".join(LINES).replace("\t", ";"),
        "\n".join(LINES).replace("\t", "   "),
        "\r\n".join(["# a comment", "", "Word 1\tWord 2\tHuman (mean)", *LINES, ""]),
        '"Word 1","Word 2",score\n' + "\n".join(LINES).replace("\t", ","),
        "\ufeff" + "\n".join(LINES),
        "word1\tword2\tPOS\tSimLex999\tother\n"
        + "\n".join(f"{a}\t{b}\tN\t{score}\t0" for a, b, score in PAIRS),
    ],
)
def test_formats_of_files(content: str, tmp_path: Path) -> None:
    path = tmp_path / "pairs.txt"
    path.write_bytes(content.encode())
    found = word_similarity(OWN, path)
    assert found.spearman == pytest.approx(expected(PAIRS))
    assert (found.n_pairs, found.n_missing) == (4, 0)
    assert found.pairs["first"].tolist() == [a for a, _, _ in PAIRS]
    assert found.pairs["score"].tolist() == [score for _, _, score in PAIRS]


def test_lists_frames_and_columns(tmp_path: Path) -> None:
    first, second, score = (list(side) for side in zip(*PAIRS, strict=True))
    columns = {"a": first, "b": second, "noise": [1.0, 1.0, 2.0, 3.0], "mean": score}
    value = pytest.approx(expected(PAIRS))
    assert word_similarity(OWN, PAIRS).spearman == value
    assert word_similarity(OWN, iter(PAIRS)).spearman == value
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        assert word_similarity(OWN, frame, column="mean").spearman == value
        assert word_similarity(OWN, frame, column=3).spearman == value
        assert word_similarity(OWN, frame).spearman != value
    pd.DataFrame(columns).to_csv(tmp_path / "p.csv", index=False)
    assert word_similarity(OWN, tmp_path / "p.csv", column="mean").spearman == value
    simlex = pd.DataFrame(columns).rename(columns={"mean": "SimLex999"})
    assert word_similarity(OWN, simlex).spearman == value


def test_missing_pairs_are_left_out_or_zero() -> None:
    from scipy.stats import spearmanr

    more = [*PAIRS, ("king", "zzz", 2.0), ("yyy", "zzz", 3.0)]
    skipped = word_similarity(OWN, more)
    assert (skipped.n_pairs, skipped.n_missing) == (4, 2)
    assert skipped.spearman == pytest.approx(expected(PAIRS))
    assert np.isnan(skipped.pairs["similarity"]).tolist() == [False] * 4 + [True] * 2
    zero = word_similarity(OWN, more, missing="zero")
    assert (zero.n_pairs, zero.n_missing) == (6, 2)
    cosines = [*skipped.pairs["similarity"][:4], 0.0, 0.0]
    oracle = spearmanr(cosines, [score for _, _, score in more]).statistic
    assert zero.spearman == pytest.approx(oracle)


def test_words_and_themselves_are_ties() -> None:
    same = [(word, word, float(place)) for place, word in enumerate(WORDS)]
    with pytest.raises(DataError, match="similarities are equal"):
        word_similarity(OWN, same)


def test_case_is_folded_only_where_needed() -> None:
    vectors = LabeledVectors(["apple", "Apple", "rome"], np.eye(3))
    pairs = [("Apple", "apple", 1.0), ("ROME", "rome", 2.0), ("APPLE", "apple", 3.0)]
    found = word_similarity(vectors, pairs)
    assert found.n_missing == 0
    assert found.pairs["similarity"].tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("source", "options", "error", "words"),
    [
        ([], {}, DataError, "any pairs"),
        ([("king", "queen")], {}, DataError, "row 0 must be"),
        ([("king", "queen", "high")], {}, DataError, "row 0: the score"),
        ([("king", "queen", float("nan"))], {}, DataError, "finite"),
        (["king queen 3"], {}, DataError, "row 0 must be"),
        ([("x", "y", 1.0)], {}, DataError, "none of the 1 pairs"),
        ([("king", "queen", 1.0)], {}, DataError, "only one"),
        ([("king", "queen", 1.0), ("man", "pear", 1.0)], {}, DataError, "all scores are equal"),
        ([("king", "king", 1.0), ("man", "man", 2.0)], {}, DataError, "all similarities are"),
        (PAIRS, {"missing": "drop"}, ParameterError, "choices: skip, zero"),
        (PAIRS, {"column": 1.5}, InputTypeError, "column"),
        (None, {}, InputTypeError, "NoneType"),
        ({"king": 1}, {}, InputTypeError, "dict"),
        (7, {}, InputTypeError, "int"),
    ],
)
def test_bad_pairs(source: Any, options: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        word_similarity(OWN, source, **options)


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("king\tqueen\t9\nman\tpear\n", {}, "line 2"),
        ("king\tqueen\t9\nman\tpear\thigh\n", {}, "line 2: the score must be"),
        ('king,queen,9\n"man,pear,3\nking,man,2\n', {}, "line 2"),
        ("king,queen,9\n" + "x" * 200_000 + ",y,1\n", {}, "line 2 cannot be split"),
        ("# only\n\n# comments\n", {}, "only blank lines or comments"),
        ("king queen\n", {}, "first line has 2 fields"),
        ("a,b,mean\nking,queen,9\n", {"column": "maen"}, "did you mean 'mean'"),
        ("king,queen,9\n", {"column": 0}, "hold the words"),
        ("king,queen,9\n", {"column": 5}, "column 6"),
        ("a,b,mean\n", {}, "any pairs"),
    ],
)
def test_bad_files(content: str, options: Any, words: str, tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text(content)
    with pytest.raises(DataError, match=words):
        word_similarity(OWN, tmp_path / "p.txt", **options)


def test_bad_bytes_and_names(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_bytes(b"king\tqueen\t9\nm\xe4n\tpear\t3\n")
    with pytest.raises(DataError, match="line 2"):
        word_similarity(OWN, tmp_path / "p.txt")
    with pytest.raises(DataError, match=r"did you mean 'p.txt'"):
        analogies(OWN, tmp_path / "q.txt")
    for evaluate in (word_similarity, analogies):
        with pytest.raises(InputTypeError, match="LabeledVectors"):
            evaluate({"a": [1]}, PAIRS)


# -- analogies ----------------------------------------------------------------------------------


def by_loop(own: LabeledVectors, question: tuple[str, ...], method: str) -> str:
    """The best word, one candidate at a time."""
    unit = {w: own[w] / np.linalg.norm(own[w]) for w in own}
    a, b, c, _ = (unit[w] for w in question)
    best, top = "", -np.inf
    for word, vector in unit.items():
        if word in question[:3]:
            continue
        near = [(1 + vector @ one) / 2 for one in (a, b, c)]
        score = vector @ (b - a + c) if method == "add" else near[1] * near[2] / (near[0] + 1e-3)
        if score > top:
            best, top = word, score
    return best


@pytest.mark.parametrize("method", ["add", "mul"])
@pytest.mark.parametrize("block", [1, 100, 1 << 24])
def test_analogies_are_the_loop(
    method: Any, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_grade.__globals__, "BLOCK", block)
    rng = np.random.default_rng(5)
    words = [f"w{i}" for i in range(12)]
    own = LabeledVectors(words, rng.normal(size=(12, 3)))
    questions = [tuple(rng.choice(words, 4, replace=False)) for _ in range(120)]
    right = [by_loop(own, one, method) == one[3] for one in questions]
    assert 3 < sum(right) < 60
    path = tmp_path / "q.txt"
    lines = [": first", *map(" ".join, questions[:50]), "x y w1 w2", "", ": second"]
    path.write_text("\n".join([*lines, *map(" ".join, questions[50:])]))
    found = analogies(own, path, method=method)
    assert found["section"].tolist() == ["first", "second", "total"]
    assert found["correct"].tolist() == [sum(right[:50]), sum(right[50:]), sum(right)]
    assert found["n"].tolist() == [50, 70, 120]
    assert found["missing"].tolist() == [1, 0, 1]
    np.testing.assert_allclose(found["accuracy"], found["correct"] / found["n"])


def test_sources_of_questions() -> None:
    own = LabeledVectors(["a", "b", "c", "d"], [[1, 0], [1, 1], [0, 1], [0.1, 2]])
    assert analogies(own, [("a", "b", "c", "d")])["section"].tolist() == ["questions", "total"]
    found = analogies(own, {"one": [("a", "b", "c", "d")], "none": [("a", "b", "c", "z")]})
    assert found["correct"].tolist() == [1, 0, 1]
    assert found["missing"].tolist() == [0, 1, 1]
    assert np.isnan(found["accuracy"]).tolist() == [False, True, False]
    assert analogies(own, [("a", "b", "c", "d")], progress=True)["n"].tolist() == [1, 1]


def test_query_words_never_answer_and_ties_are_wrong() -> None:
    same = LabeledVectors(["a", "b", "c", "d", "e"], np.ones((5, 2)))
    assert analogies(same, [("a", "b", "c", "d")])[-1]["correct"] == 0
    zero = LabeledVectors(["a", "b", "c", "d", "e"], np.zeros((5, 2)))
    for method in ("add", "mul"):
        assert analogies(zero, [("a", "b", "c", "d")], method=method)[-1]["correct"] == 0  # type: ignore[arg-type]
    only = LabeledVectors(["a", "b", "c"], np.eye(3))
    assert analogies(only, [("a", "b", "c", "c")])[-1]["correct"] == 0


def test_epsilon_keeps_the_opposite_of_a_from_winning() -> None:
    # (1 + cos(a, x)) / 2 is 0 for the last label: without epsilon its score would be infinite.
    own = LabeledVectors(list("abcdx"), [[1, 0], [1, 0.1], [1, 0.2], [0.5, 1], [-1, 0]])
    assert analogies(own, [("a", "b", "c", "d")], method="mul")[-1]["correct"] == 1


def test_forms_of_one_word_count_as_one() -> None:
    vectors = [[1, 0], [1, 1], [0, 1], [0, 1.01], [0.1, 2], [0.1, 2.001], [-1, -1]]
    own = LabeledVectors(["a", "b", "c", "C", "d", "D", "z"], vectors)
    for question in (("a", "b", "c", "d"), ("A", "B", "C", "D"), ("a", "b", "c", "D")):
        assert analogies(own, [question])[-1]["correct"] == 1


def test_restrict_uses_the_most_frequent() -> None:
    vectors = [[1, 0], [1, 1], [0, 1], [0.1, 2], [0.01, 1.01]]
    words = Vocabulary(["a", "b", "c", "d", "near"], counts=[9, 8, 7, 6, 1])
    own = LabeledVectors(words, [*vectors[:3], [0.9, 2], [0.01, 1.0]])
    question = [("a", "b", "c", "d")]
    assert analogies(own, question)[-1]["correct"] == 0
    assert analogies(own, question, restrict=4)[-1]["correct"] == 1
    assert analogies(own, question, restrict=3)[-1]["missing"] == 1


@pytest.mark.parametrize(
    ("source", "options", "error", "words"),
    [
        ([], {}, DataError, "any questions"),
        ({"s": []}, {}, DataError, "any questions"),
        ([("a", "b", "c")], {}, DataError, "question 0 must be"),
        ({"s": ["a b c d"]}, {}, DataError, "s, question 0"),
        (None, {}, InputTypeError, "NoneType"),
        ([("a", "b", "c", "d")], {"method": "sub"}, ParameterError, "choices: add, mul"),
        ([("a", "b", "c", "d")], {"restrict": 0}, ParameterError, ">= 1"),
    ],
)
def test_bad_questions(source: Any, options: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        analogies(OWN, source, **options)


def test_bad_question_files(tmp_path: Path) -> None:
    path = tmp_path / "q.txt"
    path.write_text(": s\na b c d\na b c\n")
    with pytest.raises(DataError, match="line 3: a question has four words, got 3"):
        analogies(OWN, path)
    path.write_text(": s\n")
    with pytest.raises(DataError, match="any questions"):
        analogies(OWN, path)
