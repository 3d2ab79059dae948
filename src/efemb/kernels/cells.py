"""Every cell of some rows and entities: the inner loop of exact zeros."""

from __future__ import annotations

from typing import Any

from efemb.kernels.compiling import elementwise, kernel
from efemb.kernels.products import BLOCK, inner_products, multiply
from efemb.kernels.rows import add_without_own, hide_cells, write_cells
from efemb.kernels.wide import use_wide_vectors
from efemb.kernels.zero_terms import zero_slopes

Array = Any


@kernel
def _strip_of_cells(
    edges: Array, g_rows: Array,
    rho: Array, Z: Array, width: int, hidden: float, places: Any, shares: Any, slope: Array,
    intercept: Array, weight: Array, row_weight: Array, size: float,
    bag: Array, fresh: bool, g_rho: Array, own_slope: Array, column: Array, E: Array, part: Array,
) -> float:  # fmt: skip
    use_wide_vectors()
    value = 0.0
    for i in range(len(edges) - 1):
        first, last = edges[i], edges[i + 1]
        mine, cells = rho[first:last], E[: -(-(last - first) // BLOCK) * BLOCK]
        multiply(mine, Z, cells, width, True)
        hide_cells(cells, first, last, *places, hidden)
        both = (weight[first:last], row_weight)
        value += zero_slopes(cells, intercept[first:last], *both, size, column[first:last])
        write_cells(cells, first, last, *places, *shares, slope, own_slope, column)
        inner_products(cells, Z, part, width)
        own = own_slope[first:last]
        add_without_own(part, own, bag[first:last], fresh, g_rho[first:last])
        multiply(mine.T, cells, g_rows, width, i == 0)
    return value


@kernel
def strips_of_cells(
    first: int, last: int, edges: Array, bounds: Array, given: Any, room: Any, g_rows: Array
) -> float:
    """Value and gradient of strips first..last, as `engine.cell_terms` says it step by step.

    The tiles of strip i have edges[bounds[i]], ..., edges[bounds[i + 1]]; g_rows[i] gets what it
    adds to the gradient of the transposed vectors.
    """
    value = 0.0
    for i in range(first, last):
        mine = edges[bounds[i] : bounds[i + 1] + 1]
        value += _strip_of_cells(mine, g_rows[i], *given, *room)
    return value


@elementwise
def add_strips(first: int, last: int, parts: Array, total: Array, out: Array) -> None:
    """out[t, k] = sum over strips of parts[strip, k, t] / total[t], of components first..last."""
    for k in range(first, last):
        whole = parts[0, k]
        for i in range(1, len(parts)):
            part = parts[i, k]
            for t in range(len(total)):
                whole[t] += part[t]
        for t in range(len(total)):
            out[t, k] = whole[t] / total[t]
