"""Word vectors for other programs: word2vec files, text and binary, and gensim's KeyedVectors."""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from efemb._files import complete_or_absent, file_target
from efemb._terminal import progress_bar
from efemb._typing import Floats
from efemb.data.vocabulary import shorten
from efemb.errors import DataError, InputTypeError, MissingExtraError
from efemb.export.word2vec_records import join_binary, join_text
from efemb.fitted import LabeledVectors, check_labeled

_ROWS = 1 << 12
_SPACE = re.compile(r"\s")


def write_word2vec(
    vectors: LabeledVectors,
    path: str | os.PathLike[str],
    *,
    binary: bool | None = None,
    replace: str | None = None,
    progress: bool = False,
) -> None:
    """Write vectors in the format of word2vec, which gensim, spaCy and others read.

    The first line holds N and K. In text files, each further line holds a word and K numbers, with
    enough digits to restore the same bits; in binary files, each word is followed by K float32.
    Counts are not part of the format. Words are usually sorted by frequency (as a Vocabulary of
    words is), since programs that read only some of them take the first.

    Parameters
    ----------
    vectors : LabeledVectors
    path : path
        Replaced atomically. Compressed if it ends in .gz, .bz2 or .xz.
    binary : bool, optional
        By default, binary if the name ends in .bin (or .bin.gz, ...).
    replace : str, optional
        Replacement for each whitespace character in a label, such as "_". By default, a label with
        whitespace is an error, because the file could not be read back.
    progress : bool, default=False
        Show a progress bar.
    """
    check_labeled(vectors)
    target = file_target(path)
    words = _words(vectors, replace)
    as_binary = is_binary_name(target) if binary is None else bool(binary)
    numbers = _single(vectors) if as_binary else vectors.vectors
    join = join_binary if as_binary else join_text
    with complete_or_absent(target) as stream, _bar(progress, len(words), target) as advance:
        stream.write(b"%d %d\n" % numbers.shape)
        for start in range(0, len(words), _ROWS):
            block = words[start : start + _ROWS]
            stream.write(join(block, numbers[start : start + _ROWS]))
            advance(len(block))


def is_binary_name(path: Path) -> bool:
    """Whether a file name denotes a binary file: `x.bin`, `x.bin.gz`."""
    return ".bin" in {suffix.lower() for suffix in path.suffixes[-2:]}


def _bar(shown: bool, total: int, path: Path) -> Any:
    return progress_bar(f"writing {path.name}", total, shown)


def _single(vectors: LabeledVectors) -> Floats:
    """The vectors as little-endian float32, the only type of the binary format."""
    limit = np.finfo(np.float32).max
    bad = np.flatnonzero((np.abs(vectors.vectors) > limit).any(axis=1))
    if len(bad):
        raise DataError(
            f"the vector of {shorten(vectors.vocabulary[int(bad[0])])} exceeds {limit:.3g}, the "
            "largest number of the binary format; write a text file (binary=False)"
        )
    return np.ascontiguousarray(vectors.vectors, dtype="<f4")


def _words(vectors: LabeledVectors, replace: str | None) -> list[bytes]:
    """Labels as UTF-8, without whitespace and all distinct."""
    if replace is not None and (not isinstance(replace, str) or _SPACE.search(replace)):
        raise InputTypeError(f'replace={replace!r} must be text without whitespace, such as "_"')
    words = [str(label) for label in vectors.vocabulary]
    # A single search, because whitespace is rare.
    if _SPACE.search("".join(words)):
        words = [_without_space(word, replace) for word in words]
    try:
        encoded = [word.encode() for word in words]
    except UnicodeEncodeError as error:
        raise DataError(f"label {shorten(error.object)} cannot be written as UTF-8") from None
    _check_different(encoded, vectors)
    return encoded


def _without_space(word: str, replace: str | None) -> str:
    if not _SPACE.search(word):
        return word
    if replace is None:
        raise DataError(
            f"label {shorten(word)} contains whitespace, which ends a word in this format; pass "
            'replace="_" to write another character instead'
        )
    return _SPACE.sub(lambda _: replace, word)


def _check_different(words: list[bytes], vectors: LabeledVectors) -> None:
    number_of = {word: number for number, word in enumerate(words)}
    empty = number_of.get(b"")
    if empty is not None:
        raise DataError(
            f"label {shorten(vectors.vocabulary[empty])} would be written as an empty word"
        )
    if len(number_of) < len(words):
        second = next(number for number, word in enumerate(words) if number_of[word] != number)
        first = vectors.vocabulary[second], vectors.vocabulary[number_of[words[second]]]
        raise DataError(
            f"labels {shorten(first[0])} and {shorten(first[1])} would be written identically; "
            "rename one, or choose another replace="
        )


def to_keyedvectors(vectors: LabeledVectors) -> Any:
    """`gensim.models.KeyedVectors` with the same labels, vectors and counts.

    Parameters
    ----------
    vectors : LabeledVectors
        For instance `model.vectors()`.

    Returns
    -------
    gensim.models.KeyedVectors

    Raises
    ------
    MissingExtraError
        If gensim is not installed; nothing else needs it.
    """
    check_labeled(vectors)
    try:
        models = import_module("gensim.models")
    except ImportError as error:
        raise MissingExtraError("to_keyedvectors needs gensim: pip install gensim") from error
    keyed = models.KeyedVectors(vectors.n_components, dtype=vectors.vectors.dtype)
    labels, counts = vectors.vocabulary.labels.tolist(), vectors.vocabulary.counts
    keyed.add_vectors(labels, vectors.vectors)
    # One by one, because `extras` of add_vectors always fails in gensim 4.4.
    for label, count in zip(labels, [] if counts is None else counts.tolist(), strict=False):
        keyed.set_vecattr(label, "count", int(count))
    return keyed
