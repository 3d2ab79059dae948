"""Estimators with the scikit-learn contract: the general `Embedding` and the paper's models."""

from __future__ import annotations

from efemb.estimators.embedding import Embedding
from efemb.estimators.presets import (
    AdditivePoissonEmbedding,
    BernoulliEmbedding,
    CategoricalEmbedding,
    GaussianEmbedding,
    NonnegativeGaussianEmbedding,
    PoissonEmbedding,
)

__all__ = [
    "AdditivePoissonEmbedding",
    "BernoulliEmbedding",
    "CategoricalEmbedding",
    "Embedding",
    "GaussianEmbedding",
    "NonnegativeGaussianEmbedding",
    "PoissonEmbedding",
]
