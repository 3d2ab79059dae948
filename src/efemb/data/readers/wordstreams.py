"""Documents as blocks of text or lists of tokens, from files and from iterables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import groupby, islice
from typing import Any, Protocol, TypeAlias

from efemb.data.dataset import Dataset
from efemb.data.readers.source import Advance
from efemb.data.vocabulary import shorten
from efemb.errors import DataError, InputTypeError

# Characters or tokens at a time: what is made of them should fit into the processor's cache.
BLOCK = 1 << 16
# A longer word is no word; it would also be put together from blocks again and again.
_LONGEST_WORD = 1 << 20
# Stands behind each document in a list of tokens.
MARK = object()

# Whole words of text, where a line end ends a document; or tokens, where a mark does.
Batch: TypeAlias = str | list[Any]


class DocumentStream(Protocol):
    """Something that gives documents batch by batch; one may go on in the next batch."""

    name: str
    size: int  # bytes or documents, for the progress bar; 0 is unknown

    def batches(self, advance: Advance) -> Iterator[Batch]:
        """Yield texts or lists of tokens."""
        ...


def whole_words(blocks: Iterable[str], name: str) -> Iterator[str]:
    """The same text in blocks that end where a word ends."""
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
        self.size = len(source) if hasattr(source, "__len__") else 0

    def batches(self, advance: Advance) -> Iterator[Batch]:
        """Yield texts for texts and tokens for tokens, in their order."""
        numbered = enumerate(self._documents)
        for is_text, group in groupby(numbered, lambda pair: isinstance(pair[1], str)):
            if is_text:
                yield from whole_words(_joined(_lines(group, advance)), self.name)
            else:
                yield from _token_lists(group, advance)


def _lines(numbered: Iterable[tuple[int, str]], advance: Advance) -> Iterator[str]:
    """Each text on a line of its own, in pieces of bounded length."""
    for _, text in numbered:
        for start in range(0, len(text), BLOCK):
            yield text[start : start + BLOCK].replace("\n", " ")
        yield "\n"
        advance(1)


def _joined(pieces: Iterable[str]) -> Iterator[str]:
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
        # A long document is not copied as a whole.
        while len(part := list(islice(tokens, BLOCK))) == BLOCK:
            yield batch + part
            batch = []
        batch += part
        batch.append(MARK)
        advance(1)
        if len(batch) >= BLOCK:
            yield batch
            batch = []
    yield batch


def _tokens(document: Any, number: int) -> Iterator[Any]:
    """Iterate over a document that is no text."""
    if not isinstance(document, bytes | bytearray | Mapping | Set):
        try:
            return iter(document)
        except TypeError:
            pass
    if isinstance(document, bytes | bytearray):
        way_out = "decode it, or open the file as text"
    elif isinstance(document, Mapping | Set):
        way_out = "give its words as a list, in their order"
    else:
        way_out = "leave it out; if the source is one document, pass [source]"
    raise InputTypeError(
        f"document {number} must be a text or a list of tokens, not {type(document).__name__} "
        f"({shorten(document)}): {way_out}"
    )


def _iterator(source: Any) -> Iterator[Any]:
    """Iterate over the documents; what cannot be a source is told."""
    way_out = "give a path, an iterable of documents (texts or lists of tokens) or a function of it"
    if isinstance(source, str | os.PathLike):
        way_out = "the function must return an iterable of documents; give a path as it is"
    elif isinstance(source, bytes | bytearray):
        way_out = "decode them, and pass [text] or text.splitlines()"
    elif isinstance(source, Mapping):
        way_out = "pass source.values()"
    elif isinstance(source, Set):
        way_out = "a set has no order; pass a list"
    elif isinstance(source, Dataset):
        way_out = "text models need words in their order, which baskets do not have"
    elif hasattr(source, "columns"):
        way_out = 'pass one column of texts, for instance source["text"]'
    else:
        try:
            return iter(source)
        except TypeError:
            pass
    raise InputTypeError(f"text cannot be read from {type(source).__name__}: {way_out}")
