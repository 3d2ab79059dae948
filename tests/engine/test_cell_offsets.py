"""Offsets of single cells: dealt to tiles and collected again, against the loops they stand for."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from efemb.engine.solvers.rows.cell_offsets import MOST_UNUSED, TileOffsets
from efemb.model.terms.cell_values import Offsets, SparseRows

N, PITCH = 90, 40
EDGES = np.array([0, 36, 72, N])


def sparse_rows(sizes: list[int], seed: int) -> SparseRows:
    """Rows with so many cells each, their ids in ascending order."""
    rng = np.random.default_rng(seed)
    chosen = [np.sort(rng.permutation(N)[:size]) for size in sizes]
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    ids = np.concatenate(chosen).astype(np.int32)
    return SparseRows(ptr, ids, rng.normal(size=len(ids)).astype(np.float32))


def tiles_of(offsets: Offsets) -> tuple[TileOffsets, tuple[Any, ...], Any]:
    made = TileOffsets.of(offsets, np.float32)
    return made, *made.deal(EDGES, PITCH)


@pytest.mark.parametrize("sizes", [[5, 0, 90, 1, 13], [1], [0, 0, 3], [90] * 3])
def test_tiles_hold_the_cells_of_their_entities_row_by_row(sizes: list[int]) -> None:
    parts = (sparse_rows(sizes, 0), sparse_rows(sizes[::-1], 1))
    _, (begin, end, where, dealt, *_), _ = tiles_of(Offsets(parts, len(sizes), N))
    for j, (first, last) in enumerate(pairwise(EDGES)):
        expected = [
            ((n - first) * PITCH + t, value)
            for part in parts
            for t, n, value in zip(part.row, part.ids, part.values, strict=True)
            if first <= n < last
        ]
        mine = slice(begin[j], end[j])
        assert list(zip(where[mine], dealt[mine], strict=True)) == expected


@pytest.mark.parametrize("sizes", [[5, 0, 90, 1, 13], [3], [90] * 3])
def test_slopes_come_back_in_the_order_of_the_rows(sizes: list[int]) -> None:
    part = sparse_rows(sizes, 2)
    tiles, dealt, starts = tiles_of(Offsets((part,), len(sizes), N))
    dealt[4][:] = dealt[3]  # the slope of each cell is its value
    tiles.collect(dealt, starts)
    assert_array_equal(tiles.slope, part.values)


def test_rows_of_a_table_are_cut_as_they_would_be_themselves() -> None:
    table, rows = sparse_rows([4, 0, 60, 9], 3), np.array([2, 2, 0, 3, 1])
    taken = table.take(rows)
    copied = SparseRows(taken.ptr, taken.ids, taken.values)
    assert taken.origin is not None
    _, shared, starts = tiles_of(Offsets((taken,), len(rows), N))
    _, alone, expected = tiles_of(Offsets((copied,), len(rows), N))
    assert_array_equal(starts, expected)
    assert len(table.cuts) == 1
    for j in range(len(EDGES) - 1):
        assert_array_equal(
            shared[2][shared[0][j] : shared[1][j]], alone[2][alone[0][j] : alone[1][j]]
        )


def test_a_large_table_of_which_few_rows_are_used_is_not_cut() -> None:
    table = sparse_rows([2] * (3 * MOST_UNUSED), 4)
    tiles_of(Offsets((table.take(np.array([5, 7])),), 2, N))
    assert not table.cuts
