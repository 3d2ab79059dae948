"""simulate: data from the conditionals of any model, with the parameters that made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from efemb.data.dataset import Dataset
from efemb.errors import InputTypeError, ParameterError
from efemb.model.contexts import Basket, BoundContext, Context, Neighbors
from efemb.model.families import Categorical
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.simulation import samplers
from efemb.simulation.graphs import graph_of
from efemb.simulation.models import spec_of
from efemb.simulation.samplers import Plan
from efemb.simulation.truth import Popularity


@dataclass(frozen=True)
class Simulation:
    """Simulated data and what made them.

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
        sweeps given the present values of the others. Conditionals need not agree with any joint
        distribution; sweeps then settle where each conditional holds only approximately.
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
    model : str or Spec
        "g-emb", "ng-emb", "p-emb", "ap-emb", "b-emb", "categorical" or "negative-binomial".
    n_rows, n_entities, n_components : int
        T, N and K.
    seed : int or Generator
        The same seed gives the same data.
    row_size : float, optional
        Average sum of a row of counts or of zeros and ones; by default min(8, N / 3) where the
        context is a basket, else 0.3 N.
    strength : float
        How much contexts matter; 1 is clear and still stable.
    sweeps : int
        Gibbs sweeps, where the sampler needs them.
    n_dims : int
        D numbers for each observation.
    positions : array (N, p), optional
        For contexts of neighbours; by default uniform in a cube.
    dtype : {"float64", "float32"}
        Of the data.
    **ingredients
        As in `Embedding`: context, family, link, prior, ... replace those of `model`.

    Returns
    -------
    Simulation

    Examples
    --------
    >>> found = simulate("p-emb", n_rows=100, n_entities=12, n_components=2, seed=0)
    >>> found.data.shape, found.parameters.rho.shape, found.sampler
    ((100, 12), (12, 2), 'gibbs')
    """
    spec = spec_of(model, ingredients)
    sizes = {"n_rows": n_rows, "n_entities": n_entities, "n_components": n_components}
    for name, value in {**sizes, "sweeps": sweeps, "n_dims": n_dims}.items():
        _check_size(name, value, 2 if name == "n_entities" else 1)
    _check_model(spec, row_size, strength, dtype)
    rng = _generator(seed)
    empty = Dataset(
        np.zeros((n_rows, n_entities, n_dims) if n_dims > 1 else (n_rows, n_entities)),
        positions=_positions(spec.context, positions, n_entities, rng),
    )
    bound = spec.context.bind(empty)
    space = ParameterSpace(spec, n_entities, bound.n_slots, n_dims, n_components)
    if row_size is None:
        baskets = isinstance(spec.context, Basket)
        row_size = min(8.0, n_entities / 3.0) if baskets else 0.3 * n_entities
    popularity = Popularity.draw(spec, n_entities * n_dims, row_size, rng)
    plan = Plan(space, empty, popularity, strength, sweeps, np.dtype(dtype), row_size)
    values, parameters, exact = _drawn(plan, bound, rng)
    data = Dataset(values, positions=empty.positions)
    return Simulation(data, parameters, spec, "sequential" if exact else "gibbs")


def _drawn(
    plan: Plan, bound: BoundContext, rng: np.random.Generator
) -> tuple[Any, Parameters, bool]:
    """Values, parameters, and whether every value was drawn once, exactly."""
    if isinstance(plan.space.spec.context, Basket) and bound.n_dims == 1:
        return *samplers.rows(plan, rng), False
    graph = graph_of(bound)
    if graph is None:
        return *samplers.anything(plan, rng), False
    return *samplers.graph(plan, graph, rng), graph.causal


def _check_size(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InputTypeError(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise ParameterError(f"{name} must be at least {least}, got {value}")


def _check_model(spec: Spec, row_size: float | None, strength: float, dtype: str) -> None:
    if spec.combine.reverse:
        raise ParameterError(
            "combine='reverse' gives one observation many conditionals, which cannot all be "
            "sampled: simulate the linear model"
        )
    if spec.terms:
        raise ParameterError(
            f"simulate draws rows that have no columns, which the term {spec.terms[0]!r} needs: "
            "leave the terms out"
        )
    if isinstance(spec.family, Categorical) and not isinstance(spec.context, Basket):
        raise ParameterError("the categorical family needs a row context: context='basket'")
    counts = spec.family.support.low == 0
    if not counts and spec.context.scale == "total":
        raise ParameterError(
            f"scale='total' needs data >= 0, but {spec.family.name()} gives any number; "
            "use scale='items' or scale='none'"
        )
    if row_size is not None:
        if not counts:
            raise ParameterError("row_size is for counts and binary data")
        _check_positive("row_size", row_size)
    _check_positive("strength", strength)
    if not counts and strength >= 1.4:
        raise ParameterError(f"strength must be below 1.4 for real numbers, got {strength}")
    if dtype not in ("float32", "float64"):
        raise ParameterError(f"dtype must be float32 or float64, got {dtype!r}")


def _check_positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise InputTypeError(f"{name} must be a number > 0, got {value!r}")
    if not np.isfinite(value) or not value > 0:
        raise ParameterError(f"{name} must be > 0, got {value!r}")


def _generator(seed: object) -> np.random.Generator:
    if isinstance(seed, np.random.Generator):
        return seed
    _check_size("seed", seed, 0)
    return np.random.default_rng(seed)  # type: ignore[arg-type]


def _positions(
    context: Context, positions: ArrayLike | None, size: int, rng: np.random.Generator
) -> Any:
    if positions is not None:
        return positions
    return rng.random((size, 3)) if _needs_positions(context) else None


def _needs_positions(context: Context) -> bool:
    if isinstance(context, Neighbors):
        return context.positions is None
    inner = context.get_params(deep=False).values()
    return any(_needs_positions(one) for one in inner if isinstance(one, Context))
