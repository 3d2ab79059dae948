"""Scores of cells given their contexts, by matrix products; NumPy only."""

from __future__ import annotations

import numpy as np

from efemb._typing import Floats, Ints
from efemb.model.factors import Factors
from efemb.model.families.base import Family
from efemb.model.huffman import Huffman
from efemb.model.links import FLOOR, Link
from efemb.model.objective import expected_value, log_density, log_sums
from efemb.model.predictor import Cells, Predictor

FEW = 0.1  # of the entities: for more it is faster to process all of them


def normalized_log_likelihood(family: Family, link: Link, cells: Cells, factors: Factors) -> Floats:
    """log(m_n / sum_j m_j) of each cell, m the conditional means of all entities (float64)."""
    if family.exponential_mean and link.is_log and factors.combine is None:
        low = np.flatnonzero(factors.intercept < FLOOR)
        if len(low) <= FEW * len(factors.target):
            return _additive_log_shares(cells, factors, low)
    log_shares = np.empty(len(cells.row))
    # Cells that remove nothing from their bag share the context, and so the sum, of their row.
    shared = not cells.own.any()
    _, first, context = np.unique(cells.row, return_index=True, return_inverse=True)
    if not shared:
        first = context = np.arange(len(log_shares))
    predictor = Predictor(factors)
    distinct = cells.take(first)
    for part, Z in distinct.contexts(factors, len(factors.target)):
        u = distinct.apply(predictor, part, Z)
        chosen = np.flatnonzero((context >= part.start) & (context < part.stop)) if shared else part
        log_shares[chosen] = _log_share(
            family, link, u, context[chosen] - part.start, cells.ids[chosen]
        )
    return log_shares


def _additive_log_shares(cells: Cells, factors: Factors, low: Ints) -> Floats:
    """The log shares for means max(u_j, FLOOR) of positive vectors, whose sum needs no pass over j.

    Only entities whose intercept is below the floor, `low`, can have such a mean themselves.
    """
    log_shares, predictor = np.empty(len(cells.row)), Predictor(factors)
    every, plain = predictor.totals()
    has_cells = cells.side is not None and cells.side.has_cells
    width = len(factors.target) if has_cells else max(len(low), factors.bag.shape[1])
    for part, Z in cells.contexts(factors, width):
        u, of_low = predictor.pick(Z, cells.ids[part]), predictor.apply(Z, low)
        products = sum(Z[:, columns] @ every[columns] for columns in factors.column_parts)
        total = np.asarray(products + plain)
        offsets = cells.offsets(factors, part)
        if offsets is not None:
            u = u + offsets.at(np.arange(len(u)), cells.ids[part])
            of_low, total = of_low + offsets.of_entities(low), total + offsets.sum_rows()
        total = total + np.maximum(FLOOR - of_low, 0.0).sum(axis=1, dtype=np.float64)
        log_shares[part] = np.log(np.maximum(u, FLOOR)) - np.log(total)
    return log_shares


def _log_share(family: Family, link: Link, u: Floats, row: Ints, ids: Ints) -> Floats:
    """log(m_id / sum_j m_j) of entries in rows `row` of the inner products u (overwritten)."""
    v = log_expected_value(family, link, u)
    return np.asarray(v[row, ids] - log_sums(v)[row])


def log_expected_value(family: Family, link: Link, u: Floats) -> Floats:
    """log E[x] at inner products u; for a categorical family, up to a constant."""
    if family.exponential_mean:
        return np.asarray(link(u))
    return np.asarray(np.log(np.maximum(expected_value(family, link, u), np.finfo(u.dtype).tiny)))


def tree_log_likelihood(tree: Huffman, cells: Cells, factors: Factors) -> Floats:
    """log p of each cell down a tree; `target` and `intercept` belong to its nodes."""
    log_probability, predictor = np.empty(len(cells.row)), Predictor(factors)
    for part, Z in cells.contexts(factors, len(factors.target)):
        log_probability[part] = tree.log_probability(predictor.apply(Z), cells.ids[part])
    return log_probability


def cell_log_density(family: Family, link: Link, cells: Cells, factors: Factors) -> Floats:
    """Conditional log-density of each cell."""
    density, predictor = np.empty(len(cells.row)), Predictor(factors)
    for part, Z in cells.contexts(factors, factors.bag.shape[1]):
        u = cells.pick(predictor, part, Z)
        family_of_cells = family.at(cells.ids[part])
        density[part] = log_density(family_of_cells, link, cells.x[part].astype(np.float64), u)
    return density
