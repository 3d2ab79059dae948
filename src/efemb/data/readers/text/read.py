"""Text (one document per line, or an iterable of documents) becomes a `Corpus`."""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from efemb._terminal import progress_bar
from efemb.data.corpus import Corpus
from efemb.data.readers.text.documents import (
    Documents,
    DocumentStream,
    TextFile,
    TextFiles,
    text_files,
)
from efemb.data.readers.text.encode import Interned, intern_words
from efemb.data.tokenstore import Codes, KeptStarts, TokenStore, chunks_of
from efemb.data.vocabulary import Vocabulary, shorten
from efemb.errors import DataError, InputTypeError, ParameterError, suggest

_ERRORS = ("strict", "replace", "ignore")


def read_text(
    source: Any,
    *,
    min_count: int = 5,
    max_vocab: int | None = None,
    vocabulary: Vocabulary | None = None,
    keep_short: bool = False,
    lower: bool = False,
    encoding: str = "utf-8",
    errors: Literal["strict", "replace", "ignore"] = "strict",
    progress: bool = False,
) -> Corpus:
    """Read text: one document per line, words separated by whitespace.

    The source is read once, and words become integers on the fly. Rare words are then removed from
    the text (so their neighbors become adjacent, as in word2vec), and documents with fewer than two
    remaining words, which have no context, are dropped. Memory: 4 bytes per token, plus the
    vocabulary. Beyond 64 million tokens the codes are kept in a temporary file, which is deleted
    with the corpus.

    Parameters
    ----------
    source : path, iterable of documents, function or Corpus
        A plain, .gz, .bz2 or .xz file, a pattern such as ``"reviews-*.txt"``, or a list of Path
        objects; an iterable of documents, each a text that is split at whitespace or a list of
        tokens (text or numbers); or a function that returns such an iterable. A str is always a
        path or a pattern. A Corpus is returned unchanged, or re-encoded if `vocabulary` is passed.
    min_count : int, default=5
        Drop words that occur fewer times.
    max_vocab : int, optional
        Keep only this many of the most frequent words (ties: the first to appear); at least 2.
    vocabulary : Vocabulary, optional
        Keep exactly these words, with their codes; `min_count` and `max_vocab` are ignored. Use it
        to read held-out text: ``read_text("test.txt", vocabulary=train.vocabulary)``.
    keep_short : bool, default=False
        Keep documents with fewer than two words, including empty ones, so that documents
        correspond to those of the source.
    lower : bool, default=False
        Convert words to lower case.
    encoding : str, default="utf-8"
        Encoding of the file.
    errors : {"strict", "replace", "ignore"}, default="strict"
        How to handle bytes that are invalid in this encoding: reject the file, replace them by
        U+FFFD, or drop them.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    Corpus
        Words are sorted by count, the most frequent first (ties: the first to appear).
        `vocabulary.counts` refer to the whole text, before short documents were dropped.
        `report` says what was read and dropped: documents_read, documents_dropped, tokens_read,
        tokens_dropped, words_dropped.

    Raises
    ------
    DataError
        If the text cannot be used; the message names the file, the line or document, and the way
        out.
    InputTypeError
        If the source, a document or a token has an unsupported type.

    Examples
    --------
    >>> corpus = read_text(["a rose is a rose", "is it", "it"], min_count=1)
    >>> corpus
    Corpus(2 documents, 7 tokens, 4 words 'a', 'rose', 'is', ...)
    >>> corpus.report["documents_dropped"], corpus.vocabulary.counts.tolist()
    (1, [2.0, 2.0, 2.0, 2.0])
    """
    _check_options(min_count, max_vocab, vocabulary, errors)
    if isinstance(source, Corpus) and vocabulary is None:
        return source
    with TokenStore() as store:
        if isinstance(source, Corpus):
            text = _from_corpus(source, store)
        else:
            text = intern_words(_stream(source, encoding, errors), store, lower, progress)
        _check_text(text, keep_short)
        if vocabulary is None:
            vocabulary, new_codes = _keep_frequent(text, min_count, max_vocab)
            lost = f"no document has two words that occur at least min_count={min_count} times"
        else:
            new_codes = _code_known(text, vocabulary)
            lost = "no document has two words of the vocabulary"
        return _encode(text, vocabulary, new_codes, "" if keep_short else lost, progress)


def recode(X: Any, known: Vocabulary) -> Corpus:
    """X in the vocabulary of a model; no document is dropped, so that rows match those of X."""
    if isinstance(X, Corpus) and (X.vocabulary is known or X.vocabulary == known):
        return X.with_vocabulary(known)
    return read_text(X, vocabulary=known, keep_short=True)


def _check_options(min_count: int, max_vocab: int | None, vocabulary: object, errors: str) -> None:
    if not isinstance(min_count, int | np.integer) or min_count < 1:
        raise ParameterError(f"min_count={min_count!r} must be a whole number of at least 1")
    if max_vocab is not None and (not isinstance(max_vocab, int | np.integer) or max_vocab < 2):
        raise ParameterError(f"max_vocab={max_vocab!r} must be a whole number of at least 2")
    if errors not in _ERRORS:
        raise ParameterError(f"errors={errors!r} is unknown; {suggest(errors, _ERRORS)}")
    if vocabulary is not None and not isinstance(vocabulary, Vocabulary):
        raise InputTypeError(
            f"vocabulary must be a Vocabulary, not {type(vocabulary).__name__}; pass "
            "Vocabulary(labels), or the vocabulary of a corpus"
        )


def _stream(source: Any, encoding: str, errors: str) -> DocumentStream:
    files = text_files(source)
    if files is not None:
        return TextFiles([TextFile(path, encoding, errors) for path in files])
    if isinstance(source, str | os.PathLike):
        return TextFile(source, encoding, errors)
    is_class = isinstance(source, type)
    is_function = callable(source) and not is_class and not hasattr(source, "__iter__")
    return Documents(source() if is_function else source)


def _from_corpus(corpus: Corpus, store: TokenStore) -> Interned:
    for chunk in chunks_of(corpus.tokens):
        store.append(chunk)
    return Interned("the corpus", list(corpus.vocabulary), store, corpus.starts)


def _check_text(text: Interned, keep_short: bool) -> None:
    """Reject text without any words, or without a document of two words."""
    if not text.labels:
        n_documents = len(text.starts) - 1
        raise DataError(f"{text.name} contains no words ({n_documents:,} documents, all empty)")
    if np.diff(text.starts).max() < 2 and not keep_short:
        raise DataError(
            f"{text.name}: every document is a single word, which has no context; if the source "
            "is a list of the words of one document, pass [source]"
        )


def _code_known(text: Interned, vocabulary: Vocabulary) -> Codes:
    """New code of each word; -1 if it is not in the vocabulary."""
    codes = (vocabulary.index_of(word) if word in vocabulary else -1 for word in text.labels)
    return np.fromiter(codes, np.int32, len(text.labels))


def _keep_frequent(
    text: Interned, min_count: int, max_vocab: int | None
) -> tuple[Vocabulary, Codes]:
    """The most frequent words, and the new code of each word; -1 if it is dropped."""
    counts = text.store.counts(len(text.labels))
    # Stable: old codes are in order of appearance, which breaks ties.
    order = np.argsort(-counts, kind="stable")
    frequent = order[: np.count_nonzero(counts >= min_count)][:max_vocab]
    if len(frequent) < 2:
        raise _too_few_error(text, counts, order, min_count)
    new_codes = np.full(len(counts), -1, np.int32)
    new_codes[frequent] = np.arange(len(frequent))
    return Vocabulary([text.labels[i] for i in frequent], counts=counts[frequent]), new_codes


def _too_few_error(
    text: Interned, counts: NDArray[np.int64], order: NDArray[np.int64], min_count: int
) -> DataError:
    """Why fewer than two words are left."""
    first = [f"{shorten(text.labels[i])} ({counts[i]:,} times)" for i in order[:2]]
    if len(first) == 1:
        return DataError(
            f"{text.name}: there is only one distinct word, {first[0]}; two are needed"
        )
    n_left = "none" if counts[order[0]] < min_count else "only one"
    return DataError(
        f"{text.name}: min_count={min_count} leaves {n_left} of {len(counts):,} words; the most "
        f"frequent are {first[0]} and {first[1]}: pass min_count={counts[order[1]]} or less"
    )


def _encode(
    text: Interned, words: Vocabulary, new_codes: Codes, lost: str, progress: bool
) -> Corpus:
    """The corpus of the known words, re-encoded in place.

    `lost` explains why no document of two words may remain; if empty, short documents are kept.
    """
    read, kept_starts = text.store.n_tokens, KeptStarts(text.starts)
    with progress_bar("coding words", read, progress) as advance:

        def renew(chunk: Codes) -> Codes:
            codes = new_codes[chunk]
            is_known = codes >= 0
            kept_starts.add(is_known)
            advance(len(chunk))
            return codes[is_known]

        text.store.rewrite(renew)
    starts = _drop_short(text.store, kept_starts.starts) if lost else kept_starts.starts
    if len(starts) == 1 or starts[-1] == 0:
        why = lost or "no document has a word of the vocabulary"
        raise DataError(f"{text.name}: {why}, so nothing remains")
    n_documents = len(text.starts) - 1
    report = {
        "documents_read": n_documents,
        "documents_dropped": n_documents - (len(starts) - 1),
        "tokens_read": read,
        "tokens_dropped": read - text.store.n_tokens,
        "words_dropped": int(np.count_nonzero(new_codes < 0)),
    }
    return Corpus(text.store.finish(), starts, words, report=report)


def _drop_short(store: TokenStore, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Starts of documents with at least two tokens; tokens of the others leave the store."""
    lengths = np.diff(starts)
    alone = starts[:-1][lengths == 1]
    if len(alone):
        begin = 0

        def leave_out(chunk: Codes) -> Codes:
            nonlocal begin
            dropped = alone[slice(*np.searchsorted(alone, [begin, begin + len(chunk)]))] - begin
            begin += len(chunk)
            return np.delete(chunk, dropped)

        store.rewrite(leave_out)
    long_enough = lengths[lengths >= 2]
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(long_enough)])
