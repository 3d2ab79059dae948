"""Questions to a fitted model; each is a function here and a method of every fitted model."""

from __future__ import annotations

from efemb.query.interval import ProductErrors
from efemb.query.pairs import pairs
from efemb.query.prediction import complete, explain, predict, what_if
from efemb.query.queries import Queries
from efemb.query.relation import complements, substitutes
from efemb.query.similarity import analogy, similar
from efemb.query.topics import topics
from efemb.query.vectors import labelled_vectors
from efemb.query.weights import weights

__all__ = [
    "ProductErrors",
    "Queries",
    "analogy",
    "complements",
    "complete",
    "explain",
    "labelled_vectors",
    "pairs",
    "predict",
    "similar",
    "substitutes",
    "topics",
    "weights",
    "what_if",
]

predicted = predict  # its name while this was a single file
