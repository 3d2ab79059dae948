"""Any combination of ingredients fits, predicts and continues, or is invalid for a known reason."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

import efemb

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
N_SETTINGS = 400
N_ROWS, N_ENTITIES = 24, 6
HALVES = np.arange(N_ENTITIES) // 2
REAL = ("gaussian", "learned")
ANY_LINK = ("identity", "log", "softplus", "log-softplus")


def a_part(draw: random.Random, family: str) -> Any:
    scales = ["none", "items"] if family in REAL else ["none", "items", "total"]
    how: dict[str, Any] = {"scale": draw.choice(scales), "binary": draw.random() < 0.2}
    kind = draw.choice(
        ["basket"] * 5 + ["neighbors"] * 3 + ["graph", "lagged", "lagged", "explicit"]
    )
    if kind == "basket":
        return efemb.Basket(**how)
    if kind == "neighbors":
        return efemb.Neighbors(draw.choice([None, 2]), **how)
    if kind == "graph":
        return efemb.Graph(np.roll(np.eye(N_ENTITIES), 1, axis=1), **how)
    if kind == "lagged":
        of = draw.choice([None, efemb.Neighbors(1)])
        return efemb.Lagged((1, -2), of=of, shared=draw.random() < 0.5, **how)
    return efemb.Explicit(np.zeros(N_ROWS * N_ENTITIES + 1, int), [], **how)


def a_prior(draw: random.Random) -> Any:
    return draw.choice([None, efemb.Normal(0.5), efemb.HalfNormal(), efemb.LogNormal(0.1, -2)])


def settings(draw: random.Random, family: str) -> dict[str, Any]:
    context = a_part(draw, family)
    if draw.random() < 0.25:
        context = context + a_part(draw, family)
    prior = a_prior(draw)
    shared = [efemb.Shared(HALVES), efemb.Shared(None, HALVES)]
    every = ["all"] * 14 + [efemb.All(0.1), efemb.All(0.0)] * 2
    drawn = [
        efemb.Sampled(2),
        efemb.Sampled(100, "sqrt"),
        efemb.Sampled(2, per="row"),
        efemb.NegativeSampling(3),
    ]
    return {
        "context": context,
        "family": efemb.Gaussian("learned") if family == "learned" else family,
        "link": draw.choice(["identity"] * 12 + [*ANY_LINK]),
        "prior": prior if draw.random() < 0.7 else (prior, a_prior(draw)),
        "combine": draw.choice(["linear"] * 4 + ["reverse"]),
        "structure": draw.choice(["per-entity"] * 5 + ["tied", *shared]),
        "zeros": draw.choice(every + drawn),
        "intercept": draw.random() < 0.7,
        "optimizer": draw.choice(["auto"] * 4 + ["adam", "lbfgs"]),
        "batch_size": draw.choice(["auto"] * 4 + [5]),
        "early_stopping": draw.random() < 0.6,
        "dtype": draw.choice(["float32", "float64"]),
        "max_iter": draw.choice([1, 12]),
        "n_jobs": draw.choice([1, 2]),
    }


def values(draw: random.Random, family: str, rng: np.random.Generator) -> Any:
    X = rng.poisson(0.6, (N_ROWS, N_ENTITIES)).astype(float)
    if family == "bernoulli":
        X = np.minimum(X, 1)
    if family in REAL:
        X = rng.normal(size=X.shape) * draw.choice([1.0, 1e-3, 1e3]) * (rng.random(X.shape) < 0.8)
        if draw.random() < 0.3:
            X[rng.random(X.shape) < 0.2] = np.nan
    elif draw.random() < 0.4:
        return sparse.csr_array(X)
    if draw.random() < 0.1 and family != "categorical":
        X = np.stack([X, np.roll(X, 1, axis=0)], axis=2)
    return X


FAMILIES = ["poisson", "bernoulli", "gaussian", "learned", "negative-binomial", "categorical"]


def task(seed: int) -> tuple[efemb.Embedding, efemb.Dataset, Any]:
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    family = draw.choice(FAMILIES)
    model = efemb.Embedding(2, random_state=seed, **settings(draw, family))
    recordings = np.repeat([0, 1], N_ROWS // 2) if draw.random() < 0.5 else None
    data = efemb.Dataset(values(draw, family, rng), recordings=recordings)
    weight = rng.uniform(0, 2, N_ROWS) if draw.random() < 0.3 else None
    return model, data, weight


# -- which combinations are no model: the table of docs/models.md, written down once more ---------

LINKS = {"gaussian": {"identity", "softplus"}, "poisson": set(ANY_LINK)}
FIXED = (efemb.Neighbors, efemb.Graph, efemb.Lagged)  # the same members in every row


def parts_of(context: Any) -> list[Any]:
    return [context] if not hasattr(context, "left") else [context.left, context.right]


def family_of(model: Any) -> str:
    return model.family if isinstance(model.family, str) else "gaussian"


def priors_of(model: Any) -> tuple[Any, Any]:
    return model.prior if isinstance(model.prior, tuple) else (model.prior, model.prior)


def is_positive(model: Any, prior: Any) -> bool:
    return model.link == "log" or isinstance(prior, (efemb.HalfNormal, efemb.LogNormal))


def is_drawn(model: Any) -> bool:
    return isinstance(model.zeros, (efemb.Sampled, efemb.NegativeSampling))


def has_moments(model: Any, data: Any) -> bool:
    """Whether the data enter by their second moments only, which take all rows."""
    fixed = all(isinstance(part, FIXED) for part in parts_of(model.context))
    plain = model.link == "identity" and model.combine == "linear"
    if data.n_dims > 1:  # numbers are entities of their own, unless members are counted
        parts = parts_of(model.context)
        plain &= all(part.scale == "none" and not part.binary for part in parts)
    return fixed and plain and family_of(model) == "gaussian" and not is_drawn(model)


def mixes_kinds(context: Any) -> bool:
    """Whether a sum has parts other than fixed lists, which would merge into one."""
    parts = parts_of(context)
    return len(parts) > 1 and not all(isinstance(part, FIXED) for part in parts)


def has_bags(model: Any, data: Any) -> bool:
    """Whether rows have bags: a Basket, alone or, if only whole rows are missing, with lists."""
    parts = parts_of(model.context)
    baskets = [part for part in parts if isinstance(part, efemb.Basket)]
    if len(parts) == 1 or len(baskets) != 1:
        return len(baskets) == len(parts) == 1
    if model.combine == "reverse" or not all(isinstance(p, (efemb.Basket, *FIXED)) for p in parts):
        return False
    missing = np.zeros((1, 1)) if data.is_sparse else np.isnan(data.values)
    return bool((missing.any(axis=1) == missing.all(axis=1)).all())


REASONS: dict[str, Callable[[Any, Any], bool]] = {
    "does not take link": lambda m, d: m.link not in LINKS.get(family_of(m), {"identity"}),
    "needs positive vectors": lambda m, d: (
        m.link == "log" and any(isinstance(prior, efemb.Normal) for prior in priors_of(m))
    ),
    "Tied vectors need one prior": lambda m, d: (
        m.structure == "tied" and len({is_positive(m, prior) for prior in priors_of(m)}) > 1
    ),
    "Tied vectors are penalized once": lambda m, d: (
        m.structure == "tied" and priors_of(m)[0] != priors_of(m)[1]
    ),
    "Tied vectors need one context vector": lambda m, d: (
        m.structure == "tied"
        and any(isinstance(p, efemb.Lagged) and not p.shared for p in parts_of(m.context))
    ),
    "categorical family needs a row context": lambda m, d: (
        m.family == "categorical" and not isinstance(m.context, efemb.Basket)
    ),
    "no zeros to sample": lambda m, d: m.family == "categorical" and is_drawn(m),
    "no zeros to weigh": lambda m, d: (
        m.family == "categorical" and isinstance(m.zeros, efemb.All) and m.zeros.weight != 1
    ),
    r"zeros=.* needs a row context": lambda m, d: (
        is_drawn(m) and not (has_bags(m, d) and d.n_dims == 1)
    ),
    "needs exact gradients": lambda m, d: is_drawn(m) and m.optimizer == "lbfgs",
    "works on all rows": lambda m, d: (
        m.batch_size == 5 and (m.optimizer == "lbfgs" or has_moments(m, d))
    ),
    "does not take a sum of different contexts": lambda m, d: (
        m.combine == "reverse" and mixes_kinds(m.context)
    ),
    "needs Basket and scalar observations": lambda m, d: (
        m.combine == "reverse" and isinstance(m.context, efemb.Basket) and d.n_dims > 1
    ),
    "takes Basket, Neighbors, Graph or Lagged": lambda m, d: (
        m.combine == "reverse"
        and any(isinstance(part, efemb.Explicit) for part in parts_of(m.context))
    ),
}


def reasons(model: Any, data: Any) -> list[str]:
    """The reason why these settings are invalid, None if they are valid."""
    return [reason for reason, holds in REASONS.items() if holds(model, data)]


@pytest.mark.quick_one_in(4)
@pytest.mark.filterwarnings("ignore:a missing value counts as 0")
@pytest.mark.parametrize("seed", range(N_SETTINGS))
def test_what_is_not_refused_fits_predicts_and_continues(seed: int) -> None:
    model, data, weight = task(seed)
    refused = reasons(model, data)
    if refused:
        with pytest.raises(efemb.ParameterError, match="|".join(refused)):
            model.fit(data, sample_weight=weight)
        return
    model.fit(data, sample_weight=weight)
    assert all(np.isfinite(array).all() for array in model.parameters_.arrays())
    spec = model._spec()
    assert (model.embedding_ > 0).all() or not spec.positive_rho
    assert (model.context_ > 0).all() or not spec.positive_alpha
    assert model.intercept_ is None or (model.intercept_ > 0).all() or not spec.positive_intercept
    assert np.isfinite(model.transform(data)).all()
    value, gradient = model.objective(data, model.parameters_)
    assert np.isfinite(value)
    assert all(np.isfinite(array).all() for array in gradient.arrays())
    if model.combine == "linear":
        assert np.isfinite(model.conditional(data)).all()
        assert np.isfinite(model.score(data))
        cells = (np.arange(N_ENTITIES), np.arange(N_ENTITIES))
        seen = np.ones(N_ENTITIES, bool) if data.is_sparse else ~np.isnan(data.values[cells])
        sums = model.context_sums(data, cells)
        assert_array_equal(np.isfinite(sums).all(axis=1), seen.reshape(N_ENTITIES, -1).all(axis=1))
        assert model.fitted().score(data) == pytest.approx(model.score(data))
    model.partial_fit(data)
    assert all(np.isfinite(array).all() for array in model.parameters_.arrays())


def test_most_settings_are_valid_and_every_reason_occurs() -> None:
    refused = [reasons(model, data) for model, data, _ in map(task, range(N_SETTINGS))]
    assert refused.count([]) > 0.55 * N_SETTINGS
    assert {reason for one in refused for reason in one} == set(REASONS)
