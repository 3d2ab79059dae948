"""Weights: what each neighbour counts for an entity whose context is a fixed list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from efemb.contexts.entity_lists import Lists
from efemb.errors import ParameterError
from efemb.labelled import Choice, Options
from efemb.nearest import checked_number
from efemb.query.vectors import flat_vectors
from efemb.table import Table
from efemb.types import Floats, Ints

if TYPE_CHECKING:
    from efemb.fitted import FittedEmbedding
    from efemb.query.queries import Queries


EDGES_AT_ONCE = 1 << 16


def weights(
    model: Queries,
    entity: Any = None,
    n: int | None = None,
    *,
    scaled: bool = False,
    **options: Unpack[Options],
) -> Table:
    """rho_n . alpha_m of every entity n and every neighbour m in its list.

    The "synaptic weights" of the paper's figure, for models with neighbours, graphs or lags.

    Parameters
    ----------
    model : fitted model
    entity : label or list of labels, optional
        Whose neighbours; all entities by default.
    n : int, optional
        Only so many neighbours of each, those with the largest absolute weight.
    scaled : bool
        Divide by the number of neighbours where the context takes their mean (scale="items"): the
        coefficient of x_m in u_n if all neighbours are observed.
    where, exclude, min_count, match, unknown
        Which neighbours are listed; see `Choice`.

    Returns
    -------
    Table
        label (n), neighbour (m), weight, and offset where contexts reach other rows; in the order
        of the entities, the largest weight first.
    """
    fitted = model.fitted()
    size = None if n is None else checked_number(n)
    choice = Choice(fitted.entities, **options)
    owner, member, offset, weight = edge_weights(fitted, scaled)
    kept = np.ones(len(owner), dtype=bool)
    if entity is not None:
        kept &= np.isin(owner, choice.codes(entity))
    if choice.rows is not None:
        kept &= np.isin(member, choice.rows)
    edges = np.flatnonzero(kept)
    if size is not None:
        edges = _strongest(owner[edges], weight[edges], size, edges)
    edges = edges[np.lexsort((-weight[edges], owner[edges]))]
    labels = fitted.entities.labels
    columns = {"label": labels[owner[edges]], "neighbour": labels[member[edges]]}
    columns["weight"] = weight[edges]
    if offset.any():
        columns["offset"] = offset[edges]
    return Table(columns)


def edge_weights(model: FittedEmbedding, scaled: bool = False) -> tuple[Ints, Ints, Ints, Floats]:
    """(n, m, offset, rho_n . alpha_m) of every edge of the lists."""
    if model.lists is None:
        raise ParameterError(
            "the contexts of this model are no fixed lists of neighbours: use complements() or "
            "pairs() for its inner products"
        )
    target, bag = flat_vectors(model)
    rho, alpha = (bag, target) if model.spec.combine.reverse else (target, bag)
    parts = [part for part in model.lists if len(part.members)]
    if not parts:
        none = np.empty(0, dtype=np.int64)
        return none, none, none, np.empty(0)
    owner = np.concatenate([part.owner for part in parts])
    member, offset, slot = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("members", "offset", "slot")
    )
    weight = np.empty(len(owner))
    for start in range(0, len(owner), EDGES_AT_ONCE):
        some = slice(start, start + EDGES_AT_ONCE)
        neighbour = alpha[slot[some] * model.n_entities + member[some]].astype(np.float64)
        weight[some] = np.einsum("ek,ek->e", rho[owner[some]].astype(np.float64), neighbour)
    if scaled:
        weight = weight / np.concatenate([_divisor(part) for part in parts])
    return owner, member, offset, weight


def _divisor(part: Lists) -> Floats:
    if part.scale == "total":
        raise ParameterError(
            "scale='total' divides by the values of the neighbours, which differ from row to row: "
            "scaled=True needs scale='items' or 'none'"
        )
    sizes = np.diff(part.ptr)
    return np.repeat(sizes, sizes) if part.scale == "items" else np.ones(len(part.members))


def _strongest(owner: Ints, weight: Floats, size: int, edges: Ints) -> Ints:
    """The edges of the largest absolute weights of each owner."""
    order = np.lexsort((-np.abs(weight), owner))
    first = np.searchsorted(owner[order], owner[order])
    return edges[order[np.arange(len(order)) - first < size]]
