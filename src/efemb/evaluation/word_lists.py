"""Test sets of words: reading pairs with human scores, and finding words in a vocabulary."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from efemb._typing import Ints
from efemb.data.readers.input_file import check_encoding, existing_file, explain_errors, open_bytes
from efemb.data.readers.source import column_places
from efemb.data.vocabulary import Vocabulary
from efemb.errors import DataError, InputTypeError

Pair: TypeAlias = tuple[Any, Any, float]

SIMLEX = "SimLex999"  # whose score is not in the third column
NOT_FOUND = -1


def read_pairs(source: Any, column: str | int | None) -> list[Pair]:
    """(word, word, score) of each line or row."""
    if isinstance(column, bool) or not isinstance(column, str | int | None):
        raise InputTypeError(f"column must be the name or the number of a column, got {column!r}")
    if isinstance(source, str | os.PathLike):
        pairs = _from_file(existing_file(source), column)
    elif hasattr(source, "columns") and not isinstance(source, dict):
        pairs = _from_frame(source, column)
    elif isinstance(source, Iterable) and not isinstance(source, dict | bytes):
        pairs = [_parse_triple(row, number) for number, row in enumerate(source)]
    else:
        raise InputTypeError(
            "pass the path of a file, a data frame or a list of (word, word, score), "
            f"not {type(source).__name__}"
        )
    if not pairs:
        raise DataError("source does not contain any pairs of words")
    return pairs


def read_lines(path: Path, encoding: str = "utf-8") -> list[tuple[int, str]]:
    """Numbered lines that are neither blank nor comments (#)."""
    codec = check_encoding(encoding)
    with explain_errors(path, codec), open_bytes(path) as stream:
        text = io.TextIOWrapper(stream, encoding=codec)
        lines = [(number, line.strip("\r\n")) for number, line in enumerate(text, 1)]
    return [(n, line) for n, line in lines if line.strip() and not line.lstrip().startswith("#")]


def _from_file(path: Path, column: str | int | None) -> list[Pair]:
    lines = read_lines(path)
    if not lines:
        raise DataError(f"{path} does not contain any pairs of words, only blank lines or comments")
    rows = _split(path, lines)
    score_index, has_header = _score_place(str(path), rows[0], column)
    pairs = []
    for (number, _), row in list(zip(lines, rows, strict=True))[has_header:]:
        if len(row) <= score_index:
            raise DataError(
                f"{path}, line {number}: two words and a score in column {score_index + 1} are "
                f"needed, but there are {len(row)} fields"
            )
        pairs.append((row[0], row[1], _parse_score(row[score_index], f"{path}, line {number}")))
    return pairs


def _split(path: Path, lines: list[tuple[int, str]]) -> list[list[str]]:
    """Fields of all lines, split at the separator of the first one."""
    separator = next((mark for mark in "\t,;" if mark in lines[0][1]), None)
    if separator is None:
        return [line.split() for _, line in lines]
    rows = []
    for number, line in lines:
        # Line by line, because an unclosed quote must not consume the following lines.
        try:
            (row,) = csv.reader([line], delimiter=separator)
        except (csv.Error, ValueError) as error:
            raise DataError(
                f"{path}, line {number} cannot be split into fields: {error}"
            ) from error
        rows.append([field.strip() for field in row])
    return rows


def _score_place(name: str, first: list[str], column: str | int | None) -> tuple[int, bool]:
    """Index of the score, and whether the first line is a header."""
    if column is None and SIMLEX in first:
        column = SIMLEX
    if isinstance(column, str):
        return column_places([column], first, name)[0], True
    index = 2 if column is None else column
    if index < 2:
        raise DataError(f"column={index}: the first two (0 and 1) hold the words")
    if len(first) <= index:
        raise DataError(
            f"{name}: two words and a score in column {index + 1} are needed, separated by tabs, "
            f"commas or spaces, but the first line has {len(first)} fields"
        )
    return index, not _is_number(first[index])


def _from_frame(source: Any, column: str | int | None) -> list[Pair]:
    from efemb.data.readers.frames import eager_frame

    frame = eager_frame(source)
    names = list(frame.columns)
    if len(names) < 3:
        raise DataError(f"the table needs two columns of words and one of scores, but has {names}")
    if column is None:
        column = SIMLEX if SIMLEX in names else 2
    if isinstance(column, int) and not 2 <= column < len(names):
        raise DataError(
            f"column={column}: scores must be in one of the columns 2 ... {len(names) - 1}"
        )
    score = names[column] if isinstance(column, int) else column
    column_places([score], names, "the table")
    columns = (frame[name].to_list() for name in (names[0], names[1], score))
    return [_parse_triple(row, number) for number, row in enumerate(zip(*columns, strict=True))]


def _parse_triple(row: Any, number: int) -> Pair:
    if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != 3:
        raise DataError(f"row {number} must be (word, word, score), not {row!r:.60}")
    first, second, score = row
    return first, second, _parse_score(score, f"row {number}")


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def _parse_score(value: Any, where: str) -> float:
    if not _is_number(value) or not math.isfinite(float(value)):
        raise DataError(f"{where}: the score must be a finite number, not {value!r:.60}")
    return float(value)


class WordLookup:
    """Finds a word as written, otherwise the first label that differs from it only in case."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        folded = [str(label).casefold() for label in vocabulary]
        self._first: dict[str, int] = {}
        for code, word in enumerate(folded):
            self._first.setdefault(word, code)
        first = self._first
        # For each label, the first one that differs from it only in case.
        self.same = np.array([first[word] for word in folded], dtype=np.int64)

    def code(self, word: object) -> int:
        """Code of the word, or NOT_FOUND."""
        if word in self.vocabulary:
            return self.vocabulary.index_of(word)
        return self._first.get(str(word).casefold(), NOT_FOUND)

    def codes(self, words: list[list[object]], width: int) -> Ints:
        """Codes of rows of `width` words."""
        known: dict[object, int] = {}
        for row in words:
            for word in row:
                if word not in known:
                    known[word] = self.code(word)
        codes_of_rows = [[known[word] for word in row] for row in words]
        return np.array(codes_of_rows, dtype=np.int64).reshape(len(words), width)
