"""Encode words as integers in the order of their first appearance, one block of text at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efemb._terminal import progress_bar
from efemb.data.readers.accumulators import LabelTable
from efemb.data.readers.text.documents import MARK, DocumentStream
from efemb.data.tokenstore import Codes, TokenStore
from efemb.data.vocabulary import Label, canonical_label, shorten
from efemb.errors import DataError, InputTypeError

# Code of the mark after each document.
_END = -2
# What str.split splits at besides the ASCII characters 9 to 13 and 28 to 32.
WIDE_SPACES = (
    "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
# Slots of the cache: enough for the frequent words of any language, but few enough for the
# processor's cache (7 MB).
_BITS = 18
# Three 8-byte integers hold a word of up to this many bytes, and its length.
_LONGEST = 23
_FIRST_BYTES = np.array([256**n - 1 for n in range(9)], np.uint64)
_SHIFT_LENGTH, _BELOW_LENGTH = np.uint64(56), np.uint64(2**56 - 1)
_SHIFT_PLACE = np.uint64(64 - _BITS)
# Odd numbers without a pattern: 2**64 over the golden ratio, and a prime of xxHash.
_MIX_FIRST, _MIX_ALL = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
# Surrogates, which some codecs let through, must survive the round trip to bytes.
_KEEP = "surrogatepass"


@dataclass(frozen=True)
class Interned:
    """The text as codes: the code of a token is the index of its word in `labels`."""

    name: str
    labels: list[Label]
    store: TokenStore
    starts: NDArray[np.int64]


class LowerCaseTable(LabelTable):
    """Codes of words in lower case; each distinct word is converted once."""

    def __missing__(self, cell: Any) -> int:
        if not isinstance(cell, str) or cell == cell.lower():
            return super().__missing__(cell)
        code = self[cell] = self[cell.lower()]
        return code


def intern_words(
    stream: DocumentStream, store: TokenStore, lower: bool, progress: bool
) -> Interned:
    """Read the whole stream into `store`."""
    table = LowerCaseTable() if lower else LabelTable()
    coder = TextCoder(table)
    table[MARK] = _END
    starts, n_documents = [np.zeros(1, np.int64)], 0
    with progress_bar(f"reading {stream.name}", stream.size, progress) as advance:
        for batch in stream.batches(advance):
            if isinstance(batch, str):
                codes, ends = coder.codes(batch)
            else:
                codes, ends = _token_codes(table, batch, n_documents)
            starts.append(store.n_tokens + ends)
            store.append(codes)
            n_documents += len(ends)
    return Interned(stream.name, table.labels, store, np.concatenate(starts))


def _token_codes(
    table: LabelTable, tokens: list[Any], n_documents: int
) -> tuple[Codes, NDArray[np.int64]]:
    """Code of each token, and the number of tokens before each mark."""
    try:
        codes = np.fromiter(map(table.__getitem__, tokens), np.int32, len(tokens))
    except TypeError:
        raise _bad_token(tokens, n_documents) from None
    negative = np.flatnonzero(codes < 0)
    if (codes[negative] != _END).any():
        raise _bad_token(tokens, n_documents)
    return codes[codes >= 0], negative - np.arange(len(negative))


def _bad_token(tokens: list[Any], n_documents: int) -> DataError | InputTypeError:
    """Explain what is wrong with the first token that is not a label."""
    for token in tokens:
        if token is MARK:
            n_documents += 1
            continue
        try:
            if canonical_label(token) is None:
                problem = f"document {n_documents} has an empty or missing token ({token!r})"
                return DataError(f"{problem}; drop it")
        except InputTypeError:
            break
    hint = "; is there one list too many?" if isinstance(token, list | tuple) else ""
    return InputTypeError(
        f"document {n_documents} has a token of type {type(token).__name__} ({shorten(token)}); "
        f"tokens are text or numbers{hint}"
    )


class TextCoder:
    """Encodes the words of a text, with a cache in front of a `LabelTable`.

    A word of up to 23 bytes is three integers and has one slot in the cache, which belongs to the
    first word that needs it. All other words (new ones, long ones, those whose slot is taken) are
    looked up in the table, in the order of the text.
    """

    def __init__(self, table: LabelTable) -> None:
        self._table = table
        self._keys = [np.zeros(1 << _BITS, np.uint64) for _ in range(3)]
        self._codes = np.zeros(1 << _BITS, np.int32)

    def codes(self, text: str) -> tuple[Codes, NDArray[np.int64]]:
        """Code of each word, and the number of words before each line end."""
        encoded = _encode(text)
        begin, end, line_ends = _words(np.frombuffer(encoded, np.uint8))
        keys = _pack(encoded, begin, end - begin)
        mixed = (keys[0] * _MIX_FIRST) ^ (keys[1] + keys[2])
        slots = (mixed * _MIX_ALL >> _SHIFT_PLACE).astype(np.int64)
        codes = self._codes[slots]
        other = self._keys[0][slots] != keys[0]
        for known, key in zip(self._keys[1:], keys[1:], strict=True):
            other |= known[slots] != key
        missed = np.flatnonzero(other)
        if len(missed):
            words = _decode(encoded, begin[missed], end[missed])
            look_up = self._table.__getitem__
            codes[missed] = np.fromiter(map(look_up, words), np.int32, len(words))
            short = missed[(end - begin)[missed] <= _LONGEST]
            self._remember(slots[short], [key[short] for key in keys], codes[short])
        return codes, np.searchsorted(begin, line_ends)

    def _remember(
        self, slots: NDArray[np.int64], keys: list[NDArray[np.uint64]], codes: Codes
    ) -> None:
        """Store words in the slots that no other word uses."""
        # The third integer of a word is never 0, because it contains the length.
        free = np.flatnonzero(self._keys[2][slots] == 0)
        # Two new words may compete for a slot: the first gets it.
        new_places, first = np.unique(slots[free], return_index=True)
        for known, key in zip(self._keys, keys, strict=True):
            known[new_places] = key[free[first]]
        self._codes[new_places] = codes[free[first]]


def _encode(text: str) -> bytes:
    """UTF-8 with spaces before and after, and no whitespace of more than one byte."""
    if not text.isascii():
        for space in WIDE_SPACES:
            if space in text:
                text = text.replace(space, " ")
    # Spaces at the end, because three integers are read even of the shortest word.
    return b" %b%b" % (text.encode("utf-8", _KEEP), b" " * 24)


def _words(text: NDArray[np.uint8]) -> tuple[NDArray[np.int64], ...]:
    """Begin and end of the words, and the positions of the line ends."""
    # Unsigned: values below 9 (28) become large.
    space = (text - np.uint8(9) < 5) | (text - np.uint8(28) < 5)
    edges = np.flatnonzero(space[1:] != space[:-1]) + 1
    return edges[::2], edges[1::2], np.flatnonzero(text == 10)


def _pack(
    encoded: bytes, begin: NDArray[np.int64], length: NDArray[np.int64]
) -> list[NDArray[np.uint64]]:
    """Bytes 0 to 7 of each word; bytes 8 to 15; bytes 16 to 22 and, on top, its length."""
    windows: NDArray[Any] = np.ndarray((len(encoded) - 7,), "<u8", encoded, strides=(1,))
    # All long words have the same length, which no word in the cache has, so they never match.
    told_length = np.minimum(length, _LONGEST + 1).astype(np.uint64)
    keys = [
        windows[begin] & _FIRST_BYTES.take(length, mode="clip"),
        windows[begin + 8] & _FIRST_BYTES.take(length - 8, mode="clip"),
        told_length << _SHIFT_LENGTH,
    ]
    long = np.flatnonzero(length > 16)
    rest = windows[begin[long] + 16] & _FIRST_BYTES.take(length[long] - 16, mode="clip")
    keys[2][long] |= rest & _BELOW_LENGTH
    return keys


def _decode(encoded: bytes, begin: NDArray[np.int64], end: NDArray[np.int64]) -> list[str]:
    pairs = zip(begin.tolist(), end.tolist(), strict=True)
    return [encoded[a:b].decode("utf-8", _KEEP) for a, b in pairs]
