"""Posteriors: a likelihood and priors as smooth functions of unconstrained numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.inference.design import DIFFERENCE, Conditionals, Inverse
from efemb.inference.solving import Problems
from efemb.model.priors import Prior
from efemb.model.space import positive_exp

NOISE = {"float32": 1e-6, "float64": 1e-13}  # relative error of a sum over many rows


class Posterior(ABC):
    """log p(v | all else) of n problems in p numbers each; theta = log v where v is positive.

    Parameters
    ----------
    positive : (p,) whether a number is positive
    priors : (prior, the numbers it is about)
    """

    def __init__(self, positive: Bools, priors: list[tuple[Prior | None, slice]]) -> None:
        self.positive = positive
        self.priors = [(prior, part) for prior, part in priors if prior is not None]

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


class EntityPosterior(Posterior):
    """(rho_n, b_n) of some entities given all context vectors.

    Parameters
    ----------
    given : likelihoods of the entities
    prior : of their embeddings; that of intercepts is the model's
    """

    def __init__(self, given: Conditionals, prior: Prior | None) -> None:
        spec, k = given.spec, given.k
        self.given, self.k, self.intercept = given, k, spec.intercept
        positive = np.full(k + int(spec.intercept), spec.positive_rho)
        positive[k:] = spec.positive_intercept
        parts = [(prior, slice(0, k))]
        if spec.intercept:
            parts.append((spec.intercept_prior, slice(k, k + 1)))
        super().__init__(positive, parts)

    def joined(self, rho: Floats, intercept: Floats | None) -> Floats:
        """Vectors and intercepts side by side."""
        return rho if intercept is None else np.concatenate([rho, intercept[:, None]], axis=1)

    def split(self, v: Floats) -> tuple[Floats, Floats]:
        """Undo `joined`; intercepts are 0 where the model has none."""
        return (v[:, :-1], v[:, -1]) if self.intercept else (v, np.zeros(len(v)))

    def likelihood(self, v: Floats, which: Ints) -> tuple[Floats, Floats]:
        """Of the conditionals that are given."""
        value, rho, intercept = self.given.evaluate(*self.split(v), which)
        return value, self.joined(rho, intercept if self.intercept else None)

    def begin(self, start: Floats) -> Problems:
        """An optimiser whose first steps are Newton's, roughly."""
        inverse = None
        if not self.positive.any():
            curved = np.maximum(self.prior_curvature(start), 0.0)
            inverse = self.given.inverse(*self.split(start), curved)
        return self.problems(start, inverse, self.given.dtype)
