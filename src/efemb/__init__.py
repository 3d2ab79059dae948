"""Exponential family embeddings: word embeddings for any data.

Names are loaded when first used, so that `import efemb` is cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from typing import Any

    from efemb.combine import Combine, Linear, Reverse
    from efemb.contexts import (
        Basket,
        Context,
        Explicit,
        Graph,
        Lagged,
        Neighbors,
    )
    from efemb.data import Dataset, Vocabulary, read_baskets, read_matrix, split
    from efemb.engine.callbacks import Checkpoint, EarlyStopping, JsonLinesLog
    from efemb.engine.optimizers import LBFGS, SGD, Adagrad, Adam
    from efemb.errors import (
        DataError,
        DivergenceError,
        EfembError,
        InputTypeError,
        MemoryEstimateError,
        MissingExtraError,
        ParameterError,
    )
    from efemb.estimators import (
        AdditivePoissonEmbedding,
        BernoulliEmbedding,
        CategoricalEmbedding,
        Embedding,
        GaussianEmbedding,
        NonnegativeGaussianEmbedding,
        PoissonEmbedding,
    )
    from efemb.families import (
        Bernoulli,
        Categorical,
        Family,
        Gaussian,
        Interval,
        NegativeBinomial,
        Poisson,
    )
    from efemb.fitted import FittedEmbedding, load
    from efemb.links import Identity, Link, Log, LogSoftplus, Softplus
    from efemb.parameters import Parameters
    from efemb.priors import HalfNormal, LogNormal, Normal, Prior
    from efemb.simulation import Simulation, simulate, simulate_baskets
    from efemb.structures import PerEntity, Shared, Structure, Tied
    from efemb.zeros import All, NegativeSampling, Sampled, Zeros

_HOME = {
    "efemb.combine": ("Combine", "Linear", "Reverse"),
    "efemb.contexts": ("Basket", "Context", "Explicit", "Graph", "Lagged", "Neighbors"),
    "efemb.data": ("Dataset", "Vocabulary", "read_baskets", "read_matrix", "split"),
    "efemb.engine.callbacks": ("Checkpoint", "EarlyStopping", "JsonLinesLog"),
    "efemb.engine.optimizers": ("LBFGS", "SGD", "Adagrad", "Adam"),
    "efemb.errors": (
        "DataError",
        "DivergenceError",
        "EfembError",
        "InputTypeError",
        "MemoryEstimateError",
        "MissingExtraError",
        "ParameterError",
    ),
    "efemb.estimators": (
        "AdditivePoissonEmbedding",
        "BernoulliEmbedding",
        "CategoricalEmbedding",
        "Embedding",
        "GaussianEmbedding",
        "NonnegativeGaussianEmbedding",
        "PoissonEmbedding",
    ),
    "efemb.families": (
        "Bernoulli",
        "Categorical",
        "Family",
        "Gaussian",
        "Interval",
        "NegativeBinomial",
        "Poisson",
    ),
    "efemb.fitted": ("FittedEmbedding", "load"),
    "efemb.links": ("Identity", "Link", "Log", "LogSoftplus", "Softplus"),
    "efemb.parameters": ("Parameters",),
    "efemb.priors": ("HalfNormal", "LogNormal", "Normal", "Prior"),
    "efemb.simulation": ("Simulation", "simulate", "simulate_baskets"),
    "efemb.structures": ("PerEntity", "Shared", "Structure", "Tied"),
    "efemb.zeros": ("All", "NegativeSampling", "Sampled", "Zeros"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "LBFGS",
    "SGD",
    "Adagrad",
    "Adam",
    "AdditivePoissonEmbedding",
    "All",
    "Basket",
    "Bernoulli",
    "BernoulliEmbedding",
    "Categorical",
    "CategoricalEmbedding",
    "Checkpoint",
    "Combine",
    "Context",
    "DataError",
    "Dataset",
    "DivergenceError",
    "EarlyStopping",
    "EfembError",
    "Embedding",
    "Explicit",
    "Family",
    "FittedEmbedding",
    "Gaussian",
    "GaussianEmbedding",
    "Graph",
    "HalfNormal",
    "Identity",
    "InputTypeError",
    "Interval",
    "JsonLinesLog",
    "Lagged",
    "Linear",
    "Link",
    "Log",
    "LogNormal",
    "LogSoftplus",
    "MemoryEstimateError",
    "MissingExtraError",
    "NegativeBinomial",
    "NegativeSampling",
    "Neighbors",
    "NonnegativeGaussianEmbedding",
    "Normal",
    "ParameterError",
    "Parameters",
    "PerEntity",
    "Poisson",
    "PoissonEmbedding",
    "Prior",
    "Reverse",
    "Sampled",
    "Shared",
    "Simulation",
    "Softplus",
    "Structure",
    "Tied",
    "Vocabulary",
    "Zeros",
    "load",
    "read_baskets",
    "read_matrix",
    "simulate",
    "simulate_baskets",
    "split",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'efemb' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
