"""Neighbors: the k nearest entities by position, or the k most correlated ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import DataError, check_integer
from efemb.model.contexts.base import Context
from efemb.model.contexts.bound.entities import EntityLists

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

DEFAULT_K = 10
DECIMALS = 10  # of a correlation in double precision


class Neighbors(Context):
    """The k nearest entities in the same row (the paper's context for neurons).

    Parameters
    ----------
    k : int, optional
        Number of neighbors; by default min(10, N - 1).
    positions : array of shape (N, p), optional
        Coordinates of the entities. Without them, and without positions in the data, the
        neighbors are the k entities with the largest absolute correlation.
    scale : {"items", "total", "none"}, default="none"
        Divide the context sum by the number of observed members, by the sum of their values, or
        by 1.
    binary : bool, default=False
        Count a member as 1 where it is not zero, whatever its value.

    Examples
    --------
    >>> import numpy as np
    >>> import efemb
    >>> places = np.array([[0.0], [1.0], [2.5], [7.0]])
    >>> bound = Neighbors(1, positions=places).bind(efemb.Dataset(np.ones((2, 4))))
    >>> bound.lists[0].members.tolist()
    [1, 0, 1, 2]
    """

    def __init__(
        self,
        k: int | None = None,
        positions: Any = None,
        scale: str = "none",
        binary: bool = False,
    ) -> None:
        self.k = k
        self.positions = positions
        self.scale = scale
        self.binary = binary

    def bind(self, data: Dataset) -> EntityLists:
        """Find the neighbors of every entity."""
        return self.bind_weighted(data, None)

    def bind_weighted(self, data: Dataset, weight: Floats | None) -> EntityLists:
        """Find the neighbors of every entity; correlations are those of weighted rows."""
        size = data.n_entities
        k = self._size(size)
        positions = self.positions if self.positions is not None else data.positions
        distance = None
        if k == 0:
            near: Ints = np.empty((size, 0), dtype=np.int64)
        elif positions is None:
            near = most_correlated(data, k, weight)
        else:
            from efemb.data.array_checks import check_positions

            points = np.asarray(check_positions(positions, size))
            near = nearest(points, k)
            distance = np.linalg.norm(points[near] - points[:, None], axis=2).ravel()
        ptr = np.arange(size + 1) * k
        return EntityLists.from_neighbors(
            data, ptr, near.ravel(), scale=self.scale, binary=self.binary, distance=distance
        )

    def find_known(
        self, data: Dataset, new: Ints, k: int, positions: Floats | None, weight: Floats
    ) -> list[Ints]:
        """The k nearest, or most correlated, known entities of each new one."""
        n_known = int(new[0])
        if positions is not None:
            return list(nearest(positions[:n_known], k, positions[new]))
        # Among this many neighbors at least k are known.
        n_neighbors = max(min(k + len(new) - 1, data.n_entities - 1), 1)
        near = most_correlated(data, n_neighbors, weight)[new]
        return [members[members < n_known][:k] for members in near]

    def _size(self, n_entities: int) -> int:
        if self.k is None:
            return min(DEFAULT_K, n_entities - 1)
        k = check_integer(f"{type(self).__name__}.k", self.k)
        if k > n_entities - 1:
            raise DataError(
                f"Neighbors(k={k}) needs at least {k + 1} entities, the data have {n_entities}; "
                f"use k <= {n_entities - 1}"
            )
        return k


def nearest(positions: Floats, k: int, to: Floats | None = None) -> Ints:
    """Indices of the k nearest points to others, or of each to all others, nearest first (N, k)."""
    from sklearn.neighbors import NearestNeighbors

    tree = NearestNeighbors(n_neighbors=k, algorithm="ball_tree").fit(positions)
    return np.asarray(tree.kneighbors(to, return_distance=False), dtype=np.int64)


def most_correlated(data: Dataset, k: int, weight: Floats | None = None) -> Ints:
    """Indices of the k columns with the largest absolute correlation with each column (N, k).

    Of equal ones, which are common for counts, the first are taken, so that rounding (the order of
    rows, the number of threads) has no influence.
    """
    values = data.values.toarray() if data.is_sparse else data.values
    flat = np.asarray(values, dtype=np.float64).reshape(data.n_rows, data.n_entities, -1)
    w = np.ones(data.n_rows) if weight is None else weight
    missing = np.isnan(flat)
    # One copy of the data: recordings fill a good part of the memory.
    columns = np.where(missing, 0.0, flat)
    total = np.einsum("t,tnd->nd", w, ~missing)
    mean = np.einsum("t,tnd->nd", w, columns) / np.where(total > 0, total, 1.0)
    columns -= mean
    columns[missing] = 0.0
    columns *= np.sqrt(w)[:, None, None]
    norm = np.sqrt(np.einsum("tnd,tnd->n", columns, columns))
    columns /= np.where(norm > 0, norm, 1.0)[None, :, None]
    columns = columns.transpose(1, 0, 2).reshape(data.n_entities, -1)
    best = np.empty((data.n_entities, k), dtype=np.int64)
    for start in range(0, data.n_entities, 1024):
        block = slice(start, start + 1024)
        strength = np.abs(columns[block] @ columns.T).round(DECIMALS)
        np.fill_diagonal(strength[:, start:], -1.0)
        best[block] = _first_largest(strength, k)
    return best


def _first_largest(values: Floats, k: int) -> Ints:
    """Columns of the k largest values of each row, largest first, and the first of equal ones."""
    # Sorting whole rows would dominate the time of a short fit.
    least = np.partition(values, -k, axis=1)[:, -k : -k + 1 or None]
    row, column = np.nonzero(values >= least)
    by_value = np.lexsort((-values[row, column], row))  # stable, and columns ascend
    starts = np.searchsorted(row, np.arange(len(values)))
    return np.asarray(column[by_value][starts[:, None] + np.arange(k)], dtype=np.int64)
