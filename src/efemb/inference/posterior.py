"""Posteriors: a likelihood and priors as smooth functions of unconstrained numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np

from efemb._typing import Floats, Ints
from efemb.engine.solvers.rows.solver import RowsSolver
from efemb.fitted.group_models import WAY_OUT
from efemb.inference.conditionals import DIFFERENCE, Conditionals, Inverse
from efemb.inference.lbfgs import Problems
from efemb.model.factors import Factors
from efemb.model.priors import Prior
from efemb.model.space import positive_exp
from efemb.model.spec import Spec

Block = tuple[Prior | None, int, bool]  # adjacent numbers: prior, how many, whether positive
NOISE = {"float32": 1e-6, "float64": 1e-13}  # relative error of a sum over many rows


def block_edges(blocks: Sequence[Block]) -> list[int]:
    """Where adjacent blocks begin and end."""
    return [0, *accumulate(size for _, size, _ in blocks)]


class Posterior(ABC):
    """log p(v | all else) of n problems in p numbers each; theta = log v if v is positive.

    Parameters
    ----------
    blocks : the p numbers, grouped by prior and sign
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
        """Unconstrained numbers from vectors."""
        v = vectors.astype(np.float64)
        return np.where(self.positive, np.log(np.where(self.positive, v, 1.0)), v)

    def vectors(self, theta: Floats) -> Floats:
        """Undo `theta`."""
        return np.where(self.positive, positive_exp(theta), theta) if self.positive.any() else theta

    def evaluate(self, theta: Floats, which: Ints) -> tuple[Floats, Floats]:
        """Log-posteriors and gradients in theta of some of the problems."""
        v = self.vectors(theta)
        value, gradient = self.likelihood(v, which)
        for prior, columns in self.priors:
            value = value + np.array([prior.log_density(numbers[columns]) for numbers in v])
        return value, np.where(self.positive, gradient * v, gradient) + self._prior_slope(v)

    def _prior_slope(self, v: Floats) -> Floats:
        slope = np.zeros(v.shape)
        for prior, columns in self.priors:
            slope[:, columns] = prior.gradient(v[:, columns])
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
        in_theta = information * scale[:, :, None] * scale[:, None, :]
        diagonal = self.prior_curvature(theta)
        if self.positive.any():
            slope = self.likelihood(v, np.arange(len(theta)))[1]
            diagonal = diagonal - np.where(self.positive, slope * v, 0.0)
        numbers = np.arange(theta.shape[1])
        in_theta[:, numbers, numbers] += diagonal
        return np.asarray(in_theta)

    def problems(
        self, start: Floats, inverse: Inverse | None, dtype: np.dtype[np.floating]
    ) -> Problems:
        """An optimizer at theta = `start`; `inverse` shapes the steps of signed numbers."""
        if inverse is None or self.positive.any():
            inverse = self._small_steps(start)
        return Problems(self.evaluate, start, inverse, noise=NOISE[dtype.name])

    def _small_steps(self, start: Floats) -> Inverse:
        """First steps of 0.1 per number, used if the curvature is unknown."""
        _, gradient = self.evaluate(start, np.arange(len(start)))
        norm = np.sqrt(np.einsum("np,np->n", gradient, gradient))
        scale = 0.1 * np.sqrt(start.shape[1]) / np.maximum(norm, 1e-300)
        return lambda gradient, which: gradient * scale[which, None]


def explain_coupling(spec: Spec) -> str:
    """Why the embedding of an entity is not a separate regression, or "" if it is."""
    structure = spec.structure
    if not spec.combine.inner_product:
        return f"combine={spec.combine!r} is not an inner product"
    if spec.combine.reverse:
        return "combine='reverse' predicts the context from the entity"
    if structure.tied or not all(structure.own_rows):
        return f"structure={structure!r} shares vectors"
    if structure.grouped:
        return f"structure={structure!r} has several per entity ({WAY_OUT})"
    return _explain_shared_terms(spec)


def _explain_shared_terms(spec: Spec) -> str:
    """Why the terms are not columns of each entity's own regression, or "" if they are."""
    shared = [term for term in spec.terms if term.entity_array is None and term.width]
    return f"the term {shared[0]!r} has no vector of its own per entity" if shared else ""


def vector_blocks(
    spec: Spec, k: int, priors: Mapping[str, Prior | None] | None = None
) -> list[Block]:
    """Prior, number of columns and sign of an embedding and of the entity side of each term.

    k : columns of the embedding;  priors : of entity sides, by the label of their term, if they
    differ from those of the model
    """
    blocks: list[Block] = [(spec.prior_rho, k, spec.positive_rho)]
    for term in (term for term in spec.terms if term.width):
        prior = term.entity_prior if priors is None else priors[term.label]
        blocks.append((prior, term.width, term.positive))
    return blocks


class EntityPosterior(Posterior):
    """(rho_n, entity sides of further terms, b_n) of some entities, given all context vectors.

    Parameters
    ----------
    conditionals : likelihoods of the entities
    blocks : columns of their vectors, see `vector_blocks`; intercepts have the prior of the model
    """

    def __init__(self, conditionals: Conditionals, blocks: Sequence[Block]) -> None:
        spec = conditionals.spec
        self.conditionals, self.intercept = conditionals, spec.intercept
        last = [(spec.intercept_prior, 1, spec.positive_intercept)] if spec.intercept else []
        super().__init__([*blocks, *last])

    def joined(self, rho: Floats, intercept: Floats | None) -> Floats:
        """Vectors and intercepts side by side."""
        return rho if intercept is None else np.concatenate([rho, intercept[:, None]], axis=1)

    def split(self, v: Floats) -> tuple[Floats, Floats]:
        """Undo `joined`; intercepts are 0 if the model has none."""
        return (v[:, :-1], v[:, -1]) if self.intercept else (v, np.zeros(len(v)))

    def predicting(self, v: Floats, which: Ints | slice = slice(None)) -> tuple[Floats, Floats]:
        """Vectors and intercepts as they enter u: without the noise of sampled zeros."""
        vectors, intercept = self.split(v)
        return vectors, intercept - self.conditionals.noise[which]

    def likelihood(self, v: Floats, which: Ints) -> tuple[Floats, Floats]:
        """Log-likelihood of the conditionals."""
        value, rho, intercept = self.conditionals.evaluate(*self.predicting(v, which), which)
        return value, self.joined(rho, intercept if self.intercept else None)

    def begin(self, start: Floats) -> Problems:
        """An optimizer whose first steps are approximately Newton's."""
        inverse = None
        if not self.positive.any():
            curved = np.maximum(self.prior_curvature(start), 0.0)
            inverse = self.conditionals.inverse(*self.predicting(start), curved)
        return self.problems(start, inverse, self.conditionals.dtype)


class SoftmaxPosterior(Posterior):
    """Some rows of rho with their intercepts, or of alpha, of a categorical model.

    Every softmax depends on all of them, so they are a single problem.
    """

    def __init__(
        self,
        solver: RowsSolver,
        vectors: Factors,
        new: Ints,
        blocks: Sequence[Block],
        *,
        context: bool,
    ) -> None:
        spec = solver.spec
        self.solver, self.fixed, self.new, self.context = solver, vectors, new, context
        self.intercept = spec.intercept and not context
        self.edges = block_edges(blocks)
        if self.intercept:
            blocks = [*blocks, (spec.intercept_prior, 1, spec.positive_intercept)]
        super().__init__([(prior, len(new) * size, sign) for prior, size, sign in blocks])

    def block(self, vectors: Factors) -> Floats:
        """The unknowns, (1, p)."""
        side = (vectors.bag if self.context else vectors.target)[self.new]
        numbers = [side[:, a:b].ravel() for a, b in pairwise(self.edges)]
        if self.intercept:
            numbers.append(vectors.intercept[self.new])
        return np.concatenate(numbers)[None]

    def filled(self, v: Floats) -> Factors:
        """All vectors, with the unknown ones inserted."""
        fixed, n = self.fixed, len(self.new)
        target, bag, intercept = fixed.target.copy(), fixed.bag.copy(), fixed.intercept.copy()
        side = bag if self.context else target
        for a, b in pairwise(self.edges):
            side[self.new, a:b] = v[0, n * a : n * b].reshape(n, b - a)
        if self.intercept:
            intercept[self.new] = v[0, n * self.edges[-1] :]
        return replace(fixed, target=target, bag=bag, intercept=intercept)

    def likelihood(self, v: Floats, which: Ints) -> tuple[Floats, Floats]:
        """Log-likelihood of the whole data."""
        value, slopes = self.solver.value_and_gradient(self.filled(v))
        return np.array([value]), self.block(slopes).astype(np.float64)
