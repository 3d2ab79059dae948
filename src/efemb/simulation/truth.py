"""True parameters: random vectors at a scale at which the conditionals can be sampled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from efemb._typing import Floats
from efemb.model.links import Link
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.simulation.observation_graph import ObservationGraph

GAIN = 0.7  # largest multiplier of a deviation from the mean in one sweep
AVERAGED = 2.0  # standard deviation of rho_n . alpha_m if the context is a weighted average
# If means are exponentials of counts, no single weight may be larger than this.
LARGEST_WEIGHT = {"none": 0.3, "items": 1.0}
INTERCEPT_PART = 0.2  # share of an additive model's mean at strength 1; the rest is the context


@dataclass(frozen=True)
class Popularity:
    """Target mean of every number, and the linear predictor that gives it."""

    mean: Floats
    u: Floats

    @classmethod
    def draw(cls, spec: Spec, size: int, row_size: float, rng: np.random.Generator) -> Popularity:
        """Means that decay like those of items in a shop; near 0 for real numbers."""
        if spec.family.support.low != 0:
            mean = np.zeros(size) if spec.positive_intercept else rng.normal(0.0, 0.1, size)
            return cls(mean, invert(spec.link, spec.family.predictor(mean)))
        weight = rng.permutation(1.0 / (np.arange(size) + 1.0 + size / 20.0))
        mean = row_size * weight / weight.sum()
        mean = np.minimum(mean, 0.5 * spec.family.support.high)
        return cls(mean, invert(spec.link, spec.family.predictor(mean)))

    def response(self, spec: Spec) -> Floats:
        """Change of the mean for a change of u, at the target means."""
        if spec.family.support.low != 0 or spec.link.needs_positive:
            return np.ones(self.mean.shape)
        return self.mean * (1.0 - self.mean / spec.family.support.high)


def invert(link: Link, v: Floats) -> Floats:
    """The u with f(u) = v, by bisection in [-40, 40]; the nearest end if there is none."""
    if link.is_identity:
        return v
    low, high = np.full(v.shape, -40.0), np.full(v.shape, 40.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        below = link(middle) < v
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(0.5 * (low + high))


def draw_vectors(space: ParameterSpace, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Rho and alpha whose inner products have a standard deviation (a mean, if positive) of 1."""
    spec = space.spec
    rho_shape, alpha_shape = (array.shape for array in space.layout[:2])
    size = float(space.k) ** -0.25
    rho = _draw(rho_shape, size, spec.positive_rho, rng)
    alpha = _draw(alpha_shape, size, spec.positive_alpha, rng)
    if spec.structure.tied:
        return rho, rho
    if spec.positive_rho == spec.positive_alpha and rho.shape == alpha.shape:
        # Weights rho_n . alpha_m that do not depend on the order of n and m: if n and m are in
        # each other's contexts, their conditionals then agree with a joint distribution.
        return _reverse_columns(rho) if spec.positive_rho else _indefinite(rho, _lean(spec))
    return rho, alpha


def _reverse_columns(rho: Floats) -> tuple[Floats, Floats]:
    """Symmetric positive weights; reversed, because sparse vectors then have a small rho . alpha.

    No model predicts an observation from itself, but the normalized score gives every context
    member a share that depends on its own rho_n . alpha_n.
    """
    return rho, rho[:, ::-1].copy()


def _lean(spec: Spec) -> float:
    """Above 1 if all units of an entity leave the context, so that it never predicts itself."""
    return 1.4 if spec.family.softmax else 1.0


def _indefinite(rho: Floats, lean: float) -> tuple[Floats, Floats]:
    """Symmetric weights of both signs; rho_n . alpha_n = 0, or < 0 if lean > 1 (K > 1)."""
    minus = np.arange(rho.shape[1]) % 2 == 1
    if minus.any():
        norms = [
            np.sqrt((rho[:, columns] ** 2).sum(axis=1, keepdims=True))
            for columns in (~minus, minus)
        ]
        mean = np.sqrt(norms[0] * norms[1])
        rho[:, ~minus] *= mean / norms[0] / lean
        rho[:, minus] *= lean * mean / norms[1]
    alpha = rho.copy()
    alpha[:, minus] *= -1.0
    return rho, alpha


def _draw(shape: tuple[int, ...], size: float, positive: bool, rng: np.random.Generator) -> Floats:
    if not positive:
        return rng.normal(0.0, size, shape)
    # A gamma of small shape: most numbers near 0, a few large, as in topics.
    return np.asarray(rng.gamma(0.15, 2.0, shape) * shape[1] ** -0.5 + 1e-3)


def row_parameters(
    space: ParameterSpace, popularity: Popularity, strength: float, rng: np.random.Generator
) -> Parameters:
    """Parameters of a model on rows whose average context has the target means."""
    spec = space.spec
    rho, alpha = draw_vectors(space, rng)
    if spec.link.needs_positive:
        return _additive_parameters(space, popularity, strength, rho, alpha)
    factor = strength * row_factor(space, popularity.response(spec), rho, alpha)
    rho, alpha = rho * np.sqrt(factor), alpha * np.sqrt(factor)
    alpha = rho if spec.structure.tied else alpha
    return Parameters(rho, alpha, _intercept(space, popularity))


def _additive_parameters(
    space: ParameterSpace, popularity: Popularity, strength: float, rho: Floats, alpha: Floats
) -> Parameters:
    """Means that are sums: the context contributes a part of each, the intercept the rest."""
    context_part = 1.0 - INTERCEPT_PART**strength if space.spec.intercept else 1.0
    mean = popularity.mean
    probe = space.vectors(Parameters(rho, alpha, None))
    # "none" sums a whole row, the other scales average its members.
    share = mean if space.spec.context.scale == "none" else mean / mean.sum()
    typical = probe.target @ (share @ probe.bag)
    ratio = context_part * mean / typical
    if space.plain:
        rho = rho * ratio[:, None]
    else:
        rho = rho * float(np.median(ratio))
        alpha = rho if space.spec.structure.tied else alpha
    return Parameters(rho, alpha, _intercept(space, popularity, (1.0 - context_part) * mean))


def graph_parameters(
    space: ParameterSpace,
    graph: ObservationGraph,
    popularity: Popularity,
    strength: float,
    rng: np.random.Generator,
) -> Parameters:
    """Parameters of a model on a graph whose sweeps stay bounded."""
    spec = space.spec
    rho, alpha = draw_vectors(space, rng)
    factor = strength * graph_factor(space, graph, popularity.response(spec), rho, alpha)
    rho, alpha = rho * np.sqrt(factor), alpha * np.sqrt(factor)
    alpha = rho if spec.structure.tied else alpha
    rest = (1.0 - GAIN) * popularity.mean if spec.link.needs_positive else None
    return Parameters(rho, alpha, _intercept(space, popularity, rest))


def _intercept(
    space: ParameterSpace, popularity: Popularity, value: Floats | None = None
) -> Floats | None:
    shape = space.shape_of("intercept")
    if shape is None:
        return None
    value = popularity.u if value is None else value
    if space.spec.positive_intercept:
        value = np.maximum(value, 0.05 if space.spec.family.support.low != 0 else 1e-6)
    return np.array(value, dtype=np.float64).reshape(shape)


def tune(parameters: Parameters, spec: Spec, target: Floats, observed: Floats, n_rows: int) -> None:
    """Adjust the parameters so that the means come closer to the target means, in place."""
    if spec.family.support.low != 0 or spec.family.softmax:
        return
    if spec.link.needs_positive and spec.context.scale != "none":
        # Rows without a context lower all means by the same factor.
        ratio = np.clip(target.sum() / max(observed.sum(), 1e-12), 0.5, 2.0)
        parameters.rho *= ratio
        if parameters.intercept is not None:
            parameters.intercept *= ratio
    elif parameters.intercept is not None and not spec.positive_intercept:
        # Five pseudo-counts keep entities that are hardly ever drawn from jumping.
        step = np.log((target * n_rows + 5.0) / (observed * n_rows + 5.0))
        step = np.clip(step, -1.0, 1.0).reshape(parameters.intercept.shape)
        np.add(parameters.intercept, step, out=parameters.intercept)


# -- how large weights may be, so that draws do not reinforce one another -----------------------


def explosive(spec: Spec) -> bool:
    """Whether a large observation multiplies the means of others."""
    support = spec.family.support
    return support.low == 0 and support.high == np.inf and not spec.link.needs_positive


def row_factor(space: ParameterSpace, response: Floats, rho: Floats, alpha: Floats) -> float:
    """Factor of the weights rho_n . alpha_m of a model on rows."""
    spec = space.spec
    counts = spec.family.support.low == 0
    context = spec.context
    if counts and (context.scale == "total" or (context.scale == "items" and context.binary)):
        return AVERAGED
    weights = _Weights(space, rho, alpha)
    size = space.n_entities * space.n_dims
    gain = largest_gain(lambda v: response * weights(v), size)
    members = float(space.n_entities) if context.scale == "items" and not counts else 1.0
    factor = (0.5 * GAIN if explosive(spec) else GAIN) * members / max(gain, 1e-12)
    if context.scale == "items" and counts:
        factor = AVERAGED
    if explosive(spec):
        limit = LARGEST_WEIGHT.get(context.scale, LARGEST_WEIGHT["none"])
        factor = min(factor, limit / weights.largest())
    return factor


class _Weights:
    """v -> W v with W = rho alpha' summed over all slots, without the diagonal."""

    def __init__(self, space: ParameterSpace, rho: Floats, alpha: Floats) -> None:
        vectors = space.vectors(Parameters(rho, alpha, None))
        self.target = vectors.target
        self.bag = vectors.bag.reshape(space.n_slots, -1, vectors.bag.shape[1]).sum(axis=0)
        self.own = np.einsum("nk,nk->n", self.target, self.bag)

    def __call__(self, v: Floats) -> Floats:
        return np.asarray(self.target @ (self.bag.T @ v) - self.own * v)

    def largest(self) -> float:
        """Largest absolute weight."""
        blocks = range(0, len(self.target), 1000)
        return max(float(np.abs(self.target[i : i + 1000] @ self.bag.T).max()) for i in blocks)


def graph_factor(
    space: ParameterSpace, graph: ObservationGraph, response: Floats, rho: Floats, alpha: Floats
) -> float:
    """Factor of the weights of a model on a graph."""
    vectors = space.vectors(Parameters(rho, alpha, None))
    # Weights of different rows may have any sum, and so may those of an exponential.
    careful = graph.n_columns == 1 or explosive(space.spec)
    total, largest = _entity_weights(graph, vectors, absolute=careful)
    gain = largest_gain(lambda v: response * (total @ v), graph.n_entities)
    factor = GAIN / max(gain, 1e-12)
    if explosive(space.spec):
        factor = min(factor, LARGEST_WEIGHT["none"] / max(largest, 1e-12))
    return factor


def _entity_weights(graph: ObservationGraph, vectors: Any, *, absolute: bool) -> tuple[Any, float]:
    """Weights between entities, averaged if the context averages, and the largest of them."""
    size = graph.n_entities
    total: Any = csr_array((size, size))
    largest = 0.0
    for edges in graph.parts:
        weight = edges.weights(vectors.target, vectors.bag)
        if edges.scale != "none":
            weight = weight / np.bincount(edges.owner, minlength=graph.n_nodes)[edges.owner]
        weight = np.abs(weight) if absolute else weight
        largest = max(largest, float(np.abs(weight).max(initial=0.0)))
        # Cells are counted once for each row.
        weight = weight * size / graph.n_nodes
        ends = (edges.owner % size, edges.member % size)
        total = total + csr_array((weight, ends), shape=(size, size))
    return total, largest


def largest_gain(product: Callable[[Floats], Floats], size: int) -> float:
    """Growth of a vector under repeated products: approximately the spectral radius.

    >>> round(largest_gain(lambda v: 0.5 * v, 3), 6)
    0.5
    """
    v: Floats = np.random.default_rng(0).normal(size=size)
    growth = []
    for _ in range(40):
        v = product(v / np.linalg.norm(v))
        norm = float(np.linalg.norm(v))
        if norm == 0.0:
            break
        growth.append(norm)
    # A vector that vanishes has no growth rate: its first growth is a bound.
    return float(np.exp(np.mean(np.log(growth[-20:])))) if growth else 0.0
