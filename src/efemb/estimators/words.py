"""Reading X of a text model: paths, documents or a Corpus become a Corpus of known words."""

from __future__ import annotations

from typing import Any

from efemb.data.corpus import Corpus
from efemb.data.dataset import Dataset
from efemb.data.readers.words import read_text, recoded
from efemb.data.vocabulary import Vocabulary
from efemb.errors import DataError, InputTypeError


def read_words(estimator: Any, X: Any, *, reset: bool) -> Corpus:
    """Return X as a Corpus; with `reset` its words become the model's, else others vanish."""
    refuse_numbers(X)
    known = getattr(estimator, "vocabulary_", None)
    if known is not None and (not reset or estimator.warm_start):
        return recoded(X, known)
    if isinstance(X, Corpus):
        corpus = X
    else:
        min_count = getattr(estimator, "min_count", 5)
        options: dict[str, Any] = {"max_vocab": getattr(estimator, "max_vocab", None)}
        progress = bool(estimator.verbose)
        corpus = read_text(X, min_count=min_count, **options, progress=progress)
    corpus = _counted(corpus)
    if corpus.n_entities < 2:
        raise DataError("the text has one distinct word only: there is nothing to predict")
    if reset:
        estimator.n_features_in_ = corpus.n_entities
    return corpus


def refuse_numbers(X: Any) -> None:
    """Arrays of measurements are not text."""
    kind = getattr(getattr(X, "dtype", None), "kind", "O")
    if isinstance(X, Dataset) or hasattr(X, "toarray") or kind in "fcb":
        raise InputTypeError(
            "a Window context needs text (a path, documents, a Corpus), got a "
            f"{type(X).__name__} of numbers; for rows x entities use a Basket or Neighbors context"
        )


def _counted(corpus: Corpus) -> Corpus:
    """The corpus with the counts of its words in the vocabulary: noise and trees need them."""
    if corpus.vocabulary.counts is not None:
        return corpus
    words = Vocabulary(corpus.vocabulary.labels, counts=corpus.counts())
    return Corpus(corpus.tokens, corpus.starts, words, report=corpus.report)
