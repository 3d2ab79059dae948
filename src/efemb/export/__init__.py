"""Export: word vectors to and from the files of other programs."""

from __future__ import annotations

from efemb.export.keyedvectors import to_keyedvectors
from efemb.export.reading import read_glove, read_word2vec
from efemb.export.tables import write_projector, write_vectors
from efemb.export.writing import write_word2vec

__all__ = [
    "read_glove",
    "read_word2vec",
    "to_keyedvectors",
    "write_projector",
    "write_vectors",
    "write_word2vec",
]
