"""What a fit leaves: an immutable model, and one function per question that it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from efemb._deprecated import BRITISH, keep_old_names
from efemb.fitted.embedding import FittedEmbedding, load
from efemb.fitted.labeled_vectors import EPSILON, LabeledVectors, check_labeled
from efemb.fitted.pairs import pairs
from efemb.fitted.prediction import complete, explain, predict, what_if
from efemb.fitted.queries import Queries
from efemb.fitted.relation import ProductErrors, complements, substitutes
from efemb.fitted.row_groups import RowGroups
from efemb.fitted.selection import Choice, Options
from efemb.fitted.similarity import analogy, similar
from efemb.fitted.topics import topics
from efemb.fitted.vectors import labeled_vectors
from efemb.fitted.weights import weights

__all__ = [
    "EPSILON",
    "Choice",
    "FittedEmbedding",
    "LabeledVectors",
    "Options",
    "ProductErrors",
    "Queries",
    "RowGroups",
    "analogy",
    "check_labeled",
    "complements",
    "complete",
    "explain",
    "labeled_vectors",
    "load",
    "pairs",
    "predict",
    "similar",
    "substitutes",
    "topics",
    "weights",
    "what_if",
]

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = keep_old_names(__name__, BRITISH)
