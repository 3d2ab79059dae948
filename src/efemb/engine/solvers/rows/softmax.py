"""Softmax of each stored entry given its own context, over all entities or over drawn ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.engine.solvers.rows.zero_stages import HIDDEN, Columns
from efemb.engine.threads import cut
from efemb.kernels.offsets import add_slopes_of_rows, add_to_rows
from efemb.kernels.row_entries import left_out_vectors, spread_left_out
from efemb.kernels.sparse import scatter_bags
from efemb.kernels.zero_terms import softmax
from efemb.model.contexts.bound.rows import RowBlock
from efemb.model.factors import Factors
from efemb.model.predictor import Predictor, add_intercepts
from efemb.model.terms.cell_values import GroupTable, Offsets

if TYPE_CHECKING:
    from efemb.engine.solvers.rows.solver import RowsSolver


def softmax_terms(
    solver: RowsSolver,
    block: RowBlock,
    vectors: Factors,
    weight: Floats,
    side: Floats | None,
    offsets: Offsets | None = None,
    drawn: Columns | None = None,
) -> tuple[float, Factors, Floats | None, list[Floats]]:
    """Value and gradient of a block of rows, and gradients of the row side and offsets of terms.

    drawn : sample of the entities, None for a softmax over every entity
    """
    g_side: Floats | None = None
    cells: _RowOffsets | None = None
    sums = solver._sums(block, vectors)
    gradient = Factors.zeros_like(vectors)
    g_sums = np.zeros_like(sums)
    row = block.row_of_entry
    units = block.filled * weight[row]
    if block.excluded is None:  # every entry leaves its own context, so each has its own softmax
        Z = np.empty((len(row), vectors.target.shape[1]), dtype=sums.dtype)
        shape = (block.ptr, block.ids, block.own, block.rest)
        left_out_vectors(*shape, sums, vectors.bag, Z)
        place: Ints = np.arange(len(row))
        if side is not None:  # an entry leaves its bag, not the columns of terms
            Z[:, -side.shape[1] :] = side[row]
        if offsets is not None:
            of_rows = offsets.n_rows == len(block.total)
            cells = _RowOffsets(offsets, row if of_rows else place, Z.dtype)
        if drawn is not None:
            value, g_context = _drawn_rows(solver, Z, block.ids, units, drawn, vectors, gradient)
        else:
            value, g_context = _softmax_rows(
                solver, Z, place, block.ids, units, None, vectors, gradient, cells
            )
        if side is not None:
            g_side = np.zeros_like(side)
            np.add.at(g_side, row, g_context[:, -side.shape[1] :])
        spread_left_out(*shape, g_context, g_sums, gradient.bag)
    else:
        Z = sums / block.total[:, None]
        results = _softmax_rows(solver, Z, row, block.ids, units, block.excluded, vectors, gradient)
        value, g_context = results
        g_sums += g_context / block.total[:, None]
    scatter_bags(block.bag_ptr, block.bag_ids, block.bag_values, g_sums, gradient.bag)
    of_cells = [] if offsets is None or cells is None else cells.slopes
    return value, gradient, g_side, of_cells


class _RowOffsets:
    """Offsets of the inner products of softmaxes (`row` of each), and the sums of their slopes."""

    def __init__(self, offsets: Offsets, row: Ints, dtype: Any) -> None:
        self.offsets, self.row = offsets, row
        self.sparse = offsets.sparse | {i: part.products for i, part in offsets.scaled.items()}
        parts = [self.sparse.get(i, part) for i, part in enumerate(offsets.parts)]
        self.values = [part.values.astype(dtype, copy=False) for part in parts]
        self._slopes = [np.zeros_like(values) for values in self.values]

    @property
    def slopes(self) -> list[Floats]:
        """Slopes of the values of each part."""
        scaled = self.offsets.scaled
        each = enumerate(self._slopes)
        return [scaled[i].weigh(slope) if i in scaled else slope for i, slope in each]

    def add(self, E: Floats, batch: slice) -> None:
        """Add the offsets to the inner products of some softmaxes."""
        for number, part in self.sparse.items():
            add_to_rows(E, self.row[batch], part.ptr, part.ids, self.values[number])
        for number, table in self.offsets.tables.items():
            GroupTable(table.code[self.row[batch]], self.values[number]).add_to(E)

    def collect(self, E: Floats, batch: slice) -> None:
        """Add up the slopes of some softmaxes at the cells of the offsets."""
        for number, part in self.sparse.items():
            add_slopes_of_rows(E, self.row[batch], part.ptr, part.ids, self._slopes[number])
        for number, table in self.offsets.tables.items():
            slope = self._slopes[number]
            slope += GroupTable(table.code[self.row[batch]], slope).gather(E)


def _softmax_rows(
    solver: RowsSolver,
    Z: Floats,
    place: Ints,
    ids: Ints,
    units: Floats,
    excluded: Ints | None,
    vectors: Factors,
    gradient: Factors,
    cells: _RowOffsets | None = None,
) -> tuple[float, Floats]:
    """Add the gradient of sum over entries of units [u_id - logsumexp u] with u = Z[place] rho'."""
    g_context, predictor, parts = np.empty_like(Z), Predictor(vectors), vectors.column_parts
    weight = np.bincount(place, units, len(Z)).astype(Z.dtype)
    value = 0.0
    column = np.zeros_like(vectors.intercept)
    size = solver.pool.tuning.softmax_rows
    edges = np.searchsorted(place, np.arange(0, len(Z) + size, size))
    for chunk, start in enumerate(range(0, len(Z), size)):
        stop = min(start + size, len(Z))
        E = solver.pool.buffer("tile", (stop - start, len(vectors.target)), Z.dtype)
        np.matmul(Z[start:stop, parts[0]], vectors.target[:, parts[0]].T, out=E)
        for columns in parts[1:]:
            E += Z[start:stop, columns] @ vectors.target[:, columns].T
        if cells is not None:
            cells.add(E, slice(start, stop))
        entries = slice(edges[chunk], edges[chunk + 1])
        at = place[entries] - start
        picked = predictor.shift(E[at, ids[entries]], ids[entries])
        if excluded is not None:
            E[np.arange(stop - start), excluded[start:stop]] = HIDDEN
        normalizer = _softmax_slopes(E, vectors.intercept, weight[start:stop], column)
        value += float(units[entries] @ (picked - normalizer[at]))
        np.add.at(E, (at, ids[entries]), units[entries])
        np.add.at(column, ids[entries], units[entries])
        if cells is not None:
            cells.collect(E, slice(start, stop))
        for columns in parts:
            gradient.target[:, columns] += E.T @ Z[start:stop, columns]
            np.matmul(E, vectors.target[:, columns], out=g_context[start:stop, columns])
    gradient.add_intercepts(column)
    return value, g_context


def _softmax_slopes(E: Floats, intercept: Floats, weight: Floats, column: Floats) -> Floats:
    """Turn inner products into -weight softmax(u) in place; returns logsumexp of each row."""
    if E.dtype == np.float32:
        normalizer = np.empty(len(E), dtype=np.float32)
        softmax(E, intercept, weight, column, normalizer)
        return normalizer
    add_intercepts(E, intercept)
    top = E.max(axis=1, keepdims=True)
    np.exp(E - top, out=E)
    total = E.sum(axis=1, keepdims=True)
    E *= -weight[:, None] / total
    column += E.sum(axis=0)
    return np.asarray((top + np.log(total))[:, 0])


def _drawn_rows(
    solver: RowsSolver,
    Z: Floats,
    ids: Ints,
    units: Floats,
    drawn: Columns,
    vectors: Factors,
    gradient: Factors,
) -> tuple[float, Floats]:
    """Add the gradient of the log-densities of entries among drawn entities, times units.

    Each entry has its own context, a row of Z. Its log-density is that of a softmax among the drawn
    entities (`_compete`) or of a classification against noise (`_contrast`).
    """
    predictor, g_context = Predictor(vectors), np.empty_like(Z)
    assert drawn.index is not None
    own, slope = predictor.pick(Z, ids), np.empty(len(Z), dtype=Z.dtype)
    target, value = vectors.target[drawn.index], 0.0
    column, g_target = np.zeros_like(target[:, 0]), np.zeros_like(target)
    among = solver.spec.zeros.among_draws
    for part in cut(len(Z), solver.pool.tuning.softmax_rows):
        E = predictor.apply(Z[part], drawn.index)
        if among:
            E[_meets(drawn.index, ids[part])] = HIDDEN  # the entry itself is added below
            log_density = _compete(E, own[part], drawn.weight, slope[part])
        else:
            log_density = _contrast(E, own[part], drawn.weight * solver.spec.zeros.n, slope[part])
        value += float(units[part] @ log_density)
        E *= units[part, None]
        slope[part] *= units[part]
        column += E.sum(axis=0)
        for columns in vectors.column_parts:
            g_target[:, columns] += E.T @ Z[part, columns]
            np.matmul(E, target[:, columns], out=g_context[part, columns])
        g_context[part] += slope[part, None] * vectors.target[ids[part]]
    gradient.target[drawn.index] += g_target
    gradient.add_intercepts(column, drawn.index)
    scatter_bags(np.arange(len(ids) + 1), ids, slope, Z, gradient.target)
    own_slopes = np.bincount(ids, slope, len(vectors.intercept))
    gradient.add_intercepts(own_slopes.astype(Z.dtype))
    return value, g_context


def _meets(index: Ints, ids: Ints) -> tuple[Ints, Ints]:
    """(entry, place in the sorted `index`) of the entries that were drawn themselves."""
    place = np.minimum(np.searchsorted(index, ids), len(index) - 1)
    entry = np.flatnonzero(index[place] == ids)
    return entry, place[entry]


def _compete(u: Floats, own: Floats, weight: Floats, slope: Floats) -> Floats:
    """Log-densities of a softmax among an entry and the drawn entities, which have weights.

    The sum over drawn entities of weight exp(u) is an unbiased estimate of that over all others.
    `u` becomes its slopes, and `slope` gets that of the entry itself.
    """
    top = np.maximum(u.max(axis=1), own)
    np.exp(u - top[:, None], out=u)
    u *= weight
    own_weight = np.exp(own - top)
    total = u.sum(axis=1) + own_weight
    u /= -total[:, None]
    slope[:] = 1.0 - own_weight / total
    return np.asarray(own - top - np.log(total))


def _contrast(u: Floats, own: Floats, weight: Floats, slope: Floats) -> Floats:
    """Log-densities of classifying an entry as data and the drawn entities, weighted, as noise.

    `u` becomes its slopes, and `slope` gets that of the entry itself.
    """
    log_density = -np.logaddexp(0, -own) - np.logaddexp(0, u) @ weight
    u[:] = -0.5 * weight * (1.0 + np.tanh(0.5 * u))
    slope[:] = 0.5 * (1.0 - np.tanh(0.5 * own))
    return np.asarray(log_density)
