"""Posteriors: a likelihood and priors as smooth functions of unconstrained numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import numpy as np

from efemb._typing import Floats, Ints
from efemb.inference.design import DIFFERENCE, Conditionals, Inverse
from efemb.inference.solving import Problems
from efemb.model.priors import Prior
from efemb.model.space import positive_exp
from efemb.model.spec import Spec

Block = tuple[Prior | None, int, bool]  # numbers side by side: prior, how many, whether positive
NOISE = {"float32": 1e-6, "float64": 1e-13}  # relative error of a sum over many rows


def block_edges(blocks: Sequence[Block]) -> list[int]:
    """Where blocks that lie side by side begin and end."""
    return [0, *accumulate(size for _, size, _ in blocks)]


class Posterior(ABC):
    """log p(v | all else) of n problems in p numbers each; theta = log v where v is positive.

    Parameters
    ----------
    blocks : the p numbers, those of one prior and sign after the other
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.positive = np.concatenate([np.full(size, positive) for _, size, positive in blocks])
        ends = pairwise(block_edges(blocks))
        self.priors = [
            (block[0], slice(*two))
            for block, two in zip(blocks, ends, strict=True)
            if block[0] is not None
        ]

    @abstractmethod
    def likelihood(self, v: Floats, which: Ints) -> tuple[Floats, Floats]:
        """Log-likelihoods (m,) of numbers v (m, p) of some problems, and gradients (m, p) in v."""

    def theta(self, vectors: Floats) -> Floats:
        """Unconstrained numbers of given ones."""
        v = vectors.astype(np.float64)
        return np.where(self.positive, np.log(np.where(self.positive, v, 1.0)), v)

    def vectors(self, theta: Floats) -> Floats:
        """Undo `theta`."""
        return np.where(self.positive, positive_exp(theta), theta) if self.positive.any() else theta

    def evaluate(self, theta: Floats, which: Ints) -> tuple[Floats, Floats]:
        """Log-posteriors and gradients in theta of some of the problems."""
        v = self.vectors(theta)
        value, gradient = self.likelihood(v, which)
        for prior, part in self.priors:
            value = value + np.array([prior.log_density(one[part]) for one in v])
        return value, np.where(self.positive, gradient * v, gradient) + self._prior_slope(v)

    def _prior_slope(self, v: Floats) -> Floats:
        slope = np.zeros(v.shape)
        for prior, part in self.priors:
            slope[:, part] = prior.gradient(v[:, part])
        return slope

    def prior_curvature(self, theta: Floats) -> Floats:
        """-d2 log prior / d theta2, number by number."""
        h = DIFFERENCE * (1.0 + np.abs(theta))
        low, high = (self._prior_slope(self.vectors(theta + sign * h)) for sign in (-1, 1))
        return np.asarray((low - high) / (2.0 * h))

    def information(self, information: Floats, theta: Floats) -> Floats:
        """-d2 log p / d theta2 (n, p, p) from minus the likelihood's second derivatives in v.

        For a logarithm theta = log v the latter become v I v - v dL/dv on the diagonal.
        """
        v = self.vectors(theta)
        scale = np.where(self.positive, v, 1.0)
        found = information * scale[:, :, None] * scale[:, None, :]
        diagonal = self.prior_curvature(theta)
        if self.positive.any():
            slope = self.likelihood(v, np.arange(len(theta)))[1]
            diagonal = diagonal - np.where(self.positive, slope * v, 0.0)
        places = np.arange(theta.shape[1])
        found[:, places, places] += diagonal
        return np.asarray(found)

    def problems(
        self, start: Floats, inverse: Inverse | None, dtype: np.dtype[np.floating]
    ) -> Problems:
        """An optimiser at theta = `start`; `inverse` shapes the steps of signed numbers."""
        if inverse is None or self.positive.any():
            inverse = self._small_steps(start)
        return Problems(self.evaluate, start, inverse, noise=NOISE[dtype.name])

    def _small_steps(self, start: Floats) -> Inverse:
        """First steps of a tenth in each number, where nothing is known about the curvature."""
        _, gradient = self.evaluate(start, np.arange(len(start)))
        norm = np.sqrt(np.einsum("np,np->n", gradient, gradient))
        scale = 0.1 * np.sqrt(start.shape[1]) / np.maximum(norm, 1e-300)
        return lambda gradient, which: gradient * scale[which, None]


def shared_terms(spec: Spec) -> str:
    """Why the terms of a model are not columns of each entity's own regression, "" if they are."""
    shared = [term for term in spec.terms if term.entity_array is None]
    return f"the term {shared[0]!r} has no vector of its own per entity" if shared else ""


def vector_blocks(
    spec: Spec, k: int, priors: Mapping[str, Prior | None] | None = None
) -> list[Block]:
    """Prior, number of columns and sign of an embedding and of the entity side of each term.

    k : columns of the embedding;  priors : of entity sides, by the label of their term, where they
    are not the model's
    """
    blocks: list[Block] = [(spec.prior_rho, k, spec.positive_rho)]
    for term in spec.terms:
        (prior,) = (array.prior for array in term.arrays(1) if array.name == term.entity_array)
        if priors is not None:
            prior = priors[term.label]
        blocks.append((prior, term.width, False))
    return blocks


class EntityPosterior(Posterior):
    """(rho_n, entity sides of further terms, b_n) of some entities given all context vectors.

    Parameters
    ----------
    given : likelihoods of the entities
    blocks : columns of their vectors, as of `vector_blocks`; the prior of intercepts is the model's
    """

    def __init__(self, given: Conditionals, blocks: Sequence[Block]) -> None:
        spec = given.spec
        self.given, self.intercept = given, spec.intercept
        last = [(spec.intercept_prior, 1, spec.positive_intercept)] if spec.intercept else []
        super().__init__([*blocks, *last])

    def joined(self, rho: Floats, intercept: Floats | None) -> Floats:
        """Vectors and intercepts side by side."""
        return rho if intercept is None else np.concatenate([rho, intercept[:, None]], axis=1)

    def split(self, v: Floats) -> tuple[Floats, Floats]:
        """Undo `joined`; intercepts are 0 where the model has none."""
        return (v[:, :-1], v[:, -1]) if self.intercept else (v, np.zeros(len(v)))

    def predicting(self, v: Floats, which: Ints | slice = slice(None)) -> tuple[Floats, Floats]:
        """Vectors and intercepts as they enter u: without the noise of sampled zeros."""
        vectors, intercept = self.split(v)
        return vectors, intercept - self.given.noise[which]

    def likelihood(self, v: Floats, which: Ints) -> tuple[Floats, Floats]:
        """Of the conditionals that are given."""
        value, rho, intercept = self.given.evaluate(*self.predicting(v, which), which)
        return value, self.joined(rho, intercept if self.intercept else None)

    def begin(self, start: Floats) -> Problems:
        """An optimiser whose first steps are Newton's, roughly."""
        inverse = None
        if not self.positive.any():
            curved = np.maximum(self.prior_curvature(start), 0.0)
            inverse = self.given.inverse(*self.predicting(start), curved)
        return self.problems(start, inverse, self.given.dtype)
