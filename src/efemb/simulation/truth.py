"""True parameters: random vectors at a scale at which the conditionals can be sampled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from efemb._typing import Floats
from efemb.model.families import Categorical
from efemb.model.links import Link
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.simulation.graphs import Graph
from efemb.simulation.stability import GAIN, graph_factor, row_factor

INTERCEPT_PART = 0.2  # of the mean of an additive model at strength 1; the context gives the rest


@dataclass(frozen=True)
class Popularity:
    """Wanted mean of every number, and the inner product that gives it."""

    mean: Floats
    u: Floats

    @classmethod
    def draw(cls, spec: Spec, size: int, row_size: float, rng: np.random.Generator) -> Popularity:
        """Means that fall off like those of items in a shop; near 0 for real numbers."""
        if spec.family.support.low != 0:
            mean = np.zeros(size) if spec.positive_intercept else rng.normal(0.0, 0.1, size)
            return cls(mean, inverse(spec.link, spec.family.predictor(mean)))
        weight = rng.permutation(1.0 / (np.arange(size) + 1.0 + size / 20.0))
        mean = row_size * weight / weight.sum()
        mean = np.minimum(mean, 0.5 * spec.family.support.high)
        return cls(mean, inverse(spec.link, spec.family.predictor(mean)))

    def response(self, spec: Spec) -> Floats:
        """Change of the mean for a change of u, about the wanted means."""
        if spec.family.support.low != 0 or spec.link.needs_positive:
            return np.ones(self.mean.shape)
        return self.mean * (1.0 - self.mean / spec.family.support.high)


def inverse(link: Link, v: Floats) -> Floats:
    """The u with f(u) = v, by bisection in [-40, 40]; the nearest end where there is none."""
    if link.name() == "identity":
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
        # Weights rho_n . alpha_m that do not depend on the order of n and m: where n and m are
        # in each other's contexts, their conditionals then agree with a joint distribution.
        return _apart(rho) if spec.positive_rho else _indefinite(rho, _lean(spec))
    return rho, alpha


def _apart(rho: Floats) -> tuple[Floats, Floats]:
    """Symmetric positive weights; reversed, because sparse vectors then have a small rho . alpha.

    No model predicts an observation from itself, but the normalised score gives every context
    member a share that holds its own rho_n . alpha_n.
    """
    return rho, rho[:, ::-1].copy()


def _lean(spec: Spec) -> float:
    """An entity that is left out with all its units is never in its own context: lean on that."""
    return 1.4 if isinstance(spec.family, Categorical) else 1.0


def _indefinite(rho: Floats, lean: float) -> tuple[Floats, Floats]:
    """Symmetric weights of both signs; rho_n . alpha_n = 0, or < 0 if lean > 1 (K > 1)."""
    minus = np.arange(rho.shape[1]) % 2 == 1
    if minus.any():
        norms = [
            np.sqrt((rho[:, part] ** 2).sum(axis=1, keepdims=True)) for part in (~minus, minus)
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
    """Parameters of a model on rows whose average context has the wanted means."""
    spec = space.spec
    rho, alpha = draw_vectors(space, rng)
    if spec.link.needs_positive:
        return _additive(space, popularity, strength, rho, alpha)
    factor = strength * row_factor(space, popularity.response(spec), rho, alpha)
    rho, alpha = rho * np.sqrt(factor), alpha * np.sqrt(factor)
    alpha = rho if spec.structure.tied else alpha
    return Parameters(rho, alpha, _intercept(space, popularity))


def _additive(
    space: ParameterSpace, popularity: Popularity, strength: float, rho: Floats, alpha: Floats
) -> Parameters:
    """Means that are sums: the context gives a part of each, the intercept the rest."""
    part = 1.0 - INTERCEPT_PART**strength if space.spec.intercept else 1.0
    mean = popularity.mean
    probe = space.vectors(Parameters(rho, alpha, None))
    # "none" sums a whole row, the other scales average its members.
    share = mean if space.spec.context.scale == "none" else mean / mean.sum()
    typical = probe.target @ (share @ probe.bag)
    ratio = part * mean / typical
    if space.plain:
        rho = rho * ratio[:, None]
    else:
        rho = rho * float(np.median(ratio))
        alpha = rho if space.spec.structure.tied else alpha
    return Parameters(rho, alpha, _intercept(space, popularity, (1.0 - part) * mean))


def graph_parameters(
    space: ParameterSpace,
    graph: Graph,
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


def corrected(parameters: Parameters, spec: Spec, wanted: Floats, found: Floats, n: int) -> None:
    """Move the parameters so that the means come nearer to the wanted ones, in place."""
    if spec.family.support.low != 0 or isinstance(spec.family, Categorical):
        return
    if spec.link.needs_positive and spec.context.scale != "none":
        # Rows that lost their context lower all means alike.
        ratio = np.clip(wanted.sum() / max(found.sum(), 1e-12), 0.5, 2.0)
        parameters.rho *= ratio
        if parameters.intercept is not None:
            parameters.intercept *= ratio
    elif parameters.intercept is not None and not spec.positive_intercept:
        # Five pseudo-counts keep entities that are hardly ever drawn from jumping.
        step = np.log((wanted * n + 5.0) / (found * n + 5.0))
        step = np.clip(step, -1.0, 1.0).reshape(parameters.intercept.shape)
        np.add(parameters.intercept, step, out=parameters.intercept)
