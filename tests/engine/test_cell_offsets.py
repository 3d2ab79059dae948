"""Offsets of single cells: dealt to tiles and collected again, against the loops they stand for."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from efemb.engine.solvers.rows.cell_offsets import MOST_UNUSED, CellOffsets, TileOffsets
from efemb.engine.threads import Workers
from efemb.kernels.offsets import add_lists, read_lists
from efemb.model.terms.cell_values import Offsets, ScaledRows, SparseRows, TableRows

N, PITCH, FACTOR = 90, 40, 0.5
EDGES = np.array([0, 36, 72, N])


def sparse_rows(sizes: list[int], seed: int, n: int = N) -> SparseRows:
    """Rows with given numbers of cells, their ids in ascending order."""
    rng = np.random.default_rng(seed)
    chosen = [np.sort(rng.permutation(n)[:size]) for size in sizes]
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    ids = np.concatenate(chosen).astype(np.int32)
    return SparseRows(ptr, ids, rng.normal(size=len(ids)).astype(np.float32))


def scaled_rows() -> ScaledRows:
    """Rows of a table, of which the first, the third and the last have changed cells."""
    table = sparse_rows([4, 0, 60, 9], 3)
    code, place = np.array([2, 2, 0, 3, 1, 2]), np.array([0, -1, 2, -1, -1, 1])
    chosen = sparse_rows([3, 60, 2], 4, n=60)
    cells = np.concatenate([chosen.ids[:63], [0, 3]])  # the first row has 4 cells only
    ids = table.ids[table.ptr[np.array([2, 2, 0])[chosen.row]] + cells]
    changed = SparseRows(chosen.ptr, ids, chosen.values)
    return ScaledRows(np.array([FACTOR]), TableRows(table, code, changed, cells, place))


def loop_over(part: ScaledRows) -> SparseRows:
    """Its weights, as the definition of `TableRows` says."""
    rows, (sizes, ids, values) = part.weights, ([], [], [])  # type: ignore[var-annotated]
    for code, place in zip(rows.code, rows.place, strict=True):
        mine = slice(rows.table.ptr[code], rows.table.ptr[code + 1])
        row = rows.table.values[mine].copy()
        if place >= 0:
            own = slice(rows.changed.ptr[place], rows.changed.ptr[place + 1])
            for cell, value in zip(rows.cells[own], rows.changed.values[own], strict=True):
                row[cell] = value
        sizes.append(len(row))
        ids.append(rows.table.ids[mine])
        values.append(row)
    return SparseRows(np.cumsum([0, *sizes]), np.concatenate(ids), np.concatenate(values))


def entries_of(part: ScaledRows, share: float) -> tuple[Any, Any]:
    """Stored entries: some of the changed cells of each row, and others, in no order."""
    rng, ptr, ids = np.random.default_rng(5), [0], []
    for place in part.weights.place:
        changed = part.weights.changed
        own = changed.ids[changed.ptr[place] : changed.ptr[place + 1]] if place >= 0 else []
        mine = [n for n in own if rng.random() < share]
        chosen = np.unique([*mine, *rng.integers(0, N, 4)])
        ids.append(rng.permutation(chosen))
        ptr.append(ptr[-1] + len(chosen))
    return np.array(ptr), np.concatenate(ids)


def dense(rows: SparseRows) -> Any:
    cells = np.zeros((len(rows.ptr) - 1, N))
    cells[rows.row, rows.ids] = rows.values
    return cells


def run_tiles(tiles: TileOffsets, n_rows: int, slopes: Any) -> Any:
    """Offsets that tiles add to cells of 0; the slopes (rows, N) are stored with the lists."""
    lists, _ = tiles.deal(EDGES, PITCH, Workers(1))
    added = np.zeros((n_rows, N), np.float32)
    for j, (first, last) in enumerate(pairwise(EDGES)):
        tile = np.zeros((last - first, PITCH), np.float32)
        add_lists(tile.reshape(-1), j, lists)
        added[:, first:last] = tile[:, :n_rows].T
        tile[:, :n_rows] = slopes[:, first:last].T
        read_lists(tile.reshape(-1), j, lists)
    tiles.collect(EDGES, lists)
    return added


@pytest.mark.parametrize("sizes", [[5, 0, 90, 1, 13], [1], [0, 0, 3], [90] * 3])
def test_tiles_hold_the_cells_of_their_entities_row_by_row(sizes: list[int]) -> None:
    parts = (sparse_rows(sizes, 0), sparse_rows(sizes[::-1], 1))
    tiles = TileOffsets.of(Offsets(parts, len(sizes), N), {}, np.float32)
    (cuts, _, _, where, dealt, *_), _ = tiles.deal(EDGES, PITCH, Workers(1))
    for j, (first, last) in enumerate(pairwise(EDGES)):
        expected = [
            ((n - first) * PITCH + t, value)
            for part in parts
            for t, n, value in zip(part.row, part.ids, part.values, strict=True)
            if first <= n < last
        ]
        mine = slice(cuts[0, j], cuts[2, j])
        assert list(zip(where[mine], dealt[mine], strict=True)) == expected


@pytest.mark.parametrize("sizes", [[5, 0, 90, 1, 13], [3], [90] * 3])
def test_slopes_come_back_in_the_order_of_the_rows(sizes: list[int]) -> None:
    parts = sparse_rows(sizes, 2), sparse_rows(sizes[::-1], 1)
    tiles = TileOffsets.of(Offsets(parts, len(sizes), N), {}, np.float32)
    slopes = np.random.default_rng(6).normal(size=(len(sizes), N)).astype(np.float32)
    added = run_tiles(tiles, len(sizes), slopes)
    assert_allclose(added, dense(parts[0]) + dense(parts[1]), rtol=1e-6)
    for part, cells in zip(parts, tiles.lists, strict=True):
        assert_array_equal(cells.slope, slopes[part.row, part.ids])


def test_rows_of_a_table_with_changes_are_what_their_definition_says() -> None:
    part = scaled_rows()
    expected = loop_over(part)
    made = part.weights.rows
    assert_array_equal(made.ptr, expected.ptr)
    assert_array_equal(made.ids, expected.ids)
    assert_array_equal(made.values, expected.values)
    half = part.slice_rows(slice(2, 5)).weights.rows
    assert_array_equal(dense(half), dense(expected)[2:5])


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_tiles_multiply_weights_by_a_number_and_sum_up_its_slope(share: float) -> None:
    """Changed cells matter unless they are entries, which tiles ignore."""
    part, plain = scaled_rows(), sparse_rows([3, 0, 1, 40, 2, 9], 7)
    expected, (ptr, ids) = dense(loop_over(part)), entries_of(part, share)
    rng = np.random.default_rng(8)
    offsets = CellOffsets(Offsets((plain, part), 6, N), ptr, ids, np.dtype(np.float32), None)
    row = np.repeat(np.arange(6), np.diff(ptr))
    at_entries = FACTOR * expected[row, ids] + dense(plain)[row, ids]
    assert_allclose(offsets.at_entries, at_entries, rtol=1e-6)
    slopes, net = rng.normal(size=(6, N)), rng.normal(size=len(ids))
    slopes[row, ids] = 0.0
    added = run_tiles(offsets.tiles, 6, slopes)
    zeros = np.ones((6, N), dtype=bool)
    zeros[row, ids] = False
    assert_allclose(added[zeros], (FACTOR * expected + dense(plain))[zeros], rtol=1e-6)
    of_plain, of_number = offsets.gradients(net)
    slopes[row, ids] = net
    assert_allclose(of_number, [(slopes * expected).sum()], rtol=1e-5)
    assert_allclose(of_plain, slopes[plain.row, plain.ids], rtol=1e-6)


def test_a_table_is_cut_once_unless_few_of_its_rows_are_used() -> None:
    table = sparse_rows([2] * (3 * MOST_UNUSED), 4)
    few, many = np.array([5, 7]), np.arange(3 * MOST_UNUSED)
    unchanged = SparseRows(np.zeros(1, np.int64), table.ids[:0], table.values[:0])
    for code, n_cuts in ((few, 0), (many, 1), (many, 1)):
        rows = TableRows(table, code, unchanged, unchanged.ids, np.full(len(code), -1))
        part = ScaledRows(np.array([FACTOR]), rows)
        fresh = {0: np.zeros(len(code), dtype=bool)}
        tiles = TileOffsets.of(Offsets((part,), len(code), N), fresh, np.float32)
        pitch = len(code)
        lists, _ = tiles.deal(EDGES, pitch, Workers(1))
        assert len(table.cuts) == n_cuts
        added = np.zeros((36, pitch), np.float32)
        add_lists(added.reshape(-1), 0, lists)
        expected = FACTOR * dense(table)[code, :36].T
        assert_allclose(added, expected, rtol=1e-6)
