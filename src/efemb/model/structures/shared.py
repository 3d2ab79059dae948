"""Shared: groups of entities with a common vector."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import DataError, ParameterError
from efemb.model.structures.base import Structure, sum_rows


class Shared(Structure):
    """Entities with the same number in `rho_of` (`alpha_of`) share an embedding (context vector).

    Parameters
    ----------
    rho_of, alpha_of : integer arrays of length N, optional
        Rows used by each entity; None gives each entity its own.

    Examples
    --------
    >>> structure = Shared(rho_of=np.array([0, 0, 1]))  # the first two entities share rho
    >>> rho, alpha = structure.spread(np.array([[1.0], [2.0]]), np.zeros((3, 1)), 3)
    >>> rho.ravel().tolist()
    [1.0, 1.0, 2.0]
    """

    def __init__(self, rho_of: Any = None, alpha_of: Any = None) -> None:
        self.rho_of = rho_of
        self.alpha_of = alpha_of

    @property
    def own_rows(self) -> tuple[bool, bool]:
        """True for arrays without a map."""
        return self.rho_of is None, self.alpha_of is None

    @property
    def n_entities(self) -> int | None:
        """The length of the maps."""
        maps = [index for index in (self.rho_of, self.alpha_of) if index is not None]
        return max(map(len, maps), default=None)

    def sizes(self, n_entities: int) -> tuple[int, int]:
        """The number of different rows in each map."""
        maps = self._maps(n_entities)
        n_rho, n_alpha = (n_entities if rows is None else int(rows.max()) + 1 for rows in maps)
        return n_rho, n_alpha

    def spread(self, rho: Floats, alpha: Floats, n_entities: int) -> tuple[Floats, Floats]:
        """rho[rho_of] and, slot by slot, alpha[alpha_of]."""
        rho_of, alpha_of = self._maps(n_entities)
        if rho_of is not None:
            rho = rho[rho_of]
        if alpha_of is not None:
            slots = alpha.reshape(-1, self.sizes(n_entities)[1], *alpha.shape[1:])
            alpha = slots[:, alpha_of].reshape(-1, *alpha.shape[1:])
        return rho, alpha

    def collect(self, rho: Floats, alpha: Floats, n_entities: int) -> tuple[Floats, Floats]:
        """Sums over the entities that share a row."""
        rho_of, alpha_of = self._maps(n_entities)
        n_rho, n_alpha = self.sizes(n_entities)
        if rho_of is not None:
            rho = sum_rows(rho, rho_of, n_rho)
        if alpha_of is not None:
            slots = alpha.reshape(-1, n_entities, *alpha.shape[1:])
            alpha = np.concatenate([sum_rows(slot, alpha_of, n_alpha) for slot in slots])
        return rho, alpha

    def _maps(self, n_entities: int) -> tuple[Ints | None, Ints | None]:
        return (
            _checked(self.rho_of, "rho_of", n_entities),
            _checked(self.alpha_of, "alpha_of", n_entities),
        )


def _checked(index: Any, option: str, n_entities: int) -> Ints | None:
    if index is None:
        return None
    rows = np.asarray(index)
    if rows.shape != (n_entities,):
        raise DataError(
            f"Shared.{option} must hold one integer for each of the {n_entities} entities, "
            f"got shape {rows.shape}"
        )
    if not np.issubdtype(rows.dtype, np.integer) or rows.min() < 0:
        raise ParameterError(f"Shared.{option} must hold integers >= 0")
    return rows.astype(np.int64)
