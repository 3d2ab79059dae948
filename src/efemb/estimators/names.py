"""Models by their names in the paper, and the model that suits some data."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from efemb.data.dataset import Dataset
from efemb.errors import ParameterError, suggest
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

ROW_MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "g-emb": (GaussianEmbedding, {}),
    "ng-emb": (NonnegativeGaussianEmbedding, {}),
    "p-emb": (PoissonEmbedding, {}),
    "p-emb-dw": (PoissonEmbedding, {"zero_weight": 0.1}),
    "ap-emb": (AdditivePoissonEmbedding, {}),
    "b-emb": (BernoulliEmbedding, {"binarize": True}),
    "categorical": (CategoricalEmbedding, {}),
}
TEXT_MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "b-emb": (BernoulliTextEmbedding, {}),
    "cbow": (CBOW, {}),
    "skip-gram": (SkipGram, {}),
    "poisson-text": (PoissonTextEmbedding, {}),
}
OF_FAMILY = {"gaussian": "g-emb", "poisson": "p-emb", "bernoulli": "b-emb"}
_SEPARATORS = re.compile(r"[\s()_-]+")


def canonical_name(name: str, others: tuple[str, ...] = ()) -> str:
    """The canonical form of a name, whatever its case and separators.

    others : names of models beside those of this module

    >>> canonical_name("P-EMB (dw)"), canonical_name("skipgram")
    ('p-emb-dw', 'skip-gram')
    """
    names = list(dict.fromkeys([*others, *ROW_MODELS, *TEXT_MODELS]))
    plain = {_SEPARATORS.sub("", name_of_model): name_of_model for name_of_model in names}
    known_name = plain.get(_SEPARATORS.sub("", str(name).lower()))
    if known_name is None:
        raise ParameterError(f"unknown model {name!r}; {suggest(str(name).lower(), names)}")
    return known_name


def model_named(name: str, n_components: int, *, text: bool = False, **options: Any) -> Any:
    """Create a preset from its name in the paper.

    Parameters
    ----------
    name : str
        "g-emb", "ng-emb", "p-emb", "p-emb-dw", "ap-emb", "b-emb" or "categorical"; "b-emb",
        "cbow", "skip-gram" or "poisson-text" for text.
    n_components : int
        Length K of the vectors.
    text : bool, default=False
        Whether the data are text.
    **options
        Options of the preset.

    Returns
    -------
    estimator

    Examples
    --------
    >>> model_named("p-emb (dw)", 20).zero_weight
    0.1
    """
    canonical, models = canonical_name(name), TEXT_MODELS if text else ROW_MODELS
    if canonical not in models:
        data = "text" if text else "rows of numbers"
        raise ParameterError(f"{canonical} is not a model of {data}; {suggest(canonical, models)}")
    preset, settings = models[canonical]
    return preset(n_components, **{**settings, **options})


def guess_family(data: Dataset) -> tuple[str, str]:
    """Name of a family that suits the numbers, and why."""
    values = np.asarray(data.values.data if data.is_sparse else data.values)
    finite = values[np.isfinite(values)]
    if finite.size == 0 or (finite < 0).any():
        return "gaussian", "not every number is a count"
    if (finite != np.round(finite)).any():
        if data.is_sparse:  # baskets: absent items are zero, and quantities may be weights
            return "poisson", "quantities need not be whole numbers"
        return "gaussian", "not every number is a count"
    if finite.max(initial=0) <= 1:
        return "bernoulli", "every number is 0 or 1"
    return "poisson", "every number is a count"
