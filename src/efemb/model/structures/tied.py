"""Tied: the embedding of an entity is also its context vector."""

from __future__ import annotations

import numpy as np

from efemb._typing import Floats
from efemb.model.structures.base import Structure


class Tied(Structure):
    """rho = alpha: one vector per entity, penalized once; its gradient is the sum of both roles.

    Examples
    --------
    >>> import efemb
    >>> trips = [[2, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 2], [0, 0, 1, 1]] * 10
    >>> model = efemb.PoissonEmbedding(2, structure="tied", random_state=0).fit(trips)
    >>> bool((model.rho_ == model.alpha_).all())
    True
    """

    tied = True

    def spread(self, rho: Floats, alpha: Floats, n_entities: int) -> tuple[Floats, Floats]:
        """One array in both roles."""
        return rho, rho

    def collect(self, rho: Floats, alpha: Floats, n_entities: int) -> tuple[Floats, Floats]:
        """The sum is the gradient of rho; alpha is not a separate array."""
        return rho + alpha, np.zeros_like(alpha)
