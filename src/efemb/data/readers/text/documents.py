"""Documents as blocks of text or lists of tokens, from files and from iterables."""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set, Sized
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from efemb._files import expand_home
from efemb._terminal import Advance
from efemb.data.array_checks import is_sparse
from efemb.data.dataset import Dataset
from efemb.data.readers.input_file import (
    PACKED,
    check_encoding,
    existing_file,
    explain_errors,
    is_compressed,
    open_bytes,
)
from efemb.data.readers.several import find_files
from efemb.data.vocabulary import shorten
from efemb.errors import DataError, InputTypeError

# Characters or tokens per batch: intermediate arrays should fit into the processor's cache.
BLOCK = 1 << 16
# Longer words are rejected: joining them from blocks would take quadratic time.
_LONGEST_WORD = 1 << 20
# Marks the end of each document in a list of tokens.
MARK = object()

# Text of whole words in which newlines end documents, or tokens with marks between documents.
Batch: TypeAlias = str | list[Any]
_AS_TEXT = "a str is a path: to pass a text itself, use [text] or text.splitlines()"


class DocumentStream(Protocol):
    """A source of documents in batches; a document may continue in the next batch."""

    name: str
    size: int  # bytes or documents, for the progress bar; 0 is unknown

    def batches(self, advance: Advance) -> Iterator[Batch]:
        """Yield texts or lists of tokens."""
        ...


def whole_words(blocks: Iterable[str], name: str) -> Iterator[str]:
    """The same text in blocks that end at word boundaries."""
    begun = ""
    for block in blocks:
        text = begun + block
        if not text:
            continue
        begun = "" if text[-1].isspace() else text.rsplit(None, 1)[-1]
        if len(begun) > _LONGEST_WORD:
            raise DataError(
                f"{name}: a word that starts with {begun[:40]!r} does not end within "
                f"{_LONGEST_WORD:,} characters; words must be separated by whitespace"
            )
        yield text[: len(text) - len(begun)]
    yield begun


class Documents:
    """The documents of an iterable: texts, or lists of tokens."""

    name = "the documents"

    def __init__(self, source: Any) -> None:
        self._documents = _iterator(source)
        self.size = len(source) if isinstance(source, Sized) else 0

    def batches(self, advance: Advance) -> Iterator[Batch]:
        """Yield texts for texts and tokens for tokens, in their order."""
        numbered = enumerate(self._documents)
        for is_text, group in groupby(numbered, lambda pair: isinstance(pair[1], str)):
            if is_text:
                yield from whole_words(_join(_lines(group, advance)), self.name)
            else:
                yield from _token_lists(group, advance)


def _lines(numbered: Iterable[tuple[int, str]], advance: Advance) -> Iterator[str]:
    """Each text on a line of its own, in pieces of bounded length."""
    for _, text in numbered:
        for start in range(0, len(text), BLOCK):
            yield text[start : start + BLOCK].replace("\n", " ")
        yield "\n"
        advance(1)


def _join(pieces: Iterable[str]) -> Iterator[str]:
    """The same text in blocks of about equal length."""
    waiting: list[str] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= BLOCK:
            yield "".join(waiting)
            waiting, size = [], 0
    yield "".join(waiting)


def _token_lists(numbered: Iterable[tuple[int, Any]], advance: Advance) -> Iterator[list[Any]]:
    batch: list[Any] = []
    for number, document in numbered:
        tokens = _tokens(document, number)
        # A long document is never copied as a whole.
        while len(piece := list(islice(tokens, BLOCK))) == BLOCK:
            yield batch + piece
            batch = []
        batch += piece
        batch.append(MARK)
        advance(1)
        if len(batch) >= BLOCK:
            yield batch
            batch = []
    yield batch


def _tokens(document: Any, number: int) -> Iterator[Any]:
    """Iterate over a document that is not text."""
    if not isinstance(document, bytes | bytearray | Mapping | Set):
        try:
            return iter(document)
        except TypeError:
            pass
    if isinstance(document, bytes | bytearray):
        way_out = "decode it, or open the file as text"
    elif isinstance(document, Mapping | Set):
        way_out = "pass its words as a list, in order"
    else:
        way_out = "drop it; if the source is one document, pass [source]"
    raise InputTypeError(
        f"document {number} must be a text or a list of tokens, not {type(document).__name__} "
        f"({shorten(document)}): {way_out}"
    )


def _iterator(source: Any) -> Iterator[Any]:
    """Iterate over the documents, or explain why the source cannot be used."""
    way_out = "pass a path, an iterable of documents (texts or lists of tokens) or a function"
    if isinstance(source, str | os.PathLike):
        way_out = "the function must return an iterable of documents; pass a path directly"
    elif isinstance(source, bytes | bytearray):
        way_out = "decode them, and pass [text] or text.splitlines()"
    elif isinstance(source, Mapping):
        way_out = "pass source.values()"
    elif isinstance(source, Set):
        way_out = "a set has no order; pass a list"
    elif isinstance(source, Dataset):
        way_out = "text models need ordered words, which baskets do not have"
    elif is_sparse(source):
        way_out = "text models need ordered words, which a matrix does not have"
    elif hasattr(type(source), "columns"):  # accessing it on a lazy table would be slow
        way_out = 'pass one column of texts, for instance source["text"]'
    else:
        try:
            return iter(source)
        except TypeError:
            pass
    raise InputTypeError(f"text cannot be read from {type(source).__name__}: {way_out}")


class TextFile:
    """The lines of a plain or compressed file."""

    def __init__(self, source: str | os.PathLike[str], encoding: str, errors: str) -> None:
        self.path = _existing(source)
        self.name = str(self.path)
        self.size = 0 if is_compressed(self.path) else self.path.stat().st_size
        self._encoding = check_encoding(encoding)
        self._errors = errors

    def batches(self, advance: Advance) -> Iterator[str]:
        """Yield the text in blocks of whole words, each line ended by a line feed."""
        with explain_errors(self.path, self._encoding):
            try:
                yield from whole_words(self._blocks(advance), self.name)
            except UnicodeDecodeError as error:
                raise self._decoding_error(error) from None

    def _blocks(self, advance: Advance) -> Iterator[str]:
        """Yield the text, checked to be text, with a line end at its end."""
        decoder = codecs.getincrementaldecoder(self._encoding)(self._errors)
        # Knows a line end even if a block ends between \r and \n.
        lines = io.IncrementalNewlineDecoder(decoder, translate=True)
        n_lines, last, done = 0, "\n", False
        with open_bytes(self.path) as raw:
            block = raw.read(BLOCK)
            self._check_kind(block)
            while not done:
                done = not block
                text = lines.decode(block, final=done)
                if "\0" in text:
                    raise self._binary_error(n_lines + text[: text.index("\0")].count("\n"))
                n_lines += text.count("\n")
                last = text[-1:] or last
                yield text
                advance(len(block))
                block = raw.read(BLOCK)
        if last != "\n":
            yield "\n"

    def _check_kind(self, start: bytes) -> None:
        """Reject files whose first bytes show that they are not text."""
        for magic, suffix in PACKED.items():
            if start.startswith(magic):
                raise DataError(
                    f"{self.path} is compressed; its name must end in {suffix} to be decompressed"
                )
        is_wide = b"\0" in "a".encode(self._encoding)
        if b"\0" in start and not is_wide:
            raise self._binary_error(start[: start.index(b"\0")].count(b"\n"))

    def _binary_error(self, n_lines: int) -> DataError:
        return DataError(
            f"{self.path} is not text: line {n_lines + 1} has a NUL byte; is it a binary file? "
            'If it is text in another encoding, pass it, for instance encoding="utf-16"'
        )

    def _decoding_error(self, error: UnicodeDecodeError) -> DataError:
        """The error of the other readers, plus the remedies that only this one has."""
        # A codec that skips the byte order mark does not count its bytes.
        counting = "utf-8" if self._encoding == "utf-8-sig" else self._encoding
        try:
            with explain_errors(self.path, counting):
                raise error
        except DataError as placed:
            counted = " (counted after decompression)" if is_compressed(self.path) else ""
            return DataError(f'{placed}{counted}, or pass errors="replace" or errors="ignore"')


class TextFiles:
    """The lines of several files, one after the other."""

    def __init__(self, files: Sequence[TextFile]) -> None:
        self.files = files
        further = f" and {len(files) - 1:,} further files" if len(files) > 1 else ""
        self.name = f"{files[0].name}{further}"
        self.size = sum(file.size for file in files) if all(file.size for file in files) else 0

    def batches(self, advance: Advance) -> Iterator[str]:
        """Yield the text of each file; the end of a file ends a document."""
        for file in self.files:
            yield from file.batches(advance)


def text_files(source: Any) -> list[Path] | None:
    """The files of a pattern, or of a list of paths; None for anything else.

    A list of str is a list of documents.
    """
    if isinstance(source, list | tuple):
        paths = bool(source) and all(isinstance(each, os.PathLike) for each in source)
        return find_files(source) if paths else None
    if not isinstance(source, str | os.PathLike) or os.path.isdir(expand_home(source)):
        return None
    try:
        return find_files(source)
    except DataError as error:
        raise DataError(f"{error}; {_AS_TEXT}") from None


def _existing(source: str | os.PathLike[str]) -> Path:
    """`source` as the path of a file; a text in place of a path gets its own error."""
    if isinstance(source, str) and "\n" in source:
        raise DataError(f"there is no file {shorten(source)}; {_AS_TEXT}")
    try:
        return existing_file(source)
    except DataError as error:
        if isinstance(source, str) and not os.path.exists(expand_home(source)):
            raise DataError(f"{error}; {_AS_TEXT}") from None
        raise
