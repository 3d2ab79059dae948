"""simulate: data from the conditionals of any model, with the parameters that made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from efemb.data.dataset import Dataset
from efemb.errors import InputTypeError, ParameterError, check_integer, check_number, suggest
from efemb.model.contexts import BoundContext, Context
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.simulation.gibbs import Plan, sample_entities, sample_graph, sample_rows
from efemb.simulation.observation_graph import graph_of
from efemb.simulation.truth import Popularity

MODELS: dict[str, dict[str, Any]] = {
    "g-emb": {"context": "neighbors", "family": "gaussian"},
    "ng-emb": {"context": "neighbors", "family": "gaussian", "prior": "half-normal"},
    "p-emb": {"context": "basket", "family": "poisson"},
    "ap-emb": {"context": "basket", "family": "poisson", "link": "log", "prior": "half-normal"},
    "b-emb": {"context": "basket", "family": "bernoulli"},
    "categorical": {"context": "basket", "family": "categorical"},
    "negative-binomial": {"context": "basket", "family": "negative-binomial"},
}
INGREDIENTS = (
    "context",
    "family",
    "link",
    "combine",
    "structure",
    "prior",
    "zeros",
    "intercept",
    "intercept_prior",
)


@dataclass(frozen=True)
class Simulation:
    """Simulated data and the model that they come from.

    Attributes
    ----------
    data : Dataset
    parameters : Parameters
        The true rho, alpha and intercept.
    spec : Spec
        The ingredients of the model.
    sampler : {"gibbs", "sequential"}
        "sequential": every observation was drawn once, given a context that was already there,
        so the data follow the conditionals exactly. "gibbs": all observations were redrawn in
        sweeps given the current values of the others. Conditionals need not be those of any
        joint distribution; each then holds only approximately after the sweeps have settled.
    """

    data: Dataset
    parameters: Parameters
    spec: Spec
    sampler: Literal["gibbs", "sequential"]


def simulate(  # noqa: PLR0913 - every size of the data is its own keyword
    model: str | Spec = "p-emb",
    *,
    n_rows: int,
    n_entities: int,
    n_components: int,
    seed: int | np.random.Generator = 0,
    row_size: float | None = None,
    strength: float = 1.0,
    sweeps: int = 8,
    n_dims: int = 1,
    positions: ArrayLike | None = None,
    dtype: str = "float64",
    **ingredients: Any,
) -> Simulation:
    """Draw parameters and data of a model.

    Parameters
    ----------
    model : str or Spec, default="p-emb"
        "g-emb", "ng-emb", "p-emb", "ap-emb", "b-emb", "categorical" or "negative-binomial".
    n_rows, n_entities, n_components : int
        Numbers T of rows, N of entities and K of components.
    seed : int or Generator, default=0
        The same seed gives the same data.
    row_size : float, optional
        Average sum of a row of counts or of zeros and ones; by default min(8, N / 3) if the
        context is a basket, else 0.3 N.
    strength : float, default=1.0
        Strength of the effects of contexts; 1 gives a clear signal and stable draws.
    sweeps : int, default=8
        Number of Gibbs sweeps, if the sampler needs them.
    n_dims : int, default=1
        Numbers D per observation.
    positions : array of shape (N, p), optional
        For contexts of neighbors; by default uniform in a cube.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the data.
    **ingredients
        As in `Embedding`: context, family, link, prior, ... replace those of `model`.

    Returns
    -------
    Simulation

    Examples
    --------
    >>> trips = simulate("p-emb", n_rows=100, n_entities=12, n_components=2, seed=0)
    >>> trips.data.shape, trips.parameters.rho.shape, trips.sampler
    ((100, 12), (12, 2), 'gibbs')
    """
    spec = resolve_model(model, ingredients)
    sizes = {"n_rows": n_rows, "n_entities": n_entities, "n_components": n_components}
    for name, value in {**sizes, "sweeps": sweeps, "n_dims": n_dims}.items():
        check_integer(name, value, 2 if name == "n_entities" else 1)
    _check_model(spec, row_size, strength, dtype)
    rng = _generator(seed)
    empty = Dataset(
        np.zeros((n_rows, n_entities, n_dims) if n_dims > 1 else (n_rows, n_entities)),
        positions=_positions(spec.context, positions, n_entities, rng),
    )
    bound = spec.context.bind(empty)
    space = ParameterSpace(spec, n_entities, bound.n_slots, n_dims, n_components)
    if row_size is None:
        row_size = min(8.0, n_entities / 3.0) if spec.context.rest_of_row else 0.3 * n_entities
    popularity = Popularity.draw(spec, n_entities * n_dims, row_size, rng)
    plan = Plan(space, empty, popularity, strength, sweeps, np.dtype(dtype), row_size)
    values, parameters, exact = _sample(plan, bound, rng)
    data = Dataset(values, positions=empty.positions)
    return Simulation(data, parameters, spec, "sequential" if exact else "gibbs")


def resolve_model(model: str | Spec, ingredients: dict[str, Any]) -> Spec:
    """The checked ingredients of a named model, some of them replaced."""
    for name in ingredients:
        if name not in INGREDIENTS:
            raise ParameterError(f"unknown ingredient {name!r}; {suggest(name, INGREDIENTS)}")
    if isinstance(model, Spec):
        if ingredients:
            raise ParameterError("a Spec is complete: pass a Spec or ingredients, not both")
        model.check()
        return model
    if not isinstance(model, str):
        raise InputTypeError(f"model must be a name or a Spec, got {model!r}")
    if model not in MODELS:
        raise ParameterError(f"unknown model {model!r}; {suggest(model, MODELS)}")
    return Spec.resolve(**{**MODELS[model], **ingredients})


def _sample(
    plan: Plan, bound: BoundContext, rng: np.random.Generator
) -> tuple[Any, Parameters, bool]:
    """Values, parameters, and whether every value was drawn exactly once."""
    if plan.space.spec.context.rest_of_row and bound.shares_rows:
        return *sample_rows(plan, rng), False
    graph = graph_of(bound)
    if graph is None:
        return *sample_entities(plan, rng), False
    return *sample_graph(plan, graph, rng), graph.causal


def _check_model(spec: Spec, row_size: float | None, strength: float, dtype: str) -> None:
    if spec.combine.reverse:
        raise ParameterError(
            "combine='reverse' defines several conditionals of one observation, which cannot all "
            "be sampled: simulate the linear model"
        )
    if spec.terms:
        raise ParameterError(
            f"simulate draws rows that have no columns, which the term {spec.terms[0]!r} needs: "
            "leave the terms out"
        )
    if spec.structure.grouped:
        raise ParameterError(
            f"simulate draws rows that have no columns, which {spec.structure!r} needs: simulate "
            "structure='per-entity', once per group"
        )
    if spec.family.softmax and not spec.context.rest_of_row:
        raise ParameterError("the categorical family needs a row context: context='basket'")
    counts = spec.family.support.low == 0
    if not counts and spec.context.scale == "total":
        raise ParameterError(
            f"scale='total' needs data >= 0, but {spec.family.name()} data can be negative; "
            "use scale='items' or scale='none'"
        )
    if row_size is not None:
        if not counts:
            raise ParameterError("row_size is for counts and binary data")
        check_number("row_size", row_size, above=0)
    check_number("strength", strength, above=0)
    if not counts and strength >= 1.4:
        raise ParameterError(f"strength must be below 1.4 for real numbers, got {strength}")
    if dtype not in ("float32", "float64"):
        raise ParameterError(f"dtype must be float32 or float64, got {dtype!r}")


def _generator(seed: object) -> np.random.Generator:
    if isinstance(seed, np.random.Generator):
        return seed
    check_integer("seed", seed, 0)
    return np.random.default_rng(seed)  # type: ignore[arg-type]


def _positions(
    context: Context, positions: ArrayLike | None, size: int, rng: np.random.Generator
) -> Any:
    if positions is not None:
        return positions
    return rng.random((size, 3)) if _needs_positions(context) else None


def _needs_positions(context: Context) -> bool:
    options = context.get_params(deep=False)
    if "positions" in options:
        return options["positions"] is None
    inner = [option for option in options.values() if isinstance(option, Context)]
    return any(map(_needs_positions, inner))
