"""Word vectors as gensim's KeyedVectors."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from efemb.errors import MissingExtraError
from efemb.labelled import LabelledVectors, check_labelled


def to_keyedvectors(vectors: LabelledVectors) -> Any:
    """`gensim.models.KeyedVectors` with the same labels, vectors and counts.

    Raises
    ------
    MissingExtraError
        If gensim is not installed; nothing else here needs it.
    """
    check_labelled(vectors)
    try:
        models = import_module("gensim.models")
    except ImportError as error:
        raise MissingExtraError("to_keyedvectors needs gensim: pip install gensim") from error
    found = models.KeyedVectors(vectors.n_components, dtype=vectors.vectors.dtype)
    labels, counts = vectors.vocabulary.labels.tolist(), vectors.vocabulary.counts
    found.add_vectors(labels, vectors.vectors)
    # One by one: `extras` of add_vectors fails in gensim 4.4 whatever it holds.
    for label, count in zip(labels, [] if counts is None else counts.tolist(), strict=False):
        found.set_vecattr(label, "count", int(count))
    return found
