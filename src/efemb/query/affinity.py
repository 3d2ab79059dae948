"""Affinity: the inner product of what one entity is and what another does to its surroundings."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from efemb.errors import ParameterError, suggest
from efemb.nearest import unit_rows
from efemb.query.vectors import predicting_vectors
from efemb.types import Bools, Floats, Ints

if TYPE_CHECKING:
    from efemb.fitted import FittedEmbedding

Direction = Literal["given", "symmetric"]
DIRECTIONS = ("given", "symmetric")


class Affinity:
    """product(n, m) = left_n . right_m for every pair of entities.

    "given" is the paper's rho_n . alpha_m: how much m in the context raises the inner product u of
    n. "symmetric" is the mean of both directions. `center` takes the mean context vector off
    alpha, so that 0 is what an average entity does; the paper does not. `known` says of each entity
    whether it does anything to others.
    """

    def __init__(self, model: FittedEmbedding, direction: str = "given", center: bool = False):
        if direction not in DIRECTIONS:
            raise ParameterError(f"direction={direction!r}; {suggest(direction, DIRECTIONS)}")
        if model.lists is not None:
            raise ParameterError(
                "each entity of this model has a fixed list of neighbours, and no inner product "
                "with others means anything: use weights() for those of the lists "
                "(efemb plot MODEL weights)"
            )
        target, bag = predicting_vectors(model)
        # What is unknown is 0 only before it is centred.
        self.known: Bools = np.asarray(bag.any(axis=1))
        if center:
            bag = bag - bag.mean(axis=0)
        self.target, self.bag, self.left, self.right = target, bag, target, bag
        if direction == "symmetric":
            self.known |= target.any(axis=1)
            self.left = np.concatenate([target, bag], axis=1)
            self.right = np.concatenate([bag, target], axis=1) / 2

    def products(self, n: Ints, m: Ints) -> Floats:
        """Products of pairs, in float64."""
        left, right = self.left[n].astype(np.float64), self.right[m].astype(np.float64)
        return np.asarray(np.einsum("ik,ik->i", left, right))

    @cached_property
    def usual(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the products of each n with all entities, (N,) each."""
        mean = self.right.mean(axis=0)
        apart = self.right - mean
        spread = ((self.left @ (apart.T @ apart / len(apart))) * self.left).sum(axis=1)
        return np.asarray(self.left @ mean), np.sqrt(np.maximum(spread, 0.0))

    def mutual_z(self, n: Ints, m: int) -> Floats:
        """How unusual product(n, m) is for n, and product(m, n) for m: the mean of both.

        Each in standard deviations from the mean of the entity's products with all entities, so
        that the long vectors of rare entities are no evidence; 0 where they are all the same.
        """
        mean, spread = self.usual
        spread = np.where(spread > 0, spread, np.inf)
        one = (self.left[n] @ self.right[m] - mean[n]) / spread[n]
        two = (self.right[n] @ self.left[m] - mean[m]) / spread[m]
        return np.asarray((one + two) / 2)

    @cached_property
    def responses(self) -> Floats:
        """Unit vectors whose inner product is the correlation of two entities over all contexts.

        That of rho_n . alpha_j and rho_m . alpha_j over all entities j: 1 where n and m answer
        alike to whatever comes with them. Unlike the cosine of rho, it does not depend on how
        lengths are shared between rho and alpha.
        """
        bag = self.bag.astype(np.float64)
        size, axes = np.linalg.eigh(np.cov(bag.T, bias=True).reshape(bag.shape[1], -1))
        return unit_rows(self.target @ (axes * np.sqrt(np.maximum(size, 0.0))))

    def similarity(self, n: Ints, m: Ints) -> Floats:
        """Similarity of the contexts of pairs: the correlation of their responses."""
        cosine = np.einsum("ik,ik->i", self.responses[n], self.responses[m])
        return np.asarray(np.clip(cosine, -1.0, 1.0))
