"""Initial parameters at the scale of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from efemb._typing import Floats
from efemb.engine.threads import cut
from efemb.model.contexts.base import BoundContext
from efemb.model.contexts.bound.entities import EntityLists
from efemb.model.contexts.bound.rows import RowBags
from efemb.model.contexts.window import WindowBags
from efemb.model.families.base import Family
from efemb.model.huffman import Huffman
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.zeros import Hierarchical, NegativeSampling, word_noise

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

BLOCK_ROWS = 64
SPREAD = 0.1  # standard deviation of the first inner products
LOG_SPREAD = 0.5  # and of the logarithms of positive vectors: less is close to a saddle


def initial_parameters(
    space: ParameterSpace, bound: BoundContext, weight: Floats, rng: np.random.Generator
) -> Parameters:
    """Small random vectors, intercepts that reproduce the weighted mean of each entity."""
    if isinstance(bound, WindowBags):
        mean = bound.column_means()
    else:
        mean = column_means(bound.data, weight)
        if space.spec.noise_offset(mean) is not None:  # means are shares of their rows
            mean = mean / mean.sum()
    shapes = {array.name: array.shape for array in space.layout}
    if space.spec.positive_rho or space.spec.positive_alpha:
        rho, alpha = _positive(space, bound, weight, mean, rng)
    else:
        size = _scale(space.k, bound)
        rho, alpha = (
            _random(rng, size, shape, bound) for shape in (shapes["rho"], shapes["alpha"])
        )
    if space.spec.structure.tied:
        alpha = rho
    intercept = None
    if "intercept" in shapes:
        intercept = _intercepts(space, mean).reshape(shapes["intercept"])
        if isinstance(bound, WindowBags):
            intercept = _noisy_intercepts(space, bound, intercept)
    position = np.ones(shapes["position"]) if "position" in shapes else None
    return Parameters(rho, alpha, intercept, position, _of_terms(space, rng))


def _of_terms(space: ParameterSpace, rng: np.random.Generator) -> dict[str, Floats]:
    """Small random numbers, of the size that each term asks for."""
    return {
        f"{term.label}.{array.name}": rng.normal(0.0, array.spread, array.shape)
        for term in space.spec.terms
        for array in term.arrays(space.n_entities)
    }


def _random(
    rng: np.random.Generator, size: float, shape: tuple[int, ...], bound: BoundContext
) -> Floats:
    """Numbers with mean 0 and standard deviation `size`."""
    if not isinstance(bound, WindowBags):
        return rng.normal(0.0, size, shape)
    # One pass over a text is short and its vectors are many: normal ones would take four times
    # as long to draw, which can be felt.
    found: Floats = rng.random(shape, dtype=np.float32)
    found -= np.float32(0.5)
    found *= np.float32(size * np.sqrt(12.0))
    return found


def column_means(data: Dataset, weight: Floats) -> Floats:
    """Weighted mean of each number over the rows in which it is observed (numbers,)."""
    if data.is_sparse:
        return np.asarray(data.values.T @ weight, dtype=np.float64).ravel() / float(weight.sum())
    flat = data.values.reshape(data.n_rows, -1)
    sums, total = np.zeros(flat.shape[1]), np.zeros(flat.shape[1])
    for rows in cut(len(flat), BLOCK_ROWS):  # small copies stay near the core
        block, mass = flat[rows].astype(np.float64), weight[rows]
        seen = ~np.isnan(block)
        sums += mass @ np.where(seen, block, 0.0)
        total += mass @ seen
    return sums / np.where(total > 0, total, 1.0)


def _scale(k: int, bound: BoundContext) -> float:
    """Standard deviation of the vectors' numbers so that inner products start near `SPREAD`."""
    if isinstance(bound, EntityLists):
        degree = max(1.0, sum(len(part.members) for part in bound.lists) / bound.n_entities)
        scaled = any(part.scale != "none" for part in bound.lists)
        members = 1.0 / degree if scaled else degree
        return float(np.sqrt(SPREAD / np.sqrt(k * members)))
    return float(SPREAD / np.sqrt(k))


def _floored(mean: Floats) -> Floats:
    """Means of entities that never occur, raised to the least that a mean can be here."""
    positive = mean[mean > 0]
    floor = 0.1 * float(positive.min()) if len(positive) else 1e-3
    return np.maximum(mean, floor)


def _intercepts(space: ParameterSpace, mean: Floats) -> Floats:
    family: Family = space.spec.family
    if space.spec.link.needs_positive:
        return 0.5 * _floored(mean)
    if space.spec.positive_intercept:
        return np.maximum(_floored(mean), 1e-3)
    if family.support.low == 0:
        return family.predictor(_floored(mean))
    return family.predictor(mean)


def _noisy_intercepts(space: ParameterSpace, bound: WindowBags, usual: Floats) -> Floats:
    """Words told from noise start at their odds against it; in a tree, at the odds of its turns."""
    zeros, counts = space.spec.zeros, bound.word_counts
    if isinstance(zeros, Hierarchical):
        return Huffman.of(counts).odds
    if type(zeros) is NegativeSampling:  # relatives know the noise, and start at the unigram
        noise = zeros.n * word_noise(zeros.distribution, counts)
        return np.asarray(np.log(_floored(counts / counts.sum()) / _floored(noise)))
    return usual


def _positive(
    space: ParameterSpace,
    bound: BoundContext,
    weight: Floats,
    mean: Floats,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Positive vectors whose inner products start at (half of) each entity's mean."""
    rho_shape, alpha_shape = (array.shape for array in space.layout[:2])
    alpha = np.exp(rng.normal(0.0, LOG_SPREAD, alpha_shape)) / np.sqrt(space.k)
    rho = np.exp(rng.normal(0.0, LOG_SPREAD, rho_shape)) / np.sqrt(space.k)
    if space.spec.link.needs_positive and isinstance(bound, RowBags) and space.plain:
        part = 0.5 if space.spec.intercept else 1.0
        rho *= (part * _floored(mean) / _typical_context(bound, weight))[:, None]
    else:
        rho, alpha = rho * np.sqrt(SPREAD), alpha * np.sqrt(SPREAD)
    if not space.spec.positive_rho:
        rho = rng.normal(0.0, _scale(space.k, bound), rho_shape)
    if not space.spec.positive_alpha:
        alpha = rng.normal(0.0, _scale(space.k, bound), alpha_shape)
    return rho, alpha


def _typical_context(bound: RowBags, weight: Floats) -> float:
    """Weighted mean of the sum of a scaled context."""
    if bound.scale == "total":
        return 1.0
    if isinstance(bound, WindowBags):
        return 1.0 if bound.scale == "items" else 2.0 * bound.reach
    stored = bound.stored
    rows = np.maximum(np.diff(stored.ptr), 1)
    total = np.add.reduceat(np.append(stored.own, 0.0), stored.ptr[:-1]) * (np.diff(stored.ptr) > 0)
    typical = total / rows if bound.scale == "items" else total
    return max(float(weight @ typical / weight.sum()), 1e-6)
