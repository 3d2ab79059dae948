"""Documents as integer codes of words: the data of text models."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from efemb.data.array_checks import generator, read_only
from efemb.data.columns import NamedColumns
from efemb.data.dataset import Dataset, _places, only_rows
from efemb.data.overview import corpus_overview
from efemb.data.partition import cut_documents, join_neighbors, split
from efemb.data.tokenstore import Codes, KeptStarts, TokenStore, chunks_of, count_codes
from efemb.data.vocabulary import Vocabulary
from efemb.errors import DataError, InputTypeError, ParameterError

# With fewer documents, fractions of documents are too coarse, and stretches of text are held out.
FEW_DOCUMENTS = 20
_FIELDS = ("tokens", "starts", "vocabulary", "rows", "report")


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Corpus:
    """Text: the words of documents as codes, one document after the other.

    Parameters
    ----------
    tokens : array of shape (n_tokens,)
        Codes of the words of all documents. An int32 array is not copied (do not modify it) and
        may be memory-mapped.
    starts : array of shape (n_documents + 1,)
        Start of each document, and the end of the last one: document i is
        ``tokens[starts[i] : starts[i + 1]]``.
    vocabulary : Vocabulary or sequence of labels
        The words. `read_text` stores their counts and puts the most frequent word first.
    rows : mapping of str to array of shape (n_documents,), optional
        Columns of the documents, by name: ``{"year": years}``. Every operation carries them along.
    report : mapping, optional
        What a reader dropped.

    Examples
    --------
    >>> corpus = Corpus([0, 1, 0, 1, 2], [0, 2, 5], ["a", "rose", "is"])
    >>> corpus
    Corpus(2 documents, 5 tokens, 3 words 'a', 'rose', 'is')
    >>> corpus.document(1), corpus.counts().tolist()
    (['a', 'rose', 'is'], [2.0, 2.0, 1.0])
    """

    tokens: Codes
    starts: NDArray[np.int64]
    vocabulary: Vocabulary
    rows: NamedColumns
    report: dict[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        tokens: ArrayLike,
        starts: ArrayLike,
        vocabulary: Vocabulary | Iterable[object],
        *,
        rows: Mapping[str, ArrayLike] | None = None,
        report: Mapping[str, Any] | None = None,
    ) -> None:
        words = check_words(vocabulary)
        codes = check_tokens(tokens, len(words))
        begins = read_only(check_starts(starts, len(codes)))
        checked = {
            "tokens": read_only(codes),
            "starts": begins,
            "vocabulary": words,
            "rows": NamedColumns(rows or {}, len(begins) - 1, "rows"),
            "report": dict(report or {}),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickling field by field would lose the read-only flag of the arrays.
        fields = {name: getattr(self, name) for name in _FIELDS}
        return _restore, (fields | {"tokens": np.asarray(self.tokens)},)

    @property
    def entities(self) -> Vocabulary:
        """The vocabulary, under the name that `Dataset` uses."""
        return self.vocabulary

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return len(self.starts) - 1

    @property
    def n_tokens(self) -> int:
        """Total number of words in all documents."""
        return len(self.tokens)

    @property
    def n_rows(self) -> int:
        """T: a row is one token."""
        return self.n_tokens

    @property
    def n_entities(self) -> int:
        """N, the number of words in the vocabulary."""
        return len(self.vocabulary)

    @property
    def n_dims(self) -> int:
        """D: always 1."""
        return 1

    @property
    def shape(self) -> tuple[int]:
        """(documents,); tells scikit-learn's splitters that `corpus[index]` accepts an array."""
        return (self.n_documents,)

    def __len__(self) -> int:
        return self.n_documents

    def __getitem__(self, index: Any) -> Corpus:
        """Select documents by integers, booleans or a slice."""
        return self.take(only_rows(index, "corpus[...] selects documents only"))

    def __array__(self, *_: Any, **__: Any) -> NDArray[Any]:
        raise InputTypeError("a Corpus is text, not an array of numbers")

    __iter__ = None  # anything with __getitem__ would pass for a list of documents

    def counts(self) -> NDArray[np.float64]:
        """Number of occurrences of each word in this corpus, shape (N,)."""
        return self._counts.copy()

    @cached_property
    def _counts(self) -> NDArray[np.float64]:
        return count_codes(self.tokens, self.n_entities).astype(np.float64)

    def document(self, i: int) -> list[Any]:
        """The words of a document.

        Parameters
        ----------
        i : int
            Number of the document; negative numbers count from the end.

        Returns
        -------
        list of labels
        """
        (number,) = _places([i], self.n_documents, "documents")
        codes = self.tokens[self.starts[number] : self.starts[number + 1]]
        words: list[Any] = self.vocabulary.labels[codes].tolist()
        return words

    def take(self, index: ArrayLike | slice) -> Corpus:
        """Select documents, in that order; words are counted in the selection.

        Parameters
        ----------
        index : array of integers or booleans, or slice
            The documents.

        Returns
        -------
        Corpus
        """
        documents = _places(index, self.n_documents, "documents")
        if len(documents) == 0:
            raise DataError("the selection has no documents; at least one is needed")
        begin, end = self.starts[documents], self.starts[documents + 1]
        return self._of_stretches(begin, end, documents)._recount()

    def _content(self) -> dict[str, Any]:
        """Everything that a fit depends on, as numbers for checksums."""
        counts = self.vocabulary.counts
        content = {"tokens": self.tokens, "starts": self.starts, "counts": counts}
        return content | ({"rows": self.rows.content()} if self.rows else {})

    def split(
        self, test: float = 0.05, validation: float = 0.0, seed: int = 0
    ) -> tuple[Corpus, ...]:
        """(train, test) or, if `validation` > 0, (train, validation, test), by documents.

        Documents are drawn as rows are in `Dataset.split`. With fewer than 20 documents, fractions
        would be too coarse: the documents are then cut into stretches of about 1,000 tokens (fewer
        in short texts), and the stretches are divided instead. Adjacent stretches of one part form
        one document, so that no window reaches across a cut.

        Parameters
        ----------
        test, validation : float or int, default=0.05 and 0.0
            Fractions in [0, 1), or whole numbers of documents (1 or more).
        seed : int, default=0

        Examples
        --------
        >>> train, test = Corpus([0, 1] * 500, [0, 1000], ["a", "b"]).split(test=0.1)
        >>> train.n_tokens, test.n_tokens
        (900, 100)
        """
        numbers = any(isinstance(n, int | np.integer) and n >= 1 for n in (test, validation))
        if self.n_documents >= FEW_DOCUMENTS or numbers:
            pieces = _draw(self.n_documents, "documents", test, validation, seed)
            return tuple(self.take(piece) for piece in pieces)
        cuts = cut_documents(self.starts)
        pieces = _draw(len(cuts) - 1, "stretches of text", test, validation, seed)
        stretches = (join_neighbors(piece, cuts, self.starts) for piece in pieces)
        return tuple(
            self._of_stretches(begin, end, self._documents_at(begin))._recount()
            for begin, end in stretches
        )

    def _documents_at(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The document of each of some tokens."""
        return np.asarray(np.searchsorted(self.starts, places, side="right") - 1)

    def subsampled(self, threshold: float, seed: int = 0) -> Corpus:
        """Randomly drop occurrences of frequent words (word2vec's subsampling).

        A token whose word makes up a share f of all tokens is kept with probability
        min(1, sqrt(threshold / f) + threshold / f). No document is dropped.

        Parameters
        ----------
        threshold : float
            A positive number; word2vec uses 1e-3, and 1e-5 for large corpora.
        seed : int, default=0
        """
        if not (isinstance(threshold, numbers.Real) and 0 < threshold < np.inf):
            raise ParameterError(f"threshold={threshold!r} must be a positive number, such as 1e-3")
        rng = generator(seed)
        with np.errstate(divide="ignore"):
            ratio = threshold * self.n_tokens / self.counts()
        chance = np.sqrt(ratio) + ratio
        starts = KeptStarts(self.starts)
        with TokenStore() as store:
            for chunk in chunks_of(self.tokens):
                is_drawn = rng.random(len(chunk)) < chance[chunk]
                starts.add(is_drawn)
                store.append(chunk[is_drawn])
            if store.n_tokens == 0:
                raise DataError(f"threshold={threshold} drops every token; choose a larger one")
            return self._replace(tokens=store.finish(), starts=starts.starts)

    def _of_stretches(
        self, begin: NDArray[np.int64], end: NDArray[np.int64], documents: NDArray[np.int64]
    ) -> Corpus:
        """Corpus whose documents are stretches of tokens, from `begin` to `end`."""
        starts = np.zeros(len(begin) + 1, np.int64)
        np.cumsum(end - begin, out=starts[1:])
        # Adjacent stretches are copied at once; if all are adjacent, nothing is copied.
        first = np.flatnonzero(np.r_[True, begin[1:] != end[:-1]])
        last = np.r_[first[1:], len(end)] - 1
        rows = self.rows.take(documents)
        if len(first) == 1:
            return self._replace(tokens=self.tokens[begin[0] : end[-1]], starts=starts, rows=rows)
        with TokenStore() as store:
            for a, b in zip(begin[first].tolist(), end[last].tolist(), strict=True):
                store.append(self.tokens[a:b])
            return self._replace(tokens=store.finish(), starts=starts, rows=rows)

    def _recount(self) -> Corpus:
        """Recompute the counts of a part, because those of the whole would leak test data."""
        if self.vocabulary.counts is None:
            return self
        return self.with_vocabulary(self.vocabulary.with_counts(self.counts()))

    def with_vocabulary(self, vocabulary: Vocabulary) -> Corpus:
        """The same documents and columns with another vocabulary of as many words."""
        return self._replace(vocabulary=vocabulary)

    def with_rows(self, rows: Mapping[str, ArrayLike]) -> Corpus:
        """Add columns of the documents, such as the year or the author of each.

        Parameters
        ----------
        rows : mapping of str to array of shape (n_documents,)
            Columns by name; one of the same name is replaced.

        Returns
        -------
        Corpus

        Examples
        --------
        >>> corpus = Corpus([0, 1, 0], [0, 2, 3], ["a", "b"]).with_rows({"year": [1999, 2001]})
        >>> corpus.take([1]).rows["year"].tolist()
        [2001]
        """
        dropped = self.report.get("documents_dropped", 0)
        for name, values in rows.items():
            if dropped and len(np.asarray(values)) == self.n_documents + dropped:
                raise DataError(
                    f"rows[{name!r}] has a value for each of {self.n_documents + dropped:,} "
                    f"documents, but {dropped:,} of them had fewer than two known words and were "
                    "dropped: read_text(..., keep_short=True) keeps them"
                )
        return self._replace(rows={**self.rows, **rows})

    def _replace(self, **changes: Any) -> Corpus:
        """The same corpus with other fields."""
        return Corpus(**{name: getattr(self, name) for name in _FIELDS} | changes)

    def __repr__(self) -> str:
        words = repr(self.vocabulary).partition(": ")[2][:-1]
        sizes = f"{self.n_documents:,} documents, {self.n_tokens:,} tokens"
        return f"Corpus({sizes}, {self.n_entities:,} words {words})"

    def _repr_html_(self) -> str:
        return corpus_overview(self).to_html()


def _restore(fields: dict[str, Any]) -> Corpus:
    return Corpus(**fields)


def _draw(
    total: int, unit: str, test: float, validation: float, seed: int
) -> list[NDArray[np.int64]]:
    """Divide `total` items as `Dataset.split` divides rows."""
    numbered = Dataset(np.arange(total, dtype=np.float64)[:, None])
    try:
        pieces = split(numbered, test=test, validation=validation, seed=seed)
    except DataError as error:
        raise DataError(str(error).replace(" rows ", f" {unit} ")) from None
    return [piece.values[:, 0].astype(np.int64) for piece in pieces]


def check_words(vocabulary: Vocabulary | Iterable[object]) -> Vocabulary:
    """`vocabulary` as a Vocabulary of at least one word."""
    if isinstance(vocabulary, str) or not isinstance(vocabulary, Iterable):
        kind = type(vocabulary).__name__
        raise InputTypeError(f"vocabulary must be a Vocabulary or a sequence of labels, not {kind}")
    words = vocabulary if isinstance(vocabulary, Vocabulary) else Vocabulary(vocabulary)
    if len(words) == 0:
        raise DataError("the vocabulary is empty; at least one word is needed")
    return words


def check_tokens(tokens: object, n_words: int) -> NDArray[np.int32]:
    """Codes below `n_words`, as int32; copied only if the type must change."""
    codes = _integers(tokens, "tokens")
    if len(codes) == 0:
        raise DataError("the corpus has no tokens; at least one is needed")
    if codes.min() < 0 or codes.max() >= n_words:
        first = int(np.flatnonzero((codes < 0) | (codes >= n_words))[0])
        raise DataError(
            f"token {first} has the code {codes[first]}, but there are {n_words:,} words, whose "
            f"codes are 0 to {n_words - 1}"
        )
    return np.ascontiguousarray(codes, np.int32)


def check_starts(starts: object, n_tokens: int) -> NDArray[np.int64]:
    """Non-decreasing starts from 0 to n_tokens, as int64."""
    array = _integers(starts, "starts")
    if len(array) < 2:
        raise DataError(
            "starts needs at least the start and the end of one document: [0, n_tokens]"
        )
    if array[0] != 0 or array[-1] != n_tokens:
        raise DataError(
            f"starts must go from 0 to the number of tokens, {n_tokens}, "
            f"not from {array[0]} to {array[-1]}"
        )
    if array.max() > n_tokens or array.min() < 0:
        first = int(np.flatnonzero((array < 0) | (array > n_tokens))[0])
        raise DataError(f"document {first} starts at {array[first]}, outside the {n_tokens} tokens")
    checked = array.astype(np.int64)
    back = np.flatnonzero(np.diff(checked) < 0)
    if len(back):
        raise DataError(
            f"starts must not decrease: document {back[0]} starts at {checked[back[0]]} and the "
            f"next at {checked[back[0] + 1]}"
        )
    return checked


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
