"""Weights of the neighbors of an entity whose context is a fixed list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from efemb._deprecated import warn_renamed
from efemb._typing import Floats, Ints
from efemb.errors import ParameterError, check_integer, check_known
from efemb.fitted.selection import Choice, Options, accepts
from efemb.fitted.vectors import check_inner_products, flat_vectors
from efemb.model.contexts.bound.entities import Lists
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding
    from efemb.fitted.queries.base import HasFitted


EDGES_AT_ONCE = 1 << 16
FORMS = ("table", "csr")


@accepts(Options)
def weights(
    model: HasFitted,
    item: Any = None,
    n: int | None = None,
    *,
    scaled: bool = False,
    form: Literal["table", "csr"] = "table",
    entity: Any = None,
    **options: Unpack[Options],
) -> Any:
    """List the weights of the neighbors of an item: inner products of their vectors.

    The method `weights` of fitted models calls it, and documents the parameters and the result.
    """
    if entity is not None:
        warn_renamed("entity=", "item=")
        item = entity
    check_known("form", form, FORMS)
    fitted = model.fitted()
    size = None if n is None else check_integer("n", n)
    choice = Choice(fitted.entities, **options)
    owner, member, offset, weight = edge_weights(fitted, scaled)
    listed = np.ones(len(owner), dtype=bool)
    if item is not None:
        listed &= np.isin(owner, choice.codes(item))
    if choice.rows is not None:
        listed &= np.isin(member, choice.rows)
    edges: Ints = np.flatnonzero(listed)
    if size is not None:
        edges = _take_strongest(owner[edges], weight[edges], size, edges)
    if form == "csr":
        chosen = (owner[edges], member[edges], offset[edges], weight[edges])
        return _weight_matrix(fitted, *chosen)
    edges = edges[np.lexsort((-weight[edges], owner[edges]))]
    labels = fitted.entities.labels
    columns = {"label": labels[owner[edges]], "neighbor": labels[member[edges]]}
    columns["weight"] = weight[edges]
    if offset.any():
        columns["offset"] = offset[edges]
    return Table(columns, "weight: how much the neighbor adds to the predictor, per unit")


def _weight_matrix(
    model: FittedEmbedding, owner: Ints, member: Ints, offset: Ints, weight: Floats
) -> Any:
    """Weights as csr_array (N, N)."""
    from scipy.sparse import csr_array

    if offset.any():
        raise ParameterError(
            "contexts of this model reach other rows, so a pair has several weights: use "
            "form='table', whose column offset tells them apart"
        )
    size = model.n_entities
    return csr_array((weight, (owner, member)), shape=(size, size))


def edge_weights(model: FittedEmbedding, scaled: bool = False) -> tuple[Ints, Ints, Ints, Floats]:
    """(n, m, offset, rho_n . alpha_m times the weight) of every edge of the lists."""
    if model.lists is None:
        raise ParameterError(
            "the contexts of this model are not fixed lists of neighbors: use complements() or "
            "pairs() for its inner products"
        )
    check_inner_products(model)
    target, bag = flat_vectors(model)
    rho, alpha = (bag, target) if model.spec.combine.reverse else (target, bag)
    lists = [members for members in model.lists if len(members.members)]
    if not lists:
        empty = np.empty(0, dtype=np.int64)
        return empty, empty, empty, np.empty(0)
    owner = np.concatenate([members.owner for members in lists])
    member, offset, slot = (
        np.concatenate([getattr(members, name) for members in lists])
        for name in ("members", "offset", "slot")
    )
    weight = np.empty(len(owner))
    for start in range(0, len(owner), EDGES_AT_ONCE):
        block = slice(start, start + EDGES_AT_ONCE)
        neighbor = alpha[slot[block] * model.n_entities + member[block]].astype(np.float64)
        weight[block] = np.einsum("ek,ek->e", rho[owner[block]].astype(np.float64), neighbor)
    weight *= np.concatenate([lists_of.weigh(np.ones(len(lists_of.members))) for lists_of in lists])
    if scaled:
        weight = weight / np.concatenate([_divisor(members) for members in lists])
    return owner, member, offset, weight


def _divisor(lists: Lists) -> Floats:
    if lists.scale == "total":
        raise ParameterError(
            "scale='total' divides by the values of the neighbors, which differ from row to row: "
            "scaled=True needs scale='items' or 'none'"
        )
    ones = np.ones(len(lists.members))
    if lists.scale != "items":
        return ones
    return np.asarray(np.bincount(lists.owner, lists.weigh(ones)), np.float64)[lists.owner]


def _take_strongest(owner: Ints, weight: Floats, size: int, edges: Ints) -> Ints:
    """The edges of the largest absolute weights of each owner."""
    order = np.lexsort((-np.abs(weight), owner))
    first = np.searchsorted(owner[order], owner[order])
    return edges[order[np.arange(len(order)) - first < size]]
