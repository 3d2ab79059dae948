"""The samplers: rows at once, groups of nodes of a graph at once, or entity by entity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from efemb._typing import Floats
from efemb.data.dataset import Dataset
from efemb.model.families import Categorical
from efemb.model.parameters import Parameters
from efemb.model.predictor import Predictor
from efemb.model.space import ParameterSpace
from efemb.simulation.graphs import Graph, GroupProducts
from efemb.simulation.rows import RowSampler, UnitSampler, draw
from efemb.simulation.truth import Popularity, corrected, graph_parameters, row_parameters

BLOCK_NUMBERS = 1 << 22
TUNING_SWEEPS = 10


@dataclass(frozen=True)
class Plan:
    """What is to be drawn."""

    space: ParameterSpace
    empty: Dataset
    popularity: Popularity
    strength: float
    sweeps: int
    dtype: Any
    row_size: float


def rows(plan: Plan, rng: np.random.Generator) -> tuple[Any, Parameters]:
    """Basket contexts: Gibbs sweeps over the entities of blocks of rows; returns a csr_array."""
    from scipy.sparse import csr_array, vstack

    n_rows, size = plan.empty.n_rows, plan.empty.n_entities
    parameters = row_parameters(plan.space, plan.popularity, plan.strength, rng)
    block = max(256, BLOCK_NUMBERS // size)
    _tune_rows(plan, parameters, min(max(n_rows, 500), block, 5000), rng)
    found = []
    for start in range(0, n_rows, block):
        x = _row_block(plan, parameters, min(block, n_rows - start), rng)
        found.append(csr_array(np.ascontiguousarray(x.T, dtype=plan.dtype)))
    return csr_array(vstack(found, format="csr")), parameters


def _row_sampler(plan: Plan, parameters: Parameters) -> RowSampler | UnitSampler:
    spec, predictor = plan.space.spec, Predictor(plan.space.vectors(parameters))
    if isinstance(spec.family, Categorical):
        return UnitSampler(spec, predictor, plan.row_size)
    return RowSampler(spec, predictor)


def _row_block(plan: Plan, parameters: Parameters, n_rows: int, rng: np.random.Generator) -> Floats:
    sampler = _row_sampler(plan, parameters)
    x = sampler.start(n_rows, plan.popularity.u, rng)
    for _ in range(plan.sweeps):
        sampler.sweep(x, rng)
    return x


def _tune_rows(plan: Plan, parameters: Parameters, n_rows: int, rng: np.random.Generator) -> None:
    """Move the intercepts until the means of the entities are about the wanted ones."""
    x = _row_sampler(plan, parameters).start(n_rows, plan.popularity.u, rng)
    for _ in range(TUNING_SWEEPS):
        _row_sampler(plan, parameters).sweep(x, rng)
        wanted = plan.popularity.mean
        corrected(parameters, plan.space.spec, wanted, x.mean(axis=1), n_rows)


def graph(plan: Plan, graph: Graph, rng: np.random.Generator) -> tuple[Floats, Parameters]:
    """List contexts: groups of nodes without edges among them are drawn at once."""
    spec = plan.space.spec
    parameters = graph_parameters(plan.space, graph, plan.popularity, plan.strength, rng)
    vectors = plan.space.vectors(parameters)
    products = GroupProducts(graph, vectors.target, vectors.bag, plan.dtype)
    entity = np.arange(graph.n_nodes) % graph.n_entities
    shape = (graph.n_nodes, graph.n_columns)
    x = np.zeros(shape, dtype=plan.dtype)
    if not graph.causal:
        x[:] = draw(
            plan.space.spec, np.broadcast_to(plan.popularity.u[entity][:, None], shape), rng
        )
    # Only intercepts may move here: `products` holds those of the vectors.
    tuned = not (graph.causal or spec.link.needs_positive or spec.family.support.low != 0)
    for _ in range(TUNING_SWEEPS if tuned else 0):
        _passage(plan, graph, products, parameters, x, rng, sweeps=1)
        found = x.reshape(-1, graph.n_entities, graph.n_columns).mean(axis=(0, 2))
        corrected(parameters, spec, plan.popularity.mean, found, plan.empty.n_rows)
    _passage(plan, graph, products, parameters, x, rng, sweeps=plan.sweeps)
    values = x.T if graph.n_columns > 1 else x.reshape(plan.empty.n_rows, graph.n_entities)
    return np.ascontiguousarray(values), parameters


def _passage(
    plan: Plan,
    graph: Graph,
    products: GroupProducts,
    parameters: Parameters,
    x: Floats,
    rng: np.random.Generator,
    *,
    sweeps: int,
) -> None:
    predictor = Predictor(plan.space.vectors(parameters))
    for number in graph.passages(sweeps):
        nodes = graph.groups[number]
        u = predictor.shift(products(number, x).T, nodes % graph.n_entities).T
        x[nodes] = draw(plan.space.spec, u, rng)


def anything(plan: Plan, rng: np.random.Generator) -> tuple[Floats, Parameters]:
    """Any context, through its own `products`: one entity of all rows at a time.

    Observations of one entity in different rows are drawn together even where they depend on
    each other; the sweeps make up for it.
    """
    spec, space = plan.space.spec, plan.space
    parameters = row_parameters(space, plan.popularity, plan.strength, rng)
    predictor = Predictor(space.vectors(parameters))
    n_rows, size, n_dims = plan.empty.n_rows, plan.empty.n_entities, plan.empty.n_dims
    u = np.broadcast_to(plan.popularity.u, (n_rows, size * n_dims))
    x = draw(plan.space.spec, u, rng).reshape(plan.empty.shape)
    every = np.arange(n_rows)
    for _ in range(plan.sweeps):
        for n in range(size):
            bound = spec.context.bind(Dataset(x, positions=plan.empty.positions))
            u = predictor.cells(spec, bound, every)
            own = draw(plan.space.spec, u[:, n * n_dims : (n + 1) * n_dims], rng)
            x[:, n] = own.reshape(x[:, n].shape)
    return x.astype(plan.dtype), parameters
