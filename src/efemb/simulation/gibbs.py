"""Gibbs sweeps: over rows at once, over groups of nodes of a graph, or entity by entity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from efemb._typing import Floats, Ints
from efemb.data.dataset import Dataset
from efemb.errors import DivergenceError, EfembError
from efemb.model.contexts.base import or_one
from efemb.model.objective import natural_parameter
from efemb.model.parameters import Parameters
from efemb.model.predictive import invert_tail
from efemb.model.predictor import Predictor
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.simulation.observation_graph import GroupProducts, ObservationGraph
from efemb.simulation.truth import Popularity, graph_parameters, row_parameters, tune

BLOCK_NUMBERS = 1 << 22
LARGEST = 1e6
TUNING_SWEEPS = 10
Draw = Callable[[Spec, Floats, Ints, np.random.Generator], Floats]


@dataclass(frozen=True)
class Plan:
    """Sizes and settings of a draw."""

    space: ParameterSpace
    empty: Dataset
    popularity: Popularity
    strength: float
    sweeps: int
    dtype: Any
    row_size: float


def draw(spec: Spec, u: Floats, entities: Ints, rng: np.random.Generator) -> Floats:
    """Observations with linear predictors u, of entities that broadcast against it."""
    family = spec.family.at(entities)
    try:
        x = family.sample(natural_parameter(family, spec.link, u), rng)
    except EfembError:
        raise
    except ValueError:  # NumPy rejects rates that no integer can represent
        x = np.full(1, np.inf)
    return check_bounded(x)


def draw_by_inversion(spec: Spec, u: Floats, entities: Ints, rng: np.random.Generator) -> Floats:
    """Counts with linear predictors u; for the same random numbers, they never fall as u grows."""
    v = spec.link(np.asarray(u, dtype=np.float64))
    tail = spec.family.at(entities).tail
    return check_bounded(invert_tail(tail, v, rng.random(np.shape(u))))


def check_bounded(x: Floats) -> Floats:
    """Return the draws, unless they exceed any plausible observation."""
    if not bool(np.abs(x).max(initial=0.0) < LARGEST):
        raise DivergenceError(
            "the conditionals of this model reinforce one another and the draws grow without "
            "bound: lower strength or row_size, or use scale='items' or 'total'"
        )
    return x


# -- basket contexts: the entities of many rows at once ----------------------------------------


def sample_rows(plan: Plan, rng: np.random.Generator) -> tuple[Any, Parameters]:
    """Basket contexts: sweeps over the entities of blocks of rows; returns a csr_array."""
    n_rows, n_entities = plan.empty.n_rows, plan.empty.n_entities
    parameters = row_parameters(plan.space, plan.popularity, plan.strength, rng)
    block_size = max(256, BLOCK_NUMBERS // n_entities)
    _tune_rows(plan, parameters, min(max(n_rows, 500), block_size, 5000), rng)
    blocks = []
    for start in range(0, n_rows, block_size):
        x = _sample_block(plan, parameters, min(block_size, n_rows - start), rng)
        blocks.append(csr_array(np.ascontiguousarray(x.T, dtype=plan.dtype)))
    return csr_array(vstack(blocks, format="csr")), parameters


def _row_sampler(plan: Plan, parameters: Parameters) -> RowSampler | UnitSampler:
    spec, predictor = plan.space.spec, Predictor(plan.space.vectors(parameters))
    if spec.family.softmax:
        return UnitSampler(spec, predictor, plan.row_size)
    return RowSampler(spec, predictor)


def _sample_block(
    plan: Plan, parameters: Parameters, n_rows: int, rng: np.random.Generator
) -> Floats:
    sampler = _row_sampler(plan, parameters)
    x = sampler.start(n_rows, plan.popularity.u, rng)
    for _ in range(plan.sweeps):
        sampler.sweep(x, rng)
    return x


def _tune_rows(plan: Plan, parameters: Parameters, n_rows: int, rng: np.random.Generator) -> None:
    """Move the intercepts until the means of the entities are close to the target ones."""
    x = _row_sampler(plan, parameters).start(n_rows, plan.popularity.u, rng)
    for _ in range(TUNING_SWEEPS):
        _row_sampler(plan, parameters).sweep(x, rng)
        tune(parameters, plan.space.spec, plan.popularity.mean, x.mean(axis=1), n_rows)


@dataclass
class RowSampler:
    """x_tn | the other entities of row t, for a block of rows; values are (entities, rows).

    added : (entities, rows) added to u by further terms;  draw : how observations are drawn
    """

    spec: Spec
    predictor: Predictor
    added: Floats | None = None
    draw: Draw = draw

    def start(self, n_rows: int, typical: Floats, rng: np.random.Generator) -> Floats:
        """Independent draws at the typical linear predictor of each entity."""
        u = np.repeat(typical[:, None], n_rows, axis=1)
        return draw(self.spec, u, np.arange(len(typical))[:, None], rng)

    def own(self, x: Floats) -> Floats:
        """The amount that an observation adds to the context sums of others."""
        return (x != 0).astype(np.float64) if self.spec.context.binary else x

    def share(self, own: Floats) -> Floats:
        """The amount that an observation adds to the divisor."""
        scale = self.spec.context.scale
        if scale == "total":
            return own
        return np.asarray((own != 0) if scale == "items" else np.zeros(own.shape), np.float64)

    def sweep(self, x: Floats, rng: np.random.Generator) -> None:
        """Redraw every entity once, in order, in place."""
        target, bag = self.predictor.factors.target, self.predictor.factors.bag
        own = self.own(x)
        sums = own.T @ bag
        divisor = self.share(own).sum(axis=0)
        for n in range(len(x)):
            before = self.own(x[n].copy())  # x[n] is overwritten below
            rest = or_one(divisor - self.share(before) + self.spec.context.pseudo_count)
            added = 0.0 if self.added is None else self.added[n]
            u = self.predictor.leave_sum(sums @ target[n], before, rest, n, added)
            x[n] = self.draw(self.spec, u, np.array(n), rng)
            after = self.own(x[n])
            changed = np.flatnonzero(after != before)
            sums[changed] += (after - before)[changed, None] * bag[n]
            divisor[changed] += (self.share(after) - self.share(before))[changed]


@dataclass
class UnitSampler:
    """Categorical rows: each unit is redrawn among the entities given the row without its entity.

    Values are (entities, rows).

    added : (entities, rows) added to u by further terms
    """

    spec: Spec
    predictor: Predictor
    row_size: float = 2.0
    added: Floats | None = None

    def start(self, n_rows: int, typical: Floats, rng: np.random.Generator) -> Floats:
        """Rows of two units or more, drawn by popularity."""
        return self.fill(2 + rng.poisson(max(self.row_size - 2.0, 0.0), n_rows), typical, rng)

    def fill(self, sizes: Ints, typical: Floats, rng: np.random.Generator) -> Floats:
        """Rows with given numbers of units, drawn by popularity."""
        n_rows = len(sizes)
        chance = np.exp(typical - typical.max())
        units = rng.choice(len(typical), sizes.sum(), p=chance / chance.sum())
        x = np.zeros((len(typical), n_rows))
        np.add.at(x, (units, np.repeat(np.arange(n_rows), sizes)), 1.0)
        return x

    def sweep(self, x: Floats, rng: np.random.Generator) -> None:
        """Redraw every unit once, in place."""
        row_of_entry, entity = np.nonzero(x.T)
        n_units = x.T[row_of_entry, entity].astype(np.int64)
        units, row = np.repeat(entity, n_units), np.repeat(row_of_entry, n_units)
        turn_of_unit = np.arange(len(row)) - np.searchsorted(row, row)
        for turn in range(int(turn_of_unit.max(initial=-1)) + 1):
            drawn = turn_of_unit == turn
            self._redraw(x, units[drawn], row[drawn], rng)

    def _redraw(self, x: Floats, units: Ints, rows: Ints, rng: np.random.Generator) -> None:
        """One unit in each of some rows."""
        context = x[:, rows]
        context[units, np.arange(len(rows))] = 0.0
        own = (context != 0).astype(np.float64) if self.spec.context.binary else context
        scale = self.spec.context.scale
        divisor: Floats = np.ones(len(rows))
        if scale != "none":
            total = ((own != 0) if scale == "items" else own).sum(axis=0)
            divisor = or_one(total + self.spec.context.pseudo_count)
        u = self.predictor.apply(own.T @ self.predictor.factors.bag / divisor[:, None])
        if self.added is not None:
            u += self.added[:, rows].T
        winner = np.argmax(u + rng.gumbel(size=u.shape), axis=1)
        x[units, rows] -= 1.0
        x[winner, rows] += 1.0


# -- contexts that are lists of members --------------------------------------------------------


def sample_graph(
    plan: Plan, graph: ObservationGraph, rng: np.random.Generator
) -> tuple[Floats, Parameters]:
    """List contexts: groups of nodes without edges among them are drawn at once."""
    spec = plan.space.spec
    parameters = graph_parameters(plan.space, graph, plan.popularity, plan.strength, rng)
    vectors = plan.space.vectors(parameters)
    products = GroupProducts(graph, vectors.target, vectors.bag, plan.dtype)
    entity = np.arange(graph.n_nodes)[:, None] % graph.n_entities
    shape = (graph.n_nodes, graph.n_columns)
    x = np.zeros(shape, dtype=plan.dtype)
    if not graph.causal:
        x[:] = draw(spec, np.broadcast_to(plan.popularity.u[entity], shape), entity, rng)
    # Only intercepts may change here: `products` depends on the vectors.
    tuned = not (graph.causal or spec.link.needs_positive or spec.family.support.low != 0)
    for _ in range(TUNING_SWEEPS if tuned else 0):
        _sweep_graph(plan, graph, products, parameters, x, rng, sweeps=1)
        means = x.reshape(-1, graph.n_entities, graph.n_columns).mean(axis=(0, 2))
        tune(parameters, spec, plan.popularity.mean, means, plan.empty.n_rows)
    _sweep_graph(plan, graph, products, parameters, x, rng, sweeps=plan.sweeps)
    values = x.T if graph.n_columns > 1 else x.reshape(plan.empty.n_rows, graph.n_entities)
    return np.ascontiguousarray(values), parameters


def _sweep_graph(
    plan: Plan,
    graph: ObservationGraph,
    products: GroupProducts,
    parameters: Parameters,
    x: Floats,
    rng: np.random.Generator,
    *,
    sweeps: int,
) -> None:
    predictor = Predictor(plan.space.vectors(parameters))
    for group in graph.schedule(sweeps):
        nodes = graph.groups[group]
        entities = nodes % graph.n_entities
        u = predictor.shift(products(group, x).T, entities).T
        x[nodes] = draw(plan.space.spec, u, entities[:, None], rng)


# -- any other context --------------------------------------------------------------------------


def sample_entities(plan: Plan, rng: np.random.Generator) -> tuple[Floats, Parameters]:
    """Any context, through the u of all its cells: one entity of all rows at a time.

    Observations of one entity in different rows are drawn together even if they depend on
    each other; the sweeps correct for it.
    """
    spec, space = plan.space.spec, plan.space
    parameters = row_parameters(space, plan.popularity, plan.strength, rng)
    predictor = Predictor(space.vectors(parameters))
    n_rows, n_entities, n_dims = plan.empty.n_rows, plan.empty.n_entities, plan.empty.n_dims
    u = np.broadcast_to(plan.popularity.u, (n_rows, n_entities * n_dims))
    x = draw(spec, u, np.arange(n_entities * n_dims) // n_dims, rng).reshape(plan.empty.shape)
    rows = np.arange(n_rows)
    for _ in range(plan.sweeps):
        for n in range(n_entities):
            bound = spec.context.bind(Dataset(x, positions=plan.empty.positions))
            u = predictor.cells(spec, bound, rows)
            drawn = draw(spec, u[:, n * n_dims : (n + 1) * n_dims], np.array(n), rng)
            x[:, n] = drawn.reshape(x[:, n].shape)
    return x.astype(plan.dtype), parameters
