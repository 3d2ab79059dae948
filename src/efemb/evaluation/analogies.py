"""Analogies: a is to b as c is to ...?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Bools, Floats, Ints
from efemb.data.readers.input_file import existing_file
from efemb.errors import DataError, InputTypeError, check_integer, check_known
from efemb.evaluation.word_lists import NOT_FOUND, WordLookup, read_lines
from efemb.fitted import EPSILON, LabeledVectors, check_labeled
from efemb.fitted.nearest import BLOCK
from efemb.table import Table

Sections = dict[str, list[list[Any]]]


def analogies(
    vectors: LabeledVectors,
    source: Any,
    *,
    method: Literal["add", "mul"] = "add",
    restrict: int | None = None,
    progress: bool = False,
) -> Table:
    """Accuracy on analogy questions: a is to b as c is to d.

    The answer is the best label other than a, b and c by 3CosAdd or 3CosMul, as in
    `LabeledVectors.analogy`; only exactly d is correct, and a tie for the first rank is not. Words
    that differ only in case count as the same word.

    Parameters
    ----------
    vectors : LabeledVectors
        Such as `model.vectors()`.
    source : path, mapping of sections to questions, or iterable of (a, b, c, d)
        A file such as questions-words.txt has four words per line; ": name" starts a section.
    method : {"add", "mul"}, default="add"
        3CosAdd, the cosine with b - a + c, or 3CosMul, a product of cosines.
    restrict : int, optional
        Use only this many of the most frequent labels (the first ones if counts are unknown).
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    Table
        Columns section, correct, n (questions with known words only), missing (questions with
        an unknown word, which are skipped) and accuracy = correct / n (NaN if n is 0). One row
        per section, then "total".
    """
    check_labeled(vectors)
    check_known("method", method, ("add", "mul"))
    used = (
        vectors if restrict is None else vectors.most_frequent(check_integer("restrict", restrict))
    )
    sections = _read(source)
    lookup = WordLookup(used.vocabulary)
    questions = [question for rows in sections.values() for question in rows]
    section = np.repeat(
        np.arange(len(sections)),
        [len(rows) for rows in sections.values()],
    )
    codes = lookup.codes(questions, 4)
    answerable = (codes != NOT_FOUND).all(axis=1)
    with progress_bar("analogies", int(answerable.sum()), progress) as advance:
        right = _grade(used.unit_vectors, codes[answerable], lookup.same, method, advance)
    size = len(sections)
    n = np.bincount(section[answerable], minlength=size)
    missing = np.bincount(section[~answerable], minlength=size)
    correct = np.bincount(section[answerable][right], minlength=size)
    return _table(list(sections), correct, n, missing)


def _table(names: list[str], correct: Ints, n: Ints, missing: Ints) -> Table:
    counts = [np.append(numbers, numbers.sum()) for numbers in (correct, n, missing)]
    accuracy = np.full(len(counts[0]), np.nan)
    np.divide(counts[0], counts[1], out=accuracy, where=counts[1] > 0)
    columns = dict(zip(("correct", "n", "missing"), counts, strict=True))
    return Table({"section": [*names, "total"], **columns, "accuracy": accuracy})


def _grade(
    unit: Floats, codes: Ints, same: Ints, method: str, advance: Callable[[int], None]
) -> Bools:
    """Whether each question is answered correctly, computed block by block."""
    right = np.zeros(len(codes), dtype=bool)
    step = max(1, BLOCK // len(unit))
    variants = _variants(same)
    for start in range(0, len(codes), step):
        a, b, c, d = codes[start : start + step].T
        scores = _score_add(unit, a, b, c) if method == "add" else _score_mul(unit, a, b, c)
        rows = np.arange(len(a))
        for word in (a, b, c):
            scores[rows, word] = -np.inf
            for row, code in _other_forms(same[word], variants):
                scores[row, code] = -np.inf
        right[start : start + step] = _is_strictly_best(scores, same, same[d])
        advance(len(a))
    return right


def _score_add(unit: Floats, a: Ints, b: Ints, c: Ints) -> Floats:
    """3CosAdd up to the length of the query, which does not change the ranking."""
    scores: Floats = (unit[b] - unit[a] + unit[c]) @ unit.T
    return scores


def _score_mul(unit: Floats, a: Ints, b: Ints, c: Ints) -> Floats:
    """3CosMul; cosines of a word that several questions share are computed once."""
    words, positions = np.unique(np.stack([a, b, c]), return_inverse=True)
    cosines = unit[words] @ unit.T
    cosines += 1
    cosines /= 2
    from_a, from_b, from_c = positions.reshape(3, -1)
    scores: Floats = cosines[from_b]
    scores *= cosines[from_c]
    cosines += EPSILON
    scores /= cosines[from_a]
    return scores


def _is_strictly_best(scores: Floats, same: Ints, expected: Ints) -> Bools:
    """Whether the single best label is the expected word, ignoring case."""
    best = scores.argmax(axis=1)
    top = scores[np.arange(len(scores)), best]
    right: Bools = (same[best] == expected) & (top > -np.inf)
    for row in np.flatnonzero(right):
        tied = np.flatnonzero(scores[row] == top[row])
        right[row] = (same[tied] == expected[row]).all()
    return right


def _variants(same: Ints) -> dict[int, Ints]:
    """Labels of words that occur in more than one case; most vocabularies have none."""
    sizes = np.bincount(same, minlength=len(same))
    members = np.flatnonzero(sizes[same] > 1)
    order = members[np.argsort(same[members], kind="stable")]
    firsts, starts = np.unique(same[order], return_index=True)
    return (
        dict(zip(firsts.tolist(), np.split(order, starts[1:]), strict=True)) if len(order) else {}
    )


def _other_forms(words: Ints, variants: dict[int, Ints]) -> Iterable[tuple[int, Ints]]:
    """(row, labels) of the words that have several forms."""
    if not variants:
        return []
    forms = ((row, variants.get(word)) for row, word in enumerate(words.tolist()))
    return [(row, labels) for row, labels in forms if labels is not None]


# -- questions ----------------------------------------------------------------------------------


def _read(source: Any) -> Sections:
    """Questions by section; an unnamed section is called "questions"."""
    if isinstance(source, str | os.PathLike):
        sections = _from_file(existing_file(source))
    elif isinstance(source, Mapping):
        sections = {str(name): _questions(rows, f"{name}, ") for name, rows in source.items()}
    elif isinstance(source, Iterable) and not isinstance(source, bytes):
        sections = {"questions": _questions(source, "")}
    else:
        raise InputTypeError(
            "pass the path of a file, a mapping of sections to questions or a list of "
            f"(a, b, c, d), not {type(source).__name__}"
        )
    if not any(sections.values()):
        raise DataError("source does not contain any questions")
    return sections


def _from_file(path: Path) -> Sections:
    sections: Sections = {}
    name = "questions"
    for number, line in read_lines(path):
        if line.lstrip().startswith(":"):
            name = line.strip()[1:].strip()
            sections.setdefault(name, [])
            continue
        words = line.split()
        if len(words) != 4:
            raise DataError(
                f"{path}, line {number}: a question has four words, got {len(words)}: {line[:60]!r}"
            )
        sections.setdefault(name, []).append(list(words))
    return sections


def _questions(rows: Any, where: str) -> list[list[Any]]:
    questions = []
    for number, row in enumerate(rows):
        if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != 4:
            raise DataError(f"{where}question {number} must be (a, b, c, d), not {row!r:.60}")
        questions.append(list(row))
    return questions
