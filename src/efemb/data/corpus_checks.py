"""Checks of the arrays that make up a `Corpus`; each error names the place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efemb.data.vocabulary import Vocabulary
from efemb.errors import DataError, InputTypeError


def checked_words(vocabulary: Vocabulary | Iterable[object]) -> Vocabulary:
    """`vocabulary` as a Vocabulary of at least one word."""
    if isinstance(vocabulary, str) or not isinstance(vocabulary, Iterable):
        kind = type(vocabulary).__name__
        raise InputTypeError(f"vocabulary must be a Vocabulary or a sequence of labels, not {kind}")
    known = vocabulary if isinstance(vocabulary, Vocabulary) else Vocabulary(vocabulary)
    if len(known) == 0:
        raise DataError("the vocabulary is empty; at least one word is needed")
    return known


def checked_tokens(tokens: object, n_words: int) -> NDArray[np.int32]:
    """Codes below `n_words`, as int32; copied only if the type must change."""
    codes = _integers(tokens, "tokens")
    if len(codes) == 0:
        raise DataError("the corpus has no tokens; at least one is needed")
    if codes.min() < 0 or codes.max() >= n_words:
        place = int(np.flatnonzero((codes < 0) | (codes >= n_words))[0])
        raise DataError(
            f"token {place} has the code {codes[place]}, but there are {n_words:,} words, whose "
            f"codes are 0 to {n_words - 1}"
        )
    return np.ascontiguousarray(codes, np.int32)


def checked_starts(starts: object, n_tokens: int) -> NDArray[np.int64]:
    """0, ..., n_tokens without a step back, as int64."""
    array = _integers(starts, "starts")
    if len(array) < 2:
        raise DataError("starts needs the start of a document and the end: at least [0, n_tokens]")
    if array[0] != 0 or array[-1] != n_tokens:
        raise DataError(
            f"starts must go from 0 to the number of tokens, {n_tokens}, "
            f"not from {array[0]} to {array[-1]}"
        )
    if array.max() > n_tokens or array.min() < 0:
        place = int(np.flatnonzero((array < 0) | (array > n_tokens))[0])
        raise DataError(f"document {place} starts at {array[place]}, outside the {n_tokens} tokens")
    checked = array.astype(np.int64)
    back = np.flatnonzero(np.diff(checked) < 0)
    if len(back):
        raise DataError(
            f"starts must not decrease: document {back[0]} starts at {checked[back[0]]} and the "
            f"next at {checked[back[0] + 1]}"
        )
    return checked


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view through which nothing can be written."""
    view = array.view()
    view.setflags(write=False)
    return view


def _integers(values: object, name: str) -> NDArray[Any]:
    """`values` as a 1-d array of integers."""
    try:
        array = np.asarray(values)
    except ValueError as error:  # lists of different lengths
        raise DataError(f"{name} must be one list of whole numbers: {error}") from error
    if array.ndim != 1:
        raise DataError(f"{name} must be one-dimensional, not of shape {array.shape}")
    if array.dtype.kind not in "iu" and array.size:
        raise InputTypeError(f"{name} must be whole numbers, not {array.dtype}")
    return array
