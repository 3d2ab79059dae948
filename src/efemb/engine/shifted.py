"""Shifted: recordings as columns, at every offset that a context looks at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from efemb.contexts.entity_lists import EntityLists, Lists
from efemb.engine.blocks import Workers, cut
from efemb.types import Bools, Floats, Ints

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

BLOCK_ROWS = 64


class Shifted:
    """Columns of the data at every offset, zero where nothing is observed."""

    def __init__(self, bound: EntityLists, pool: Workers) -> None:
        self.bound = bound
        self.columns, self.seen = _columns(bound.data, pool)
        self.x, self.x_seen = self.columns, self.seen
        if bound.targets is not bound.data:
            self.x, self.x_seen = _columns(bound.targets, pool)
        self.offsets = [np.unique(part.offset).tolist() for part in bound.lists]
        every = {offset for offsets in self.offsets for offset in offsets}
        self.cache = {offset: self._shift(offset) for offset in sorted(every)}

    def _shift(self, offset: int) -> tuple[Floats, Floats | None]:
        if offset == 0:
            return self.columns, None if self.seen is None else self.seen.astype(np.float64)
        source, inside = self.bound.source_rows(np.arange(self.bound.n_rows), offset)
        known = inside.astype(np.float64) * (1.0 if self.seen is None else self.seen[:, source])
        known = np.broadcast_to(known, self.columns.shape)
        return self.columns[:, source] * known, known

    def observed(self, n: int) -> Floats:
        """1 where x_n is observed."""
        if self.x_seen is None:
            return np.ones(self.columns.shape[1])
        return np.asarray(self.x_seen[n], dtype=np.float64)

    def fill(self, n: int, out: Floats) -> None:
        """Scaled member values of entity n, part after part (members, rows)."""
        start = 0
        for part, offsets in zip(self.bound.lists, self.offsets, strict=True):
            stop = start + int(part.ptr[n + 1] - part.ptr[n])
            self._fill_part(part, offsets, n, out[start:stop])
            start = stop

    def _fill_part(self, part: Lists, offsets: list[int], n: int, values: Floats) -> None:
        edges = slice(part.ptr[n], part.ptr[n + 1])
        members = part.members[edges]
        if len(offsets) == 1:
            np.take(self.cache[offsets[0]][0], members, axis=0, out=values, mode="clip")  # no copy
        else:
            for offset, mine in self._by_offset(part, offsets, edges):
                values[mine] = self.cache[offset][0][members[mine]]
        if part.binary:
            np.not_equal(values, 0, out=values)
        if part.scale != "none":
            items = part.scale == "items"
            scale = self._seen(part, offsets, edges) if items else values.sum(axis=0)
            values /= np.where(scale > 0, scale, 1.0)

    def _by_offset(
        self, part: Lists, offsets: list[int], edges: slice
    ) -> Iterator[tuple[int, Ints]]:
        """The members at each offset: their places among those of the entity."""
        for offset in offsets:
            yield offset, np.flatnonzero(part.offset[edges] == offset)

    def _seen(self, part: Lists, offsets: list[int], edges: slice) -> Floats:
        """How many members of an entity are observed in each row."""
        count, members = np.zeros(self.columns.shape[1]), part.members[edges]
        for offset, mine in self._by_offset(part, offsets, edges):
            known = self.cache[offset][1]
            count += len(mine) if known is None else known[members[mine]].sum(axis=0)
        return count


def _columns(data: Dataset, pool: Workers) -> tuple[Floats, Bools | None]:
    """Columns as contiguous rows, 0 where missing, and what is observed (None: everything)."""
    dense = data.values.toarray() if data.is_sparse else data.values
    raw = dense.reshape(data.n_rows, data.n_entities)
    columns = np.empty((data.n_entities, data.n_rows))

    def transpose(rows: slice) -> None:
        columns[:, rows] = raw[rows].T

    list(pool.map(transpose, cut(data.n_rows, BLOCK_ROWS)))  # at once they would miss the cache
    seen = ~np.isnan(columns)
    if seen.all():
        return columns, None
    columns[~seen] = 0.0
    return columns, seen
