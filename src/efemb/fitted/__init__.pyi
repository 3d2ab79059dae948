"""Names of the package; `__init__.py` loads each of them when it is first used."""

from .embedding import FittedEmbedding, load
from .extreme_pairs import pairs
from .labeled import EPSILON, LabeledVectors, check_labeled
from .neighbor_weights import weights
from .prediction import complete, explain, predict, what_if
from .queries import Queries
from .relation import ProductErrors, complements, substitutes
from .row_groups import RowGroups
from .selection import Choice, Options
from .similarity import analogy, similar
from .topic_items import topics
from .vectors import labeled_vectors

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
