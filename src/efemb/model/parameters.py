"""Parameters: the named arrays of a model, in one order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from efemb._typing import Floats

CORE = ("rho", "alpha", "intercept", "position")


@dataclass
class Parameters:
    """The arrays of a model, or derivatives with respect to them.

    Optimizers, files and checkpoints iterate over `named()` instead of relying on positions.

    Attributes
    ----------
    rho : array of shape (N, K), or (N, K, D) for vector data
        Embeddings.
    alpha : array of shape (N * slots, K), or (N * slots, K, D)
        Context vectors; `Lagged` contexts may use several slots.
    intercept : array of shape (N,), (N, D), or None
    position : array of shape (places, K), or None
        Weights of the positions of a positional `Window`.
    terms : dict of arrays
        Arrays of the further terms of the linear predictor, such as ``household.rows``, and those
        that the structure owns.
    """

    rho: Floats
    alpha: Floats
    intercept: Floats | None = None
    position: Floats | None = None
    terms: dict[str, Floats] = field(default_factory=dict)

    @classmethod
    def from_named(cls, arrays: Mapping[str, Floats]) -> Parameters:
        """Undo `named`."""
        core = {name: arrays[name] for name in CORE if name in arrays}
        return cls(**core, terms={name: a for name, a in arrays.items() if name not in CORE})

    def named(self) -> dict[str, Floats]:
        """The arrays that are present, by name and in a fixed order."""
        core = {name: getattr(self, name) for name in CORE}
        return {**{name: a for name, a in core.items() if a is not None}, **self.terms}

    def arrays(self) -> Iterator[Floats]:
        """The arrays that are present, in the order of `named`."""
        yield from self.named().values()

    def like(self, arrays: Iterable[Floats]) -> Parameters:
        """Parameters of the same names with other arrays."""
        return Parameters.from_named(dict(zip(self.named(), arrays, strict=True)))

    def copy(self) -> Parameters:
        """Return a deep copy."""
        return self.like(array.copy() for array in self.arrays())

    def astype(self, dtype: str | np.dtype[np.floating] | type[np.floating]) -> Parameters:
        """Return the same numbers in another precision; arrays that have it are shared."""
        return self.like(array.astype(dtype, copy=False) for array in self.arrays())

    def is_finite(self) -> bool:
        """Whether every number is finite."""
        return all(
            # The sum in double precision takes several times as long, but cannot overflow.
            bool(np.isfinite(array.sum()) or np.isfinite(array.sum(dtype=np.float64)))
            for array in self.arrays()
        )


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
