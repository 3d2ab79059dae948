"""Estimators with the scikit-learn contract: the general `Embedding` and the paper's models."""

from __future__ import annotations

from efemb.estimators.general import Embedding
from efemb.estimators.names import model_named
from efemb.estimators.presets import (
    AdditivePoissonEmbedding,
    BernoulliEmbedding,
    CategoricalEmbedding,
    GaussianEmbedding,
    NonnegativeGaussianEmbedding,
    PoissonEmbedding,
)
from efemb.estimators.text_presets import (
    CBOW,
    BernoulliTextEmbedding,
    PoissonTextEmbedding,
    SkipGram,
)

__all__ = [
    "CBOW",
    "AdditivePoissonEmbedding",
    "BernoulliEmbedding",
    "BernoulliTextEmbedding",
    "CategoricalEmbedding",
    "Embedding",
    "GaussianEmbedding",
    "NonnegativeGaussianEmbedding",
    "PoissonEmbedding",
    "PoissonTextEmbedding",
    "SkipGram",
    "model_named",
]
