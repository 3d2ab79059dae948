"""Initial parameters at the scale of the data."""

from __future__ import annotations

import numpy as np

from efemb._typing import Floats
from efemb.engine.statistics import Statistics
from efemb.model.families.base import Family
from efemb.model.huffman import Huffman
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace

SPREAD = 0.1  # standard deviation of the initial inner products
LOG_SPREAD = 0.5  # and of the logarithms of positive vectors: less is close to a saddle point


def initial_parameters(
    space: ParameterSpace, statistics: Statistics, rng: np.random.Generator
) -> Parameters:
    """Small random vectors, intercepts that reproduce the weighted mean of each entity."""
    counts = space.spec.family.normalized_score and not statistics.is_text
    mean = _count_half_a_unit(statistics) if counts else statistics.mean
    if not statistics.is_text and space.spec.noise_offset(mean) is not None:
        mean = mean / mean.sum()  # shares, because the noise is proportional to them
    shapes = {array.name: array.shape for array in space.layout}
    if space.spec.positive_rho or space.spec.positive_alpha:
        rho, alpha = _positive_vectors(space, statistics, mean, rng)
    else:
        size, text = _scale(space.k, statistics), statistics.is_text
        rho, alpha = (_draw(rng, size, shapes[name], text=text) for name in ("rho", "alpha"))
    rho, alpha = space.spec.structure.start(rho, alpha, space.n_entities)
    if space.spec.structure.tied:
        alpha = rho
    intercept = None
    if "intercept" in shapes:
        intercept = _intercepts(space, mean).reshape(shapes["intercept"])
        if statistics.is_text and statistics.popularity is not None:
            intercept = _noisy_intercepts(space, statistics.popularity, intercept)
    position = np.ones(shapes["position"]) if "position" in shapes else None
    further = {**_structure_arrays(space, rng, rho.dtype), **_term_arrays(space, mean, rng)}
    return Parameters(rho, alpha, intercept, position, further)


def _structure_arrays(
    space: ParameterSpace, rng: np.random.Generator, dtype: np.dtype[np.floating]
) -> dict[str, Floats]:
    """Arrays of the structure, which usually start at 0 and are large."""
    spec = space.spec
    return {
        space.prefix + own.name: rng.normal(0.0, own.spread, own.shape)
        if own.spread
        else np.zeros(own.shape, dtype)
        for own in spec.structure.arrays(space.n_entities, space.k, spec.prior_rho)
    }


def _term_arrays(
    space: ParameterSpace, mean: Floats, rng: np.random.Generator
) -> dict[str, Floats]:
    """Small random numbers, of the size that each term specifies."""
    numbers: dict[str, Floats] = {}
    for term in space.spec.terms:
        for array in term.arrays(space.n_entities):
            name = f"{term.label}.{array.name}"
            if not array.positive:
                numbers[name] = rng.normal(array.start, array.spread, array.shape)
                continue
            numbers[name] = array.start * np.exp(rng.normal(0.0, array.spread, array.shape))
            if array.name == term.entity_array:
                numbers[name] *= (_share_of_part(space) * _raise_zeros(mean))[:, None]
    return numbers


def _share_of_part(space: ParameterSpace) -> float:
    """The part of an additive mean that the context starts with, and so does each term."""
    return (0.5 if space.spec.intercept else 1.0) / (1 + len(space.spec.terms))


def _draw(rng: np.random.Generator, size: float, shape: tuple[int, ...], *, text: bool) -> Floats:
    """Numbers with mean 0 and standard deviation `size`."""
    if not text:
        return rng.normal(0.0, size, shape)
    # A pass over a text is short and its vectors are many: drawing normal numbers would take
    # four times as long, a noticeable part of the fit.
    numbers: Floats = rng.random(shape, dtype=np.float32)
    numbers -= np.float32(0.5)
    numbers *= np.float32(size * np.sqrt(12.0))
    return numbers


def _scale(k: int, statistics: Statistics) -> float:
    """Standard deviation of the vectors for which inner products start near `SPREAD`."""
    if statistics.n_members is not None:
        return float(np.sqrt(SPREAD / np.sqrt(k * statistics.n_members)))
    return float(SPREAD / np.sqrt(k))


def _count_half_a_unit(statistics: Statistics) -> Floats:
    """Means of counts; entities that never occur count as half a unit, as in `Popularity`."""
    mean = statistics.mean
    positive = mean[mean > 0]
    half = 0.5 / max(statistics.n_rows, 1)
    return np.maximum(mean, min(half, 0.5 * float(positive.min())) if len(positive) else half)


def _raise_zeros(mean: Floats) -> Floats:
    """Means of entities that never occur, raised to the smallest possible mean."""
    positive = mean[mean > 0]
    floor = 0.1 * float(positive.min()) if len(positive) else 1e-3
    return np.maximum(mean, floor)


def _intercepts(space: ParameterSpace, mean: Floats) -> Floats:
    family: Family = space.spec.family
    if space.spec.link.needs_positive:
        return 0.5 * _raise_zeros(mean)
    if space.spec.positive_intercept:
        return np.maximum(_raise_zeros(mean), 1e-3)
    if family.support.low == 0:
        return family.predictor(_raise_zeros(mean))
    return family.predictor(mean)


def _noisy_intercepts(space: ParameterSpace, counts: Floats, usual: Floats) -> Floats:
    """Log odds of a word against the noise it is trained with; in a tree, those of its turns."""
    zeros = space.spec.zeros
    if zeros.tree:
        return Huffman.of(counts).odds
    if zeros.odds:  # variants that know the noise start at the unigram distribution
        noise = zeros.n * zeros.entity_weights(np.maximum(counts, 0.5))
        return np.asarray(np.log(_raise_zeros(counts / counts.sum()) / _raise_zeros(noise)))
    return usual


def _positive_vectors(
    space: ParameterSpace, statistics: Statistics, mean: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Positive vectors whose inner products start at (half of) each entity's mean."""
    rho_shape, alpha_shape = (array.shape for array in space.layout[:2])
    alpha = np.exp(rng.normal(0.0, LOG_SPREAD, alpha_shape)) / np.sqrt(space.k)
    rho = np.exp(rng.normal(0.0, LOG_SPREAD, rho_shape)) / np.sqrt(space.k)
    by_row = statistics.popularity is not None
    if space.spec.link.needs_positive and by_row and space.by_entity:
        rho *= (_share_of_part(space) * _raise_zeros(mean) / statistics.context_size)[:, None]
    else:
        rho, alpha = rho * np.sqrt(SPREAD), alpha * np.sqrt(SPREAD)
    if not space.spec.positive_rho:
        rho = rng.normal(0.0, _scale(space.k, statistics), rho_shape)
    if not space.spec.positive_alpha:
        alpha = rng.normal(0.0, _scale(space.k, statistics), alpha_shape)
    return rho, alpha
