"""Parameters: embeddings rho, context vectors alpha and intercepts, as plain arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from efemb.types import Floats


@dataclass
class Parameters:
    """The vectors of a model, or derivatives with respect to them.

    Attributes
    ----------
    rho : array (N, K), or (N, K, D) for vector data
        Embeddings.
    alpha : array (N * slots, K), or (N * slots, K, D)
        Context vectors; `Lagged` contexts may use several slots.
    intercept : array (N,), (N, D), or None
    position : array (places, K), or None
        Weights of the places of a positional `Window`.
    """

    rho: Floats
    alpha: Floats
    intercept: Floats | None = None
    position: Floats | None = None

    def arrays(self) -> Iterator[Floats]:
        """The arrays that are present, in a fixed order."""
        yield self.rho
        yield self.alpha
        if self.intercept is not None:
            yield self.intercept
        if self.position is not None:
            yield self.position

    def like(self, arrays: Iterable[Floats]) -> Parameters:
        """Parameters of other arrays in the order of `arrays`."""
        given = iter(arrays)
        rho, alpha = next(given), next(given)
        intercept = None if self.intercept is None else next(given)
        return Parameters(rho, alpha, intercept, None if self.position is None else next(given))

    def copy(self) -> Parameters:
        """Return a deep copy."""
        return self.like(array.copy() for array in self.arrays())

    def astype(self, dtype: str | np.dtype[np.floating] | type[np.floating]) -> Parameters:
        """Return the same numbers in another precision; arrays that have it are shared."""
        return self.like(array.astype(dtype, copy=False) for array in self.arrays())

    def is_finite(self) -> bool:
        """Whether every number is finite."""
        return all(bool(np.isfinite(array.sum(dtype=np.float64))) for array in self.arrays())


def flatten(vectors: Floats) -> Floats:
    """(N, K, D) as (N * D, K): a vector observation is D numbers with a row each."""
    if vectors.ndim == 2:
        return vectors
    return np.ascontiguousarray(vectors.transpose(0, 2, 1)).reshape(-1, vectors.shape[1])


def unflatten(rows: Floats, n_dims: int) -> Floats:
    """Undo `flatten`; with D = 1 the array is left as (N, K)."""
    if n_dims == 1:
        return rows
    return np.ascontiguousarray(rows.reshape(-1, n_dims, rows.shape[1]).transpose(0, 2, 1))
