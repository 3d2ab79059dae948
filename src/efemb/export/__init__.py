"""Export: word vectors to and from the files of other programs."""

from __future__ import annotations

from efemb.export.annotated_data import write_anndata
from efemb.export.vector_tables import write_projector, write_vectors
from efemb.export.word2vec_reader import read_glove, read_word2vec
from efemb.export.word2vec_writer import to_keyedvectors, write_word2vec

__all__ = [
    "read_glove",
    "read_word2vec",
    "to_keyedvectors",
    "write_anndata",
    "write_projector",
    "write_vectors",
    "write_word2vec",
]
