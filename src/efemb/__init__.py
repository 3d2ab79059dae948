"""Exponential family embeddings: word embeddings for any data.

Names are loaded when first used, so that `import efemb` is cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from typing import Any

    from efemb.baselines import (
        ShiftedPPMI,
    )
    from efemb.combine import (
        Combine,
        Linear,
        Reverse,
    )
    from efemb.contexts import (
        Basket,
        Context,
        Explicit,
        Graph,
        Lagged,
        Neighbors,
        Window,
    )
    from efemb.data import (
        Corpus,
        Dataset,
        Vocabulary,
        read_baskets,
        read_matrix,
        read_text,
        split,
    )
    from efemb.engine.callbacks import (
        Checkpoint,
        EarlyStopping,
        JsonLinesLog,
    )
    from efemb.engine.optimizers import (
        LBFGS,
        SGD,
        Adagrad,
        Adam,
    )
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
        CBOW,
        AdditivePoissonEmbedding,
        BernoulliEmbedding,
        BernoulliTextEmbedding,
        CategoricalEmbedding,
        Embedding,
        GaussianEmbedding,
        NonnegativeGaussianEmbedding,
        PoissonEmbedding,
        PoissonTextEmbedding,
        SkipGram,
    )
    from efemb.evaluation import (
        analogies,
        word_similarity,
    )
    from efemb.export import (
        read_glove,
        read_word2vec,
        to_keyedvectors,
        write_word2vec,
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
    from efemb.fitted import (
        FittedEmbedding,
        load,
    )
    from efemb.labelled import (
        LabelledVectors,
    )
    from efemb.links import (
        Identity,
        Link,
        Log,
        LogSoftplus,
        Softplus,
    )
    from efemb.parameters import (
        Parameters,
    )
    from efemb.priors import (
        HalfNormal,
        LogNormal,
        Normal,
        Prior,
    )
    from efemb.simulation import (
        Simulation,
        simulate,
        simulate_baskets,
    )
    from efemb.structures import (
        PerEntity,
        Shared,
        Structure,
        Tied,
    )
    from efemb.table import (
        Table,
    )
    from efemb.zeros import (
        All,
        Hierarchical,
        NegativeSampling,
        NoiseContrastive,
        Sampled,
        SampledSoftmax,
        Zeros,
    )

_HOME = {
    "efemb.baselines": ("ShiftedPPMI",),
    "efemb.combine": ("Combine", "Linear", "Reverse"),
    "efemb.contexts": ("Basket", "Context", "Explicit", "Graph", "Lagged", "Neighbors", "Window"),
    "efemb.data": (
        "Corpus",
        "Dataset",
        "Vocabulary",
        "read_baskets",
        "read_matrix",
        "read_text",
        "split",
    ),
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
    ),
    "efemb.evaluation": ("analogies", "held_out_words", "word_similarity"),
    "efemb.export": ("read_glove", "read_word2vec", "to_keyedvectors", "write_word2vec"),
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
    "efemb.labelled": ("LabelledVectors",),
    "efemb.links": ("Identity", "Link", "Log", "LogSoftplus", "Softplus"),
    "efemb.parameters": ("Parameters",),
    "efemb.priors": ("HalfNormal", "LogNormal", "Normal", "Prior"),
    "efemb.simulation": ("Simulation", "simulate", "simulate_baskets"),
    "efemb.structures": ("PerEntity", "Shared", "Structure", "Tied"),
    "efemb.table": ("Table",),
    "efemb.zeros": (
        "All",
        "Hierarchical",
        "NegativeSampling",
        "NoiseContrastive",
        "Sampled",
        "SampledSoftmax",
        "Zeros",
    ),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "CBOW",
    "LBFGS",
    "SGD",
    "Adagrad",
    "Adam",
    "AdditivePoissonEmbedding",
    "All",
    "Basket",
    "Bernoulli",
    "BernoulliEmbedding",
    "BernoulliTextEmbedding",
    "Categorical",
    "CategoricalEmbedding",
    "Checkpoint",
    "Combine",
    "Context",
    "Corpus",
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
    "Hierarchical",
    "Identity",
    "InputTypeError",
    "Interval",
    "JsonLinesLog",
    "LabelledVectors",
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
    "NoiseContrastive",
    "NonnegativeGaussianEmbedding",
    "Normal",
    "ParameterError",
    "Parameters",
    "PerEntity",
    "Poisson",
    "PoissonEmbedding",
    "PoissonTextEmbedding",
    "Prior",
    "Reverse",
    "Sampled",
    "SampledSoftmax",
    "Shared",
    "ShiftedPPMI",
    "Simulation",
    "SkipGram",
    "Softplus",
    "Structure",
    "Table",
    "Tied",
    "Vocabulary",
    "Window",
    "Zeros",
    "analogies",
    "held_out_words",
    "load",
    "read_baskets",
    "read_glove",
    "read_matrix",
    "read_text",
    "read_word2vec",
    "simulate",
    "simulate_baskets",
    "split",
    "to_keyedvectors",
    "word_similarity",
    "write_word2vec",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'efemb' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
