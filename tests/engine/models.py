"""Small models and data that several tests of the engine share."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import efemb
from efemb.engine import threads
from efemb.engine.solvers.choice import make_solver
from efemb.engine.threads import Tuning, Workers
from efemb.model.factors import Factors
from efemb.model.spec import Spec
from engine import plain

Array = Any
K = 2
# name: (family, link, prior, density of the plain loops)
MODELS: dict[str, tuple[Any, str, Any, plain.Density]] = {
    "p-emb": ("poisson", "identity", "normal", plain.poisson),
    "ap-emb": ("poisson", "log", "half-normal", plain.additive_poisson),
    "b-emb": ("bernoulli", "identity", "normal", plain.bernoulli),
    "g-emb": (efemb.Gaussian(0.7), "identity", "normal", plain.gaussian),
    "nb-emb": (efemb.NegativeBinomial(1.5), "identity", "normal", plain.negative_binomial),
}


def spec(model: str, **changes: Any) -> Spec:
    family, link, prior, _ = MODELS[model]
    options = {"context": efemb.Basket(), "family": family, "link": link, "prior": prior}
    return Spec.resolve(**{**options, **changes})


def counts(model: str, n_rows: int = 7, n_entities: int = 5, seed: int = 0) -> Array:
    """Rows with different numbers of zeros; one has a single item."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.uniform(0.2, 1.5, (n_rows, 1)), (n_rows, n_entities)).astype(float)
    X[0] = 0.0
    X[0, 1] = 2.0
    X[1] = 1.0
    return np.minimum(X, 1.0) if model == "b-emb" else X


def vectors(n_entities: int = 5, seed: int = 1, dtype: Any = np.float64) -> Factors:
    """Positive, so that they are valid for the log link, too."""
    rng = np.random.default_rng(seed)
    sizes = ((n_entities, K), (n_entities, K), (n_entities,))
    return Factors(*(rng.uniform(0.1, 0.8, size).astype(dtype) for size in sizes))


def solver(name: str, bound: Any, model: Spec, tuning: Tuning | None = None, **options: Any) -> Any:
    return make_solver(name, bound, model, Workers(1, tuning), **options)


def tune(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Let every fit cut its work into other pieces."""
    monkeypatch.setattr(threads, "Tuning", partial(Tuning, **changes))


def bind(X: Array, model: Spec, masked: Array | None = None, dense: bool = False) -> Any:
    """The bound basket of the data, some cells masked."""
    values = X if dense else sparse.csr_array(X)
    bound = model.context.bind(efemb.Dataset(values))
    return bound if masked is None else bound.without(sparse.csr_array(masked))
