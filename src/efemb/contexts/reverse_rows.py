"""The reverse conditional on row contexts: every other entity of the row given one of its items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from efemb.contexts.base import dense_rows, or_one
from efemb.contexts.row_block import RowBlock
from efemb.contexts.terms import Bags, Terms
from efemb.errors import ParameterError
from efemb.types import Floats, Ints

if TYPE_CHECKING:
    from efemb.contexts.row_bags import RowBags


def reverse_block(block: RowBlock, scale: str) -> RowBlock:
    """One row for each positive entry: its bag is the entry, its targets the rest of the row."""
    giver = np.flatnonzero(block.own)
    row = block.row_of_entry[giver]
    sizes = np.diff(block.ptr)[row]
    ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(block.ptr.dtype)
    source = np.arange(ptr[-1]) - np.repeat(ptr[:-1] - block.ptr[row], sizes)
    x = block.x[source].copy()
    x[source == np.repeat(giver, sizes)] = np.nan
    value = block.own[giver]
    total = value if scale == "total" else np.ones_like(value)
    return RowBlock(
        bag_ptr=np.arange(len(giver) + 1, dtype=block.ptr.dtype),
        bag_ids=block.ids[giver],
        bag_values=value,
        ptr=ptr,
        ids=block.ids[source],
        x=x,
        own=np.zeros_like(x),
        total=total,
        rest=np.repeat(total, sizes),
        row=block.row[row],
        excluded=block.ids[giver],
    )


def reverse_terms(bags: RowBags, rows: Ints) -> Terms:
    """Every other cell of the row given each positive entry, as terms."""
    from scipy.sparse import csr_array

    if bags.members is not None or bags.n_dims > 1:
        raise ParameterError("combine='reverse' on rows needs Basket and scalar observations")
    x = dense_rows(bags.data, rows)[:, :, 0]
    hidden = np.isnan(x)
    if bags.masked is not None:
        hidden |= bags.masked[rows].toarray().astype(bool)
    given = np.where(hidden, 0.0, x)
    value: Floats = (given != 0).astype(np.float64) if bags.binary else given
    row, giver = np.nonzero(value)
    amount = value[row, giver]
    n_entities = x.shape[1]
    pair = np.arange(len(row))
    scale = or_one(amount) if bags.scale == "total" else np.ones(len(row))
    keep = ~hidden[row]
    keep[pair, giver] = False
    terms = Terms(
        x=x[row].ravel(),
        row=np.repeat(row, n_entities),
        vector=np.tile(np.arange(n_entities), len(row)),
        entity=np.tile(np.arange(n_entities), len(row)),
        parts=(
            Bags(
                matrix=csr_array((amount, (pair, giver)), shape=(len(row), n_entities)),
                bag=np.repeat(pair, n_entities),
                scale=np.repeat(scale, n_entities),
            ),
        ),
    )
    return terms.take(keep.ravel())
