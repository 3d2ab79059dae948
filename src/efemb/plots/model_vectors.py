"""Inputs of plots: the fitted model of an estimator, its vectors and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Ints
from efemb.errors import InputTypeError, ParameterError
from efemb.fitted import Choice, LabeledVectors

if TYPE_CHECKING:
    from efemb.data.vocabulary import Vocabulary
    from efemb.fitted.embedding import FittedEmbedding


def get_fitted(model: Any) -> FittedEmbedding:
    """The fitted model of an estimator, or the object itself; unfitted estimators raise."""
    if not callable(getattr(model, "fitted", None)):
        raise InputTypeError(
            f"a plot needs a fitted estimator or a model from `efemb.load`, "
            f"not {type(model).__name__}"
        )
    fitted: FittedEmbedding = model.fitted()
    return fitted


def get_vectors(model: Any, which: Any = "auto") -> LabeledVectors:
    """The labeled vectors of a fitted model; labeled vectors are returned unchanged."""
    if isinstance(model, LabeledVectors):
        return model
    return get_fitted(model).vectors(which)


def rank_by_frequency(vectors: LabeledVectors) -> Ints:
    """Codes of all labels, the most frequent first; by vector length if counts are unknown."""
    counts = vectors.vocabulary.counts
    if counts is None:
        counts = np.linalg.norm(vectors.vectors.astype(np.float64), axis=1)
    return np.argsort(-counts, kind="stable")


def is_number(value: Any) -> bool:
    """Whether `value` is a number of entities rather than a list of them."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def choose_codes(vectors: LabeledVectors, labels: Any) -> Ints:
    """Codes of a list of labels, or of a number of the most frequent ones."""
    if is_number(labels):
        if labels < 0:
            raise ParameterError(f"the number of labels must be >= 0, got {labels}")
        return rank_by_frequency(vectors)[:labels]
    return find_codes(vectors.vocabulary, labels)


def find_codes(vocabulary: Vocabulary, labels: Any) -> Ints:
    """Codes of labels, in their order, without duplicates."""
    codes = Choice(vocabulary).codes(labels)
    return np.array(list(dict.fromkeys(codes.tolist())), dtype=np.int64)
