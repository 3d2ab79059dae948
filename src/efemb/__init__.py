"""Exponential family embeddings: word embeddings for any data.

Names are loaded when first used, so that `import efemb` is cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.2.0"

if TYPE_CHECKING:
    from typing import Any

    from efemb.baselines import (
        ShiftedPPMI,
    )
    from efemb.blend import (
        Blend,
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
        aligned,
        read_baskets,
        read_matrix,
        read_suite2p,
        read_text,
        read_traces,
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
    from efemb.estimators.names import (
        model_named,
    )
    from efemb.evaluation import (
        Predictions,
        compare,
        held_out_entries,
        held_out_words,
        leave_fold_out,
        leave_one_out,
        score_grid,
        word_similarity,
    )
    from efemb.evaluation.analogies import (
        analogies,
    )
    from efemb.export import (
        read_glove,
        read_word2vec,
        to_keyedvectors,
        write_projector,
        write_vectors,
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
        SimulatedRecording,
        SimulatedTrips,
        Simulation,
        simulate,
        simulate_baskets,
        simulate_iri,
        simulate_zebrafish,
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
    "efemb.blend": ("Blend",),
    "efemb.combine": ("Combine", "Linear", "Reverse"),
    "efemb.contexts": ("Basket", "Context", "Explicit", "Graph", "Lagged", "Neighbors", "Window"),
    "efemb.data": (
        "Corpus",
        "Dataset",
        "Vocabulary",
        "aligned",
        "read_baskets",
        "read_matrix",
        "read_suite2p",
        "read_text",
        "read_traces",
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
    "efemb.estimators.names": ("model_named",),
    "efemb.evaluation": (
        "Predictions",
        "compare",
        "held_out_entries",
        "held_out_words",
        "leave_fold_out",
        "leave_one_out",
        "score_grid",
        "word_similarity",
    ),
    "efemb.evaluation.analogies": ("analogies",),
    "efemb.export": (
        "read_glove",
        "read_word2vec",
        "to_keyedvectors",
        "write_projector",
        "write_vectors",
        "write_word2vec",
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
    "efemb.labelled": ("LabelledVectors",),
    "efemb.links": ("Identity", "Link", "Log", "LogSoftplus", "Softplus"),
    "efemb.parameters": ("Parameters",),
    "efemb.priors": ("HalfNormal", "LogNormal", "Normal", "Prior"),
    "efemb.simulation": (
        "SimulatedRecording",
        "SimulatedTrips",
        "Simulation",
        "simulate",
        "simulate_baskets",
        "simulate_iri",
        "simulate_zebrafish",
    ),
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
    "Blend",
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
    "Predictions",
    "Prior",
    "Reverse",
    "Sampled",
    "SampledSoftmax",
    "Shared",
    "ShiftedPPMI",
    "SimulatedRecording",
    "SimulatedTrips",
    "Simulation",
    "SkipGram",
    "Softplus",
    "Structure",
    "Table",
    "Tied",
    "Vocabulary",
    "Window",
    "Zeros",
    "aligned",
    "analogies",
    "compare",
    "held_out_entries",
    "held_out_words",
    "leave_fold_out",
    "leave_one_out",
    "load",
    "model_named",
    "read_baskets",
    "read_glove",
    "read_matrix",
    "read_suite2p",
    "read_text",
    "read_traces",
    "read_word2vec",
    "score_grid",
    "simulate",
    "simulate_baskets",
    "simulate_iri",
    "simulate_zebrafish",
    "split",
    "to_keyedvectors",
    "word_similarity",
    "write_projector",
    "write_vectors",
    "write_word2vec",
]


# Reached as attributes as well: `efemb.plots.embedding_map(model)`.
_MODULES = ("baselines", "datasets", "evaluation", "inference", "plots", "query", "simulation")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"efemb.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'efemb' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
