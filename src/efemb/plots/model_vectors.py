"""What pictures are made of: the fitted model behind an estimator, its vectors and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Ints
from efemb.errors import InputTypeError, ParameterError
from efemb.fitted import Choice, LabeledVectors

if TYPE_CHECKING:
    from efemb.data.vocabulary import Vocabulary
    from efemb.fitted.embedding import FittedEmbedding


def fitted_model(model: Any) -> FittedEmbedding:
    """The fitted model of an estimator, or the object itself; unfitted estimators raise."""
    if not callable(getattr(model, "fitted", None)):
        raise InputTypeError(
            f"a picture is made of a fitted estimator or of what `efemb.load` returns, "
            f"not of {type(model).__name__}"
        )
    fitted: FittedEmbedding = model.fitted()
    return fitted


def vectors_of(model: Any, which: Any = "auto") -> LabeledVectors:
    """The labelled vectors of a fitted model; labelled vectors stay as they are."""
    if isinstance(model, LabeledVectors):
        return model
    return fitted_model(model).vectors(which)


def importance(vectors: LabeledVectors) -> Ints:
    """Places of all labels, the most frequent first; the longest vectors where counts lack."""
    counts = vectors.vocabulary.counts
    if counts is None:
        counts = np.linalg.norm(vectors.vectors.astype(np.float64), axis=1)
    return np.argsort(-counts, kind="stable")


def is_number(value: Any) -> bool:
    """Whether `value` says how many, not which."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def chosen(vectors: LabeledVectors, labels: Any) -> Ints:
    """Places of a list of labels, or of the so many most important ones."""
    if is_number(labels):
        if labels < 0:
            raise ParameterError(f"a number of labels is at least 0, got {labels}")
        return importance(vectors)[:labels]
    return codes_of(vectors.vocabulary, labels)


def codes_of(vocabulary: Vocabulary, labels: Any) -> Ints:
    """Places of some labels, in their order, each once."""
    codes = Choice(vocabulary).codes(labels)
    return np.array(list(dict.fromkeys(codes.tolist())), dtype=np.int64)
