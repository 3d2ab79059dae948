"""Every cell of some rows and entities: the inner loop of exact zeros."""

from __future__ import annotations

from typing import Any

from efemb.kernels.compiling import kernel
from efemb.kernels.products import BLOCK, inner_products, multiply
from efemb.kernels.rows import add_without_own, hide_cells, write_cells
from efemb.kernels.wide import use_wide_vectors
from efemb.kernels.zero_terms import zero_slopes

Array = Any


@kernel
def strip_of_cells(
    edges: Array,
    rho: Array, Z: Array, width: int, hidden: float, places: Any, shares: Any, slope: Array,
    intercept: Array, weight: Array, row_weight: Array, size: float,
    bag: Array, fresh: bool, g_rho: Array, own_slope: Array, column: Array,
    E: Array, part: Array, g_rows: Array,
) -> float:  # fmt: skip
    """Value and gradient of consecutive tiles, as `engine.cell_terms` says it step by step."""
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
