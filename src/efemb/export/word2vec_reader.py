"""Reading word vectors of other programs: word2vec (text, binary), GloVe, fastText's .vec."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import numpy as np

from efemb._terminal import progress_bar
from efemb.data.readers.input_file import existing_file, explain_errors, is_compressed, open_bytes
from efemb.data.vocabulary import Vocabulary, shorten
from efemb.errors import DataError, InputTypeError, ParameterError, check_integer, suggest
from efemb.export.word2vec_records import BinaryRecords, TextRecords, numbers_of
from efemb.export.word2vec_writer import is_binary_name
from efemb.fitted import LabeledVectors

Errors = Literal["strict", "replace", "ignore"]
Duplicates = Literal["error", "first"]

_LONGEST_HEADER = 100
_MOST_COMPONENTS = 1_000_000
_PEEK = 1 << 16
# Bytes that do not occur in text; almost every float32 array has some.
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\v"))


def read_word2vec(
    path: str | os.PathLike[str],
    *,
    binary: bool | None = None,
    limit: int | None = None,
    dtype: str = "float32",
    errors: Errors = "strict",
    duplicates: Duplicates = "error",
    progress: bool = False,
) -> LabeledVectors:
    """Read a word2vec file; fastText's .vec files are the same.

    Parameters
    ----------
    path : path
        Decompressed if it ends in .gz, .bz2 or .xz.
    binary : bool, optional
        By default, inferred from the first vector.
    limit : int, optional
        Read only the first `limit` words, which are usually the most frequent.
    dtype : "float32" or "float64", default="float32"
    errors : "strict", "replace" or "ignore", default="strict"
        How to handle words that are not valid UTF-8 (word2vec may cut a long word anywhere).
    duplicates : "error" or "first", default="error"
        How to handle a word that occurs twice; "first" keeps the first occurrence.
    progress : bool, default=False
        Show a progress bar.

    Raises
    ------
    DataError
        If the file is truncated or malformed; the message names the line, word or byte.
    """
    file, max_words = (
        existing_file(_path(path)),
        None if limit is None else check_integer("limit", limit),
    )
    _check_choices(dtype, errors, duplicates)
    with explain_errors(file, "utf-8"), open_bytes(file) as stream:
        first = stream.readline(_LONGEST_HEADER)
        n_words, size = _header(file, first)
        start = stream.read(_PEEK)
        is_binary = _looks_binary(file, start, size) if binary is None else bool(binary)
        n_read = n_words if max_words is None else min(max_words, n_words)
        if is_binary:
            _check_length(file, n_read, size, len(first))
        kind: Any = BinaryRecords if is_binary else TextRecords
        records = kind(file, stream, start, size, np.dtype(dtype), errors, len(first))
        with progress_bar(f"reading {file.name}", n_read, progress) as advance:
            words, vectors = records.take(n_read, advance)
        if len(words) < n_read:
            raise DataError(
                f"{file} is truncated: its first line promises {n_words:,} words, "
                f"it ends after {len(words):,}"
            )
        if n_read == n_words:
            records.check_end(n_words)
    return _label(file, words, vectors, duplicates)


def read_glove(
    path: str | os.PathLike[str],
    *,
    limit: int | None = None,
    dtype: str = "float32",
    errors: Errors = "strict",
    duplicates: Duplicates = "error",
    progress: bool = False,
) -> LabeledVectors:
    """Read a GloVe file: a word and its K numbers per line, without a header.

    The first line determines K. Words may contain spaces, as in some of the published files.

    Parameters
    ----------
    path : path
        Decompressed if it ends in .gz, .bz2 or .xz.
    limit : int, optional
        Read only the first `limit` words, which are usually the most frequent.
    dtype : "float32" or "float64", default="float32"
    errors : "strict", "replace" or "ignore", default="strict"
        How to handle words that are not valid UTF-8.
    duplicates : "error" or "first", default="error"
        How to handle a word that occurs twice; "first" keeps the first occurrence.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    LabeledVectors

    Raises
    ------
    DataError
        If the file is truncated or malformed; the message names the line.
    """
    file, max_words = (
        existing_file(_path(path)),
        None if limit is None else check_integer("limit", limit),
    )
    _check_choices(dtype, errors, duplicates)
    with explain_errors(file, "utf-8"), open_bytes(file) as stream:
        start = stream.readline()
        size = _size_of_first(file, start)
        records = TextRecords(file, stream, start, size, np.dtype(dtype), errors, 0, spaces=True)
        total = 0 if max_words is None else max_words
        with progress_bar(f"reading {file.name}", total, progress) as advance:
            words, vectors = records.take(max_words, advance)
    return _label(file, words, vectors, duplicates)


def _label(file: Path, words: list[str], vectors: Any, duplicates: Duplicates) -> LabeledVectors:
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise DataError(
            f"{file}: the vector of {shorten(words[bad[0]])} (word {bad[0] + 1:,}) holds NaN, "
            f"infinite or too large numbers for {vectors.dtype}"
        )
    number_of: dict[str, int] = {}
    for number, word in enumerate(words):
        number_of.setdefault(word, number)
    if len(number_of) < len(words):
        if duplicates == "error":
            again = next(number for number, word in enumerate(words) if number_of[word] != number)
            raise DataError(
                f"{file}: {shorten(words[again])} is both word {number_of[words[again]] + 1:,} and "
                f'word {again + 1:,}; pass duplicates="first" to keep the first of them'
            )
        vectors = vectors[list(number_of.values())]
    vectors.setflags(write=False)
    return LabeledVectors(Vocabulary(number_of), vectors)


# -- checks -------------------------------------------------------------------------------------


def _path(path: Any) -> str | os.PathLike[str]:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise InputTypeError(f"pass the path of a file, not {path!r}")
    return path


def _check_choices(dtype: str, errors: str, duplicates: str) -> None:
    choices = {
        "dtype": (dtype, ["float32", "float64"]),
        "errors": (errors, ["strict", "replace", "ignore"]),
        "duplicates": (duplicates, ["error", "first"]),
    }
    for name, (value, allowed) in choices.items():
        if value not in allowed:
            raise ParameterError(f"{name}={value!r}; {suggest(value, allowed)}")


def _header(file: Path, first: bytes) -> tuple[int, int]:
    """N and K of the first line."""
    fields = first.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        raise DataError(
            f"{file}: the first line must hold the number of words and of components, not "
            f"{first.strip()[:40]!r}; a file without such a line can be read by read_glove"
        )
    n_words, size = int(fields[0]), int(fields[1])
    if n_words < 1 or size < 1:
        raise DataError(f"{file}: the first line promises {n_words} words of {size} components")
    if size > _MOST_COMPONENTS:
        raise DataError(
            f"{file}: the first line promises vectors of {size:,} components; at most "
            f"{_MOST_COMPONENTS:,} are read, so the file seems to be damaged"
        )
    return n_words, size


def _check_length(file: Path, n_words: int, size: int, header: int) -> None:
    """Reject a truncated binary file before allocating memory for it."""
    least = header + n_words * (2 + 4 * size)  # a word takes at least one byte and a space
    if not is_compressed(file) and file.stat().st_size < least:
        raise DataError(
            f"{file} is truncated: {n_words:,} words of {size:,} components need at least "
            f"{least:,} bytes; it has {file.stat().st_size:,}"
        )


def _looks_binary(file: Path, start: bytes, size: int) -> bool:
    """Text if the first line is a word and K numbers, binary if bytes do not occur in text."""
    first = start.partition(b"\n")[0]
    if numbers_of(first.split()[-size:], size) is not None:
        return False
    return len(start.translate(None, _CONTROL)) < len(start) or is_binary_name(file)


def _size_of_first(file: Path, line: bytes) -> int:
    """K: how many numbers end the first line."""
    fields = line.split()
    size = 0
    while size < len(fields) - 1 and numbers_of(fields[-size - 1 :][:1], 1) is not None:
        size += 1
    if size == 0:
        raise DataError(
            f"{file}: the first line must hold a word and its numbers, not {line[:60]!r}"
        )
    if len(fields) == 2 and all(field.isdigit() for field in fields):
        raise DataError(
            f"{file}: the first line, {line.strip()[:40]!r}, is a header; use read_word2vec"
        )
    return size
