"""Words become integers in the order of their first appearance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efemb.data.labels import Label, canonical_label
from efemb.data.readers.interning import LabelTable
from efemb.data.readers.progress import progress_bar
from efemb.data.readers.textcodes import TextCoder
from efemb.data.readers.wordstreams import MARK, DocumentStream
from efemb.data.tokenstore import Codes, TokenStore
from efemb.data.vocabulary import shorten
from efemb.errors import DataError, InputTypeError

# Code of the mark behind each document.
_END = -2


@dataclass(frozen=True)
class Interned:
    """All that was read: the code of a token is the place of its word in `labels`."""

    name: str
    labels: list[Label]
    store: TokenStore
    starts: NDArray[np.int64]


class LowerCaseTable(LabelTable):
    """Codes of words in lower case; each distinct word is folded once."""

    def __missing__(self, cell: Any) -> int:
        if not isinstance(cell, str) or cell == cell.lower():
            return super().__missing__(cell)
        code = self[cell] = self[cell.lower()]
        return code


def interned(stream: DocumentStream, store: TokenStore, lower: bool, progress: bool) -> Interned:
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
    """What is wrong with the first token that is no label; documents are counted on."""
    for token in tokens:
        if token is MARK:
            n_documents += 1
            continue
        try:
            if canonical_label(token) is None:
                problem = f"document {n_documents} has an empty or missing token ({token!r})"
                return DataError(f"{problem}; leave it out")
        except InputTypeError:
            break
    hint = "; is there one list too many?" if isinstance(token, list | tuple) else ""
    return InputTypeError(
        f"document {n_documents} has a token of type {type(token).__name__} ({shorten(token)}); "
        f"tokens are text or numbers{hint}"
    )
