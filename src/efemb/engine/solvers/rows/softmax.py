"""Categorical terms of the row solver: x_n [u_n - logsumexp_j u_j] by matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from efemb._typing import Floats, Ints
from efemb.engine.solvers.rows.zero_stages import HIDDEN
from efemb.model.contexts.bound.row_block import RowBlock
from efemb.model.factors import Factors

if TYPE_CHECKING:
    from efemb.engine.solvers.rows.solver import RowsSolver

CHUNK_ROWS = 512


def softmax_terms(
    solver: RowsSolver, block: RowBlock, vectors: Factors, weight: Floats, side: Floats | None
) -> tuple[float, Factors, Floats | None]:
    """Value and gradient of one block of rows, and that of the row side of the terms."""
    from efemb.kernels.rows import left_out_vectors, spread_left_out
    from efemb.kernels.sparse import scatter_bags

    g_side: Floats | None = None
    sums = solver._sums(block, vectors)
    gradient = Factors.zeros_like(vectors)
    g_sums = np.zeros_like(sums)
    row = block.row_of_entry
    units = block.filled * weight[row]
    if block.excluded is None:  # every entry leaves itself out, so each has its own softmax
        Z = np.empty((len(row), sums.shape[1]), dtype=sums.dtype)
        shape = (block.ptr, block.ids, block.own, block.rest)
        left_out_vectors(*shape, sums, vectors.bag, Z)
        place: Ints = np.arange(len(row))
        if side is not None:  # an entry takes itself out of its bag only
            Z[:, -side.shape[1] :] = side[row]
        value, g_context = _softmax_rows(
            solver, Z, place, block.ids, units, None, vectors, gradient
        )
        if side is not None:
            g_side = np.zeros_like(side)
            np.add.at(g_side, row, g_context[:, -side.shape[1] :])
            g_context[:, -side.shape[1] :] = 0.0
        spread_left_out(*shape, g_context, g_sums, gradient.bag)
    else:
        Z = sums / block.total[:, None]
        found = _softmax_rows(solver, Z, row, block.ids, units, block.excluded, vectors, gradient)
        value, g_context = found
        g_sums += g_context / block.total[:, None]
    scatter_bags(block.bag_ptr, block.bag_ids, block.bag_values, g_sums, gradient.bag)
    return value, gradient, g_side


def _softmax_rows(
    solver: RowsSolver,
    Z: Floats,
    place: Ints,
    ids: Ints,
    units: Floats,
    excluded: Ints | None,
    vectors: Factors,
    gradient: Factors,
) -> tuple[float, Floats]:
    """Add the gradient of sum over entries of units [u_id - logsumexp u] with u = Z[place] rho'."""
    g_context = np.empty_like(Z)
    weight = np.bincount(place, units, len(Z)).astype(Z.dtype)
    value = 0.0
    column = np.zeros_like(vectors.intercept)
    edges = np.searchsorted(place, np.arange(0, len(Z) + CHUNK_ROWS, CHUNK_ROWS))
    for chunk, start in enumerate(range(0, len(Z), CHUNK_ROWS)):
        stop = min(start + CHUNK_ROWS, len(Z))
        E = solver.pool.buffer("tile", (stop - start, len(vectors.target)), Z.dtype)
        np.matmul(Z[start:stop], vectors.target.T, out=E)
        mine = slice(edges[chunk], edges[chunk + 1])
        at = place[mine] - start
        picked = E[at, ids[mine]] + vectors.intercept[ids[mine]]
        if excluded is not None:
            E[np.arange(stop - start), excluded[start:stop]] = HIDDEN
        normalizer = _softmax_slopes(E, vectors.intercept, weight[start:stop], column)
        value += float(units[mine] @ (picked - normalizer[at]))
        np.add.at(E, (at, ids[mine]), units[mine])
        np.add.at(column, ids[mine], units[mine])
        gradient.target += E.T @ Z[start:stop]
        np.matmul(E, vectors.target, out=g_context[start:stop])
    gradient.intercept += column
    return value, g_context


def _softmax_slopes(E: Floats, intercept: Floats, weight: Floats, column: Floats) -> Floats:
    """Turn inner products into -weight softmax(u) in place; returns logsumexp of each row."""
    if E.dtype == np.float32:
        from efemb.kernels.zero_terms import softmax

        normalizer = np.empty(len(E), dtype=np.float32)
        softmax(E, intercept, weight, column, normalizer)
        return normalizer
    E += intercept
    top = E.max(axis=1, keepdims=True)
    np.exp(E - top, out=E)
    total = E.sum(axis=1, keepdims=True)
    E *= -weight[:, None] / total
    column += E.sum(axis=0)
    return np.asarray((top + np.log(total))[:, 0])
