"""Every cell of some rows and entities: the inner loop of exact zeros."""

from __future__ import annotations

from typing import Any

from efemb.kernels.jit import elementwise, kernel, use_wide_vectors
from efemb.kernels.offsets import add_groups, add_lists, read_groups, read_lists
from efemb.kernels.products import BLOCK, inner_products, multiply
from efemb.kernels.row_entries import (
    add_side_to_vectors,
    add_without_own,
    hide_cells,
    write_cells,
)
from efemb.kernels.zero_terms import zero_slopes

Array = Any
NEAR = 64  # rows that stay in the nearest cache while they are transposed


@kernel
def _strip_of_cells(
    edges: Array, number: int, g_rows: Array,
    rho: Array, Z: Array, width: int, hidden: float, places: Any, shares: Any, slope: Array,
    intercept: Array, weight: Array, row_weight: Array, size: float,
    bag: Array, fresh: bool, g_rho: Array, own_slope: Array, column: Array,
    side: Array, offsets: Any, E: Array, part: Array,
) -> float:  # fmt: skip
    use_wide_vectors()
    value = 0.0
    lists, (table, order, groups, table_slope) = offsets
    flat = E.reshape(-1)
    for i in range(len(edges) - 1):
        first, last = edges[i], edges[i + 1]
        mine, cells = rho[first:last], E[: -(-(last - first) // BLOCK) * BLOCK]
        multiply(mine, Z, cells, width, True)
        hide_cells(cells, first, last, *places, hidden)
        add_lists(flat, number + i, lists)
        if len(groups) > 1:
            add_groups(cells, first, last, table, order, groups)
        both = (weight[first:last], row_weight)
        value += zero_slopes(cells, intercept[first:last], *both, size, column[first:last])
        read_lists(flat, number + i, lists)
        if len(groups) > 1:
            read_groups(cells, first, last, order, groups, table_slope)
        write_cells(cells, first, last, *places, *shares, slope, own_slope, column)
        inner_products(cells, Z, part, width)
        if len(side):
            entries = (*places, shares[0], slope)
            add_side_to_vectors(first, last, *entries, side, part, rho.shape[1] - side.shape[1])
        own = own_slope[first:last]
        add_without_own(part, own, bag[first:last], fresh, g_rho[first:last])
        multiply(mine.T, cells, g_rows, width, i == 0)
    return value


@elementwise
def _add_up(whole: Array, part: Array) -> None:
    for k in range(whole.shape[0]):
        for t in range(whole.shape[1]):
            whole[k, t] += part[k, t]


@kernel
def strips_of_cells(
    first: int, last: int, edges: Array, bounds: Array, given: Any, room: Any, g_rows: Array,
    alone: bool,
) -> float:  # fmt: skip
    """Value and gradient of strips first..last, the fused form of `cell_terms` in the engine.

    The tiles of strip i have edges[bounds[i]], ..., edges[bounds[i + 1]]. Its part of the gradient
    of the transposed vectors goes to g_rows[i]. If a thread works `alone`, it adds these parts to
    g_rows[0] while they are in the cache, in the same order as `add_strips`.
    """
    value = 0.0
    for i in range(first, last):
        mine = edges[bounds[i] : bounds[i + 1] + 1]
        place = min(i, 1) if alone else i
        value += _strip_of_cells(mine, bounds[i], g_rows[place], *given, *room)
        if alone and i > 0:
            _add_up(g_rows[0], g_rows[1])
    return value


@elementwise
def add_strips(first: int, last: int, parts: Array, total: Array, out: Array) -> None:
    """out[t, k] = sum over strips of parts[strip, k, t] / total[t], of rows first..last."""
    for begin in range(first, last, NEAR):
        end = min(begin + NEAR, last)
        divisor, cells = total[begin:end], out[begin:end]
        for k in range(parts.shape[1]):
            whole = parts[0, k, begin:end]
            for i in range(1, len(parts)):
                part = parts[i, k, begin:end]
                for t in range(len(whole)):
                    whole[t] += part[t]
            for t in range(len(whole)):
                whole[t] /= divisor[t]
            for t in range(len(whole)):
                cells[t, k] = whole[t]


@kernel
def transpose(source: Array, out: Array) -> None:
    """out[k, t] = source[t, k]."""
    for begin in range(0, source.shape[0], NEAR):
        rows, columns = source[begin : begin + NEAR], out[:, begin : begin + NEAR]
        for k in range(source.shape[1]):
            for t in range(len(rows)):
                columns[k, t] = rows[t, k]
